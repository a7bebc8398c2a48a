// SPDX-License-Identifier: MIT
/*
 * Runs all tests of xmem/device.cuh on the CPU, or those that its arguments name. The last line is
 * "N passed, N failed, N skipped"; the status is 1 if any failed.
 */
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "test.hpp"

static test *tests;

test::test(const char *name_, void (*run_)()) : name(name_), run(run_), next(tests)
{
	tests = this;
}

void fail_at(const char *file, int line, const std::string &what)
{
	throw failure(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

own_arena::own_arena(u64 bytes) : memory(::aligned_alloc(64, (bytes + 63) / 64 * 64)), made()
{
	CHECK(memory);
	made = arena_init(memory, bytes);
	CHECK(made);
}

own_arena::~own_arena()
{
	std::free(memory);
}

void on_threads(unsigned int threads, const std::function<void()> &run)
{
	std::vector<std::thread> running;
	std::vector<std::string> said(threads);
	std::condition_variable all_there;
	std::mutex lock;
	unsigned int there = 0;

	for (unsigned int i = 0; i < threads; i++)
		running.emplace_back([&, i] {
			std::unique_lock<std::mutex> locked(lock);

			if (++there == threads)
				all_there.notify_all();
			all_there.wait(locked, [&] { return there == threads; });
			locked.unlock();
			set_thread(i, threads);
			try {
				run();
			} catch (const failure &why) {
				said[i] = why.what();
			}
		});
	for (std::thread &one : running)
		one.join();
	for (const std::string &why : said)
		if (!why.empty())
			throw failure(why);
}

/* ---- Steps ---- */

static thread_local gate *own_gate;

void xmem_device_step(int step)
{
	gate *at = own_gate;

	if (!at || at->step != step)
		return;
	own_gate = nullptr;		/* the first time only */

	std::unique_lock<std::mutex> locked(at->lock);

	at->is_reached = true;
	at->changed.notify_all();
	at->changed.wait(locked, [&] { return at->is_open; });
}

stopped_thread::stopped_thread(int step, u64 index, const std::function<void()> &run)
{
	at.step = step;
	at.is_reached = at.is_open = at.has_ended = false;
	running = std::thread([this, index, run] {
		set_thread(index, index + 1);
		own_gate = &at;
		try {
			run();
		} catch (const failure &why) {
			said = why.what();
		}

		std::unique_lock<std::mutex> locked(at.lock);

		at.has_ended = true;
		at.changed.notify_all();
	});

	std::unique_lock<std::mutex> locked(at.lock);

	at.changed.wait(locked, [&] { return at.is_reached || at.has_ended; });
	if (at.is_reached)
		return;
	locked.unlock();
	running.join();
	FAIL("the thread did not come to the step; " + said);
}

void stopped_thread::go_on()
{
	if (!running.joinable())
		return;
	{
		std::unique_lock<std::mutex> locked(at.lock);

		at.is_open = true;
		at.changed.notify_all();
	}
	running.join();
}

/* A test that has failed lets the thread end, too. */
stopped_thread::~stopped_thread()
{
	go_on();
}

/* ---- Reports of sanitizers, and crashes: the test that runs has failed ---- */

#define FROM_OUTSIDE extern "C" __attribute__((visibility("default")))

static const char *running_test = "";
static std::atomic<unsigned int> reports;

static void crashed(int number)
{
	char said[200];
	int bytes = std::snprintf(said, sizeof(said), "FAIL %s: signal %d\n", running_test, number);

	if (write(1, said, static_cast<std::size_t>(bytes)) != bytes)
		_exit(2);
	_exit(1);
}

/* A sanitizer keeps the handlers that it has. */
static void say_crashes()
{
	for (int number : { SIGSEGV, SIGBUS, SIGABRT, SIGFPE }) {
		void (*before)(int) = std::signal(number, crashed);

		if (before != SIG_DFL)
			std::signal(number, before);
	}
}

FROM_OUTSIDE void __tsan_on_report(void *)
{
	reports++;
}

FROM_OUTSIDE void __asan_on_error()
{
	std::printf("FAIL %s: AddressSanitizer reports\n", running_test);
	std::fflush(stdout);
}

u64 rows_of_a_test()
{
	const char *percent = std::getenv("XMEM_TEST_SCALE");

	return 10000 * (percent ? std::strtoull(percent, nullptr, 10) : 100);
}

static bool is_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!std::strcmp(argv[i], name))
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	unsigned int passed = 0, failed = 0, left_out = 0;

	say_crashes();
	for (test *one = tests; one; one = one->next) {
		if (!is_wanted(one->name, argc, argv))
			continue;
		running_test = one->name;
		try {
			one->run();
			if (reports.exchange(0))
				FAIL("ThreadSanitizer reports");
			passed++;
		} catch (const skipped &why) {
			std::printf("SKIP %s: %s\n", one->name, why.what());
			left_out++;
		} catch (const std::exception &why) {
			std::printf("FAIL %s: %s\n", one->name, why.what());
			failed++;
		}
	}
	if (argc > 1 && passed + failed + left_out < static_cast<unsigned int>(argc - 1)) {
		std::printf("FAIL names: a test of that name does not exist\n");
		failed++;
	}
	std::printf("%u passed, %u failed, %u skipped\n", passed, failed, left_out);
	return failed != 0;
}
