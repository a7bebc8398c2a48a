/* SPDX-License-Identifier: MIT */
/* Descriptors of a pool in C++, and access to it. A part of xmem.hpp. */
#ifndef XMEM_POOL_ACCESS_HPP
#define XMEM_POOL_ACCESS_HPP

#include "options.hpp"
#include "pool_info.hpp"

namespace xmem {

namespace detail {

/* The functions of xmem::pool that give descriptors, or decide about other clients. */
class pool_access : public pool_info {
public:
	using pool_info::pool_info;

	/* A descriptor for poll, select and epoll; it stays the library's. */
	int poll_fd(std::error_code &code) const noexcept
	{
		const int fd = xmem_pool_poll_fd(raw());

		detail::counted(fd, code);
		return code ? -1 : fd;
	}
	int poll_fd() const
	{
		return detail::or_throw([&](std::error_code &code) { return poll_fd(code); });
	}

	/* A descriptor that is readable when clients have subscribed to this writer or left it. */
	int subscribers_poll_fd(std::error_code &code) const noexcept
	{
		const int fd = xmem_subscribers_poll_fd(raw());

		detail::counted(fd, code);
		return code ? -1 : fd;
	}
	int subscribers_poll_fd() const
	{
		return detail::or_throw([&](std::error_code &code) {
			return subscribers_poll_fd(code);
		});
	}

	/* A descriptor with which another process can join. */
	descriptor fd(std::error_code &code) const noexcept
	{
		const int fd = xmem_pool_fd(raw());

		detail::counted(fd, code);
		return descriptor(code ? -1 : fd);
	}
	descriptor fd() const
	{
		return detail::or_throw([&](std::error_code &code) { return fd(code); });
	}

	/* Make a descriptor for fewer roles, XMEM_MAY_*, from a descriptor of a pool. */
	static descriptor narrow(int fd, std::uint32_t roles, std::error_code &code) noexcept
	{
		const int narrower = xmem_pool_fd_narrow(fd, roles);

		detail::counted(narrower, code);
		return descriptor(code ? -1 : narrower);
	}
	static descriptor narrow(int fd, std::uint32_t roles)
	{
		return detail::or_throw([&](std::error_code &code) {
			return narrow(fd, roles, code);
		});
	}

	/* Change who may join from now on. 0 and XMEM_GID_SAME: unchanged. */
	bool set_mode(std::uint32_t mode, std::uint32_t gid, std::error_code &code) const noexcept
	{
		return detail::done(xmem_pool_set_mode(raw(), mode, gid), code);
	}
	void set_mode(std::uint32_t mode, std::uint32_t gid = XMEM_GID_SAME) const
	{
		detail::or_throw([&](std::error_code &code) { return set_mode(mode, gid, code); });
	}

	/* End the client with this number and incarnation (client_info). */
	bool evict(std::uint32_t client, std::uint64_t incarnation,
		   std::error_code &code) const noexcept
	{
		return detail::done(xmem_pool_evict(raw(), client, incarnation), code);
	}
	void evict(std::uint32_t client, std::uint64_t incarnation) const
	{
		detail::or_throw([&](std::error_code &code) {
			return evict(client, incarnation, code);
		});
	}

	/* Let another client hold this client's buffers. */
	bool grant(std::uint32_t client, std::uint64_t incarnation,
		   std::error_code &code) const noexcept
	{
		return detail::done(xmem_pool_grant(raw(), client, incarnation), code);
	}
	void grant(std::uint32_t client, std::uint64_t incarnation) const
	{
		detail::or_throw([&](std::error_code &code) {
			return grant(client, incarnation, code);
		});
	}

	/* Close the pool to new clients. Returns how many clients XMEM_DRAIN_EVICTS has ended. */
	std::uint32_t drain(std::uint32_t flags, std::error_code &code) const noexcept
	{
		const int evicted = xmem_pool_drain(raw(), flags);

		return static_cast<std::uint32_t>(detail::counted(evicted, code));
	}
	std::uint32_t drain(std::uint32_t flags = 0) const
	{
		return detail::or_throw([&](std::error_code &code) { return drain(flags, code); });
	}

};

} // namespace detail

} // namespace xmem

#endif
