/* SPDX-License-Identifier: MIT */
/* Pools in C++: joining one, and receiving. A part of xmem.hpp. */
#ifndef XMEM_POOL_HPP
#define XMEM_POOL_HPP

#include <string_view>

#include "host.hpp"
#include "options.hpp"
#include "pool_memory.hpp"
#include "subscription.hpp"

namespace xmem {

namespace detail {

/*
 * A name that ends with NUL. The library refuses a name with NUL in it, because '?' replaces the
 * NUL here, and a name that is too long, because enough of it is left.
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

} // namespace detail

/* The buffer of pool::receive_any, and the raw() of its subscription. */
struct received {
	buffer contents;
	xmem_subscription *from = nullptr;
};

/* The exception of pool::receive_any for EPIPE: a subscription is over. */
class subscription_over : public error {
public:
	subscription_over(std::error_code code, const char *sentence, xmem_subscription *which)
		: error(code, sentence), from_(which)
	{
	}
	/* The raw() of the subscription. The next call reports it again, unless it is reset. */
	xmem_subscription *from() const noexcept { return from_; }

private:
	xmem_subscription *from_;
};

class pool : public detail::pool_memory {
public:
	using pool_memory::pool_memory;

	/*
	 * Join the pool of this name, or make it; "" and nullptr: an anonymous one. Flags can stand
	 * for options.
	 */
	pool(const char *name, const pool_options &options, std::error_code &code) noexcept
		: pool_memory(detail::made(xmem_pool_open(name, &options), code))
	{
	}
	pool(const char *name, std::error_code &code) noexcept : pool(name, {}, code) {}
	explicit pool(const char *name, const pool_options &options = {})
		: pool_memory(detail::or_throw([&](std::error_code &code) {
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

	/* Join the pool of a descriptor. */
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

	/* Join the pool anew, in a child that has inherited this by fork, or as a second client. */
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

	/* Get the buffer that a token names, and hold it. */
	buffer get(std::uint64_t token, std::error_code &code) const noexcept
	{
		return buffer(detail::made(xmem_get(raw(), token), code));
	}
	buffer get(std::uint64_t token) const
	{
		return detail::or_throw([&](std::error_code &code) { return get(token, code); });
	}
};

} // namespace xmem

#endif
