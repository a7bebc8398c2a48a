(* SPDX-License-Identifier: MIT *)
open Ctypes
module M = Managed
module D = M.D
module Constants = Constants
module Answers = Answers
module Code = Constants.Code

type error = Error.t = { code : Code.t; call : string; message : string }

exception Error = Error.Error

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

let with_ drop it f = Fun.protect ~finally:(fun () -> drop it) (fun () -> f it)

(* All answers of a function that is asked for the one after another. *)
let rec listed ask next after =
  match ask after with
  | one -> one :: listed ask next (next one)
  | exception Error { code = ENOENT; _ } -> []

(* ---- buffers *)

let found call ~timeout parent now wait =
  Option.map (M.with_gc M.Buffer ~parent) (Slots.find call ~timeout now wait)

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

  (* The views of a program that no longer needs them end with a full collection. *)
  let get_mut it =
    if M.views it > 0 then Slots.full ();
    if M.views it > 0 then
      M.refuse Code.EBUSY "get_mut" "get_mut: a Bigarray still shows these contents";
    Calls.get_mut it

  (* ---- publishing *)

  let no_options = from_voidp D.xmem_publish_options null
  let no_token = from_voidp uint64_t null

  let options flags client timestamp_ns offset length timeout stream =
    let o = make D.xmem_publish_options in
    let set field convert value = Convert.set o field convert value in
    setf o D.xmem_publish_options_size (Unsigned.Size_t.of_int (sizeof D.xmem_publish_options));
    set D.xmem_publish_options_flags Unsigned.UInt32.of_int (Some flags);
    set D.xmem_publish_options_client Unsigned.UInt32.of_int client;
    set D.xmem_publish_options_timestamp_ns Unsigned.UInt64.of_int timestamp_ns;
    set D.xmem_publish_options_offset Unsigned.UInt64.of_int offset;
    set D.xmem_publish_options_length Unsigned.UInt64.of_int length;
    set D.xmem_publish_options_timeout_ns nanoseconds timeout;
    set D.xmem_publish_options_stream ptr_of_raw_address stream;
    o

  (* Views keep their hold, so the handle is kept for them. *)
  let publish_with it ~keep options token =
    let failed = M.negative in
    (match options with
    | None ->
      ignore (M.again "publish" failed (fun () -> M.Slow.publish (M.raw it) no_options token))
    | Some o ->
      ignore (M.again "publish" failed (fun () -> M.Slow.publish (M.raw it) (addr o) token));
      M.keep o);
    if M.views it > 0 then M.release it else if not keep then M.gone it

  let publish_to token ?(keep = false) ?client ?timestamp_ns ?offset ?length ?timeout ?stream it =
    let flags =
      (if keep || M.views it > 0 then Constants.Publish.keep else 0)
      lor if client = None then 0 else Constants.Publish.client
    in
    if flags = 0 && timestamp_ns = None && offset = None && length = None && timeout = None
       && stream = None
    then publish_with it ~keep None token
    else
      publish_with it ~keep
        (Some (options flags client timestamp_ns offset length timeout stream))
        token

  let publish ?keep ?client ?timestamp_ns ?offset ?length ?timeout ?stream it =
    publish_to no_token ?keep ?client ?timestamp_ns ?offset ?length ?timeout ?stream it

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

  let show ?(private_bytes = 0) (it : t) address kind shape =
    let made = view it.block address kind shape private_bytes in
    M.keep it;
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

  let copy_from_array ?(stream = 0n) ?(offset = 0) array it =
    Calls.copy_from_host it offset (address_of array) (Bigarray.Genarray.size_in_bytes array)
      ~stream;
    M.keep array

  let copy_to_array ?(stream = 0n) ?(offset = 0) array it =
    Calls.copy_to_host (address_of array) it offset (Bigarray.Genarray.size_in_bytes array) ~stream;
    M.keep array
end

(* ---- pools *)

module Pool = struct
  type t = M.pool

  let open_ ?(writer = false) ?(flags = 0) ?slots ?clients ?ring_entries ?wait_bound ?label
      ?demand_bytes ?cache_bytes ?cache_time ?memory ?keep ?mode ?gid ?limbo_bytes ?fd name =
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
      ?memory ?keep ?mode ?gid ?limbo_bytes
      ?fd:(Option.map number fd)
      (if name = "" then None else Some name)

  let reopen = Calls.pool_reopen
  let close : t -> unit = M.release
  let with_ it f = with_ close it f
  let cancel = Calls.cancel
  let backend = Calls.pool_backend
  let client = Calls.pool_client
  let fd it = descriptor (Calls.pool_fd it)
  let narrow_fd fd ~roles = descriptor (Calls.pool_fd_narrow (number fd) roles)
  let poll_fd it = descriptor (Calls.pool_poll_fd it)

  let preallocate ?flags ?device it ~bytes ~count =
    Calls.preallocate ?flags ?device_id:device it bytes count

  let acquire_by call ?timeout (it : t) now wait =
    match found call ~timeout:(time timeout) it.pool now wait with
    | Some buffer -> M.keep it; buffer
    | None -> M.fail call

  let acquire ?timeout it bytes =
    let bytes = Unsigned.Size_t.of_int bytes and raw = M.raw it in
    acquire_by "acquire" ?timeout it
      (fun () -> M.Fast.acquire raw bytes 0L)
      (fun ns -> M.Slow.acquire raw bytes ns)

  let acquire_cuda ?timeout ~device it bytes =
    let bytes = Unsigned.Size_t.of_int bytes and raw = M.raw it in
    acquire_by "acquire_cuda" ?timeout it
      (fun () -> M.Fast.acquire_cuda raw bytes device 0L)
      (fun ns -> M.Slow.acquire_cuda raw bytes device ns)

  let attach_fd ?(offset = 0) ?(flags = 0) it fd ~length =
    Calls.attach_fd it (number fd) offset length flags

  let retract = Calls.retract
  let collect ?(keep = 0) it = Calls.collect it keep
  let stat = Calls.pool_stat
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
    let raw = M.raw it in
    let buffer =
      found "receive" ~timeout:(time timeout) it.pool
        (fun () -> M.Fast.receive raw 0L)
        (fun ns -> M.Slow.receive raw ns)
    in
    M.keep it;
    buffer

  let rec iter f it =
    match receive it with
    | Some buffer -> Buffer.with_ buffer f; iter f it
    | None -> iter f it
    | exception Error { code = EPIPE; _ } -> ()

  (* Of all subscriptions of a pool; it says which of them has the buffer. *)
  let receive_any ?timeout (pool : Pool.t) =
    let raw = M.raw pool in
    let which = allocate D.xmem_subscription null in
    let buffer =
      found "receive_any" ~timeout:(time timeout) pool.pool
        (fun () -> M.Fast.receive_any raw 0L which)
        (fun ns -> M.Slow.receive_any raw ns which)
    in
    M.keep pool;
    let which = raw_address_of_ptr !@which in
    Option.map (fun buffer -> (buffer, fun (it : t) -> raw_address_of_ptr (M.raw it) = which)) buffer
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

  let set_user it user =
    let metadata = M.once "metadata_mut" is_null (fun () -> M.Fast.metadata_mut (M.raw it)) in
    let place = getf !@metadata D.xmem_metadata_user in
    Array.iteri (fun i word -> CArray.set place i (Unsigned.UInt64.of_int64 word)) user;
    M.keep it
end

(* ---- GPUs *)

module Cuda = struct
  let query = Calls.cuda_query
  let device_info = Calls.cuda_device_query
  let acquire = Pool.acquire_cuda
  let ptr = Calls.cuda_ptr
  let ptr_mut = Calls.cuda_ptr_mut
  let peer it ~device = Calls.cuda_peer it device
  let device = Calls.cuda_device
  let wait_on it ~stream = Calls.wait_on it ~stream
  let release_on it ~stream = Calls.release_on it ~stream
end

(* ---- the host *)

module Host = struct
  let query = Calls.host_query
  let pools () = listed Calls.pool_next (fun (one : Answers.Pool_entry.t) -> one.number) 0

  let limits pool =
    listed (Calls.limit_next pool) (fun (one : Answers.Limit_info.t) -> one.number + 1) 0
end
