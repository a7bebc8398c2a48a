/* SPDX-License-Identifier: MIT */
/* Giving memory back, and limbo, in C++: see xmem/memory.h. A part of xmem.hpp. */
#ifndef XMEM_MEMORY_HPP
#define XMEM_MEMORY_HPP

#include "pool.hpp"

namespace xmem {

/* Returns how many bytes have been given back. */
inline std::uint64_t trim(const pool &of, std::uint64_t keep, std::error_code &code) noexcept
{
	std::uint64_t bytes = 0;
	const int found = of.raw() ? xmem_collect(of.raw(), keep, &bytes) : -EINVAL;

	return detail::done(found < 0 ? found : 0, code) ? bytes : 0;
}
inline std::uint64_t trim(const pool &of, std::error_code &code) noexcept
{
	return trim(of, 0, code);
}
inline std::uint64_t trim(const pool &of, std::uint64_t keep = 0)
{
	return detail::or_throw([&](std::error_code &code) { return trim(of, keep, code); });
}

/* Returns how many buffers of this writer were found. */
inline std::uint32_t collect(const pool &of, std::error_code &code) noexcept
{
	const int found = of.raw() ? xmem_collect(of.raw(), XMEM_KEEP_ALL, nullptr) : -EINVAL;

	return detail::done(found < 0 ? found : 0, code) ? static_cast<std::uint32_t>(found) : 0;
}
inline std::uint32_t collect(const pool &of)
{
	return detail::or_throw([&](std::error_code &code) { return collect(of, code); });
}

/* @call is a C function, so it must not throw. */
inline bool limbo_hook(const pool &of, std::uint64_t bytes, std::uint32_t count,
		       xmem_limbo_function *call, void *user, std::error_code &code) noexcept
{
	return detail::done(xmem_limbo_hook(of.raw(), bytes, count, call, user), code);
}
inline void limbo_hook(const pool &of, std::uint64_t bytes, std::uint32_t count,
		       xmem_limbo_function *call, void *user)
{
	detail::or_throw([&](std::error_code &code) {
		return limbo_hook(of, bytes, count, call, user, code);
	});
}

} // namespace xmem

#endif
