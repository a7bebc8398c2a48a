// SPDX-License-Identifier: MIT
/*
 * Errors: as exceptions and as codes, with the library's sentence; what is not an error but
 * "nothing yet"; and what a failed call leaves as it was.
 */
#include <cstdlib>
#include <string_view>

#include "test.hpp"

using namespace std::chrono_literals;

TEST(an_error_is_thrown_or_returned)
{
	scene s;
	std::error_code wrong;
	xmem::pool none("a name with blanks", {}, wrong);

	CHECK(!none && wrong == std::errc::invalid_argument);
	CHECK(wrong.category() == std::generic_category());
	CHECK(xmem::last_message().find("a name has only characters of") != std::string::npos);
	CHECK(xmem::last_error() == wrong);
	CHECK(xmem::take_last_error() == wrong);
	CHECK(!xmem::last_error() && xmem::last_message().empty());
	THROWS(EINVAL, xmem::pool("a name with blanks"));
	THROWS(EINVAL, xmem::pool(std::string("a//name")));
	xmem::clear_last_error();
	CHECK(!xmem::last_error());
	THROWS(ENOENT, xmem::pool(new_name(), XMEM_OPEN_EXISTING));
	CODE(ENOENT, xmem::pool("cpp.none", XMEM_OPEN_EXISTING, code));
	try {
		s.reader.acquire(1);
		FAIL("a reader acquires");
	} catch (const std::system_error &error) {	/* for programs without xmem::error */
		CHECK(error.code() == std::errc::operation_not_permitted);
	}
}

TEST(what_says_the_reason_once)
{
	scene s;
	std::string what;

	try {
		xmem::attach_fd(s.writer, -1);
	} catch (const xmem::error &error) {
		what = error.what();
	}
	CHECK(what == "attach_fd: descriptor -1: " + std::string(std::strerror(EBADF)));
	CHECK(what == xmem::last_message());
	try {
		s.reader.get(1 << 16);
	} catch (const xmem::error &error) {
		what = error.what();
	}
	CHECK(what == xmem::last_message() + ": " + std::strerror(ESTALE));
	const std::error_code code = std::make_error_code(std::errc::not_supported);

	what = xmem::error(code, code.message().c_str()).what();
	CHECK(what.find(code.message()) != std::string::npos);
}

TEST(names_are_any_strings)
{
	const std::string name = new_name(), rest = name + "/and more", dot("n\0m", 3);
	const xmem::pool first(name);

	CHECK(xmem::pool(std::string_view(rest).substr(0, name.size())).stat().clients == 2);
	CODE(0, xmem::pool(std::string_view(name), code));
	CODE(0, xmem::pool(std::string_view(name), XMEM_OPEN_EXISTING, code));
	CHECK(first.stat().clients == 1);
	/* The message has all of the string, and does not end at a NUL. */
	THROWS(EINVAL, xmem::pool(dot));
	CODE(EINVAL, xmem::pool(dot, code));
	CHECK(xmem::last_message().find("a name has only characters of") != std::string::npos);
	CODE(EINVAL, xmem::pool(std::string_view(dot), XMEM_OPEN_WRITER, code));
	THROWS(EINVAL, xmem::pool(std::string(1, '\0')));
	CODE(EINVAL, xmem::pool(std::string(129, 'x'), code));
	CHECK(xmem::last_message().find("this one has 129") != std::string::npos);
	CODE(EINVAL, xmem::pool(std::string(1000, 'x'), code));
	CODE(EINVAL, xmem::pool(std::string(300, '\0'), code));
	/* As in C, no name means an anonymous pool. */
	for (const auto &entry : {xmem::pool(nullptr).stat(), xmem::pool("").stat(),
				  xmem::pool(nullptr, XMEM_OPEN_WRITER).stat(),
				  xmem::pool(std::string_view()).stat()})
		CHECK(entry.clients == 1);
	CODE(0, xmem::pool(nullptr, code));
	CODE(0, xmem::pool(nullptr, {}, code));
	THROWS(ENOENT, xmem::pool(nullptr, XMEM_OPEN_EXISTING));
}

TEST(a_code_is_cleared_by_success)
{
	scene s;
	xmem::subscription frames = s.reader.subscribe();
	xmem::buffer buffer;

	CODE(0, buffer = s.writer.acquire(8, xmem::no_wait, code));
	CODE(0, buffer.bytes_mut(code));
	CODE(0, buffer.as_mut<std::uint64_t>(code));
	CODE(0, buffer.metadata_mut(code));
	CODE(0, buffer.publisher(code));
	CODE(0, buffer.publish(XMEM_PUBLISH_KEEP, code));
	CODE(0, buffer = buffer.clone(code));
	CODE(0, buffer.bytes(code));
	CODE(0, buffer.as<std::uint64_t>(code));
	CODE(0, buffer.metadata(code));
	CODE(0, s.reader.get(buffer.token(), code));
	CODE(0, frames.receive(xmem::no_wait, code));
	CODE(0, frames.publisher(code));
	CODE(0, frames.poll_fd(code));
	CODE(0, s.reader.poll_fd(code));
	CODE(0, s.reader.fd(code));
	CODE(0, s.reader.client(code));
	CODE(0, s.reader.stat(code));
	CODE(0, s.reader.client_info(s.writer.client(), code));
	CODE(0, s.reader.slot_info(0, code));
	CODE(0, s.reader.holds(s.writer.client(), 0, code));
	CODE(0, s.writer.preallocate(1, 1, code));
	CODE(0, xmem::host_query(code));
	CODE(0, xmem::pool_next(0, code));
	CODE(0, xmem::limit_next(0, code));
	CODE(0, s.reader.limit_next(0, code));
	CODE(ENOENT, xmem::limit_next(~0U, code));
	buffer = s.writer.acquire(1);
	CODE(0, buffer.publish(code));
	CHECK(!buffer);
}

TEST(codes_say_what_is_wrong)
{
	scene s(1);
	xmem::subscription frames = s.reader.subscribe();
	xmem::buffer only = s.writer.acquire(bytes_each);

	CODE(EAGAIN, s.writer.acquire(1, xmem::no_wait, code));
	CODE(ETIMEDOUT, s.writer.acquire(1, 1ms, code));
	CODE(EINVAL, s.writer.acquire(1, -1ns, code));
	CODE(ENOSPC, s.writer.acquire(bytes_each + 1, xmem::no_wait, code));
	CODE(EAGAIN, frames.receive(xmem::no_wait, code));
	CODE(EAGAIN, s.reader.receive_any(xmem::no_wait, code));
	CODE(ESTALE, s.reader.get(1 << 16, code));
	CODE(EINVAL, s.reader.client_info(1u << 20, code));
	CODE(EINVAL, s.reader.slot_info(1u << 20, code));
	CODE(EINVAL, s.reader.holds(1u << 20, 0, code));
	CODE(EPERM, s.reader.preallocate(1, 1, code));
	CODE(EINVAL, s.writer.preallocate(1, 0, code));
	CODE(EPERM, only.clone(code));
	CODE(EEXIST, s.reader.subscribe({}, code));
	CODE(ENOENT, s.writer.subscribe(XMEM_SUBSCRIBE_NOWAIT, code));
	CODE(ENOENT, xmem::pool_next(~0ULL, code));
	/* A failed call leaves the buffer as it was. */
	CODE(ERANGE, only.publish(xmem::publish_options().part(bytes_each, 1), code));
	CHECK(only && only.size() == bytes_each);
	THROWS(ERANGE, only.publish(xmem::publish_options().part(1, bytes_each)));
	CODE(EINVAL, only.publish(1u << 31, code));
	CHECK(only);
	only.publish();
	only = frames.receive();
	CODE(EPERM, only.bytes_mut(code));
	CODE(EPERM, only.metadata_mut(code));
	CODE(EPERM, only.publish(code));
	THROWS(EPERM, only.as_mut<int>());
	CHECK(only && only.bytes().size() == bytes_each);
}

TEST(nothing_yet_is_no_exception)
{
	scene s(1);
	xmem::subscription frames = s.reader.subscribe();
	xmem::buffer buffer = s.writer.try_acquire(1);

	CHECK(buffer);
	CHECK(!s.writer.try_acquire(1));
	CHECK(!s.writer.try_acquire(1, 1ms));
	CHECK(!frames.try_receive());
	CHECK(!frames.try_receive(1us));
	buffer.publish();
	CHECK(frames.try_receive());
	THROWS(ENOSPC, s.writer.try_acquire(1 << 20));
	THROWS(EPERM, s.reader.try_acquire(1));
	s.writer.reset();
	THROWS(EPIPE, frames.try_receive());
}

/* The form with a code, and what each form lets a caller leave out. */
TEST(each_form_leaves_out_the_same)
{
	scene s;
	const std::string name = new_name();
	xmem::subscription frames;
	xmem::buffer buffer;
	bool ok = false;

	CODE(0, xmem::pool(name, code));
	CODE(0, xmem::pool(name, XMEM_OPEN_WRITER, code));
	CODE(0, xmem::pool(name.c_str(), code));
	CODE(EINVAL, xmem::pool("a name with blanks", code));
	CODE(EINVAL, xmem::pool(std::string("a//name"), XMEM_OPEN_WRITER, code));
	CODE(0, xmem::pool::join(s.writer.fd().raw(), code));
	CODE(EBADF, xmem::pool::join(-1, code));
	CODE(0, ok = !xmem::pools(code).empty());
	CHECK(ok);
	CODE(ENOENT, s.reader.receive_any(code));
	CODE(0, frames = s.reader.subscribe(code));
	CODE(EEXIST, s.reader.subscribe(code));
	CODE(0, ok = !frames.try_receive(code));
	CHECK(ok);
	CODE(0, ok = !frames.try_receive(1us, code));
	CHECK(ok);
	CODE(0, buffer = s.writer.acquire(8, code));
	CHECK(buffer.size() == 8);
	CODE(ENOSPC, s.writer.acquire(1 << 20, code));
	CODE(0, ok = !!s.writer.try_acquire(8, code));
	CHECK(ok);
	CODE(0, ok = !!s.writer.try_acquire(8, 1ms, code));
	CHECK(ok);
	CODE(ENOSPC, s.writer.try_acquire(1 << 20, code));
	CODE(EPERM, s.reader.try_acquire(1, 1ms, code));
	CODE(0, xmem::describe_image(buffer, XMEM_IMAGE_GRAY8, 2, 4, code));
	CODE(0, xmem::describe_tensor(buffer, XMEM_DTYPE_INT8, xmem::dimensions(), code));
	CODE(0, xmem::describe_content(buffer, "text/plain", code));
	CODE(0, xmem::trim(s.writer, code));
	CODE(0, xmem::trim(s.reader, code));
	CODE(EBADF, xmem::attach_fd(s.writer, -1, code));
	CODE(EBADF, xmem::attach_fd(s.writer, -1, 64, code));
	CODE(EINVAL, xmem::forward(buffer, 1u << 31, code));
	CODE(0, xmem::send(buffer, s.reader.client(), XMEM_PUBLISH_KEEP, code));
	CHECK(buffer);
	CODE(ENOENT, xmem::send(buffer, s.writer.client(), code));
	CODE(0, ok = s.reader.receive_any(code).from == frames.raw());
	CHECK(ok);
	CODE(0, xmem::forward(buffer, code));
	CHECK(!buffer && s.reader.receive_any().contents);
	s.writer.reset();
	CODE(EPIPE, frames.try_receive(code));
	CODE(EPIPE, frames.try_receive(1ms, code));
}

TEST(pools_cannot_be_listed_without_a_host_that_is_known)
{
	const char *backend = std::getenv("XMEM_BACKEND");
	const std::string before = backend ? backend : "";
	bool ok = false;

	setenv("XMEM_BACKEND", "none", 1);
	CODE(EINVAL, ok = xmem::pools(code).empty());
	CHECK(ok);
	THROWS(EINVAL, xmem::pools());
	if (backend)
		setenv("XMEM_BACKEND", before.c_str(), 1);
	else
		unsetenv("XMEM_BACKEND");
}

/* The library sets no error for elements that do not fit; the C++ call does. */
TEST(elements_fit_or_are_refused)
{
	scene s;
	xmem::buffer buffer = s.writer.acquire(12);
	std::error_code code;

	CHECK(buffer.as_mut<std::uint32_t>().size() == 3);
	CHECK(buffer.as_mut<std::uint64_t>(code).empty() && code == std::errc::invalid_argument);
	try {
		buffer.as<std::uint64_t>();
		FAIL("12 bytes are elements of 8");
	} catch (const xmem::error &error) {
		CHECK(error.code() == std::errc::invalid_argument);
		CHECK(std::strstr(error.what(), "no whole number"));
	}
	buffer.as_mut<std::uint32_t>()[2] = 7;
	buffer.publish(xmem::publish_options(XMEM_PUBLISH_KEEP).part(4, 8));
	CHECK(buffer.as<std::uint32_t>()[1] == 7);
	CHECK(buffer.as<std::uint64_t>(code).empty() && code);		/* not at such an address */
	CHECK(buffer.as<std::byte>().size() == 8);
}
