// SPDX-License-Identifier: MIT
/*
 * Idle private views: they belong to no handle, but are still mapped, for the next handle of their
 * slot (view.h). They must not cause a lack of anything. So their number and bytes have limits for
 * this process, and beyond these the oldest are unmapped. All of them are unmapped when a mapping
 * fails for lack of memory or of maps.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/payload/view.h"

#define IDLE_MOST	1024u		/* a process may have 65530 mappings in all */
#define IDLE_BYTES	(256ULL << 20)	/* include/xmem/copy.h has this number */

/* Guards `idle`, and the lists of views of all mappings. It is taken under any other lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct xl_view *oldest, *newest;
	u32 count;
	u64 bytes;
} idle;

/* ---- under the lock ---- */

static void put_in(struct xl_view *view)
{
	view->next = view->mapping->views;
	view->mapping->views = view;
	view->older = idle.newest;
	view->newer = NULL;
	*(idle.newest ? &idle.newest->newer : &idle.oldest) = view;
	idle.newest = view;
	idle.count++;
	idle.bytes += view->bytes;
}

/* Take one view out; @link is in the list of its mapping. */
static struct xl_view *take_at(struct xl_view **link)
{
	struct xl_view *view = *link;

	*link = view->next;
	*(view->older ? &view->older->newer : &idle.oldest) = view->newer;
	*(view->newer ? &view->newer->older : &idle.newest) = view->older;
	idle.count--;
	idle.bytes -= view->bytes;
	view->next = NULL;
	return view;
}

static struct xl_view *take_out(struct xl_view *view)
{
	struct xl_view **link = &view->mapping->views;

	while (*link != view)
		link = &(*link)->next;
	return take_at(link);
}

static struct xl_view **find(struct xl_mapping *mapping, u32 slot)
{
	struct xl_view **link = &mapping->views;

	while (*link && (*link)->slot != slot)
		link = &(*link)->next;
	return link;
}

static void push(struct xl_view **list, struct xl_view *view)
{
	view->next = *list;
	*list = view;
}

/* ---- without the lock ---- */

static void destroy_all(struct xl_view *list)
{
	struct xl_view *view;

	while ((view = list)) {
		list = view->next;
		xl_view_destroy(view);
	}
}

struct xl_view *xl_idle_take(struct xl_mapping *mapping, u32 slot)
{
	struct xl_view **link, *view;

	pthread_mutex_lock(&lock);
	link = find(mapping, slot);
	view = *link ? take_at(link) : NULL;
	pthread_mutex_unlock(&lock);
	return view;
}

bool xl_idle_keep(struct xl_view *view)
{
	struct xl_view *gone = NULL;
	bool kept;

	if (view->bytes > IDLE_BYTES)
		return false;
	pthread_mutex_lock(&lock);
	kept = !*find(view->mapping, view->slot);
	if (kept)
		put_in(view);
	while (idle.count > IDLE_MOST || idle.bytes > IDLE_BYTES)
		push(&gone, take_out(idle.oldest));
	pthread_mutex_unlock(&lock);
	destroy_all(gone);
	return kept;
}

void xl_views_unmap(struct xl_mapping *mapping)
{
	struct xl_view *gone = NULL;

	pthread_mutex_lock(&lock);
	while (mapping->views)
		push(&gone, take_at(&mapping->views));
	pthread_mutex_unlock(&lock);
	destroy_all(gone);
}

bool xl_views_drop_idle(const struct xmem_pool *pool)
{
	struct xl_view *view, *newer, *gone = NULL;
	bool any;

	pthread_mutex_lock(&lock);
	for (view = idle.oldest; view; view = newer) {
		newer = view->newer;
		if (!pool || view->pool == pool)
			push(&gone, take_out(view));
	}
	pthread_mutex_unlock(&lock);
	any = gone;
	destroy_all(gone);
	return any;
}

/* Another thread of the parent may have had the lock. */
static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(&idle, 0, sizeof(idle));
}

static struct xl_fork_hook hook = { .child = forked, .unnoticed = forked };

void xl_views_init(void)
{
	xl_fork_lock();
	xl_fork_add(&hook);
	xl_fork_unlock();
}

void xl_view_destroy(struct xl_view *view)
{
	if (view->mapping)
		munmap(view->base, view->bytes);
	else
		free(view->base);
	free(view);
}
