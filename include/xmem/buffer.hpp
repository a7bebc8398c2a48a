/* SPDX-License-Identifier: MIT */
/* Buffers in C++. A part of xmem.hpp. */
#ifndef XMEM_BUFFER_HPP
#define XMEM_BUFFER_HPP

#include "options.hpp"

namespace xmem {

class buffer : public detail::owner<xmem_buffer, xmem_release> {
public:
	using owner::owner;

	/*
	 * A temporary has no contents that a later statement could read, because they end with it.
	 */
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
	 * The contents of a buffer that is being written, the bytes that were acquired. From their
	 * beginning on, capacity() bytes can be written.
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
	 * The contents as private memory that may be written, until the object is empty, or until
	 * xmem::get_mut.
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
	 * The contents as elements of @T, for reading. EINVAL: their size is not a whole number of
	 * elements, or their address is not aligned.
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
	 * For a buffer on a GPU: the contents as elements of @T, for reading there. EINVAL: as
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
	 * For a buffer that is being written: the bytes that were acquired. From their beginning
	 * on, capacity() bytes can be written.
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
	/* Lets another GPU of this process use the address, or says why it cannot. */
	bool cuda_peer(int device, std::error_code &code) const noexcept
	{
		return detail::done(xmem_cuda_peer(raw(), device), code);
	}
	void cuda_peer(int device) const
	{
		detail::or_throw([&](std::error_code &code) { return cuda_peer(device, code); });
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
	/*
	 * The number of the slot, even while the buffer is written; negative if there is no buffer.
	 */
	int slot() const noexcept { return xmem_slot(raw()); }
	/* The properties of the buffer. */
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
	/* The time that the publisher gave; the epoch of the clock if it gave none. */
	clock::time_point timestamp() const noexcept
	{
		std::error_code code;
		const auto since = static_cast<std::int64_t>(info(code).timestamp_ns);

		return clock::time_point(std::chrono::nanoseconds(since));
	}
	/* XMEM_NOBODY: the publisher has ended long ago. */
	std::uint32_t publisher(std::error_code &code) const noexcept
	{
		return info(code).publisher;
	}
	std::uint32_t publisher() const { return info().publisher; }
	/* The publisher's label, so short that the string allocates no memory; or empty. */
	std::string publisher_label(std::error_code &code) const noexcept
	{
		return info(code).label;
	}
	std::string publisher_label() const { return info().label; }

	/* The publisher of a received buffer can change its metadata at any time. */
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

	/* Make another handle of these contents, for reading. */
	buffer clone(std::error_code &code) const noexcept
	{
		return buffer(detail::made(xmem_clone(raw()), code));
	}
	buffer clone() const
	{
		return detail::or_throw([&](std::error_code &code) { return clone(code); });
	}

	/*
	 * Publish the buffer, and return its token. A buffer that is held for reading is forwarded.
	 * The object is empty afterwards, unless the options have XMEM_PUBLISH_KEEP. After an error
	 * it has the buffer as before.
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

	/* Work that is put into the stream from now on comes after the contents. */
	bool wait_on(CUstream_st *stream, std::error_code &code) const noexcept
	{
		return detail::done(xmem_wait_on(raw(), stream), code);
	}
	void wait_on(CUstream_st *stream) const
	{
		detail::or_throw([&](std::error_code &code) { return wait_on(stream, code); });
	}

	/*
	 * Wait in this thread until the contents are complete. EAGAIN, ETIMEDOUT: they are not, in
	 * time.
	 */
	template <class Rep, class Period>
	bool wait_contents(std::chrono::duration<Rep, Period> timeout,
			   std::error_code &code) const noexcept
	{
		const std::int64_t ns = to_nanoseconds(timeout);

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
	 * Drop the buffer when the stream has done its present work. The object is empty
	 * afterwards, hence the &&. After an error it has the buffer as before.
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

	/* Turn a span of bytes into a span of elements, in memory of this kind. */
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
