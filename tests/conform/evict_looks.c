// SPDX-License-Identifier: MIT
/*
 * A client reads the rows while it is evicted, and from some moment on it reads zeros. Whatever it
 * has read before, it never takes another slot's contents for its own (P1).
 */
#include "evicted.h"
#include "views.h"

#define BYTES	4096
#define BUFFERS	4

TEST(P1_who_is_evicted_gets_no_pointer_to_other_contents)
{
	const char *name = new_name();
	struct xmem_pool *owner = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *victim = open_writer(name, BUFFERS, BYTES);
	struct xmem_buffer *buffer[BUFFERS], *last = NULL;
	unsigned int i;

	steps_only();
	for (i = 0; i < BUFFERS; i++) {
		buffer[i] = xmem_acquire(victim, BYTES, 0);
		CHECK(buffer[i] && xmem_data_mut(buffer[i]));
		if (!last || xmem_data_mut(buffer[i]) > xmem_data_mut(last))
			last = buffer[i];
	}
	evict_at(XM_STEP_ROW_OFFSET, owner, last);
	CHECK(!xmem_data_mut(last));
	SAME(steps_seen(), 1);
	if (on_kernel())
		SAME(xmem_peek_last_error(NULL), -ENOTCONN);
	give_the_page_back();
	for (i = 0; i < BUFFERS; i++)
		xmem_release(buffer[i]);
	xmem_pool_close(victim);
	check_quiet(owner, 1);
	xmem_pool_close(owner);
}

/* It may copy contents that it could read, even if the slot has an idle view. */
static void look_in_private(bool idle)
{
	struct scene s = start(LARGE, 2, 0);
	struct xmem_buffer *kept[2], *b[2];

	b[0] = give(&s, 1, &kept[0]);
	b[1] = give(&s, 2, &kept[1]);
	if (idle) {
		view_of(b[1], 2);
		xmem_release(b[1]);
		SAME(private_mappings(), 1);
		b[1] = xmem_get(s.reader, xmem_token(kept[1]));
		CHECK(b[1]);
	}
	evict_at(XM_STEP_VIEW_FOUND, s.writer, b[1]);
	view_of(b[1], 2);
	SAME(steps_seen(), 1);
	give_the_page_back();
	xmem_release(b[0]);
	xmem_release(b[1]);
	xmem_release(kept[0]);
	xmem_release(kept[1]);
	end(&s);
}

TEST(P1_private_views_of_who_is_evicted)
{
	steps_only();
	look_in_private(false);
	look_in_private(true);
}
