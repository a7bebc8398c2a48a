/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's GPUs in C++, and copies from and to them: see xmem/cuda.h. A part of xmem.hpp. Functions
 * that make buffers there are members of the pool, and all others are members of the buffer.
 */
#ifndef XMEM_CUDA_HPP
#define XMEM_CUDA_HPP

#include "buffer.hpp"

namespace xmem {

/* ---- the driver's result behind an error ---- */

/* The calling thread's last CUresult of an error; 0: there is none, or it was forgotten. */
inline int last_cuda_result() noexcept
{
	return detail::peek().cuda_result;
}

/* The name of that CUresult; "CUDA_SUCCESS" if there is none. */
inline const char *last_cuda_name() noexcept
{
	return detail::peek().cuda_name;
}

/* ---- the driver and its devices ---- */

inline xmem_cuda_info cuda_query(std::error_code &code) noexcept
{
	auto info = detail::sized<xmem_cuda_info>();

	detail::done(xmem_cuda_query(&info), code);
	return info;
}
inline xmem_cuda_info cuda_query()
{
	return detail::or_throw([](std::error_code &code) { return cuda_query(code); });
}

inline xmem_cuda_device_info cuda_device_query(int device, std::error_code &code) noexcept
{
	auto info = detail::sized<xmem_cuda_device_info>();

	detail::done(xmem_cuda_device_query(device, &info), code);
	return info;
}
inline xmem_cuda_device_info cuda_device_query(int device)
{
	return detail::or_throw([=](std::error_code &code) {
		return cuda_device_query(device, code);
	});
}

/* ---- copies ---- */

/* Copy memory of this process to @offset bytes behind the beginning of cuda_ptr_mut. */
inline bool copy_to_cuda(const buffer &to, std::size_t offset, span<const std::byte> from,
			 std::error_code &code) noexcept
{
	return detail::done(xmem_copy_from_host(to.raw(), offset, from.data(), from.size(),
						nullptr), code);
}
inline void copy_to_cuda(const buffer &to, std::size_t offset, span<const std::byte> from)
{
	detail::or_throw([&](std::error_code &code) {
		return copy_to_cuda(to, offset, from, code);
	});
}

/* Copy as many bytes of the contents as @to has. */
inline bool copy_to_cpu(span<std::byte> to, const buffer &from, std::size_t offset,
			std::error_code &code) noexcept
{
	return detail::done(xmem_copy_to_host(to.data(), from.raw(), offset, to.size(),
					      nullptr), code);
}
inline void copy_to_cpu(span<std::byte> to, const buffer &from, std::size_t offset)
{
	detail::or_throw([&](std::error_code &code) {
		return copy_to_cpu(to, from, offset, code);
	});
}

inline bool copy_to_device(const buffer &to, std::size_t to_offset, const buffer &from,
			   std::size_t from_offset, std::size_t bytes,
			   std::error_code &code) noexcept
{
	return detail::done(xmem_copy_range(to.raw(), to_offset, from.raw(), from_offset,
					    bytes, nullptr), code);
}
inline void copy_to_device(const buffer &to, std::size_t to_offset, const buffer &from,
			   std::size_t from_offset, std::size_t bytes)
{
	detail::or_throw([&](std::error_code &code) {
		return copy_to_device(to, to_offset, from, from_offset, bytes, code);
	});
}

/* ---- copies on a stream ---- */

namespace detail {

template <class T> inline constexpr bool is_span = false;
template <class T> inline constexpr bool is_span<span<T>> = true;
#ifdef __cpp_lib_span
template <class T, std::size_t N> inline constexpr bool is_span<std::span<T, N>> = true;
#endif

} // namespace detail

/* A buffer that a stream uses after the call, so a temporary does not convert to this. */
class lasting_buffer {
public:
	lasting_buffer(const buffer &from) noexcept : raw_(from.raw()) {}
	lasting_buffer(const buffer &&) = delete;

	xmem_buffer *raw() const noexcept { return raw_; }

private:
	xmem_buffer *raw_;
};

/* For bytes. A temporary span is accepted, because it does not own them. */
class lasting_bytes {
public:
	template <class C, class = detail::only_with_elements<const C &, const std::byte>>
	lasting_bytes(const C &from) noexcept : bytes_(from)
	{
	}
	template <class C, class = detail::only_with_elements<const C &, const std::byte>,
		  class = std::enable_if_t<!detail::is_span<C>>>
	lasting_bytes(const C &&) = delete;

	const std::byte *data() const noexcept { return bytes_.data(); }
	std::size_t size() const noexcept { return bytes_.size(); }

private:
	span<const std::byte> bytes_;
};

inline bool copy_to_cuda_on(lasting_buffer to, std::size_t offset, lasting_bytes from,
			    CUstream_st *stream, std::error_code &code) noexcept
{
	return detail::done(xmem_copy_from_host(to.raw(), offset, from.data(), from.size(),
						detail::on(stream)), code);
}
inline void copy_to_cuda_on(lasting_buffer to, std::size_t offset, lasting_bytes from,
			    CUstream_st *stream)
{
	detail::or_throw([&](std::error_code &code) {
		return copy_to_cuda_on(to, offset, from, stream, code);
	});
}

inline bool copy_to_cpu_on(span<std::byte> to, lasting_buffer from, std::size_t offset,
			   CUstream_st *stream, std::error_code &code) noexcept
{
	return detail::done(xmem_copy_to_host(to.data(), from.raw(), offset, to.size(),
					      detail::on(stream)), code);
}
inline void copy_to_cpu_on(span<std::byte> to, lasting_buffer from, std::size_t offset,
			   CUstream_st *stream)
{
	detail::or_throw([&](std::error_code &code) {
		return copy_to_cpu_on(to, from, offset, stream, code);
	});
}

inline bool copy_to_device_on(lasting_buffer to, std::size_t to_offset, lasting_buffer from,
			      std::size_t from_offset, std::size_t bytes, CUstream_st *stream,
			      std::error_code &code) noexcept
{
	return detail::done(xmem_copy_range(to.raw(), to_offset, from.raw(), from_offset,
					    bytes, detail::on(stream)), code);
}
inline void copy_to_device_on(lasting_buffer to, std::size_t to_offset, lasting_buffer from,
			      std::size_t from_offset, std::size_t bytes, CUstream_st *stream)
{
	detail::or_throw([&](std::error_code &code) {
		return copy_to_device_on(to, to_offset, from, from_offset, bytes, stream, code);
	});
}

} // namespace xmem

#endif
