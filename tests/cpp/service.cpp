// SPDX-License-Identifier: MIT
/* Services: requests, responses, refusals, and objects that end. */
#include <cstring>

#include "test.hpp"

namespace {

xmem::buffer text(xmem_pool *pool, const char *words)
{
	xmem::buffer buffer(xmem_acquire(pool, 64, 0));

	CHECK(buffer);
	std::strcpy(static_cast<char *>(xmem_data_mut(buffer.raw())), words);
	return buffer;
}

bool says(const xmem::buffer &buffer, const char *words)
{
	return !std::strcmp(static_cast<const char *>(xmem_data(buffer.raw())), words);
}

} // namespace

TEST(a_server_responds_to_a_caller)
{
	const std::string name = new_name();
	const xmem::server server = xmem::serve(name.c_str(), xmem::no_wait);
	const xmem::caller caller = xmem::open_caller(name.c_str(), xmem::no_wait);

	CODE(EAGAIN, xmem::serve(name.c_str(), xmem::no_wait, code));
	THROWS(EAGAIN, xmem::serve(name.c_str(), xmem::no_wait));
	THROWS(EAGAIN, server.receive(xmem::no_wait));	/* it follows the caller now */

	const std::uint64_t call = caller.call(text(caller.pool(), "one"), xmem::no_wait);
	xmem::request request = server.receive(xmem::forever);

	CHECK(says(request.contents(), "one"));
	CODE(0, request.is_wanted(code));
	request.respond(text(server.pool(), "uno"), true);
	request.respond(text(server.pool(), "un"));
	CHECK(!request);
	xmem_response told{};
	told.size = sizeof(told);
	CHECK(says(caller.receive(call, xmem::forever, &told), "uno") && told.more);
	CHECK(says(caller.receive(0, xmem::forever), "un"));
	THROWS(ENOENT, caller.receive(call, xmem::no_wait));
}

TEST(requests_are_refused_cancelled_and_dropped)
{
	const std::string name = new_name();
	const xmem::server server = xmem::serve(name.c_str(), xmem::no_wait);
	const xmem::caller caller = xmem::open_caller(name.c_str(), xmem::no_wait);

	CODE(EAGAIN, server.receive(xmem::no_wait, code));
	const std::uint64_t refused = caller.call(text(caller.pool(), "1"), xmem::no_wait);
	const std::uint64_t dropped = caller.call(text(caller.pool(), "2"), xmem::no_wait);
	const std::uint64_t cancelled = caller.call(text(caller.pool(), "3"), xmem::no_wait);

	server.receive(xmem::forever).refuse(EDOM);
	{
		const xmem::request none = server.receive(xmem::forever);
	}
	const xmem::request last = server.receive(xmem::forever);
	caller.cancel(cancelled);
	CODE(ECANCELED, last.is_wanted(code));
	THROWS(ENOENT, caller.cancel(cancelled));
	THROWS(EDOM, caller.receive(refused, xmem::forever));
	CODE(ECANCELED, caller.receive(dropped, xmem::forever, code));
}

TEST(empty_objects_of_services_fail)
{
	xmem::request request;
	xmem::buffer none;

	CHECK(!xmem::server().pool() && !xmem::caller().pool());
	CODE(EINVAL, xmem::server().receive(xmem::no_wait, code));
	CODE(EINVAL, xmem::caller().call(none, xmem::no_wait, code));
	CODE(EINVAL, xmem::caller().receive(1, xmem::no_wait, code));
	CODE(EINVAL, request.respond(none, false, code));
	CODE(EINVAL, request.refuse(EIO, code));
	CODE(EINVAL, request.contents(code));
	THROWS(EINVAL, request.contents());
	THROWS(EINVAL, request.refuse(EIO));
	CODE(EINVAL, xmem::open_caller("", xmem::no_wait, code));
	THROWS(EINVAL, xmem::open_caller("", xmem::no_wait));
}
