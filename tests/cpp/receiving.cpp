// SPDX-License-Identifier: MIT
/* Receiving: one by one, in a range-for, from any subscription, and how that ends. */
#include <algorithm>
#include <thread>
#include <vector>

#include "test.hpp"

using namespace std::chrono_literals;

TEST(publications_come_with_what_was_said)
{
	scene s;
	xmem::subscription frames =
		s.reader.subscribe(xmem::subscribe_options().only(s.writer.client()));
	const xmem::clock::time_point now = xmem::clock::now();
	xmem::buffer buffer = s.writer.acquire(100);

	std::memset(buffer.bytes_mut().data(), 9, 100);
	buffer.metadata_mut().user[0] = 77;
	const std::uint64_t token = buffer.publish(xmem::publish_options().at(now).part(10, 20));
	CHECK(!buffer && token);

	const xmem::buffer got = frames.receive(patience);
	CHECK(got.token() == token && got.sequence() == 0 && got.size() == 20);
	CHECK(got.capacity() == bytes_each && got.timestamp() == now);
	CHECK(got.publisher() == s.writer.client() && frames.publisher() == got.publisher());
	CHECK(got.metadata().user[0] == 77 && got.metadata().offset == 10);
	CHECK(stamp_of(got) == 9);
	CHECK(s.reader.get(token).token() == token);
	CHECK(s.reader.holds(s.reader.client(), static_cast<std::uint32_t>(token & 0xffff)) == 1);
}

TEST(a_range_for_ends_with_the_publisher)
{
	scene s(8);
	xmem::subscription frames = s.reader.subscribe();
	unsigned char next = 1;
	xmem::buffer kept;

	for (unsigned char i = 1; i <= 5; i++)
		s.publish(i);
	s.writer.reset();
	for (xmem::buffer &frame : frames) {
		CHECK(stamp_of(frame) == next);
		if (next++ == 3)
			kept = std::move(frame);
		CHECK(s.reader.stat().holds == (next > 3 ? (next == 4 ? 1 : 2) : 1));
	}
	CHECK(next == 6 && stamp_of(kept) == 3);
	CHECK(s.reader.stat().holds == 1);
	/* The subscription has ended for good. */
	for (xmem::buffer &frame : frames)
		CHECK(!frame);
}

TEST(a_range_for_ends_with_cancel)
{
	scene s;
	xmem::subscription frames = s.reader.subscribe();
	std::thread other([&] { s.reader.cancel(); });
	unsigned int received = 0;

	for (xmem::buffer &frame : frames)
		received += stamp_of(frame);
	other.join();
	CHECK(received == 0);
	CODE(ECANCELED, frames.receive(xmem::forever, code));
}

TEST(a_range_says_why_it_ends)
{
	scene s;
	xmem::subscription frames = s.reader.subscribe();
	std::error_code code;
	unsigned int received = 0;

	s.publish(1);
	s.publish(2);
	for (const xmem::buffer &frame : frames.each(code, xmem::no_wait))
		received += stamp_of(frame);
	CHECK(received == 3 && code == std::errc::resource_unavailable_try_again);
	for (const xmem::buffer &frame : frames.each(code, 1ms))
		received += stamp_of(frame);
	CHECK(received == 3 && code == std::errc::timed_out);
	s.publish(4);
	s.writer.reset();
	for (const xmem::buffer &frame : frames.each(code)) {
		CHECK(!code);
		received += stamp_of(frame);
	}
	CHECK(received == 7 && code == std::errc::broken_pipe);
}

template <class T> using each_of =
	decltype(std::declval<T>().each(std::declval<std::error_code &>()));
template <class T> using each_in_time =
	decltype(std::declval<T>().each(std::declval<std::error_code &>(), 1ms));

/* A subscription that ends before the loop begins has no range. */
static_assert(has<each_of, xmem::subscription &> && has<each_of, const xmem::subscription &> &&
	      has<each_in_time, xmem::subscription &> &&
	      has<each_in_time, const xmem::subscription &>,
	      "what has a name outlives the loop");
static_assert(!has<each_of, xmem::subscription> && !has<each_of, const xmem::subscription> &&
	      !has<each_in_time, xmem::subscription> &&
	      !has<each_in_time, const xmem::subscription>,
	      "a temporary does not");

TEST(a_temporary_lasts_as_long_as_its_range_for)
{
	scene s;

	s.writer.reset();
	s.writer = xmem::pool(s.name, xmem::pool_options(XMEM_OPEN_WRITER).with_keep(2));
	s.writer.preallocate(bytes_each, 4);
	s.publish(1);
	for (xmem::buffer &frame : s.reader.subscribe(xmem::subscribe_options().with_history(2))) {
		CHECK(stamp_of(frame) == 1);
		break;
	}
	CHECK(is_quiet(s.reader, 2));
}

/* A loop can be left, and a later one continues there. */
TEST(a_range_for_can_be_left)
{
	scene s;
	xmem::subscription frames = s.reader.subscribe();

	s.publish(1);
	s.publish(2);
	for (xmem::buffer &frame : frames) {
		CHECK(stamp_of(frame) == 1);
		break;
	}
	CHECK(s.reader.stat().holds == 0);
	for (auto at = frames.begin(); at != frames.end();) {
		CHECK(at->size() == bytes_each && stamp_of(*at) == 2);
		break;
	}
	CHECK(frames.lost() == 0);
}

TEST(any_subscription_of_a_pool)
{
	scene s;
	xmem::pool second(s.name, XMEM_OPEN_WRITER);
	std::error_code code;

	second.preallocate(bytes_each, 2);
	xmem::subscription one =
		s.reader.subscribe(xmem::subscribe_options().only(s.writer.client()));
	xmem::subscription two =
		s.reader.subscribe(xmem::subscribe_options().only(second.client()));

	s.publish(1);
	{
		xmem::received got = s.reader.receive_any(patience);

		CHECK(got.from == one.raw() && stamp_of(got.contents) == 1);
	}
	second.reset();
	xmem::received got = s.reader.receive_any(patience, code);

	CHECK(!got.contents && got.from == two.raw() && code == std::errc::broken_pipe);
	/* A handler learns which subscription to end, and continues with the others. */
	try {
		s.reader.receive_any(patience);
		FAIL("a publisher that has ended publishes");
	} catch (const xmem::subscription_over &error) {
		CHECK(error.from() == two.raw() && error.code() == std::errc::broken_pipe);
		CHECK(std::string(error.what()).find(xmem::last_message()) == 0);
		two.reset();
	}
	s.publish(2);
	CHECK(stamp_of(s.reader.receive_any(patience).contents) == 2);
	s.writer.reset();
	THROWS(EPIPE, s.reader.receive_any());
}

TEST(a_subscriber_that_is_waited_for_loses_nothing)
{
	const std::string name = new_name();
	xmem::pool writer(name, xmem::pool_options(XMEM_OPEN_WRITER).wait_for_subscribers(1h));
	xmem::pool reader(name);
	unsigned int next = 0;

	writer.preallocate(64, 3);
	xmem::subscription frames = reader.subscribe(XMEM_SUBSCRIBE_WAITS);
	std::thread publisher([&] {
		for (unsigned int i = 0; i < 500; i++) {
			xmem::buffer buffer = writer.acquire(64);

			buffer.as_mut<unsigned int>()[0] = i;
			buffer.publish();
		}
		writer.reset();
	});
	for (const xmem::buffer &frame : frames) {
		CHECK(frame.as<unsigned int>()[0] == next && frame.sequence() == next);
		next++;
	}
	publisher.join();
	CHECK(next == 500 && frames.lost() == 0);
}
