/* SPDX-License-Identifier: MIT */
/* Services in C++: see xmem/service.h. A part of xmem.hpp. */
#ifndef XMEM_SERVICE_HPP
#define XMEM_SERVICE_HPP

#include "buffer.hpp"

namespace xmem {

namespace detail {

/* A server that drops a request lets the call fail at once. */
inline void drop_request(xmem_request *request) noexcept
{
	if (request)
		xmem_refuse(request, ECANCELED);
}

template <class Rep, class Period>
inline xmem_service_options service_options(std::uint32_t flags,
					    std::chrono::duration<Rep, Period> timeout,
					    const xmem_pool_options *pool) noexcept
{
	auto options = sized<xmem_service_options>();

	options.flags = flags;
	options.pool = pool;
	options.timeout_ns = to_nanoseconds(timeout);
	return options;
}

} // namespace detail

/* A request that a server has received. Its destructor refuses it with ECANCELED. */
class request : public detail::owner<xmem_request, detail::drop_request> {
public:
	using owner::owner;

	/* The contents, held for reading, in a handle of their own. */
	buffer contents(std::error_code &code) const noexcept
	{
		xmem_buffer *const held = detail::made(xmem_request_buffer(raw()), code);

		return buffer(held ? detail::made(xmem_clone(held), code) : nullptr);
	}
	buffer contents() const
	{
		return detail::or_throw([&](std::error_code &code) { return contents(code); });
	}
	/* False, with std::errc::operation_canceled or broken_pipe: the caller waits no more. */
	bool is_wanted(std::error_code &code) const noexcept
	{
		return detail::done(xmem_request_stat(raw()), code);
	}

	/* Respond. @response is empty afterwards; the request is, too, without @more. */
	bool respond(buffer &response, bool more, std::error_code &code) noexcept
	{
		if (!detail::done(xmem_respond(raw(), response.raw(),
					       more ? XMEM_RESPOND_MORE : 0), code))
			return false;
		response.detach();
		if (!more)
			detach();
		return true;
	}
	void respond(buffer &&response, bool more = false)
	{
		detail::or_throw([&](std::error_code &code) {
			return respond(response, more, code);
		});
	}
	/* Refuse: the call fails with @error, an errno. The request is empty afterwards. */
	bool refuse(int error, std::error_code &code) noexcept
	{
		if (!detail::done(xmem_refuse(raw(), error), code))
			return false;
		detach();
		return true;
	}
	void refuse(int error)
	{
		detail::or_throw([&](std::error_code &code) { return refuse(error, code); });
	}
};

class server : public detail::owner<xmem_server, xmem_server_close> {
public:
	using owner::owner;

	/* The pool, which is the server's; nullptr if there is none. */
	xmem_pool *pool() const noexcept { return raw() ? xmem_server_pool(raw()) : nullptr; }

	template <class Rep, class Period>
	request receive(std::chrono::duration<Rep, Period> timeout,
			std::error_code &code) const noexcept
	{
		return request(detail::made(xmem_server_receive(raw(), to_nanoseconds(timeout)),
					    code));
	}
	template <class Rep, class Period>
	request receive(std::chrono::duration<Rep, Period> timeout) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return receive(timeout, code);
		});
	}
};

class caller : public detail::owner<xmem_caller, xmem_caller_close> {
public:
	using owner::owner;

	/* The pool, which is the caller's; nullptr if there is none. */
	xmem_pool *pool() const noexcept { return raw() ? xmem_caller_pool(raw()) : nullptr; }

	/* Send a request, which is empty afterwards. Returns the number of the call; 0: error. */
	template <class Rep, class Period>
	std::uint64_t call(buffer &contents, std::chrono::duration<Rep, Period> timeout,
			   std::error_code &code) const noexcept
	{
		std::uint64_t number = 0;

		if (detail::done(xmem_call(raw(), contents.raw(), to_nanoseconds(timeout),
					   &number), code))
			contents.detach();
		return number;
	}
	template <class Rep, class Period>
	std::uint64_t call(buffer &&contents, std::chrono::duration<Rep, Period> timeout) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return call(contents, timeout, code);
		});
	}
	/* Receive a response to call @number, or to any call if it is 0. */
	template <class Rep, class Period>
	buffer receive(std::uint64_t number, std::chrono::duration<Rep, Period> timeout,
		       std::error_code &code, xmem_response *told = nullptr) const noexcept
	{
		return buffer(detail::made(xmem_receive_response(raw(), number,
								 to_nanoseconds(timeout), told),
					   code));
	}
	template <class Rep, class Period>
	buffer receive(std::uint64_t number, std::chrono::duration<Rep, Period> timeout,
		       xmem_response *told = nullptr) const
	{
		return detail::or_throw([&](std::error_code &code) {
			return receive(number, timeout, code, told);
		});
	}
	bool cancel(std::uint64_t number, std::error_code &code) const noexcept
	{
		return detail::done(xmem_cancel_call(raw(), number), code);
	}
	void cancel(std::uint64_t number) const
	{
		detail::or_throw([&](std::error_code &code) { return cancel(number, code); });
	}
};

/* Serve on a name, and wait for the turn up to @timeout. @flags: XMEM_SERVE_*. */
template <class Rep, class Period>
server serve(const char *name, std::chrono::duration<Rep, Period> timeout, std::error_code &code,
	     std::uint32_t flags = 0, const xmem_pool_options *pool = nullptr) noexcept
{
	const auto options = detail::service_options(flags, timeout, pool);

	return server(detail::made(xmem_serve(name, &options), code));
}
template <class Rep, class Period>
server serve(const char *name, std::chrono::duration<Rep, Period> timeout, std::uint32_t flags = 0,
	     const xmem_pool_options *pool = nullptr)
{
	return detail::or_throw([&](std::error_code &code) {
		return serve(name, timeout, code, flags, pool);
	});
}

/* Become a caller of a service, and wait for a server up to @timeout. */
template <class Rep, class Period>
caller open_caller(const char *name, std::chrono::duration<Rep, Period> timeout,
		   std::error_code &code, const xmem_pool_options *pool = nullptr) noexcept
{
	const auto options = detail::service_options(0, timeout, pool);

	return caller(detail::made(xmem_caller_open(name, &options), code));
}
template <class Rep, class Period>
caller open_caller(const char *name, std::chrono::duration<Rep, Period> timeout,
		   const xmem_pool_options *pool = nullptr)
{
	return detail::or_throw([&](std::error_code &code) {
		return open_caller(name, timeout, code, pool);
	});
}

} // namespace xmem

#endif
