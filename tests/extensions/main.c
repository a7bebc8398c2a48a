// SPDX-License-Identifier: MIT
/*
 * A program that is not linked with libxmem loads two extensions, each of which finds the
 * library by itself. They have one copy of it: one table, one set of handles, one last error.
 *   XMEM_BACKEND=daemon|kernel extensions LIBRARY
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extension.h"

#define CHECK(cond)	do { \
	if (!(cond)) { \
		printf("FAIL extensions: %s:%d: %s\n", __FILE__, __LINE__, #cond); \
		puts("0 passed, 1 failed, 0 skipped"); \
		exit(1); \
	} \
} while (0)

/* The symbol of an extension in this program's folder. */
static const void *load(const char *file, const char *symbol)
{
	char path[PATH_MAX] = "";
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 64);
	void *loaded;

	CHECK(length > 0);
	strcpy(strrchr(path, '/') + 1, file);
	loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!loaded)
		printf("%s\n", dlerror());
	CHECK(loaded);
	return dlsym(loaded, symbol);
}

static int count_one(struct dl_phdr_info *info, size_t size, void *ret_count)
{
	*(int *)ret_count += strstr(info->dlpi_name, "libxmem") != NULL;
	return 0;
}

int main(int argc, char **argv)
{
	const struct writer_extension *writer = load("extension-writer.so", WRITER_SYMBOL);
	const struct reader_extension *reader = load("extension-reader.so", READER_SYMBOL);
	const struct xmem_api *api;
	struct xmem_buffer *buffer;
	int copies = 0, i;

	CHECK(argc == 2 && writer && reader);
	dl_iterate_phdr(count_one, &copies);
	CHECK(copies == 0);
	api = writer->find(argv[1]);
	CHECK(api && reader->find(argv[1]) == api);
	dl_iterate_phdr(count_one, &copies);
	CHECK(copies == 1);

	CHECK(!writer->start(api, "extensions"));
	CHECK(!reader->start(api, "extensions"));
	for (i = 1; i < 10; i++) {
		CHECK(!writer->publish(i));
		buffer = reader->receive();
		CHECK(buffer && reader->stamp(buffer) == i);
		CHECK(writer->drop(buffer) == 0);
		CHECK(writer->drop(buffer) == -EBADF);	/* it knows of the first drop */
	}
	CHECK(!reader->receive() && api->get_last_error(NULL) == -EAGAIN);
	reader->stop();
	writer->stop();
	puts("1 passed, 0 failed, 0 skipped");
	return 0;
}
