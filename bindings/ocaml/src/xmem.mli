(* SPDX-License-Identifier: MIT *)
(** Share large buffers between processes on one machine, without copying them.

    {[
      Xmem.Pool.with_ (Xmem.Pool.open_ ~writer:true "camera") @@ fun pool ->
      Xmem.Buffer.with_ (Xmem.Pool.acquire pool 4096) @@ fun buffer ->
      Bigarray.Array1.fill (Xmem.Buffer.data_mut buffer) 'x';
      Xmem.Buffer.publish buffer
    ]}

    {b Handles.} A pool, a subscription and a buffer are handles. [with_] and [release] (or
    [close]) drop them, and the garbage collector drops those that a program forgets. A buffer
    occupies one of the few slots of its pool, and the collector knows nothing of slots. So use
    {!Buffer.with_} where you can, and do not rely on the collector. A call on a handle that was
    dropped raises {!Error} with the code [EBADF].

    {b Errors.} A call that fails raises {!Error}, and changes nothing. {!catch} turns the
    exception into a [result].

    {b Times} are seconds. A call without [?timeout] waits for ever.

    {b Threads.} Calls that can wait let other threads run. A signal runs its function during a
    wait. If this function raises an exception, the wait ends with it; otherwise the wait goes on.
    All threads and domains may use a handle. But while a call publishes or drops a handle, no other
    call may use it.

    {b Forks.} A child cannot use the handles that it inherits ([ECHILD]). It calls
    {!Pool.reopen}. *)

module Constants = Constants
(** Flags, enums and limits. *)

module Answers = Answers
(** Records with the answers of calls. *)

module Code = Constants.Code
(** The errors of errno. *)

type error = Error.t = {
  code : Code.t;
  call : string;  (** the C function, without [xmem_]; its manual page lists its errors *)
  message : string;  (** what was tried, and what to do *)
}

exception Error of error

val catch : (unit -> 'a) -> ('a, error) result
(** [catch f] is [Ok (f ())], or the error that [f] raises. *)

val settle : unit -> unit
(** Let the collector drop the buffers, subscriptions and pools that the program has forgotten. A
    program that sleeps in an event loop of its own calls this first. {!Pool.acquire} and
    {!Subscription.receive} do it before they sleep. If this process has buffers, it makes a full
    collection. Otherwise it costs nothing. *)

val handles : unit -> int
(** How many buffers this process has, also those that were forgotten and not collected yet. *)

type pool = Managed.pool
type subscription = Managed.subscription
type buffer = Managed.buffer

module Calls = Calls
(** The C API, function by function, with the text of the C headers. The modules below call
    it, and let the collector drop forgotten buffers before they wait. *)

(** The names of contents. *)
module Token : sig
  type t = private int64

  val of_int64 : int64 -> t

  val of_slot : int -> t
  (** The present contents of a slot. *)

  val slot : t -> int
end

module Buffer : sig
  type t = buffer

  val with_ : t -> (t -> 'a) -> 'a
  (** [with_ buffer f] is [f buffer]. The buffer is released after that, also if [f] raises an
      exception, unless [f] has published it. *)

  val release : t -> unit
  (** A buffer that was acquired and not published is given up. Views become empty. *)

  (** {1 Publishing} *)

  val publish :
    ?keep:bool ->
    ?client:int ->
    ?timestamp_ns:int64 ->
    ?offset:int ->
    ?length:int ->
    ?timeout:float ->
    ?stream:nativeint ->
    t ->
    unit
  (** Publish a buffer that was acquired, or forward one that is held. After success the handle is
      gone and views are empty, unless [keep] is true. [timeout] is 0 if it is not given. *)

  val publish_token :
    ?keep:bool ->
    ?client:int ->
    ?timestamp_ns:int64 ->
    ?offset:int ->
    ?length:int ->
    ?timeout:float ->
    ?stream:nativeint ->
    t ->
    Token.t
  (** As {!publish}; returns the token of the contents. *)

  (** {1 Contents}

      A view shows the contents as a Bigarray, without a copy. It keeps them, and so does each part
      of it ([sub], [slice_left]) and each reshaped form of it. So a program can forget the buffer.
      When the program releases or publishes the buffer, the view becomes empty: every index is out
      of bounds. Parts stay, and keep the contents until the collector drops them; do not write to
      them any more. *)

  type bytes = (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t
  type ('a, 'b) array = ('a, 'b, Bigarray.c_layout) Bigarray.Genarray.t

  val data : t -> bytes
  (** The contents, [size] bytes, to read. A store to them ends the program ([SIGSEGV]), except in
      a pool that was opened with [Constants.Open.shares]. *)

  val data_mut : t -> bytes
  (** The whole buffer, [capacity] bytes, to write. [EPERM]: the buffer is held for reading. *)

  val data_private : t -> bytes
  (** A copy of the contents that the program may write, made page by page when it is written. The
      collector knows its size. *)

  val tensor : ('a, 'b) Bigarray.kind -> t -> ('a, 'b) array
  (** The tensor that the publisher has described: rank 0 to 8, to read. If OCaml has no kind for
      the elements, such as [uint32], [bool] or [bfloat16], their bits are shown as integers.
      [EINVAL]: the elements are of another kind, or not one after another. *)

  val tensor_mut :
    ?dtype:Constants.Dtype.t -> ('a, 'b) Bigarray.kind -> int Stdlib.Array.t -> t -> ('a, 'b) array
  (** Describe a tensor of this shape in a buffer that was acquired, and show it to write.
      [dtype] is the type that fits the kind, if it is not given. *)

  val size : t -> int
  val capacity : t -> int
  val slot : t -> int

  val token : t -> Token.t
  (** 0 while the buffer is written. *)

  val stat : t -> Answers.Buffer_info.t

  (** {1 Further handles} *)

  val get : pool -> Token.t -> t
  (** The buffer of a token, held for reading. It takes a claim if there is one. *)

  val clone : t -> t
  (** Another handle of a buffer that is held for reading. *)

  val get_mut : t -> unit
  (** Write received contents in place: their only holder becomes their writer. [EBUSY]: others
      have them, or a view still shows them. *)

  val wait : ?timeout:float -> t -> unit
  (** Wait until a GPU has written the contents. *)

  (** {1 Copies} *)

  val copy : ?stream:nativeint -> from:t -> t -> unit
  (** Copy contents and description into a buffer that is being written. With a stream, keep [from]
      until {!Cuda.release_on} of that stream drops it. *)

  val copy_range :
    ?stream:nativeint -> from:t -> from_offset:int -> offset:int -> length:int -> t -> unit

  val copy_to : ?timeout:float -> device:int -> t -> t
  (** A new buffer with a copy, in memory of a GPU, or of the CPU ([Constants.cpu]). *)

  val copy_from_array : ?offset:int -> ('a, 'b) array -> t -> unit
  (** Copy an array into a buffer, in whichever memory that is. *)

  val copy_to_array : ?offset:int -> ('a, 'b) array -> t -> unit
  (** Fill an array from the contents. *)
end

module Pool : sig
  type t = pool

  val open_ :
    ?writer:bool ->
    ?flags:int ->
    ?slots:int ->
    ?clients:int ->
    ?ring_entries:int ->
    ?wait_bound:float ->
    ?label:string ->
    ?demand_bytes:int64 ->
    ?cache_bytes:int ->
    ?cache_time:float ->
    ?memory:int ->
    ?keep:int ->
    ?mode:int ->
    ?gid:int ->
    ?fd:Unix.file_descr ->
    string ->
    t
  (** Join the pool of that name, or make it. [""] makes a pool without a name. [flags] are those
      of {!Constants.Open}. *)

  val with_ : t -> (t -> 'a) -> 'a
  (** [with_ pool f] is [f pool]; the pool is closed after that. *)

  val close : t -> unit
  val reopen : t -> t
  val cancel : t -> unit
  val backend : t -> string
  val client : t -> int

  (** {1 Buffers} *)

  val preallocate : ?flags:int -> ?device:int -> t -> bytes:int -> count:int -> unit

  val acquire : ?timeout:float -> t -> int -> Buffer.t
  (** A buffer of so many bytes, to write. If the pool has none, the collector drops the handles
      that this process has forgotten, and the call waits. [ETIMEDOUT], or [EAGAIN] with a timeout
      of 0: there was none. *)

  val acquire_cuda : ?timeout:float -> device:int -> t -> int -> Buffer.t

  val attach_fd : ?offset:int -> ?flags:int -> t -> Unix.file_descr -> length:int -> Buffer.t
  (** A buffer whose contents are a file that exists already. *)

  val retract : t -> Token.t -> unit

  val collect : ?keep:int -> t -> int * int
  (** Find the buffers that no client uses any more; returns their number and their bytes. *)

  val limbo_hook :
    ?bytes:int -> ?count:int -> t -> (Answers.Limbo.t -> unit) option -> unit
  (** Call a function when more bytes or more buffers than these are in limbo. It is called by the
      next call of this library that makes or releases a handle, by {!collect}, {!stat} or
      {!settle}, and must not raise an exception. *)

  (** {1 Event loops} *)

  val poll_fd : t -> Unix.file_descr
  (** The descriptor is readable if a subscription has something. It is writable if something has
      changed since the last {!acquire} that found no buffer. So it can be writable without a
      buffer, once for each change. Call {!settle} before you sleep on it, and do not close it. *)

  val subscribers_poll_fd : t -> Unix.file_descr

  (** {1 Clients and slots} *)

  val stat : t -> Answers.Pool_info.t
  val client_info : t -> int -> Answers.Client_info.t
  val slot_info : t -> int -> Answers.Slot_info.t
  val device_info : t -> int -> Answers.Device_info.t
  val holds : t -> client:int -> slot:int -> int
  val subscribers : t -> Answers.Subscriber_info.t list

  val wait_subscribers : ?timeout:float -> t -> int -> int
  (** Wait until so many clients follow this writer; returns how many there are. *)

  (** {1 Access} *)

  val fd : t -> Unix.file_descr
  (** A descriptor with which another process joins. The caller closes it. *)

  val narrow_fd : Unix.file_descr -> roles:int -> Unix.file_descr
  val set_mode : t -> ?gid:int -> int -> unit
  val evict : t -> client:int -> incarnation:int64 -> unit
  val grant : t -> client:int -> incarnation:int64 -> unit
  val drain : ?flags:int -> t -> int
end

module Subscription : sig
  type t = subscription

  val subscribe :
    ?waits:bool ->
    ?flags:int ->
    ?publisher:int ->
    ?timeout:float ->
    ?history:int ->
    ?depth:int ->
    ?label:string ->
    Pool.t ->
    t
  (** Follow the writers of a pool, each from its next publication on. If the pool has no writer
      yet, wait for the first one. With [waits] they wait for this subscriber. [flags] are those of
      {!Constants.Subscribe}. *)

  val with_ : t -> (t -> 'a) -> 'a
  val close : t -> unit

  val receive : ?timeout:float -> t -> Buffer.t option
  (** The next publication, held for reading; [None]: none came in time. [EPIPE]: all writers have
      ended. Before it sleeps, the collector drops the handles that this process has forgotten,
      because a writer could be waiting for them. *)

  val receive_any : ?timeout:float -> Pool.t -> (Buffer.t * (t -> bool)) option
  (** As {!receive}, from all subscriptions of a pool. The function says whether a subscription has
      received this buffer. *)

  val iter : (Buffer.t -> unit) -> t -> unit
  (** Receive, call the function and release, until all writers have ended. *)

  val stat : t -> Answers.Subscription_info.t

  val poll_fd : t -> Unix.file_descr
  (** As {!Pool.poll_fd}, for this subscription. *)
end

(** Handing buffers over by count. [lasts]: how long claims last, in seconds; 10 if it is not
    given. *)
module Claims : sig
  val set : ?lasts:float -> Buffer.t -> int -> unit
  val offer : ?lasts:float -> Buffer.t -> int -> unit

  val forget : Buffer.t -> unit
  (** Drop the handle and leave its reference to the next client. *)

  val add : Pool.t -> Token.t -> unit
  val drop : Pool.t -> Token.t -> unit
  val count : Pool.t -> Token.t -> int
  val void : Pool.t -> Token.t -> unit
end

(** Describing contents, and reading descriptions. *)
module Metadata : sig
  val view : Buffer.t -> Answers.Metadata.t
  val tensor : ?flags:int -> Buffer.t -> Answers.Tensor.t
  val image : ?flags:int -> Buffer.t -> Answers.Image.t
  val describe_tensor : ?strides:int array -> Buffer.t -> Constants.Dtype.t -> int array -> unit

  val describe_image :
    ?stride:int -> Buffer.t -> Constants.Image_format.t -> width:int -> height:int -> unit

  val image_bytes : ?stride:int -> Constants.Image_format.t -> width:int -> height:int -> int

  val describe_source :
    ?content_type:string ->
    ?producer:string ->
    ?timestamp_ns:int64 ->
    ?clock:string ->
    Buffer.t ->
    unit

  val set_id : Buffer.t -> int -> unit
  (** A number of the program's own for the contents, in a buffer that is being written. *)

  val set_user : Buffer.t -> int64 array -> unit
  (** At most eight numbers of the program's own, in a buffer that is being written. *)
end

(** Memory of GPUs. Addresses and streams are those of the driver. *)
module Cuda : sig
  val query : unit -> Answers.Cuda_info.t
  val device_info : int -> Answers.Cuda_device_info.t
  val acquire : ?timeout:float -> device:int -> Pool.t -> int -> Buffer.t

  val attach :
    ?flags:int -> ?finished:(unit -> unit) -> Pool.t -> nativeint -> int -> Buffer.t
  (** A buffer whose contents are memory that the program has allocated. When no client uses
      the memory any more, [finished] is called, as {!Pool.limbo_hook} calls its function. *)

  val ptr : Buffer.t -> nativeint
  (** The address is valid while the handle lives, and the collector drops a handle that nothing
      refers to. So keep the buffer while a stream uses the address, and let {!release_on} drop
      it. *)

  val ptr_mut : Buffer.t -> nativeint
  val peer : Buffer.t -> device:int -> unit
  val device : Buffer.t -> int
  val wait_on : Buffer.t -> stream:nativeint -> unit

  val release_on : Buffer.t -> stream:nativeint -> unit
  (** Release a buffer when the work that is now in the stream has finished. *)

  val all_streams : nativeint
  (** As the stream of {!release_on}: all streams of the buffer's GPU. *)
end

(** The host, its pools and its limits. *)
module Host : sig
  val query : unit -> Answers.Host_info.t
  val pools : unit -> Answers.Pool_entry.t list
  val limits : Pool.t -> Answers.Limit_info.t list
end
