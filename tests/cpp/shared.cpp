// SPDX-License-Identifier: MIT
/*
 * Handles that are shared (handles.hpp): they keep what they depend on, the last copy drops the
 * resource in any thread, and a failed call returns an empty handle and sets the thread's last
 * error.
 */
#include <cstdlib>
#include <new>
#include <thread>

#include "gpu.hpp"

using xmem::as_cu;
using xmem::as_intptr;

static const xmem_api *const api = xmem_get_api(XMEM_API_VERSION);

/* ---- memory that runs out, in this thread ---- */

static thread_local bool no_memory;

void *operator new(std::size_t bytes)
{
	void *memory = no_memory ? nullptr : std::malloc(bytes);

	if (!memory)
		throw std::bad_alloc();
	return memory;
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

/* ---- */

static_assert(std::is_same_v<xmem::device_ptr_handle::element_type, const unsigned long long>,
	      "a handle shows the raw resource, and nothing else");
static_assert(noexcept(xmem::open_pool(api, "")) && noexcept(xmem::acquire({}, 1, 0)) &&
	      noexcept(xmem::receive({}, 0)) && noexcept(xmem::get({}, 1)) &&
	      noexcept(xmem::device_ptr({})), "no exception leaves them");

TEST(a_shared_handle_is_the_raw_one)
{
	const xmem::pool_handle pool = xmem::open_pool(api, new_name().c_str());
	const xmem::buffer_handle buffer = xmem::acquire(pool, bytes_each, 0), same = buffer;

	CHECK(as_cu(buffer) == as_cu(same) && as_cu(buffer) == *buffer);
	CHECK(as_intptr(buffer) == reinterpret_cast<std::intptr_t>(as_cu(buffer)));
	CHECK(xmem_size(as_cu(buffer)) == bytes_each);
	CHECK(xmem_pool_client(as_cu(pool)) >= 0);
	CHECK(!as_cu(xmem::buffer_handle()) && !as_intptr(xmem::pool_handle()));
	CHECK(!as_cu(xmem::device_ptr_handle()) && !as_intptr(xmem::device_ptr_handle()));
}

TEST(a_shared_buffer_keeps_its_pool)
{
	const std::string name = new_name();
	const xmem::pool observer(name, XMEM_OPEN_READER);
	xmem::pool_handle pool = xmem::open_pool(api, name.c_str());
	xmem::buffer_handle buffer = xmem::acquire(pool, bytes_each, 0), copy = buffer;

	pool.reset();
	buffer.reset();
	CHECK(observer.stat().clients == 2);
	std::memset(api->data_mut(as_cu(copy)), 7, bytes_each);
	/* The contents stay, and so does the handle with all its copies, for reading. */
	std::uint64_t token = 0;

	CHECK(!xmem::publish(copy, {}, &token) && token);
	CHECK(xmem_token(as_cu(copy)) == token);
	CHECK(stamp_of(observer.get(token)) == 7);
	copy.reset();
	CHECK(is_quiet(observer, 1));
	CHECK(observer.stat().stale_handles == 0);
}

TEST(a_shared_subscription_keeps_its_pool)
{
	scene s;
	xmem::pool_handle pool = xmem::open_pool(api, s.name.c_str());
	xmem::subscription_handle frames = xmem::subscribe(pool);

	pool.reset();
	s.publish(5);
	xmem::buffer_handle frame = xmem::receive(frames, 0);

	frames.reset();
	CHECK(frame && *static_cast<const unsigned char *>(xmem_data(as_cu(frame))) == 5);
	CHECK(s.reader.stat().clients == 3);
	frame.reset();
	CHECK(is_quiet(s.reader, 2));
}

TEST(a_shared_device_pointer_keeps_its_buffer)
{
	gpu_scene s;
	xmem::pool_handle pool(xmem::adopt(api, s.writer.detach()));
	xmem::buffer_handle buffer = xmem::acquire_cuda(pool, bytes_each, 0, 0);
	const xmem::device_ptr_handle none = xmem::device_ptr_mut(xmem::acquire(pool, 1, 0));

	CHECK(!none && xmem::last_error().value() == EMEDIUMTYPE);
	xmem::device_ptr_handle written = xmem::device_ptr_mut(buffer);
	const void *const raw = xmem_cuda_ptr_mut(as_cu(buffer));

	CHECK(written && as_cu(written) == reinterpret_cast<std::uintptr_t>(raw));
	CHECK(as_intptr(written) == reinterpret_cast<std::intptr_t>(raw));
	CHECK(!xmem::publish(buffer));
	xmem::device_ptr_handle read = xmem::device_ptr(buffer);

	CHECK(as_cu(read) && !xmem::device_ptr_mut(buffer));
	written.reset();
	buffer.reset();
	pool.reset();
	CHECK(s.reader.stat().clients == 2 && s.reader.stat().holds == 1);
	read.reset();
	CHECK(is_quiet(s.reader, 1));
}

TEST(a_shared_handle_is_dropped_in_any_thread)
{
	scene s;
	xmem::pool_handle pool = xmem::open_pool(api, s.name.c_str());
	xmem::subscription_handle frames = xmem::subscribe(pool);

	s.publish(9);
	xmem::buffer_handle held = xmem::receive(frames, 0);

	CHECK(held && s.reader.stat().holds == 1);
	frames.reset();
	std::thread([last = std::move(held), also = std::move(pool)]() mutable {
		also.reset();
		last.reset();
	}).join();
	CHECK(is_quiet(s.reader, 2));
}

TEST(what_fails_is_an_empty_shared_handle)
{
	const xmem::pool_handle pool = xmem::open_pool(api, new_name().c_str());
	std::error_code other;

	CHECK(!xmem::open_pool(api, "/no//name") && xmem::take_last_error().value() == EINVAL);
	CHECK(!xmem::get(pool, 1) && xmem::last_error().value() == ESTALE);
	/* Another thread has an error of its own. */
	std::thread([&] { other = xmem::last_error(); }).join();
	CHECK(!other);
	CHECK(xmem::take_last_error().value() == ESTALE && !xmem::last_error());
	/* A call with a handle that could not be made keeps that handle's error. */
	const xmem::buffer_handle none = xmem::get(pool, 1);

	CHECK(!none && !xmem::device_ptr(none) && !xmem::device_ptr_mut(none));
	CHECK(xmem::publish(none) == -EINVAL);
	CHECK(!xmem::acquire({}, 1, 0) && !xmem::get({}, 1) && !xmem::subscribe({}) &&
	      !xmem::receive({}, 0) && !xmem::acquire_cuda({}, 1, 0, 0));
	CHECK(xmem::take_last_error().value() == ESTALE);
}

TEST(a_shared_handle_without_memory_leaves_nothing)
{
	scene s(1);
	const xmem::pool_handle pool = xmem::open_pool(api, s.name.c_str());
	const xmem::subscription_handle frames = xmem::subscribe(pool);

	s.publish(3);
	CHECK(!xmem::get(pool, 1));		/* an earlier error, not that of this call */
	no_memory = true;
	const xmem::pool_handle other = xmem::open_pool(api, s.name.c_str());
	const xmem::buffer_handle frame = xmem::receive(frames, 0);

	no_memory = false;
	CHECK(!other && !frame && !xmem::last_error());
	CHECK(is_quiet(s.reader, 3));
}
