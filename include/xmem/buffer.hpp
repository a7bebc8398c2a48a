/* SPDX-License-Identifier: MIT */
/* Buffers in C++. A part of xmem.hpp. */
#ifndef XMEM_BUFFER_HPP
#define XMEM_BUFFER_HPP

#include "options.hpp"

namespace xmem {

class buffer : public detail::owner<xmem_buffer, xmem_release> {
public:
	using owner::owner;

	/* The contents end with the object: a temporary has none that could be looked at later. */
	template <class... Any> void bytes(Any &&...) const && = delete;
	template <class... Any> void bytes_mut(Any &&...) const && = delete;
	template <class... Any> void bytes_private(Any &&...) const && = delete;
	template <class T, class... Any> void as(Any &&...) const && = delete;
	template <class T, class... Any> void as_mut(Any &&...) const && = delete;
	template <class T = std::byte, class... Any> void cuda_ptr(Any &&...) const && = delete;
	template <class T = std::byte, class... Any> void cuda_ptr_mut(Any &&...) const && = delete;
	template <class... Any> void metadata(Any &&...) const && = delete;
	template <class... Any> void metadata_mut(Any &&...) const && = delete;

	/* The contents, for reading. */
	span<const std::byte> bytes(std::error_code &code) const & noexcept
	{
		const void *data = detail::made(xmem_data(raw()), code);

		return {static_cast<const std::byte *>(data), data ? xmem_size(raw()) : 0};
	}
	span<const std::byte> bytes() const &
	{
		return detail::or_throw([&](std::error_code &code) { return bytes(code); });
	}

	/*
	 * The contents of a buffer that is being written, as many bytes as were acquired; from
	 * their beginning on, capacity() bytes can be written.
	 */
	span<std::byte> bytes_mut(std::error_code &code) const & noexcept
	{
		void *data = detail::made(xmem_data_mut(raw()), code);

		return {static_cast<std::byte *>(data), data ? xmem_size(raw()) : 0};
	}
	span<std::byte> bytes_mut() const &
	{
		return detail::or_throw([&](std::error_code &code) { return bytes_mut(code); });
	}

	/*
	 * The contents as memory that may be written, which nobody sees: until the object is empty,
	 * or xmem::get_mut.
	 */
	span<std::byte> bytes_private(std::error_code &code) const & noexcept
	{
		void *data = detail::made(xmem_data_private(raw()), code);

		return {static_cast<std::byte *>(data), data ? xmem_size(raw()) : 0};
	}
	span<std::byte> bytes_private() const &
	{
		return detail::or_throw([&](std::error_code &code) { return bytes_private(code); });
	}

	/*
	 * The contents as elements of @T, for reading: EINVAL unless they are a whole number of
	 * them, at an address that fits.
	 */
	template <class T> span<const T> as(std::error_code &code) const & noexcept
	{
		return cast<span<const T>>(bytes(code), code);
	}
	template <class T> span<const T> as() const &
	{
		return cast<span<const T>>(bytes());
	}
	/* For a buffer that is being written. */
	template <class T> span<T> as_mut(std::error_code &code) const & noexcept
	{
		return cast<span<T>>(bytes_mut(code), code);
	}
	template <class T> span<T> as_mut() const &
	{
		return cast<span<T>>(bytes_mut());
	}

	/*
	 * Of a buffer on a GPU: the contents as elements of @T, for reading there. EINVAL as from
	 * as().
	 */
	template <class T = std::byte>
	device_span<const T> cuda_ptr(std::error_code &code) const & noexcept
	{
		return cast<device_span<const T>>(on_gpu(code), code);
	}
	template <class T = std::byte> device_span<const T> cuda_ptr() const &
	{
		return cast<device_span<const T>>(detail::or_throw([&](std::error_code &code) {
			return on_gpu(code);
		}));
	}
	/*
	 * For a buffer that is being written, as many bytes as were acquired; from their
	 * beginning on, capacity() bytes can be written.
	 */
	template <class T = std::byte>
	device_span<T> cuda_ptr_mut(std::error_code &code) const & noexcept
	{
		return cast<device_span<T>>(on_gpu_mut(code), code);
	}
	template <class T = std::byte> device_span<T> cuda_ptr_mut() const &
	{
		return cast<device_span<T>>(detail::or_throw([&](std::error_code &code) {
			return on_gpu_mut(code);
		}));
	}
	/* This process's number of the GPU; -1 after an error. */
	int cuda_device(std::error_code &code) const noexcept
	{
		const int device = xmem_cuda_device(raw());

		detail::counted(device, code);
		return code ? -1 : device;
	}
	int cuda_device() const
	{
		return detail::or_throw([&](std::error_code &code) { return cuda_device(code); });
	}

	std::size_t size() const noexcept { return xmem_size(raw()); }
	std::size_t capacity() const noexcept { return xmem_capacity(raw()); }
	std::uint64_t token() const noexcept { return xmem_token(raw()); }
	/* The number of its slot, also while it is written; negative if there is no buffer. */
	int slot() const noexcept { return xmem_slot(raw()); }
	/* All that is known of it. */
	xmem_buffer_info info(std::error_code &code) const noexcept
	{
		auto info = detail::sized<xmem_buffer_info>();

		detail::done(xmem_buffer_stat(raw(), &info), code);
		return info;
	}
	xmem_buffer_info info() const
	{
		return detail::or_throw([&](std::error_code &code) { return info(code); });
	}
	/* 0 if there is no buffer. */
	std::uint64_t sequence() const noexcept
	{
		std::error_code code;

		return info(code).sequence;
	}
	/* When its publisher says that it was; the clock's epoch: it does not say. */
	clock::time_point timestamp() const noexcept
	{
		std::error_code code;
		const auto since = static_cast<std::int64_t>(info(code).timestamp_ns);

		return clock::time_point(std::chrono::nanoseconds(since));
	}
	/* XMEM_NOBODY: it has ended, and nothing of it is left. */
	std::uint32_t publisher(std::error_code &code) const noexcept
	{
		return info(code).publisher;
	}
	std::uint32_t publisher() const { return info().publisher; }
	/* The publisher's name for itself, so short that the string needs no memory; or empty. */
	std::string publisher_label(std::error_code &code) const noexcept
	{
		return info(code).label;
	}
	std::string publisher_label() const { return info().label; }

	/* Of a buffer that was received, the publisher can change it at any time. */
	const xmem_metadata *metadata(std::error_code &code) const & noexcept
	{
		return detail::made(xmem_metadata_ptr(raw()), code);
	}
	const xmem_metadata &metadata() const &
	{
		return *detail::or_throw([&](std::error_code &code) { return metadata(code); });
	}
	xmem_metadata *metadata_mut(std::error_code &code) const & noexcept
	{
		return detail::made(xmem_metadata_mut(raw()), code);
	}
	xmem_metadata &metadata_mut() const &
	{
		return *detail::or_throw([&](std::error_code &code) { return metadata_mut(code); });
	}

	/* Another handle of the same contents, for reading. */
	buffer clone(std::error_code &code) const noexcept
	{
		return buffer(detail::made(xmem_clone(raw()), code));
	}
	buffer clone() const
	{
		return detail::or_throw([&](std::error_code &code) { return clone(code); });
	}

	/*
	 * Publish it, and return its token; what is held for reading is forwarded. The object is
	 * empty then, unless XMEM_PUBLISH_KEEP is among the options' flags; after an error it has
	 * the buffer as before.
	 */
	std::uint64_t publish(const publish_options &options, std::error_code &code) noexcept
	{
		return publish_as(&options, code);
	}
	std::uint64_t publish(std::error_code &code) noexcept
	{
		return publish_as(nullptr, code);
	}
	std::uint64_t publish(const publish_options &options)
	{
		return detail::or_throw([&](std::error_code &code) {
			return publish(options, code);
		});
	}
	std::uint64_t publish()
	{
		return detail::or_throw([&](std::error_code &code) { return publish(code); });
	}

	/* ---- order on streams ---- */

	/* For contents that a stream has yet to write. */
	std::uint64_t publish_on(CUstream_st *stream, publish_options options,
				 std::error_code &code) noexcept
	{
		return publish(options.on(stream), code);
	}
	std::uint64_t publish_on(CUstream_st *stream, std::error_code &code) noexcept
	{
		return publish_on(stream, {}, code);
	}
	std::uint64_t publish_on(CUstream_st *stream, publish_options options = {})
	{
		return publish(options.on(stream));
	}

	/* Work that is put into the stream from now on comes after the contents are complete. */
	bool wait_on(CUstream_st *stream, std::error_code &code) const noexcept
	{
		return detail::done(xmem_wait_on(raw(), stream), code);
	}
	void wait_on(CUstream_st *stream) const
	{
		detail::or_throw([&](std::error_code &code) { return wait_on(stream, code); });
	}

	/* Wait here until the contents are complete: EAGAIN, ETIMEDOUT: they are not, in time. */
	template <class Rep, class Period>
	bool wait_contents(std::chrono::duration<Rep, Period> timeout,
			   std::error_code &code) const noexcept
	{
		const std::int64_t ns = to_nanoseconds(timeout);

		/* For C these are for ever, and a time that is over would be one of them. */
		if (ns < 0) {
			code = std::make_error_code(std::errc::invalid_argument);
			return false;
		}
		return detail::done(xmem_wait_contents(raw(), ns), code);
	}
	template <class Rep, class Period>
	void wait_contents(std::chrono::duration<Rep, Period> timeout) const
	{
		if (to_nanoseconds(timeout) < 0)
			detail::fail(std::make_error_code(std::errc::invalid_argument),
				     "wait_contents: the timeout is negative");
		detail::or_throw([&](std::error_code &code) {
			return wait_contents(timeout, code);
		});
	}
	bool wait_contents(std::error_code &code) const noexcept
	{
		return wait_contents(forever, code);
	}
	void wait_contents() const { wait_contents(forever); }

	/*
	 * Drop it once the stream has done what is in it. The object is empty then, hence the &&;
	 * after an error it has the buffer as before.
	 */
	bool release_on(CUstream_st *stream, std::error_code &code) && noexcept
	{
		if (!detail::done(xmem_release_on(raw(), stream), code))
			return false;
		detach();
		return true;
	}
	void release_on(CUstream_st *stream) &&
	{
		detail::or_throw([&](std::error_code &code) {
			return std::move(*this).release_on(stream, code);
		});
	}

private:
	std::uint64_t publish_as(const xmem_publish_options *options,
				 std::error_code &code) noexcept
	{
		std::uint64_t token = 0;

		if (!detail::done(xmem_publish(raw(), options, &token), code))
			return 0;
		if (!options || !(options->flags & XMEM_PUBLISH_KEEP))
			detach();
		return token;
	}

	device_span<const std::byte> on_gpu(std::error_code &code) const noexcept
	{
		const void *data = detail::made(xmem_cuda_ptr(raw()), code);

		return {static_cast<const std::byte *>(data), data ? xmem_size(raw()) : 0};
	}
	device_span<std::byte> on_gpu_mut(std::error_code &code) const noexcept
	{
		void *data = detail::made(xmem_cuda_ptr_mut(raw()), code);

		return {static_cast<std::byte *>(data), data ? xmem_size(raw()) : 0};
	}

	/* A span of bytes as one of elements, in memory of the same kind. */
	template <class To, class From>
	static To cast(From from, std::error_code &code) noexcept
	{
		using T = typename To::element_type;
		static_assert(std::is_trivially_copyable_v<T>, "memory that processes share");
		const auto address = reinterpret_cast<std::uintptr_t>(from.data());

		if (code)
			return {};
		if (address % alignof(T) || from.size() % sizeof(T)) {
			code = std::make_error_code(std::errc::invalid_argument);
			return {};
		}
		return {reinterpret_cast<T *>(from.data()), from.size() / sizeof(T)};
	}
	template <class To, class From> static To cast(From from)
	{
		std::error_code code;
		const To elements = cast<To>(from, code);

		if (code)
			detail::fail(code, "the contents are no whole number of such elements, or "
					   "lie at an address that does not fit them");
		return elements;
	}
};

} // namespace xmem

#endif
