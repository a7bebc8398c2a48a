/* SPDX-License-Identifier: MIT */
/* Subscriptions in C++, and receiving in a range-for. A part of xmem.hpp. */
#ifndef XMEM_SUBSCRIPTION_HPP
#define XMEM_SUBSCRIPTION_HPP

#include <iterator>

#include "buffer.hpp"

namespace xmem {

namespace detail {

inline std::error_code no_publisher() noexcept
{
	return std::make_error_code(std::errc::no_such_file_or_directory);
}

} // namespace detail

class subscription : public detail::owner<xmem_subscription, xmem_unsubscribe> {
public:
	using owner::owner;

	/* Receive the next publication. */
	template <class Rep, class Period>
	buffer receive(std::chrono::duration<Rep, Period> timeout,
		       std::error_code &code) const noexcept
	{
		return buffer(detail::made(xmem_receive(raw(), to_nanoseconds(timeout)), code));
	}
	template <class Rep, class Period>
	buffer receive(std::chrono::duration<Rep, Period> timeout) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return receive(timeout, code);
		});
	}
	buffer receive(std::error_code &code) const noexcept { return receive(forever, code); }
	buffer receive() const { return receive(forever); }

	/* Like receive, but the buffer is empty, without an error, if none comes in time. */
	template <class Rep, class Period>
	buffer try_receive(std::chrono::duration<Rep, Period> timeout,
			   std::error_code &code) const noexcept
	{
		buffer received = receive(timeout, code);

		if (is_empty_for_now(code))
			code.clear();
		return received;
	}
	template <class Rep, class Period>
	buffer try_receive(std::chrono::duration<Rep, Period> timeout) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return try_receive(timeout, code);
		});
	}
	buffer try_receive(std::error_code &code) const noexcept
	{
		return try_receive(no_wait, code);
	}
	buffer try_receive() const { return try_receive(no_wait); }

	/* The state of the subscription. */
	xmem_subscription_info info(std::error_code &code) const noexcept
	{
		auto told = detail::sized<xmem_subscription_info>();

		detail::done(xmem_subscription_stat(raw(), &told), code);
		return told;
	}
	xmem_subscription_info info() const
	{
		return detail::or_throw([&](std::error_code &code) { return info(code); });
	}

	/* 0 if there is no subscription. */
	std::uint64_t lost() const noexcept
	{
		std::error_code code;

		return info(code).lost;
	}

	/* ENOENT: no publisher has come yet. */
	std::uint32_t publisher(std::error_code &code) const noexcept
	{
		const std::uint32_t id = info(code).publisher;

		if (!code && id == XMEM_NOBODY)
			code = detail::no_publisher();
		return code ? 0 : id;
	}
	std::uint32_t publisher() const
	{
		const std::uint32_t id = info().publisher;

		if (id == XMEM_NOBODY)
			detail::fail(detail::no_publisher(), "publisher: none has come yet");
		return id;
	}

	/* A descriptor for poll, select and epoll; it stays the library's. */
	int poll_fd(std::error_code &code) const noexcept
	{
		const int fd = xmem_subscription_poll_fd(raw());

		detail::counted(fd, code);
		return code ? -1 : fd;
	}
	int poll_fd() const
	{
		return detail::or_throw([&](std::error_code &code) { return poll_fd(code); });
	}

	class iterator;
	class range;
	struct sentinel {};

	/*
	 * The range ends with any error, which is in @code then: EPIPE if all publishers have
	 * ended. A temporary has no range, because it would end before the loop begins.
	 */
	template <class Rep, class Period>
	range each(std::error_code &code,
		   std::chrono::duration<Rep, Period> timeout) const & noexcept;
	template <class Rep, class Period>
	range each(std::error_code &code,
		   std::chrono::duration<Rep, Period> timeout) const && = delete;
	range each(std::error_code &code) const & noexcept;
	range each(std::error_code &code) const && = delete;

	/*
	 * The range ends when all publishers have ended, and by pool::cancel. Other errors are
	 * thrown.
	 */
	iterator begin() const;
	sentinel end() const noexcept { return {}; }
};

/* An iterator that receives one buffer after the other. The program may move its buffer away. */
class subscription::iterator {
public:
	using iterator_category = std::input_iterator_tag;
	using value_type = buffer;
	using difference_type = std::ptrdiff_t;
	using pointer = buffer *;
	using reference = buffer &;

	iterator(const subscription *from, std::chrono::nanoseconds timeout, std::error_code *code)
		: from_(from), timeout_(timeout), code_(code)
	{
		++*this;
	}
	buffer &operator*() const noexcept { return now_; }
	buffer *operator->() const noexcept { return &now_; }
	iterator &operator++()
	{
		std::error_code code;

		now_.reset();	/* before it waits, so that it keeps nothing meanwhile */
		now_ = from_->receive(timeout_, code);
		over_ = static_cast<bool>(code);
		if (code_)
			*code_ = code;
		else if (over_ && code != std::errc::broken_pipe &&
			 code != std::errc::operation_canceled)
			detail::fail(code, last_message().c_str());
		return *this;
	}
	void operator++(int) { ++*this; }
	friend bool operator==(const iterator &at, sentinel) noexcept { return at.over_; }
	friend bool operator!=(const iterator &at, sentinel) noexcept { return !at.over_; }

private:
	const subscription *from_;
	std::chrono::nanoseconds timeout_;
	std::error_code *code_;
	mutable buffer now_;
	bool over_ = false;
};

class subscription::range {
public:
	range(const subscription *from, std::chrono::nanoseconds timeout,
	      std::error_code *code) noexcept
		: from_(from), timeout_(timeout), code_(code)
	{
	}
	iterator begin() const { return iterator(from_, timeout_, code_); }
	sentinel end() const noexcept { return {}; }

private:
	const subscription *from_;
	std::chrono::nanoseconds timeout_;
	std::error_code *code_;
};

template <class Rep, class Period>
inline subscription::range subscription::each(std::error_code &code,
					      std::chrono::duration<Rep, Period> timeout)
	const & noexcept
{
	return {this, std::chrono::nanoseconds(to_nanoseconds(timeout)), &code};
}

inline subscription::range subscription::each(std::error_code &code) const & noexcept
{
	return each(code, forever);
}

inline subscription::iterator subscription::begin() const
{
	return iterator(this, forever, nullptr);
}

} // namespace xmem

#endif
