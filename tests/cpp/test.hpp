/* SPDX-License-Identifier: MIT */
/*
 * The parts that each test of xmem.hpp uses: registration, checks, and pools of its own. The
 * programs run on both hosts (XMEM_BACKEND), built as C++17 by one compiler and as C++20 by
 * another.
 */
#ifndef XMEM_TESTS_CPP_TEST_HPP
#define XMEM_TESTS_CPP_TEST_HPP

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>

#include <xmem.hpp>

struct test {
	test(const char *name, void (*run)());

	const char *name;
	void (*run)();
	test *next;
};

struct failure : std::runtime_error {
	using std::runtime_error::runtime_error;
};

/* A test throws this if the machine lacks what it needs. The message says why. */
struct skipped : std::runtime_error {
	using std::runtime_error::runtime_error;
};

[[noreturn]] void fail_at(const char *file, int line, const std::string &what);
extern unsigned long checks;

#define TEST(name_) \
	static void name_(); \
	static test test_##name_(#name_, name_); \
	static void name_()

#define FAIL(what_)	fail_at(__FILE__, __LINE__, what_)
#define CHECK(...) do { \
	checks++; \
	if (!(__VA_ARGS__)) \
		fail_at(__FILE__, __LINE__, #__VA_ARGS__); \
} while (0)

/* The call must throw xmem::error with that number, and what() must begin with the message. */
#define THROWS(number_, ...) do { \
	int thrown_ = 0; \
	checks++; \
	try { \
		(void)(__VA_ARGS__); \
	} catch (const xmem::error &error_) { \
		thrown_ = error_.code().value(); \
		if (!*error_.what() || std::string(error_.what()).find(xmem::last_message())) \
			fail_at(__FILE__, __LINE__, std::string("says ") + error_.what()); \
	} \
	if (thrown_ != (number_)) \
		fail_at(__FILE__, __LINE__, #__VA_ARGS__ " throws " + \
			std::to_string(thrown_) + ", not " #number_); \
} while (0)

/* The call, whose last argument is `code`, must set that number, 0 for none. */
#define CODE(number_, ...) do { \
	std::error_code code = std::make_error_code(std::errc::protocol_error); \
	(void)(__VA_ARGS__); \
	checks++; \
	if (code.value() != (number_) || \
	    (code && code.category() != std::generic_category())) \
		fail_at(__FILE__, __LINE__, #__VA_ARGS__ " sets " + code.message()); \
} while (0)

/* Does that expression, which is the result of a template, exist for these types? */
template <class Void, template <class...> class Expression, class... T>
struct has_expression : std::false_type {};
template <template <class...> class Expression, class... T>
struct has_expression<std::void_t<Expression<T...>>, Expression, T...> : std::true_type {};
template <template <class...> class Expression, class... T>
inline constexpr bool has = has_expression<void, Expression, T...>::value;

/* A name for a pool, of this test alone. */
std::string new_name();

constexpr std::size_t bytes_each = 4096;

/* For expected events: a limit against hangs only. */
constexpr std::chrono::seconds patience{100};

/* Two clients of one pool. */
struct scene {
	explicit scene(unsigned int buffers = 4)
		: name(new_name()), writer(name, XMEM_OPEN_WRITER), reader(name, XMEM_OPEN_READER)
	{
		writer.preallocate(bytes_each, buffers);
	}

	/* Publish a buffer that is full of @stamp, and return its token. */
	std::uint64_t publish(unsigned char stamp, const xmem::publish_options &options = {})
	{
		xmem::buffer buffer = writer.acquire(bytes_each);

		std::memset(buffer.bytes_mut().data(), stamp, buffer.size());
		return buffer.publish(options);
	}

	std::string name;
	xmem::pool writer, reader;
};

/* The byte that all its contents have. */
unsigned char stamp_of(const xmem::buffer &buffer);

/* No client holds anything in that pool, and it has this many clients. */
bool is_quiet(const xmem::pool &pool, unsigned int clients);

#endif
