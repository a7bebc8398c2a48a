// SPDX-License-Identifier: MIT
/*
 * The table of all public functions: its contents, how a program gets it, and two extensions that
 * reach the library of this program through it. "make api" makes the table; tests/check-api.sh
 * compares it with the headers and the symbols.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include "harness.h"
#include "lib/api_list.h"
#include "tests/extensions/extension.h"

TEST(API_the_table_has_all_functions)
{
	const struct xmem_api *api = xmem_get_api(XMEM_API_VERSION);
	size_t members = 0;

	CHECK(api);
	SAME(api->abi_version, XMEM_API_VERSION);
	SAME(api->struct_size, sizeof(*api));
#define IS_IN_PLACE(name) do { \
	CHECK(api->name == xmem_##name); \
	CHECK(XMEM_API_HAS(api, name)); \
	SAME(offsetof(struct xmem_api, name), 8 + 8 * members++); \
} while (0);
	XL_API(IS_IN_PLACE)
	SAME(sizeof(*api), 8 + 8 * members);
	CHECK(xmem_get_api(XMEM_API_VERSION) == api);
}

TEST(API_the_table_of_another_version_is_refused)
{
	uint32_t other[] = { 0, XMEM_API_VERSION + 1, XMEM_API_VERSION - 1,
			     XMEM_API_VERSION + (1 << 16), ~0u };
	unsigned int i;

	for (i = 0; i < sizeof(other) / sizeof(*other); i++) {
		const char *why = "";

		xmem_clear_last_error();
		REFUSED(xmem_get_api(other[i]), ENOTSUP);
		why = last_message();
		CHECK(strstr(why, "compile it anew"));
	}
}

/* A caller can tell what a shorter table lacks. */
TEST(API_a_shorter_table_says_what_it_has)
{
	struct xmem_api shorter = *xmem_get_api(XMEM_API_VERSION);

	shorter.struct_size = offsetof(struct xmem_api, clone);
	CHECK(XMEM_API_HAS(&shorter, acquire));
	CHECK(!XMEM_API_HAS(&shorter, clone));
	shorter.struct_size += sizeof(shorter.clone) - 1;
	CHECK(!XMEM_API_HAS(&shorter, clone));
	shorter.struct_size++;
	CHECK(XMEM_API_HAS(&shorter, clone));
}

/* A symbol of an extension that lies beside this program. */
static const void *load(const char *file, const char *symbol)
{
	char path[PATH_MAX] = "";
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 64);
	void *loaded;

	CHECK(length > 0);
	strcpy(strrchr(path, '/') + 1, file);
	loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!loaded)
		FAIL("%s", dlerror());
	return dlsym(loaded, symbol);
}

TEST(API_two_extensions_share_one_library)
{
	const struct writer_extension *writer = load("extension-writer.so", WRITER_SYMBOL);
	const struct reader_extension *reader = load("extension-reader.so", READER_SYMBOL);
	const struct xmem_api *api = xmem_get_api(XMEM_API_VERSION);
	const char *name = new_name();
	struct xmem_pool *watcher;
	struct xmem_buffer *buffer;
	unsigned int i;

	CHECK(api && writer && reader);
	SAME(writer->start(api, name), 0);
	SAME(reader->start(api, name), 0);
	watcher = open_reader(name);
	for (i = 1; i < 10; i++) {
		SAME(writer->publish(i), 0);
		buffer = reader->receive();
		CHECK(buffer);
		SAME(reader->stamp(buffer), i);
		SAME(stat_of(watcher).holds, 1);
		/* A handle of one extension is good in the other, and in the program. */
		CHECK(xmem_token(buffer));
		SAME(writer->drop(buffer), 0);
		SAME(writer->drop(buffer), -EBADF);
	}
	SAME(stat_of(watcher).stale_handles, 9);
	REFUSED(reader->receive(), EAGAIN);
	reader->stop();
	writer->stop();
	check_quiet(watcher, 1);
	xmem_pool_close(watcher);
}
