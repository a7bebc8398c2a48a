/* SPDX-License-Identifier: MIT */
/* The host in C++: its properties, its pools, its limits. A part of xmem.hpp. */
#ifndef XMEM_HOST_HPP
#define XMEM_HOST_HPP

#include <vector>

#include "basics.hpp"

namespace xmem {

/* The properties of the host. */
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

/* Get the pool after the one with this number; 0: the first. ENOENT: there are no more. */
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

/* Get the limit with this number, or with the next higher one. ENOENT: there are no more. */
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

/* All pools of the host; none if no host is running. This may throw std::bad_alloc. */
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
