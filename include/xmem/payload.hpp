/* SPDX-License-Identifier: MIT */
/* Existing files, and writing in place, in C++: see xmem/payload.h. A part of xmem.hpp. */
#ifndef XMEM_PAYLOAD_HPP
#define XMEM_PAYLOAD_HPP

#include "pool.hpp"

namespace xmem {

/* Make a buffer of a file with existing contents. The descriptor stays the caller's. */
inline buffer attach_fd(const pool &in, int fd, std::uint64_t offset, std::uint64_t length,
			std::error_code &code) noexcept
{
	return buffer(detail::made(xmem_attach_fd(in.raw(), fd, offset, length, 0), code));
}
inline buffer attach_fd(const pool &in, int fd, std::uint64_t offset,
			std::error_code &code) noexcept
{
	return attach_fd(in, fd, offset, 0, code);
}
inline buffer attach_fd(const pool &in, int fd, std::error_code &code) noexcept
{
	return attach_fd(in, fd, 0, 0, code);
}
/* If @length is 0, the contents reach up to the end of the file. */
inline buffer attach_fd(const pool &in, int fd, std::uint64_t offset = 0, std::uint64_t length = 0)
{
	return detail::or_throw([&](std::error_code &code) {
		return attach_fd(in, fd, offset, length, code);
	});
}

/* XMEM_BUFFER_*; 0 if the object is empty. */
inline std::uint32_t buffer_flags(const buffer &of) noexcept
{
	std::error_code code;

	return of.info(code).flags;
}

/* Make the only holder of shared contents their writer: bytes_mut() gives them afterwards. */
inline bool get_mut(const buffer &it, std::error_code &code) noexcept
{
	return detail::done(xmem_get_mut(it.raw()), code);
}
inline void get_mut(const buffer &it)
{
	detail::or_throw([&](std::error_code &code) { return get_mut(it, code); });
}

} // namespace xmem

#endif
