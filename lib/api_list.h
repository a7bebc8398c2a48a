/* SPDX-License-Identifier: MIT */
/*
 * The names of all public functions but xmem_get_api, in the order of struct xmem_api, for api.c
 * and the tests. Made by bindings/generate.py.
 */
#ifndef XMEM_API_LIST_H
#define XMEM_API_LIST_H

#define XL_API(X) \
	X(acquire) \
	X(clear_last_error) \
	X(clone) \
	X(data) \
	X(data_mut) \
	X(get) \
	X(get_last_error) \
	X(peek_last_error) \
	X(pool_backend) \
	X(pool_client) \
	X(pool_close) \
	X(pool_open) \
	X(pool_stat) \
	X(preallocate) \
	X(publish) \
	X(receive) \
	X(release) \
	X(size) \
	X(subscribe) \
	X(token) \
	X(unsubscribe) \
	X(capacity) \
	X(host_query) \
	X(metadata_mut) \
	X(metadata_ptr) \
	X(pool_client_info) \
	X(pool_fd) \
	X(pool_holds) \
	X(pool_next) \
	X(pool_slot_info) \
	X(cancel) \
	X(pool_poll_fd) \
	X(receive_any) \
	X(subscription_poll_fd) \
	X(add_ref) \
	X(attach_fd) \
	X(collect) \
	X(copy) \
	X(describe_image) \
	X(describe_tensor) \
	X(drop_ref) \
	X(forget) \
	X(get_mut) \
	X(image_view) \
	X(limbo_hook) \
	X(metadata_view) \
	X(offer) \
	X(pool_reopen) \
	X(retract) \
	X(set_ref_count) \
	X(tensor_check) \
	X(tensor_view) \
	X(void_claims) \
	X(acquire_cuda) \
	X(attach_cuda) \
	X(buffer_stat) \
	X(claims) \
	X(copy_from_host) \
	X(copy_range) \
	X(copy_to) \
	X(copy_to_host) \
	X(cuda_device) \
	X(cuda_device_query) \
	X(cuda_peer) \
	X(cuda_ptr) \
	X(cuda_ptr_mut) \
	X(cuda_query) \
	X(data_private) \
	X(describe_source) \
	X(describe_strings) \
	X(image_bytes) \
	X(image_plane) \
	X(limit_next) \
	X(pool_device_info) \
	X(pool_drain) \
	X(pool_evict) \
	X(pool_fd_narrow) \
	X(pool_grant) \
	X(pool_set_mode) \
	X(release_on) \
	X(slot) \
	X(strings_get) \
	X(strings_plan) \
	X(strings_view) \
	X(subscriber_next) \
	X(subscribers_poll_fd) \
	X(subscription_stat) \
	X(wait_contents) \
	X(wait_on) \
	X(wait_subscribers)

#endif
