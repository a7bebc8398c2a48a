/* SPDX-License-Identifier: MIT */
/*
 * Shared handles: a std::shared_ptr to the raw C handle. A part of xmem.hpp, for layers that pass
 * handles on, such as extensions of Python. Other programs use xmem::pool and xmem::buffer.
 *
 *	xmem::pool_handle pool = xmem::open_pool(api, "camera");
 *	xmem::buffer_handle frame = xmem::acquire(pool, 4096, XMEM_FOREVER);
 *	if (!frame)
 *		return api->peek_last_error(nullptr);
 *	std::memset(api->data_mut(xmem::as_cu(frame)), 0, 4096);
 *
 * A handle always stands for one resource, which is valid as long as the handle exists. A buffer's
 * handle keeps its pool's handle, and a device pointer's handle keeps its buffer's. The last copy
 * drops the resource, in any thread. So do not pass as_cu() of a handle to a C function that drops
 * its argument (xmem_release, xmem_forget, and xmem_publish without XMEM_PUBLISH_KEEP). publish()
 * below keeps the buffer.
 *
 * The functions throw nothing. If one fails, it returns an empty handle, and the error is the
 * calling thread's last one (xmem_get_last_error); 0 means that no memory for the handle was left.
 * A function that gets an empty handle returns an empty one, and leaves the last error as it is,
 * because that is the error of the call that failed before.
 *
 * open_pool takes the table of the library's functions, and each handle has the table from there.
 * So a plug-in need not be linked with libxmem. This header has no variables. It takes no lock, and
 * calls nothing but the table, so no thread waits here for another one that wants Python's GIL.
 */
#ifndef XMEM_HANDLES_HPP
#define XMEM_HANDLES_HPP

#include <memory>
#include <new>

#include "options.hpp"

namespace xmem {

/* Only the functions below make these, because the table lies beside the raw handle. */
using pool_handle = std::shared_ptr<xmem_pool *const>;
using buffer_handle = std::shared_ptr<xmem_buffer *const>;
using subscription_handle = std::shared_ptr<xmem_subscription *const>;
/* CUDA's CUdeviceptr. */
using device_ptr_handle = std::shared_ptr<const unsigned long long>;

namespace detail {

/* A handle points to the first member of this. */
template <class Raw> struct box_head {
	Raw raw;
	const xmem_api *api;
};

/* The resource, and the handle of the resource on which it depends, which is dropped after it. */
template <class Raw, class On> struct box : box_head<Raw> {
	box(const box_head<Raw> &head, void (*drop_)(Raw), const On &on_)
		: box_head<Raw>(head), on(on_), drop(drop_)
	{
	}
	box(const box &) = delete;
	box &operator=(const box &) = delete;
	~box()
	{
		if (drop)
			drop(this->raw);
	}

	On on;
	void (*drop)(Raw);
};

/* Make a handle that drops @raw, which may be 0 after an error. */
template <class Raw, class On>
std::shared_ptr<const Raw> boxed(const xmem_api *api, Raw raw, void (*drop)(Raw),
				 const On &on) noexcept
{
	if (!raw)
		return {};
#ifdef __cpp_exceptions
	try {
#endif
		const auto made = std::make_shared<box<Raw, On>>(box_head<Raw>{raw, api}, drop, on);

		return std::shared_ptr<const Raw>(made, &made->raw);
#ifdef __cpp_exceptions
	} catch (const std::bad_alloc &) {
		if (drop)
			drop(raw);
		api->clear_last_error();
		return {};
	}
#endif
}

template <class Raw> const box_head<Raw> *head_of(const std::shared_ptr<const Raw> &handle) noexcept
{
	return reinterpret_cast<const box_head<Raw> *>(handle.get());
}

template <class Raw> const xmem_api *api_of(const std::shared_ptr<const Raw> &handle) noexcept
{
	return head_of(handle)->api;
}

} // namespace detail

/* ---- the raw handle ---- */

/* The C handle; null for an empty handle. A device pointer is a number, as in CUDA. */
template <class Raw> Raw as_cu(const std::shared_ptr<const Raw> &handle) noexcept
{
	return handle ? *handle : Raw();
}

/* The handle as a number, for languages without pointers. */
template <class Raw> std::intptr_t as_intptr(const std::shared_ptr<const Raw> &handle) noexcept
{
	if constexpr (std::is_pointer_v<Raw>)
		return reinterpret_cast<std::intptr_t>(as_cu(handle));
	else
		return static_cast<std::intptr_t>(as_cu(handle));
}

/* ---- handles of C, also from detach(): the shared handle drops them ---- */

inline pool_handle adopt(const xmem_api *api, xmem_pool *raw) noexcept
{
	return detail::boxed(api, raw, api->pool_close, nullptr);
}

inline buffer_handle adopt(const pool_handle &in, xmem_buffer *raw) noexcept
{
	const xmem_api *api = detail::api_of(in);

	return detail::boxed(api, raw, api->release, in);
}

inline subscription_handle adopt(const pool_handle &in, xmem_subscription *raw) noexcept
{
	const xmem_api *api = detail::api_of(in);

	return detail::boxed(api, raw, api->unsubscribe, in);
}

/* ---- making handles: each calls the C function of that name ---- */

inline pool_handle open_pool(const xmem_api *api, const char *name,
			     const xmem_pool_options *options = nullptr) noexcept
{
	return adopt(api, api->pool_open(name, options));
}

inline subscription_handle subscribe(const pool_handle &in,
				     const xmem_subscribe_options *options = nullptr) noexcept
{
	return in ? adopt(in, detail::api_of(in)->subscribe(*in, options)) : nullptr;
}

inline buffer_handle receive(const subscription_handle &from, std::int64_t timeout_ns) noexcept
{
	using whole = detail::box<xmem_subscription *, pool_handle>;

	if (!from)
		return {};
	return adopt(static_cast<const whole *>(detail::head_of(from))->on,
		     detail::api_of(from)->receive(*from, timeout_ns));
}

inline buffer_handle get(const pool_handle &in, std::uint64_t token) noexcept
{
	return in ? adopt(in, detail::api_of(in)->get(*in, token)) : nullptr;
}

inline buffer_handle acquire(const pool_handle &in, std::size_t bytes,
			     std::int64_t timeout_ns) noexcept
{
	return in ? adopt(in, detail::api_of(in)->acquire(*in, bytes, timeout_ns)) : nullptr;
}

inline buffer_handle acquire_cuda(const pool_handle &in, std::size_t bytes, int device,
				  std::int64_t timeout_ns) noexcept
{
	return in ? adopt(in, detail::api_of(in)->acquire_cuda(*in, bytes, device, timeout_ns))
		  : nullptr;
}

/* The address of the contents on a GPU, for reading there. */
inline device_ptr_handle device_ptr(const buffer_handle &of) noexcept
{
	if (!of)
		return {};
	const xmem_api *api = detail::api_of(of);
	const auto ptr = reinterpret_cast<std::uintptr_t>(api->cuda_ptr(*of));

	return detail::boxed<unsigned long long>(api, ptr, nullptr, of);
}

/* For a buffer that is being written. */
inline device_ptr_handle device_ptr_mut(const buffer_handle &of) noexcept
{
	if (!of)
		return {};
	const xmem_api *api = detail::api_of(of);
	const auto ptr = reinterpret_cast<std::uintptr_t>(api->cuda_ptr_mut(*of));

	return detail::boxed<unsigned long long>(api, ptr, nullptr, of);
}

/*
 * Publish a buffer and keep it: the handle and all its copies stay valid, for reading. Returns 0 or
 * a negative errno; -EINVAL for an empty handle.
 */
inline int publish(const buffer_handle &buffer, publish_options options = {},
		   std::uint64_t *ret_token = nullptr) noexcept
{
	if (!buffer)
		return -EINVAL;
	options.flags |= XMEM_PUBLISH_KEEP;
	return detail::api_of(buffer)->publish(*buffer, &options, ret_token);
}

} // namespace xmem

#endif
