(* SPDX-License-Identifier: MIT *)
open Ctypes
module M = Managed
module D = M.D
module Constants = Constants
module Answers = Answers
module Calls = Calls
module Code = Constants.Code

type error = Error.t = { code : Code.t; call : string; message : string }

exception Error = Error.Error

type pool = M.pool
type subscription = M.subscription
type buffer = M.buffer

let catch f = match f () with value -> Ok value | exception Error error -> Result.Error error
let settle = Slots.settle
let handles = M.live

(* ---- times, tokens, descriptors *)

let nanoseconds seconds =
  let ns = seconds *. 1e9 in
  if ns >= 9.2e18 then Constants.forever else Int64.of_float ns

let time = function Some seconds -> nanoseconds seconds | None -> Constants.forever
let time_or_0 = function Some seconds -> nanoseconds seconds | None -> 0L

(* A descriptor is a number on Unix. *)
external descriptor : int -> Unix.file_descr = "%identity"
external number : Unix.file_descr -> int = "%identity"

module Token = struct
  type t = int64

  let of_int64 token = token
  let of_slot slot = Int64.logor 0xffff_ffff_ffff_0000L (Int64.of_int slot)
  let slot token = Int64.to_int token land 0xffff
end

let[@inline] with_ drop it f =
  match f it with
  | value -> drop it; value
  | exception problem ->
    let trace = Printexc.get_raw_backtrace () in
    drop it;
    Printexc.raise_with_backtrace problem trace

(* All answers of a function that is asked for the one after another. *)
let rec listed ask next after =
  match ask after with
  | one -> one :: listed ask next (next one)
  | exception Error { code = ENOENT; _ } -> []

(* ---- buffers *)

module Buffer = struct
  type t = M.buffer

  let release : t -> unit = M.release
  let with_ it f = with_ release it f
  let size = Calls.size
  let capacity = Calls.capacity
  let slot = Calls.slot
  let token = Calls.token
  let stat = Calls.buffer_stat
  let clone = Calls.clone
  let get = Calls.get
  let wait ?timeout it = Calls.wait_contents it ~timeout:(time timeout)

  (* A part of a view that the program has forgotten ends with a full collection. *)
  let get_mut (it : t) =
    if M.is_shown it then Slots.full ();
    if M.is_shown it then
      M.refuse Code.EBUSY "get_mut" "get_mut: a Bigarray still shows these contents";
    Calls.get_mut it;
    M.end_views it;
    it.acquired <- false

  (* ---- publishing *)

  let no_options = from_voidp D.xmem_publish_options null
  let no_token = from_voidp uint64_t null

  let options flags client timestamp_ns offset length stream =
    let o = make D.xmem_publish_options in
    let set field convert value = Convert.set o field convert value in
    setf o D.xmem_publish_options_size (Unsigned.Size_t.of_int (sizeof D.xmem_publish_options));
    set D.xmem_publish_options_flags Unsigned.UInt32.of_int (Some flags);
    set D.xmem_publish_options_client Unsigned.UInt32.of_int client;
    set D.xmem_publish_options_timestamp_ns Unsigned.UInt64.of_int64 timestamp_ns;
    set D.xmem_publish_options_offset Unsigned.UInt64.of_int offset;
    set D.xmem_publish_options_length Unsigned.UInt64.of_int length;
    set D.xmem_publish_options_stream ptr_of_raw_address stream;
    o

  (* Parts of views keep their hold, so the handle is kept for them. *)
  let publish_to token ?(keep = false) ?client ?timestamp_ns ?offset ?length ?timeout ?stream it =
    let shown = M.is_shown it in
    let flags =
      (if keep || shown then Constants.Publish.keep else 0)
      lor if client = None then 0 else Constants.Publish.client
    in
    let o = options flags client timestamp_ns offset length stream in
    let left = M.left (time_or_0 timeout) in
    ignore
      (M.again "publish" M.negative (fun () ->
           setf o D.xmem_publish_options_timeout_ns (left ());
           M.Slow.publish (M.raw it) (addr o) token));
    M.keep o;
    if not keep then if shown then M.release it else M.gone it

  (* A buffer that was acquired in memory of the CPU is published at once. *)
  let publish_now (it : t) =
    it.acquired
    && (not (M.is_shown it))
    && M.Fast.publish (M.raw it) no_options no_token = 0
    && (M.gone it; true)

  let publish ?keep ?client ?timestamp_ns ?offset ?length ?timeout ?stream it =
    match (keep, client, timestamp_ns, offset, length, timeout, stream) with
    | None, None, None, None, None, None, None when publish_now it -> ()
    | _ -> publish_to no_token ?keep ?client ?timestamp_ns ?offset ?length ?timeout ?stream it

  let publish_token ?keep ?client ?timestamp_ns ?offset ?length ?timeout ?stream it =
    let token = allocate uint64_t Unsigned.UInt64.zero in
    publish_to token ?keep ?client ?timestamp_ns ?offset ?length ?timeout ?stream it;
    Unsigned.UInt64.to_int64 !@token

  (* ---- views *)

  type bytes = (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t
  type ('a, 'b) array = ('a, 'b, Bigarray.c_layout) Bigarray.Genarray.t

  external view :
    M.block -> nativeint -> ('a, 'b) Bigarray.kind -> int Stdlib.Array.t -> int -> ('a, 'b) array
    = "xmem_ml_view"

  external kind_number : ('a, 'b) Bigarray.kind -> int = "%identity"

  (* There is one view of each form, so a program can ask for it again and again. *)
  let show ?(private_bytes = 0) (it : t) address kind shape : ('a, 'b) array =
    let key = (address, kind_number kind, Stdlib.Array.copy shape) in
    match List.assoc_opt key it.views with
    | Some made -> Obj.obj made
    | None ->
      let made = view it.block address kind shape private_bytes in
      it.views <- (key, Obj.repr made) :: it.views;
      made

  let show_bytes ?private_bytes it address size : bytes =
    Bigarray.array1_of_genarray (show ?private_bytes it address Bigarray.char [| size |])

  let data it = show_bytes it (Calls.data it) (size it)
  let data_mut it = show_bytes it (Calls.data_mut it) (capacity it)

  let data_private it =
    let bytes = size it in
    show_bytes ~private_bytes:bytes it (Calls.data_private it) bytes

  (* Does the kind have the elements of this type? Numbers that OCaml has no kind for are shown as
     integers of their bits. *)
  let fits (type a b) (kind : (a, b) Bigarray.kind) dtype =
    let code = Constants.Dtype_code.of_int (dtype land 0xff) in
    let bits = (dtype lsr 8) land 0xff * (dtype lsr 16) in
    bits = 8 * Bigarray.kind_size_in_bytes kind
    &&
    match (kind, code) with
    | Bigarray.Int, _ -> false
    | (Bigarray.Float32 | Bigarray.Float64), code -> code = Float
    | (Bigarray.Complex32 | Bigarray.Complex64), code -> code = Complex
    | _, Float -> bits = 16
    | _, code -> code <> Complex

  let dtype_of (type a b) (kind : (a, b) Bigarray.kind) : Constants.Dtype.t =
    match kind with
    | Float32 -> Float32
    | Float64 -> Float64
    | Int8_signed -> Int8
    | Int8_unsigned | Char -> Uint8
    | Int16_signed -> Int16
    | Int16_unsigned -> Uint16
    | Int32 -> Int32
    | Int64 | Nativeint -> Int64
    | Complex32 -> Complex64
    | Complex64 -> Complex128
    | _ -> None_

  let tensor kind it =
    let t = Calls.tensor_view it 0 in
    if not (fits kind t.dtype) then
      M.refuse Code.EINVAL "tensor_view"
        (Printf.sprintf "tensor: elements of type %#x are not of this Bigarray kind" t.dtype);
    if t.flags land Constants.Tensor.dense = 0 then
      M.refuse Code.EINVAL "tensor_view" "tensor: the elements are not one after another";
    show it t.data kind (Stdlib.Array.sub t.shape 0 t.ndim)

  let tensor_mut ?dtype kind shape it =
    let dtype = match dtype with Some dtype -> dtype | None -> dtype_of kind in
    let number = Constants.Dtype.to_int dtype in
    if not (fits kind number) then
      M.refuse Code.EINVAL "describe_tensor" "tensor_mut: the type is not of this Bigarray kind";
    Calls.describe_tensor it number (Stdlib.Array.length shape) shape;
    show it (Calls.data_mut it) kind shape

  (* ---- copies *)

  let copy ?(stream = 0n) ~from it = Calls.copy it from ~stream

  let copy_range ?(stream = 0n) ~from ~from_offset ~offset ~length it =
    Calls.copy_range it offset from from_offset length ~stream

  let copy_to ?timeout ~device it = Calls.copy_to it device ~timeout:(time timeout)

  let address_of array =
    raw_address_of_ptr (to_voidp (bigarray_start genarray array))

  (* Without a stream: the collector would free an array that a stream still uses. *)
  let copy_from_array ?(offset = 0) array it =
    let bytes = Bigarray.Genarray.size_in_bytes array in
    Calls.copy_from_host it offset (address_of array) bytes ~stream:0n;
    M.keep array

  let copy_to_array ?(offset = 0) array it =
    let bytes = Bigarray.Genarray.size_in_bytes array in
    Calls.copy_to_host (address_of array) it offset bytes ~stream:0n;
    M.keep array
end

(* ---- pools *)

module Pool = struct
  type t = M.pool

  let open_ ?(writer = false) ?(flags = 0) ?slots ?clients ?ring_entries ?wait_bound ?label
      ?demand_bytes ?cache_bytes ?cache_time ?memory ?keep ?mode ?gid ?fd name =
    let flag bit on = if on then bit else 0 in
    let flags =
      flags
      lor flag Constants.Open.writer writer
      lor flag Constants.Open.group (gid <> None)
      lor flag Constants.Open.fd (fd <> None)
    in
    Calls.pool_open ~flags ?slots ?clients ?ring_entries
      ?wait_bound_ns:(Option.map nanoseconds wait_bound)
      ?label ?demand_bytes ?cache_bytes
      ?cache_ns:(Option.map nanoseconds cache_time)
      ?memory ?keep ?mode ?gid
      ?fd:(Option.map number fd)
      (if name = "" then None else Some name)

  let reopen = Calls.pool_reopen
  let cancel = Calls.cancel
  let backend = Calls.pool_backend
  let client = Calls.pool_client
  let fd it = descriptor (Calls.pool_fd it)
  let narrow_fd fd ~roles = descriptor (Calls.pool_fd_narrow (number fd) roles)
  let poll_fd it = descriptor (Calls.pool_poll_fd it)

  let preallocate ?flags ?device it ~bytes ~count =
    Calls.preallocate ?flags ?device_id:device it bytes count

  let acquire_slowly call timeout now wait =
    match Slots.find call ~timeout:(time timeout) now wait with
    | Ok raw -> raw
    | Error error -> raise (Error.Error error)

  (* Other threads go on while a buffer of so many bytes is made. *)
  let large = 1 lsl 20

  let acquire ?timeout (it : t) bytes =
    M.made @@ fun () ->
    let now () =
      if bytes < large then M.Fast.acquire (M.raw it) bytes 0L
      else M.Slow.acquire (M.raw it) bytes 0L
    in
    let raw = now () in
    let raw =
      if not (is_null raw) then raw
      else acquire_slowly "acquire" timeout now (fun ns -> M.Slow.acquire (M.raw it) bytes ns)
    in
    M.keep it;
    M.with_gc_quickly ~acquired:true it.pool raw

  let acquire_cuda ?timeout ~device (it : t) bytes =
    let device = Convert.int32 "acquire_cuda" device in
    M.made @@ fun () ->
    let raw =
      acquire_slowly "acquire_cuda" timeout
        (fun () -> M.Slow.acquire_cuda (M.raw it) bytes device 0L)
        (fun ns -> M.Slow.acquire_cuda (M.raw it) bytes device ns)
    in
    M.keep it;
    M.with_gc M.Buffer ~parent:it.pool raw

  let attach_fd ?(offset = 0) ?(flags = 0) it fd ~length =
    Calls.attach_fd it (number fd) offset length flags

  let retract = Calls.retract

  let collect ?(keep = 0) it =
    let found = Calls.collect it keep in
    M.work_off ();
    found

  let stat it =
    let answer = Calls.pool_stat it in
    M.work_off ();
    answer

  external set_limbo_hook : nativeint -> int -> int -> int -> int = "xmem_ml_limbo_hook"

  (* The function is found by its number as long as it is the pool's. *)
  let hooks : (nativeint * int) list Atomic.t = Atomic.make []

  let rec set_hook raw id =
    let before = Atomic.get hooks in
    let mine, others = List.partition (fun (other, _) -> other = raw) before in
    let after = if id = 0 then others else (raw, id) :: others in
    if Atomic.compare_and_set hooks before after then
      List.iter (fun (_, id) -> Callbacks.remove id) mine
    else set_hook raw id

  let limbo_hook ?(bytes = max_int) ?(count = 0xffff_ffff) (it : t) f =
    let call f address =
      f (Calls.limbo !@(from_voidp D.xmem_limbo (ptr_of_raw_address address)))
    in
    let id = match f with Some f -> Callbacks.add (call f) | None -> 0 in
    let raw = raw_address_of_ptr (M.raw it) in
    if set_limbo_hook raw bytes count id < 0 then begin
      Callbacks.remove id;
      M.fail "limbo_hook"
    end;
    set_hook raw id;
    M.keep it

  let close (it : t) =
    set_hook (raw_address_of_ptr it.raw) 0;
    M.release it

  let with_ it f = with_ close it f
  let client_info = Calls.pool_client_info
  let slot_info = Calls.pool_slot_info
  let device_info = Calls.pool_device_info
  let holds it ~client ~slot = Calls.pool_holds it client slot

  let subscribers it =
    listed (Calls.subscriber_next it) (fun (one : Answers.Subscriber_info.t) -> one.client + 1) 0

  let wait_subscribers ?timeout it count =
    Calls.wait_subscribers it count ~timeout:(time timeout)

  let subscribers_poll_fd it = descriptor (Calls.subscribers_poll_fd it)
  let set_mode it ?(gid = Int32.to_int (-1l)) mode = Calls.pool_set_mode it mode gid
  let evict it ~client ~incarnation = Calls.pool_evict it client incarnation
  let grant it ~client ~incarnation = Calls.pool_grant it client incarnation
  let drain ?(flags = 0) it = Calls.pool_drain it flags
end

(* ---- subscriptions *)

module Subscription = struct
  type t = M.subscription

  let subscribe ?(waits = false) ?(flags = 0) ?publisher ?timeout ?history ?depth ?label pool =
    let flags =
      flags
      lor (if waits then Constants.Subscribe.waits else 0)
      lor if publisher = None then 0 else Constants.Subscribe.publisher
    in
    Calls.subscribe ~flags ?publisher ?timeout_ns:(Option.map nanoseconds timeout) ?history ?depth
      ?label pool

  let close : t -> unit = M.release
  let with_ it f = with_ close it f
  let stat = Calls.subscription_stat
  let poll_fd it = descriptor (Calls.subscription_poll_fd it)

  let receive ?timeout (it : t) =
    M.made @@ fun () ->
    let now () = M.Fast.receive (M.raw it) 0L in
    let raw = now () in
    let found =
      if not (is_null raw) then Ok raw
      else
        Slots.find "receive" ~timeout:(time timeout) now (fun ns -> M.Slow.receive (M.raw it) ns)
    in
    M.keep it;
    match found with
    | Ok raw -> Some (M.with_gc_quickly ~acquired:false it.pool raw)
    | Error _ -> None

  let rec iter f it =
    match receive it with
    | Some buffer -> Buffer.with_ buffer f; iter f it
    | None -> iter f it
    | exception Error { code = EPIPE; _ } -> ()

  (* Of all subscriptions of a pool; it says which of them has the buffer. *)
  let receive_any ?timeout (pool : Pool.t) =
    M.made @@ fun () ->
    let raw = M.raw pool in
    let which = allocate D.xmem_subscription null in
    let found =
      Slots.find "receive_any" ~timeout:(time timeout)
        (fun () -> M.Fast.receive_any raw 0L which)
        (fun ns -> M.Slow.receive_any raw ns which)
    in
    M.keep pool;
    let which = raw_address_of_ptr !@which in
    let is_it (it : t) = raw_address_of_ptr (M.raw it) = which in
    match found with
    | Ok raw -> Some (M.with_gc_quickly ~acquired:false pool.pool raw, is_it)
    | Error _ -> None
end

(* ---- claims *)

module Claims = struct
  let set ?lasts it count = Calls.set_ref_count it count ~timeout:(time_or_0 lasts)
  let offer ?lasts it more = Calls.offer it more ~timeout:(time_or_0 lasts)
  let forget = Calls.forget
  let add = Calls.add_ref
  let drop = Calls.drop_ref
  let count = Calls.claims
  let void = Calls.void_claims
end

(* ---- metadata *)

module Metadata = struct
  let view = Calls.metadata_view
  let tensor ?(flags = 0) it = Calls.tensor_view it flags
  let image ?(flags = 0) it = Calls.image_view it flags

  let describe_tensor ?strides it dtype shape =
    Calls.describe_tensor ?strides it (Constants.Dtype.to_int dtype) (Array.length shape) shape

  let describe_image ?(stride = 0) it format ~width ~height =
    Calls.describe_image it (Constants.Image_format.to_int format) width height stride

  let image_bytes ?(stride = 0) format ~width ~height =
    Calls.image_bytes (Constants.Image_format.to_int format) width height stride

  let describe_source ?content_type ?producer ?timestamp_ns ?clock it =
    Calls.describe_source ?content_type ?producer ?timestamp_ns ?clock it

  let writable it = M.once "metadata_mut" is_null (fun () -> M.Fast.metadata_mut (M.raw it))

  let set_id it id =
    setf !@(writable it) D.xmem_metadata_id (Unsigned.UInt64.of_int id);
    M.keep it

  let set_user it user =
    let metadata = writable it in
    let place = getf !@metadata D.xmem_metadata_user in
    if Array.length user > CArray.length place then
      M.refuse Code.EINVAL "metadata_mut" "set_user: there are more numbers than places";
    Array.iteri (fun i word -> CArray.set place i (Unsigned.UInt64.of_int64 word)) user;
    M.keep it
end

(* ---- GPUs *)

module Cuda = struct
  let query = Calls.cuda_query
  let device_info = Calls.cuda_device_query
  let acquire = Pool.acquire_cuda

  external attach_cuda : nativeint -> nativeint -> int -> int -> int -> nativeint
    = "xmem_ml_attach_cuda"

  let attach ?(flags = 0) ?finished (pool : Pool.t) address bytes =
    let id = match finished with Some f -> Callbacks.add_once f | None -> 0 in
    M.made @@ fun () ->
    let raw = attach_cuda (raw_address_of_ptr (M.raw pool)) address bytes flags id in
    M.keep pool;
    if raw = 0n then begin
      Callbacks.remove id;
      M.fail "attach_cuda"
    end;
    M.with_gc M.Buffer ~parent:pool.pool (ptr_of_raw_address raw)

  let ptr = Calls.cuda_ptr
  let ptr_mut = Calls.cuda_ptr_mut
  let peer it ~device = Calls.cuda_peer it device
  let device = Calls.cuda_device
  let wait_on it ~stream = Calls.wait_on it ~stream
  let all_streams = Int64.to_nativeint Constants.all_streams
  let release_on it ~stream = Calls.release_on it ~stream
end

(* ---- the host *)

module Host = struct
  let query = Calls.host_query
  let pools () = listed Calls.pool_next (fun (one : Answers.Pool_entry.t) -> one.number) 0

  let limits pool =
    listed (Calls.limit_next pool) (fun (one : Answers.Limit_info.t) -> one.number + 1) 0
end
