// SPDX-License-Identifier: MIT
/*
 * The loops that the cases time and that strace watches. They only call the
 * library, in the order in which a program would.
 */
#include "bench.h"

#include <string.h>

void loop_get(struct end *end, uint64_t token, unsigned int rounds)
{
	while (rounds--) {
		struct xmem_buffer *buffer = xmem_get(end->pool, token);

		if (__builtin_expect(!buffer, 0))
			die("xmem_get");
		xmem_release(buffer);
	}
}

void loop_cycle(struct end *end, unsigned int rounds)
{
	while (rounds--) {
		struct xmem_buffer *buffer = xmem_acquire(end->pool, end->bytes, 0);

		if (__builtin_expect(!buffer, 0))
			die("xmem_acquire");
		if (__builtin_expect(xmem_publish(buffer, NULL, NULL), 0))
			die("xmem_publish");
		buffer = xmem_receive(end->from, 0);
		if (__builtin_expect(!buffer, 0))
			die("xmem_receive");
		xmem_release(buffer);
	}
}

void loop_claims(struct end *end, unsigned int rounds)
{
	while (rounds--) {
		struct xmem_buffer *buffer = xmem_acquire(end->pool, end->bytes, 0);
		uint64_t token;

		if (__builtin_expect(!buffer, 0))
			die("xmem_acquire");
		if (__builtin_expect(xmem_set_ref_count(buffer, 1, 0), 0))
			die("xmem_set_ref_count");
		token = xmem_token(buffer);
		if (__builtin_expect(xmem_forget(buffer), 0))
			die("xmem_forget");
		buffer = xmem_get(end->pool, token);
		if (__builtin_expect(!buffer, 0))
			die("xmem_get");
		xmem_release(buffer);
	}
}

void loop_ping_pong(struct end *end, int side, uint64_t rounds)
{
	if (!side)
		end_send(end);
	while (rounds--) {
		xmem_release(end_receive(end));
		if (side || rounds)
			end_send(end);
	}
}

/* ---- for strace ---- */

const char *const loop_names[] = { "get", "cycle", "ping-pong", "claims", NULL };

/*
 * Setting claims aside is one request. With the daemon it is three system calls (send, look,
 * receive), and taking the claims needs none; with the module it is one, and one more to take them.
 */
unsigned int loop_calls(const char *name)
{
	return strcmp(name, "claims") ? 0 : 3;
}

void loop_named(struct bench *bench, int side, const char *name, unsigned int rounds)
{
	struct end end;

	if (!strcmp(name, "ping-pong")) {
		end_pair(bench, side, &end, 32, 4096);
		loop_ping_pong(&end, side, rounds);
		meet(bench, side);	/* neither side leaves while the other polls */
	} else if (!side) {
		uint64_t token;

		end_open(&end, bench, 32, 4096);
		end_follow(&end, xmem_pool_client(end.pool));
		if (xmem_publish(xmem_acquire(end.pool, end.bytes, 0), NULL, &token))
			die("xmem_publish");
		if (!strcmp(name, "get"))
			loop_get(&end, token, rounds);
		xmem_release(xmem_receive(end.from, 0));
		if (!strcmp(name, "cycle"))
			loop_cycle(&end, rounds);
		if (!strcmp(name, "claims"))
			loop_claims(&end, rounds);
	}
	end_close(&end);
}
