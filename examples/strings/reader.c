/* SPDX-License-Identifier: MIT */
/*
 * reader POOL: holds the column that the writer publishes, waits until the writer has ended, and
 * prints the rows. The column is complete although nobody else has it any more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <xmem.h>

static void fail(void)
{
	struct xmem_error why = XMEM_INIT(why);

	xmem_get_last_error(&why);
	fprintf(stderr, "reader: %s\n", why.message);
	exit(1);
}

/* The newest publication of a writer that has ended; NULL: it has ended without any. */
static struct xmem_buffer *receive_last(struct xmem_subscription *columns)
{
	struct xmem_buffer *last = NULL, *next;

	while ((next = xmem_receive(columns, XMEM_FOREVER))) {
		fprintf(stderr, "reader: holding a column\n");
		xmem_release(last);
		last = next;
	}
	if (xmem_peek_last_error(NULL) != -EPIPE)
		fail();
	return last;
}

/* Each row is read with checks, because any program can write such a description. */
static void show(struct xmem_buffer *column)
{
	struct xmem_strings strings = XMEM_INIT(strings);

	if (xmem_strings_view(column, 0, &strings))
		fail();
	for (uint64_t row = 0; row < strings.rows; row++) {
		const char *chars;
		int64_t bytes = xmem_strings_get(&strings, row, &chars);

		if (bytes < 0)
			fail();
		if (chars)
			fwrite(chars, 1, (size_t)bytes, stdout);
		puts(chars ? "" : "null");
	}
}

int main(int argc, char **argv)
{
	struct xmem_subscribe_options options = { .size = sizeof(options), .history = 1 };
	struct xmem_pool *pool = xmem_pool_open(argc > 1 ? argv[1] : "strings", NULL);
	struct xmem_subscription *columns = pool ? xmem_subscribe(pool, &options) : NULL;
	struct xmem_buffer *column;

	if (!columns)
		fail();
	column = receive_last(columns);
	if (column)
		show(column);
	xmem_release(column);
	xmem_unsubscribe(columns);
	xmem_pool_close(pool);
	return column ? 0 : 1;
}
