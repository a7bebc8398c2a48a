// SPDX-License-Identifier: MIT
/* Descriptions of contents: written, read back with checks, and copied with the contents. */
#include <algorithm>
#include <vector>

#include "test.hpp"

using namespace std::chrono_literals;

static_assert(xmem::dtype_of<float> == XMEM_DTYPE_FLOAT32 &&
	      xmem::dtype_of<const double> == XMEM_DTYPE_FLOAT64 &&
	      xmem::dtype_of<std::uint8_t> == XMEM_DTYPE_UINT8 &&
	      xmem::dtype_of<std::int64_t> == XMEM_DTYPE_INT64 &&
	      xmem::dtype_of<bool> == XMEM_DTYPE_BOOL,
	      "types are DLPack's");

TEST(a_tensor_is_described_and_read)
{
	scene s;
	xmem::subscription frames = s.reader.subscribe();
	xmem::buffer buffer = s.writer.acquire(bytes_each);

	std::fill_n(buffer.as_mut<float>().begin(), 12, 0.5f);
	xmem::describe_tensor(buffer, xmem::dtype_of<float>, {3, 4});
	buffer.publish();
	const xmem::buffer got = frames.receive();
	const xmem_tensor tensor = xmem::tensor_view(got);

	CHECK(tensor.ndim == 2 && tensor.shape[0] == 3 && tensor.shape[1] == 4);
	CHECK(tensor.strides[0] == 16 && tensor.elements == 12);
	CHECK(tensor.data == xmem_data(got.raw()));
	const xmem::span<const float> numbers = xmem::elements<float>(tensor);
	CHECK(numbers.size() == 12);
	CHECK(std::all_of(numbers.begin(), numbers.end(), [](float f) { return f == 0.5f; }));
	CODE(0, xmem::elements<float>(tensor, code));
	CODE(EINVAL, xmem::elements<int>(tensor, code));
	CODE(EINVAL, xmem::elements<double>(tensor, code));
	try {
		xmem::elements<double>(tensor);
		FAIL("floats are doubles");
	} catch (const xmem::error &error) {
		CHECK(error.code() == std::errc::invalid_argument);
		CHECK(std::strstr(error.what(), "elements"));
	}
	CODE(0, xmem::tensor_view(got, code));
	CODE(ENODATA, xmem::image_view(got, code));
	THROWS(ENODATA, xmem::image_view(got));
	const xmem_metadata said = xmem::metadata_view(got);
	CHECK(said.dtype == XMEM_DTYPE_FLOAT32 && said.size == bytes_each);
	xmem::tensor_check(said, 48);
	CODE(0, xmem::tensor_check(said, 48, code));
	CODE(ERANGE, xmem::tensor_check(said, 47, code));
	THROWS(ERANGE, xmem::tensor_check(said, 47));
}

TEST(strides_are_bytes_and_as_many_as_dimensions)
{
	scene s;
	xmem::buffer buffer = s.writer.acquire(bytes_each);
	const std::vector<std::int64_t> shape{4, 8}, strides{64, 2}, more(9, 1);
	const xmem::dimensions two = shape, wide = strides;
	const xmem::dimensions one(strides.data(), 1);

	xmem::describe_tensor(buffer, XMEM_DTYPE_INT16, two, wide);
	const xmem_tensor tensor = xmem::tensor_view(buffer);
	CHECK(tensor.strides[0] == 64 && tensor.bytes == 3 * 64 + 16);
	CODE(EINVAL, xmem::elements<std::int16_t>(tensor, code));	/* not in a row */
	CODE(0, xmem::describe_tensor(buffer, XMEM_DTYPE_INT16, two, wide, code));
	CODE(0, xmem::describe_tensor(buffer, XMEM_DTYPE_INT16, two, {}, code));
	CODE(0, xmem::describe_tensor(buffer, XMEM_DTYPE_INT16, {0, 3}, code));
	CHECK(xmem::tensor_view(buffer).elements == 0);
	CODE(EINVAL, xmem::describe_tensor(buffer, XMEM_DTYPE_INT16, two, one, code));
	CODE(EINVAL, xmem::describe_tensor(buffer, XMEM_DTYPE_INT16, more, code));
	CODE(ERANGE, xmem::describe_tensor(buffer, XMEM_DTYPE_INT16, {1 << 20}, code));
	THROWS(ERANGE, xmem::describe_tensor(buffer, XMEM_DTYPE_INT16, {1 << 20}));
	try {
		xmem::describe_tensor(buffer, XMEM_DTYPE_INT16, two, one);
		FAIL("one stride is enough for two dimensions");
	} catch (const xmem::error &error) {
		CHECK(error.code() == std::errc::invalid_argument);
		CHECK(std::strstr(error.what(), "as many strides"));
	}
	CHECK(xmem::tensor_view(buffer).elements == 0);			/* as it was */
}

TEST(an_image_is_described_and_read)
{
	scene s;
	xmem::buffer buffer = s.writer.acquire(bytes_each);

	xmem::describe_image(buffer, XMEM_IMAGE_NV12, 32, 16, 64);
	const xmem_image image = xmem::image_view(buffer);
	CHECK(image.planes == 2 && image.width == 32 && image.height == 16);
	CHECK(image.plane[1].stride == 64 && image.plane[1].rows == 8);
	CODE(0, xmem::image_view(buffer, code));
	const xmem_tensor chroma = xmem::image_plane(image, 1);
	CHECK(chroma.data == image.plane[1].data && chroma.ndim == 3);
	CHECK(chroma.shape[0] == 8 && chroma.shape[1] == 16 && chroma.shape[2] == 2);
	CHECK(xmem::elements<std::uint8_t>(xmem::tensor_view(buffer)).size() == 64 * 23 + 32);
	CODE(EINVAL, xmem::image_plane(image, 2, code));
	THROWS(EINVAL, xmem::image_plane(image, 2));
	CHECK(xmem::image_bytes(XMEM_IMAGE_NV12, 32, 16, 64) == 64 * 23 + 32);
	CHECK(xmem::image_bytes(XMEM_IMAGE_P010, 3, 3) == 3 * 6 + 2 * 8);
	CODE(EINVAL, xmem::image_bytes(XMEM_IMAGE_P010, 0, 3, 0, code));
	THROWS(EINVAL, xmem::image_bytes(XMEM_IMAGE_NONE, 3, 3));
	CODE(0, xmem::describe_image(buffer, XMEM_IMAGE_RGB8, 8, 8, 0, code));
	CODE(EINVAL, xmem::describe_image(buffer, XMEM_IMAGE_NONE, 8, 8, 0, code));
	THROWS(ERANGE, xmem::describe_image(buffer, XMEM_IMAGE_RGB8, 800, 800));
}

TEST(a_column_of_strings_is_described_and_read)
{
	scene s;
	const xmem_strings plan = xmem::strings_plan(2, 3, XMEM_STRINGS_VALIDITY);
	xmem::buffer buffer = s.writer.acquire(bytes_each);
	char *const data = reinterpret_cast<char *>(buffer.bytes_mut().data());
	const std::int32_t offsets[] = {0, 3, 3};

	CHECK(plan.offsets_at == 64 && plan.chars_at == 128 && plan.bytes == 131);
	CHECK(xmem::strings_plan(2, 3).chars_at == 64);
	CODE(EINVAL, xmem::strings_plan(2, 3, 2, code));
	THROWS(EINVAL, xmem::strings_plan(1ull << 40, 3));
	data[0] = 1;
	std::memcpy(data + plan.offsets_at, offsets, sizeof(offsets));
	std::memcpy(data + plan.chars_at, "abc", 3);
	xmem::describe_strings(buffer, 2, 3, XMEM_STRINGS_VALIDITY);
	CODE(0, xmem::describe_strings(buffer, 2, 3, XMEM_STRINGS_VALIDITY, code));
	CODE(ERANGE, xmem::describe_strings(buffer, 2, 1 << 20, 0, code));
	THROWS(EINVAL, xmem::describe_strings(buffer, 2, 3, 2));
	const xmem_strings strings = xmem::strings_view(buffer);
	CHECK(strings.rows == 2 && strings.data == data);
	CODE(0, xmem::strings_view(buffer, code));
	CHECK(xmem::strings_get(strings, 0) == std::string_view("abc"));
	CHECK(!xmem::strings_get(strings, 1));
	CODE(0, xmem::strings_get(strings, 1, code));
	CODE(EINVAL, xmem::strings_get(strings, 2, code));
	THROWS(EINVAL, xmem::strings_get(strings, 2));
	CODE(EMEDIUMTYPE, xmem::cuda_strings_view(buffer, code));
	THROWS(EMEDIUMTYPE, xmem::cuda_strings_view(buffer));
	xmem::describe_image(buffer, XMEM_IMAGE_RGB8, 8, 8);
	THROWS(ENODATA, xmem::strings_view(buffer));
}

TEST(words_and_times_are_said)
{
	scene s;
	xmem::buffer buffer = s.writer.acquire(bytes_each);
	const xmem::clock::time_point now = xmem::clock::now();
	const std::string long_one(40, 'x');

	xmem::describe_content(buffer, "text/plain", "cpp");
	CODE(0, xmem::describe_content(buffer, nullptr, "more", code));
	CODE(EINVAL, xmem::describe_content(buffer, long_one.c_str(), nullptr, code));
	THROWS(EINVAL, xmem::describe_content(buffer, long_one.c_str()));
	xmem::describe_time(buffer, now);
	xmem_metadata said = xmem::metadata_view(buffer);
	CHECK(!std::strcmp(said.content_type, "text/plain") && !std::strcmp(said.producer, "more"));
	CHECK(!std::strcmp(said.clock, "CLOCK_MONOTONIC"));
	CHECK(said.timestamp_ns == static_cast<std::uint64_t>(now.time_since_epoch().count()));
	xmem::describe_time(buffer, 5, "CLOCK_TAI");
	CODE(0, xmem::describe_time(buffer, now, code));
	CODE(0, xmem::describe_time(buffer, 6, "CLOCK_TAI", code));
	CODE(EINVAL, xmem::describe_time(buffer, 7, long_one.c_str(), code));
	CODE(0, said = xmem::metadata_view(buffer, code));
	CHECK(said.timestamp_ns == 6 && !std::strcmp(said.clock, "CLOCK_TAI"));
}

TEST(contents_are_copied_with_their_metadata)
{
	scene s;
	xmem::subscription frames = s.reader.subscribe();
	xmem::buffer buffer = s.writer.acquire(100), to;
	const std::vector<std::byte> raw(10, std::byte{7});
	const xmem::span<const std::byte> bytes(raw.data(), raw.size());

	std::memset(buffer.bytes_mut().data(), 3, buffer.size());
	xmem::describe_tensor(buffer, XMEM_DTYPE_UINT8, {100});
	buffer.publish();
	buffer = frames.receive();
	to = s.writer.acquire(1);
	xmem::copy(to, buffer);
	CHECK(to.size() == 100 && stamp_of(to) == 3);
	CHECK(xmem::tensor_view(to).elements == 100);
	CODE(0, xmem::copy(to, buffer, code));
	xmem::copy_bytes(to, 5, raw);
	CHECK(to.bytes()[4] == std::byte{3} && to.bytes()[5] == std::byte{7});
	CODE(0, xmem::copy_bytes(to, 0, {}, code));
	CODE(ERANGE, xmem::copy_bytes(to, bytes_each - 9, bytes, code));
	THROWS(ERANGE, xmem::copy_bytes(to, bytes_each - 9, bytes));
	CODE(EPERM, xmem::copy(buffer, to, code));
	THROWS(EINVAL, xmem::copy(to, to));
	const xmem::buffer own = s.writer.acquire(20);

	std::memset(own.bytes_mut().data(), 4, own.size());
	to = xmem::buffer();
	to = xmem::copy_to(own, XMEM_CPU);
	CHECK(to.size() == 20 && to.bytes_mut()[19] == std::byte{4});
	to = xmem::buffer();
	std::error_code late;

	CHECK(xmem::copy_to(own, XMEM_CPU, std::chrono::seconds(1), late) && !late);
	THROWS(ENODEV, xmem::copy_to(own, -2, std::chrono::seconds(0)));
}

/* A span of a temporary's contents would outlive them. */
template <class B> using bytes_of = decltype(std::declval<B>().bytes());
template <class B> using elements_of = decltype(std::declval<B>().template as<int>());
static_assert(has<bytes_of, xmem::buffer &> && has<bytes_of, const xmem::buffer &> &&
	      !has<bytes_of, xmem::buffer> && !has<bytes_of, const xmem::buffer>);
static_assert(has<elements_of, xmem::buffer &> && !has<elements_of, xmem::buffer>);

TEST(contents_are_written_privately)
{
	scene s;
	xmem::buffer buffer = s.reader.get(s.publish(7, XMEM_PUBLISH_KEEP)), empty;
	const xmem::buffer clone = buffer.clone(), written = s.writer.acquire(1);
	const xmem::span<std::byte> mine = buffer.bytes_private();

	CHECK(mine.size() == bytes_each && mine.data() != buffer.bytes().data());
	CHECK(mine[0] == std::byte(7) && mine[bytes_each - 1] == std::byte(7));
	std::memset(mine.data(), 8, mine.size());
	CHECK(stamp_of(buffer) == 7 && buffer.bytes_private().data() == mine.data());
	CHECK(clone.bytes_private()[0] == std::byte(7));
	CODE(0, buffer.bytes_private(code));
	CODE(EINVAL, empty.bytes_private(code));
	THROWS(EINVAL, empty.bytes_private());
	THROWS(EPERM, written.bytes_private());
}

TEST(what_is_empty_has_no_contents)
{
	xmem::buffer none;

	THROWS(EINVAL, xmem::describe_tensor(none, XMEM_DTYPE_INT8, {1}));
	THROWS(EINVAL, xmem::describe_image(none, XMEM_IMAGE_GRAY8, 1, 1));
	THROWS(EINVAL, xmem::describe_content(none, "text/plain"));
	THROWS(EINVAL, xmem::describe_time(none, 1, "CLOCK_TAI"));
	THROWS(EINVAL, xmem::describe_time(none, xmem::clock::now()));
	THROWS(EINVAL, xmem::metadata_view(none));
	THROWS(EINVAL, xmem::tensor_view(none));
	THROWS(EINVAL, xmem::image_view(none));
	THROWS(EINVAL, xmem::copy(none, none));
	THROWS(EINVAL, xmem::copy_bytes(none, 0, {}));
}
