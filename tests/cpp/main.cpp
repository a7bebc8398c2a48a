// SPDX-License-Identifier: MIT
/*
 * Runs all tests of xmem.hpp, or those that its arguments name. The last line is "N passed, N
 * failed, N skipped"; the status is 1 if any failed.
 */
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include "gpu.hpp"

static test *tests;
unsigned long checks;

test::test(const char *name_, void (*run_)()) : name(name_), run(run_), next(tests)
{
	tests = this;
}

void fail_at(const char *file, int line, const std::string &what)
{
	throw failure(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

std::string new_name()
{
	static unsigned int count;

	return "cpp." + std::to_string(getpid()) + "." + std::to_string(count++);
}

unsigned char stamp_of(const xmem::buffer &buffer)
{
	const xmem::span<const unsigned char> bytes = buffer.as<unsigned char>();

	CHECK(!bytes.empty());
	for (unsigned char byte : bytes)
		CHECK(byte == bytes[0]);
	return bytes[0];
}

bool is_quiet(const xmem::pool &pool, unsigned int clients)
{
	const xmem_pool_info info = pool.stat();

	return !info.holds && !info.limbo && !info.zombies && info.clients == clients;
}

enum outcome { PASSED, FAILED, SKIPPED, OUTCOMES };

/* A test passes if it ends, has checked something, and leaves no error of a call unread. */
static outcome run(const test &one)
{
	const unsigned long before = checks;

	try {
		one.run();
		if (checks > before)
			return PASSED;
		std::printf("FAIL %s: it checks nothing\n", one.name);
	} catch (const skipped &why) {
		std::printf("SKIP %s: %s\n", one.name, why.what());
		return SKIPPED;
	} catch (const std::exception &error) {
		std::printf("FAIL %s: %s\n", one.name, error.what());
	}
	return FAILED;
}

/* Not the daemon that the user's programs use, and not that of a second run. */
static char own_folder[] = "/tmp/xmem-cpp-XXXXXX";
static std::string own_path;
static pid_t own_path_of;

/* A daemon that a test has killed leaves its socket and its lock. */
static void remove_own_path()
{
	if (getpid() != own_path_of)
		return;		/* a child */
	unlink(own_path.c_str());
	unlink((own_path + ".lock").c_str());
	rmdir(own_folder);
}

static void use_own_daemon()
{
	if (getenv("XMEM_SOCKET"))
		return;
	if (!mkdtemp(own_folder)) {
		std::perror(own_folder);
		std::exit(1);
	}
	own_path = std::string(own_folder) + "/socket";
	own_path_of = getpid();
	setenv("XMEM_SOCKET", own_path.c_str(), 1);
	std::atexit(remove_own_path);
}

int main(int argc, char **argv)
{
	unsigned int count[OUTCOMES] = {};
	const test *one;

	use_own_daemon();
	use_fake_driver();
	std::setvbuf(stdout, nullptr, _IOLBF, 0);
	for (one = tests; one; one = one->next) {
		bool wanted = argc == 1;

		for (int i = 1; i < argc; i++)
			wanted |= !std::strcmp(argv[i], one->name);
		if (wanted)
			count[run(*one)]++;
	}
	std::printf("%u passed, %u failed, %u skipped\n", count[PASSED], count[FAILED],
		    count[SKIPPED]);
	return count[FAILED] || !(count[PASSED] + count[SKIPPED]);
}
