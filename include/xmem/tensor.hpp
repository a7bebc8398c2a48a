/* SPDX-License-Identifier: MIT */
/*
 * Descriptions of contents, in C++: writing them, and reading them back with checks, by the
 * functions of xmem/tensor.h, and of xmem/cuda.h for contents on a GPU. A part of xmem.hpp.
 */
#ifndef XMEM_TENSOR_HPP
#define XMEM_TENSOR_HPP

#include <initializer_list>
#include <optional>
#include <string_view>

#include "buffer.hpp"

namespace xmem {

/* ---- types ---- */

namespace detail {

template <class T> constexpr std::uint32_t make_dtype() noexcept
{
	static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "DLPack has no such number");
	constexpr std::uint32_t code = std::is_same_v<T, bool> ? XMEM_DTYPE_CODE_BOOL :
				       std::is_floating_point_v<T> ? XMEM_DTYPE_CODE_FLOAT :
				       std::is_signed_v<T> ? XMEM_DTYPE_CODE_INT :
							     XMEM_DTYPE_CODE_UINT;

	return XMEM_DTYPE(code, 8 * sizeof(T), 1);
}

} // namespace detail

/* XMEM_DTYPE_* of a number. */
template <class T> inline constexpr std::uint32_t dtype_of = detail::make_dtype<T>();

/* ---- describing ---- */

using dimensions = span<const std::int64_t>;

namespace detail {

inline constexpr char strides_are_others[] =
	"describe_tensor: there are as many strides as dimensions, or none";

inline dimensions listed(const std::initializer_list<std::int64_t> &list) noexcept
{
	return {list.begin(), list.size()};
}

} // namespace detail

/* @strides: bytes, one for each dimension (otherwise EINVAL); none: the tensor is dense. */
inline bool describe_tensor(const buffer &to, std::uint32_t dtype, dimensions shape,
			    dimensions strides, std::error_code &code) noexcept
{
	/* The library refuses more dimensions than it takes without reading them. */
	const std::size_t ndim = shape.size() <= XMEM_MAX_DIMENSIONS ? shape.size() :
								       XMEM_MAX_DIMENSIONS + 1;

	if (!strides.empty() && strides.size() != shape.size()) {
		code = std::make_error_code(std::errc::invalid_argument);
		return false;
	}
	return detail::done(xmem_describe_tensor(to.raw(), dtype, static_cast<std::uint32_t>(ndim),
						 shape.data(),
						 strides.empty() ? nullptr : strides.data()),
			    code);
}
inline bool describe_tensor(const buffer &to, std::uint32_t dtype, dimensions shape,
			    std::error_code &code) noexcept
{
	return describe_tensor(to, dtype, shape, {}, code);
}
inline void describe_tensor(const buffer &to, std::uint32_t dtype, dimensions shape,
			    dimensions strides = {})
{
	if (!strides.empty() && strides.size() != shape.size())
		detail::fail(std::make_error_code(std::errc::invalid_argument),
			     detail::strides_are_others);
	detail::or_throw([&](std::error_code &code) {
		return describe_tensor(to, dtype, shape, strides, code);
	});
}
/* With a list: describe_tensor(to, dtype_of<float>, {480, 640}). */
inline bool describe_tensor(const buffer &to, std::uint32_t dtype,
			    std::initializer_list<std::int64_t> shape,
			    std::error_code &code) noexcept
{
	return describe_tensor(to, dtype, detail::listed(shape), code);
}
inline void describe_tensor(const buffer &to, std::uint32_t dtype,
			    std::initializer_list<std::int64_t> shape)
{
	describe_tensor(to, dtype, detail::listed(shape));
}

/* @stride: bytes from one row to the next; 0: no padding. */
inline bool describe_image(const buffer &to, xmem_image_format format, std::uint32_t width,
			   std::uint32_t height, std::size_t stride,
			   std::error_code &code) noexcept
{
	return detail::done(xmem_describe_image(to.raw(), format, width, height, stride), code);
}
inline bool describe_image(const buffer &to, xmem_image_format format, std::uint32_t width,
			   std::uint32_t height, std::error_code &code) noexcept
{
	return describe_image(to, format, width, height, 0, code);
}
inline void describe_image(const buffer &to, xmem_image_format format, std::uint32_t width,
			   std::uint32_t height, std::size_t stride = 0)
{
	detail::or_throw([&](std::error_code &code) {
		return describe_image(to, format, width, height, stride, code);
	});
}

/* The number of bytes of such an image; 0 after an error. */
inline std::size_t image_bytes(xmem_image_format format, std::uint32_t width, std::uint32_t height,
			       std::size_t stride, std::error_code &code) noexcept
{
	const std::int64_t bytes = xmem_image_bytes(format, width, height, stride);

	return detail::done(bytes < 0 ? static_cast<int>(bytes) : 0, code) ?
	       static_cast<std::size_t>(bytes) : 0;
}
inline std::size_t image_bytes(xmem_image_format format, std::uint32_t width, std::uint32_t height,
			       std::size_t stride = 0)
{
	return detail::or_throw([&](std::error_code &code) {
		return image_bytes(format, width, height, stride, code);
	});
}

/*
 * Where the parts of a column of strings lie, to acquire `bytes` and to write them. @flags: 0, or
 * XMEM_STRINGS_VALIDITY.
 */
inline xmem_strings strings_plan(std::uint64_t rows, std::uint64_t chars, std::uint32_t flags,
				 std::error_code &code) noexcept
{
	auto plan = detail::sized<xmem_strings>();

	detail::done(xmem_strings_plan(rows, chars, flags, &plan), code);
	return plan;
}
inline xmem_strings strings_plan(std::uint64_t rows, std::uint64_t chars, std::uint32_t flags = 0)
{
	return detail::or_throw([&](std::error_code &code) {
		return strings_plan(rows, chars, flags, code);
	});
}

inline bool describe_strings(const buffer &to, std::uint64_t rows, std::uint64_t chars,
			     std::uint32_t flags, std::error_code &code) noexcept
{
	return detail::done(xmem_describe_strings(to.raw(), rows, chars, flags), code);
}
inline void describe_strings(const buffer &to, std::uint64_t rows, std::uint64_t chars,
			     std::uint32_t flags = 0)
{
	detail::or_throw([&](std::error_code &code) {
		return describe_strings(to, rows, chars, flags, code);
	});
}

/* nullptr: unchanged. */
inline bool describe_content(const buffer &to, const char *content_type, const char *producer,
			     std::error_code &code) noexcept
{
	auto source = detail::sized<xmem_source>();

	source.content_type = content_type;
	source.producer = producer;
	return detail::done(xmem_describe_source(to.raw(), &source), code);
}
inline bool describe_content(const buffer &to, const char *content_type,
			     std::error_code &code) noexcept
{
	return describe_content(to, content_type, nullptr, code);
}
inline void describe_content(const buffer &to, const char *content_type,
			     const char *producer = nullptr)
{
	detail::or_throw([&](std::error_code &code) {
		return describe_content(to, content_type, producer, code);
	});
}

/* The time of the contents, by CLOCK_MONOTONIC, or as nanoseconds of a clock by its name. */
inline bool describe_time(const buffer &to, std::uint64_t timestamp_ns, const char *name,
			  std::error_code &code) noexcept
{
	auto source = detail::sized<xmem_source>();

	source.timestamp_ns = timestamp_ns;
	source.clock = name ? name : "CLOCK_MONOTONIC";
	return detail::done(xmem_describe_source(to.raw(), &source), code);
}
inline void describe_time(const buffer &to, std::uint64_t timestamp_ns, const char *name)
{
	detail::or_throw([&](std::error_code &code) {
		return describe_time(to, timestamp_ns, name, code);
	});
}
inline bool describe_time(const buffer &to, clock::time_point time, std::error_code &code) noexcept
{
	const std::chrono::nanoseconds since = time.time_since_epoch();

	return describe_time(to, static_cast<std::uint64_t>(since.count()), nullptr, code);
}
inline void describe_time(const buffer &to, clock::time_point time)
{
	detail::or_throw([&](std::error_code &code) { return describe_time(to, time, code); });
}

/* ---- reading ---- */

/* Get a copy, which does not change. */
inline xmem_metadata metadata_view(const buffer &from, std::error_code &code) noexcept
{
	xmem_metadata copy{};

	detail::done(xmem_metadata_view(from.raw(), &copy), code);
	return copy;
}
inline xmem_metadata metadata_view(const buffer &from)
{
	return detail::or_throw([&](std::error_code &code) { return metadata_view(from, code); });
}

/*
 * Get a tensor with all elements within the contents. Its addresses are valid as long as @from is.
 */
inline xmem_tensor tensor_view(const buffer &from, std::error_code &code) noexcept
{
	auto tensor = detail::sized<xmem_tensor>();

	detail::done(xmem_tensor_view(from.raw(), 0, &tensor), code);
	return tensor;
}
inline xmem_tensor tensor_view(const buffer &from)
{
	return detail::or_throw([&](std::error_code &code) { return tensor_view(from, code); });
}

inline xmem_image image_view(const buffer &from, std::error_code &code) noexcept
{
	auto image = detail::sized<xmem_image>();

	detail::done(xmem_image_view(from.raw(), 0, &image), code);
	return image;
}
inline xmem_image image_view(const buffer &from)
{
	return detail::or_throw([&](std::error_code &code) { return image_view(from, code); });
}

/* Get one plane of an image: rows, columns and channels, for elements(). */
inline xmem_tensor image_plane(const xmem_image &image, std::uint32_t plane,
			       std::error_code &code) noexcept
{
	auto tensor = detail::sized<xmem_tensor>();

	detail::done(xmem_image_plane(&image, plane, &tensor), code);
	return tensor;
}
inline xmem_tensor image_plane(const xmem_image &image, std::uint32_t plane)
{
	return detail::or_throw([&](std::error_code &code) {
		return image_plane(image, plane, code);
	});
}

inline xmem_strings strings_view(const buffer &from, std::error_code &code) noexcept
{
	auto strings = detail::sized<xmem_strings>();

	detail::done(xmem_strings_view(from.raw(), 0, &strings), code);
	return strings;
}
inline xmem_strings strings_view(const buffer &from)
{
	return detail::or_throw([&](std::error_code &code) { return strings_view(from, code); });
}

/*
 * Get one string of a column in memory of the CPU; none: the row is null. The publisher may change
 * the characters at any moment. After an error there is none.
 */
inline std::optional<std::string_view> strings_get(const xmem_strings &strings, std::uint64_t row,
						   std::error_code &code) noexcept
{
	const char *chars = nullptr;
	const std::int64_t bytes = xmem_strings_get(&strings, row, &chars);

	if (!detail::done(bytes < 0 ? static_cast<int>(bytes) : 0, code) || !chars)
		return std::nullopt;
	return std::string_view(chars, static_cast<std::size_t>(bytes));
}
inline std::optional<std::string_view> strings_get(const xmem_strings &strings, std::uint64_t row)
{
	return detail::or_throw([&](std::error_code &code) {
		return strings_get(strings, row, code);
	});
}

/* For contents on a GPU: all addresses are there. */
struct cuda_tensor : xmem_tensor {
};

inline cuda_tensor cuda_tensor_view(const buffer &from, std::error_code &code) noexcept
{
	auto tensor = detail::sized<cuda_tensor>();

	detail::counted(xmem_cuda_device(from.raw()), code);
	if (!code)
		detail::done(xmem_tensor_view(from.raw(), XMEM_VIEW_CUDA, &tensor), code);
	return tensor;
}
inline cuda_tensor cuda_tensor_view(const buffer &from)
{
	return detail::or_throw([&](std::error_code &code) {
		return cuda_tensor_view(from, code);
	});
}

inline xmem_image cuda_image_view(const buffer &from, std::error_code &code) noexcept
{
	auto image = detail::sized<xmem_image>();

	detail::counted(xmem_cuda_device(from.raw()), code);
	if (!code)
		detail::done(xmem_image_view(from.raw(), XMEM_VIEW_CUDA, &image), code);
	return image;
}
inline xmem_image cuda_image_view(const buffer &from)
{
	return detail::or_throw([&](std::error_code &code) {
		return cuda_image_view(from, code);
	});
}

inline xmem_strings cuda_strings_view(const buffer &from, std::error_code &code) noexcept
{
	auto strings = detail::sized<xmem_strings>();

	detail::counted(xmem_cuda_device(from.raw()), code);
	if (!code)
		detail::done(xmem_strings_view(from.raw(), XMEM_VIEW_CUDA, &strings), code);
	return strings;
}
inline xmem_strings cuda_strings_view(const buffer &from)
{
	return detail::or_throw([&](std::error_code &code) {
		return cuda_strings_view(from, code);
	});
}

/* Check that the tensor of @metadata fits into @bytes bytes. */
inline bool tensor_check(const xmem_metadata &metadata, std::uint64_t bytes,
			 std::error_code &code) noexcept
{
	return detail::done(xmem_tensor_check(&metadata, bytes), code);
}
inline void tensor_check(const xmem_metadata &metadata, std::uint64_t bytes)
{
	detail::or_throw([&](std::error_code &code) {
		return tensor_check(metadata, bytes, code);
	});
}

namespace detail {

template <class To> To elements_of(const xmem_tensor &tensor, std::error_code &code) noexcept
{
	using T = typename To::value_type;
	static_assert(!std::is_same_v<T, bool>, "bytes of bool may be anything");
	constexpr std::uint32_t wanted = XMEM_TENSOR_DENSE | XMEM_TENSOR_ALIGNED;

	if (tensor.dtype != dtype_of<T> || (tensor.flags & wanted) != wanted) {
		code = std::make_error_code(std::errc::invalid_argument);
		return {};
	}
	code.clear();
	return {static_cast<const T *>(tensor.data), static_cast<std::size_t>(tensor.elements)};
}
template <class To> To elements_of(const xmem_tensor &tensor)
{
	std::error_code code;
	const To found = elements_of<To>(tensor, code);

	if (code)
		fail(code, "elements: the tensor has others, or they are not in a row");
	return found;
}

} // namespace detail

/*
 * The elements of a tensor in a row. EINVAL: they are not of type T, dense and aligned. bool is
 * left out, because a publisher can write other bytes than 0 and 1.
 */
template <class T>
inline span<const T> elements(const xmem_tensor &tensor, std::error_code &code) noexcept
{
	return detail::elements_of<span<const T>>(tensor, code);
}
template <class T> inline span<const T> elements(const xmem_tensor &tensor)
{
	return detail::elements_of<span<const T>>(tensor);
}
/* The elements of a tensor on a GPU. */
template <class T>
inline device_span<const T> elements(const cuda_tensor &tensor, std::error_code &code) noexcept
{
	return detail::elements_of<device_span<const T>>(tensor, code);
}
template <class T> inline device_span<const T> elements(const cuda_tensor &tensor)
{
	return detail::elements_of<device_span<const T>>(tensor);
}

} // namespace xmem

#endif
