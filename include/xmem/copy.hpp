/* SPDX-License-Identifier: MIT */
/* Copying into buffers in C++; xmem/copy.h has the words. A part of xmem.hpp. */
#ifndef XMEM_COPY_HPP
#define XMEM_COPY_HPP

#include "buffer.hpp"

namespace xmem {

/* The contents and the metadata of @from. */
inline bool copy(const buffer &to, const buffer &from, std::error_code &code) noexcept
{
	return detail::done(xmem_copy(to.raw(), from.raw()), code);
}
inline void copy(const buffer &to, const buffer &from)
{
	detail::or_throw([&](std::error_code &code) { return copy(to, from, code); });
}

/* Memory of this process, to @offset bytes behind the beginning of bytes_mut. */
inline bool copy_bytes(const buffer &to, std::size_t offset, span<const std::byte> from,
		       std::error_code &code) noexcept
{
	return detail::done(xmem_copy_bytes(to.raw(), offset, from.data(), from.size()), code);
}
inline void copy_bytes(const buffer &to, std::size_t offset, span<const std::byte> from)
{
	detail::or_throw([&](std::error_code &code) {
		return copy_bytes(to, offset, from, code);
	});
}

} // namespace xmem

#endif
