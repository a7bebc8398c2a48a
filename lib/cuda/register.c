// SPDX-License-Identifier: MIT
/* The register of all memory of GPUs in this process: register.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cuda/register.h"
#include "lib/host/futex.h"

static struct {
	struct xl_lock lock;	/* guards the list, and `users`, `mates` and `changing` */
	struct xl_memory *first;
	u32 changes;		/* how many memories have ceased to change; a futex; atomic */
} all;

void xl_register_lock(void)
{
	xl_lock(&all.lock);
}

void xl_register_unlock(void)
{
	xl_unlock(&all.lock);
}

void xl_register_add(struct xl_memory *memory)
{
	memory->users = 1;
	memory->next = all.first;
	all.first = memory;
}

void xl_register_remove(const struct xl_memory *memory)
{
	struct xl_memory **link = &all.first;

	while (*link != memory)
		link = &(*link)->next;
	*link = memory->next;
}

struct xl_memory *xl_register_first(void)
{
	return all.first;
}

/*
 * A name comes from another process, so the memory that it names must also be what the host says.
 */
static struct xl_memory *find(const struct xl_memory *like)
{
	struct xl_memory *memory;

	for (memory = all.first; memory; memory = memory->next)
		if (memory->kind == like->kind && memory->gpu == like->gpu &&
		    memory->bytes == like->bytes &&
		    !memcmp(memory->handle, like->handle, sizeof(memory->handle)))
			return memory;
	return NULL;
}

struct xl_memory *xl_register_find_or_add(struct xl_memory *memory)
{
	struct xl_memory *found;
	u32 seen;

	xl_register_lock();
	while ((found = find(memory)) && found->changing) {
		seen = xm_load(&all.changes);
		xl_register_unlock();
		XM_STEP(XM_STEP_WAIT);
		xl_futex_wait_private(&all.changes, seen);
		xl_register_lock();
	}
	if (found) {
		found->users++;
	} else {
		memory->changing = true;
		xl_register_add(memory);
	}
	xl_register_unlock();
	return found;
}

void xl_register_changed(struct xl_memory *memory, bool stays)
{
	xl_register_lock();
	memory->changing = false;
	if (!stays)
		xl_register_remove(memory);
	xm_store(&all.changes, all.changes + 1);
	xl_register_unlock();
	xl_futex_wake_private(&all.changes, INT_MAX);
}

struct xl_memory *xl_memory_new(struct xl_gpu *gpu, enum xl_memory_kind kind, u64 bytes)
{
	struct xl_memory *memory = calloc(1, sizeof(*memory));

	if (!memory) {
		xl_fail_fast(ENOMEM, "no memory to record memory of a GPU");
		return NULL;
	}
	memory->gpu = gpu;
	memory->kind = kind;
	memory->bytes = bytes;
	return memory;
}
