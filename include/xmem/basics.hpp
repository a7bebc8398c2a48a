/* SPDX-License-Identifier: MIT */
/* Errors, time, spans and handles in C++. A part of xmem.hpp. */
#ifndef XMEM_BASICS_HPP
#define XMEM_BASICS_HPP

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <unistd.h>
#if __cplusplus >= 202002L
#include <span>
#endif

#include "../xmem.h"

namespace xmem {

/* ---- errors ---- */

class error : public std::system_error {
public:
	error(std::error_code code, const char *sentence)
		: std::system_error(code, without_reason(sentence, ": " + code.message()))
	{
	}

private:
	/* Some sentences end with the reason that std::system_error adds. */
	static std::string without_reason(std::string sentence, const std::string &reason)
	{
		const std::size_t at = sentence.rfind(reason);

		if (at != std::string::npos && at + reason.size() == sentence.size())
			sentence.resize(at);
		return sentence;
	}
};

namespace detail {

/* A struct of the library's API that knows its size. */
template <class T> T sized() noexcept
{
	T made{};

	made.size = sizeof(T);
	return made;
}

inline xmem_error peek() noexcept
{
	auto last = sized<xmem_error>();

	xmem_peek_last_error(&last);
	return last;
}

} // namespace detail

/* The message of the calling thread's last call that failed; empty if there was none. */
inline std::string last_message()
{
	return detail::peek().message;
}

inline std::error_code last_error() noexcept
{
	return {-xmem_peek_last_error(nullptr), std::generic_category()};
}

inline void clear_last_error() noexcept
{
	xmem_clear_last_error();
}

/* Get the last error, and forget it. */
inline std::error_code take_last_error() noexcept
{
	return {-xmem_get_last_error(nullptr), std::generic_category()};
}

namespace detail {

template <class E> [[noreturn]] void raise(const E &what)
{
#ifdef __cpp_exceptions
	throw what;
#else
	std::fprintf(stderr, "xmem: error %d: %s\n", what.code().value(), what.what());
	std::abort();
#endif
}

[[noreturn]] inline void fail(std::error_code code, const char *sentence)
{
	raise(error(code, sentence));
}

/* Call @call with a place for its error, and throw that error. */
template <class F> auto or_throw(F &&call)
{
	std::error_code code;
	auto result = call(code);

	if (code)
		fail(code, peek().message);
	return result;
}

/* For a function that returns a handle or an address. */
template <class T> T *made(T *handle, std::error_code &ret_code) noexcept
{
	if (handle)
		ret_code.clear();
	else
		ret_code = last_error();
	return handle;
}

/* For a function that returns a number, or a negative errno. */
template <class T> T counted(T result, std::error_code &ret_code) noexcept
{
	ret_code.clear();
	if (result >= 0)
		return result;
	ret_code.assign(static_cast<int>(-result), std::generic_category());
	return 0;
}

/* For a function that returns 0, or a negative errno. */
inline bool done(int result, std::error_code &ret_code) noexcept
{
	counted(result, ret_code);
	return !ret_code;
}

} // namespace detail

/* Is the error a timeout, so that a later call may succeed? */
inline bool is_empty_for_now(std::error_code code) noexcept
{
	return code == std::errc::resource_unavailable_try_again ||
	       code == std::errc::timed_out;
}

/* ---- time ---- */

inline constexpr std::chrono::nanoseconds forever = std::chrono::nanoseconds::max();
inline constexpr std::chrono::nanoseconds no_wait{0};

static_assert(forever.count() == XMEM_FOREVER, "std::chrono::nanoseconds has 64 bits");

/* Nanoseconds, as the library takes them. It refuses negative ones, which also stand for NaN. */
template <class Rep, class Period>
inline std::int64_t to_nanoseconds(std::chrono::duration<Rep, Period> time) noexcept
{
	using wide = std::chrono::duration<long double, std::nano>;
	const long double count = wide(time).count();

	if (count >= static_cast<long double>(XMEM_FOREVER))
		return XMEM_FOREVER;
	return count >= 0 ? static_cast<std::int64_t>(std::ceil(count)) : -1;
}

inline std::int64_t to_nanoseconds(std::chrono::nanoseconds time) noexcept
{
	return time.count();
}

/* CLOCK_MONOTONIC, the clock of timestamps of publications. */
using clock = std::chrono::steady_clock;

/* ---- spans ---- */

namespace detail {

/* Is @C a range of @T in memory, which may be less const? Spans of GPUs are not. */
template <class C, class T, class Data = decltype(std::data(std::declval<C>())),
	  class = decltype(std::size(std::declval<C>())),
	  class = decltype(std::begin(std::declval<C>()))>
using only_with_elements =
	std::enable_if_t<std::is_convertible_v<std::remove_pointer_t<Data> (*)[], T (*)[]>>;

} // namespace detail

/* Elements in other memory. In C++20 it converts to a std::span, and a std::span converts to it. */
template <class T> class span {
public:
	using element_type = T;
	using value_type = std::remove_cv_t<T>;
	using size_type = std::size_t;
	using difference_type = std::ptrdiff_t;
	using pointer = T *;
	using reference = T &;
	using iterator = T *;

	constexpr span() noexcept = default;
	constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
	/* From containers, arrays and spans of such elements. */
	template <class C, class = detail::only_with_elements<C &, T>>
	constexpr span(C &from) noexcept : data_(std::data(from)), size_(std::size(from))
	{
	}
	template <class C, class = detail::only_with_elements<const C &, T>>
	constexpr span(const C &from) noexcept : data_(std::data(from)), size_(std::size(from))
	{
	}

	constexpr T *data() const noexcept { return data_; }
	constexpr std::size_t size() const noexcept { return size_; }
	constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
	constexpr bool empty() const noexcept { return !size_; }
	constexpr T &operator[](std::size_t at) const noexcept { return data_[at]; }
	constexpr T *begin() const noexcept { return data_; }
	constexpr T *end() const noexcept { return data_ + size_; }
	constexpr T &front() const noexcept { return data_[0]; }
	constexpr T &back() const noexcept { return data_[size_ - 1]; }
	/* @offset and @count are not checked. */
	constexpr span subspan(std::size_t offset, std::size_t count) const noexcept
	{
		return {data_ + offset, count};
	}

private:
	T *data_ = nullptr;
	std::size_t size_ = 0;
};

/* For compilers of kernels, such as nvcc: functions that the CPU and the GPU can call. */
#ifdef __CUDACC__
#define XMEM_EVERYWHERE __host__ __device__
#else
#define XMEM_EVERYWHERE
#endif

/*
 * Elements in the memory of a GPU: their address and number, without iterators and operators,
 * because only the GPU can read them. It does not convert to other spans. Kernels take it as a
 * parameter and can call all its members.
 */
template <class T> class device_span {
public:
	using element_type = T;
	using value_type = std::remove_cv_t<T>;
	using size_type = std::size_t;
	using pointer = T *;

	constexpr device_span() noexcept = default;
	XMEM_EVERYWHERE constexpr device_span(T *data, std::size_t size) noexcept
		: data_(data), size_(size)
	{
	}
	/* A span that can be written can be read. */
	template <class U, class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
	XMEM_EVERYWHERE constexpr device_span(device_span<U> from) noexcept
		: data_(from.data()), size_(from.size())
	{
	}

	/* For kernels, and for functions of CUDA. */
	XMEM_EVERYWHERE constexpr T *data() const noexcept { return data_; }
	XMEM_EVERYWHERE constexpr std::size_t size() const noexcept { return size_; }
	XMEM_EVERYWHERE constexpr std::size_t size_bytes() const noexcept
	{
		return size_ * sizeof(T);
	}
	XMEM_EVERYWHERE constexpr bool empty() const noexcept { return !size_; }
	/* @offset and @count are not checked. */
	XMEM_EVERYWHERE constexpr device_span subspan(std::size_t offset,
						      std::size_t count) const noexcept
	{
		return {data_ + offset, count};
	}

private:
	T *data_ = nullptr;
	std::size_t size_ = 0;
};

#undef XMEM_EVERYWHERE

/* ---- what handles have in common ---- */

namespace detail {

template <class T, void (*Drop)(T *)> class owner {
public:
	owner() noexcept = default;
	/* This object drops @raw at its end. */
	explicit owner(T *raw) noexcept : raw_(raw) {}
	owner(owner &&other) noexcept : raw_(other.detach()) {}
	owner &operator=(owner &&other) noexcept
	{
		if (this != &other)
			reset(other.detach());
		return *this;
	}
	~owner() { Drop(raw_); }

	explicit operator bool() const noexcept { return raw_; }
	T *raw() const noexcept { return raw_; }
	/* Drop the handle, and own @raw instead. */
	void reset(T *raw = nullptr) noexcept { Drop(std::exchange(raw_, raw)); }
	/* Give the handle up: the caller drops it. */
	T *detach() noexcept { return std::exchange(raw_, nullptr); }

private:
	T *raw_ = nullptr;
};

} // namespace detail

/* A file descriptor that this object closes at its end; -1: none. */
class descriptor {
public:
	descriptor() noexcept = default;
	explicit descriptor(int fd) noexcept : fd_(fd) {}
	descriptor(descriptor &&other) noexcept : fd_(other.detach()) {}
	descriptor &operator=(descriptor &&other) noexcept
	{
		if (this != &other)
			reset(other.detach());
		return *this;
	}
	~descriptor() { reset(); }

	explicit operator bool() const noexcept { return fd_ >= 0; }
	int raw() const noexcept { return fd_; }
	int detach() noexcept { return std::exchange(fd_, -1); }
	void reset(int fd = -1) noexcept
	{
		const int old = std::exchange(fd_, fd);

		if (old >= 0)
			::close(old);
	}

private:
	int fd_ = -1;
};

} // namespace xmem

#ifdef __cpp_lib_span
/* A temporary span does not own its elements, so a std::span of them stays valid. */
template <class T> inline constexpr bool std::ranges::enable_borrowed_range<xmem::span<T>> = true;
#endif

#endif
