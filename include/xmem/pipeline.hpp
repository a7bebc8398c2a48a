/* SPDX-License-Identifier: MIT */
/* Pipelines in C++; xmem/publish.h has the words. A part of xmem.hpp. */
#ifndef XMEM_PIPELINE_HPP
#define XMEM_PIPELINE_HPP

#include "pool.hpp"

namespace xmem {

/*
 * buffer::publish for what is held: once more, to the subscribers of this client. Without a timeout
 * it waits for room in the ring as long as it takes.
 */
template <class Rep, class Period>
inline std::uint64_t forward(buffer &it, publish_options options,
			     std::chrono::duration<Rep, Period> timeout,
			     std::error_code &code) noexcept
{
	return it.publish(options.within(timeout), code);
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

/* To one subscriber alone; also of a buffer that was acquired, which never waits. */
template <class Rep, class Period>
inline std::uint64_t send(buffer &it, std::uint32_t client, publish_options options,
			  std::chrono::duration<Rep, Period> timeout,
			  std::error_code &code) noexcept
{
	return it.publish(options.to(client).within(timeout), code);
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
