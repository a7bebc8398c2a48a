(* SPDX-License-Identifier: MIT *)
(** Numbers of the C API: flags, enums, errors.

    Made by bindings/generate.py from the public headers. *)

(** Errors: the numbers of errno. *)
module Code = struct
  type t =
    | E2BIG
    | EACCES
    | EAGAIN
    | EBADF
    | EBADMSG
    | EBUSY
    | ECANCELED
    | ECHILD
    | EDQUOT
    | EEXIST
    | EFBIG
    | EINTR
    | EINVAL
    | EIO
    | EMEDIUMTYPE
    | EMFILE
    | ENAMETOOLONG
    | ENFILE
    | ENODATA
    | ENODEV
    | ENOENT
    | ENOEXEC
    | ENOMEM
    | ENOSPC
    | ENOTCONN
    | EOPNOTSUPP
    | EOVERFLOW
    | EOWNERDEAD
    | EPERM
    | EPIPE
    | EPROTONOSUPPORT
    | ERANGE
    | ESHUTDOWN
    | ESTALE
    | ETIMEDOUT
    | EUSERS
    | EXDEV
    | Other of int (** a number that has no name yet *)

  let to_int = function
    | E2BIG -> 7
    | EACCES -> 13
    | EAGAIN -> 11
    | EBADF -> 9
    | EBADMSG -> 74
    | EBUSY -> 16
    | ECANCELED -> 125
    | ECHILD -> 10
    | EDQUOT -> 122
    | EEXIST -> 17
    | EFBIG -> 27
    | EINTR -> 4
    | EINVAL -> 22
    | EIO -> 5
    | EMEDIUMTYPE -> 124
    | EMFILE -> 24
    | ENAMETOOLONG -> 36
    | ENFILE -> 23
    | ENODATA -> 61
    | ENODEV -> 19
    | ENOENT -> 2
    | ENOEXEC -> 8
    | ENOMEM -> 12
    | ENOSPC -> 28
    | ENOTCONN -> 107
    | EOPNOTSUPP -> 95
    | EOVERFLOW -> 75
    | EOWNERDEAD -> 130
    | EPERM -> 1
    | EPIPE -> 32
    | EPROTONOSUPPORT -> 93
    | ERANGE -> 34
    | ESHUTDOWN -> 108
    | ESTALE -> 116
    | ETIMEDOUT -> 110
    | EUSERS -> 87
    | EXDEV -> 18
    | Other number -> number

  let of_int = function
    | 7 -> E2BIG
    | 13 -> EACCES
    | 11 -> EAGAIN
    | 9 -> EBADF
    | 74 -> EBADMSG
    | 16 -> EBUSY
    | 125 -> ECANCELED
    | 10 -> ECHILD
    | 122 -> EDQUOT
    | 17 -> EEXIST
    | 27 -> EFBIG
    | 4 -> EINTR
    | 22 -> EINVAL
    | 5 -> EIO
    | 124 -> EMEDIUMTYPE
    | 24 -> EMFILE
    | 36 -> ENAMETOOLONG
    | 23 -> ENFILE
    | 61 -> ENODATA
    | 19 -> ENODEV
    | 2 -> ENOENT
    | 8 -> ENOEXEC
    | 12 -> ENOMEM
    | 28 -> ENOSPC
    | 107 -> ENOTCONN
    | 95 -> EOPNOTSUPP
    | 75 -> EOVERFLOW
    | 130 -> EOWNERDEAD
    | 1 -> EPERM
    | 32 -> EPIPE
    | 93 -> EPROTONOSUPPORT
    | 34 -> ERANGE
    | 108 -> ESHUTDOWN
    | 116 -> ESTALE
    | 110 -> ETIMEDOUT
    | 87 -> EUSERS
    | 18 -> EXDEV
    | number -> Other number
end

(** Flags: XMEM_OPEN_*. *)
module Open = struct

  (** this client is a writer from the beginning *)
  let writer = 0x1

  (** join only: ENOENT if there is no such pool *)
  let existing = 0x2

  (** create the pool: EEXIST if it is there *)
  let exclusive = 0x4

  (** this client never writes *)
  let reader = 0x8

  (** forked children keep a descriptor of the pool *)
  let inherit_ = 0x10

  (** if the pool is made, `gid` is its group *)
  let group = 0x20

  (** xmem_data can be written without xmem_get_mut *)
  let shares = 0x40

  (** join the pool of the descriptor `fd` *)
  let fd = 0x80
end

(** Flags: XMEM_MAY_*. *)
module May = struct

  (** as a reader *)
  let read = 0x2

  (** as a writer *)
  let write = 0x4
end

(** Flags: XMEM_SUBSCRIBE_*. *)
module Subscribe = struct

  (** publishers wait for it, up to wait_bound_ns *)
  let waits = 0x1

  (** only the client in `publisher` *)
  let publisher = 0x2

  (** do not wait for a publisher to come: ENOENT *)
  let nowait = 0x4

  (** it needs no publisher, and never ends in EPIPE *)
  let lasts = 0x8
end

(** Flags: XMEM_BUFFER_*. *)
module Buffer = struct

  (** xmem_get_mut can make it writable *)
  let shared = 0x1

  (** nobody can change its memory any more *)
  let constant = 0x2

  (** it is in huge pages (hugetlb) *)
  let huge = 0x4

  (** from xmem_attach_fd or xmem_attach_cuda *)
  let attached = 0x8

  (** a dma-buf: see xmem_attach_fd *)
  let dmabuf = 0x10

  (** in memory of a GPU: xmem/cuda.h *)
  let cuda = 0x20

  (** CUDA: the memory ends with its owner *)
  let mortal = 0x40

  (** CUDA: readers get it: XMEM_MEMORY_READERS *)
  let readers = 0x80

  (** xmem_get took a claim for this handle *)
  let claimed = 0x80000000
end

(** Flags: XMEM_PUBLISH_*. *)
module Publish = struct

  (** keep the handle, for reading *)
  let keep = 0x1

  (** to the subscriber `client` alone *)
  let client = 0x2
end

(** Flags: XMEM_MEMORY_*. *)
module Memory = struct

  (** in huge pages, where the system has some *)
  let huge = 0x1

  (** only this writer can ever write it *)
  let sealed = 0x2

  (** of the GPU `device_id` *)
  let cuda = 0x4

  (** readers get it too, not only writers *)
  let readers = 0x8

  (** shared by IPC handles, not by descriptors *)
  let legacy = 0x10
end

(** Flags: XMEM_CUDA_CAN_*. *)
module Cuda_can = struct

  (** memory as descriptors (cuMemCreate) *)
  let export = 0x1

  (** legacy handles of memory (cuMemAlloc) *)
  let ipc = 0x2

  (** memory pools as descriptors *)
  let export_pool = 0x4

  (** streams can write and await 64 bits *)
  let memops = 0x8

  (** it uses registered CPU memory *)
  let register = 0x10

  (** it uses read-only CPU memory too *)
  let register_read_only = 0x20

  (** it changes CPU memory atomically *)
  let host_atomics = 0x40

  (** MPS serves this process *)
  let mps = 0x80
end

(** Flags: XMEM_SERVE_*. *)
module Serve = struct

  (** servers with this flag share the calls *)
  let shared = 0x1
end

(** Flags: XMEM_STRINGS_*. *)
module Strings = struct

  (** rows may be null: there is a bit for each *)
  let validity = 0x1
end

(** Flags: XMEM_TENSOR_*. *)
module Tensor = struct

  (** In C order, without gaps: elements * item_bytes bytes in a row. *)
  let dense = 0x1

  (** Each number is aligned to its own size, as in C. A complex number counts as two numbers. *)
  let aligned = 0x2

  (** element_strides is valid *)
  let dlpack = 0x4
end

(** Where contents are. *)
module Storage = struct
  type t =
    | Cpu (** memory of the CPU *)
    | Cuda (** memory of an NVIDIA GPU *)
    | Other of int (** a number that has no name yet *)

  let to_int = function
    | Cpu -> 0
    | Cuda -> 1
    | Other number -> number

  let of_int = function
    | 0 -> Cpu
    | 1 -> Cuda
    | number -> Other number
end

(** The event for which a receiver waits before it uses contents of a GPU. *)
module Order = struct
  type t =
    | None_ (** nothing: they are complete *)
    | Ready (** a stream completes them: see xmem_wait_on *)
    | Other of int (** a number that has no name yet *)

  let to_int = function
    | None_ -> 0
    | Ready -> 1
    | Other number -> number

  let of_int = function
    | 0 -> None_
    | 1 -> Ready
    | number -> Other number
end

(** The numbers are DLPack's. *)
module Dtype_code = struct
  type t =
    | Int
    | Uint
    | Float
    | Opaque (** a handle of one process: refused here *)
    | Bfloat
    | Complex
    | Bool
    | Float8_e3m4
    | Float8_e4m3
    | Float8_e4m3b11fnuz
    | Float8_e4m3fn
    | Float8_e4m3fnuz
    | Float8_e5m2
    | Float8_e5m2fnuz
    | Float8_e8m0fnu
    | Float6_e2m3fn
    | Float6_e3m2fn
    | Float4_e2m1fn
    | Other of int (** a number that has no name yet *)

  let to_int = function
    | Int -> 0
    | Uint -> 1
    | Float -> 2
    | Opaque -> 3
    | Bfloat -> 4
    | Complex -> 5
    | Bool -> 6
    | Float8_e3m4 -> 7
    | Float8_e4m3 -> 8
    | Float8_e4m3b11fnuz -> 9
    | Float8_e4m3fn -> 10
    | Float8_e4m3fnuz -> 11
    | Float8_e5m2 -> 12
    | Float8_e5m2fnuz -> 13
    | Float8_e8m0fnu -> 14
    | Float6_e2m3fn -> 15
    | Float6_e3m2fn -> 16
    | Float4_e2m1fn -> 17
    | Other number -> number

  let of_int = function
    | 0 -> Int
    | 1 -> Uint
    | 2 -> Float
    | 3 -> Opaque
    | 4 -> Bfloat
    | 5 -> Complex
    | 6 -> Bool
    | 7 -> Float8_e3m4
    | 8 -> Float8_e4m3
    | 9 -> Float8_e4m3b11fnuz
    | 10 -> Float8_e4m3fn
    | 11 -> Float8_e4m3fnuz
    | 12 -> Float8_e5m2
    | 13 -> Float8_e5m2fnuz
    | 14 -> Float8_e8m0fnu
    | 15 -> Float6_e2m3fn
    | 16 -> Float6_e3m2fn
    | 17 -> Float4_e2m1fn
    | number -> Other number
end

(** The types that most programs need; XMEM_DTYPE makes all others. *)
module Dtype = struct
  type t =
    | None_
    | Int8
    | Int16
    | Int32
    | Int64
    | Uint8
    | Uint16
    | Uint32
    | Uint64
    | Float16
    | Float32
    | Float64
    | Bfloat16
    | Complex64
    | Complex128
    | Bool
    | Float8_e4m3fn
    | Float8_e5m2
    | Float4_e2m1fn_x2
    | Other of int (** a number that has no name yet *)

  let to_int = function
    | None_ -> 0
    | Int8 -> 67584
    | Int16 -> 69632
    | Int32 -> 73728
    | Int64 -> 81920
    | Uint8 -> 67585
    | Uint16 -> 69633
    | Uint32 -> 73729
    | Uint64 -> 81921
    | Float16 -> 69634
    | Float32 -> 73730
    | Float64 -> 81922
    | Bfloat16 -> 69636
    | Complex64 -> 81925
    | Complex128 -> 98309
    | Bool -> 67590
    | Float8_e4m3fn -> 67594
    | Float8_e5m2 -> 67596
    | Float4_e2m1fn_x2 -> 132113
    | Other number -> number

  let of_int = function
    | 0 -> None_
    | 67584 -> Int8
    | 69632 -> Int16
    | 73728 -> Int32
    | 81920 -> Int64
    | 67585 -> Uint8
    | 69633 -> Uint16
    | 73729 -> Uint32
    | 81921 -> Uint64
    | 69634 -> Float16
    | 73730 -> Float32
    | 81922 -> Float64
    | 69636 -> Bfloat16
    | 81925 -> Complex64
    | 98309 -> Complex128
    | 67590 -> Bool
    | 67594 -> Float8_e4m3fn
    | 67596 -> Float8_e5m2
    | 132113 -> Float4_e2m1fn_x2
    | number -> Other number
end

(** How the pixels of an image lie in memory, the first byte first. Numbers of 16 and 32 bits have
    the byte order of the machine (ffmpeg's names then end in 'le' or 'be'). Planes follow each
    other without a gap. Chroma of half the width or height is rounded up. The comments have a
    format's names in ffmpeg (pix_fmt), V4L2 and DRM (fourcc, always little endian); '-': none. *)
module Image_format = struct
  type t =
    | None_ (** not an image *)
    | Gray8 (** gray, GREY, R8 *)
    | Gray16 (** gray16le, Y16, R16 *)
    | Rgb8 (** R, G, B: rgb24, RGB3, BG24 *)
    | Bgr8 (** bgr24, BGR3, RG24 *)
    | Rgba8 (** rgba, AB24, AB24 *)
    | Bgra8 (** bgra, AR24, AR24 *)
    | Yuyv (** Y0, U, Y1, V for two pixels: yuyv422, YUYV, YUYV *)
    | Uyvy (** U, Y0, V, Y1: uyvy422, UYVY, UYVY *)
    | I420 (** planes Y, U, V: yuv420p, YU12, YU12 *)
    | Nv12 (** planes Y, and U with V by turns: nv12, NV12, NV12 *)
    | Nv21 (** V before U: nv21, NV21, NV21 *)
    | Nv16 (** as NV12, chroma in each row: nv16, NV16, NV16 *)
    | P010 (** as NV12, 10 high bits of 16: p010le, P010, P010 *)
    | P016 (** as NV12, 16 bits: p016le, -, P016 *)
    | Yv12 (** planes Y, V, U: yuv420p but V first, YV12, YV12 *)
    | I422 (** as I420, chroma in each row: yuv422p, 422P, YU16 *)
    | I444 (** as I420, chroma of each pixel: yuv444p, YM24, YU24 *)
    | Bayer_bggr8 (** a number for each pixel: bayer_bggr8, BA81, - *)
    | Bayer_gbrg8 (** bayer_gbrg8, GBRG, - *)
    | Bayer_grbg8 (** bayer_grbg8, GRBG, - *)
    | Bayer_rggb8 (** bayer_rggb8, RGGB, - *)
    | Bayer_bggr16 (** bayer_bggr16le, BYR2, - *)
    | Bayer_gbrg16 (** bayer_gbrg16le, GB16, - *)
    | Bayer_grbg16 (** bayer_grbg16le, GR16, - *)
    | Bayer_rggb16 (** bayer_rggb16le, RG16, - *)
    | Rgb48 (** 3 numbers of 16 bits: rgb48le, -, - *)
    | Rgba64 (** 4 numbers of 16 bits: rgba64le, -, AB48 *)
    | Rgbf32 (** 3 floats: rgbf32le, -, - *)
    | Gbrpf32 (** planes G, B, R of floats: gbrpf32le, -, - *)
    | Other of int (** a number that has no name yet *)

  let to_int = function
    | None_ -> 0
    | Gray8 -> 1
    | Gray16 -> 2
    | Rgb8 -> 3
    | Bgr8 -> 4
    | Rgba8 -> 5
    | Bgra8 -> 6
    | Yuyv -> 7
    | Uyvy -> 8
    | I420 -> 9
    | Nv12 -> 10
    | Nv21 -> 11
    | Nv16 -> 12
    | P010 -> 13
    | P016 -> 14
    | Yv12 -> 15
    | I422 -> 16
    | I444 -> 17
    | Bayer_bggr8 -> 18
    | Bayer_gbrg8 -> 19
    | Bayer_grbg8 -> 20
    | Bayer_rggb8 -> 21
    | Bayer_bggr16 -> 22
    | Bayer_gbrg16 -> 23
    | Bayer_grbg16 -> 24
    | Bayer_rggb16 -> 25
    | Rgb48 -> 26
    | Rgba64 -> 27
    | Rgbf32 -> 28
    | Gbrpf32 -> 29
    | Other number -> number

  let of_int = function
    | 0 -> None_
    | 1 -> Gray8
    | 2 -> Gray16
    | 3 -> Rgb8
    | 4 -> Bgr8
    | 5 -> Rgba8
    | 6 -> Bgra8
    | 7 -> Yuyv
    | 8 -> Uyvy
    | 9 -> I420
    | 10 -> Nv12
    | 11 -> Nv21
    | 12 -> Nv16
    | 13 -> P010
    | 14 -> P016
    | 15 -> Yv12
    | 16 -> I422
    | 17 -> I444
    | 18 -> Bayer_bggr8
    | 19 -> Bayer_gbrg8
    | 20 -> Bayer_grbg8
    | 21 -> Bayer_rggb8
    | 22 -> Bayer_bggr16
    | 23 -> Bayer_gbrg16
    | 24 -> Bayer_grbg16
    | 25 -> Bayer_rggb16
    | 26 -> Rgb48
    | 27 -> Rgba64
    | 28 -> Rgbf32
    | 29 -> Gbrpf32
    | number -> Other number
end

(** A column of a table, in one buffer: see xmem_describe_strings. *)
module Column = struct
  type t =
    | None_ (** not a column *)
    | Strings (** UTF-8, with offsets of 32 bits: Arrow's utf8 *)
    | Other of int (** a number that has no name yet *)

  let to_int = function
    | None_ -> 0
    | Strings -> 1
    | Other number -> number

  let of_int = function
    | 0 -> None_
    | 1 -> Strings
    | number -> Other number
end

(** What C calls enum xmem_client_role. *)
module Client_role = struct
  type t =
    | Reader
    | Writer
    | Other of int (** a number that has no name yet *)

  let to_int = function
    | Reader -> 1
    | Writer -> 2
    | Other number -> number

  let of_int = function
    | 1 -> Reader
    | 2 -> Writer
    | number -> Other number
end

(** The use of a slot. *)
module Slot_use = struct
  type t =
    | None_ (** it has no buffer *)
    | Free (** a buffer without contents *)
    | Writing (** being written, or kept by its owner to write next *)
    | Live (** it has contents *)
    | Limbo (** its owner has ended; it goes when no client holds it *)
    | Other of int (** a number that has no name yet *)

  let to_int = function
    | None_ -> 0
    | Free -> 1
    | Writing -> 2
    | Live -> 3
    | Limbo -> 4
    | Other number -> number

  let of_int = function
    | 0 -> None_
    | 1 -> Free
    | 2 -> Writing
    | 3 -> Live
    | 4 -> Limbo
    | number -> Other number
end

(** The owner of a limit. *)
module Limit_scope = struct
  type t =
    | User (** of one user, in all pools *)
    | Host (** of all users together *)
    | Pool
    | Client
    | Other of int (** a number that has no name yet *)

  let to_int = function
    | User -> 0
    | Host -> 1
    | Pool -> 2
    | Client -> 3
    | Other number -> number

  let of_int = function
    | 0 -> User
    | 1 -> Host
    | 2 -> Pool
    | 3 -> Client
    | number -> Other number
end

let max_dimensions = 8

let version_major = 0

let version_minor = 5

let version_patch = 0

let forever = 9223372036854775807L

(** the mode also limits users with a descriptor *)
let mode_strict = 512

(** demand_bytes: xmem_acquire makes no buffers *)
let no_demand = (-1L)

(** in place of the number of a GPU: the CPU's memory *)
let cpu = -1

let keep_all = (-1L)

let gid_same = 4294967295

(** end all clients but those of this process *)
let drain_evicts = 1

(** in place of a client id: no client *)
let nobody = 4294967295

(** further responses to this request follow *)
let respond_more = 1

(** For xmem_release_on alone: all streams of the primary context of the buffer's GPU. *)
let all_streams = (-1L)

(** pixels *)
let image_max_side = 1048576

(** rows, and bytes of all strings *)
let strings_max = 2147483647

(** accept contents on a GPU: see device_id *)
let view_cuda = 1

let image_max_planes = 4

(** The table that this header describes, for xmem_get_api. *)
let api_version = 5

(** The types of elements that have a name: name, number, bytes of one. *)
let dtypes = [
  "int8", 67584, 1;
  "int16", 69632, 2;
  "int32", 73728, 4;
  "int64", 81920, 8;
  "uint8", 67585, 1;
  "uint16", 69633, 2;
  "uint32", 73729, 4;
  "uint64", 81921, 8;
  "float16", 69634, 2;
  "float32", 73730, 4;
  "float64", 81922, 8;
  "bfloat16", 69636, 2;
  "complex64", 81925, 8;
  "complex128", 98309, 16;
  "bool", 67590, 1;
  "float8_e4m3fn", 67594, 1;
  "float8_e5m2", 67596, 1;
  "float4_e2m1fn_x2", 132113, 1;
  "float8_e3m4", 67591, 1;
  "float8_e4m3", 67592, 1;
  "float8_e4m3b11fnuz", 67593, 1;
  "float8_e4m3fnuz", 67595, 1;
  "float8_e5m2fnuz", 67597, 1;
  "float8_e8m0fnu", 67598, 1;
]
