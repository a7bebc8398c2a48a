/* SPDX-License-Identifier: MIT */
/* Looking at a pool in C++. A part of xmem.hpp. */
#ifndef XMEM_POOL_INFO_HPP
#define XMEM_POOL_INFO_HPP

#include "options.hpp"

namespace xmem {

namespace detail {

/* The functions of xmem::pool that look at the pool. */
class pool_info : public owner<xmem_pool, xmem_pool_close> {
public:
	using owner::owner;

	/* "kernel" or "daemon"; nullptr if this object is empty. */
	const char *backend() const noexcept { return xmem_pool_backend(raw()); }

	std::uint32_t client(std::error_code &code) const noexcept
	{
		return static_cast<std::uint32_t>(detail::counted(xmem_pool_client(raw()), code));
	}
	std::uint32_t client() const
	{
		return detail::or_throw([&](std::error_code &code) { return client(code); });
	}

	xmem_pool_info stat(std::error_code &code) const noexcept
	{
		auto info = detail::sized<xmem_pool_info>();

		detail::done(xmem_pool_stat(raw(), &info), code);
		return info;
	}
	xmem_pool_info stat() const
	{
		return detail::or_throw([&](std::error_code &code) { return stat(code); });
	}

	/*
	 * Get the limit with this number, or with the next higher one. ENOENT: there are no more.
	 */
	xmem_limit_info limit_next(std::uint32_t number, std::error_code &code) const noexcept
	{
		auto info = detail::sized<xmem_limit_info>();

		detail::done(xmem_limit_next(raw(), number, &info), code);
		return info;
	}
	xmem_limit_info limit_next(std::uint32_t number) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return limit_next(number, code);
		});
	}

	xmem_client_info client_info(std::uint32_t id, std::error_code &code) const noexcept
	{
		auto info = detail::sized<xmem_client_info>();

		detail::done(xmem_pool_client_info(raw(), id, &info), code);
		return info;
	}
	xmem_client_info client_info(std::uint32_t id) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return client_info(id, code);
		});
	}

	/* Wait until @count clients subscribe to this writer. Returns how many there are. */
	template <class Rep, class Period>
	std::uint32_t wait_subscribers(std::uint32_t count,
				       std::chrono::duration<Rep, Period> timeout,
				       std::error_code &code) const noexcept
	{
		const int found = xmem_wait_subscribers(raw(), count, to_nanoseconds(timeout));

		return static_cast<std::uint32_t>(detail::counted(found, code));
	}
	template <class Rep, class Period>
	std::uint32_t wait_subscribers(std::uint32_t count,
				       std::chrono::duration<Rep, Period> timeout) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return wait_subscribers(count, timeout, code);
		});
	}

	/*
	 * Get the subscriber of this writer with this id, or the next higher one. ENOENT: no more.
	 */
	xmem_subscriber_info subscriber_next(std::uint32_t first,
					     std::error_code &code) const noexcept
	{
		auto info = detail::sized<xmem_subscriber_info>();

		detail::done(xmem_subscriber_next(raw(), first, &info), code);
		return info;
	}
	xmem_subscriber_info subscriber_next(std::uint32_t first) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return subscriber_next(first, code);
		});
	}

	xmem_slot_info slot_info(std::uint32_t slot, std::error_code &code) const noexcept
	{
		auto info = detail::sized<xmem_slot_info>();

		detail::done(xmem_pool_slot_info(raw(), slot, &info), code);
		return info;
	}
	xmem_slot_info slot_info(std::uint32_t slot) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return slot_info(slot, code);
		});
	}

	/* The memory of the pool on the GPU with this number in the pool, from 1 on. */
	xmem_device_info device_info(std::uint32_t device, std::error_code &code) const noexcept
	{
		auto info = detail::sized<xmem_device_info>();

		detail::done(xmem_pool_device_info(raw(), device, &info), code);
		return info;
	}
	xmem_device_info device_info(std::uint32_t device) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return device_info(device, code);
		});
	}

	/* The number of references that a client has of a slot. */
	std::uint64_t holds(std::uint32_t id, std::uint32_t slot,
			    std::error_code &code) const noexcept
	{
		const std::int64_t holds = xmem_pool_holds(raw(), id, slot);

		return static_cast<std::uint64_t>(detail::counted(holds, code));
	}
	std::uint64_t holds(std::uint32_t id, std::uint32_t slot) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return holds(id, slot, code);
		});
	}
};

} // namespace detail

} // namespace xmem

#endif
