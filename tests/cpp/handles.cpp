// SPDX-License-Identifier: MIT
/*
 * Handles: they can be moved and not copied, they drop what they own once, and an empty one causes
 * an error and no crash.
 */
#include <cstring>

#include "test.hpp"

template <class T> constexpr bool is_move_only()
{
	return std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T> &&
	       !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
	       std::is_nothrow_default_constructible_v<T> && std::is_nothrow_destructible_v<T>;
}

static_assert(is_move_only<xmem::pool>() && is_move_only<xmem::buffer>() &&
	      is_move_only<xmem::subscription>() && is_move_only<xmem::descriptor>(),
	      "handles can be moved, and not copied");
static_assert(sizeof(xmem::buffer) == sizeof(void *) && sizeof(xmem::pool) == sizeof(void *) &&
	      sizeof(xmem::subscription) == sizeof(void *), "a handle is a pointer");

TEST(a_buffer_is_dropped_once)
{
	scene s;
	const std::uint64_t stale = s.reader.stat().stale_handles;

	s.publish(1, XMEM_PUBLISH_KEEP);	/* kept, and dropped at the end of publish */
	CHECK(is_quiet(s.reader, 2));
	{
		xmem::subscription frames = s.reader.subscribe();

		s.publish(2);
		xmem::buffer first = frames.receive(), second, third;

		CHECK(s.reader.stat().holds == 1);
		second = std::move(first);
		CHECK(second && s.reader.stat().holds == 1);
		third = second.clone();
		CHECK(third && s.reader.stat().holds == 2);
		CHECK(third.token() == second.token());
		third = std::move(second);		/* the clone is released */
		CHECK(s.reader.stat().holds == 1);
		xmem::buffer &same = third;
		third = std::move(same);
		CHECK(third && stamp_of(third) == 2);
		xmem::buffer moved(std::move(third));

		CHECK(moved && s.reader.stat().holds == 1);
		moved.reset();
		CHECK(!moved && s.reader.stat().holds == 0);
	}
	CHECK(is_quiet(s.reader, 2));
	CHECK(s.reader.stat().stale_handles == stale);
}

TEST(a_pool_and_a_subscription_are_dropped_once)
{
	scene s;
	xmem::pool pool(s.name), other;

	CHECK(s.writer.stat().clients == 3);
	other = std::move(pool);
	CHECK(!pool && other && s.writer.stat().clients == 3);
	xmem::subscription frames = other.subscribe(), more;

	more = std::move(frames);
	CHECK(!frames && more);
	other.reset();
	/* The subscription keeps its pool. */
	CHECK(s.writer.stat().clients == 3);
	s.publish(3);
	CHECK(stamp_of(more.receive()) == 3);
	more.reset();
	CHECK(is_quiet(s.writer, 2));
}

TEST(a_raw_handle_goes_out_and_comes_back)
{
	scene s;
	xmem::buffer buffer = s.writer.acquire(1);
	xmem_buffer *raw = buffer.raw();

	CHECK(buffer.detach() == raw && !buffer);
	CHECK(xmem_size(raw) == 1);
	xmem::buffer again(raw);

	CHECK(again.size() == 1);
	again.reset(xmem_acquire(s.writer.raw(), 2, 0));	/* the first one is released */
	CHECK(again.size() == 2);
	again.reset();
	CHECK(is_quiet(s.reader, 2));
	xmem::pool pool(xmem_pool_open(s.name.c_str(), nullptr));

	CHECK(pool.stat().clients == 3);
	xmem::subscription frames(xmem_subscribe(pool.raw(), nullptr));

	CHECK(frames.lost() == 0);
}

TEST(a_pool_is_joined_anew)
{
	scene s;
	xmem::pool again = s.writer.reopen();

	CHECK(again.client() != s.writer.client());
	CHECK(again.client_info(again.client()).role == XMEM_CLIENT_WRITER);
	s.writer = s.writer.reopen();
	CHECK(s.reader.stat().clients == 3);
	CODE(EOPNOTSUPP, xmem::pool("").reopen(code));
}

TEST(empty_handles_are_errors)
{
	xmem::buffer buffer;
	xmem::subscription frames;
	xmem::pool pool;

	CHECK(!buffer && !frames && !pool);
	CHECK(!buffer.raw() && !frames.raw() && !pool.raw());
	THROWS(EINVAL, buffer.bytes());
	THROWS(EINVAL, buffer.bytes_mut());
	THROWS(EINVAL, buffer.as<int>());
	THROWS(EINVAL, buffer.publish());
	THROWS(EINVAL, buffer.publish(XMEM_PUBLISH_KEEP));
	THROWS(EINVAL, buffer.clone());
	THROWS(EINVAL, buffer.publisher());
	THROWS(EINVAL, buffer.metadata());
	THROWS(EINVAL, buffer.metadata_mut());
	CHECK(buffer.size() == 0 && buffer.capacity() == 0 && buffer.token() == 0);
	CHECK(buffer.sequence() == 0 && buffer.timestamp() == xmem::clock::time_point());
	THROWS(EINVAL, frames.receive());
	THROWS(EINVAL, frames.try_receive());
	THROWS(EINVAL, frames.publisher());
	THROWS(EINVAL, frames.poll_fd());
	THROWS(EINVAL, [&] { for (xmem::buffer &one : frames) one.reset(); }());
	CHECK(frames.lost() == 0);
	THROWS(EINVAL, pool.reopen());
	THROWS(EINVAL, pool.subscribe());
	THROWS(EINVAL, pool.receive_any(xmem::no_wait));
	THROWS(EINVAL, pool.get(1));
	THROWS(EINVAL, pool.preallocate(1, 1));
	THROWS(EINVAL, pool.acquire(1));
	THROWS(EINVAL, pool.try_acquire(1));
	THROWS(EINVAL, pool.poll_fd());
	THROWS(EINVAL, pool.fd());
	THROWS(EINVAL, pool.set_mode(0600));
	THROWS(EINVAL, pool.evict(0, 1));
	THROWS(EINVAL, pool.grant(0, 1));
	THROWS(EINVAL, pool.drain());
	THROWS(EINVAL, pool.client());
	THROWS(EINVAL, pool.stat());
	THROWS(EINVAL, pool.client_info(0));
	THROWS(EINVAL, pool.slot_info(0));
	THROWS(EINVAL, pool.holds(0, 0));
	pool.cancel();
	CHECK(!pool.backend());
}

TEST(descriptors_are_closed_once)
{
	scene s;
	xmem::descriptor fd = s.writer.fd(), other;
	const int raw = fd.raw();

	CHECK(raw >= 0 && fd);
	other = std::move(fd);
	CHECK(!fd && fd.raw() == -1 && other.raw() == raw);
	xmem::pool joined = xmem::pool::join(other.raw());

	CHECK(s.writer.stat().clients == 3);
	other.reset();
	CHECK(close(raw) == -1 && errno == EBADF);
	other = s.writer.fd();
	CHECK(close(other.detach()) == 0 && !other);
	CODE(EBADF, xmem::pool::join(-1, {}, code));
	THROWS(EBADF, xmem::pool::join(-1));
}

TEST(descriptors_are_narrowed_and_modes_changed)
{
	scene s;
	const xmem::descriptor fd = s.writer.fd();
	const xmem::descriptor reads = xmem::pool::narrow(fd.raw(), XMEM_MAY_READ);

	CHECK(reads.raw() >= 0 && reads.raw() != fd.raw());
	CHECK(xmem::pool::join(reads.raw()).stat().clients == 3);
	THROWS(EACCES, xmem::pool::join(reads.raw(), XMEM_OPEN_WRITER));
	THROWS(EACCES, xmem::pool::narrow(reads.raw(), XMEM_MAY_WRITE));
	CODE(EINVAL, xmem::pool::narrow(fd.raw(), 0, code));
	CODE(EBADF, xmem::pool::narrow(-1, XMEM_MAY_READ, code));

	s.writer.set_mode(0400);
	s.writer.set_mode(XMEM_MODE_STRICT | 0600, getegid());
	THROWS(EINVAL, s.writer.set_mode(0200));
	CODE(EINVAL, s.writer.set_mode(0700, XMEM_GID_SAME, code));
}

TEST(clients_are_let_hold_what_is_anothers)
{
	scene s;
	const std::uint32_t id = s.reader.client();
	const std::uint64_t incarnation = s.writer.client_info(id).incarnation;

	s.writer.grant(id, incarnation);
	CHECK(s.writer.client_info(id).incarnation == incarnation);
	THROWS(EINVAL, s.writer.grant(id, 0));
	THROWS(ESTALE, s.writer.grant(id, incarnation + 100));
	CODE(EPERM, s.reader.grant(s.writer.client(), 1, code));
}

TEST(a_writer_knows_its_subscribers)
{
	scene s;

	CODE(EAGAIN, s.writer.wait_subscribers(1, xmem::no_wait, code));
	THROWS(ETIMEDOUT, s.writer.wait_subscribers(1, std::chrono::milliseconds(1)));
	CODE(ENOENT, s.writer.subscriber_next(0, code));
	CHECK(s.writer.subscribers_poll_fd() >= 0);

	xmem::subscription frames = s.reader.subscribe();

	CHECK(s.writer.wait_subscribers(1, xmem::forever) == 1);
	CHECK(s.writer.subscriber_next(0).client == s.reader.client());
	THROWS(ENOENT, s.writer.subscriber_next(s.reader.client() + 1));
	CODE(EPERM, s.reader.subscriber_next(0, code));
	CODE(EPERM, s.reader.subscribers_poll_fd(code));
	THROWS(EPERM, s.reader.wait_subscribers(1, xmem::no_wait));
}

TEST(clients_are_evicted_and_pools_drained)
{
	scene s;
	const std::uint32_t id = s.reader.client();
	const std::uint64_t incarnation = s.writer.client_info(id).incarnation;
	const xmem::descriptor fd = s.writer.fd();

	CODE(EINVAL, s.writer.evict(s.writer.client(), 1, code));
	THROWS(EINVAL, s.writer.evict(id, 0));
	THROWS(ESTALE, s.writer.evict(id, incarnation + 100));
	if (!std::strcmp(s.writer.backend(), "daemon")) {
		THROWS(EOPNOTSUPP, s.writer.evict(id, incarnation));
		THROWS(EOPNOTSUPP, s.writer.drain(XMEM_DRAIN_EVICTS));
	} else {
		s.writer.evict(id, incarnation);
		CODE(ENOTCONN, s.reader.get(1, code));
	}
	CHECK(xmem::pool::join(fd.raw()));
	CODE(EINVAL, s.writer.drain(XMEM_DRAIN_EVICTS << 1, code));
	CHECK(s.writer.drain() == 0 && s.writer.drain(0) == 0);
	THROWS(ESHUTDOWN, xmem::pool::join(fd.raw()));
}
