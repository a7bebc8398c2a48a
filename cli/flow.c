// SPDX-License-Identifier: MIT
/* Contents between pools, files and pipes; and the numbers of options. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/flow.h"

const void *flow_contents(struct xmem_buffer *buffer, struct flow_memory *memory)
{
	const void *data = xmem_data(buffer);
	size_t bytes = xmem_size(buffer);

	if (data || xmem_peek_last_error(NULL) != -EMEDIUMTYPE)
		return data;
	if (memory->room < bytes) {
		free(memory->data);
		memory->data = malloc(bytes);
		memory->room = bytes;
	}
	if (!memory->data)
		cli_no_memory();
	return xmem_copy_to_host(memory->data, buffer, 0, bytes, NULL) ? NULL : memory->data;
}

ssize_t flow_read(int fd, void *data, size_t bytes)
{
	size_t done = 0;
	ssize_t got = 1;

	while (done < bytes && got) {
		got = read(fd, (char *)data + done, bytes - done);
		if (got < 0 && errno != EINTR)
			return -errno;
		done += got > 0 ? (size_t)got : 0;
	}
	return (ssize_t)done;
}

int flow_write(int fd, const void *data, size_t bytes)
{
	const char *from = data;
	ssize_t put;

	while (bytes) {
		put = write(fd, from, bytes);
		if (put < 0 && errno != EINTR)
			return -errno;
		from += put > 0 ? put : 0;
		bytes -= put > 0 ? (size_t)put : 0;
	}
	return 0;
}

/* ---- pools ---- */

struct xmem_pool *flow_join(const char *name, const struct xmem_pool_options *options)
{
	struct xmem_pool_options join = {
		.size = sizeof(join), .flags = XMEM_OPEN_EXISTING | XMEM_OPEN_WRITER,
		.label = options->label, .wait_bound_ns = options->wait_bound_ns,
	};
	struct xmem_pool *pool;

	cli_ask();
	pool = xmem_pool_open(name, &join);
	if (!pool && xmem_peek_last_error(NULL) == -ENOENT)
		pool = xmem_pool_open(name, options);
	if (!pool)
		cli_fail_xmem();
	cli_answered();
	return pool;
}

int flow_await(struct xmem_pool *pool, uint64_t count)
{
	if (!count)
		return CLI_DONE;
	return xmem_wait_subscribers(pool, (uint32_t)count, XMEM_FOREVER) < 0 ? cli_fail_xmem() :
										 CLI_DONE;
}

uint64_t flow_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void flow_sleep(uint64_t until)
{
	const struct timespec time = { (time_t)(until / 1000000000), (long)(until % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
}

/* ---- options ---- */

bool flow_number(const char *option, const char *text, uint64_t most, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (text + strspn(text, "0123456789") == end && end != text && !*end && !errno && *ret &&
	    *ret <= most)
		return true;
	cli_usage("--%s is a number from 1 to %" PRIu64 ", not '%s'", option, most, text);
	return false;
}

bool flow_bytes(const char *option, const char *text, uint64_t *ret)
{
	static const char units[] = "KMGT";
	const char *unit = *text ? strchr(units, text[strlen(text) - 1]) : NULL;
	int shift = unit ? 10 * (int)(unit - units + 1) : 0;
	char *digits = strndup(text, strlen(text) - !!unit);
	bool good = digits && *digits && flow_number(option, digits, INT64_MAX >> shift, ret);

	if (!good && digits && !*digits)
		cli_usage("--%s is a number of bytes, such as 640 or 16M, not '%s'", option, text);
	free(digits);
	*ret = good ? *ret << shift : 0;
	return good;
}

bool flow_seconds(const char *option, const char *text, uint64_t *ret_ns)
{
	char *end;
	double seconds = strtod(text, &end);

	*ret_ns = *text && !*end && seconds >= 0 && seconds <= 1e9 ? (uint64_t)(seconds * 1e9) : 0;
	if (!*text || *end || !(seconds >= 0 && seconds <= 1e9))
		cli_usage("--%s is a number of seconds, not '%s'", option, text);
	return *text && !*end && seconds >= 0 && seconds <= 1e9;
}

bool flow_rate(const char *option, const char *text, double *ret)
{
	char *end;

	*ret = strtod(text, &end);
	if (*text && !*end && *ret >= 0.001 && *ret <= 1e6)
		return true;
	cli_usage("--%s is a number from 0.001 to 1000000, not '%s'", option, text);
	return false;
}

bool flow_dtype(const char *text, uint32_t *ret)
{
	static const struct {
		const char *name;
		uint32_t dtype;
	} types[] = {
		{ "int8", XMEM_DTYPE_INT8 }, { "int16", XMEM_DTYPE_INT16 },
		{ "int32", XMEM_DTYPE_INT32 }, { "int64", XMEM_DTYPE_INT64 },
		{ "uint8", XMEM_DTYPE_UINT8 }, { "uint16", XMEM_DTYPE_UINT16 },
		{ "uint32", XMEM_DTYPE_UINT32 }, { "uint64", XMEM_DTYPE_UINT64 },
		{ "float16", XMEM_DTYPE_FLOAT16 }, { "float32", XMEM_DTYPE_FLOAT32 },
		{ "float64", XMEM_DTYPE_FLOAT64 }, { "bfloat16", XMEM_DTYPE_BFLOAT16 },
		{ "complex64", XMEM_DTYPE_COMPLEX64 }, { "complex128", XMEM_DTYPE_COMPLEX128 },
		{ "bool", XMEM_DTYPE_BOOL },
	};
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (strcmp(types[i].name, text))
			continue;
		*ret = types[i].dtype;
		return true;
	}
	cli_usage("--dtype is a type such as uint8, float32 or bfloat16, not '%s'", text);
	return false;
}
