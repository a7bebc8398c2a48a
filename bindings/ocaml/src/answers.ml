(* SPDX-License-Identifier: MIT *)
(** Records: the answers of C functions.

    Made by bindings/generate.py from the public headers. *)

(** One plane of an image. *)
module Plane = struct
  type t = {
    data : nativeint;
      (** the first row *)
    stride : int;
      (** bytes from one row to the next, at least row_bytes *)
    row_bytes : int;
      (** of pixels in each row *)
    rows : int;
  }
end

(** All fields but size, offset and order_* are the publisher's to use as it likes. The functions
    of tensor.h read the fields that xmem_describe_tensor and others like it have set. *)
module Metadata = struct
  type t = {
    id : int;
    storage : int;
      (** enum xmem_storage *)
    device : int;
      (** 0 for the CPU, else the device's number in the pool *)
    dtype : int;
      (** of an element: XMEM_DTYPE; 0: not described *)
    ndim : int;
      (** valid places of shape and strides, at most 8 *)
    shape : int array;
      (** elements *)
    strides : int array;
      (** bytes; DLPack counts elements: see xmem_tensor_view *)
    size : int;
      (** bytes of contents; xmem_publish sets it *)
    offset : int;
      (** bytes before them in the buffer; xmem_publish sets it *)
    content_type : string;
      (** NUL-terminated, for example 'video/x-raw,GRAY8' *)
    producer : string;
      (** NUL-terminated *)
    user : int64 array;
    timestamp_ns : int64;
      (** of the contents, by `clock`; 0: none *)
    clock : string;
      (** NUL-terminated: its name, such as 'CLOCK_TAI' *)
    image : int;
      (** enum xmem_image_format *)
    order_kind : int;
      (** enum xmem_order; xmem_publish sets these two *)
    order_value : int64;
      (** for the library; 0: the contents are complete *)
    image_width : int;
      (** pixels *)
    image_height : int;
    image_stride : int;
      (** bytes from one row of the first plane to the next *)
    column : int;
      (** enum xmem_column *)
    column_flags : int;
      (** XMEM_STRINGS_* *)
    column_rows : int;
    column_chars : int;
      (** bytes of all strings *)
  }
end

(** The state of a subscription. *)
module Subscription_info = struct
  type t = {
    publisher : int;
      (** of the last received buffer; XMEM_NOBODY: none yet *)
    follows : int;
      (** number of its publishers, ended ones too *)
    lost : int;
      (** publications that it has lost by being slow *)
    behind : int;
      (** publications that it has yet to receive *)
  }
end

(** The properties of a buffer. While it is being written, this client is the publisher. *)
module Buffer_info = struct
  type t = {
    flags : int;
      (** XMEM_BUFFER_*, also bits that later versions define *)
    slot : int;
      (** xmem_slot *)
    token : int64;
      (** xmem_token: 0 while it is being written *)
    sequence : int;
      (** per publisher, from 0; 0: unpublished or from xmem_get *)
    timestamp_ns : int64;
      (** CLOCK_MONOTONIC; 0: none, unpublished or from xmem_get *)
    bytes : int;
      (** xmem_size *)
    capacity : int;
      (** xmem_capacity *)
    publisher : int;
      (** client id; XMEM_NOBODY: it has ended long ago *)
    label : string;
      (** of the publisher, NUL-terminated; empty: not known *)
  }
end

(** Limbo: used buffers whose *owner*, the client that made them, has ended; and *overdue*
    buffers, which all subscribers have received, which some client still holds, and which the
    owner needs. *)
module Limbo = struct
  type t = {
    ended : int;
      (** buffers whose owner has ended *)
    overdue : int;
      (** buffers that their owner wants back *)
    bytes_ended : int;
    bytes_overdue : int;
    ended_age_ns : int64;
      (** since the first of these owners ended *)
    overdue_age_ns : int64;
      (** since an owner first needed one of them *)
  }
end

(** The driver, as this process finds it. *)
module Cuda_info = struct
  type t = {
    version : int;
      (** of CUDA or HIP: 1000 * major + 10 * minor *)
    devices : int;
      (** that this process sees; at least 1 *)
    file : string;
      (** the library, as it was found; cut if it is longer *)
    hip : int;
      (** 1: the driver is AMD's HIP; 0: it is NVIDIA's *)
  }
end

(** One device, as this process sees it. *)
module Cuda_device_info = struct
  type t = {
    device_id : int;
      (** its ordinal in this process *)
    can : int;
      (** XMEM_CUDA_CAN_* *)
    bytes : int;
      (** of its memory *)
    granularity : int;
      (** of exported memory; 0: it cannot be exported *)
    capability : int;
      (** compute capability: 10 * major + minor *)
    uuid : string;
      (** equal in all processes *)
    name : string;
      (** NUL-terminated *)
  }
end

(** The numbers of a pool now. Other clients continue meanwhile, so the numbers need not add up. *)
module Pool_info = struct
  type t = {
    slots : int;
      (** capacity *)
    attached : int;
      (** slots with a buffer *)
    free : int;
      (** of those: without contents *)
    writing : int;
      (** being written, or kept by their owner to write next *)
    live : int;
      (** with contents *)
    held : int;
      (** slots that at least one client holds *)
    limbo : int;
      (** attached slots whose owner has ended *)
    clients : int;
      (** living clients *)
    zombies : int;
      (** ended clients with publications yet to be received *)
    clients_max : int;
      (** capacity *)
    ring_entries : int;
      (** capacity of each writer's ring *)
    holds : int;
      (** references of all clients together *)
    bytes : int;
      (** of all attached slots *)
    bytes_files : int;
      (** of their files *)
    bytes_kept : int;
      (** of the files whose owner has ended *)
    bytes_mapped : int;
      (** of the files that this handle has mapped *)
    payloads : int;
      (** files and allocations of GPUs *)
    stale_handles : int;
      (** uses of dropped buffers by this process in any pool *)
    bytes_huge : int;
      (** of hugetlb files *)
    bytes_advised : int;
      (** of this handle's files with MADV_HUGEPAGE *)
    claims : int;
      (** of all slots *)
    claimed : int;
      (** slots with claims *)
    overdue : int;
      (** slots that are overdue: struct xmem_limbo *)
    bytes_limbo : int;
      (** of the slots in limbo *)
    limbo_age_ns : int64;
      (** since the first of their owners ended *)
    bytes_overdue : int;
      (** of the overdue slots *)
    overdue_age_ns : int64;
      (** since an owner first needed one of them *)
    bytes_cuda : int;
      (** of memory of GPUs *)
    bytes_closing : int;
      (** of that: without buffers, but still open in processes *)
  }
end

(** One client of a pool. It reports bytes_mapped and awaits_writer itself, so they may be wrong. *)
module Client_info = struct
  type t = {
    id : int;
    role : int;
      (** enum xmem_client_role *)
    alive : int;
      (** 1; 0: ended, with publications yet to be received *)
    pid : int;
      (** in this process's namespace, or xmemd's; 0: not in it *)
    uid : int;
      (** in this process's user namespace, or xmemd's *)
    slots : int;
      (** attached slots that it owns *)
    incarnation : int64;
      (** number of this use of the id, never reused *)
    wait_bound_ns : int64;
      (** of its options *)
    holds : int;
      (** references to all slots together *)
    label : string;
      (** NUL-terminated *)
    follows : int;
      (** publishers, also ended ones *)
    followers : int;
      (** clients that subscribe to it *)
    behind : int;
      (** publications that it has yet to receive *)
    bytes_mapped : int;
      (** of files that it has mapped *)
    bytes_kept : int;
      (** of ended owners' files that it uses *)
    limbo : int;
      (** slots that it holds, in limbo or overdue *)
    awaits_writer : int;
      (** threads that wait until a writer joins *)
    bytes_limbo : int;
      (** of the slots that `limbo` counts *)
    bytes_ended : int;
      (** part of them: those of ended owners *)
  }
end

(** One client that subscribes to a writer. *)
module Subscriber_info = struct
  type t = {
    client : int;
      (** its id, for xmem_pool_client_info *)
    waits : int;
      (** 1: the writer waits for it (XMEM_SUBSCRIBE_WAITS) *)
    incarnation : int64;
      (** number of this use of the id, never reused *)
    behind : int;
      (** publications of this writer that it has yet to receive *)
    demoted : int;
      (** 1: too slow, so not waited for until it receives again *)
    label : string;
      (** NUL-terminated *)
  }
end

(** One slot of a pool. *)
module Slot_info = struct
  type t = {
    slot : int;
    state : int;
      (** enum xmem_slot_use *)
    owner : int;
      (** client id, or XMEM_NOBODY *)
    device : int;
      (** number of the GPU in the pool; 0: the CPU *)
    token : int64;
      (** of the contents; 0: there are none *)
    bytes : int;
      (** of the whole buffer *)
    holds : int;
      (** references of all clients together *)
    position : int;
      (** 1 + sequence number of its last publication; 0: none *)
    payload : int;
      (** number of the file; 0: none *)
    payload_bytes : int;
      (** of the file *)
    claims : int;
      (** set aside (claims.h) *)
    upgrader : int;
      (** client that writes it in place, or XMEM_NOBODY *)
    overdue : int;
      (** 1: it is overdue: struct xmem_limbo *)
  }
end

(** A GPU in whose memory a pool has, or has had, buffers. *)
module Device_info = struct
  type t = {
    device : int;
      (** its number in the pool, as in metadata and slots *)
    uuid : string;
      (** as in struct xmem_cuda_device_info *)
    bytes : int;
      (** of the pool's memory there: whole allocations *)
    bytes_closing : int;
      (** of that: as in struct xmem_pool_info *)
  }
end

(** A description of the host. *)
module Host_info = struct
  type t = {
    abi : int;
      (** version of its protocol *)
    abi_oldest : int;
      (** the oldest that it still serves *)
    features : int;
      (** bits: features that clients of its pools must know *)
    max_slots : int;
      (** of a pool *)
    max_clients : int;
      (** of a pool *)
    max_ring_entries : int;
      (** of a pool *)
    group_slots : int;
      (** a writer gets slots in groups of so many *)
    max_pools : int;
    max_payloads : int;
      (** files with contents, of a pool; kernel: of a user *)
    pools : int;
      (** now *)
    backend : string;
      (** 'kernel' or 'daemon' *)
    version : string;
      (** of the host's program; NUL-terminated *)
  }
end

(** One limit of the host, and how much of it is in use. *)
module Limit_info = struct
  type t = {
    number : int;
      (** of the limit, never changes *)
    scope : int;
      (** enum xmem_limit_scope *)
    uid : int;
      (** of a user; else 0xffffffff *)
    in_bytes : int;
      (** 1: the next two are bytes; 0: numbers of things *)
    used : int;
    most : int;
      (** UINT64_MAX: there is no limit *)
    name : string;
      (** NUL-terminated; kernel: the module's parameter, if any *)
    what : string;
      (** the limited thing, in English *)
  }
end

(** One of the host's pools. *)
module Pool_entry = struct
  type t = {
    number : int;
      (** of the pool, never reused while the host runs *)
    name : string;
      (** up to 128 characters and NUL; empty: anonymous *)
    owner_uid : int;
      (** of its maker; UINT32_MAX: none in this user namespace *)
    slots : int;
      (** capacity *)
    clients_max : int;
      (** capacity *)
    clients : int;
      (** that live *)
    ring_entries : int;
      (** capacity of each writer's ring *)
    bytes : int;
      (** of all attached slots *)
    bytes_files : int;
      (** of their files *)
    bytes_kept : int;
      (** of the files whose owner has ended *)
    payloads : int;
      (** files *)
    mode : int;
      (** as in pool options *)
    gid : int;
      (** its group; UINT32_MAX as owner_uid *)
    roles : int;
      (** XMEM_MAY_* that the mode gives this process *)
  }
end

(** A column of strings has three parts, each at a multiple of 64 bytes in the contents: a bit for
    each row (0: the row is null); rows + 1 offsets of type int32_t; and UTF-8 characters. Row i
    has the characters from byte offset\[i\] to byte offset\[i + 1\]. *)
module Strings = struct
  type t = {
    flags : int;
      (** XMEM_STRINGS_* *)
    device_id : int;
      (** as in xmem_tensor *)
    data : nativeint;
      (** the first byte of the contents; NULL: only a plan *)
    rows : int;
      (** at most XMEM_STRINGS_MAX *)
    chars : int;
      (** bytes of all strings, at most XMEM_STRINGS_MAX *)
    bytes : int;
      (** of all parts, at least 64 *)
    validity_at : int;
      (** bytes from data to the bits; 0 without them *)
    offsets_at : int;
      (** bytes from data to the offsets *)
    chars_at : int;
      (** bytes from data to the characters, the last part *)
  }
end

(** A tensor that has been checked: all of its elements lie within the contents. *)
module Tensor = struct
  type t = {
    flags : int;
      (** XMEM_TENSOR_* *)
    dtype : int;
      (** XMEM_DTYPE_* *)
    ndim : int;
      (** valid places of the arrays, at most 8; the rest is 0 *)
    item_bytes : int;
      (** of one element with all lanes, at least 1 *)
    device_id : int;
      (** XMEM_CPU, or this process's number of the GPU *)
    data : nativeint;
      (** the first element, in xmem_data() or xmem_cuda_ptr() *)
    elements : int;
      (** the product of shape; 1 if ndim is 0 *)
    bytes : int;
      (** from the first element to the end of the last one *)
    shape : int array;
      (** none negative *)
    strides : int array;
      (** bytes; none negative *)
    element_strides : int array;
      (** with XMEM_TENSOR_DLPACK: strides / item_bytes *)
  }
end

(** An image that has been checked: all rows of its planes lie within the contents. *)
module Image = struct
  type t = {
    format : int;
      (** XMEM_IMAGE_* *)
    planes : int;
    width : int;
      (** pixels, 1 to XMEM_IMAGE_MAX_SIDE *)
    height : int;
    device_id : int;
      (** as in xmem_tensor *)
    plane : Plane.t array;
      (** \[planes\]; the others are 0 *)
  }
end
