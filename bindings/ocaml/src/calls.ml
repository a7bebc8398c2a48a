(* SPDX-License-Identifier: MIT *)
(* A wrapper of each C function. It takes managed handles and returns managed handles.
   Made by bindings/generate.py from the public headers. *)
open Ctypes
module C = Convert
module D = Xmem_descriptions.Descriptions
module M = Managed
module Fast = Managed.Fast
module Slow = Managed.Slow

let plane it =
  { Answers.Plane.data = C.address (getf it D.xmem_plane_data);
    stride = C.size_t (getf it D.xmem_plane_stride);
    row_bytes = C.uint32_t (getf it D.xmem_plane_row_bytes);
    rows = C.uint32_t (getf it D.xmem_plane_rows) }

let metadata it =
  { Answers.Metadata.id = C.uint64_t (getf it D.xmem_metadata_id);
    storage = C.uint32_t (getf it D.xmem_metadata_storage);
    device = C.uint32_t (getf it D.xmem_metadata_device);
    dtype = C.uint32_t (getf it D.xmem_metadata_dtype);
    ndim = C.uint32_t (getf it D.xmem_metadata_ndim);
    shape = C.array C.int64_t (getf it D.xmem_metadata_shape);
    strides = C.array C.int64_t (getf it D.xmem_metadata_strides);
    size = C.uint64_t (getf it D.xmem_metadata_size);
    offset = C.uint64_t (getf it D.xmem_metadata_offset);
    content_type = C.text (getf it D.xmem_metadata_content_type);
    producer = C.text (getf it D.xmem_metadata_producer);
    user = C.array C.uint64_t_wide (getf it D.xmem_metadata_user);
    timestamp_ns = C.uint64_t_wide (getf it D.xmem_metadata_timestamp_ns);
    clock = C.text (getf it D.xmem_metadata_clock);
    image = C.uint32_t (getf it D.xmem_metadata_image);
    order_kind = C.uint32_t (getf it D.xmem_metadata_order_kind);
    order_value = C.uint64_t_wide (getf it D.xmem_metadata_order_value);
    image_width = C.uint32_t (getf it D.xmem_metadata_image_width);
    image_height = C.uint32_t (getf it D.xmem_metadata_image_height);
    image_stride = C.uint64_t (getf it D.xmem_metadata_image_stride);
    column = C.uint32_t (getf it D.xmem_metadata_column);
    column_flags = C.uint32_t (getf it D.xmem_metadata_column_flags);
    column_rows = C.uint64_t (getf it D.xmem_metadata_column_rows);
    column_chars = C.uint64_t (getf it D.xmem_metadata_column_chars) }

let subscription_info it =
  { Answers.Subscription_info.publisher = C.uint32_t (getf it D.xmem_subscription_info_publisher);
    follows = C.uint32_t (getf it D.xmem_subscription_info_follows);
    lost = C.uint64_t (getf it D.xmem_subscription_info_lost);
    behind = C.uint64_t (getf it D.xmem_subscription_info_behind) }

let buffer_info it =
  { Answers.Buffer_info.flags = C.uint32_t (getf it D.xmem_buffer_info_flags);
    slot = C.uint32_t (getf it D.xmem_buffer_info_slot);
    token = C.uint64_t_wide (getf it D.xmem_buffer_info_token);
    sequence = C.uint64_t (getf it D.xmem_buffer_info_sequence);
    timestamp_ns = C.uint64_t_wide (getf it D.xmem_buffer_info_timestamp_ns);
    bytes = C.uint64_t (getf it D.xmem_buffer_info_bytes);
    capacity = C.uint64_t (getf it D.xmem_buffer_info_capacity);
    publisher = C.uint32_t (getf it D.xmem_buffer_info_publisher);
    label = C.text (getf it D.xmem_buffer_info_label) }

let limbo it =
  { Answers.Limbo.ended = C.uint32_t (getf it D.xmem_limbo_ended);
    overdue = C.uint32_t (getf it D.xmem_limbo_overdue);
    bytes_ended = C.uint64_t (getf it D.xmem_limbo_bytes_ended);
    bytes_overdue = C.uint64_t (getf it D.xmem_limbo_bytes_overdue);
    ended_age_ns = C.uint64_t_wide (getf it D.xmem_limbo_ended_age_ns);
    overdue_age_ns = C.uint64_t_wide (getf it D.xmem_limbo_overdue_age_ns) }

let cuda_info it =
  { Answers.Cuda_info.version = C.uint32_t (getf it D.xmem_cuda_info_version);
    devices = C.uint32_t (getf it D.xmem_cuda_info_devices);
    file = C.text (getf it D.xmem_cuda_info_file);
    hip = C.uint32_t (getf it D.xmem_cuda_info_hip) }

let cuda_device_info it =
  { Answers.Cuda_device_info.device_id = C.int32_t (getf it D.xmem_cuda_device_info_device_id);
    can = C.uint32_t (getf it D.xmem_cuda_device_info_can);
    bytes = C.uint64_t (getf it D.xmem_cuda_device_info_bytes);
    granularity = C.uint64_t (getf it D.xmem_cuda_device_info_granularity);
    capability = C.uint32_t (getf it D.xmem_cuda_device_info_capability);
    uuid = C.bytes (getf it D.xmem_cuda_device_info_uuid);
    name = C.text (getf it D.xmem_cuda_device_info_name) }

let pool_info it =
  { Answers.Pool_info.slots = C.uint32_t (getf it D.xmem_pool_info_slots);
    attached = C.uint32_t (getf it D.xmem_pool_info_attached);
    free = C.uint32_t (getf it D.xmem_pool_info_free);
    writing = C.uint32_t (getf it D.xmem_pool_info_writing);
    live = C.uint32_t (getf it D.xmem_pool_info_live);
    held = C.uint32_t (getf it D.xmem_pool_info_held);
    limbo = C.uint32_t (getf it D.xmem_pool_info_limbo);
    clients = C.uint32_t (getf it D.xmem_pool_info_clients);
    zombies = C.uint32_t (getf it D.xmem_pool_info_zombies);
    clients_max = C.uint32_t (getf it D.xmem_pool_info_clients_max);
    ring_entries = C.uint32_t (getf it D.xmem_pool_info_ring_entries);
    holds = C.uint64_t (getf it D.xmem_pool_info_holds);
    bytes = C.uint64_t (getf it D.xmem_pool_info_bytes);
    bytes_files = C.uint64_t (getf it D.xmem_pool_info_bytes_files);
    bytes_kept = C.uint64_t (getf it D.xmem_pool_info_bytes_kept);
    bytes_mapped = C.uint64_t (getf it D.xmem_pool_info_bytes_mapped);
    payloads = C.uint32_t (getf it D.xmem_pool_info_payloads);
    stale_handles = C.uint64_t (getf it D.xmem_pool_info_stale_handles);
    bytes_huge = C.uint64_t (getf it D.xmem_pool_info_bytes_huge);
    bytes_advised = C.uint64_t (getf it D.xmem_pool_info_bytes_advised);
    claims = C.uint64_t (getf it D.xmem_pool_info_claims);
    claimed = C.uint32_t (getf it D.xmem_pool_info_claimed);
    overdue = C.uint32_t (getf it D.xmem_pool_info_overdue);
    bytes_limbo = C.uint64_t (getf it D.xmem_pool_info_bytes_limbo);
    limbo_age_ns = C.uint64_t_wide (getf it D.xmem_pool_info_limbo_age_ns);
    bytes_overdue = C.uint64_t (getf it D.xmem_pool_info_bytes_overdue);
    overdue_age_ns = C.uint64_t_wide (getf it D.xmem_pool_info_overdue_age_ns);
    bytes_cuda = C.uint64_t (getf it D.xmem_pool_info_bytes_cuda);
    bytes_closing = C.uint64_t (getf it D.xmem_pool_info_bytes_closing) }

let client_info it =
  { Answers.Client_info.id = C.uint32_t (getf it D.xmem_client_info_id);
    role = C.uint32_t (getf it D.xmem_client_info_role);
    alive = C.uint32_t (getf it D.xmem_client_info_alive);
    pid = C.uint32_t (getf it D.xmem_client_info_pid);
    uid = C.uint32_t (getf it D.xmem_client_info_uid);
    slots = C.uint32_t (getf it D.xmem_client_info_slots);
    incarnation = C.uint64_t_wide (getf it D.xmem_client_info_incarnation);
    wait_bound_ns = C.uint64_t_wide (getf it D.xmem_client_info_wait_bound_ns);
    holds = C.uint64_t (getf it D.xmem_client_info_holds);
    label = C.text (getf it D.xmem_client_info_label);
    follows = C.uint32_t (getf it D.xmem_client_info_follows);
    followers = C.uint32_t (getf it D.xmem_client_info_followers);
    behind = C.uint64_t (getf it D.xmem_client_info_behind);
    bytes_mapped = C.uint64_t (getf it D.xmem_client_info_bytes_mapped);
    bytes_kept = C.uint64_t (getf it D.xmem_client_info_bytes_kept);
    limbo = C.uint32_t (getf it D.xmem_client_info_limbo);
    awaits_writer = C.uint32_t (getf it D.xmem_client_info_awaits_writer);
    bytes_limbo = C.uint64_t (getf it D.xmem_client_info_bytes_limbo);
    bytes_ended = C.uint64_t (getf it D.xmem_client_info_bytes_ended) }

let subscriber_info it =
  { Answers.Subscriber_info.client = C.uint32_t (getf it D.xmem_subscriber_info_client);
    waits = C.uint32_t (getf it D.xmem_subscriber_info_waits);
    incarnation = C.uint64_t_wide (getf it D.xmem_subscriber_info_incarnation);
    behind = C.uint64_t (getf it D.xmem_subscriber_info_behind);
    demoted = C.uint32_t (getf it D.xmem_subscriber_info_demoted);
    label = C.text (getf it D.xmem_subscriber_info_label) }

let slot_info it =
  { Answers.Slot_info.slot = C.uint32_t (getf it D.xmem_slot_info_slot);
    state = C.uint32_t (getf it D.xmem_slot_info_state);
    owner = C.uint32_t (getf it D.xmem_slot_info_owner);
    device = C.uint32_t (getf it D.xmem_slot_info_device);
    token = C.uint64_t_wide (getf it D.xmem_slot_info_token);
    bytes = C.uint64_t (getf it D.xmem_slot_info_bytes);
    holds = C.uint64_t (getf it D.xmem_slot_info_holds);
    position = C.uint64_t (getf it D.xmem_slot_info_position);
    payload = C.uint64_t (getf it D.xmem_slot_info_payload);
    payload_bytes = C.uint64_t (getf it D.xmem_slot_info_payload_bytes);
    claims = C.uint32_t (getf it D.xmem_slot_info_claims);
    upgrader = C.uint32_t (getf it D.xmem_slot_info_upgrader);
    overdue = C.uint32_t (getf it D.xmem_slot_info_overdue) }

let device_info it =
  { Answers.Device_info.device = C.uint32_t (getf it D.xmem_device_info_device);
    uuid = C.bytes (getf it D.xmem_device_info_uuid);
    bytes = C.uint64_t (getf it D.xmem_device_info_bytes);
    bytes_closing = C.uint64_t (getf it D.xmem_device_info_bytes_closing) }

let host_info it =
  { Answers.Host_info.abi = C.uint32_t (getf it D.xmem_host_info_abi);
    abi_oldest = C.uint32_t (getf it D.xmem_host_info_abi_oldest);
    features = C.uint64_t (getf it D.xmem_host_info_features);
    max_slots = C.uint32_t (getf it D.xmem_host_info_max_slots);
    max_clients = C.uint32_t (getf it D.xmem_host_info_max_clients);
    max_ring_entries = C.uint32_t (getf it D.xmem_host_info_max_ring_entries);
    group_slots = C.uint32_t (getf it D.xmem_host_info_group_slots);
    max_pools = C.uint32_t (getf it D.xmem_host_info_max_pools);
    max_payloads = C.uint32_t (getf it D.xmem_host_info_max_payloads);
    pools = C.uint32_t (getf it D.xmem_host_info_pools);
    backend = C.text (getf it D.xmem_host_info_backend);
    version = C.text (getf it D.xmem_host_info_version) }

let limit_info it =
  { Answers.Limit_info.number = C.uint32_t (getf it D.xmem_limit_info_number);
    scope = C.uint32_t (getf it D.xmem_limit_info_scope);
    uid = C.uint32_t (getf it D.xmem_limit_info_uid);
    in_bytes = C.uint32_t (getf it D.xmem_limit_info_in_bytes);
    used = C.uint64_t (getf it D.xmem_limit_info_used);
    most = C.uint64_t (getf it D.xmem_limit_info_most);
    name = C.text (getf it D.xmem_limit_info_name);
    what = C.text (getf it D.xmem_limit_info_what) }

let pool_entry it =
  { Answers.Pool_entry.number = C.uint64_t (getf it D.xmem_pool_entry_number);
    name = C.text (getf it D.xmem_pool_entry_name);
    owner_uid = C.uint32_t (getf it D.xmem_pool_entry_owner_uid);
    slots = C.uint32_t (getf it D.xmem_pool_entry_slots);
    clients_max = C.uint32_t (getf it D.xmem_pool_entry_clients_max);
    clients = C.uint32_t (getf it D.xmem_pool_entry_clients);
    ring_entries = C.uint32_t (getf it D.xmem_pool_entry_ring_entries);
    bytes = C.uint64_t (getf it D.xmem_pool_entry_bytes);
    bytes_files = C.uint64_t (getf it D.xmem_pool_entry_bytes_files);
    bytes_kept = C.uint64_t (getf it D.xmem_pool_entry_bytes_kept);
    payloads = C.uint32_t (getf it D.xmem_pool_entry_payloads);
    mode = C.uint32_t (getf it D.xmem_pool_entry_mode);
    gid = C.uint32_t (getf it D.xmem_pool_entry_gid);
    roles = C.uint32_t (getf it D.xmem_pool_entry_roles) }

let strings it =
  { Answers.Strings.flags = C.uint32_t (getf it D.xmem_strings_flags);
    device_id = C.int32_t (getf it D.xmem_strings_device_id);
    data = C.address (getf it D.xmem_strings_data);
    rows = C.uint64_t (getf it D.xmem_strings_rows);
    chars = C.uint64_t (getf it D.xmem_strings_chars);
    bytes = C.uint64_t (getf it D.xmem_strings_bytes);
    validity_at = C.uint64_t (getf it D.xmem_strings_validity_at);
    offsets_at = C.uint64_t (getf it D.xmem_strings_offsets_at);
    chars_at = C.uint64_t (getf it D.xmem_strings_chars_at) }

let tensor it =
  { Answers.Tensor.flags = C.uint32_t (getf it D.xmem_tensor_flags);
    dtype = C.uint32_t (getf it D.xmem_tensor_dtype);
    ndim = C.uint32_t (getf it D.xmem_tensor_ndim);
    item_bytes = C.uint32_t (getf it D.xmem_tensor_item_bytes);
    device_id = C.int32_t (getf it D.xmem_tensor_device_id);
    data = C.address (getf it D.xmem_tensor_data);
    elements = C.uint64_t (getf it D.xmem_tensor_elements);
    bytes = C.uint64_t (getf it D.xmem_tensor_bytes);
    shape = C.array C.int64_t (getf it D.xmem_tensor_shape);
    strides = C.array C.int64_t (getf it D.xmem_tensor_strides);
    element_strides = C.array C.int64_t (getf it D.xmem_tensor_element_strides) }

let image it =
  { Answers.Image.format = C.uint32_t (getf it D.xmem_image_format);
    planes = C.uint32_t (getf it D.xmem_image_planes);
    width = C.uint32_t (getf it D.xmem_image_width);
    height = C.uint32_t (getf it D.xmem_image_height);
    device_id = C.int32_t (getf it D.xmem_image_device_id);
    plane = C.array plane (getf it D.xmem_image_plane) }

let clear_last_error () =
  let r = Fast.clear_last_error () in
  r

let pool_open ?flags ?slots ?clients ?ring_entries ?wait_bound_ns ?label ?demand_bytes
    ?cache_bytes ?cache_ns ?memory ?keep ?mode ?gid ?fd name =
  let name = C.c_text "pool_open" name in
  let o = make D.xmem_pool_options in
  setf o D.xmem_pool_options_size (Unsigned.Size_t.of_int (sizeof D.xmem_pool_options));
  C.set o D.xmem_pool_options_flags (fun n -> C.to_uint32_t (C.uint32 "pool_open" n)) flags;
  C.set o D.xmem_pool_options_slots (fun n -> C.to_uint32_t (C.uint32 "pool_open" n)) slots;
  C.set o D.xmem_pool_options_clients (fun n -> C.to_uint32_t (C.uint32 "pool_open" n)) clients;
  C.set o D.xmem_pool_options_ring_entries (fun n -> C.to_uint32_t (C.uint32 "pool_open" n))
    ring_entries;
  C.set o D.xmem_pool_options_wait_bound_ns C.to_int64_t_wide wait_bound_ns;
  let label = C.c_text "pool_open" label in
  C.set o D.xmem_pool_options_label (fun x -> x) label;
  C.set o D.xmem_pool_options_demand_bytes C.to_uint64_t_wide demand_bytes;
  C.set o D.xmem_pool_options_cache_bytes (fun n -> C.to_uint64_t (C.size "pool_open" n))
    cache_bytes;
  C.set o D.xmem_pool_options_cache_ns C.to_int64_t_wide cache_ns;
  C.set o D.xmem_pool_options_memory (fun n -> C.to_uint32_t (C.uint32 "pool_open" n)) memory;
  C.set o D.xmem_pool_options_keep (fun n -> C.to_uint32_t (C.uint32 "pool_open" n)) keep;
  C.set o D.xmem_pool_options_mode (fun n -> C.to_uint32_t (C.uint32 "pool_open" n)) mode;
  C.set o D.xmem_pool_options_gid (fun n -> C.to_uint32_t (C.uint32 "pool_open" n)) gid;
  C.set o D.xmem_pool_options_fd (fun n -> C.to_int32_t (C.int32 "pool_open" n)) fd;
  M.made @@ fun () ->
  let r = M.again "pool_open" is_null (fun () -> Slow.pool_open (C.or_null name) (addr o)) in
  M.keep name; M.keep label; M.keep o;
  M.with_gc M.Pool r

let cancel pool =
  let _ = M.once "cancel" M.negative (fun () -> Fast.cancel (M.raw pool)) in
  M.keep pool;
  ()

let pool_poll_fd pool =
  let r = M.once "pool_poll_fd" M.negative (fun () -> Slow.pool_poll_fd (M.raw pool)) in
  M.keep pool;
  r

let pool_reopen pool =
  M.made @@ fun () ->
  let r = M.again "pool_reopen" is_null (fun () -> Slow.pool_reopen (M.raw pool)) in
  M.keep pool;
  M.with_gc M.Pool r

let pool_fd pool =
  let r = M.once "pool_fd" M.negative (fun () -> Fast.pool_fd (M.raw pool)) in
  M.keep pool;
  r

let pool_fd_narrow fd roles =
  let r = M.once "pool_fd_narrow" M.negative (fun () -> Fast.pool_fd_narrow (C.int32
    "pool_fd_narrow" fd) (C.uint32 "pool_fd_narrow" roles)) in
  r

let pool_backend pool =
  let r = Fast.pool_backend (M.raw pool) in
  M.keep pool;
  C.text_of r

let pool_client pool =
  let r = M.once "pool_client" M.negative (fun () -> Fast.pool_client (M.raw pool)) in
  M.keep pool;
  r

let subscribe ?flags ?publisher ?timeout_ns ?history ?depth ?label pool =
  let o = make D.xmem_subscribe_options in
  setf o D.xmem_subscribe_options_size (Unsigned.Size_t.of_int (sizeof D.xmem_subscribe_options));
  C.set o D.xmem_subscribe_options_flags (fun n -> C.to_uint32_t (C.uint32 "subscribe" n)) flags;
  C.set o D.xmem_subscribe_options_publisher (fun n -> C.to_uint32_t (C.uint32 "subscribe" n))
    publisher;
  C.set o D.xmem_subscribe_options_timeout_ns C.to_int64_t_wide timeout_ns;
  let left = M.left (Option.value timeout_ns ~default:0L) in
  C.set o D.xmem_subscribe_options_history (fun n -> C.to_uint32_t (C.uint32 "subscribe" n))
    history;
  C.set o D.xmem_subscribe_options_depth (fun n -> C.to_uint32_t (C.uint32 "subscribe" n)) depth;
  let label = C.c_text "subscribe" label in
  C.set o D.xmem_subscribe_options_label (fun x -> x) label;
  M.made @@ fun () ->
  let r = M.again "subscribe" is_null (fun () -> setf o D.xmem_subscribe_options_timeout_ns (left
    ()); Slow.subscribe (M.raw pool) (addr o)) in
  M.keep pool; M.keep label; M.keep o;
  M.with_gc M.Subscription ~parent:pool.pool r

let receive subscription ~timeout =
  M.made @@ fun () ->
  let r = M.within timeout "receive" is_null (fun timeout -> Slow.receive (M.raw subscription)
    timeout) in
  M.keep subscription;
  M.with_gc M.Buffer ~parent:subscription.pool r

let subscription_poll_fd subscription =
  let r = M.once "subscription_poll_fd" M.negative (fun () -> Slow.subscription_poll_fd (M.raw
    subscription)) in
  M.keep subscription;
  r

let subscription_stat subscription =
  let o = make D.xmem_subscription_info in
  setf o D.xmem_subscription_info_size (Unsigned.Size_t.of_int (sizeof D.xmem_subscription_info));
  let _ = M.once "subscription_stat" M.negative (fun () -> Fast.subscription_stat (M.raw
    subscription) (addr o)) in
  M.keep subscription; M.keep o;
  subscription_info o

let data buffer =
  let r = M.again "data" is_null (fun () -> Slow.data (M.raw buffer)) in
  M.keep buffer;
  raw_address_of_ptr (to_voidp r)

let size buffer =
  let r = Fast.size (M.raw buffer) in
  M.keep buffer;
  r

let token buffer =
  let r = Fast.token (M.raw buffer) in
  M.keep buffer;
  C.uint64_t_wide r

let get pool token =
  M.made @@ fun () ->
  let r = M.once "get" is_null (fun () -> Fast.get (M.raw pool) (C.to_uint64_t_wide token)) in
  M.keep pool;
  M.with_gc M.Buffer ~parent:pool.pool r

let clone buffer =
  M.made @@ fun () ->
  let r = M.once "clone" is_null (fun () -> Fast.clone (M.raw buffer)) in
  M.keep buffer;
  M.with_gc M.Buffer ~parent:buffer.pool r

let slot buffer =
  let r = M.once "slot" M.negative (fun () -> Fast.slot (M.raw buffer)) in
  M.keep buffer;
  r

let capacity buffer =
  let r = Fast.capacity (M.raw buffer) in
  M.keep buffer;
  r

let buffer_stat buffer =
  let o = make D.xmem_buffer_info in
  setf o D.xmem_buffer_info_size (Unsigned.Size_t.of_int (sizeof D.xmem_buffer_info));
  let _ = M.once "buffer_stat" M.negative (fun () -> Fast.buffer_stat (M.raw buffer) (addr o)) in
  M.keep buffer; M.keep o;
  buffer_info o

let acquire pool bytes ~timeout =
  M.made @@ fun () ->
  let r = M.within timeout "acquire" is_null (fun timeout -> Slow.acquire (M.raw pool) (C.size
    "acquire" bytes) timeout) in
  M.keep pool;
  M.with_gc M.Buffer ~parent:pool.pool r

let data_mut buffer =
  let r = M.once "data_mut" is_null (fun () -> Fast.data_mut (M.raw buffer)) in
  M.keep buffer;
  raw_address_of_ptr (to_voidp r)

let retract pool token =
  let _ = M.once "retract" M.negative (fun () -> Fast.retract (M.raw pool) (C.to_uint64_t_wide
    token)) in
  M.keep pool;
  ()

let preallocate ?flags ?device_id pool bytes count =
  let o = make D.xmem_preallocate_options in
  setf o D.xmem_preallocate_options_size (Unsigned.Size_t.of_int (sizeof
    D.xmem_preallocate_options));
  C.set o D.xmem_preallocate_options_flags (fun n -> C.to_uint32_t (C.uint32 "preallocate" n))
    flags;
  C.set o D.xmem_preallocate_options_device_id (fun n -> C.to_int32_t (C.int32 "preallocate" n))
    device_id;
  let _ = M.again "preallocate" M.negative (fun () -> Slow.preallocate (M.raw pool) (C.size
    "preallocate" bytes) (C.uint32 "preallocate" count) (addr o)) in
  M.keep pool; M.keep o;
  ()

let collect pool keep =
  let o = allocate uint64_t Unsigned.UInt64.zero in
  let r = M.again "collect" M.negative (fun () -> Slow.collect (M.raw pool) (C.to_uint64_t (C.size
    "collect" keep)) o) in
  M.keep pool; M.keep o;
  (r, C.uint64_t !@o)

let pool_set_mode pool mode gid =
  let _ = M.once "pool_set_mode" M.negative (fun () -> Fast.pool_set_mode (M.raw pool) (C.uint32
    "pool_set_mode" mode) (C.uint32 "pool_set_mode" gid)) in
  M.keep pool;
  ()

let pool_evict pool client incarnation =
  let _ = M.once "pool_evict" M.negative (fun () -> Slow.pool_evict (M.raw pool) (C.uint32
    "pool_evict" client) (C.to_uint64_t_wide incarnation)) in
  M.keep pool;
  ()

let pool_drain pool flags =
  let r = M.once "pool_drain" M.negative (fun () -> Slow.pool_drain (M.raw pool) (C.uint32
    "pool_drain" flags)) in
  M.keep pool;
  r

let pool_grant pool client incarnation =
  let _ = M.once "pool_grant" M.negative (fun () -> Slow.pool_grant (M.raw pool) (C.uint32
    "pool_grant" client) (C.to_uint64_t_wide incarnation)) in
  M.keep pool;
  ()

let set_ref_count buffer count ~timeout =
  let _ = M.again "set_ref_count" M.negative (fun () -> Slow.set_ref_count (M.raw buffer)
    (C.uint32 "set_ref_count" count) timeout) in
  M.keep buffer;
  ()

let offer buffer more ~timeout =
  let _ = M.again "offer" M.negative (fun () -> Slow.offer (M.raw buffer) (C.uint32 "offer" more)
    timeout) in
  M.keep buffer;
  ()

let forget buffer =
  M.consume "forget" buffer (fun raw -> Slow.forget raw)

let add_ref pool token =
  let _ = M.again "add_ref" M.negative (fun () -> Slow.add_ref (M.raw pool) (C.to_uint64_t_wide
    token)) in
  M.keep pool;
  ()

let drop_ref pool token =
  let _ = M.again "drop_ref" M.negative (fun () -> Slow.drop_ref (M.raw pool) (C.to_uint64_t_wide
    token)) in
  M.keep pool;
  ()

let claims pool token =
  let r = M.once "claims" M.negative (fun () -> Slow.claims (M.raw pool) (C.to_uint64_t_wide
    token)) in
  M.keep pool;
  r

let void_claims pool token =
  let _ = M.once "void_claims" M.negative (fun () -> Slow.void_claims (M.raw pool)
    (C.to_uint64_t_wide token)) in
  M.keep pool;
  ()

let copy to_ from ~stream =
  let _ = M.again "copy" M.negative (fun () -> Slow.copy (M.raw to_) (M.raw from)
    (ptr_of_raw_address stream)) in
  M.keep to_; M.keep from;
  ()

let copy_range to_ to_offset from from_offset bytes ~stream =
  let _ = M.again "copy_range" M.negative (fun () -> Slow.copy_range (M.raw to_) (C.size
    "copy_range" to_offset) (M.raw from) (C.size "copy_range" from_offset) (C.size "copy_range"
    bytes) (ptr_of_raw_address stream)) in
  M.keep to_; M.keep from;
  ()

let copy_from_host to_ offset from bytes ~stream =
  let _ = M.again "copy_from_host" M.negative (fun () -> Slow.copy_from_host (M.raw to_) (C.size
    "copy_from_host" offset) (ptr_of_raw_address from) (C.size "copy_from_host" bytes)
    (ptr_of_raw_address stream)) in
  M.keep to_;
  ()

let copy_to_host to_ from offset bytes ~stream =
  let _ = M.again "copy_to_host" M.negative (fun () -> Slow.copy_to_host (ptr_of_raw_address to_)
    (M.raw from) (C.size "copy_to_host" offset) (C.size "copy_to_host" bytes) (ptr_of_raw_address
    stream)) in
  M.keep from;
  ()

let copy_to from device_id ~timeout =
  M.made @@ fun () ->
  let r = M.within timeout "copy_to" is_null (fun timeout -> Slow.copy_to (M.raw from) (C.int32
    "copy_to" device_id) timeout) in
  M.keep from;
  M.with_gc M.Buffer ~parent:from.pool r

let data_private buffer =
  let r = M.again "data_private" is_null (fun () -> Slow.data_private (M.raw buffer)) in
  M.keep buffer;
  raw_address_of_ptr (to_voidp r)

let cuda_query () =
  let o = make D.xmem_cuda_info in
  setf o D.xmem_cuda_info_size (Unsigned.Size_t.of_int (sizeof D.xmem_cuda_info));
  let _ = M.once "cuda_query" M.negative (fun () -> Fast.cuda_query (addr o)) in
  M.keep o;
  cuda_info o

let cuda_device_query device =
  let o = make D.xmem_cuda_device_info in
  setf o D.xmem_cuda_device_info_size (Unsigned.Size_t.of_int (sizeof D.xmem_cuda_device_info));
  let _ = M.once "cuda_device_query" M.negative (fun () -> Fast.cuda_device_query (C.int32
    "cuda_device_query" device) (addr o)) in
  M.keep o;
  cuda_device_info o

let acquire_cuda pool bytes device ~timeout =
  M.made @@ fun () ->
  let r = M.within timeout "acquire_cuda" is_null (fun timeout -> Slow.acquire_cuda (M.raw pool)
    (C.size "acquire_cuda" bytes) (C.int32 "acquire_cuda" device) timeout) in
  M.keep pool;
  M.with_gc M.Buffer ~parent:pool.pool r

let cuda_ptr buffer =
  let r = M.again "cuda_ptr" is_null (fun () -> Slow.cuda_ptr (M.raw buffer)) in
  M.keep buffer;
  raw_address_of_ptr (to_voidp r)

let cuda_ptr_mut buffer =
  let r = M.again "cuda_ptr_mut" is_null (fun () -> Slow.cuda_ptr_mut (M.raw buffer)) in
  M.keep buffer;
  raw_address_of_ptr (to_voidp r)

let cuda_peer buffer device =
  let _ = M.again "cuda_peer" M.negative (fun () -> Slow.cuda_peer (M.raw buffer) (C.int32
    "cuda_peer" device)) in
  M.keep buffer;
  ()

let cuda_device buffer =
  let r = M.once "cuda_device" M.negative (fun () -> Fast.cuda_device (M.raw buffer)) in
  M.keep buffer;
  r

let pool_stat pool =
  let o = make D.xmem_pool_info in
  setf o D.xmem_pool_info_size (Unsigned.Size_t.of_int (sizeof D.xmem_pool_info));
  let _ = M.once "pool_stat" M.negative (fun () -> Fast.pool_stat (M.raw pool) (addr o)) in
  M.keep pool; M.keep o;
  pool_info o

let pool_client_info pool client =
  let o = make D.xmem_client_info in
  setf o D.xmem_client_info_size (Unsigned.Size_t.of_int (sizeof D.xmem_client_info));
  let _ = M.once "pool_client_info" M.negative (fun () -> Fast.pool_client_info (M.raw pool)
    (C.uint32 "pool_client_info" client) (addr o)) in
  M.keep pool; M.keep o;
  client_info o

let subscriber_next pool first =
  let o = make D.xmem_subscriber_info in
  setf o D.xmem_subscriber_info_size (Unsigned.Size_t.of_int (sizeof D.xmem_subscriber_info));
  let _ = M.once "subscriber_next" M.negative (fun () -> Slow.subscriber_next (M.raw pool)
    (C.uint32 "subscriber_next" first) (addr o)) in
  M.keep pool; M.keep o;
  subscriber_info o

let wait_subscribers pool count ~timeout =
  let r = M.within timeout "wait_subscribers" M.negative (fun timeout -> Slow.wait_subscribers
    (M.raw pool) (C.uint32 "wait_subscribers" count) timeout) in
  M.keep pool;
  r

let subscribers_poll_fd pool =
  let r = M.once "subscribers_poll_fd" M.negative (fun () -> Slow.subscribers_poll_fd (M.raw
    pool)) in
  M.keep pool;
  r

let pool_slot_info pool slot =
  let o = make D.xmem_slot_info in
  setf o D.xmem_slot_info_size (Unsigned.Size_t.of_int (sizeof D.xmem_slot_info));
  let _ = M.once "pool_slot_info" M.negative (fun () -> Fast.pool_slot_info (M.raw pool) (C.uint32
    "pool_slot_info" slot) (addr o)) in
  M.keep pool; M.keep o;
  slot_info o

let pool_device_info pool device =
  let o = make D.xmem_device_info in
  setf o D.xmem_device_info_size (Unsigned.Size_t.of_int (sizeof D.xmem_device_info));
  let _ = M.once "pool_device_info" M.negative (fun () -> Fast.pool_device_info (M.raw pool)
    (C.uint32 "pool_device_info" device) (addr o)) in
  M.keep pool; M.keep o;
  device_info o

let pool_holds pool client slot =
  let r = M.once "pool_holds" M.negative64 (fun () -> Fast.pool_holds (M.raw pool) (C.uint32
    "pool_holds" client) (C.uint32 "pool_holds" slot)) in
  M.keep pool;
  Int64.to_int r

let host_query () =
  let o = make D.xmem_host_info in
  setf o D.xmem_host_info_size (Unsigned.Size_t.of_int (sizeof D.xmem_host_info));
  let _ = M.once "host_query" M.negative (fun () -> Fast.host_query (addr o)) in
  M.keep o;
  host_info o

let limit_next pool number =
  let o = make D.xmem_limit_info in
  setf o D.xmem_limit_info_size (Unsigned.Size_t.of_int (sizeof D.xmem_limit_info));
  let _ = M.once "limit_next" M.negative (fun () -> Slow.limit_next (M.raw pool) (C.uint32
    "limit_next" number) (addr o)) in
  M.keep pool; M.keep o;
  limit_info o

let pool_next after =
  let o = make D.xmem_pool_entry in
  setf o D.xmem_pool_entry_size (Unsigned.Size_t.of_int (sizeof D.xmem_pool_entry));
  let _ = M.once "pool_next" M.negative (fun () -> Fast.pool_next (C.to_uint64_t (C.size
    "pool_next" after)) (addr o)) in
  M.keep o;
  pool_entry o

let attach_fd pool fd offset length flags =
  M.made @@ fun () ->
  let r = M.again "attach_fd" is_null (fun () -> Slow.attach_fd (M.raw pool) (C.int32 "attach_fd"
    fd) (C.to_uint64_t (C.size "attach_fd" offset)) (C.to_uint64_t (C.size "attach_fd" length))
    (C.uint32 "attach_fd" flags)) in
  M.keep pool;
  M.with_gc M.Buffer ~parent:pool.pool r

let get_mut buffer =
  let _ = M.again "get_mut" M.negative (fun () -> Slow.get_mut (M.raw buffer)) in
  M.keep buffer;
  ()

let wait_on buffer ~stream =
  let _ = M.again "wait_on" M.negative (fun () -> Slow.wait_on (M.raw buffer) (ptr_of_raw_address
    stream)) in
  M.keep buffer;
  ()

let wait_contents buffer ~timeout =
  let _ = M.within timeout "wait_contents" M.negative (fun timeout -> Slow.wait_contents (M.raw
    buffer) timeout) in
  M.keep buffer;
  ()

let release_on buffer ~stream =
  M.consume "release_on" buffer (fun raw -> Fast.release_on raw (ptr_of_raw_address stream))

let describe_tensor ?strides buffer dtype ndim shape =
  C.check_length "describe_tensor" ndim (Some shape);
  C.check_length "describe_tensor" ndim strides;
  let shape = C.int64s (Some shape) in
  let strides = C.int64s strides in
  let _ = M.once "describe_tensor" M.negative (fun () -> Fast.describe_tensor (M.raw buffer)
    (C.uint32 "describe_tensor" dtype) (C.uint32 "describe_tensor" ndim) (C.start shape) (C.start
    strides)) in
  M.keep buffer; M.keep shape; M.keep strides;
  ()

let describe_image buffer format width height stride =
  let _ = M.once "describe_image" M.negative (fun () -> Fast.describe_image (M.raw buffer)
    (C.uint32 "describe_image" format) (C.uint32 "describe_image" width) (C.uint32
    "describe_image" height) (C.size "describe_image" stride)) in
  M.keep buffer;
  ()

let image_bytes format width height stride =
  let r = M.once "image_bytes" M.negative64 (fun () -> Fast.image_bytes (C.uint32 "image_bytes"
    format) (C.uint32 "image_bytes" width) (C.uint32 "image_bytes" height) (C.size "image_bytes"
    stride)) in
  Int64.to_int r

let strings_plan rows chars flags =
  let o = make D.xmem_strings in
  setf o D.xmem_strings_size (Unsigned.Size_t.of_int (sizeof D.xmem_strings));
  let _ = M.once "strings_plan" M.negative (fun () -> Fast.strings_plan (C.to_uint64_t (C.size
    "strings_plan" rows)) (C.to_uint64_t (C.size "strings_plan" chars)) (C.uint32 "strings_plan"
    flags) (addr o)) in
  M.keep o;
  strings o

let describe_strings buffer rows chars flags =
  let _ = M.once "describe_strings" M.negative (fun () -> Fast.describe_strings (M.raw buffer)
    (C.to_uint64_t (C.size "describe_strings" rows)) (C.to_uint64_t (C.size "describe_strings"
    chars)) (C.uint32 "describe_strings" flags)) in
  M.keep buffer;
  ()

let describe_source ?flags ?content_type ?producer ?timestamp_ns ?clock buffer =
  let o = make D.xmem_source in
  setf o D.xmem_source_size (Unsigned.Size_t.of_int (sizeof D.xmem_source));
  C.set o D.xmem_source_flags (fun n -> C.to_uint32_t (C.uint32 "describe_source" n)) flags;
  let content_type = C.c_text "describe_source" content_type in
  C.set o D.xmem_source_content_type (fun x -> x) content_type;
  let producer = C.c_text "describe_source" producer in
  C.set o D.xmem_source_producer (fun x -> x) producer;
  C.set o D.xmem_source_timestamp_ns C.to_uint64_t_wide timestamp_ns;
  let clock = C.c_text "describe_source" clock in
  C.set o D.xmem_source_clock (fun x -> x) clock;
  let _ = M.once "describe_source" M.negative (fun () -> Fast.describe_source (M.raw buffer) (addr
    o)) in
  M.keep buffer; M.keep content_type; M.keep producer; M.keep clock; M.keep o;
  ()

let metadata_view buffer =
  let o = make D.xmem_metadata in
  let _ = M.once "metadata_view" M.negative (fun () -> Fast.metadata_view (M.raw buffer) (addr o))
    in
  M.keep buffer; M.keep o;
  metadata o

let tensor_view buffer flags =
  let o = make D.xmem_tensor in
  setf o D.xmem_tensor_size (Unsigned.Size_t.of_int (sizeof D.xmem_tensor));
  let _ = M.again "tensor_view" M.negative (fun () -> Slow.tensor_view (M.raw buffer) (C.uint32
    "tensor_view" flags) (addr o)) in
  M.keep buffer; M.keep o;
  tensor o

let image_view buffer flags =
  let o = make D.xmem_image in
  setf o D.xmem_image_size (Unsigned.Size_t.of_int (sizeof D.xmem_image));
  let _ = M.again "image_view" M.negative (fun () -> Slow.image_view (M.raw buffer) (C.uint32
    "image_view" flags) (addr o)) in
  M.keep buffer; M.keep o;
  image o

let strings_view buffer flags =
  let o = make D.xmem_strings in
  setf o D.xmem_strings_size (Unsigned.Size_t.of_int (sizeof D.xmem_strings));
  let r = M.again "strings_view" M.negative (fun () -> Slow.strings_view (M.raw buffer) (C.uint32
    "strings_view" flags) (addr o)) in
  M.keep buffer; M.keep o;
  (r, strings o)
