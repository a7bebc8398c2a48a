/* SPDX-License-Identifier: MIT */
/* Making and acquiring buffers in C++. A part of xmem.hpp. */
#ifndef XMEM_POOL_MEMORY_HPP
#define XMEM_POOL_MEMORY_HPP

#include <memory>
#include <new>

#include "buffer.hpp"
#include "pool_access.hpp"

namespace xmem {

namespace detail {

/* The library calls @F, so it must not throw. */
template <class F>
using only_if_quiet = std::enable_if_t<std::is_nothrow_invocable_v<std::decay_t<F> &> &&
				       std::is_nothrow_destructible_v<std::decay_t<F>>>;

/* For a callable that lacks only noexcept, which a lambda has to say: []() noexcept { ... }. */
struct done_must_be_noexcept;
template <class F>
using only_if_noisy = std::enable_if_t<std::is_invocable_v<std::decay_t<F> &> &&
				       !std::is_nothrow_invocable_v<std::decay_t<F> &>,
				       done_must_be_noexcept>;

/* For pool::attach_cuda: call the kept callable, and destroy it. */
template <class F> void call_last(void *kept) noexcept
{
	const std::unique_ptr<F> call(static_cast<F *>(kept));

	(*call)();
}

/* If this succeeds, the library owns the callable. */
template <class F>
xmem_buffer *attach_cuda(xmem_pool *in, void *ptr, std::size_t bytes, std::uint32_t flags,
			 std::unique_ptr<F> &kept, std::error_code &code) noexcept
{
	xmem_buffer *attached = made(xmem_attach_cuda(in, ptr, bytes, flags, call_last<F>,
						      kept.get()), code);

	if (attached)
		static_cast<void>(kept.release());
	return attached;
}

/* The functions of xmem::pool that make, acquire and attach buffers. */
class pool_memory : public pool_access {
public:
	using pool_access::pool_access;

	/* XMEM_MEMORY_* can stand for options. */
	bool preallocate(std::size_t bytes, std::uint32_t count, const preallocate_options &options,
			 std::error_code &code) const noexcept
	{
		return detail::done(xmem_preallocate(raw(), bytes, count, &options), code);
	}
	bool preallocate(std::size_t bytes, std::uint32_t count,
			 std::error_code &code) const noexcept
	{
		return preallocate(bytes, count, {}, code);
	}
	void preallocate(std::size_t bytes, std::uint32_t count,
			 const preallocate_options &options = {}) const
	{
		detail::or_throw([&](std::error_code &code) {
			return preallocate(bytes, count, options, code);
		});
	}

	template <class Rep, class Period>
	buffer acquire(std::size_t bytes, std::chrono::duration<Rep, Period> timeout,
		       std::error_code &code) const noexcept
	{
		return buffer(detail::made(xmem_acquire(raw(), bytes, to_nanoseconds(timeout)),
					   code));
	}
	template <class Rep, class Period>
	buffer acquire(std::size_t bytes, std::chrono::duration<Rep, Period> timeout) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return acquire(bytes, timeout, code);
		});
	}
	buffer acquire(std::size_t bytes, std::error_code &code) const noexcept
	{
		return acquire(bytes, forever, code);
	}
	buffer acquire(std::size_t bytes) const { return acquire(bytes, forever); }

	/* Like acquire, but the buffer is empty, without an error, if none is free in time. */
	template <class Rep, class Period>
	buffer try_acquire(std::size_t bytes, std::chrono::duration<Rep, Period> timeout,
			   std::error_code &code) const noexcept
	{
		buffer acquired = acquire(bytes, timeout, code);

		if (is_empty_for_now(code))
			code.clear();
		return acquired;
	}
	template <class Rep, class Period>
	buffer try_acquire(std::size_t bytes, std::chrono::duration<Rep, Period> timeout) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return try_acquire(bytes, timeout, code);
		});
	}
	buffer try_acquire(std::size_t bytes, std::error_code &code) const noexcept
	{
		return try_acquire(bytes, no_wait, code);
	}
	buffer try_acquire(std::size_t bytes) const { return try_acquire(bytes, no_wait); }

	/* ---- writing on a GPU ---- */

	/* @flags: XMEM_MEMORY_*. */
	bool preallocate_cuda(std::size_t bytes, std::uint32_t count, int device,
			      std::uint32_t flags, std::error_code &code) const noexcept
	{
		return preallocate(bytes, count, preallocate_options(flags).on_gpu(device), code);
	}
	bool preallocate_cuda(std::size_t bytes, std::uint32_t count, int device,
			      std::error_code &code) const noexcept
	{
		return preallocate_cuda(bytes, count, device, 0, code);
	}
	void preallocate_cuda(std::size_t bytes, std::uint32_t count, int device,
			      std::uint32_t flags = 0) const
	{
		preallocate(bytes, count, preallocate_options(flags).on_gpu(device));
	}

	template <class Rep, class Period>
	buffer acquire_cuda(std::size_t bytes, int device,
			    std::chrono::duration<Rep, Period> timeout,
			    std::error_code &code) const noexcept
	{
		const std::int64_t ns = to_nanoseconds(timeout);

		return buffer(detail::made(xmem_acquire_cuda(raw(), bytes, device, ns), code));
	}
	template <class Rep, class Period>
	buffer acquire_cuda(std::size_t bytes, int device,
			    std::chrono::duration<Rep, Period> timeout) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return acquire_cuda(bytes, device, timeout, code);
		});
	}
	buffer acquire_cuda(std::size_t bytes, int device, std::error_code &code) const noexcept
	{
		return acquire_cuda(bytes, device, forever, code);
	}
	buffer acquire_cuda(std::size_t bytes, int device) const
	{
		return acquire_cuda(bytes, device, forever);
	}

	/* Like acquire_cuda, but the buffer is empty, without an error, if none is free in time. */
	template <class Rep, class Period>
	buffer try_acquire_cuda(std::size_t bytes, int device,
				std::chrono::duration<Rep, Period> timeout,
				std::error_code &code) const noexcept
	{
		buffer acquired = acquire_cuda(bytes, device, timeout, code);

		if (is_empty_for_now(code))
			code.clear();
		return acquired;
	}
	template <class Rep, class Period>
	buffer try_acquire_cuda(std::size_t bytes, int device,
				std::chrono::duration<Rep, Period> timeout) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return try_acquire_cuda(bytes, device, timeout, code);
		});
	}
	buffer try_acquire_cuda(std::size_t bytes, int device,
				std::error_code &code) const noexcept
	{
		return try_acquire_cuda(bytes, device, no_wait, code);
	}
	buffer try_acquire_cuda(std::size_t bytes, int device) const
	{
		return try_acquire_cuda(bytes, device, no_wait);
	}

	/*
	 * Make a buffer of existing memory of a GPU. @done is any callable without arguments that
	 * is noexcept. The library keeps a copy of it, moved if possible. It calls the copy once,
	 * when the memory is no longer used, and destroys it right after that in that thread. So
	 * @done may own the memory. After an error the copy is destroyed and not called.
	 */
	template <class F, class = detail::only_if_quiet<F>>
	buffer attach_cuda(void *ptr, std::size_t bytes, std::uint32_t flags, F &&done,
			   std::error_code &code) const
		noexcept(std::is_nothrow_constructible_v<std::decay_t<F>, F>)
	{
		using kept_type = std::decay_t<F>;
		std::unique_ptr<kept_type> kept(new (std::nothrow)
						kept_type(std::forward<F>(done)));

		if (!kept) {
			code = std::make_error_code(std::errc::not_enough_memory);
			return {};
		}
		return buffer(detail::attach_cuda(raw(), ptr, bytes, flags, kept, code));
	}
	template <class F, class = detail::only_if_quiet<F>>
	buffer attach_cuda(void *ptr, std::size_t bytes, std::uint32_t flags, F &&done) const
	{
		auto kept = std::make_unique<std::decay_t<F>>(std::forward<F>(done));

		return buffer(detail::or_throw([&](std::error_code &code) {
			return detail::attach_cuda(raw(), ptr, bytes, flags, kept, code);
		}));
	}
	/* These make the compiler say what is wrong with a @done that lacks noexcept. */
	template <class F, class = detail::only_if_noisy<F>, class = void>
	buffer attach_cuda(void *ptr, std::size_t bytes, std::uint32_t flags, F &&done,
			   std::error_code &code) const = delete;
	template <class F, class = detail::only_if_noisy<F>, class = void>
	buffer attach_cuda(void *ptr, std::size_t bytes, std::uint32_t flags,
			   F &&done) const = delete;
	/* Without @done. */
	buffer attach_cuda(void *ptr, std::size_t bytes, std::uint32_t flags,
			   std::error_code &code) const noexcept
	{
		return buffer(detail::made(xmem_attach_cuda(raw(), ptr, bytes, flags, nullptr,
							    nullptr), code));
	}
	buffer attach_cuda(void *ptr, std::size_t bytes, std::error_code &code) const noexcept
	{
		return attach_cuda(ptr, bytes, 0, code);
	}
	buffer attach_cuda(void *ptr, std::size_t bytes, std::uint32_t flags = 0) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return attach_cuda(ptr, bytes, flags, code);
		});
	}

};

} // namespace detail

} // namespace xmem

#endif
