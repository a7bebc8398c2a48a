/* SPDX-License-Identifier: MIT */
/*
 * The table of all public functions, through which plug-ins and bindings reach the one copy of the
 * library in a process. A part of xmem.h. Made by "make api": edit the other headers. Each member
 * is the function xmem_NAME, with its rules. A plug-in gets the table from the program that loads
 * it, or finds xmem_get_api by dlsym.
 */
#ifndef XMEM_API_H
#define XMEM_API_H

#include "../xmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table that this header describes, for xmem_get_api. */
#define XMEM_API_VERSION	(XMEM_VERSION_MAJOR << 16 | XMEM_VERSION_MINOR)

/* Does the table have the function xmem_NAME? Ask for those that a later release has added. */
#define XMEM_API_HAS(api, name) \
	((api)->struct_size >= offsetof(struct xmem_api, name) + sizeof((api)->name))

struct xmem_api {
	uint32_t abi_version;		/* XMEM_API_VERSION of the library */
	uint32_t struct_size;		/* bytes of the library's table */

	/* since 0.1 */
	struct xmem_buffer *(*acquire)(struct xmem_pool *pool, size_t bytes, int64_t timeout_ns);
	void (*clear_last_error)(void);
	struct xmem_buffer *(*clone)(struct xmem_buffer *buffer);
	const void *(*data)(struct xmem_buffer *buffer);
	void *(*data_mut)(struct xmem_buffer *buffer);
	struct xmem_buffer *(*get)(struct xmem_pool *pool, uint64_t token);
	int (*get_last_error)(struct xmem_error *ret_error);
	int (*peek_last_error)(struct xmem_error *ret_error);
	const char *(*pool_backend)(struct xmem_pool *pool);
	int (*pool_client)(struct xmem_pool *pool);
	void (*pool_close)(struct xmem_pool *pool);
	struct xmem_pool *(*pool_open)(const char *name, const struct xmem_pool_options *options);
	int (*pool_stat)(struct xmem_pool *pool, struct xmem_pool_info *ret_info);
	int (*preallocate)(struct xmem_pool *pool, size_t bytes, uint32_t count,
			const struct xmem_preallocate_options *options);
	int (*publish)(struct xmem_buffer *buffer, const struct xmem_publish_options *options,
			uint64_t *ret_token);
	struct xmem_buffer *(*receive)(struct xmem_subscription *subscription, int64_t timeout_ns);
	void (*release)(struct xmem_buffer *buffer);
	size_t (*size)(struct xmem_buffer *buffer);
	struct xmem_subscription *(*subscribe)(struct xmem_pool *pool,
			const struct xmem_subscribe_options *options);
	uint64_t (*token)(struct xmem_buffer *buffer);
	void (*unsubscribe)(struct xmem_subscription *subscription);

	/* since 0.2 */
	size_t (*capacity)(struct xmem_buffer *buffer);
	int (*host_query)(struct xmem_host_info *ret_info);
	struct xmem_metadata *(*metadata_mut)(struct xmem_buffer *buffer);
	const struct xmem_metadata *(*metadata_ptr)(struct xmem_buffer *buffer);
	int (*pool_client_info)(struct xmem_pool *pool, uint32_t client,
			struct xmem_client_info *ret_info);
	int (*pool_fd)(struct xmem_pool *pool);
	int64_t (*pool_holds)(struct xmem_pool *pool, uint32_t client, uint32_t slot);
	int (*pool_next)(uint64_t after, struct xmem_pool_entry *ret_entry);
	int (*pool_slot_info)(struct xmem_pool *pool, uint32_t slot,
			struct xmem_slot_info *ret_info);

	/* since 0.3 */
	int (*cancel)(struct xmem_pool *pool);
	int (*pool_poll_fd)(struct xmem_pool *pool);
	struct xmem_buffer *(*receive_any)(struct xmem_pool *pool, int64_t timeout_ns,
			struct xmem_subscription **ret_subscription);
	int (*subscription_poll_fd)(struct xmem_subscription *subscription);

	/* since 0.4 */
	int (*add_ref)(struct xmem_pool *pool, uint64_t token);
	struct xmem_buffer *(*attach_fd)(struct xmem_pool *pool, int fd, uint64_t offset,
			uint64_t length, uint32_t flags);
	int (*collect)(struct xmem_pool *pool, uint64_t keep, uint64_t *ret_bytes);
	int (*copy)(struct xmem_buffer *to, struct xmem_buffer *from, struct CUstream_st *stream);
	int (*describe_image)(struct xmem_buffer *buffer, uint32_t format, uint32_t width,
			uint32_t height, size_t stride);
	int (*describe_tensor)(struct xmem_buffer *buffer, uint32_t dtype, uint32_t ndim,
			const int64_t *shape, const int64_t *strides);
	int (*drop_ref)(struct xmem_pool *pool, uint64_t token);
	int (*forget)(struct xmem_buffer *buffer);
	int (*get_mut)(struct xmem_buffer *buffer);
	int (*image_view)(struct xmem_buffer *buffer, uint32_t flags, struct xmem_image *ret_image);
	int (*limbo_hook)(struct xmem_pool *pool, uint64_t bytes, uint32_t count,
			xmem_limbo_function *call, void *user);
	int (*metadata_view)(struct xmem_buffer *buffer, struct xmem_metadata *ret_metadata);
	int (*offer)(struct xmem_buffer *buffer, uint32_t more, int64_t timeout_ns);
	struct xmem_pool *(*pool_reopen)(struct xmem_pool *pool);
	int (*retract)(struct xmem_pool *pool, uint64_t token);
	int (*set_ref_count)(struct xmem_buffer *buffer, uint32_t count, int64_t timeout_ns);
	int (*tensor_check)(const struct xmem_metadata *metadata, uint64_t bytes);
	int (*tensor_view)(struct xmem_buffer *buffer, uint32_t flags,
			struct xmem_tensor *ret_tensor);
	int (*void_claims)(struct xmem_pool *pool, uint64_t token);

	/* since 0.5 */
	struct xmem_buffer *(*acquire_cuda)(struct xmem_pool *pool, size_t bytes, int device,
			int64_t timeout_ns);
	struct xmem_buffer *(*attach_cuda)(struct xmem_pool *pool, void *ptr, size_t bytes,
			uint32_t flags, void (*done)(void *user), void *user);
	int (*buffer_stat)(struct xmem_buffer *buffer, struct xmem_buffer_info *ret_info);
	int (*call)(struct xmem_caller *caller, struct xmem_buffer *request, int64_t timeout_ns,
			uint64_t *ret_call);
	void (*caller_close)(struct xmem_caller *caller);
	struct xmem_caller *(*caller_open)(const char *name,
			const struct xmem_service_options *options);
	struct xmem_pool *(*caller_pool)(struct xmem_caller *caller);
	int (*cancel_call)(struct xmem_caller *caller, uint64_t call);
	int (*claims)(struct xmem_pool *pool, uint64_t token);
	int (*copy_from_host)(struct xmem_buffer *to, size_t offset, const void *from, size_t bytes,
			struct CUstream_st *stream);
	int (*copy_range)(struct xmem_buffer *to, size_t to_offset, struct xmem_buffer *from,
			size_t from_offset, size_t bytes, struct CUstream_st *stream);
	struct xmem_buffer *(*copy_to)(struct xmem_buffer *from, int device_id, int64_t timeout_ns);
	int (*copy_to_host)(void *to, struct xmem_buffer *from, size_t offset, size_t bytes,
			struct CUstream_st *stream);
	int (*cuda_device)(struct xmem_buffer *buffer);
	int (*cuda_device_query)(int device, struct xmem_cuda_device_info *ret_info);
	int (*cuda_peer)(struct xmem_buffer *buffer, int device);
	const void *(*cuda_ptr)(struct xmem_buffer *buffer);
	void *(*cuda_ptr_mut)(struct xmem_buffer *buffer);
	int (*cuda_query)(struct xmem_cuda_info *ret_info);
	void *(*data_private)(struct xmem_buffer *buffer);
	int (*describe_source)(struct xmem_buffer *buffer, const struct xmem_source *source);
	int (*describe_strings)(struct xmem_buffer *buffer, uint64_t rows, uint64_t chars,
			uint32_t flags);
	int64_t (*image_bytes)(uint32_t format, uint32_t width, uint32_t height, size_t stride);
	int (*image_plane)(const struct xmem_image *image, uint32_t plane,
			struct xmem_tensor *ret_tensor);
	int (*limit_next)(struct xmem_pool *pool, uint32_t number,
			struct xmem_limit_info *ret_info);
	int (*pool_device_info)(struct xmem_pool *pool, uint32_t device,
			struct xmem_device_info *ret_info);
	int (*pool_drain)(struct xmem_pool *pool, uint32_t flags);
	int (*pool_evict)(struct xmem_pool *pool, uint32_t client, uint64_t incarnation);
	int (*pool_fd_narrow)(int fd, uint32_t roles);
	int (*pool_grant)(struct xmem_pool *pool, uint32_t client, uint64_t incarnation);
	int (*pool_set_mode)(struct xmem_pool *pool, uint32_t mode, uint32_t gid);
	struct xmem_buffer *(*receive_response)(struct xmem_caller *caller, uint64_t call,
			int64_t timeout_ns, struct xmem_response *ret_response);
	int (*refuse)(struct xmem_request *request, int error);
	int (*release_on)(struct xmem_buffer *buffer, struct CUstream_st *stream);
	struct xmem_buffer *(*request_buffer)(struct xmem_request *request);
	int (*request_stat)(struct xmem_request *request);
	int (*respond)(struct xmem_request *request, struct xmem_buffer *response, uint32_t flags);
	struct xmem_server *(*serve)(const char *name, const struct xmem_service_options *options);
	void (*server_close)(struct xmem_server *server);
	struct xmem_pool *(*server_pool)(struct xmem_server *server);
	struct xmem_request *(*server_receive)(struct xmem_server *server, int64_t timeout_ns);
	int (*slot)(struct xmem_buffer *buffer);
	int64_t (*strings_get)(const struct xmem_strings *strings, uint64_t row,
			const char **ret_chars);
	int (*strings_plan)(uint64_t rows, uint64_t chars, uint32_t flags,
			struct xmem_strings *ret_plan);
	int (*strings_view)(struct xmem_buffer *buffer, uint32_t flags,
			struct xmem_strings *ret_strings);
	int (*subscriber_next)(struct xmem_pool *pool, uint32_t first,
			struct xmem_subscriber_info *ret_info);
	int (*subscribers_poll_fd)(struct xmem_pool *pool);
	int (*subscription_stat)(struct xmem_subscription *subscription,
			struct xmem_subscription_info *ret_info);
	int (*wait_contents)(struct xmem_buffer *buffer, int64_t timeout_ns);
	int (*wait_on)(struct xmem_buffer *buffer, struct CUstream_st *stream);
	int (*wait_subscribers)(struct xmem_pool *pool, uint32_t count, int64_t timeout_ns);
};

/*
 * Get the table of the library's functions.
 * @version: XMEM_API_VERSION of the caller's headers. While the major version is 0 the versions
 *	must be equal; later a lower or equal minor version will do.
 * Returns: the table, or NULL: ENOTSUP (the library's table is another version's).
 * Ownership: the library's, valid as long as the library is loaded, which is for ever. Since: 0.4.
 */
const struct xmem_api *xmem_get_api(uint32_t version);

#ifdef __cplusplus
}
#endif
#endif
