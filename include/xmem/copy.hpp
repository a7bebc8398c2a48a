/* SPDX-License-Identifier: MIT */
/* Copying into buffers in C++: see xmem/copy.h. A part of xmem.hpp. */
#ifndef XMEM_COPY_HPP
#define XMEM_COPY_HPP

#include "buffer.hpp"

namespace xmem {

/* Copy the contents and the metadata of @from. */
inline bool copy(const buffer &to, const buffer &from, std::error_code &code) noexcept
{
	return detail::done(xmem_copy(to.raw(), from.raw(), nullptr), code);
}
inline void copy(const buffer &to, const buffer &from)
{
	detail::or_throw([&](std::error_code &code) { return copy(to, from, code); });
}

/* Copy memory of this process to @offset bytes behind the beginning of bytes_mut. */
inline bool copy_bytes(const buffer &to, std::size_t offset, span<const std::byte> from,
		       std::error_code &code) noexcept
{
	return detail::done(xmem_copy_from_host(to.raw(), offset, from.data(), from.size(),
						nullptr), code);
}
inline void copy_bytes(const buffer &to, std::size_t offset, span<const std::byte> from)
{
	detail::or_throw([&](std::error_code &code) {
		return copy_bytes(to, offset, from, code);
	});
}

/* Copy both to a new buffer on this GPU, or with XMEM_CPU on the CPU, which is being written. */
template <class Rep, class Period>
buffer copy_to(const buffer &from, int device_id, std::chrono::duration<Rep, Period> timeout,
	       std::error_code &code) noexcept
{
	return buffer(detail::made(xmem_copy_to(from.raw(), device_id, to_nanoseconds(timeout)),
				   code));
}
template <class Rep, class Period>
buffer copy_to(const buffer &from, int device_id, std::chrono::duration<Rep, Period> timeout)
{
	return detail::or_throw([&](std::error_code &code) {
		return copy_to(from, device_id, timeout, code);
	});
}
inline buffer copy_to(const buffer &from, int device_id)
{
	return copy_to(from, device_id, forever);
}

} // namespace xmem

#endif
