/* SPDX-License-Identifier: MIT */
/* Pools in C++, and the host that has them. A part of xmem.hpp. */
#ifndef XMEM_POOL_HPP
#define XMEM_POOL_HPP

#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include "options.hpp"
#include "subscription.hpp"

namespace xmem {

namespace detail {

/*
 * A name that ends with NUL. One with NUL in it becomes one that the library refuses; one that
 * does not fit is cut, and still too long for the library.
 */
struct pool_name {
	explicit pool_name(std::string_view name) noexcept
	{
		const std::size_t size = name.copy(text, sizeof(text) - 1);

		for (std::size_t i = 0; i < size; i++)
			text[i] = text[i] ? text[i] : '?';
	}
	char text[256] = "";
};

/* Can it be called in a function of the library, through which nothing can be thrown? */
template <class F>
using only_if_quiet = std::enable_if_t<std::is_nothrow_invocable_v<std::decay_t<F> &> &&
				       std::is_nothrow_destructible_v<std::decay_t<F>>>;

/* Where only noexcept is missing, which lambdas have to say: []() noexcept { ... }. */
struct done_must_be_noexcept;
template <class F>
using only_if_noisy = std::enable_if_t<std::is_invocable_v<std::decay_t<F> &> &&
				       !std::is_nothrow_invocable_v<std::decay_t<F> &>,
				       done_must_be_noexcept>;

/* For pool::attach_cuda: call what was kept for it, and destroy it. */
template <class F> void call_last(void *kept) noexcept
{
	const std::unique_ptr<F> call(static_cast<F *>(kept));

	(*call)();
}

/* The library has what was kept, unless it fails. */
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

} // namespace detail

/* A buffer of pool::receive_any: also which subscription it is of, as its raw(). */
struct received {
	buffer contents;
	xmem_subscription *from = nullptr;
};

/* The exception of pool::receive_any with EPIPE, when a subscription is over. */
class subscription_over : public error {
public:
	subscription_over(std::error_code code, const char *sentence, xmem_subscription *which)
		: error(code, sentence), from_(which)
	{
	}
	/* As its raw(). The next call says so of the same one, unless that is reset. */
	xmem_subscription *from() const noexcept { return from_; }

private:
	xmem_subscription *from_;
};

class pool : public detail::owner<xmem_pool, xmem_pool_close> {
public:
	using owner::owner;

	/*
	 * Join the pool of that name, or make it; "" and nullptr: an anonymous one. Flags are
	 * options, too.
	 */
	pool(const char *name, const pool_options &options, std::error_code &code) noexcept
		: owner(detail::made(xmem_pool_open(name, &options), code))
	{
	}
	pool(const char *name, std::error_code &code) noexcept : pool(name, {}, code) {}
	explicit pool(const char *name, const pool_options &options = {})
		: owner(detail::or_throw([&](std::error_code &code) {
			  return detail::made(xmem_pool_open(name, &options), code);
		  }))
	{
	}
	pool(std::string_view name, const pool_options &options, std::error_code &code) noexcept
		: pool(detail::pool_name(name).text, options, code)
	{
	}
	pool(std::string_view name, std::error_code &code) noexcept : pool(name, {}, code) {}
	explicit pool(std::string_view name, const pool_options &options = {})
		: pool(detail::pool_name(name).text, options)
	{
	}
	explicit pool(std::nullptr_t, const pool_options &options = {}) : pool("", options) {}

	/* Join the pool that a descriptor stands for. */
	static pool join(int fd, const pool_options &options, std::error_code &code) noexcept
	{
		pool_options wanted = options;

		wanted.flags |= XMEM_OPEN_FD;
		wanted.fd = fd;
		return pool(detail::made(xmem_pool_open(nullptr, &wanted), code));
	}
	static pool join(int fd, std::error_code &code) noexcept { return join(fd, {}, code); }
	static pool join(int fd, const pool_options &options = {})
	{
		return detail::or_throw([&](std::error_code &code) {
			return join(fd, options, code);
		});
	}

	/* Join it anew, in a child that has inherited it by fork, or as a second client. */
	pool reopen(std::error_code &code) const noexcept
	{
		return pool(detail::made(xmem_pool_reopen(raw()), code));
	}
	pool reopen() const
	{
		return detail::or_throw([&](std::error_code &code) { return reopen(code); });
	}

	/* End all waiting in this pool and its subscriptions. */
	void cancel() const noexcept { xmem_cancel(raw()); }

	/* ---- reading ---- */

	subscription subscribe(const subscribe_options &options,
			       std::error_code &code) const noexcept
	{
		return subscription(detail::made(xmem_subscribe(raw(), &options), code));
	}
	subscription subscribe(std::error_code &code) const noexcept { return subscribe({}, code); }
	subscription subscribe(const subscribe_options &options = {}) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return subscribe(options, code);
		});
	}

	template <class Rep, class Period>
	received receive_any(std::chrono::duration<Rep, Period> timeout,
			     std::error_code &code) const noexcept
	{
		const std::int64_t ns = to_nanoseconds(timeout);
		received got;

		got.contents = buffer(detail::made(xmem_receive_any(raw(), ns, &got.from), code));
		return got;
	}
	template <class Rep, class Period>
	received receive_any(std::chrono::duration<Rep, Period> timeout) const
	{
		return detail::or_throw([&](std::error_code &code) {
			received got = receive_any(timeout, code);

			if (code == std::errc::broken_pipe)
				detail::raise(subscription_over(code, last_message().c_str(),
								got.from));
			return got;
		});
	}
	received receive_any(std::error_code &code) const noexcept
	{
		return receive_any(forever, code);
	}
	received receive_any() const { return receive_any(forever); }

	/* Hold what a token names. */
	buffer get(std::uint64_t token, std::error_code &code) const noexcept
	{
		return buffer(detail::made(xmem_get(raw(), token), code));
	}
	buffer get(std::uint64_t token) const
	{
		return detail::or_throw([&](std::error_code &code) { return get(token, code); });
	}

	/* ---- writing ---- */

	/* XMEM_MEMORY_* are options, too. */
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

	/* As above, but it is no error that none is free in time: then the buffer is empty. */
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

	/* As above, but it is no error that none is free in time: then the buffer is empty. */
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
	 * A buffer of memory of a GPU that is there already. @done is any callable without
	 * arguments that is noexcept. The library keeps a copy of it, into which it is moved if it
	 * may be, calls that once when nobody uses the memory any more, and destroys it at once
	 * after that, in the same thread. So @done may own the memory. After an error the copy is
	 * destroyed and not called.
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
	/* So that the compiler names what is wrong with such a @done. */
	template <class F, class = detail::only_if_noisy<F>, class = void>
	buffer attach_cuda(void *ptr, std::size_t bytes, std::uint32_t flags, F &&done,
			   std::error_code &code) const = delete;
	template <class F, class = detail::only_if_noisy<F>, class = void>
	buffer attach_cuda(void *ptr, std::size_t bytes, std::uint32_t flags,
			   F &&done) const = delete;
	/* Nobody wants to know when. */
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

	/* ---- descriptors ---- */

	/* For poll, select and epoll; it stays the library's. */
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

	/* A descriptor, readable as long as clients have come or gone that follow this writer. */
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

	/* With which another process can join, too. */
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

	/* From a descriptor of a pool another one for fewer roles, XMEM_MAY_*. */
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

	/* Change who may join from now on; 0 and XMEM_GID_SAME: as it is. */
	bool set_mode(std::uint32_t mode, std::uint32_t gid, std::error_code &code) const noexcept
	{
		return detail::done(xmem_pool_set_mode(raw(), mode, gid), code);
	}
	void set_mode(std::uint32_t mode, std::uint32_t gid = XMEM_GID_SAME) const
	{
		detail::or_throw([&](std::error_code &code) { return set_mode(mode, gid, code); });
	}

	/* End another client, of this number and incarnation (client_info). */
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

	/* Another client may hold this one's buffers. */
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

	/* Nobody joins any more. How many clients XMEM_DRAIN_EVICTS has ended. */
	std::uint32_t drain(std::uint32_t flags, std::error_code &code) const noexcept
	{
		const int evicted = xmem_pool_drain(raw(), flags);

		return static_cast<std::uint32_t>(detail::counted(evicted, code));
	}
	std::uint32_t drain(std::uint32_t flags = 0) const
	{
		return detail::or_throw([&](std::error_code &code) { return drain(flags, code); });
	}

	/* ---- looking ---- */

	/* "kernel" or "daemon"; nullptr if the object is empty. */
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

	/* The limit with that number, or with the next one that there is; ENOENT: no more. */
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

	/* Wait until so many clients follow this writer; returns how many there are. */
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

	/* The client with that id that follows this writer, or the next; ENOENT: no more. */
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

	/* Its memory on a GPU: the one with that number in the pool, from 1 on. */
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

	/* How many holds a client has of a slot. */
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

/* ---- the host ---- */

/* A description of it. */
inline xmem_host_info host_query(std::error_code &code) noexcept
{
	auto info = detail::sized<xmem_host_info>();

	detail::done(xmem_host_query(&info), code);
	return info;
}
inline xmem_host_info host_query()
{
	return detail::or_throw([](std::error_code &code) { return host_query(code); });
}

/* Its pool behind the one with that number, 0: the first one. ENOENT: there are no more. */
inline xmem_pool_entry pool_next(std::uint64_t after, std::error_code &code) noexcept
{
	auto entry = detail::sized<xmem_pool_entry>();

	detail::done(xmem_pool_next(after, &entry), code);
	return entry;
}

inline xmem_pool_entry pool_next(std::uint64_t after)
{
	return detail::or_throw([&](std::error_code &code) { return pool_next(after, code); });
}

/* Its limit with that number, or with the next one that there is. ENOENT: there are no more. */
inline xmem_limit_info limit_next(std::uint32_t number, std::error_code &code) noexcept
{
	auto info = detail::sized<xmem_limit_info>();

	detail::done(xmem_limit_next(nullptr, number, &info), code);
	return info;
}

inline xmem_limit_info limit_next(std::uint32_t number)
{
	return detail::or_throw([&](std::error_code &code) { return limit_next(number, code); });
}

/* All of its pools, which it may throw std::bad_alloc for; none if no host is running. */
inline std::vector<xmem_pool_entry> pools(std::error_code &code)
{
	std::vector<xmem_pool_entry> all;

	for (;;) {
		const std::uint64_t after = all.empty() ? 0 : all.back().number;
		const xmem_pool_entry entry = pool_next(after, code);

		if (code == std::errc::no_such_file_or_directory)
			code.clear();
		else if (code)
			all.clear();
		else {
			all.push_back(entry);
			continue;
		}
		return all;
	}
}
inline std::vector<xmem_pool_entry> pools()
{
	return detail::or_throw([](std::error_code &code) { return pools(code); });
}

} // namespace xmem

#endif
