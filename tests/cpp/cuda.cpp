// SPDX-License-Identifier: MIT
/*
 * Buffers on a GPU in C++: their contents, memory of the program's own, and refusals. tests/cuda
 * tests the promises.
 */
#include <array>
#include <cstdlib>
#include <spawn.h>
#include <sys/wait.h>

#include "gpu.hpp"

/* ---- no driver ---- */

/* A process has one driver, so the case without a driver needs another process. */
TEST(cuda_says_why_there_is_none)
{
	static const char nowhere[] = "/nowhere/libcuda.so.1";
	const std::string found = getenv("XMEM_CUDA_DRIVER");
	const int not_initialized = 3;

	if (found != nowhere) {
		char program[] = "/proc/self/exe", name[] = "cuda_says_why_there_is_none";
		char *arguments[] = {program, name, nullptr};
		posix_spawn_file_actions_t files;	/* its count is not this program's */
		int status = -1;
		pid_t child;

		posix_spawn_file_actions_init(&files);
		posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
		setenv("XMEM_CUDA_DRIVER", nowhere, 1);
		const int error = posix_spawn(&child, program, &files, nullptr, arguments,
					      environ);
		setenv("XMEM_CUDA_DRIVER", found.c_str(), 1);
		posix_spawn_file_actions_destroy(&files);
		CHECK(!error && waitpid(child, &status, 0) == child && status == 0);
		return;
	}
	THROWS(ENODEV, xmem::cuda_query());
	CODE(ENODEV, xmem::cuda_query(code));
	CODE(ENODEV, xmem::cuda_device_query(0, code));
	CHECK(xmem::last_cuda_result() == not_initialized);
	CHECK(xmem::last_cuda_name() == std::string("CUDA_ERROR_NOT_INITIALIZED"));
	CHECK(xmem::take_last_error().value() == ENODEV);
	CHECK(xmem::last_cuda_result() == 0);
	THROWS(ENODEV, xmem::cuda_device_query(0));
	CHECK(xmem::last_cuda_result() == not_initialized);
	xmem::clear_last_error();
	CHECK(xmem::last_cuda_name() == std::string("CUDA_SUCCESS"));
	const xmem::pool pool(new_name(), XMEM_OPEN_WRITER);

	THROWS(ENODEV, pool.preallocate_cuda(bytes_each, 1, 0));
	CODE(ENODEV, pool.acquire_cuda(bytes_each, 0, code));
}

/* ---- spans ---- */

using xmem::device_span;
using xmem::span;
template <class To, class From> constexpr bool becomes = std::is_convertible_v<From, To>;
template <class T> using first_of = decltype(*std::declval<T>().begin());
template <class T> using indexed = decltype(std::declval<T>()[0]);

static_assert(!becomes<span<const int>, device_span<int>> &&
	      !becomes<span<int>, device_span<int> &> &&
	      !becomes<span<const int>, const device_span<const int> &> &&
	      !becomes<device_span<int>, span<int>> && !becomes<device_span<int>, int *>,
	      "memory of the GPU is no memory of the CPU");
static_assert(becomes<device_span<const int>, device_span<int>> &&
	      !becomes<device_span<int>, device_span<const int>> &&
	      !becomes<device_span<long>, device_span<int>>, "const and type");
static_assert(!has<first_of, device_span<int>> && !has<indexed, device_span<int>>,
	      "the CPU does not look there");
static_assert(std::is_trivially_copyable_v<device_span<int>> &&
	      sizeof(device_span<int>) == 2 * sizeof(int *), "like a pointer and a number");
#ifdef __cpp_lib_span
static_assert(!becomes<std::span<const int>, device_span<int>>, "nor the standard's");
#endif

TEST(spans_of_devices_say_where_and_how_many)
{
	int array[5];
	const device_span<int> all(array, 5);
	const device_span<const int> read = all.subspan(1, 3);
	constexpr device_span<int> none;

	CHECK(all.data() == array && all.size() == 5 && all.size_bytes() == sizeof(array));
	CHECK(read.data() == array + 1 && read.size() == 3 && !read.empty());
	CHECK(none.empty() && !none.data());
}

/* ---- contents ---- */

TEST(cuda_contents_go_from_one_client_to_another)
{
	gpu_scene s;
	const std::vector<std::byte> wanted = stamped(3);
	xmem::buffer buffer = s.writer.acquire_cuda(bytes_each, 0);
	const device_span<std::byte> bytes = buffer.cuda_ptr_mut();
	const device_span<float> numbers = buffer.cuda_ptr_mut<float>();

	CHECK(bytes.data() && bytes.size() == bytes_each && buffer.capacity() >= bytes_each);
	CHECK(static_cast<void *>(numbers.data()) == bytes.data());
	CHECK(numbers.size() == bytes_each / sizeof(float));
	CHECK(buffer.cuda_device() == 0);
	buffer.cuda_peer(0);
	CODE(0, buffer.cuda_peer(0, code));
	CODE(ENODEV, buffer.cuda_peer(99, code));
	xmem::copy_to_cuda(buffer, 0, wanted);
	const xmem::buffer got = s.reader.get(buffer.publish(XMEM_PUBLISH_KEEP));

	CHECK(got.cuda_ptr().size() == bytes_each && got.cuda_ptr<int>().data());
	CODE(0, got.cuda_ptr(code));
	CODE(0, got.cuda_ptr<int>(code));
	CODE(0, got.cuda_device(code));
	CHECK(contents_of(got) == wanted);
	THROWS(EMEDIUMTYPE, got.bytes());
	THROWS(EPERM, got.cuda_ptr_mut());
	CODE(EPERM, got.cuda_ptr_mut<float>(code));
}

TEST(cuda_contents_are_copied_in_parts)
{
	gpu_scene s;
	const xmem::buffer from = s.writer.acquire_cuda(bytes_each, 0);
	const xmem::buffer to = s.writer.acquire_cuda(bytes_each, 0, patience);
	const std::vector<std::byte> wanted = stamped(7, 100);
	std::array<std::byte, 60> got{};

	CODE(0, xmem::copy_to_cuda(from, 500, wanted, code));
	CODE(0, xmem::copy_to_device(to, 1000, from, 500, 100, code));
	xmem::copy_to_device(to, 2000, from, 500, 100);
	CODE(0, xmem::copy_to_cpu(got, to, 1010, code));
	CHECK(!std::memcmp(got.data(), wanted.data() + 10, got.size()));
	xmem::copy_to_cpu(got, to, 2040);
	CHECK(!std::memcmp(got.data(), wanted.data() + 40, got.size()));
	THROWS(ERANGE, xmem::copy_to_cuda(to, to.capacity(), wanted));
	THROWS(ERANGE, xmem::copy_to_cpu(got, to, to.capacity()));
	THROWS(EINVAL, xmem::copy_to_device(to, 0, to, 0, 1));
}

TEST(cuda_contents_are_tensors_and_images)
{
	gpu_scene s;
	xmem::buffer buffer = s.writer.acquire_cuda(24, 0);

	xmem::describe_tensor(buffer, xmem::dtype_of<float>, {2, 3});
	xmem::buffer got = s.reader.get(buffer.publish(XMEM_PUBLISH_KEEP));
	const xmem::cuda_tensor tensor = xmem::cuda_tensor_view(got);
	const device_span<const float> numbers = xmem::elements<float>(tensor);

	CHECK(tensor.ndim == 2 && tensor.bytes == 24 && tensor.data == got.cuda_ptr().data());
	CHECK(numbers.size() == 6 && numbers.data() == tensor.data);
	CODE(0, xmem::cuda_tensor_view(got, code));
	CODE(0, xmem::elements<float>(tensor, code));
	CODE(EINVAL, xmem::elements<int>(tensor, code));
	THROWS(EMEDIUMTYPE, xmem::tensor_view(got));
	CODE(ENODATA, xmem::cuda_image_view(got, code));
	buffer = s.writer.acquire_cuda(24, 0);
	xmem::describe_image(buffer, XMEM_IMAGE_RGB8, 4, 2);
	got = s.reader.get(buffer.publish(XMEM_PUBLISH_KEEP));
	CHECK(xmem::cuda_image_view(got).plane[0].data == got.cuda_ptr().data());
	CODE(0, xmem::cuda_image_view(got, code));
	buffer = s.writer.acquire_cuda(128, 0);
	xmem::describe_strings(buffer, 3, 64);
	got = s.reader.get(buffer.publish(XMEM_PUBLISH_KEEP));
	const xmem_strings strings = xmem::cuda_strings_view(got);
	CHECK(strings.data == got.cuda_ptr().data() && strings.device_id == 0);
	CODE(0, xmem::cuda_strings_view(got, code));
	CODE(EMEDIUMTYPE, xmem::strings_view(got, code));
	CODE(EMEDIUMTYPE, xmem::strings_get(strings, 0, code));
	const scene cpu;
	const xmem::buffer other = cpu.writer.acquire(1);

	THROWS(EMEDIUMTYPE, xmem::cuda_tensor_view(other));
	THROWS(EMEDIUMTYPE, xmem::cuda_image_view(other));
}

TEST(cuda_pools_say_what_they_have_where)
{
	gpu_scene s;
	const xmem_device_info info = s.reader.device_info(1);
	const xmem_cuda_device_info device = xmem::cuda_device_query(0);

	CHECK(info.device == 1 && info.bytes >= 2 * bytes_each);
	CHECK(!std::memcmp(info.uuid, device.uuid, sizeof(info.uuid)));
	CHECK(xmem::cuda_query().devices > 0);
	CODE(0, s.reader.device_info(1, code));
	CODE(ENOENT, s.reader.device_info(2, code));
	THROWS(ENOENT, s.reader.device_info(2));
}

/* ---- errors ---- */

TEST(cuda_buffers_run_out)
{
	gpu_scene s(1);
	const xmem::buffer only = s.writer.try_acquire_cuda(bytes_each, 0);

	CHECK(only);
	CODE(EAGAIN, s.writer.acquire_cuda(1, 0, xmem::no_wait, code));
	THROWS(ETIMEDOUT, s.writer.acquire_cuda(1, 0, std::chrono::milliseconds(1)));
	CHECK(!s.writer.try_acquire_cuda(1, 0));
	CHECK(!s.writer.try_acquire_cuda(1, 0, std::chrono::milliseconds(1)));
	CODE(0, s.writer.try_acquire_cuda(1, 0, code));
	s.writer.preallocate_cuda(bytes_each, 1, 0);
	CODE(0, s.writer.acquire_cuda(1, 0, code));
	CODE(0, s.writer.preallocate_cuda(bytes_each, 1, 0, code));
	CODE(EINVAL, s.writer.preallocate_cuda(bytes_each, 1, 0, 1u << 31, code));
	CODE(EPERM, s.reader.preallocate_cuda(bytes_each, 1, 0, 0, code));
	THROWS(EPERM, s.reader.preallocate_cuda(bytes_each, 1, 0));
	THROWS(ENODEV, s.writer.preallocate_cuda(bytes_each, 1, 99));
}

TEST(cuda_refuses_memory_of_the_CPU)
{
	const gpu device;
	scene s;
	const xmem::buffer buffer = s.writer.acquire(bytes_each);

	THROWS(ENOSPC, s.writer.acquire_cuda(0, 0));
	THROWS(EMEDIUMTYPE, buffer.cuda_ptr());
	THROWS(EMEDIUMTYPE, buffer.cuda_ptr_mut());
	THROWS(EMEDIUMTYPE, buffer.cuda_peer(0));
	THROWS(EMEDIUMTYPE, buffer.cuda_device());
	xmem::copy_to_cuda(buffer, 0, stamped(1));
	std::error_code code;

	CHECK(buffer.cuda_device(code) == -1 && code.value() == EMEDIUMTYPE);
	CHECK(buffer.cuda_ptr<int>(code).empty() && code.value() == EMEDIUMTYPE);
}

TEST(cuda_contents_are_whole_elements)
{
	gpu_scene s;
	xmem::buffer buffer = s.writer.acquire_cuda(10, 0);
	int thrown = 0;

	CHECK(buffer.cuda_ptr_mut().size() == 10);
	CODE(EINVAL, buffer.cuda_ptr_mut<int>(code));
	CODE(0, buffer.cuda_ptr_mut<short>(code));
	const xmem::buffer got = s.reader.get(buffer.publish());

	CODE(EINVAL, got.cuda_ptr<int>(code));
	try {
		got.cuda_ptr<int>();
	} catch (const xmem::error &error) {
		thrown = error.code().value();
		CHECK(std::string(error.what()).find("no whole number") != std::string::npos);
	}
	CHECK(thrown == EINVAL);
}

TEST(cuda_handles_that_are_empty_are_errors)
{
	xmem::buffer buffer;
	const xmem::pool pool;
	std::array<std::byte, 4> bytes{};
	int memory = 0;

	THROWS(EINVAL, pool.preallocate_cuda(1, 1, 0));
	THROWS(EINVAL, pool.acquire_cuda(1, 0));
	THROWS(EINVAL, pool.try_acquire_cuda(1, 0));
	THROWS(EINVAL, pool.attach_cuda(&memory, 1));
	THROWS(EINVAL, pool.attach_cuda(&memory, 1, 0, []() noexcept {}));
	THROWS(EINVAL, pool.device_info(1));
	THROWS(EINVAL, buffer.cuda_ptr());
	THROWS(EINVAL, buffer.cuda_ptr_mut());
	THROWS(EINVAL, buffer.cuda_peer(0));
	THROWS(EINVAL, buffer.cuda_device());
	THROWS(EINVAL, xmem::copy_to_cuda(buffer, 0, bytes));
	THROWS(EINVAL, xmem::copy_to_cpu(bytes, buffer, 0));
	THROWS(EINVAL, xmem::copy_to_device(buffer, 0, buffer, 0, 1));
	THROWS(EINVAL, xmem::copy_to_cuda_on(buffer, 0, bytes, nullptr));
	THROWS(EINVAL, xmem::copy_to_cpu_on(bytes, buffer, 0, nullptr));
	THROWS(EINVAL, xmem::copy_to_device_on(buffer, 0, buffer, 0, 1, nullptr));
	THROWS(EINVAL, buffer.publish_on(nullptr));
	THROWS(EINVAL, buffer.wait_on(nullptr));
	THROWS(EINVAL, buffer.wait_contents());
	THROWS(EINVAL, std::move(buffer).release_on(nullptr));
	CODE(EINVAL, std::move(buffer).release_on(nullptr, code));
}
