(* SPDX-License-Identifier: MIT *)
(* The C functions and structs for ctypes, which makes stubs of them (gen/gen.ml).
   Made by bindings/generate.py from the public headers. *)
open Ctypes

(* A stub takes an argument of type camlint through an int of C, which cuts a size. *)
let of_size = view nativeint ~read:Nativeint.to_int ~write:Nativeint.of_int
let const_char_p = typedef (ptr char) "const char *"
let const_void_p = typedef (ptr void) "const void *"
let const_int64_p = typedef (ptr int64_t) "const int64_t *"
let stream : unit ptr typ = typedef (ptr void) "struct CUstream_st *"
let xmem_buffer : unit ptr typ = typedef (ptr void) "struct xmem_buffer *"
let xmem_pool : unit ptr typ = typedef (ptr void) "struct xmem_pool *"
let xmem_subscription : unit ptr typ = typedef (ptr void) "struct xmem_subscription *"

type xmem_metadata
let xmem_metadata : xmem_metadata structure typ = structure "xmem_metadata"
let xmem_metadata_id = field xmem_metadata "id" uint64_t
let xmem_metadata_storage = field xmem_metadata "storage" uint32_t
let xmem_metadata_device = field xmem_metadata "device" uint32_t
let xmem_metadata_dtype = field xmem_metadata "dtype" uint32_t
let xmem_metadata_ndim = field xmem_metadata "ndim" uint32_t
let xmem_metadata_shape = field xmem_metadata "shape" (array 8 int64_t)
let xmem_metadata_strides = field xmem_metadata "strides" (array 8 int64_t)
let xmem_metadata_size = field xmem_metadata "size" uint64_t
let xmem_metadata_offset = field xmem_metadata "offset" uint64_t
let xmem_metadata_content_type = field xmem_metadata "content_type" (array 32 char)
let xmem_metadata_producer = field xmem_metadata "producer" (array 32 char)
let xmem_metadata_user = field xmem_metadata "user" (array 8 uint64_t)
let xmem_metadata_timestamp_ns = field xmem_metadata "timestamp_ns" uint64_t
let xmem_metadata_clock = field xmem_metadata "clock" (array 24 char)
let xmem_metadata_image = field xmem_metadata "image" uint32_t
let xmem_metadata_order_kind = field xmem_metadata "order_kind" uint32_t
let xmem_metadata_order_value = field xmem_metadata "order_value" uint64_t
let xmem_metadata_image_width = field xmem_metadata "image_width" uint32_t
let xmem_metadata_image_height = field xmem_metadata "image_height" uint32_t
let xmem_metadata_image_stride = field xmem_metadata "image_stride" uint64_t
let xmem_metadata_column = field xmem_metadata "column" uint32_t
let xmem_metadata_column_flags = field xmem_metadata "column_flags" uint32_t
let xmem_metadata_column_rows = field xmem_metadata "column_rows" uint64_t
let xmem_metadata_column_chars = field xmem_metadata "column_chars" uint64_t
let xmem_metadata_reserved = field xmem_metadata "reserved" (array 16 uint64_t)
let () = seal xmem_metadata; assert (sizeof xmem_metadata = 512)
let () = assert (offsetof xmem_metadata_id = 0)
let () = assert (offsetof xmem_metadata_storage = 8)
let () = assert (offsetof xmem_metadata_device = 12)
let () = assert (offsetof xmem_metadata_dtype = 16)
let () = assert (offsetof xmem_metadata_ndim = 20)
let () = assert (offsetof xmem_metadata_shape = 24)
let () = assert (offsetof xmem_metadata_strides = 88)
let () = assert (offsetof xmem_metadata_size = 152)
let () = assert (offsetof xmem_metadata_offset = 160)
let () = assert (offsetof xmem_metadata_content_type = 168)
let () = assert (offsetof xmem_metadata_producer = 200)
let () = assert (offsetof xmem_metadata_user = 232)
let () = assert (offsetof xmem_metadata_timestamp_ns = 296)
let () = assert (offsetof xmem_metadata_clock = 304)
let () = assert (offsetof xmem_metadata_image = 328)
let () = assert (offsetof xmem_metadata_order_kind = 332)
let () = assert (offsetof xmem_metadata_order_value = 336)
let () = assert (offsetof xmem_metadata_image_width = 344)
let () = assert (offsetof xmem_metadata_image_height = 348)
let () = assert (offsetof xmem_metadata_image_stride = 352)
let () = assert (offsetof xmem_metadata_column = 360)
let () = assert (offsetof xmem_metadata_column_flags = 364)
let () = assert (offsetof xmem_metadata_column_rows = 368)
let () = assert (offsetof xmem_metadata_column_chars = 376)
let () = assert (offsetof xmem_metadata_reserved = 384)
let const_xmem_metadata_p = typedef (ptr xmem_metadata) "const struct xmem_metadata *"

type xmem_error
let xmem_error : xmem_error structure typ = structure "xmem_error"
let xmem_error_size = field xmem_error "size" size_t
let xmem_error_error = field xmem_error "error" int32_t
let xmem_error_cuda_result = field xmem_error "cuda_result" int32_t
let xmem_error_message = field xmem_error "message" (ptr char)
let xmem_error_cuda_name = field xmem_error "cuda_name" (ptr char)
let () = seal xmem_error; assert (sizeof xmem_error = 32)
let () = assert (offsetof xmem_error_size = 0)
let () = assert (offsetof xmem_error_error = 8)
let () = assert (offsetof xmem_error_cuda_result = 12)
let () = assert (offsetof xmem_error_message = 16)
let () = assert (offsetof xmem_error_cuda_name = 24)
let const_xmem_error_p = typedef (ptr xmem_error) "const struct xmem_error *"

type xmem_pool_options
let xmem_pool_options : xmem_pool_options structure typ = structure "xmem_pool_options"
let xmem_pool_options_size = field xmem_pool_options "size" size_t
let xmem_pool_options_flags = field xmem_pool_options "flags" uint32_t
let xmem_pool_options_slots = field xmem_pool_options "slots" uint32_t
let xmem_pool_options_clients = field xmem_pool_options "clients" uint32_t
let xmem_pool_options_ring_entries = field xmem_pool_options "ring_entries" uint32_t
let xmem_pool_options_wait_bound_ns = field xmem_pool_options "wait_bound_ns" int64_t
let xmem_pool_options_label = field xmem_pool_options "label" (ptr char)
let xmem_pool_options_demand_bytes = field xmem_pool_options "demand_bytes" uint64_t
let xmem_pool_options_cache_bytes = field xmem_pool_options "cache_bytes" uint64_t
let xmem_pool_options_cache_ns = field xmem_pool_options "cache_ns" int64_t
let xmem_pool_options_memory = field xmem_pool_options "memory" uint32_t
let xmem_pool_options_keep = field xmem_pool_options "keep" uint32_t
let xmem_pool_options_mode = field xmem_pool_options "mode" uint32_t
let xmem_pool_options_gid = field xmem_pool_options "gid" uint32_t
let xmem_pool_options_fd = field xmem_pool_options "fd" int32_t
let xmem_pool_options_reserved = field xmem_pool_options "reserved" uint32_t
let () = seal xmem_pool_options; assert (sizeof xmem_pool_options = 88)
let () = assert (offsetof xmem_pool_options_size = 0)
let () = assert (offsetof xmem_pool_options_flags = 8)
let () = assert (offsetof xmem_pool_options_slots = 12)
let () = assert (offsetof xmem_pool_options_clients = 16)
let () = assert (offsetof xmem_pool_options_ring_entries = 20)
let () = assert (offsetof xmem_pool_options_wait_bound_ns = 24)
let () = assert (offsetof xmem_pool_options_label = 32)
let () = assert (offsetof xmem_pool_options_demand_bytes = 40)
let () = assert (offsetof xmem_pool_options_cache_bytes = 48)
let () = assert (offsetof xmem_pool_options_cache_ns = 56)
let () = assert (offsetof xmem_pool_options_memory = 64)
let () = assert (offsetof xmem_pool_options_keep = 68)
let () = assert (offsetof xmem_pool_options_mode = 72)
let () = assert (offsetof xmem_pool_options_gid = 76)
let () = assert (offsetof xmem_pool_options_fd = 80)
let () = assert (offsetof xmem_pool_options_reserved = 84)
let const_xmem_pool_options_p = typedef (ptr xmem_pool_options) "const struct xmem_pool_options *"

type xmem_subscribe_options
let xmem_subscribe_options : xmem_subscribe_options structure typ = structure "xmem_subscribe_options"
let xmem_subscribe_options_size = field xmem_subscribe_options "size" size_t
let xmem_subscribe_options_flags = field xmem_subscribe_options "flags" uint32_t
let xmem_subscribe_options_publisher = field xmem_subscribe_options "publisher" uint32_t
let xmem_subscribe_options_timeout_ns = field xmem_subscribe_options "timeout_ns" int64_t
let xmem_subscribe_options_history = field xmem_subscribe_options "history" uint32_t
let xmem_subscribe_options_depth = field xmem_subscribe_options "depth" uint32_t
let xmem_subscribe_options_label = field xmem_subscribe_options "label" (ptr char)
let () = seal xmem_subscribe_options; assert (sizeof xmem_subscribe_options = 40)
let () = assert (offsetof xmem_subscribe_options_size = 0)
let () = assert (offsetof xmem_subscribe_options_flags = 8)
let () = assert (offsetof xmem_subscribe_options_publisher = 12)
let () = assert (offsetof xmem_subscribe_options_timeout_ns = 16)
let () = assert (offsetof xmem_subscribe_options_history = 24)
let () = assert (offsetof xmem_subscribe_options_depth = 28)
let () = assert (offsetof xmem_subscribe_options_label = 32)
let const_xmem_subscribe_options_p = typedef (ptr xmem_subscribe_options) "const struct xmem_subscribe_options *"

type xmem_subscription_info
let xmem_subscription_info : xmem_subscription_info structure typ = structure "xmem_subscription_info"
let xmem_subscription_info_size = field xmem_subscription_info "size" size_t
let xmem_subscription_info_publisher = field xmem_subscription_info "publisher" uint32_t
let xmem_subscription_info_follows = field xmem_subscription_info "follows" uint32_t
let xmem_subscription_info_lost = field xmem_subscription_info "lost" uint64_t
let xmem_subscription_info_behind = field xmem_subscription_info "behind" uint64_t
let () = seal xmem_subscription_info; assert (sizeof xmem_subscription_info = 32)
let () = assert (offsetof xmem_subscription_info_size = 0)
let () = assert (offsetof xmem_subscription_info_publisher = 8)
let () = assert (offsetof xmem_subscription_info_follows = 12)
let () = assert (offsetof xmem_subscription_info_lost = 16)
let () = assert (offsetof xmem_subscription_info_behind = 24)
let const_xmem_subscription_info_p = typedef (ptr xmem_subscription_info) "const struct xmem_subscription_info *"

type xmem_buffer_info
let xmem_buffer_info : xmem_buffer_info structure typ = structure "xmem_buffer_info"
let xmem_buffer_info_size = field xmem_buffer_info "size" size_t
let xmem_buffer_info_flags = field xmem_buffer_info "flags" uint32_t
let xmem_buffer_info_slot = field xmem_buffer_info "slot" uint32_t
let xmem_buffer_info_token = field xmem_buffer_info "token" uint64_t
let xmem_buffer_info_sequence = field xmem_buffer_info "sequence" uint64_t
let xmem_buffer_info_timestamp_ns = field xmem_buffer_info "timestamp_ns" uint64_t
let xmem_buffer_info_bytes = field xmem_buffer_info "bytes" uint64_t
let xmem_buffer_info_capacity = field xmem_buffer_info "capacity" uint64_t
let xmem_buffer_info_publisher = field xmem_buffer_info "publisher" uint32_t
let xmem_buffer_info_label = field xmem_buffer_info "label" (array 16 char)
let xmem_buffer_info_reserved = field xmem_buffer_info "reserved" uint32_t
let () = seal xmem_buffer_info; assert (sizeof xmem_buffer_info = 80)
let () = assert (offsetof xmem_buffer_info_size = 0)
let () = assert (offsetof xmem_buffer_info_flags = 8)
let () = assert (offsetof xmem_buffer_info_slot = 12)
let () = assert (offsetof xmem_buffer_info_token = 16)
let () = assert (offsetof xmem_buffer_info_sequence = 24)
let () = assert (offsetof xmem_buffer_info_timestamp_ns = 32)
let () = assert (offsetof xmem_buffer_info_bytes = 40)
let () = assert (offsetof xmem_buffer_info_capacity = 48)
let () = assert (offsetof xmem_buffer_info_publisher = 56)
let () = assert (offsetof xmem_buffer_info_label = 60)
let () = assert (offsetof xmem_buffer_info_reserved = 76)
let const_xmem_buffer_info_p = typedef (ptr xmem_buffer_info) "const struct xmem_buffer_info *"

type xmem_publish_options
let xmem_publish_options : xmem_publish_options structure typ = structure "xmem_publish_options"
let xmem_publish_options_size = field xmem_publish_options "size" size_t
let xmem_publish_options_flags = field xmem_publish_options "flags" uint32_t
let xmem_publish_options_client = field xmem_publish_options "client" uint32_t
let xmem_publish_options_timestamp_ns = field xmem_publish_options "timestamp_ns" uint64_t
let xmem_publish_options_offset = field xmem_publish_options "offset" uint64_t
let xmem_publish_options_length = field xmem_publish_options "length" uint64_t
let xmem_publish_options_timeout_ns = field xmem_publish_options "timeout_ns" int64_t
let xmem_publish_options_stream = field xmem_publish_options "stream" (ptr void)
let () = seal xmem_publish_options; assert (sizeof xmem_publish_options = 56)
let () = assert (offsetof xmem_publish_options_size = 0)
let () = assert (offsetof xmem_publish_options_flags = 8)
let () = assert (offsetof xmem_publish_options_client = 12)
let () = assert (offsetof xmem_publish_options_timestamp_ns = 16)
let () = assert (offsetof xmem_publish_options_offset = 24)
let () = assert (offsetof xmem_publish_options_length = 32)
let () = assert (offsetof xmem_publish_options_timeout_ns = 40)
let () = assert (offsetof xmem_publish_options_stream = 48)
let const_xmem_publish_options_p = typedef (ptr xmem_publish_options) "const struct xmem_publish_options *"

type xmem_preallocate_options
let xmem_preallocate_options : xmem_preallocate_options structure typ = structure "xmem_preallocate_options"
let xmem_preallocate_options_size = field xmem_preallocate_options "size" size_t
let xmem_preallocate_options_flags = field xmem_preallocate_options "flags" uint32_t
let xmem_preallocate_options_device_id = field xmem_preallocate_options "device_id" int32_t
let xmem_preallocate_options_ret_slots = field xmem_preallocate_options "ret_slots" (ptr void)
let () = seal xmem_preallocate_options; assert (sizeof xmem_preallocate_options = 24)
let () = assert (offsetof xmem_preallocate_options_size = 0)
let () = assert (offsetof xmem_preallocate_options_flags = 8)
let () = assert (offsetof xmem_preallocate_options_device_id = 12)
let () = assert (offsetof xmem_preallocate_options_ret_slots = 16)
let const_xmem_preallocate_options_p = typedef (ptr xmem_preallocate_options) "const struct xmem_preallocate_options *"

type xmem_limbo
let xmem_limbo : xmem_limbo structure typ = structure "xmem_limbo"
let xmem_limbo_size = field xmem_limbo "size" size_t
let xmem_limbo_ended = field xmem_limbo "ended" uint32_t
let xmem_limbo_overdue = field xmem_limbo "overdue" uint32_t
let xmem_limbo_bytes_ended = field xmem_limbo "bytes_ended" uint64_t
let xmem_limbo_bytes_overdue = field xmem_limbo "bytes_overdue" uint64_t
let xmem_limbo_ended_age_ns = field xmem_limbo "ended_age_ns" uint64_t
let xmem_limbo_overdue_age_ns = field xmem_limbo "overdue_age_ns" uint64_t
let () = seal xmem_limbo; assert (sizeof xmem_limbo = 48)
let () = assert (offsetof xmem_limbo_size = 0)
let () = assert (offsetof xmem_limbo_ended = 8)
let () = assert (offsetof xmem_limbo_overdue = 12)
let () = assert (offsetof xmem_limbo_bytes_ended = 16)
let () = assert (offsetof xmem_limbo_bytes_overdue = 24)
let () = assert (offsetof xmem_limbo_ended_age_ns = 32)
let () = assert (offsetof xmem_limbo_overdue_age_ns = 40)
let const_xmem_limbo_p = typedef (ptr xmem_limbo) "const struct xmem_limbo *"

type xmem_cuda_info
let xmem_cuda_info : xmem_cuda_info structure typ = structure "xmem_cuda_info"
let xmem_cuda_info_size = field xmem_cuda_info "size" size_t
let xmem_cuda_info_version = field xmem_cuda_info "version" uint32_t
let xmem_cuda_info_devices = field xmem_cuda_info "devices" uint32_t
let xmem_cuda_info_file = field xmem_cuda_info "file" (array 256 char)
let xmem_cuda_info_hip = field xmem_cuda_info "hip" uint32_t
let xmem_cuda_info_reserved = field xmem_cuda_info "reserved" uint32_t
let () = seal xmem_cuda_info; assert (sizeof xmem_cuda_info = 280)
let () = assert (offsetof xmem_cuda_info_size = 0)
let () = assert (offsetof xmem_cuda_info_version = 8)
let () = assert (offsetof xmem_cuda_info_devices = 12)
let () = assert (offsetof xmem_cuda_info_file = 16)
let () = assert (offsetof xmem_cuda_info_hip = 272)
let () = assert (offsetof xmem_cuda_info_reserved = 276)
let const_xmem_cuda_info_p = typedef (ptr xmem_cuda_info) "const struct xmem_cuda_info *"

type xmem_cuda_device_info
let xmem_cuda_device_info : xmem_cuda_device_info structure typ = structure "xmem_cuda_device_info"
let xmem_cuda_device_info_size = field xmem_cuda_device_info "size" size_t
let xmem_cuda_device_info_device_id = field xmem_cuda_device_info "device_id" int32_t
let xmem_cuda_device_info_can = field xmem_cuda_device_info "can" uint32_t
let xmem_cuda_device_info_bytes = field xmem_cuda_device_info "bytes" uint64_t
let xmem_cuda_device_info_granularity = field xmem_cuda_device_info "granularity" uint64_t
let xmem_cuda_device_info_capability = field xmem_cuda_device_info "capability" uint32_t
let xmem_cuda_device_info_reserved = field xmem_cuda_device_info "reserved" uint32_t
let xmem_cuda_device_info_uuid = field xmem_cuda_device_info "uuid" (array 16 uint8_t)
let xmem_cuda_device_info_name = field xmem_cuda_device_info "name" (array 128 char)
let () = seal xmem_cuda_device_info; assert (sizeof xmem_cuda_device_info = 184)
let () = assert (offsetof xmem_cuda_device_info_size = 0)
let () = assert (offsetof xmem_cuda_device_info_device_id = 8)
let () = assert (offsetof xmem_cuda_device_info_can = 12)
let () = assert (offsetof xmem_cuda_device_info_bytes = 16)
let () = assert (offsetof xmem_cuda_device_info_granularity = 24)
let () = assert (offsetof xmem_cuda_device_info_capability = 32)
let () = assert (offsetof xmem_cuda_device_info_reserved = 36)
let () = assert (offsetof xmem_cuda_device_info_uuid = 40)
let () = assert (offsetof xmem_cuda_device_info_name = 56)
let const_xmem_cuda_device_info_p = typedef (ptr xmem_cuda_device_info) "const struct xmem_cuda_device_info *"

type xmem_pool_info
let xmem_pool_info : xmem_pool_info structure typ = structure "xmem_pool_info"
let xmem_pool_info_size = field xmem_pool_info "size" size_t
let xmem_pool_info_slots = field xmem_pool_info "slots" uint32_t
let xmem_pool_info_attached = field xmem_pool_info "attached" uint32_t
let xmem_pool_info_free = field xmem_pool_info "free" uint32_t
let xmem_pool_info_writing = field xmem_pool_info "writing" uint32_t
let xmem_pool_info_live = field xmem_pool_info "live" uint32_t
let xmem_pool_info_held = field xmem_pool_info "held" uint32_t
let xmem_pool_info_limbo = field xmem_pool_info "limbo" uint32_t
let xmem_pool_info_clients = field xmem_pool_info "clients" uint32_t
let xmem_pool_info_zombies = field xmem_pool_info "zombies" uint32_t
let xmem_pool_info_clients_max = field xmem_pool_info "clients_max" uint32_t
let xmem_pool_info_ring_entries = field xmem_pool_info "ring_entries" uint32_t
let xmem_pool_info_reserved = field xmem_pool_info "reserved" uint32_t
let xmem_pool_info_holds = field xmem_pool_info "holds" uint64_t
let xmem_pool_info_bytes = field xmem_pool_info "bytes" uint64_t
let xmem_pool_info_bytes_files = field xmem_pool_info "bytes_files" uint64_t
let xmem_pool_info_bytes_kept = field xmem_pool_info "bytes_kept" uint64_t
let xmem_pool_info_bytes_mapped = field xmem_pool_info "bytes_mapped" uint64_t
let xmem_pool_info_payloads = field xmem_pool_info "payloads" uint32_t
let xmem_pool_info_reserved1 = field xmem_pool_info "reserved1" uint32_t
let xmem_pool_info_stale_handles = field xmem_pool_info "stale_handles" uint64_t
let xmem_pool_info_bytes_huge = field xmem_pool_info "bytes_huge" uint64_t
let xmem_pool_info_bytes_advised = field xmem_pool_info "bytes_advised" uint64_t
let xmem_pool_info_claims = field xmem_pool_info "claims" uint64_t
let xmem_pool_info_claimed = field xmem_pool_info "claimed" uint32_t
let xmem_pool_info_overdue = field xmem_pool_info "overdue" uint32_t
let xmem_pool_info_bytes_limbo = field xmem_pool_info "bytes_limbo" uint64_t
let xmem_pool_info_limbo_age_ns = field xmem_pool_info "limbo_age_ns" uint64_t
let xmem_pool_info_bytes_overdue = field xmem_pool_info "bytes_overdue" uint64_t
let xmem_pool_info_overdue_age_ns = field xmem_pool_info "overdue_age_ns" uint64_t
let xmem_pool_info_bytes_cuda = field xmem_pool_info "bytes_cuda" uint64_t
let xmem_pool_info_bytes_closing = field xmem_pool_info "bytes_closing" uint64_t
let () = seal xmem_pool_info; assert (sizeof xmem_pool_info = 192)
let () = assert (offsetof xmem_pool_info_size = 0)
let () = assert (offsetof xmem_pool_info_slots = 8)
let () = assert (offsetof xmem_pool_info_attached = 12)
let () = assert (offsetof xmem_pool_info_free = 16)
let () = assert (offsetof xmem_pool_info_writing = 20)
let () = assert (offsetof xmem_pool_info_live = 24)
let () = assert (offsetof xmem_pool_info_held = 28)
let () = assert (offsetof xmem_pool_info_limbo = 32)
let () = assert (offsetof xmem_pool_info_clients = 36)
let () = assert (offsetof xmem_pool_info_zombies = 40)
let () = assert (offsetof xmem_pool_info_clients_max = 44)
let () = assert (offsetof xmem_pool_info_ring_entries = 48)
let () = assert (offsetof xmem_pool_info_reserved = 52)
let () = assert (offsetof xmem_pool_info_holds = 56)
let () = assert (offsetof xmem_pool_info_bytes = 64)
let () = assert (offsetof xmem_pool_info_bytes_files = 72)
let () = assert (offsetof xmem_pool_info_bytes_kept = 80)
let () = assert (offsetof xmem_pool_info_bytes_mapped = 88)
let () = assert (offsetof xmem_pool_info_payloads = 96)
let () = assert (offsetof xmem_pool_info_reserved1 = 100)
let () = assert (offsetof xmem_pool_info_stale_handles = 104)
let () = assert (offsetof xmem_pool_info_bytes_huge = 112)
let () = assert (offsetof xmem_pool_info_bytes_advised = 120)
let () = assert (offsetof xmem_pool_info_claims = 128)
let () = assert (offsetof xmem_pool_info_claimed = 136)
let () = assert (offsetof xmem_pool_info_overdue = 140)
let () = assert (offsetof xmem_pool_info_bytes_limbo = 144)
let () = assert (offsetof xmem_pool_info_limbo_age_ns = 152)
let () = assert (offsetof xmem_pool_info_bytes_overdue = 160)
let () = assert (offsetof xmem_pool_info_overdue_age_ns = 168)
let () = assert (offsetof xmem_pool_info_bytes_cuda = 176)
let () = assert (offsetof xmem_pool_info_bytes_closing = 184)
let const_xmem_pool_info_p = typedef (ptr xmem_pool_info) "const struct xmem_pool_info *"

type xmem_client_info
let xmem_client_info : xmem_client_info structure typ = structure "xmem_client_info"
let xmem_client_info_size = field xmem_client_info "size" size_t
let xmem_client_info_id = field xmem_client_info "id" uint32_t
let xmem_client_info_role = field xmem_client_info "role" uint32_t
let xmem_client_info_alive = field xmem_client_info "alive" uint32_t
let xmem_client_info_pid = field xmem_client_info "pid" uint32_t
let xmem_client_info_uid = field xmem_client_info "uid" uint32_t
let xmem_client_info_slots = field xmem_client_info "slots" uint32_t
let xmem_client_info_incarnation = field xmem_client_info "incarnation" uint64_t
let xmem_client_info_wait_bound_ns = field xmem_client_info "wait_bound_ns" uint64_t
let xmem_client_info_holds = field xmem_client_info "holds" uint64_t
let xmem_client_info_label = field xmem_client_info "label" (array 16 char)
let xmem_client_info_follows = field xmem_client_info "follows" uint32_t
let xmem_client_info_followers = field xmem_client_info "followers" uint32_t
let xmem_client_info_behind = field xmem_client_info "behind" uint64_t
let xmem_client_info_bytes_mapped = field xmem_client_info "bytes_mapped" uint64_t
let xmem_client_info_bytes_kept = field xmem_client_info "bytes_kept" uint64_t
let xmem_client_info_limbo = field xmem_client_info "limbo" uint32_t
let xmem_client_info_awaits_writer = field xmem_client_info "awaits_writer" uint32_t
let xmem_client_info_bytes_limbo = field xmem_client_info "bytes_limbo" uint64_t
let xmem_client_info_bytes_ended = field xmem_client_info "bytes_ended" uint64_t
let () = seal xmem_client_info; assert (sizeof xmem_client_info = 128)
let () = assert (offsetof xmem_client_info_size = 0)
let () = assert (offsetof xmem_client_info_id = 8)
let () = assert (offsetof xmem_client_info_role = 12)
let () = assert (offsetof xmem_client_info_alive = 16)
let () = assert (offsetof xmem_client_info_pid = 20)
let () = assert (offsetof xmem_client_info_uid = 24)
let () = assert (offsetof xmem_client_info_slots = 28)
let () = assert (offsetof xmem_client_info_incarnation = 32)
let () = assert (offsetof xmem_client_info_wait_bound_ns = 40)
let () = assert (offsetof xmem_client_info_holds = 48)
let () = assert (offsetof xmem_client_info_label = 56)
let () = assert (offsetof xmem_client_info_follows = 72)
let () = assert (offsetof xmem_client_info_followers = 76)
let () = assert (offsetof xmem_client_info_behind = 80)
let () = assert (offsetof xmem_client_info_bytes_mapped = 88)
let () = assert (offsetof xmem_client_info_bytes_kept = 96)
let () = assert (offsetof xmem_client_info_limbo = 104)
let () = assert (offsetof xmem_client_info_awaits_writer = 108)
let () = assert (offsetof xmem_client_info_bytes_limbo = 112)
let () = assert (offsetof xmem_client_info_bytes_ended = 120)
let const_xmem_client_info_p = typedef (ptr xmem_client_info) "const struct xmem_client_info *"

type xmem_subscriber_info
let xmem_subscriber_info : xmem_subscriber_info structure typ = structure "xmem_subscriber_info"
let xmem_subscriber_info_size = field xmem_subscriber_info "size" size_t
let xmem_subscriber_info_client = field xmem_subscriber_info "client" uint32_t
let xmem_subscriber_info_waits = field xmem_subscriber_info "waits" uint32_t
let xmem_subscriber_info_incarnation = field xmem_subscriber_info "incarnation" uint64_t
let xmem_subscriber_info_behind = field xmem_subscriber_info "behind" uint64_t
let xmem_subscriber_info_demoted = field xmem_subscriber_info "demoted" uint32_t
let xmem_subscriber_info_reserved = field xmem_subscriber_info "reserved" uint32_t
let xmem_subscriber_info_label = field xmem_subscriber_info "label" (array 16 char)
let () = seal xmem_subscriber_info; assert (sizeof xmem_subscriber_info = 56)
let () = assert (offsetof xmem_subscriber_info_size = 0)
let () = assert (offsetof xmem_subscriber_info_client = 8)
let () = assert (offsetof xmem_subscriber_info_waits = 12)
let () = assert (offsetof xmem_subscriber_info_incarnation = 16)
let () = assert (offsetof xmem_subscriber_info_behind = 24)
let () = assert (offsetof xmem_subscriber_info_demoted = 32)
let () = assert (offsetof xmem_subscriber_info_reserved = 36)
let () = assert (offsetof xmem_subscriber_info_label = 40)
let const_xmem_subscriber_info_p = typedef (ptr xmem_subscriber_info) "const struct xmem_subscriber_info *"

type xmem_slot_info
let xmem_slot_info : xmem_slot_info structure typ = structure "xmem_slot_info"
let xmem_slot_info_size = field xmem_slot_info "size" size_t
let xmem_slot_info_slot = field xmem_slot_info "slot" uint32_t
let xmem_slot_info_state = field xmem_slot_info "state" uint32_t
let xmem_slot_info_owner = field xmem_slot_info "owner" uint32_t
let xmem_slot_info_device = field xmem_slot_info "device" uint32_t
let xmem_slot_info_token = field xmem_slot_info "token" uint64_t
let xmem_slot_info_bytes = field xmem_slot_info "bytes" uint64_t
let xmem_slot_info_holds = field xmem_slot_info "holds" uint64_t
let xmem_slot_info_position = field xmem_slot_info "position" uint64_t
let xmem_slot_info_payload = field xmem_slot_info "payload" uint64_t
let xmem_slot_info_payload_bytes = field xmem_slot_info "payload_bytes" uint64_t
let xmem_slot_info_claims = field xmem_slot_info "claims" uint32_t
let xmem_slot_info_upgrader = field xmem_slot_info "upgrader" uint32_t
let xmem_slot_info_overdue = field xmem_slot_info "overdue" uint32_t
let xmem_slot_info_reserved = field xmem_slot_info "reserved" uint32_t
let () = seal xmem_slot_info; assert (sizeof xmem_slot_info = 88)
let () = assert (offsetof xmem_slot_info_size = 0)
let () = assert (offsetof xmem_slot_info_slot = 8)
let () = assert (offsetof xmem_slot_info_state = 12)
let () = assert (offsetof xmem_slot_info_owner = 16)
let () = assert (offsetof xmem_slot_info_device = 20)
let () = assert (offsetof xmem_slot_info_token = 24)
let () = assert (offsetof xmem_slot_info_bytes = 32)
let () = assert (offsetof xmem_slot_info_holds = 40)
let () = assert (offsetof xmem_slot_info_position = 48)
let () = assert (offsetof xmem_slot_info_payload = 56)
let () = assert (offsetof xmem_slot_info_payload_bytes = 64)
let () = assert (offsetof xmem_slot_info_claims = 72)
let () = assert (offsetof xmem_slot_info_upgrader = 76)
let () = assert (offsetof xmem_slot_info_overdue = 80)
let () = assert (offsetof xmem_slot_info_reserved = 84)
let const_xmem_slot_info_p = typedef (ptr xmem_slot_info) "const struct xmem_slot_info *"

type xmem_device_info
let xmem_device_info : xmem_device_info structure typ = structure "xmem_device_info"
let xmem_device_info_size = field xmem_device_info "size" size_t
let xmem_device_info_device = field xmem_device_info "device" uint32_t
let xmem_device_info_reserved = field xmem_device_info "reserved" uint32_t
let xmem_device_info_uuid = field xmem_device_info "uuid" (array 16 uint8_t)
let xmem_device_info_bytes = field xmem_device_info "bytes" uint64_t
let xmem_device_info_bytes_closing = field xmem_device_info "bytes_closing" uint64_t
let () = seal xmem_device_info; assert (sizeof xmem_device_info = 48)
let () = assert (offsetof xmem_device_info_size = 0)
let () = assert (offsetof xmem_device_info_device = 8)
let () = assert (offsetof xmem_device_info_reserved = 12)
let () = assert (offsetof xmem_device_info_uuid = 16)
let () = assert (offsetof xmem_device_info_bytes = 32)
let () = assert (offsetof xmem_device_info_bytes_closing = 40)
let const_xmem_device_info_p = typedef (ptr xmem_device_info) "const struct xmem_device_info *"

type xmem_host_info
let xmem_host_info : xmem_host_info structure typ = structure "xmem_host_info"
let xmem_host_info_size = field xmem_host_info "size" size_t
let xmem_host_info_abi = field xmem_host_info "abi" uint32_t
let xmem_host_info_abi_oldest = field xmem_host_info "abi_oldest" uint32_t
let xmem_host_info_features = field xmem_host_info "features" uint64_t
let xmem_host_info_max_slots = field xmem_host_info "max_slots" uint32_t
let xmem_host_info_max_clients = field xmem_host_info "max_clients" uint32_t
let xmem_host_info_max_ring_entries = field xmem_host_info "max_ring_entries" uint32_t
let xmem_host_info_group_slots = field xmem_host_info "group_slots" uint32_t
let xmem_host_info_max_pools = field xmem_host_info "max_pools" uint32_t
let xmem_host_info_max_payloads = field xmem_host_info "max_payloads" uint32_t
let xmem_host_info_pools = field xmem_host_info "pools" uint32_t
let xmem_host_info_reserved = field xmem_host_info "reserved" uint32_t
let xmem_host_info_backend = field xmem_host_info "backend" (array 16 char)
let xmem_host_info_version = field xmem_host_info "version" (array 16 char)
let () = seal xmem_host_info; assert (sizeof xmem_host_info = 88)
let () = assert (offsetof xmem_host_info_size = 0)
let () = assert (offsetof xmem_host_info_abi = 8)
let () = assert (offsetof xmem_host_info_abi_oldest = 12)
let () = assert (offsetof xmem_host_info_features = 16)
let () = assert (offsetof xmem_host_info_max_slots = 24)
let () = assert (offsetof xmem_host_info_max_clients = 28)
let () = assert (offsetof xmem_host_info_max_ring_entries = 32)
let () = assert (offsetof xmem_host_info_group_slots = 36)
let () = assert (offsetof xmem_host_info_max_pools = 40)
let () = assert (offsetof xmem_host_info_max_payloads = 44)
let () = assert (offsetof xmem_host_info_pools = 48)
let () = assert (offsetof xmem_host_info_reserved = 52)
let () = assert (offsetof xmem_host_info_backend = 56)
let () = assert (offsetof xmem_host_info_version = 72)
let const_xmem_host_info_p = typedef (ptr xmem_host_info) "const struct xmem_host_info *"

type xmem_limit_info
let xmem_limit_info : xmem_limit_info structure typ = structure "xmem_limit_info"
let xmem_limit_info_size = field xmem_limit_info "size" size_t
let xmem_limit_info_number = field xmem_limit_info "number" uint32_t
let xmem_limit_info_scope = field xmem_limit_info "scope" uint32_t
let xmem_limit_info_uid = field xmem_limit_info "uid" uint32_t
let xmem_limit_info_in_bytes = field xmem_limit_info "in_bytes" uint32_t
let xmem_limit_info_used = field xmem_limit_info "used" uint64_t
let xmem_limit_info_most = field xmem_limit_info "most" uint64_t
let xmem_limit_info_name = field xmem_limit_info "name" (array 24 char)
let xmem_limit_info_what = field xmem_limit_info "what" (array 40 char)
let () = seal xmem_limit_info; assert (sizeof xmem_limit_info = 104)
let () = assert (offsetof xmem_limit_info_size = 0)
let () = assert (offsetof xmem_limit_info_number = 8)
let () = assert (offsetof xmem_limit_info_scope = 12)
let () = assert (offsetof xmem_limit_info_uid = 16)
let () = assert (offsetof xmem_limit_info_in_bytes = 20)
let () = assert (offsetof xmem_limit_info_used = 24)
let () = assert (offsetof xmem_limit_info_most = 32)
let () = assert (offsetof xmem_limit_info_name = 40)
let () = assert (offsetof xmem_limit_info_what = 64)
let const_xmem_limit_info_p = typedef (ptr xmem_limit_info) "const struct xmem_limit_info *"

type xmem_pool_entry
let xmem_pool_entry : xmem_pool_entry structure typ = structure "xmem_pool_entry"
let xmem_pool_entry_size = field xmem_pool_entry "size" size_t
let xmem_pool_entry_number = field xmem_pool_entry "number" uint64_t
let xmem_pool_entry_name = field xmem_pool_entry "name" (array 136 char)
let xmem_pool_entry_owner_uid = field xmem_pool_entry "owner_uid" uint32_t
let xmem_pool_entry_slots = field xmem_pool_entry "slots" uint32_t
let xmem_pool_entry_clients_max = field xmem_pool_entry "clients_max" uint32_t
let xmem_pool_entry_clients = field xmem_pool_entry "clients" uint32_t
let xmem_pool_entry_ring_entries = field xmem_pool_entry "ring_entries" uint32_t
let xmem_pool_entry_reserved = field xmem_pool_entry "reserved" uint32_t
let xmem_pool_entry_bytes = field xmem_pool_entry "bytes" uint64_t
let xmem_pool_entry_bytes_files = field xmem_pool_entry "bytes_files" uint64_t
let xmem_pool_entry_bytes_kept = field xmem_pool_entry "bytes_kept" uint64_t
let xmem_pool_entry_payloads = field xmem_pool_entry "payloads" uint32_t
let xmem_pool_entry_mode = field xmem_pool_entry "mode" uint32_t
let xmem_pool_entry_gid = field xmem_pool_entry "gid" uint32_t
let xmem_pool_entry_roles = field xmem_pool_entry "roles" uint32_t
let () = seal xmem_pool_entry; assert (sizeof xmem_pool_entry = 216)
let () = assert (offsetof xmem_pool_entry_size = 0)
let () = assert (offsetof xmem_pool_entry_number = 8)
let () = assert (offsetof xmem_pool_entry_name = 16)
let () = assert (offsetof xmem_pool_entry_owner_uid = 152)
let () = assert (offsetof xmem_pool_entry_slots = 156)
let () = assert (offsetof xmem_pool_entry_clients_max = 160)
let () = assert (offsetof xmem_pool_entry_clients = 164)
let () = assert (offsetof xmem_pool_entry_ring_entries = 168)
let () = assert (offsetof xmem_pool_entry_reserved = 172)
let () = assert (offsetof xmem_pool_entry_bytes = 176)
let () = assert (offsetof xmem_pool_entry_bytes_files = 184)
let () = assert (offsetof xmem_pool_entry_bytes_kept = 192)
let () = assert (offsetof xmem_pool_entry_payloads = 200)
let () = assert (offsetof xmem_pool_entry_mode = 204)
let () = assert (offsetof xmem_pool_entry_gid = 208)
let () = assert (offsetof xmem_pool_entry_roles = 212)
let const_xmem_pool_entry_p = typedef (ptr xmem_pool_entry) "const struct xmem_pool_entry *"

type xmem_service_options
let xmem_service_options : xmem_service_options structure typ = structure "xmem_service_options"
let xmem_service_options_size = field xmem_service_options "size" size_t
let xmem_service_options_flags = field xmem_service_options "flags" uint32_t
let xmem_service_options_reserved = field xmem_service_options "reserved" uint32_t
let xmem_service_options_pool = field xmem_service_options "pool" (ptr void)
let xmem_service_options_timeout_ns = field xmem_service_options "timeout_ns" int64_t
let () = seal xmem_service_options; assert (sizeof xmem_service_options = 32)
let () = assert (offsetof xmem_service_options_size = 0)
let () = assert (offsetof xmem_service_options_flags = 8)
let () = assert (offsetof xmem_service_options_reserved = 12)
let () = assert (offsetof xmem_service_options_pool = 16)
let () = assert (offsetof xmem_service_options_timeout_ns = 24)
let const_xmem_service_options_p = typedef (ptr xmem_service_options) "const struct xmem_service_options *"

type xmem_response
let xmem_response : xmem_response structure typ = structure "xmem_response"
let xmem_response_size = field xmem_response "size" size_t
let xmem_response_call = field xmem_response "call" uint64_t
let xmem_response_more = field xmem_response "more" uint32_t
let xmem_response_refused = field xmem_response "refused" uint32_t
let () = seal xmem_response; assert (sizeof xmem_response = 24)
let () = assert (offsetof xmem_response_size = 0)
let () = assert (offsetof xmem_response_call = 8)
let () = assert (offsetof xmem_response_more = 16)
let () = assert (offsetof xmem_response_refused = 20)
let const_xmem_response_p = typedef (ptr xmem_response) "const struct xmem_response *"

type xmem_strings
let xmem_strings : xmem_strings structure typ = structure "xmem_strings"
let xmem_strings_size = field xmem_strings "size" size_t
let xmem_strings_flags = field xmem_strings "flags" uint32_t
let xmem_strings_device_id = field xmem_strings "device_id" int32_t
let xmem_strings_data = field xmem_strings "data" (ptr void)
let xmem_strings_rows = field xmem_strings "rows" uint64_t
let xmem_strings_chars = field xmem_strings "chars" uint64_t
let xmem_strings_bytes = field xmem_strings "bytes" uint64_t
let xmem_strings_validity_at = field xmem_strings "validity_at" uint64_t
let xmem_strings_offsets_at = field xmem_strings "offsets_at" uint64_t
let xmem_strings_chars_at = field xmem_strings "chars_at" uint64_t
let () = seal xmem_strings; assert (sizeof xmem_strings = 72)
let () = assert (offsetof xmem_strings_size = 0)
let () = assert (offsetof xmem_strings_flags = 8)
let () = assert (offsetof xmem_strings_device_id = 12)
let () = assert (offsetof xmem_strings_data = 16)
let () = assert (offsetof xmem_strings_rows = 24)
let () = assert (offsetof xmem_strings_chars = 32)
let () = assert (offsetof xmem_strings_bytes = 40)
let () = assert (offsetof xmem_strings_validity_at = 48)
let () = assert (offsetof xmem_strings_offsets_at = 56)
let () = assert (offsetof xmem_strings_chars_at = 64)
let const_xmem_strings_p = typedef (ptr xmem_strings) "const struct xmem_strings *"

type xmem_source
let xmem_source : xmem_source structure typ = structure "xmem_source"
let xmem_source_size = field xmem_source "size" size_t
let xmem_source_flags = field xmem_source "flags" uint32_t
let xmem_source_reserved = field xmem_source "reserved" uint32_t
let xmem_source_content_type = field xmem_source "content_type" (ptr char)
let xmem_source_producer = field xmem_source "producer" (ptr char)
let xmem_source_timestamp_ns = field xmem_source "timestamp_ns" uint64_t
let xmem_source_clock = field xmem_source "clock" (ptr char)
let () = seal xmem_source; assert (sizeof xmem_source = 48)
let () = assert (offsetof xmem_source_size = 0)
let () = assert (offsetof xmem_source_flags = 8)
let () = assert (offsetof xmem_source_reserved = 12)
let () = assert (offsetof xmem_source_content_type = 16)
let () = assert (offsetof xmem_source_producer = 24)
let () = assert (offsetof xmem_source_timestamp_ns = 32)
let () = assert (offsetof xmem_source_clock = 40)
let const_xmem_source_p = typedef (ptr xmem_source) "const struct xmem_source *"

type xmem_tensor
let xmem_tensor : xmem_tensor structure typ = structure "xmem_tensor"
let xmem_tensor_size = field xmem_tensor "size" size_t
let xmem_tensor_flags = field xmem_tensor "flags" uint32_t
let xmem_tensor_dtype = field xmem_tensor "dtype" uint32_t
let xmem_tensor_ndim = field xmem_tensor "ndim" uint32_t
let xmem_tensor_item_bytes = field xmem_tensor "item_bytes" uint32_t
let xmem_tensor_device_id = field xmem_tensor "device_id" int32_t
let xmem_tensor_reserved = field xmem_tensor "reserved" uint32_t
let xmem_tensor_data = field xmem_tensor "data" (ptr void)
let xmem_tensor_elements = field xmem_tensor "elements" uint64_t
let xmem_tensor_bytes = field xmem_tensor "bytes" uint64_t
let xmem_tensor_shape = field xmem_tensor "shape" (array 8 int64_t)
let xmem_tensor_strides = field xmem_tensor "strides" (array 8 int64_t)
let xmem_tensor_element_strides = field xmem_tensor "element_strides" (array 8 int64_t)
let () = seal xmem_tensor; assert (sizeof xmem_tensor = 248)
let () = assert (offsetof xmem_tensor_size = 0)
let () = assert (offsetof xmem_tensor_flags = 8)
let () = assert (offsetof xmem_tensor_dtype = 12)
let () = assert (offsetof xmem_tensor_ndim = 16)
let () = assert (offsetof xmem_tensor_item_bytes = 20)
let () = assert (offsetof xmem_tensor_device_id = 24)
let () = assert (offsetof xmem_tensor_reserved = 28)
let () = assert (offsetof xmem_tensor_data = 32)
let () = assert (offsetof xmem_tensor_elements = 40)
let () = assert (offsetof xmem_tensor_bytes = 48)
let () = assert (offsetof xmem_tensor_shape = 56)
let () = assert (offsetof xmem_tensor_strides = 120)
let () = assert (offsetof xmem_tensor_element_strides = 184)
let const_xmem_tensor_p = typedef (ptr xmem_tensor) "const struct xmem_tensor *"

type xmem_plane
let xmem_plane : xmem_plane structure typ = structure "xmem_plane"
let xmem_plane_data = field xmem_plane "data" (ptr void)
let xmem_plane_stride = field xmem_plane "stride" size_t
let xmem_plane_row_bytes = field xmem_plane "row_bytes" uint32_t
let xmem_plane_rows = field xmem_plane "rows" uint32_t
let () = seal xmem_plane; assert (sizeof xmem_plane = 24)
let () = assert (offsetof xmem_plane_data = 0)
let () = assert (offsetof xmem_plane_stride = 8)
let () = assert (offsetof xmem_plane_row_bytes = 16)
let () = assert (offsetof xmem_plane_rows = 20)
let const_xmem_plane_p = typedef (ptr xmem_plane) "const struct xmem_plane *"

type xmem_image
let xmem_image : xmem_image structure typ = structure "xmem_image"
let xmem_image_size = field xmem_image "size" size_t
let xmem_image_format = field xmem_image "format" uint32_t
let xmem_image_planes = field xmem_image "planes" uint32_t
let xmem_image_width = field xmem_image "width" uint32_t
let xmem_image_height = field xmem_image "height" uint32_t
let xmem_image_device_id = field xmem_image "device_id" int32_t
let xmem_image_reserved = field xmem_image "reserved" uint32_t
let xmem_image_plane = field xmem_image "plane" (array 4 xmem_plane)
let () = seal xmem_image; assert (sizeof xmem_image = 128)
let () = assert (offsetof xmem_image_size = 0)
let () = assert (offsetof xmem_image_format = 8)
let () = assert (offsetof xmem_image_planes = 12)
let () = assert (offsetof xmem_image_width = 16)
let () = assert (offsetof xmem_image_height = 20)
let () = assert (offsetof xmem_image_device_id = 24)
let () = assert (offsetof xmem_image_reserved = 28)
let () = assert (offsetof xmem_image_plane = 32)
let const_xmem_image_p = typedef (ptr xmem_image) "const struct xmem_image *"

(* Functions that keep the runtime lock. *)
module Fast (F : Cstubs.FOREIGN) = struct
  open F
    let get_last_error = foreign "xmem_get_last_error" ((ptr xmem_error) @-> returning int)
    let peek_last_error = foreign "xmem_peek_last_error" ((ptr xmem_error) @-> returning int)
    let clear_last_error = foreign "xmem_clear_last_error" (void @-> returning void)
    let cancel = foreign "xmem_cancel" (xmem_pool @-> returning int)
    let pool_fd = foreign "xmem_pool_fd" (xmem_pool @-> returning int)
    let pool_fd_narrow = foreign "xmem_pool_fd_narrow" (int @-> camlint @-> returning int)
    let pool_backend = foreign "xmem_pool_backend" (xmem_pool @-> returning const_char_p)
    let pool_client = foreign "xmem_pool_client" (xmem_pool @-> returning int)
    let receive = foreign "xmem_receive" (xmem_subscription @-> int64_t @-> returning xmem_buffer)
    let receive_any = foreign "xmem_receive_any" (xmem_pool @-> int64_t @-> (ptr
      xmem_subscription) @-> returning xmem_buffer)
    let subscription_stat = foreign "xmem_subscription_stat" (xmem_subscription @-> (ptr
      xmem_subscription_info) @-> returning int)
    let size = foreign "xmem_size" (xmem_buffer @-> returning camlint)
    let release = foreign "xmem_release" (xmem_buffer @-> returning void)
    let token = foreign "xmem_token" (xmem_buffer @-> returning uint64_t)
    let get = foreign "xmem_get" (xmem_pool @-> uint64_t @-> returning xmem_buffer)
    let clone = foreign "xmem_clone" (xmem_buffer @-> returning xmem_buffer)
    let slot = foreign "xmem_slot" (xmem_buffer @-> returning int)
    let capacity = foreign "xmem_capacity" (xmem_buffer @-> returning camlint)
    let buffer_stat = foreign "xmem_buffer_stat" (xmem_buffer @-> (ptr xmem_buffer_info) @->
      returning int)
    let metadata_ptr = foreign "xmem_metadata_ptr" (xmem_buffer @-> returning
      const_xmem_metadata_p)
    let metadata_mut = foreign "xmem_metadata_mut" (xmem_buffer @-> returning (ptr xmem_metadata))
    let acquire = foreign "xmem_acquire" (xmem_pool @-> of_size @-> int64_t @-> returning
      xmem_buffer)
    let data_mut = foreign "xmem_data_mut" (xmem_buffer @-> returning (ptr void))
    let publish = foreign "xmem_publish" (xmem_buffer @-> const_xmem_publish_options_p @-> (ptr
      uint64_t) @-> returning int)
    let retract = foreign "xmem_retract" (xmem_pool @-> uint64_t @-> returning int)
    let pool_set_mode = foreign "xmem_pool_set_mode" (xmem_pool @-> camlint @-> camlint @->
      returning int)
    let cuda_query = foreign "xmem_cuda_query" ((ptr xmem_cuda_info) @-> returning int)
    let cuda_device_query = foreign "xmem_cuda_device_query" (int @-> (ptr xmem_cuda_device_info)
      @-> returning int)
    let cuda_device = foreign "xmem_cuda_device" (xmem_buffer @-> returning int)
    let pool_stat = foreign "xmem_pool_stat" (xmem_pool @-> (ptr xmem_pool_info) @-> returning
      int)
    let pool_client_info = foreign "xmem_pool_client_info" (xmem_pool @-> camlint @-> (ptr
      xmem_client_info) @-> returning int)
    let pool_slot_info = foreign "xmem_pool_slot_info" (xmem_pool @-> camlint @-> (ptr
      xmem_slot_info) @-> returning int)
    let pool_device_info = foreign "xmem_pool_device_info" (xmem_pool @-> camlint @-> (ptr
      xmem_device_info) @-> returning int)
    let pool_holds = foreign "xmem_pool_holds" (xmem_pool @-> camlint @-> camlint @-> returning
      int64_t)
    let host_query = foreign "xmem_host_query" ((ptr xmem_host_info) @-> returning int)
    let pool_next = foreign "xmem_pool_next" (uint64_t @-> (ptr xmem_pool_entry) @-> returning
      int)
    let release_on = foreign "xmem_release_on" (xmem_buffer @-> stream @-> returning int)
    let describe_tensor = foreign "xmem_describe_tensor" (xmem_buffer @-> camlint @-> camlint @->
      const_int64_p @-> const_int64_p @-> returning int)
    let describe_image = foreign "xmem_describe_image" (xmem_buffer @-> camlint @-> camlint @->
      camlint @-> of_size @-> returning int)
    let image_bytes = foreign "xmem_image_bytes" (camlint @-> camlint @-> camlint @-> of_size @->
      returning int64_t)
    let strings_plan = foreign "xmem_strings_plan" (uint64_t @-> uint64_t @-> camlint @-> (ptr
      xmem_strings) @-> returning int)
    let describe_strings = foreign "xmem_describe_strings" (xmem_buffer @-> uint64_t @-> uint64_t
      @-> camlint @-> returning int)
    let describe_source = foreign "xmem_describe_source" (xmem_buffer @-> const_xmem_source_p @->
      returning int)
    let metadata_view = foreign "xmem_metadata_view" (xmem_buffer @-> (ptr xmem_metadata) @->
      returning int)
    let image_plane = foreign "xmem_image_plane" (const_xmem_image_p @-> camlint @-> (ptr
      xmem_tensor) @-> returning int)
    let strings_get = foreign "xmem_strings_get" (const_xmem_strings_p @-> uint64_t @-> (ptr
      const_char_p) @-> returning int64_t)
    let tensor_check = foreign "xmem_tensor_check" (const_xmem_metadata_p @-> uint64_t @->
      returning int)
end

(* Functions that release it, because they can wait. *)
module Slow (F : Cstubs.FOREIGN) = struct
  open F
    let pool_open = foreign "xmem_pool_open" (const_char_p @-> const_xmem_pool_options_p @->
      returning xmem_pool)
    let pool_close = foreign "xmem_pool_close" (xmem_pool @-> returning void)
    let pool_poll_fd = foreign "xmem_pool_poll_fd" (xmem_pool @-> returning int)
    let pool_reopen = foreign "xmem_pool_reopen" (xmem_pool @-> returning xmem_pool)
    let subscribe = foreign "xmem_subscribe" (xmem_pool @-> const_xmem_subscribe_options_p @->
      returning xmem_subscription)
    let receive = foreign "xmem_receive" (xmem_subscription @-> int64_t @-> returning xmem_buffer)
    let receive_any = foreign "xmem_receive_any" (xmem_pool @-> int64_t @-> (ptr
      xmem_subscription) @-> returning xmem_buffer)
    let unsubscribe = foreign "xmem_unsubscribe" (xmem_subscription @-> returning void)
    let subscription_poll_fd = foreign "xmem_subscription_poll_fd" (xmem_subscription @->
      returning int)
    let data = foreign "xmem_data" (xmem_buffer @-> returning const_void_p)
    let acquire = foreign "xmem_acquire" (xmem_pool @-> of_size @-> int64_t @-> returning
      xmem_buffer)
    let publish = foreign "xmem_publish" (xmem_buffer @-> const_xmem_publish_options_p @-> (ptr
      uint64_t) @-> returning int)
    let preallocate = foreign "xmem_preallocate" (xmem_pool @-> of_size @-> camlint @->
      const_xmem_preallocate_options_p @-> returning int)
    let collect = foreign "xmem_collect" (xmem_pool @-> uint64_t @-> (ptr uint64_t) @-> returning
      int)
    let pool_evict = foreign "xmem_pool_evict" (xmem_pool @-> camlint @-> uint64_t @-> returning
      int)
    let pool_drain = foreign "xmem_pool_drain" (xmem_pool @-> camlint @-> returning int)
    let pool_grant = foreign "xmem_pool_grant" (xmem_pool @-> camlint @-> uint64_t @-> returning
      int)
    let set_ref_count = foreign "xmem_set_ref_count" (xmem_buffer @-> camlint @-> int64_t @->
      returning int)
    let offer = foreign "xmem_offer" (xmem_buffer @-> camlint @-> int64_t @-> returning int)
    let forget = foreign "xmem_forget" (xmem_buffer @-> returning int)
    let add_ref = foreign "xmem_add_ref" (xmem_pool @-> uint64_t @-> returning int)
    let drop_ref = foreign "xmem_drop_ref" (xmem_pool @-> uint64_t @-> returning int)
    let claims = foreign "xmem_claims" (xmem_pool @-> uint64_t @-> returning int)
    let void_claims = foreign "xmem_void_claims" (xmem_pool @-> uint64_t @-> returning int)
    let copy = foreign "xmem_copy" (xmem_buffer @-> xmem_buffer @-> stream @-> returning int)
    let copy_range = foreign "xmem_copy_range" (xmem_buffer @-> of_size @-> xmem_buffer @->
      of_size @-> of_size @-> stream @-> returning int)
    let copy_from_host = foreign "xmem_copy_from_host" (xmem_buffer @-> of_size @-> const_void_p
      @-> of_size @-> stream @-> returning int)
    let copy_to_host = foreign "xmem_copy_to_host" ((ptr void) @-> xmem_buffer @-> of_size @->
      of_size @-> stream @-> returning int)
    let copy_to = foreign "xmem_copy_to" (xmem_buffer @-> int @-> int64_t @-> returning
      xmem_buffer)
    let data_private = foreign "xmem_data_private" (xmem_buffer @-> returning (ptr void))
    let acquire_cuda = foreign "xmem_acquire_cuda" (xmem_pool @-> of_size @-> int @-> int64_t @->
      returning xmem_buffer)
    let cuda_ptr = foreign "xmem_cuda_ptr" (xmem_buffer @-> returning const_void_p)
    let cuda_ptr_mut = foreign "xmem_cuda_ptr_mut" (xmem_buffer @-> returning (ptr void))
    let cuda_peer = foreign "xmem_cuda_peer" (xmem_buffer @-> int @-> returning int)
    let subscriber_next = foreign "xmem_subscriber_next" (xmem_pool @-> camlint @-> (ptr
      xmem_subscriber_info) @-> returning int)
    let wait_subscribers = foreign "xmem_wait_subscribers" (xmem_pool @-> camlint @-> int64_t @->
      returning int)
    let subscribers_poll_fd = foreign "xmem_subscribers_poll_fd" (xmem_pool @-> returning int)
    let limit_next = foreign "xmem_limit_next" (xmem_pool @-> camlint @-> (ptr xmem_limit_info)
      @-> returning int)
    let attach_fd = foreign "xmem_attach_fd" (xmem_pool @-> int @-> uint64_t @-> uint64_t @->
      camlint @-> returning xmem_buffer)
    let get_mut = foreign "xmem_get_mut" (xmem_buffer @-> returning int)
    let wait_on = foreign "xmem_wait_on" (xmem_buffer @-> stream @-> returning int)
    let wait_contents = foreign "xmem_wait_contents" (xmem_buffer @-> int64_t @-> returning int)
    let tensor_view = foreign "xmem_tensor_view" (xmem_buffer @-> camlint @-> (ptr xmem_tensor)
      @-> returning int)
    let image_view = foreign "xmem_image_view" (xmem_buffer @-> camlint @-> (ptr xmem_image) @->
      returning int)
    let strings_view = foreign "xmem_strings_view" (xmem_buffer @-> camlint @-> (ptr xmem_strings)
      @-> returning int)
end

(* The functions that make handles, and the numbers of the kinds in managed.ml. *)
let makers = [
  "xmem_pool_open", 0;
  "xmem_pool_reopen", 0;
  "xmem_subscribe", 1;
  "xmem_receive", 2;
  "xmem_receive_any", 2;
  "xmem_get", 2;
  "xmem_clone", 2;
  "xmem_acquire", 2;
  "xmem_copy_to", 2;
  "xmem_acquire_cuda", 2;
  "xmem_attach_fd", 2;
]
