/* SPDX-License-Identifier: MIT */
/* Pipelines in C++: see xmem/publish.h. A part of xmem.hpp. */
#ifndef XMEM_PIPELINE_HPP
#define XMEM_PIPELINE_HPP

#include "pool.hpp"

namespace xmem {

/*
 * Publish a held buffer to the subscribers of this client. Without a timeout this waits without end
 * for room in the ring.
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

/* Publish to one subscriber alone. A buffer that was acquired never waits. */
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

/* Take back a publication that no client has received. */
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
