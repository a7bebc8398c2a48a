/* SPDX-License-Identifier: MIT */
/*
 * The parts that each test of xmem/device.cuh uses: registration, checks, an arena, threads that
 * play the threads of a GPU, and gates at steps of the headers.
 */
#ifndef XMEM_TESTS_DEVICE_TEST_HPP
#define XMEM_TESTS_DEVICE_TEST_HPP

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <xmem/device.cuh>

using namespace xmem::device;

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

#define TEST(name_) \
	static void name_(); \
	static test test_##name_(#name_, name_); \
	static void name_()

#define FAIL(what_)	fail_at(__FILE__, __LINE__, what_)
#define CHECK(...) do { \
	if (!(__VA_ARGS__)) \
		fail_at(__FILE__, __LINE__, #__VA_ARGS__); \
} while (0)
#define SAME(left_, right_) same_at(__FILE__, __LINE__, #left_, left_, right_)

template <typename T> std::string shown(const T &value)
{
	return std::to_string(value);
}

inline std::string shown(const std::string &value)
{
	return '"' + value + '"';
}

template <typename A, typename B>
void same_at(const char *file, int line, const char *what, const A &left, const B &right)
{
	if (!(left == static_cast<A>(right)))
		fail_at(file, line, std::string(what) + " is " + shown(left) + ", not " +
				    shown(static_cast<A>(right)));
}

/* An arena in memory of its own. */
struct own_arena {
	explicit own_arena(u64 bytes);
	~own_arena();
	own_arena(const own_arena &) = delete;
	own_arena &operator=(const own_arena &) = delete;

	operator arena *() const { return made; }
	arena *operator->() const { return made; }

	void *memory;
	arena *made;
};

/* Nothing is left of what was allocated there. */
#define NOTHING_LEFT(arena_) SAME(arena_count(arena_).freed, arena_count(arena_).made)

/* Run it in so many threads. Each has its place among them, and all start at one moment. */
void on_threads(unsigned int threads, const std::function<void()> &run);

/* A place at which one thread stops until another one lets it go on. */
struct gate {
	int step;
	bool is_reached, is_open, has_ended;
	std::mutex lock;		/* guards the three of them */
	std::condition_variable changed;
};

/*
 * A thread that runs a function, and stops where it first comes to a step. The constructor returns
 * when the thread has stopped. go_on() lets it continue, and returns at its end.
 */
struct stopped_thread {
	stopped_thread(int step, u64 index, const std::function<void()> &run);
	~stopped_thread();
	void go_on();

	gate at;
	std::string said;
	std::thread running;
};

/* The rows of a test of many rows: a million, or XMEM_TEST_SCALE percent of that. */
u64 rows_of_a_test();

inline std::string text(string_view view)
{
	return view.p ? std::string(view.p, static_cast<std::size_t>(view.bytes)) : "(null)";
}

inline string_view view(const std::string &from)
{
	return view_of(from.data(), static_cast<i32>(from.size()));
}

#endif
