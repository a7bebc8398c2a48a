/* SPDX-License-Identifier: MIT */
/*
 * reconnecting POOL: a subscriber that survives the ends of publishers and hosts. Its subscription
 * lasts: when a publisher ends, it goes on with the next one. If the host itself ends, because the
 * daemon is killed, the pool is gone as well: this program opens the pool again, which starts a
 * daemon if there is none. It gives up, and says why, only if that fails.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xmem.h>

static void say_error(void)
{
	struct xmem_error why = XMEM_INIT(why);

	xmem_peek_last_error(&why);
	fprintf(stderr, "reconnecting: %s\n", why.message);
}

/* Receive from all publishers, as long as the host is there. Returns the error. */
static int show_all(struct xmem_pool *pool)
{
	struct xmem_subscription *subscription = xmem_subscribe(pool, XMEM_OPTIONS(
		xmem_subscribe_options, .flags = XMEM_SUBSCRIBE_LASTS, .history = 1));
	struct xmem_buffer_info info = XMEM_INIT(info);
	struct xmem_buffer *buffer;
	int err;

	while (subscription && (buffer = xmem_receive(subscription, XMEM_FOREVER))) {
		if (!xmem_buffer_stat(buffer, &info))
			printf("%" PRIu64 ": %" PRIu64 " bytes\n", info.sequence, info.bytes);
		xmem_release(buffer);
	}
	err = xmem_peek_last_error(NULL);
	say_error();
	xmem_unsubscribe(subscription);
	return err;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "camera";
	struct xmem_pool *pool;

	while ((pool = xmem_pool_open(name, NULL))) {
		printf("pool %s is open on the %s host\n", name, xmem_pool_backend(pool));
		if (show_all(pool) != -ENOTCONN)
			return 1;
		xmem_pool_close(pool);	/* and once more from the beginning */
	}
	say_error();
	return 1;
}
