// SPDX-License-Identifier: MIT
/* Types that need no pool: spans, times and options. Also asking the host. */
#include <algorithm>
#include <array>
#include <limits>
#include <list>
#include <numeric>
#include <string_view>
#include <vector>

#include "test.hpp"

using namespace std::chrono_literals;

TEST(times_become_nanoseconds)
{
	using seconds = std::chrono::duration<double>;
	const double nan = std::numeric_limits<double>::quiet_NaN();
	const double infinity = std::numeric_limits<double>::infinity();

	CHECK(xmem::to_nanoseconds(xmem::forever) == XMEM_FOREVER);
	CHECK(xmem::to_nanoseconds(xmem::no_wait) == 0);
	CHECK(xmem::to_nanoseconds(1ms) == 1000000);
	CHECK(xmem::to_nanoseconds(24h) == 86400 * 1000000000LL);
	CHECK(xmem::to_nanoseconds(std::chrono::hours::max()) == XMEM_FOREVER);
	CHECK(xmem::to_nanoseconds(std::chrono::seconds::max()) == XMEM_FOREVER);
	CHECK(xmem::to_nanoseconds(seconds(infinity)) == XMEM_FOREVER);
	CHECK(xmem::to_nanoseconds(seconds(1e30)) == XMEM_FOREVER);
	CHECK(xmem::to_nanoseconds(seconds(0.25)) == 250000000);
	/* A short wait stays a wait, and never becomes none. */
	CHECK(xmem::to_nanoseconds(seconds(1e-12)) == 1);
	CHECK(xmem::to_nanoseconds(std::chrono::duration<int, std::pico>(1)) == 1);
	/* The library refuses these, because they are negative. */
	CHECK(xmem::to_nanoseconds(seconds(nan)) < 0);
	CHECK(xmem::to_nanoseconds(seconds(-1e-12)) < 0);
	CHECK(xmem::to_nanoseconds(seconds(-infinity)) < 0);
	CHECK(xmem::to_nanoseconds(std::chrono::hours::min()) < 0);
	CHECK(xmem::to_nanoseconds(-5ns) == -5);
}

TEST(spans_are_as_the_standards_are)
{
	std::vector<int> numbers(10);
	const xmem::span<int> all(numbers.data(), numbers.size());
	const xmem::span<const int> read = all;
	constexpr xmem::span<int> none;

	std::iota(all.begin(), all.end(), 0);
	CHECK(read.size() == 10 && read.size_bytes() == 40 && !read.empty());
	CHECK(none.empty() && !none.data() && none.begin() == none.end());
	CHECK(read.front() == 0 && read.back() == 9 && &read[4] == &numbers[4]);
	CHECK(std::accumulate(read.begin(), read.end(), 0) == 45);
	CHECK(read.subspan(2, 3).size() == 3 && read.subspan(2, 3)[0] == 2);
	static_assert(!std::is_convertible_v<xmem::span<const int>, xmem::span<int>>, "const");
	static_assert(!std::is_convertible_v<xmem::span<int>, xmem::span<long>>, "type");
}

using xmem::span;
template <class To, class From> constexpr bool becomes = std::is_convertible_v<From, To>;

/* A program's own containers are accepted. Conversions that lose const or the type are not. */
static_assert(becomes<span<int>, std::vector<int> &> && becomes<span<int>, int (&)[3]> &&
	      becomes<span<int>, std::array<int, 3> &> && becomes<span<char>, std::string &>,
	      "to write");
static_assert(becomes<span<const int>, std::vector<int> &> &&
	      becomes<span<const int>, const std::vector<int> &> &&
	      becomes<span<const int>, std::vector<int>> &&
	      becomes<span<const int>, const int (&)[3]> &&
	      becomes<span<const int>, const std::array<int, 3> &> &&
	      becomes<span<const char>, std::string_view> && becomes<span<const int>, span<int>>,
	      "to read");
static_assert(!becomes<span<int>, const std::vector<int> &> &&
	      !becomes<span<int>, std::vector<int>> && !becomes<span<int>, const int (&)[3]> &&
	      !becomes<span<char>, std::string_view> && !becomes<span<long>, std::vector<int> &> &&
	      !becomes<span<int>, std::list<int> &> && !becomes<span<bool>, std::vector<bool> &> &&
	      !becomes<span<int>, int *> && !becomes<span<int>, int>,
	      "const, type, and no elements in a row");
static_assert(std::is_trivially_copyable_v<span<int>> && sizeof(span<int>) == 2 * sizeof(int *));

TEST(spans_are_of_what_is_there)
{
	std::vector<int> numbers{1, 2, 3};
	std::array<int, 2> pair{4, 5};
	int array[] = {6, 7, 8, 9};
	span<int> write = numbers;
	span<int> same = write;

	write[0] = 10;
	CHECK(numbers[0] == 10 && same.data() == numbers.data() && same.size() == 3);
	write = pair;
	CHECK(write.data() == pair.data() && write.size() == 2);
	write = array;
	CHECK(write.back() == 9 && write.size() == 4);
	CHECK(span<const int>(std::vector<int>()).empty());
}

#ifdef __cpp_lib_span
TEST(spans_become_the_standards)
{
	scene s;
	xmem::buffer buffer = s.writer.acquire(16);
	std::span<std::byte> write = buffer.bytes_mut();
	std::span<const std::byte> read = buffer.bytes();
	const xmem::span<std::byte> named = buffer.bytes_mut();
	std::span<const std::byte> again = named;

	std::vector<std::byte> more(3);
	std::span<std::byte> standard = more;
	std::span<std::byte, 3> fixed(more);

	CHECK(xmem::span<std::byte>(standard).data() == more.data());
	CHECK(xmem::span<const std::byte>(fixed).size() == 3);
	xmem::copy_bytes(buffer, 0, standard);
	xmem::copy_bytes(buffer, 1, std::span<const std::byte>(standard));
	static_assert(!std::is_convertible_v<std::span<const int>, xmem::span<int>>, "const");
	write[3] = std::byte{5};
	CHECK(write.size() == 16 && read.size() == 16 && again.data() == write.data());
	CHECK(read[3] == std::byte{5});
	static_assert(std::ranges::contiguous_range<xmem::span<int>>);
	static_assert(std::ranges::input_range<xmem::subscription &>);
}
#endif

TEST(options_know_their_size)
{
	const xmem::pool_options pool(XMEM_OPEN_WRITER);
	const xmem::subscribe_options subscribe;
	const xmem::publish_options publish(XMEM_PUBLISH_KEEP);
	xmem_pool_options plain{};

	CHECK(pool.size == sizeof(xmem_pool_options) && pool.flags == XMEM_OPEN_WRITER);
	CHECK(subscribe.size == sizeof(xmem_subscribe_options) && subscribe.flags == 0);
	CHECK(publish.size == sizeof(xmem_publish_options) && publish.flags == XMEM_PUBLISH_KEEP);
	CHECK(xmem::subscribe_options().only(3).publisher == 3);
	CHECK(xmem::subscribe_options().only(3).flags == XMEM_SUBSCRIBE_PUBLISHER);
	CHECK(xmem::subscribe_options().wait_for_publisher(1us).timeout_ns == 1000);
	CHECK(xmem::pool_options().wait_for_subscribers(2us).wait_bound_ns == 2000);
	const auto all = xmem::pool_options().with_room(64, 8, 16).with_demand(1 << 20)
				 .with_cache(4096, 3us).with_memory(XMEM_MEMORY_HUGE).with_keep(5);

	CHECK(all.slots == 64 && all.clients == 8 && all.ring_entries == 16);
	CHECK(all.demand_bytes == 1 << 20 && all.cache_bytes == 4096 && all.cache_ns == 3000);
	CHECK(all.memory == XMEM_MEMORY_HUGE && all.keep == 5);
	CHECK(xmem::pool_options().with_mode(0640).mode == 0640);
	const auto shared = xmem::pool_options(XMEM_OPEN_WRITER).with_mode(0660, 7);

	CHECK(shared.mode == 0660 && shared.gid == 7);
	CHECK(shared.flags == (XMEM_OPEN_WRITER | XMEM_OPEN_GROUP));
	/* A C struct is accepted too, with all its mistakes. */
	plain.size = sizeof(plain);
	plain.label = "cpp";
	xmem::pool joined(new_name(), plain);

	CHECK(!std::strcmp(joined.client_info(joined.client()).label, "cpp"));
	plain.size = 1;
	THROWS(EINVAL, xmem::pool(new_name(), plain));
}

TEST(the_host_and_its_pools)
{
	scene s;
	const xmem_host_info host = xmem::host_query();
	const std::vector<xmem_pool_entry> pools = xmem::pools();
	const auto ours = std::find_if(pools.begin(), pools.end(), [&](const auto &entry) {
		return s.name == entry.name;
	});

	CHECK(!std::strcmp(host.backend, s.writer.backend()));
	CHECK(ours != pools.end() && ours->clients == 2 && ours->bytes == 4 * bytes_each);
	CHECK(xmem::pool_next(0).number == pools[0].number);
	THROWS(ENOENT, xmem::pool_next(~0ULL));
	CHECK(xmem::limit_next(0).number == 0 && xmem::limit_next(0).used >= 1);
	CHECK(!std::strcmp(xmem::limit_next(0).what, "pools"));
	CHECK(s.reader.limit_next(64).scope == XMEM_LIMIT_OF_POOL);
	CHECK(s.reader.limit_next(64).used == 2);
	THROWS(ENOENT, s.reader.limit_next(~0U));
	CHECK(s.reader.stat().attached == 4);
	CHECK(s.reader.client_info(s.writer.client()).role == XMEM_CLIENT_WRITER);
	CHECK(s.reader.client_info(s.writer.client()).slots == 4);
	CHECK(s.reader.slot_info(0).owner == s.writer.client());
}
