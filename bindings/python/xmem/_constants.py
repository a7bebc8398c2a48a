# SPDX-License-Identifier: MIT
"""Numbers of the C API: flags, enums, constants, types of elements, errors.

Made by bindings/generate.py from the public headers.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple


class OpenFlags(enum.IntFlag):
    """Flags: XMEM_OPEN_*."""

    #: this client is a writer from the beginning
    WRITER = 0x1
    #: join only: ENOENT if there is no such pool
    EXISTING = 0x2
    #: create the pool: EEXIST if it is there
    EXCLUSIVE = 0x4
    #: this client never writes
    READER = 0x8
    #: forked children keep a descriptor of the pool
    INHERIT = 0x10
    #: if the pool is made, `gid` is its group
    GROUP = 0x20
    #: xmem_data can be written without xmem_get_mut
    SHARES = 0x40
    #: join the pool of the descriptor `fd`
    FD = 0x80


class MayFlags(enum.IntFlag):
    """Flags: XMEM_MAY_*."""

    #: as a reader
    READ = 0x2
    #: as a writer
    WRITE = 0x4


class SubscribeFlags(enum.IntFlag):
    """Flags: XMEM_SUBSCRIBE_*."""

    #: publishers wait for it, up to wait_bound_ns
    WAITS = 0x1
    #: only the client in `publisher`
    PUBLISHER = 0x2
    #: do not wait for a publisher to come: ENOENT
    NOWAIT = 0x4
    #: it needs no publisher, and never ends in EPIPE
    LASTS = 0x8


class BufferFlags(enum.IntFlag):
    """Flags: XMEM_BUFFER_*."""

    #: xmem_get_mut can make it writable
    SHARED = 0x1
    #: nobody can change its memory any more
    CONSTANT = 0x2
    #: it is in huge pages (hugetlb)
    HUGE = 0x4
    #: from xmem_attach_fd or xmem_attach_cuda
    ATTACHED = 0x8
    #: a dma-buf: see xmem_attach_fd
    DMABUF = 0x10
    #: in memory of a GPU: xmem/cuda.h
    CUDA = 0x20
    #: CUDA: the memory ends with its owner
    MORTAL = 0x40
    #: CUDA: readers get it: XMEM_MEMORY_READERS
    READERS = 0x80
    #: xmem_get took a claim for this handle
    CLAIMED = 0x80000000


class PublishFlags(enum.IntFlag):
    """Flags: XMEM_PUBLISH_*."""

    #: keep the handle, for reading
    KEEP = 0x1
    #: to the subscriber `client` alone
    CLIENT = 0x2


class MemoryFlags(enum.IntFlag):
    """Flags: XMEM_MEMORY_*."""

    #: in huge pages, where the system has some
    HUGE = 0x1
    #: only this writer can ever write it
    SEALED = 0x2
    #: of the GPU `device_id`
    CUDA = 0x4
    #: readers get it too, not only writers
    READERS = 0x8
    #: shared by IPC handles, not by descriptors
    LEGACY = 0x10


class CudaCanFlags(enum.IntFlag):
    """Flags: XMEM_CUDA_CAN_*."""

    #: memory as descriptors (cuMemCreate)
    EXPORT = 0x1
    #: legacy handles of memory (cuMemAlloc)
    IPC = 0x2
    #: memory pools as descriptors
    EXPORT_POOL = 0x4
    #: streams can write and await 64 bits
    MEMOPS = 0x8
    #: it uses registered CPU memory
    REGISTER = 0x10
    #: it uses read-only CPU memory too
    REGISTER_READ_ONLY = 0x20
    #: it changes CPU memory atomically
    HOST_ATOMICS = 0x40
    #: MPS serves this process
    MPS = 0x80


class ServeFlags(enum.IntFlag):
    """Flags: XMEM_SERVE_*."""

    #: servers with this flag share the calls
    SHARED = 0x1


class StringsFlags(enum.IntFlag):
    """Flags: XMEM_STRINGS_*."""

    #: rows may be null: there is a bit for each
    VALIDITY = 0x1


class TensorFlags(enum.IntFlag):
    """Flags: XMEM_TENSOR_*."""

    #: In C order, without gaps: elements * item_bytes bytes in a row.
    DENSE = 0x1
    #: Each number is aligned to its own size, as in C. A complex number counts as two numbers.
    ALIGNED = 0x2
    #: element_strides is valid
    DLPACK = 0x4


class Storage(enum.IntEnum):
    """Where contents are."""

    #: memory of the CPU
    CPU = 0
    #: memory of an NVIDIA GPU
    CUDA = 1


class Order(enum.IntEnum):
    """The event for which a receiver waits before it uses contents of a GPU."""

    #: nothing: they are complete
    NONE = 0
    #: a stream completes them: see xmem_wait_on
    READY = 1


class DtypeCode(enum.IntEnum):
    """The numbers are DLPack's."""

    INT = 0
    UINT = 1
    FLOAT = 2
    #: a handle of one process: refused here
    OPAQUE = 3
    BFLOAT = 4
    COMPLEX = 5
    BOOL = 6
    FLOAT8_E3M4 = 7
    FLOAT8_E4M3 = 8
    FLOAT8_E4M3B11FNUZ = 9
    FLOAT8_E4M3FN = 10
    FLOAT8_E4M3FNUZ = 11
    FLOAT8_E5M2 = 12
    FLOAT8_E5M2FNUZ = 13
    FLOAT8_E8M0FNU = 14
    FLOAT6_E2M3FN = 15
    FLOAT6_E3M2FN = 16
    FLOAT4_E2M1FN = 17


class Dtype(enum.IntEnum):
    """The types that most programs need; XMEM_DTYPE makes all others."""

    NONE = 0
    INT8 = 67584
    INT16 = 69632
    INT32 = 73728
    INT64 = 81920
    UINT8 = 67585
    UINT16 = 69633
    UINT32 = 73729
    UINT64 = 81921
    FLOAT16 = 69634
    FLOAT32 = 73730
    FLOAT64 = 81922
    BFLOAT16 = 69636
    COMPLEX64 = 81925
    COMPLEX128 = 98309
    BOOL = 67590
    FLOAT8_E4M3FN = 67594
    FLOAT8_E5M2 = 67596
    FLOAT4_E2M1FN_X2 = 132113


class ImageFormat(enum.IntEnum):
    """How the pixels of an image lie in memory, the first byte first. Numbers of 16 and 32 bits
    have the byte order of the machine (ffmpeg's names then end in "le" or "be"). Planes follow
    each other without a gap. Chroma of half the width or height is rounded up. The comments
    have a format's names in ffmpeg (pix_fmt), V4L2 and DRM (fourcc, always little endian); "-":
    none.
    """

    #: not an image
    NONE = 0
    #: gray, GREY, R8
    GRAY8 = 1
    #: gray16le, Y16, R16
    GRAY16 = 2
    #: R, G, B: rgb24, RGB3, BG24
    RGB8 = 3
    #: bgr24, BGR3, RG24
    BGR8 = 4
    #: rgba, AB24, AB24
    RGBA8 = 5
    #: bgra, AR24, AR24
    BGRA8 = 6
    #: Y0, U, Y1, V for two pixels: yuyv422, YUYV, YUYV
    YUYV = 7
    #: U, Y0, V, Y1: uyvy422, UYVY, UYVY
    UYVY = 8
    #: planes Y, U, V: yuv420p, YU12, YU12
    I420 = 9
    #: planes Y, and U with V by turns: nv12, NV12, NV12
    NV12 = 10
    #: V before U: nv21, NV21, NV21
    NV21 = 11
    #: as NV12, chroma in each row: nv16, NV16, NV16
    NV16 = 12
    #: as NV12, 10 high bits of 16: p010le, P010, P010
    P010 = 13
    #: as NV12, 16 bits: p016le, -, P016
    P016 = 14
    #: planes Y, V, U: yuv420p but V first, YV12, YV12
    YV12 = 15
    #: as I420, chroma in each row: yuv422p, 422P, YU16
    I422 = 16
    #: as I420, chroma of each pixel: yuv444p, YM24, YU24
    I444 = 17
    #: a number for each pixel: bayer_bggr8, BA81, -
    BAYER_BGGR8 = 18
    #: bayer_gbrg8, GBRG, -
    BAYER_GBRG8 = 19
    #: bayer_grbg8, GRBG, -
    BAYER_GRBG8 = 20
    #: bayer_rggb8, RGGB, -
    BAYER_RGGB8 = 21
    #: bayer_bggr16le, BYR2, -
    BAYER_BGGR16 = 22
    #: bayer_gbrg16le, GB16, -
    BAYER_GBRG16 = 23
    #: bayer_grbg16le, GR16, -
    BAYER_GRBG16 = 24
    #: bayer_rggb16le, RG16, -
    BAYER_RGGB16 = 25
    #: 3 numbers of 16 bits: rgb48le, -, -
    RGB48 = 26
    #: 4 numbers of 16 bits: rgba64le, -, AB48
    RGBA64 = 27
    #: 3 floats: rgbf32le, -, -
    RGBF32 = 28
    #: planes G, B, R of floats: gbrpf32le, -, -
    GBRPF32 = 29


class Column(enum.IntEnum):
    """A column of a table, in one buffer: see xmem_describe_strings."""

    #: not a column
    NONE = 0
    #: UTF-8, with offsets of 32 bits: Arrow's utf8
    STRINGS = 1


class ClientRole(enum.IntEnum):
    """What C calls enum xmem_client_role."""

    READER = 1
    WRITER = 2


class SlotUse(enum.IntEnum):
    """The use of a slot."""

    #: it has no buffer
    NONE = 0
    #: a buffer without contents
    FREE = 1
    #: being written, or kept by its owner to write next
    WRITING = 2
    #: it has contents
    LIVE = 3
    #: its owner has ended; it goes when no client holds it
    LIMBO = 4


class LimitScope(enum.IntEnum):
    """The owner of a limit."""

    #: of one user, in all pools
    USER = 0
    #: of all users together
    HOST = 1
    POOL = 2
    CLIENT = 3


MAX_DIMENSIONS: Final = 8
VERSION_MAJOR: Final = 0
VERSION_MINOR: Final = 5
VERSION_PATCH: Final = 0
FOREVER: Final = 9223372036854775807
#: the mode also limits users with a descriptor
MODE_STRICT: Final = 512
#: demand_bytes: xmem_acquire makes no buffers
NO_DEMAND: Final = 18446744073709551615
#: in place of the number of a GPU: the CPU's memory
CPU: Final = -1
KEEP_ALL: Final = 18446744073709551615
GID_SAME: Final = 4294967295
#: end all clients but those of this process
DRAIN_EVICTS: Final = 1
#: in place of a client id: no client
NOBODY: Final = 4294967295
#: further responses to this request follow
RESPOND_MORE: Final = 1
#: For xmem_release_on alone: all streams of the primary context of the buffer's GPU.
ALL_STREAMS: Final = 18446744073709551615
#: pixels
IMAGE_MAX_SIDE: Final = 1048576
#: rows, and bytes of all strings
STRINGS_MAX: Final = 2147483647
#: accept contents on a GPU: see device_id
VIEW_CUDA: Final = 1
IMAGE_MAX_PLANES: Final = 4
#: The table that this header describes, for xmem_get_api.
API_VERSION: Final = 5
#: the first number that has no meaning yet
DTYPE_CODES: Final = 18
#: the first number that has no meaning yet
IMAGE_FORMATS: Final = 30


class DType(NamedTuple):
    """The type of an element."""

    #: numpy's and torch's name of it
    name: str
    #: what metadata has: code | bits << 8 | lanes << 16
    number: int
    #: DLPack's number of what the bits mean (DtypeCode)
    code: int
    #: of one number
    bits: int
    #: numbers in one element
    lanes: int
    #: of one element, all lanes
    nbytes: int
    #: of the buffer protocol, as numpy writes it; None: it has none
    format: str | None
    #: what numpy alone calls it; None: numpy has no such type
    numpy: str | None


#: The types of elements that have a name; many more can be made of a code, bits and lanes.
DTYPES: Final[dict[str, DType]] = {
    "int8": DType("int8", 67584, 0, 8, 1, 1, "b", "int8"),
    "int16": DType("int16", 69632, 0, 16, 1, 2, "h", "int16"),
    "int32": DType("int32", 73728, 0, 32, 1, 4, "i", "int32"),
    "int64": DType("int64", 81920, 0, 64, 1, 8, "q", "int64"),
    "uint8": DType("uint8", 67585, 1, 8, 1, 1, "B", "uint8"),
    "uint16": DType("uint16", 69633, 1, 16, 1, 2, "H", "uint16"),
    "uint32": DType("uint32", 73729, 1, 32, 1, 4, "I", "uint32"),
    "uint64": DType("uint64", 81921, 1, 64, 1, 8, "Q", "uint64"),
    "float16": DType("float16", 69634, 2, 16, 1, 2, "e", "float16"),
    "float32": DType("float32", 73730, 2, 32, 1, 4, "f", "float32"),
    "float64": DType("float64", 81922, 2, 64, 1, 8, "d", "float64"),
    "bfloat16": DType("bfloat16", 69636, 4, 16, 1, 2, None, None),
    "complex64": DType("complex64", 81925, 5, 64, 1, 8, "Zf", "complex64"),
    "complex128": DType("complex128", 98309, 5, 128, 1, 16, "Zd", "complex128"),
    "bool": DType("bool", 67590, 6, 8, 1, 1, "?", "bool"),
    "float8_e4m3fn": DType("float8_e4m3fn", 67594, 10, 8, 1, 1, None, None),
    "float8_e5m2": DType("float8_e5m2", 67596, 12, 8, 1, 1, None, None),
    "float4_e2m1fn_x2": DType("float4_e2m1fn_x2", 132113, 17, 4, 2, 1, None, None),
    "float8_e3m4": DType("float8_e3m4", 67591, 7, 8, 1, 1, None, None),
    "float8_e4m3": DType("float8_e4m3", 67592, 8, 8, 1, 1, None, None),
    "float8_e4m3b11fnuz": DType("float8_e4m3b11fnuz", 67593, 9, 8, 1, 1, None, None),
    "float8_e4m3fnuz": DType("float8_e4m3fnuz", 67595, 11, 8, 1, 1, None, None),
    "float8_e5m2fnuz": DType("float8_e5m2fnuz", 67597, 13, 8, 1, 1, None, None),
    "float8_e8m0fnu": DType("float8_e8m0fnu", 67598, 14, 8, 1, 1, None, None),
}
#: DTYPES by number.
DTYPE_OF_NUMBER: Final[dict[int, DType]] = {x.number: x for x in DTYPES.values()}

#: The functions that name an error, by its name.
ERRORS: Final[dict[str, tuple[str, ...]]] = {
    "E2BIG": (
        "xmem_pool_open", "xmem_pool_reopen", "xmem_subscribe", "xmem_publish",
        "xmem_preallocate", "xmem_serve", "xmem_respond", "xmem_caller_open", "xmem_call",
        "xmem_describe_source",
    ),
    "EACCES": (
        "xmem_pool_open", "xmem_pool_reopen", "xmem_pool_fd", "xmem_pool_fd_narrow", "xmem_get",
        "xmem_add_ref", "xmem_copy", "xmem_copy_range", "xmem_copy_from_host",
        "xmem_copy_to_host", "xmem_copy_to", "xmem_cuda_ptr", "xmem_cuda_ptr_mut",
        "xmem_cuda_peer", "xmem_host_query", "xmem_limit_next", "xmem_pool_next",
        "xmem_attach_fd", "xmem_serve", "xmem_caller_open", "xmem_tensor_view", "xmem_image_view",
        "xmem_strings_view",
    ),
    "EAGAIN": (
        "xmem_receive", "xmem_receive_any", "xmem_get", "xmem_acquire", "xmem_publish",
        "xmem_add_ref", "xmem_drop_ref", "xmem_copy_to", "xmem_acquire_cuda", "xmem_attach_cuda",
        "xmem_wait_subscribers", "xmem_attach_fd", "xmem_get_mut", "xmem_serve",
        "xmem_server_receive", "xmem_respond", "xmem_refuse", "xmem_caller_open", "xmem_call",
        "xmem_receive_response", "xmem_wait_contents",
    ),
    "EBADF": (
        "xmem_pool_open", "xmem_pool_reopen", "xmem_pool_fd_narrow", "xmem_receive",
        "xmem_receive_any", "xmem_subscription_stat", "xmem_slot", "xmem_buffer_stat",
        "xmem_collect", "xmem_claims", "xmem_cuda_device", "xmem_attach_fd", "xmem_serve",
        "xmem_server_receive", "xmem_caller_open", "xmem_release_on",
    ),
    "EBADMSG": (
        "xmem_tensor_view", "xmem_image_view", "xmem_strings_view", "xmem_strings_get",
        "xmem_tensor_check",
    ),
    "EBUSY": (
        "xmem_retract", "xmem_attach_fd", "xmem_get_mut",
    ),
    "ECANCELED": (
        "xmem_subscribe", "xmem_receive", "xmem_receive_any", "xmem_acquire", "xmem_publish",
        "xmem_set_ref_count", "xmem_copy_to", "xmem_acquire_cuda", "xmem_wait_subscribers",
        "xmem_server_receive", "xmem_request_stat", "xmem_respond", "xmem_call", "xmem_wait_on",
        "xmem_wait_contents",
    ),
    "ECHILD": (
        "xmem_cancel", "xmem_pool_client", "xmem_subscription_stat", "xmem_slot",
        "xmem_buffer_stat", "xmem_preallocate", "xmem_collect", "xmem_limbo_hook", "xmem_claims",
        "xmem_copy", "xmem_copy_range", "xmem_copy_from_host", "xmem_copy_to_host",
        "xmem_copy_to", "xmem_cuda_query", "xmem_cuda_device_query", "xmem_acquire_cuda",
        "xmem_attach_cuda", "xmem_cuda_ptr", "xmem_cuda_ptr_mut", "xmem_cuda_peer",
        "xmem_cuda_device", "xmem_pool_stat", "xmem_pool_client_info", "xmem_subscriber_next",
        "xmem_wait_subscribers", "xmem_pool_slot_info", "xmem_pool_device_info",
        "xmem_pool_holds", "xmem_limit_next", "xmem_release_on", "xmem_tensor_view",
        "xmem_image_view", "xmem_strings_view",
    ),
    "EDQUOT": (
        "xmem_pool_open", "xmem_pool_poll_fd", "xmem_pool_reopen", "xmem_pool_fd",
        "xmem_subscription_poll_fd", "xmem_acquire", "xmem_preallocate", "xmem_copy_to",
        "xmem_acquire_cuda", "xmem_attach_cuda", "xmem_subscribers_poll_fd", "xmem_host_query",
        "xmem_limit_next", "xmem_pool_next", "xmem_attach_fd", "xmem_serve", "xmem_caller_open",
    ),
    "EEXIST": (
        "xmem_pool_open", "xmem_pool_reopen", "xmem_subscribe", "xmem_serve", "xmem_caller_open",
    ),
    "EFBIG": (
        "xmem_acquire", "xmem_preallocate", "xmem_copy_to", "xmem_acquire_cuda",
    ),
    "EINTR": (
        "xmem_pool_open", "xmem_pool_reopen", "xmem_subscribe", "xmem_receive",
        "xmem_receive_any", "xmem_data", "xmem_acquire", "xmem_publish", "xmem_preallocate",
        "xmem_collect", "xmem_set_ref_count", "xmem_offer", "xmem_forget", "xmem_add_ref",
        "xmem_drop_ref", "xmem_void_claims", "xmem_copy", "xmem_copy_range",
        "xmem_copy_from_host", "xmem_copy_to_host", "xmem_copy_to", "xmem_data_private",
        "xmem_acquire_cuda", "xmem_attach_cuda", "xmem_cuda_ptr", "xmem_cuda_ptr_mut",
        "xmem_cuda_peer", "xmem_wait_subscribers", "xmem_attach_fd", "xmem_get_mut", "xmem_serve",
        "xmem_server_receive", "xmem_respond", "xmem_caller_open", "xmem_call", "xmem_wait_on",
        "xmem_wait_contents", "xmem_tensor_view", "xmem_image_view", "xmem_strings_view",
    ),
    "EINVAL": (
        "xmem_get_last_error", "xmem_peek_last_error", "xmem_pool_open", "xmem_cancel",
        "xmem_pool_reopen", "xmem_pool_fd_narrow", "xmem_pool_client", "xmem_subscribe",
        "xmem_receive", "xmem_receive_any", "xmem_subscription_stat", "xmem_get", "xmem_slot",
        "xmem_buffer_stat", "xmem_acquire", "xmem_publish", "xmem_retract", "xmem_preallocate",
        "xmem_limbo_hook", "xmem_pool_set_mode", "xmem_pool_evict", "xmem_pool_drain",
        "xmem_pool_grant", "xmem_set_ref_count", "xmem_offer", "xmem_add_ref", "xmem_drop_ref",
        "xmem_claims", "xmem_void_claims", "xmem_copy", "xmem_copy_range", "xmem_copy_from_host",
        "xmem_copy_to_host", "xmem_copy_to", "xmem_cuda_query", "xmem_cuda_device_query",
        "xmem_acquire_cuda", "xmem_attach_cuda", "xmem_cuda_ptr", "xmem_cuda_ptr_mut",
        "xmem_cuda_peer", "xmem_cuda_device", "xmem_pool_stat", "xmem_pool_client_info",
        "xmem_subscriber_next", "xmem_wait_subscribers", "xmem_pool_slot_info",
        "xmem_pool_device_info", "xmem_pool_holds", "xmem_host_query", "xmem_limit_next",
        "xmem_pool_next", "xmem_attach_fd", "xmem_serve", "xmem_server_receive", "xmem_respond",
        "xmem_refuse", "xmem_caller_open", "xmem_call", "xmem_cancel_call", "xmem_wait_on",
        "xmem_wait_contents", "xmem_release_on", "xmem_describe_tensor", "xmem_describe_image",
        "xmem_image_bytes", "xmem_strings_plan", "xmem_describe_strings", "xmem_describe_source",
        "xmem_metadata_view", "xmem_tensor_view", "xmem_image_view", "xmem_image_plane",
        "xmem_strings_view", "xmem_strings_get", "xmem_tensor_check",
    ),
    "EIO": (
        "xmem_receive", "xmem_receive_any", "xmem_data", "xmem_publish", "xmem_preallocate",
        "xmem_set_ref_count", "xmem_copy", "xmem_copy_range", "xmem_copy_from_host",
        "xmem_copy_to_host", "xmem_copy_to", "xmem_data_private", "xmem_cuda_query",
        "xmem_cuda_device_query", "xmem_acquire_cuda", "xmem_attach_cuda", "xmem_cuda_ptr",
        "xmem_cuda_ptr_mut", "xmem_cuda_peer", "xmem_attach_fd", "xmem_server_receive",
        "xmem_respond", "xmem_call", "xmem_wait_on", "xmem_wait_contents", "xmem_release_on",
        "xmem_tensor_view", "xmem_image_view", "xmem_strings_view",
    ),
    "EMEDIUMTYPE": (
        "xmem_data", "xmem_data_mut", "xmem_publish", "xmem_preallocate", "xmem_copy",
        "xmem_copy_range", "xmem_copy_from_host", "xmem_copy_to_host", "xmem_copy_to",
        "xmem_data_private", "xmem_acquire_cuda", "xmem_attach_cuda", "xmem_cuda_ptr",
        "xmem_cuda_ptr_mut", "xmem_cuda_peer", "xmem_cuda_device", "xmem_attach_fd",
        "xmem_respond", "xmem_call", "xmem_wait_on", "xmem_wait_contents", "xmem_tensor_view",
        "xmem_image_view", "xmem_strings_view", "xmem_strings_get",
    ),
    "EMFILE": (
        "xmem_pool_open", "xmem_pool_poll_fd", "xmem_pool_reopen", "xmem_pool_fd",
        "xmem_pool_fd_narrow", "xmem_subscribe", "xmem_receive", "xmem_receive_any",
        "xmem_subscription_poll_fd", "xmem_data", "xmem_acquire", "xmem_preallocate", "xmem_copy",
        "xmem_copy_range", "xmem_copy_from_host", "xmem_copy_to_host", "xmem_copy_to",
        "xmem_data_private", "xmem_acquire_cuda", "xmem_attach_cuda", "xmem_cuda_ptr",
        "xmem_cuda_ptr_mut", "xmem_cuda_peer", "xmem_subscribers_poll_fd", "xmem_attach_fd",
        "xmem_get_mut", "xmem_serve", "xmem_server_receive", "xmem_caller_open",
        "xmem_tensor_view", "xmem_image_view", "xmem_strings_view",
    ),
    "ENAMETOOLONG": (
        "xmem_pool_open", "xmem_pool_reopen", "xmem_host_query", "xmem_limit_next",
        "xmem_pool_next", "xmem_serve", "xmem_caller_open",
    ),
    "ENFILE": (
        "xmem_attach_fd",
    ),
    "ENODATA": (
        "xmem_tensor_view", "xmem_image_view", "xmem_strings_view", "xmem_tensor_check",
    ),
    "ENODEV": (
        "xmem_pool_open", "xmem_pool_reopen", "xmem_pool_fd_narrow", "xmem_publish",
        "xmem_preallocate", "xmem_copy", "xmem_copy_range", "xmem_copy_from_host",
        "xmem_copy_to_host", "xmem_copy_to", "xmem_cuda_query", "xmem_cuda_device_query",
        "xmem_acquire_cuda", "xmem_attach_cuda", "xmem_cuda_ptr", "xmem_cuda_ptr_mut",
        "xmem_cuda_peer", "xmem_cuda_device", "xmem_host_query", "xmem_serve", "xmem_respond",
        "xmem_caller_open", "xmem_call", "xmem_wait_on", "xmem_release_on", "xmem_tensor_view",
        "xmem_image_view", "xmem_strings_view",
    ),
    "ENOENT": (
        "xmem_pool_open", "xmem_pool_reopen", "xmem_subscribe", "xmem_receive_any",
        "xmem_publish", "xmem_void_claims", "xmem_pool_client_info", "xmem_subscriber_next",
        "xmem_pool_device_info", "xmem_pool_holds", "xmem_limit_next", "xmem_pool_next",
        "xmem_serve", "xmem_respond", "xmem_caller_open", "xmem_call", "xmem_receive_response",
        "xmem_cancel_call",
    ),
    "ENOEXEC": (
        "xmem_attach_fd",
    ),
    "ENOMEM": (
        "xmem_pool_open", "xmem_pool_poll_fd", "xmem_pool_reopen", "xmem_subscription_poll_fd",
        "xmem_data", "xmem_acquire", "xmem_data_mut", "xmem_publish", "xmem_preallocate",
        "xmem_set_ref_count", "xmem_offer", "xmem_forget", "xmem_add_ref", "xmem_drop_ref",
        "xmem_void_claims", "xmem_copy", "xmem_copy_range", "xmem_copy_from_host",
        "xmem_copy_to_host", "xmem_copy_to", "xmem_data_private", "xmem_cuda_query",
        "xmem_cuda_device_query", "xmem_acquire_cuda", "xmem_attach_cuda", "xmem_cuda_ptr",
        "xmem_cuda_ptr_mut", "xmem_cuda_peer", "xmem_subscribers_poll_fd", "xmem_attach_fd",
        "xmem_get_mut", "xmem_serve", "xmem_respond", "xmem_caller_open", "xmem_call",
        "xmem_wait_on", "xmem_release_on", "xmem_tensor_view", "xmem_image_view",
        "xmem_strings_view",
    ),
    "ENOSPC": (
        "xmem_acquire", "xmem_preallocate", "xmem_copy_to", "xmem_acquire_cuda",
        "xmem_attach_cuda", "xmem_attach_fd", "xmem_get_mut",
    ),
    "ENOTCONN": (
        "xmem_data", "xmem_publish", "xmem_pool_evict", "xmem_pool_drain", "xmem_pool_grant",
        "xmem_set_ref_count", "xmem_claims", "xmem_copy", "xmem_copy_range",
        "xmem_copy_from_host", "xmem_copy_to_host", "xmem_copy_to", "xmem_data_private",
        "xmem_cuda_ptr", "xmem_cuda_ptr_mut", "xmem_cuda_peer", "xmem_subscriber_next",
        "xmem_wait_subscribers", "xmem_limit_next", "xmem_respond", "xmem_call", "xmem_wait_on",
        "xmem_wait_contents", "xmem_tensor_view", "xmem_image_view", "xmem_strings_view",
    ),
    "ENOTSUP": (
        "xmem_get_api",
    ),
    "EOPNOTSUPP": (
        "xmem_pool_open", "xmem_pool_reopen", "xmem_subscribe", "xmem_preallocate",
        "xmem_pool_set_mode", "xmem_pool_evict", "xmem_pool_drain", "xmem_copy_to",
        "xmem_acquire_cuda", "xmem_get_mut", "xmem_serve", "xmem_caller_open",
    ),
    "EOVERFLOW": (
        "xmem_receive", "xmem_receive_any", "xmem_get", "xmem_clone", "xmem_publish",
        "xmem_set_ref_count", "xmem_drop_ref", "xmem_server_receive", "xmem_respond", "xmem_call",
    ),
    "EOWNERDEAD": (
        "xmem_publish", "xmem_set_ref_count", "xmem_copy", "xmem_copy_range",
        "xmem_copy_from_host", "xmem_copy_to_host", "xmem_copy_to", "xmem_cuda_ptr",
        "xmem_cuda_ptr_mut", "xmem_cuda_peer", "xmem_respond", "xmem_call",
        "xmem_receive_response", "xmem_wait_on", "xmem_wait_contents", "xmem_tensor_view",
        "xmem_image_view", "xmem_strings_view",
    ),
    "EPERM": (
        "xmem_pool_open", "xmem_pool_reopen", "xmem_clone", "xmem_metadata_mut", "xmem_acquire",
        "xmem_data_mut", "xmem_publish", "xmem_retract", "xmem_preallocate", "xmem_pool_set_mode",
        "xmem_pool_evict", "xmem_pool_drain", "xmem_pool_grant", "xmem_set_ref_count",
        "xmem_offer", "xmem_forget", "xmem_void_claims", "xmem_copy", "xmem_copy_range",
        "xmem_copy_from_host", "xmem_copy_to_host", "xmem_copy_to", "xmem_data_private",
        "xmem_acquire_cuda", "xmem_attach_cuda", "xmem_cuda_ptr_mut", "xmem_subscriber_next",
        "xmem_wait_subscribers", "xmem_subscribers_poll_fd", "xmem_host_query", "xmem_limit_next",
        "xmem_pool_next", "xmem_attach_fd", "xmem_get_mut", "xmem_serve", "xmem_respond",
        "xmem_caller_open", "xmem_call", "xmem_wait_on", "xmem_release_on",
        "xmem_describe_tensor", "xmem_describe_image", "xmem_describe_strings",
        "xmem_describe_source",
    ),
    "EPIPE": (
        "xmem_receive", "xmem_receive_any", "xmem_server_receive", "xmem_request_stat",
    ),
    "EPROTONOSUPPORT": (
        "xmem_pool_open", "xmem_pool_reopen", "xmem_serve", "xmem_caller_open",
    ),
    "ERANGE": (
        "xmem_pool_open", "xmem_pool_reopen", "xmem_publish", "xmem_set_ref_count", "xmem_offer",
        "xmem_forget", "xmem_add_ref", "xmem_drop_ref", "xmem_copy", "xmem_copy_range",
        "xmem_copy_from_host", "xmem_copy_to_host", "xmem_copy_to", "xmem_attach_cuda",
        "xmem_attach_fd", "xmem_serve", "xmem_respond", "xmem_caller_open", "xmem_call",
        "xmem_describe_tensor", "xmem_describe_image", "xmem_describe_strings",
        "xmem_tensor_view", "xmem_image_view", "xmem_strings_view", "xmem_tensor_check",
    ),
    "ESHUTDOWN": (
        "xmem_pool_open", "xmem_pool_reopen", "xmem_pool_fd_narrow", "xmem_publish",
        "xmem_set_ref_count", "xmem_serve", "xmem_respond", "xmem_caller_open", "xmem_call",
        "xmem_wait_contents",
    ),
    "ESTALE": (
        "xmem_subscribe", "xmem_get", "xmem_retract", "xmem_pool_evict", "xmem_pool_grant",
        "xmem_add_ref", "xmem_drop_ref", "xmem_claims", "xmem_void_claims",
    ),
    "ETIMEDOUT": (
        "xmem_pool_poll_fd", "xmem_subscribe", "xmem_receive", "xmem_receive_any",
        "xmem_subscription_poll_fd", "xmem_acquire", "xmem_publish", "xmem_copy_to",
        "xmem_acquire_cuda", "xmem_wait_subscribers", "xmem_subscribers_poll_fd", "xmem_serve",
        "xmem_server_receive", "xmem_respond", "xmem_caller_open", "xmem_call",
        "xmem_receive_response", "xmem_wait_contents",
    ),
    "EUSERS": (
        "xmem_pool_open", "xmem_pool_reopen", "xmem_cuda_peer", "xmem_serve", "xmem_caller_open",
    ),
    "EXDEV": (
        "xmem_cuda_peer",
    ),
}
