// SPDX-License-Identifier: MIT
/*
 * Ready words that a host function writes, for GPUs that cannot write them. A thread of the driver
 * runs the function when the stream reaches it.
 */
#include <stdlib.h>

#include "lib/gpu/order.h"

/* A value that a host function is to write. */
struct mark {
	struct mark *next;
	struct xmem_pool *pool;
	u64 *word;
	u64 value;
};

/* The lock guards the list. A thread of the driver takes it, so nothing else is done under it. */
static struct {
	struct xl_lock lock;
	struct mark *list;
} marks;

/* Take the mark out of the list. false: its pool and the word have gone. */
static bool take_out(struct mark *mark)
{
	struct mark **at = &marks.list;

	while (*at && *at != mark)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = mark->next;
	return true;
}

static void write_mark(void *user)
{
	struct mark *mark = user;

	xl_lock(&marks.lock);
	if (take_out(mark) && !xl_is_reached(xm_load(mark->word), mark->value))
		xm_store_release(mark->word, mark->value);
	xl_unlock(&marks.lock);
	free(mark);
}

int xl_mark_put(struct xmem_pool *pool, u32 slot, u64 value, struct xl_gpu *gpu, CUstream stream)
{
	struct mark *mark = malloc(sizeof(*mark));
	CUresult result;

	if (!mark)
		return xl_fail_fast(ENOMEM, "no memory for a host function");
	*mark = (struct mark){
		.pool = pool, .word = xm_ready_word(&pool->map, slot), .value = value,
	};
	xl_lock(&marks.lock);
	mark->next = marks.list;
	marks.list = mark;
	xl_unlock(&marks.lock);
	XL_ON_STREAM(gpu, stream, result,
		     xl_cuda()->launch_host_func(stream, write_mark, mark));
	if (!result)
		return 0;
	xl_lock(&marks.lock);
	take_out(mark);
	xl_unlock(&marks.lock);
	free(mark);
	return xl_cuda_fail(result, "the stream takes no host function");
}

/* Take the marks of a pool out of the list. A host function frees its mark when it runs. */
void xl_marks_drop(struct xmem_pool *pool)
{
	struct mark **at = &marks.list;

	xl_lock(&marks.lock);
	while (*at) {
		if ((*at)->pool == pool)
			*at = (*at)->next;
		else
			at = &(*at)->next;
	}
	xl_unlock(&marks.lock);
}
