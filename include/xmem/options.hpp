/* SPDX-License-Identifier: MIT */
/*
 * The structs of options in C++: their size is set, and all other fields are 0. A program sets a
 * field directly, or by a function that returns the options, so that calls can be chained. A label
 * stays the caller's. A part of xmem.hpp.
 */
#ifndef XMEM_OPTIONS_HPP
#define XMEM_OPTIONS_HPP

#include "basics.hpp"

namespace xmem {

struct pool_options : xmem_pool_options {
	pool_options(std::uint32_t wanted = 0) noexcept
		: xmem_pool_options(detail::sized<xmem_pool_options>())
	{
		flags = wanted;
	}
	pool_options(const xmem_pool_options &options) noexcept
		: xmem_pool_options(options)
	{
	}
	template <class Rep, class Period>
	pool_options &wait_for_subscribers(std::chrono::duration<Rep, Period> bound) noexcept
	{
		wait_bound_ns = to_nanoseconds(bound);
		return *this;
	}
	/* The room that the pool has at least, if this call makes it. */
	pool_options &with_room(std::uint32_t buffers, std::uint32_t processes = 0,
				std::uint32_t entries = 0) noexcept
	{
		slots = buffers;
		clients = processes;
		ring_entries = entries;
		return *this;
	}
	pool_options &with_label(const char *name) noexcept
	{
		label = name;
		return *this;
	}
	/* Make up to this many bytes of buffers on demand; XMEM_NO_DEMAND: none. */
	pool_options &with_demand(std::uint64_t bytes) noexcept
	{
		demand_bytes = bytes;
		return *this;
	}
	/* Keep this many bytes of unused buffers from demand, for this long. */
	template <class Rep, class Period>
	pool_options &with_cache(std::uint64_t bytes,
				 std::chrono::duration<Rep, Period> time) noexcept
	{
		cache_bytes = bytes;
		cache_ns = to_nanoseconds(time);
		return *this;
	}
	/* The kind of memory of buffers from demand: XMEM_MEMORY_*. */
	pool_options &with_memory(std::uint32_t kind) noexcept
	{
		memory = kind;
		return *this;
	}
	/* The mode of the pool, if this call makes it: who may join it, as 0640. */
	pool_options &with_mode(std::uint32_t bits) noexcept
	{
		mode = bits;
		return *this;
	}
	pool_options &with_mode(std::uint32_t bits, std::uint32_t group) noexcept
	{
		flags |= XMEM_OPEN_GROUP;
		gid = group;
		return with_mode(bits);
	}
	/* Keep the last publications for later subscribers with history. */
	pool_options &with_keep(std::uint32_t publications) noexcept
	{
		keep = publications;
		return *this;
	}
};

struct subscribe_options : xmem_subscribe_options {
	subscribe_options(std::uint32_t wanted = 0) noexcept
		: xmem_subscribe_options(detail::sized<xmem_subscribe_options>())
	{
		flags = wanted;
	}
	subscribe_options(const xmem_subscribe_options &options) noexcept
		: xmem_subscribe_options(options)
	{
	}
	/* Follow this client alone. */
	subscribe_options &only(std::uint32_t client) noexcept
	{
		flags |= XMEM_SUBSCRIBE_PUBLISHER;
		publisher = client;
		return *this;
	}
	/* 0 and forever wait without end; XMEM_SUBSCRIBE_NOWAIT does not wait. */
	template <class Rep, class Period>
	subscribe_options &wait_for_publisher(std::chrono::duration<Rep, Period> time) noexcept
	{
		timeout_ns = to_nanoseconds(time);
		return *this;
	}
	/* Also receive up to this many of each publisher's last publications before now. */
	subscribe_options &with_history(std::uint32_t publications) noexcept
	{
		history = publications;
		return *this;
	}
	/* Receive only this many of each publisher's latest publications. */
	subscribe_options &with_depth(std::uint32_t publications) noexcept
	{
		depth = publications;
		return *this;
	}
	/* Follow only publishers with this label; a '*' at its end stands for any rest. */
	subscribe_options &with_label(const char *wanted) noexcept
	{
		label = wanted;
		return *this;
	}
};

/* @kind: XMEM_MEMORY_*. */
struct preallocate_options : xmem_preallocate_options {
	preallocate_options(std::uint32_t kind = 0) noexcept
		: xmem_preallocate_options(detail::sized<xmem_preallocate_options>())
	{
		flags = kind;
	}
	preallocate_options(const xmem_preallocate_options &options) noexcept
		: xmem_preallocate_options(options)
	{
	}
	preallocate_options &on_gpu(int device) noexcept
	{
		flags |= XMEM_MEMORY_CUDA;
		device_id = device;
		return *this;
	}
};

namespace detail {

/* nullptr is the default stream here, but no stream in C. */
inline CUstream_st *on(CUstream_st *stream) noexcept
{
	const std::uintptr_t legacy = 1;	/* CU_STREAM_LEGACY */

	return stream ? stream : reinterpret_cast<CUstream_st *>(legacy);
}

} // namespace detail

struct publish_options : xmem_publish_options {
	publish_options(std::uint32_t wanted = 0) noexcept
		: xmem_publish_options(detail::sized<xmem_publish_options>())
	{
		flags = wanted;
	}
	publish_options(const xmem_publish_options &options) noexcept
		: xmem_publish_options(options)
	{
	}
	publish_options &at(clock::time_point time) noexcept
	{
		const std::chrono::nanoseconds since = time.time_since_epoch();

		timestamp_ns = static_cast<std::uint64_t>(since.count());
		return *this;
	}
	/* The contents are these bytes of the buffer, from bytes_mut on. */
	publish_options &part(std::size_t first, std::size_t bytes) noexcept
	{
		offset = first;
		length = bytes;
		return *this;
	}
	/* Publish to this subscriber alone. */
	publish_options &to(std::uint32_t subscriber) noexcept
	{
		flags |= XMEM_PUBLISH_CLIENT;
		client = subscriber;
		return *this;
	}
	/* How long a held buffer waits for room in the ring; without this it does not wait. */
	template <class Rep, class Period>
	publish_options &within(std::chrono::duration<Rep, Period> time) noexcept
	{
		timeout_ns = to_nanoseconds(time);
		return *this;
	}
	/* The stream that has yet to write the contents; nullptr: the default stream. */
	publish_options &on(CUstream_st *writes) noexcept
	{
		stream = detail::on(writes);
		return *this;
	}
};

} // namespace xmem

#endif
