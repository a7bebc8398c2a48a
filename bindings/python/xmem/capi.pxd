# SPDX-License-Identifier: MIT
# The C API for Cython, by the table of all functions: see include/xmem_python.h, and "Cython" in
# docs/python.md. Made by bindings/generate.py from the public headers.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "xmem_python.h" nogil:
    struct CUstream_st:
        pass

    struct xmem_buffer:
        pass

    struct xmem_caller:
        pass

    struct xmem_pool:
        pass

    struct xmem_request:
        pass

    struct xmem_server:
        pass

    struct xmem_subscription:
        pass

    struct xmem_metadata:
        uint64_t id
        uint32_t storage
        uint32_t device
        uint32_t dtype
        uint32_t ndim
        int64_t shape[8]
        int64_t strides[8]
        uint64_t size
        uint64_t offset
        char content_type[32]
        char producer[32]
        uint64_t user[8]
        uint64_t timestamp_ns
        char clock[24]
        uint32_t image
        uint32_t order_kind
        uint64_t order_value
        uint32_t image_width
        uint32_t image_height
        uint64_t image_stride
        uint32_t column
        uint32_t column_flags
        uint64_t column_rows
        uint64_t column_chars
        uint64_t reserved[16]

    struct xmem_error:
        size_t size
        int32_t error
        int32_t cuda_result
        const char *message
        const char *cuda_name

    struct xmem_pool_options:
        size_t size
        uint32_t flags
        uint32_t slots
        uint32_t clients
        uint32_t ring_entries
        int64_t wait_bound_ns
        const char *label
        uint64_t demand_bytes
        uint64_t cache_bytes
        int64_t cache_ns
        uint32_t memory
        uint32_t keep
        uint32_t mode
        uint32_t gid
        int32_t fd
        uint32_t reserved

    struct xmem_subscribe_options:
        size_t size
        uint32_t flags
        uint32_t publisher
        int64_t timeout_ns
        uint32_t history
        uint32_t depth
        const char *label

    struct xmem_subscription_info:
        size_t size
        uint32_t publisher
        uint32_t follows
        uint64_t lost
        uint64_t behind

    struct xmem_buffer_info:
        size_t size
        uint32_t flags
        uint32_t slot
        uint64_t token
        uint64_t sequence
        uint64_t timestamp_ns
        uint64_t bytes
        uint64_t capacity
        uint32_t publisher
        char label[16]
        uint32_t reserved

    struct xmem_publish_options:
        size_t size
        uint32_t flags
        uint32_t client
        uint64_t timestamp_ns
        uint64_t offset
        uint64_t length
        int64_t timeout_ns
        CUstream_st *stream

    struct xmem_preallocate_options:
        size_t size
        uint32_t flags
        int32_t device_id
        uint32_t *ret_slots

    struct xmem_limbo:
        size_t size
        uint32_t ended
        uint32_t overdue
        uint64_t bytes_ended
        uint64_t bytes_overdue
        uint64_t ended_age_ns
        uint64_t overdue_age_ns

    struct xmem_cuda_info:
        size_t size
        uint32_t version
        uint32_t devices
        char file[256]
        uint32_t hip
        uint32_t reserved

    struct xmem_cuda_device_info:
        size_t size
        int32_t device_id
        uint32_t can
        uint64_t bytes
        uint64_t granularity
        uint32_t capability
        uint32_t reserved
        uint8_t uuid[16]
        char name[128]

    struct xmem_pool_info:
        size_t size
        uint32_t slots
        uint32_t attached
        uint32_t free
        uint32_t writing
        uint32_t live
        uint32_t held
        uint32_t limbo
        uint32_t clients
        uint32_t zombies
        uint32_t clients_max
        uint32_t ring_entries
        uint32_t reserved
        uint64_t holds
        uint64_t bytes
        uint64_t bytes_files
        uint64_t bytes_kept
        uint64_t bytes_mapped
        uint32_t payloads
        uint32_t reserved1
        uint64_t stale_handles
        uint64_t bytes_huge
        uint64_t bytes_advised
        uint64_t claims
        uint32_t claimed
        uint32_t overdue
        uint64_t bytes_limbo
        uint64_t limbo_age_ns
        uint64_t bytes_overdue
        uint64_t overdue_age_ns
        uint64_t bytes_cuda
        uint64_t bytes_closing

    struct xmem_client_info:
        size_t size
        uint32_t id
        uint32_t role
        uint32_t alive
        uint32_t pid
        uint32_t uid
        uint32_t slots
        uint64_t incarnation
        uint64_t wait_bound_ns
        uint64_t holds
        char label[16]
        uint32_t follows
        uint32_t followers
        uint64_t behind
        uint64_t bytes_mapped
        uint64_t bytes_kept
        uint32_t limbo
        uint32_t awaits_writer
        uint64_t bytes_limbo
        uint64_t bytes_ended

    struct xmem_subscriber_info:
        size_t size
        uint32_t client
        uint32_t waits
        uint64_t incarnation
        uint64_t behind
        uint32_t demoted
        uint32_t reserved
        char label[16]

    struct xmem_slot_info:
        size_t size
        uint32_t slot
        uint32_t state
        uint32_t owner
        uint32_t device
        uint64_t token
        uint64_t bytes
        uint64_t holds
        uint64_t position
        uint64_t payload
        uint64_t payload_bytes
        uint32_t claims
        uint32_t upgrader
        uint32_t overdue
        uint32_t reserved

    struct xmem_device_info:
        size_t size
        uint32_t device
        uint32_t reserved
        uint8_t uuid[16]
        uint64_t bytes
        uint64_t bytes_closing

    struct xmem_host_info:
        size_t size
        uint32_t abi
        uint32_t abi_oldest
        uint64_t features
        uint32_t max_slots
        uint32_t max_clients
        uint32_t max_ring_entries
        uint32_t group_slots
        uint32_t max_pools
        uint32_t max_payloads
        uint32_t pools
        uint32_t reserved
        char backend[16]
        char version[16]

    struct xmem_limit_info:
        size_t size
        uint32_t number
        uint32_t scope
        uint32_t uid
        uint32_t in_bytes
        uint64_t used
        uint64_t most
        char name[24]
        char what[40]

    struct xmem_pool_entry:
        size_t size
        uint64_t number
        char name[136]
        uint32_t owner_uid
        uint32_t slots
        uint32_t clients_max
        uint32_t clients
        uint32_t ring_entries
        uint32_t reserved
        uint64_t bytes
        uint64_t bytes_files
        uint64_t bytes_kept
        uint32_t payloads
        uint32_t mode
        uint32_t gid
        uint32_t roles

    struct xmem_service_options:
        size_t size
        uint32_t flags
        uint32_t reserved
        const xmem_pool_options *pool
        int64_t timeout_ns

    struct xmem_response:
        size_t size
        uint64_t call
        uint32_t more
        uint32_t refused

    struct xmem_strings:
        size_t size
        uint32_t flags
        int32_t device_id
        const void *data
        uint64_t rows
        uint64_t chars
        uint64_t bytes
        uint64_t validity_at
        uint64_t offsets_at
        uint64_t chars_at

    struct xmem_source:
        size_t size
        uint32_t flags
        uint32_t reserved
        const char *content_type
        const char *producer
        uint64_t timestamp_ns
        const char *clock

    struct xmem_tensor:
        size_t size
        uint32_t flags
        uint32_t dtype
        uint32_t ndim
        uint32_t item_bytes
        int32_t device_id
        uint32_t reserved
        const void *data
        uint64_t elements
        uint64_t bytes
        int64_t shape[8]
        int64_t strides[8]
        int64_t element_strides[8]

    struct xmem_plane:
        const void *data
        size_t stride
        uint32_t row_bytes
        uint32_t rows

    struct xmem_image:
        size_t size
        uint32_t format
        uint32_t planes
        uint32_t width
        uint32_t height
        int32_t device_id
        uint32_t reserved
        xmem_plane plane[4]

    ctypedef void xmem_limbo_function(xmem_pool *pool, const xmem_limbo *limbo,
            void *user) noexcept nogil

    const uint32_t XMEM_OPEN_WRITER
    const uint32_t XMEM_OPEN_EXISTING
    const uint32_t XMEM_OPEN_EXCLUSIVE
    const uint32_t XMEM_OPEN_READER
    const uint32_t XMEM_OPEN_INHERIT
    const uint32_t XMEM_OPEN_GROUP
    const uint32_t XMEM_OPEN_SHARES
    const uint32_t XMEM_OPEN_FD

    const uint32_t XMEM_MAY_READ
    const uint32_t XMEM_MAY_WRITE

    const uint32_t XMEM_SUBSCRIBE_WAITS
    const uint32_t XMEM_SUBSCRIBE_PUBLISHER
    const uint32_t XMEM_SUBSCRIBE_NOWAIT
    const uint32_t XMEM_SUBSCRIBE_LASTS

    const uint32_t XMEM_BUFFER_SHARED
    const uint32_t XMEM_BUFFER_CONSTANT
    const uint32_t XMEM_BUFFER_HUGE
    const uint32_t XMEM_BUFFER_ATTACHED
    const uint32_t XMEM_BUFFER_DMABUF
    const uint32_t XMEM_BUFFER_CUDA
    const uint32_t XMEM_BUFFER_MORTAL
    const uint32_t XMEM_BUFFER_READERS
    const uint32_t XMEM_BUFFER_CLAIMED

    const uint32_t XMEM_PUBLISH_KEEP
    const uint32_t XMEM_PUBLISH_CLIENT

    const uint32_t XMEM_MEMORY_HUGE
    const uint32_t XMEM_MEMORY_SEALED
    const uint32_t XMEM_MEMORY_CUDA
    const uint32_t XMEM_MEMORY_READERS
    const uint32_t XMEM_MEMORY_LEGACY

    const uint32_t XMEM_CUDA_CAN_EXPORT
    const uint32_t XMEM_CUDA_CAN_IPC
    const uint32_t XMEM_CUDA_CAN_EXPORT_POOL
    const uint32_t XMEM_CUDA_CAN_MEMOPS
    const uint32_t XMEM_CUDA_CAN_REGISTER
    const uint32_t XMEM_CUDA_CAN_REGISTER_READ_ONLY
    const uint32_t XMEM_CUDA_CAN_HOST_ATOMICS
    const uint32_t XMEM_CUDA_CAN_MPS

    const uint32_t XMEM_SERVE_SHARED

    const uint32_t XMEM_STRINGS_VALIDITY

    const uint32_t XMEM_TENSOR_DENSE
    const uint32_t XMEM_TENSOR_ALIGNED
    const uint32_t XMEM_TENSOR_DLPACK

    const int XMEM_MAX_DIMENSIONS
    const int XMEM_VERSION_MAJOR
    const int XMEM_VERSION_MINOR
    const int XMEM_VERSION_PATCH
    const int64_t XMEM_FOREVER
    const int XMEM_MODE_STRICT
    const uint64_t XMEM_NO_DEMAND
    const int XMEM_CPU
    const uint64_t XMEM_KEEP_ALL
    const uint32_t XMEM_GID_SAME
    const uint32_t XMEM_DRAIN_EVICTS
    const uint32_t XMEM_NOBODY
    const uint32_t XMEM_RESPOND_MORE
    const uint64_t XMEM_ALL_STREAMS
    const uint32_t XMEM_IMAGE_MAX_SIDE
    const int XMEM_STRINGS_MAX
    const uint32_t XMEM_VIEW_CUDA
    const int XMEM_IMAGE_MAX_PLANES
    const int XMEM_API_VERSION

    enum xmem_storage:
        XMEM_STORAGE_CPU
        XMEM_STORAGE_CUDA

    enum xmem_order:
        XMEM_ORDER_NONE
        XMEM_ORDER_READY

    enum xmem_dtype_code:
        XMEM_DTYPE_CODE_INT
        XMEM_DTYPE_CODE_UINT
        XMEM_DTYPE_CODE_FLOAT
        XMEM_DTYPE_CODE_OPAQUE
        XMEM_DTYPE_CODE_BFLOAT
        XMEM_DTYPE_CODE_COMPLEX
        XMEM_DTYPE_CODE_BOOL
        XMEM_DTYPE_CODE_FLOAT8_E3M4
        XMEM_DTYPE_CODE_FLOAT8_E4M3
        XMEM_DTYPE_CODE_FLOAT8_E4M3B11FNUZ
        XMEM_DTYPE_CODE_FLOAT8_E4M3FN
        XMEM_DTYPE_CODE_FLOAT8_E4M3FNUZ
        XMEM_DTYPE_CODE_FLOAT8_E5M2
        XMEM_DTYPE_CODE_FLOAT8_E5M2FNUZ
        XMEM_DTYPE_CODE_FLOAT8_E8M0FNU
        XMEM_DTYPE_CODE_FLOAT6_E2M3FN
        XMEM_DTYPE_CODE_FLOAT6_E3M2FN
        XMEM_DTYPE_CODE_FLOAT4_E2M1FN
        XMEM_DTYPE_CODES

    enum xmem_dtype:
        XMEM_DTYPE_NONE
        XMEM_DTYPE_INT8
        XMEM_DTYPE_INT16
        XMEM_DTYPE_INT32
        XMEM_DTYPE_INT64
        XMEM_DTYPE_UINT8
        XMEM_DTYPE_UINT16
        XMEM_DTYPE_UINT32
        XMEM_DTYPE_UINT64
        XMEM_DTYPE_FLOAT16
        XMEM_DTYPE_FLOAT32
        XMEM_DTYPE_FLOAT64
        XMEM_DTYPE_BFLOAT16
        XMEM_DTYPE_COMPLEX64
        XMEM_DTYPE_COMPLEX128
        XMEM_DTYPE_BOOL
        XMEM_DTYPE_FLOAT8_E4M3FN
        XMEM_DTYPE_FLOAT8_E5M2
        XMEM_DTYPE_FLOAT4_E2M1FN_X2

    enum xmem_image_format:
        XMEM_IMAGE_NONE
        XMEM_IMAGE_GRAY8
        XMEM_IMAGE_GRAY16
        XMEM_IMAGE_RGB8
        XMEM_IMAGE_BGR8
        XMEM_IMAGE_RGBA8
        XMEM_IMAGE_BGRA8
        XMEM_IMAGE_YUYV
        XMEM_IMAGE_UYVY
        XMEM_IMAGE_I420
        XMEM_IMAGE_NV12
        XMEM_IMAGE_NV21
        XMEM_IMAGE_NV16
        XMEM_IMAGE_P010
        XMEM_IMAGE_P016
        XMEM_IMAGE_YV12
        XMEM_IMAGE_I422
        XMEM_IMAGE_I444
        XMEM_IMAGE_BAYER_BGGR8
        XMEM_IMAGE_BAYER_GBRG8
        XMEM_IMAGE_BAYER_GRBG8
        XMEM_IMAGE_BAYER_RGGB8
        XMEM_IMAGE_BAYER_BGGR16
        XMEM_IMAGE_BAYER_GBRG16
        XMEM_IMAGE_BAYER_GRBG16
        XMEM_IMAGE_BAYER_RGGB16
        XMEM_IMAGE_RGB48
        XMEM_IMAGE_RGBA64
        XMEM_IMAGE_RGBF32
        XMEM_IMAGE_GBRPF32
        XMEM_IMAGE_FORMATS

    enum xmem_column:
        XMEM_COLUMN_NONE
        XMEM_COLUMN_STRINGS

    enum xmem_client_role:
        XMEM_CLIENT_READER
        XMEM_CLIENT_WRITER

    enum xmem_slot_use:
        XMEM_USE_NONE
        XMEM_USE_FREE
        XMEM_USE_WRITING
        XMEM_USE_LIVE
        XMEM_USE_LIMBO

    enum xmem_limit_scope:
        XMEM_LIMIT_OF_USER
        XMEM_LIMIT_OF_HOST
        XMEM_LIMIT_OF_POOL
        XMEM_LIMIT_OF_CLIENT

    struct xmem_api:
        uint32_t abi_version
        uint32_t struct_size
        xmem_buffer *(*acquire)(xmem_pool *pool, size_t bytes, int64_t timeout_ns) noexcept nogil
        void (*clear_last_error)() noexcept nogil
        xmem_buffer *(*clone)(xmem_buffer *buffer) noexcept nogil
        const void *(*data)(xmem_buffer *buffer) noexcept nogil
        void *(*data_mut)(xmem_buffer *buffer) noexcept nogil
        xmem_buffer *(*get)(xmem_pool *pool, uint64_t token) noexcept nogil
        int (*get_last_error)(xmem_error *ret_error) noexcept nogil
        int (*peek_last_error)(xmem_error *ret_error) noexcept nogil
        const char *(*pool_backend)(xmem_pool *pool) noexcept nogil
        int (*pool_client)(xmem_pool *pool) noexcept nogil
        void (*pool_close)(xmem_pool *pool) noexcept nogil
        xmem_pool *(*pool_open)(const char *name, const xmem_pool_options *options) noexcept nogil
        int (*pool_stat)(xmem_pool *pool, xmem_pool_info *ret_info) noexcept nogil
        int (*preallocate)(xmem_pool *pool, size_t bytes, uint32_t count,
            const xmem_preallocate_options *options) noexcept nogil
        int (*publish)(xmem_buffer *buffer, const xmem_publish_options *options,
            uint64_t *ret_token) noexcept nogil
        xmem_buffer *(*receive)(xmem_subscription *subscription, int64_t timeout_ns) noexcept nogil
        void (*release)(xmem_buffer *buffer) noexcept nogil
        size_t (*size)(xmem_buffer *buffer) noexcept nogil
        xmem_subscription *(*subscribe)(xmem_pool *pool,
            const xmem_subscribe_options *options) noexcept nogil
        uint64_t (*token)(xmem_buffer *buffer) noexcept nogil
        void (*unsubscribe)(xmem_subscription *subscription) noexcept nogil
        size_t (*capacity)(xmem_buffer *buffer) noexcept nogil
        int (*host_query)(xmem_host_info *ret_info) noexcept nogil
        xmem_metadata *(*metadata_mut)(xmem_buffer *buffer) noexcept nogil
        const xmem_metadata *(*metadata_ptr)(xmem_buffer *buffer) noexcept nogil
        int (*pool_client_info)(xmem_pool *pool, uint32_t client,
            xmem_client_info *ret_info) noexcept nogil
        int (*pool_fd)(xmem_pool *pool) noexcept nogil
        int64_t (*pool_holds)(xmem_pool *pool, uint32_t client, uint32_t slot) noexcept nogil
        int (*pool_next)(uint64_t after, xmem_pool_entry *ret_entry) noexcept nogil
        int (*pool_slot_info)(xmem_pool *pool, uint32_t slot,
            xmem_slot_info *ret_info) noexcept nogil
        int (*cancel)(xmem_pool *pool) noexcept nogil
        int (*pool_poll_fd)(xmem_pool *pool) noexcept nogil
        xmem_buffer *(*receive_any)(xmem_pool *pool, int64_t timeout_ns,
            xmem_subscription **ret_subscription) noexcept nogil
        int (*subscription_poll_fd)(xmem_subscription *subscription) noexcept nogil
        int (*add_ref)(xmem_pool *pool, uint64_t token) noexcept nogil
        xmem_buffer *(*attach_fd)(xmem_pool *pool, int fd, uint64_t offset, uint64_t length,
            uint32_t flags) noexcept nogil
        int (*collect)(xmem_pool *pool, uint64_t keep, uint64_t *ret_bytes) noexcept nogil
        int (*copy)(xmem_buffer *to, xmem_buffer *from_, CUstream_st *stream) noexcept nogil
        int (*describe_image)(xmem_buffer *buffer, uint32_t format, uint32_t width,
            uint32_t height, size_t stride) noexcept nogil
        int (*describe_tensor)(xmem_buffer *buffer, uint32_t dtype, uint32_t ndim,
            const int64_t *shape, const int64_t *strides) noexcept nogil
        int (*drop_ref)(xmem_pool *pool, uint64_t token) noexcept nogil
        int (*forget)(xmem_buffer *buffer) noexcept nogil
        int (*get_mut)(xmem_buffer *buffer) noexcept nogil
        int (*image_view)(xmem_buffer *buffer, uint32_t flags, xmem_image *ret_image) noexcept nogil
        int (*limbo_hook)(xmem_pool *pool, uint64_t bytes, uint32_t count,
            xmem_limbo_function *call, void *user) noexcept nogil
        int (*metadata_view)(xmem_buffer *buffer, xmem_metadata *ret_metadata) noexcept nogil
        int (*offer)(xmem_buffer *buffer, uint32_t more, int64_t timeout_ns) noexcept nogil
        xmem_pool *(*pool_reopen)(xmem_pool *pool) noexcept nogil
        int (*retract)(xmem_pool *pool, uint64_t token) noexcept nogil
        int (*set_ref_count)(xmem_buffer *buffer, uint32_t count, int64_t timeout_ns) noexcept nogil
        int (*tensor_check)(const xmem_metadata *metadata, uint64_t bytes) noexcept nogil
        int (*tensor_view)(xmem_buffer *buffer, uint32_t flags,
            xmem_tensor *ret_tensor) noexcept nogil
        int (*void_claims)(xmem_pool *pool, uint64_t token) noexcept nogil
        xmem_buffer *(*acquire_cuda)(xmem_pool *pool, size_t bytes, int device,
            int64_t timeout_ns) noexcept nogil
        xmem_buffer *(*attach_cuda)(xmem_pool *pool, void *ptr, size_t bytes, uint32_t flags,
            void (*done)(void *user) noexcept nogil, void *user) noexcept nogil
        int (*buffer_stat)(xmem_buffer *buffer, xmem_buffer_info *ret_info) noexcept nogil
        int (*call)(xmem_caller *caller, xmem_buffer *request, int64_t timeout_ns,
            uint64_t *ret_call) noexcept nogil
        void (*caller_close)(xmem_caller *caller) noexcept nogil
        xmem_caller *(*caller_open)(const char *name,
            const xmem_service_options *options) noexcept nogil
        xmem_pool *(*caller_pool)(xmem_caller *caller) noexcept nogil
        int (*cancel_call)(xmem_caller *caller, uint64_t call) noexcept nogil
        int (*claims)(xmem_pool *pool, uint64_t token) noexcept nogil
        int (*copy_from_host)(xmem_buffer *to, size_t offset, const void *from_, size_t bytes,
            CUstream_st *stream) noexcept nogil
        int (*copy_range)(xmem_buffer *to, size_t to_offset, xmem_buffer *from_,
            size_t from_offset, size_t bytes, CUstream_st *stream) noexcept nogil
        xmem_buffer *(*copy_to)(xmem_buffer *from_, int device_id,
            int64_t timeout_ns) noexcept nogil
        int (*copy_to_host)(void *to, xmem_buffer *from_, size_t offset, size_t bytes,
            CUstream_st *stream) noexcept nogil
        int (*cuda_device)(xmem_buffer *buffer) noexcept nogil
        int (*cuda_device_query)(int device, xmem_cuda_device_info *ret_info) noexcept nogil
        int (*cuda_peer)(xmem_buffer *buffer, int device) noexcept nogil
        const void *(*cuda_ptr)(xmem_buffer *buffer) noexcept nogil
        void *(*cuda_ptr_mut)(xmem_buffer *buffer) noexcept nogil
        int (*cuda_query)(xmem_cuda_info *ret_info) noexcept nogil
        void *(*data_private)(xmem_buffer *buffer) noexcept nogil
        int (*describe_source)(xmem_buffer *buffer, const xmem_source *source) noexcept nogil
        int (*describe_strings)(xmem_buffer *buffer, uint64_t rows, uint64_t chars,
            uint32_t flags) noexcept nogil
        int64_t (*image_bytes)(uint32_t format, uint32_t width, uint32_t height,
            size_t stride) noexcept nogil
        int (*image_plane)(const xmem_image *image, uint32_t plane,
            xmem_tensor *ret_tensor) noexcept nogil
        int (*limit_next)(xmem_pool *pool, uint32_t number,
            xmem_limit_info *ret_info) noexcept nogil
        int (*pool_device_info)(xmem_pool *pool, uint32_t device,
            xmem_device_info *ret_info) noexcept nogil
        int (*pool_drain)(xmem_pool *pool, uint32_t flags) noexcept nogil
        int (*pool_evict)(xmem_pool *pool, uint32_t client, uint64_t incarnation) noexcept nogil
        int (*pool_fd_narrow)(int fd, uint32_t roles) noexcept nogil
        int (*pool_grant)(xmem_pool *pool, uint32_t client, uint64_t incarnation) noexcept nogil
        int (*pool_set_mode)(xmem_pool *pool, uint32_t mode, uint32_t gid) noexcept nogil
        xmem_buffer *(*receive_response)(xmem_caller *caller, uint64_t call, int64_t timeout_ns,
            xmem_response *ret_response) noexcept nogil
        int (*refuse)(xmem_request *request, int error) noexcept nogil
        int (*release_on)(xmem_buffer *buffer, CUstream_st *stream) noexcept nogil
        xmem_buffer *(*request_buffer)(xmem_request *request) noexcept nogil
        int (*request_stat)(xmem_request *request) noexcept nogil
        int (*respond)(xmem_request *request, xmem_buffer *response, uint32_t flags) noexcept nogil
        xmem_server *(*serve)(const char *name, const xmem_service_options *options) noexcept nogil
        void (*server_close)(xmem_server *server) noexcept nogil
        xmem_pool *(*server_pool)(xmem_server *server) noexcept nogil
        xmem_request *(*server_receive)(xmem_server *server, int64_t timeout_ns) noexcept nogil
        int (*slot)(xmem_buffer *buffer) noexcept nogil
        int64_t (*strings_get)(const xmem_strings *strings, uint64_t row,
            const char **ret_chars) noexcept nogil
        int (*strings_plan)(uint64_t rows, uint64_t chars, uint32_t flags,
            xmem_strings *ret_plan) noexcept nogil
        int (*strings_view)(xmem_buffer *buffer, uint32_t flags,
            xmem_strings *ret_strings) noexcept nogil
        int (*subscriber_next)(xmem_pool *pool, uint32_t first,
            xmem_subscriber_info *ret_info) noexcept nogil
        int (*subscribers_poll_fd)(xmem_pool *pool) noexcept nogil
        int (*subscription_stat)(xmem_subscription *subscription,
            xmem_subscription_info *ret_info) noexcept nogil
        int (*wait_contents)(xmem_buffer *buffer, int64_t timeout_ns) noexcept nogil
        int (*wait_on)(xmem_buffer *buffer, CUstream_st *stream) noexcept nogil
        int (*wait_subscribers)(xmem_pool *pool, uint32_t count, int64_t timeout_ns) noexcept nogil

cdef extern from "xmem_python.h":
    # Where a module is imported, once in each: then xmem_table.pool_open(b"camera", NULL).
    int import_xmem() except -1
    const xmem_api *xmem_table
    # The guard gets the handle; NULL raises the thread's last error.
    object xmem_as_py(xmem_buffer *buffer)
    object xmem_raise_last_error()
