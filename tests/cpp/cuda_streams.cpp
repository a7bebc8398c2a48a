// SPDX-License-Identifier: MIT
/* Order on streams in C++: publishing, waiting and releasing, and copies on a stream. */
#include <array>

#include "gpu.hpp"

/* ---- calls that do not compile, because a stream would use the object after its end ---- */

using xmem::lasting_buffer;
using xmem::lasting_bytes;
using bytes_view = xmem::span<const std::byte>;
template <class To, class From> constexpr bool becomes = std::is_convertible_v<From, To>;
template <class T>
using released = decltype(std::declval<T>().release_on(std::declval<CUstream_st *>()));

static_assert(becomes<lasting_buffer, xmem::buffer &> &&
	      becomes<lasting_buffer, const xmem::buffer &> &&
	      !becomes<lasting_buffer, xmem::buffer> &&
	      !becomes<lasting_buffer, const xmem::buffer>, "named buffers");
static_assert(becomes<lasting_bytes, std::vector<std::byte> &> &&
	      becomes<lasting_bytes, const std::vector<std::byte> &> &&
	      becomes<lasting_bytes, std::array<std::byte, 3> &> &&
	      becomes<lasting_bytes, std::byte (&)[3]> && becomes<lasting_bytes, bytes_view> &&
	      becomes<lasting_bytes, const bytes_view &> &&
	      becomes<lasting_bytes, xmem::span<std::byte>>, "named bytes");
static_assert(!becomes<lasting_bytes, std::vector<std::byte>> &&
	      !becomes<lasting_bytes, const std::vector<std::byte>> &&
	      !becomes<lasting_bytes, std::array<std::byte, 3>> &&
	      !becomes<lasting_bytes, std::vector<int> &> &&
	      !becomes<lasting_bytes, xmem::device_span<std::byte>>, "and nothing else");
#ifdef __cpp_lib_span
static_assert(becomes<lasting_bytes, std::span<std::byte>> &&
	      becomes<lasting_bytes, std::span<const std::byte, 3>>, "spans of C++20");
#endif
static_assert(has<released, xmem::buffer> && !has<released, xmem::buffer &> &&
	      !has<released, const xmem::buffer &>, "what is moved");

/* ---- order ---- */

TEST(streams_publish_before_they_have_written)
{
	gpu_scene s;
	stream here(s.device), there(s.device);
	const std::vector<std::byte> wanted = stamped(5);
	xmem::buffer buffer = s.writer.acquire_cuda(bytes_each, 0);

	buffer.wait_on(here.raw());
	here.close();
	xmem::copy_to_cuda_on(buffer, 0, wanted, here.raw());
	xmem::buffer got = s.reader.get(buffer.publish_on(here.raw(), XMEM_PUBLISH_KEEP));

	CHECK(buffer);
	CODE(EAGAIN, got.wait_contents(xmem::no_wait, code));
	THROWS(EAGAIN, got.wait_contents(xmem::no_wait));
	THROWS(ETIMEDOUT, got.wait_contents(std::chrono::milliseconds(1)));
	CODE(0, got.wait_on(there.raw(), code));
	here.open();
	got.wait_contents();
	CODE(0, got.wait_contents(code));
	CODE(0, got.wait_contents(xmem::no_wait, code));
	CHECK(contents_of(got) == wanted);
	there.synchronize();
	here.synchronize();
}

/* In C a negative time means no limit. Here it may be the rest of a time that has passed. */
TEST(streams_are_not_waited_for_by_negative_times)
{
	gpu_scene s;
	const xmem::buffer buffer = s.writer.acquire_cuda(bytes_each, 0);
	int thrown = 0;

	CODE(EINVAL, buffer.wait_contents(std::chrono::nanoseconds(-1), code));
	try {
		buffer.wait_contents(std::chrono::seconds(-1));
	} catch (const xmem::error &error) {
		thrown = error.code().value();
	}
	CHECK(thrown == EINVAL);
}

TEST(streams_copy_and_release_in_order)
{
	gpu_scene s;
	stream work(s.device);
	const std::vector<std::byte> wanted = stamped(9);
	xmem::buffer from = s.writer.acquire_cuda(bytes_each, 0);
	xmem::buffer to = s.writer.acquire_cuda(bytes_each, 0);
	std::vector<std::byte> bytes(2 * bytes_each), more(bytes_each);
	xmem::span<std::byte> got(bytes.data(), bytes_each);

	work.close();
	CODE(0, xmem::copy_to_cuda_on(from, 0, wanted, work.raw(), code));
	std::error_code published;
	xmem::buffer held = s.reader.get(from.publish_on(work.raw(), published));

	CHECK(!published && !from);
	CODE(0, xmem::copy_to_device_on(to, 0, held, 0, 100, work.raw(), code));
	xmem::copy_to_device_on(to, 100, held, 100, bytes_each - 100, work.raw());
	std::move(held).release_on(work.raw());
	CHECK(!held);
	CHECK(!s.writer.try_acquire_cuda(bytes_each, 0));
	work.open();
	CODE(0, xmem::copy_to_cpu_on(got, to, 0, work.raw(), code));
	xmem::copy_to_cpu_on(more, to, 0, work.raw());
	work.synchronize();
	CHECK(!std::memcmp(got.data(), wanted.data(), bytes_each) && more == wanted);
	CHECK(s.writer.try_acquire_cuda(bytes_each, 0, patience));
	THROWS(ERANGE, xmem::copy_to_cuda_on(to, to.capacity(), wanted, work.raw()));
	CODE(ERANGE, xmem::copy_to_cpu_on(got, to, to.capacity(), work.raw(), code));
	CODE(EINVAL, xmem::copy_to_device_on(to, 0, to, 0, 1, work.raw(), code));
}

TEST(streams_that_fail_leave_the_handle)
{
	gpu_scene s;
	scene cpu;
	stream work(s.device);
	xmem::buffer buffer = s.writer.acquire_cuda(bytes_each, 0);
	xmem::buffer other = cpu.writer.acquire(bytes_each);
	xmem_buffer *raw = buffer.raw();

	CODE(EPERM, std::move(buffer).release_on(work.raw(), code));
	THROWS(EPERM, std::move(buffer).release_on(work.raw()));
	CHECK(buffer.raw() == raw && buffer.cuda_ptr_mut().data());
	CODE(EMEDIUMTYPE, other.publish_on(work.raw(), code));
	CODE(EMEDIUMTYPE, other.publish_on(work.raw(), XMEM_PUBLISH_KEEP, code));
	THROWS(EMEDIUMTYPE, other.publish_on(work.raw()));
	CODE(EMEDIUMTYPE, other.wait_on(work.raw(), code));
	THROWS(EMEDIUMTYPE, other.wait_contents(xmem::no_wait));
	CHECK(other.size() == bytes_each && other.publish());
	CHECK(s.reader.get(buffer.publish_on(work.raw())) && !buffer);
}
