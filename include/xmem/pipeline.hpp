/* SPDX-License-Identifier: MIT */
/* Pipelines in C++; xmem/publish.h has the words. A part of xmem.hpp. */
#ifndef XMEM_PIPELINE_HPP
#define XMEM_PIPELINE_HPP

#include "pool.hpp"

namespace xmem {

namespace detail {

/* The object is empty after success, unless the handle was kept. */
inline std::uint64_t passed_on(buffer &it, const publish_options &options, int result,
			       std::uint64_t token, std::error_code &code) noexcept
{
	if (!done(result, code))
		return 0;
	if (!(options.flags & XMEM_PUBLISH_KEEP))
		it.detach();
	return token;
}

} // namespace detail

/*
 * Publish what is held once more, to the subscribers of this client, and return its token. The
 * object is empty then, unless XMEM_PUBLISH_KEEP is among the options' flags; after an error it
 * has the buffer as before. Without a timeout it waits for room in the ring as long as it takes.
 */
template <class Rep, class Period>
inline std::uint64_t forward(buffer &it, const publish_options &options,
			     std::chrono::duration<Rep, Period> timeout,
			     std::error_code &code) noexcept
{
	std::uint64_t token = 0;
	const int result = xmem_forward(it.raw(), &options, to_nanoseconds(timeout), &token);

	return detail::passed_on(it, options, result, token, code);
}
template <class Rep, class Period>
inline std::uint64_t forward(buffer &it, const publish_options &options,
			     std::chrono::duration<Rep, Period> timeout)
{
	return detail::or_throw([&](std::error_code &code) {
		return forward(it, options, timeout, code);
	});
}
inline std::uint64_t forward(buffer &it, const publish_options &options,
			     std::error_code &code) noexcept
{
	return forward(it, options, forever, code);
}
inline std::uint64_t forward(buffer &it, std::error_code &code) noexcept
{
	return forward(it, {}, code);
}
inline std::uint64_t forward(buffer &it, const publish_options &options = {})
{
	return forward(it, options, forever);
}

/* The same to one subscriber alone; also of a buffer that was acquired, which never waits. */
template <class Rep, class Period>
inline std::uint64_t send(buffer &it, std::uint32_t client, const publish_options &options,
			  std::chrono::duration<Rep, Period> timeout,
			  std::error_code &code) noexcept
{
	std::uint64_t token = 0;
	const int result = xmem_send(it.raw(), client, &options, to_nanoseconds(timeout), &token);

	return detail::passed_on(it, options, result, token, code);
}
template <class Rep, class Period>
inline std::uint64_t send(buffer &it, std::uint32_t client, const publish_options &options,
			  std::chrono::duration<Rep, Period> timeout)
{
	return detail::or_throw([&](std::error_code &code) {
		return send(it, client, options, timeout, code);
	});
}
inline std::uint64_t send(buffer &it, std::uint32_t client, const publish_options &options,
			  std::error_code &code) noexcept
{
	return send(it, client, options, forever, code);
}
inline std::uint64_t send(buffer &it, std::uint32_t client, std::error_code &code) noexcept
{
	return send(it, client, {}, code);
}
inline std::uint64_t send(buffer &it, std::uint32_t client, const publish_options &options = {})
{
	return send(it, client, options, forever);
}

/* Take back what nobody has received. */
inline bool retract(const pool &in, std::uint64_t token, std::error_code &code) noexcept
{
	return detail::done(xmem_retract(in.raw(), token), code);
}
inline void retract(const pool &in, std::uint64_t token)
{
	detail::or_throw([&](std::error_code &code) { return retract(in, token, code); });
}

} // namespace xmem

#endif
