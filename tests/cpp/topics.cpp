// SPDX-License-Identifier: MIT
/* Claims, pipelines, attached files and writing in place: what each call does, and its errors. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.hpp"

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t GONE = 1 << 16;		/* a token, of no contents */

std::uint32_t slot_of(std::uint64_t token)
{
	return static_cast<std::uint32_t>(token & 0xffff);
}

/* Acquired, and full of @stamp. */
xmem::buffer stamped(const xmem::pool &writer, unsigned char stamp)
{
	xmem::buffer buffer = writer.acquire(bytes_each, xmem::no_wait);

	std::memset(buffer.bytes_mut().data(), stamp, buffer.size());
	return buffer;
}

/* A buffer with so many references in all, including that of the handle. */
xmem::buffer counted(const xmem::pool &writer, unsigned char stamp, std::uint32_t count)
{
	xmem::buffer buffer = stamped(writer, stamp);

	xmem::set_ref_count(buffer, count);
	return buffer;
}

/* A memfd of @bytes that are @stamp, as xmem::attach_fd needs it. */
xmem::descriptor sealed(std::size_t bytes, unsigned char stamp)
{
	const std::string contents(bytes, static_cast<char>(stamp));
	xmem::descriptor file(memfd_create("cpp", MFD_CLOEXEC | MFD_ALLOW_SEALING));

	CHECK(write(file.raw(), contents.data(), bytes) == static_cast<ssize_t>(bytes));
	CHECK(!fcntl(file.raw(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
	return file;
}

/* A writer, a stage that follows it, and a reader that follows the stage and is waited for. */
struct line : scene {
	line() : stage(name, stage_options()), sink(name)
	{
		in = stage.subscribe(xmem::subscribe_options().only(writer.client()));
		out = sink.subscribe(xmem::subscribe_options(XMEM_SUBSCRIBE_WAITS)
					     .only(stage.client()));
	}

	static xmem::pool_options stage_options()
	{
		return xmem::pool_options(XMEM_OPEN_WRITER)
			.with_label("stage")
			.wait_for_subscribers(1h);
	}

	xmem::pool stage, sink;
	xmem::subscription in, out;
};

} // namespace

/* ---- claims ---- */

TEST(a_buffer_is_handed_over_by_count)
{
	scene s(1);
	xmem::buffer buffer = counted(s.writer, 5, 2);
	const std::uint64_t token = buffer.token();

	CHECK(s.reader.slot_info(slot_of(token)).claims == 1);
	xmem::forget(buffer);
	CHECK(!buffer && s.reader.stat().holds == 0);
	CHECK(!s.writer.try_acquire(1));
	{
		const xmem::buffer got = s.reader.get(token);

		CHECK(stamp_of(got) == 5);
		CHECK(s.reader.slot_info(slot_of(token)).claims == 1);
	}
	CHECK(!s.writer.try_acquire(1));
	{
		const xmem::buffer got = s.reader.get(XMEM_SLOT(slot_of(token)));

		CHECK(stamp_of(got) == 5 && got.slot() == static_cast<int>(slot_of(token)));
		CHECK(xmem::buffer().slot() == -EINVAL);
	}
	CHECK(s.writer.try_acquire(1));
}

TEST(references_are_set_aside_and_dropped)
{
	scene s(1);
	std::uint64_t token;
	{
		xmem::buffer buffer = counted(s.writer, 6, 1);

		token = buffer.token();
		xmem::offer(buffer, 2);
		CHECK(s.reader.slot_info(slot_of(token)).claims == 2);
		xmem::offer(buffer, 1, 5min);
		CHECK(xmem::claims(s.reader, token) == 3);
		xmem::set_ref_count(buffer, 2, 5min);
		CHECK(s.reader.slot_info(slot_of(token)).claims == 1);
	}
	CHECK(s.reader.slot_info(slot_of(token)).claims == 1);
	CHECK(xmem::claims(s.reader, token) == 1);
	xmem::add_ref(s.reader, token);
	CHECK(xmem::claims(s.reader, token) == 2);
	xmem::drop_ref(s.reader, token);
	CHECK(!s.writer.try_acquire(1));
	xmem::drop_ref(s.writer, token);
	CHECK(s.writer.try_acquire(1));

	xmem::buffer buffer = counted(s.writer, 7, 9);

	token = buffer.token();
	xmem::void_claims(s.writer, token);
	CHECK(s.reader.slot_info(slot_of(token)).claims == 0);
	CHECK(stamp_of(buffer) == 7);
}

TEST(claims_say_what_is_wrong)
{
	scene s(2);
	xmem::buffer buffer = stamped(s.writer, 1), empty;

	CODE(EPERM, xmem::forget(buffer, code));
	CODE(EPERM, xmem::offer(buffer, 1, code));
	CHECK(buffer);
	CODE(ERANGE, xmem::set_ref_count(buffer, 0, code));
	CODE(EINVAL, xmem::set_ref_count(buffer, 1, -1s, code));
	CODE(0, xmem::set_ref_count(buffer, 1, 5min, code));
	CODE(ERANGE, xmem::offer(buffer, 0, code));
	CODE(EINVAL, xmem::offer(buffer, 1, -1s, code));
	CODE(0, xmem::offer(buffer, 1, 5min, code));
	CODE(0, xmem::offer(buffer, 1, code));
	const std::uint64_t token = buffer.token();
	CODE(0, xmem::forget(buffer, code));
	CHECK(!buffer);
	CODE(0, xmem::add_ref(s.reader, token, code));
	CODE(0, xmem::drop_ref(s.reader, token, code));
	CODE(0, s.reader.get(XMEM_SLOT(slot_of(token)), code));
	CODE(0, xmem::claims(s.reader, token, code));
	CODE(0, xmem::void_claims(s.writer, token, code));
	CODE(ESTALE, xmem::claims(s.reader, GONE, code));
	CODE(ENOENT, xmem::void_claims(s.writer, token, code));
	CODE(EINVAL, s.reader.get(XMEM_SLOT(65535), code));
	CODE(ESTALE, xmem::add_ref(s.reader, GONE, code));
	CODE(ESTALE, xmem::drop_ref(s.reader, GONE, code));
	THROWS(ESTALE, xmem::add_ref(s.reader, GONE));
	THROWS(ESTALE, xmem::drop_ref(s.reader, GONE));
	THROWS(ESTALE, xmem::void_claims(s.writer, GONE));
	THROWS(EINVAL, s.reader.get(XMEM_SLOT(65535)));
	THROWS(EINVAL, xmem::set_ref_count(empty, 1));
	THROWS(EINVAL, xmem::set_ref_count(empty, 1, 1s));
	THROWS(EINVAL, xmem::offer(empty, 1));
	THROWS(EINVAL, xmem::offer(empty, 1, 1s));
	THROWS(ESTALE, xmem::claims(s.reader, GONE));
	THROWS(EINVAL, xmem::claims(xmem::pool(), 1));
	THROWS(EINVAL, xmem::forget(empty));
}

/* ---- pipelines ---- */

TEST(a_stage_forwards_what_it_receives)
{
	line l;
	const std::uint64_t token = l.publish(8);
	xmem::buffer buffer = l.in.receive();

	CHECK(xmem::forward(buffer, XMEM_PUBLISH_KEEP, patience) == token && buffer);
	CHECK(xmem::forward(buffer) == token && !buffer);
	buffer = l.out.receive();
	CHECK(buffer.token() == token && stamp_of(buffer) == 8);
	CHECK(buffer.publisher() == l.stage.client() && buffer.publisher_label() == "stage");
	buffer = l.out.receive();
	CHECK(buffer.token() == token && buffer.sequence() == 1);
}

TEST(a_subscriber_alone_is_sent_to)
{
	line l;
	xmem::subscription others =
		l.reader.subscribe(xmem::subscribe_options().only(l.stage.client()));

	l.publish(9);
	xmem::buffer buffer = l.in.receive();
	CHECK(xmem::send(buffer, l.sink.client()) && !buffer);
	CHECK(stamp_of(l.out.receive()) == 9);
	CHECK(!others.try_receive() && others.lost() == 0);
	l.stage.preallocate(bytes_each, 1);
	buffer = stamped(l.stage, 10);
	CHECK(xmem::send(buffer, l.reader.client(), XMEM_PUBLISH_KEEP, xmem::no_wait) && buffer);
	CHECK(stamp_of(others.receive()) == 10 && !l.out.try_receive());
	CHECK(buffer.publish(xmem::publish_options().to(l.sink.client()).within(patience)));
	CHECK(!buffer && stamp_of(l.out.receive()) == 10 && !others.try_receive());
}

TEST(a_publication_is_retracted)
{
	scene s(1);
	xmem::subscription frames = s.reader.subscribe();

	xmem::retract(s.writer, s.publish(1));
	CHECK(!frames.try_receive() && frames.lost() == 0);
	const std::uint64_t token = s.publish(2);
	{
		const xmem::buffer got = frames.receive();

		CODE(EBUSY, xmem::retract(s.writer, token, code));
		THROWS(EBUSY, xmem::retract(s.writer, token));
	}
	CODE(0, xmem::retract(s.writer, token, code));
	CODE(ESTALE, xmem::retract(s.writer, token, code));
	CODE(EPERM, xmem::retract(s.reader, token, code));
}

TEST(pipelines_say_what_is_wrong)
{
	line l;
	xmem::buffer written = stamped(l.writer, 1), empty, held;

	CODE(EINVAL, xmem::forward(written, {}, -1s, code));
	CODE(EMEDIUMTYPE, written.publish_on(nullptr, code));
	CODE(EINVAL, xmem::send(written, 1u << 20, {}, xmem::no_wait, code));
	CODE(ENOENT, xmem::send(written, l.sink.client(), {}, xmem::no_wait, code));
	CHECK(written);
	THROWS(ENOENT, xmem::send(written, l.sink.client()));
	CODE(0, xmem::send(written, l.stage.client(), {}, xmem::no_wait, code));
	CHECK(!written);
	held = l.in.receive();
	CODE(ERANGE, xmem::forward(held, xmem::publish_options().part(1, bytes_each),
				   xmem::no_wait, code));
	CODE(EINVAL, xmem::forward(held, {}, -1s, code));
	CODE(0, xmem::forward(held, XMEM_PUBLISH_KEEP, xmem::no_wait, code));
	CHECK(held);
	for (;;) {
		std::error_code full;

		xmem::forward(held, XMEM_PUBLISH_KEEP, xmem::no_wait, full);
		if (full) {
			CHECK(full == std::errc::resource_unavailable_try_again);
			break;
		}
	}
	CODE(ETIMEDOUT, xmem::forward(held, {}, 1ms, code));
	CHECK(held);
	THROWS(EINVAL, xmem::forward(empty));
	THROWS(EINVAL, xmem::send(empty, 0));
}

TEST(a_label_is_its_publishers)
{
	scene s;
	xmem::pool named(s.name,
			 xmem::pool_options(XMEM_OPEN_WRITER).with_label("fifteen letters"));
	xmem::buffer empty;

	named.preallocate(bytes_each, 1);
	xmem::buffer buffer = named.acquire(1);
	CHECK(buffer.publisher_label() == "fifteen letters");
	CODE(0, buffer.publisher_label(code));
	CODE(EINVAL, empty.publisher_label(code));
	THROWS(EINVAL, empty.publisher_label());
}

/* ---- what a subscription receives ---- */

static void publish_some(const xmem::pool &writer, unsigned char first, unsigned char last)
{
	for (; first <= last; first++)
		stamped(writer, first).publish();
}

TEST(history_depth_and_label_in_one_expression)
{
	const std::string name = new_name();
	xmem::pool cam(name, xmem::pool_options(XMEM_OPEN_WRITER).with_label("cam-1").with_keep(4));
	xmem::pool log(name, xmem::pool_options(XMEM_OPEN_WRITER).with_label("log").with_keep(4));
	xmem::pool reader(name), other(name);

	cam.preallocate(bytes_each, 8);
	log.preallocate(bytes_each, 8);
	publish_some(cam, 1, 6);
	publish_some(log, 101, 106);
	xmem::subscription cams = reader.subscribe(
		xmem::subscribe_options().with_label("cam-*").with_history(3));
	for (unsigned char stamp = 4; stamp <= 6; stamp++)
		CHECK(stamp_of(cams.receive()) == stamp);
	CODE(EAGAIN, cams.receive(0s, code));

	xmem::subscription latest = other.subscribe(
		xmem::subscribe_options().only(cam.client()).with_depth(2));
	publish_some(cam, 7, 11);
	CHECK(stamp_of(latest.receive()) == 10 && stamp_of(latest.receive()) == 11);
	CODE(EAGAIN, latest.receive(0s, code));
}

/* ---- attached files, and kinds of memory ---- */

TEST(a_file_is_attached)
{
	scene s;
	xmem::subscription frames = s.reader.subscribe();
	xmem::descriptor file = sealed(8192, 11);
	xmem::buffer buffer = xmem::attach_fd(s.writer, file.raw()), empty;

	CHECK(buffer.size() == 8192 && stamp_of(buffer) == 11);
	CHECK(xmem::buffer_flags(buffer) == (XMEM_BUFFER_ATTACHED | XMEM_BUFFER_CONSTANT));
	CHECK(xmem::buffer_flags(empty) == 0);
	CODE(EPERM, buffer.bytes_mut(code));
	buffer.publish();
	CHECK(stamp_of(frames.receive()) == 11);
	buffer = xmem::attach_fd(s.writer, file.raw(), 64, 128);
	CHECK(buffer.size() == 128);
	CODE(0, xmem::attach_fd(s.writer, file.raw(), 0, 0, code));
	CODE(EINVAL, xmem::attach_fd(s.writer, file.raw(), 1, 0, code));
	CODE(ERANGE, xmem::attach_fd(s.writer, file.raw(), 64, 8192, code));
	CODE(EBADF, xmem::attach_fd(s.writer, -1, 0, 0, code));
	CODE(EPERM, xmem::attach_fd(s.reader, file.raw(), 0, 0, code));
	THROWS(EBADF, xmem::attach_fd(s.writer, -1));
}

TEST(the_only_holder_writes_in_place)
{
	const std::string name = new_name();
	xmem::pool writer(name, XMEM_OPEN_WRITER), stage(name, XMEM_OPEN_WRITER);

	writer.preallocate(bytes_each, 1);
	xmem::subscription in = stage.subscribe(xmem::subscribe_options().only(writer.client()));
	xmem::subscription out = writer.subscribe(xmem::subscribe_options().only(stage.client()));

	stamped(writer, 12).publish();
	xmem::buffer buffer = in.receive();
	CHECK(xmem::buffer_flags(buffer) == XMEM_BUFFER_SHARED);
	{
		const xmem::buffer second = buffer.clone();

		CODE(EBUSY, xmem::get_mut(buffer, code));
		THROWS(EBUSY, xmem::get_mut(buffer));
	}
	xmem::get_mut(buffer);
	CHECK(stamp_of(buffer) == 12);
	std::memset(buffer.bytes_mut().data(), 13, buffer.size());
	CODE(EPERM, xmem::get_mut(buffer, code));
	buffer.publish();
	buffer = out.receive();
	CHECK(stamp_of(buffer) == 13 && buffer.publisher() == stage.client());
	CODE(0, xmem::get_mut(buffer, code));
}

TEST(kinds_of_memory_are_chosen)
{
	scene s(1);
	xmem_preallocate_options plain{};

	CODE(0, s.writer.preallocate(64, 1, code));
	CODE(0, s.writer.preallocate(64, 1, XMEM_MEMORY_HUGE, code));
	CHECK(s.writer.stat().attached == 3);
	CODE(EINVAL, s.writer.preallocate(64, 1, 1u << 31, code));
	CODE(EINVAL, s.writer.preallocate(64, 0, code));
	CODE(EPERM, s.reader.preallocate(64, 1, code));
	CODE(EINVAL, s.writer.preallocate(64, 1, plain, code));		/* its size is 0 */
	THROWS(EINVAL, s.writer.preallocate(64, 0));
}
