// SPDX-License-Identifier: MIT
/* Memory on demand, giving it back, and limbo. */
#include "test.hpp"

namespace {

struct told {
	unsigned int times;
	std::uint32_t ended;
};

void note(xmem_pool *, const xmem_limbo *limbo, void *user)
{
	told &last = *static_cast<told *>(user);

	last.times++;
	last.ended = limbo->ended;
}

} // namespace

TEST(memory_comes_on_demand_and_is_given_back)
{
	const std::string name = new_name();
	const xmem::pool writer(name, XMEM_OPEN_WRITER), reader(name, XMEM_OPEN_READER);

	{
		const xmem::buffer buffer = writer.acquire(bytes_each, xmem::no_wait);

		CHECK(buffer.size() == bytes_each && reader.stat().attached > 0);
		CHECK(xmem::trim(writer) == 0);		/* it is used */
	}
	CHECK(xmem::trim(writer) >= bytes_each);
	CHECK(reader.stat().attached == 0);
	CODE(0, xmem::trim(writer, 0, code));
	CHECK(xmem::trim(reader) == 0);
	THROWS(EINVAL, xmem::trim(xmem::pool()));
}

TEST(what_nobody_uses_any_more_is_collected)
{
	scene s;

	s.publish(1);
	CHECK(xmem::collect(s.writer) > 0);
	CODE(0, xmem::collect(s.reader, code));
	CODE(EINVAL, xmem::collect(xmem::pool(), code));
	THROWS(EINVAL, xmem::collect(xmem::pool()));
}

TEST(a_limbo_hook_is_called)
{
	scene s;
	told last{};

	xmem::limbo_hook(s.reader, 0, 0, note, &last);
	{
		const xmem::buffer held = s.reader.get(s.publish(2));

		s.writer.reset();
		while (s.reader.stat().limbo == 0)
			;
		xmem::collect(s.reader);
		CHECK(last.times == 1 && last.ended >= 1);
	}
	CODE(0, xmem::limbo_hook(s.reader, 0, 0, nullptr, nullptr, code));
	CODE(EINVAL, xmem::limbo_hook(xmem::pool(), 0, 0, note, &last, code));
	THROWS(EINVAL, xmem::limbo_hook(xmem::pool(), 0, 0, note, &last));
}

/* Errors in the function are not the call's: a call that fails still throws. */
TEST(who_is_told_of_limbo_hides_no_error)
{
	scene s;
	std::vector<xmem::buffer> held;
	int times_told = 0;

	xmem::limbo_hook(s.writer, 0, 0, [](xmem_pool *, const xmem_limbo *, void *times) {
		++*static_cast<int *>(times);
		xmem_clear_last_error();
	}, &times_told);
	for (std::error_code code; !code; )
		if (auto buffer = s.writer.acquire(1, xmem::no_wait, code))
			held.push_back(s.reader.get(buffer.publish()));
	CHECK(times_told == 1);
	THROWS(EAGAIN, s.writer.acquire(1, xmem::no_wait));
}
