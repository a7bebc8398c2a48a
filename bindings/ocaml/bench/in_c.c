// SPDX-License-Identifier: MIT
/* Hand-overs in C, for hand_over.ml: acquire, publish, receive, release. */
#include <caml/mlvalues.h>
#include <xmem.h>

/* Returns: how many of @count were handed over. */
value xmem_bench_in_c(value writer, value subscription, value bytes, value count)
{
	struct xmem_subscription *from = (void *)Nativeint_val(subscription);
	struct xmem_pool *pool = (void *)Nativeint_val(writer);
	size_t size = Long_val(bytes);
	long i, n = Long_val(count);
	struct xmem_buffer *buffer;

	for (i = 0; i < n; i++) {
		buffer = xmem_acquire(pool, size, 0);
		if (!buffer || xmem_publish(buffer, NULL, NULL))
			break;
		buffer = xmem_receive(from, 0);
		if (!buffer)
			break;
		xmem_release(buffer);
	}
	return Val_long(i);
}
