// SPDX-License-Identifier: MIT
/*
 * The exports of a process from a backing, and the processes that have them open. Both tables are
 * in the backing's control area, which all of these processes see. No process waits for another,
 * and a killed process does not count any more, because no process has its start time (rule 24).
 *
 * Opening records itself first and then checks whether the export still exists. Freeing ends the
 * export first and then counts the recorded processes. So one of the two sees the other.
 */
#include <stdlib.h>

#include "memory.h"

int fk_export_locked(struct fk_control *control, struct fk_span *span, struct fk_alloc *alloc)
{
	if (alloc->export >= 0)
		return alloc->export;
	for (int i = 0; i < FK_MAX_EXPORTS; i++) {
		struct fk_export *export = &control->exports[i];

		if (export->generation)
			continue;
		export->offset = alloc->base - span->base;
		export->bytes = alloc->bytes;
		export->generation = alloc->generation;
		alloc->export = i;
		return i;
	}
	return -1;
}

static bool opener_lives(struct fk_opener *opener)
{
	struct fk_process process = { .pid = opener->pid, .start_time = opener->start_time };

	return process.pid && fk_process_lives(&process);
}

unsigned int fk_export_end(struct fk_control *control, unsigned int index)
{
	uint64_t generation = control->exports[index].generation;
	unsigned int count = 0;

	control->exports[index].generation = 0;
	for (int i = 0; i < FK_MAX_OPENERS; i++) {
		struct fk_opener *opener = &control->openers[i];

		if (opener->pid && opener->opens > opener->closes && opener->index == index &&
		    opener->generation == generation && opener_lives(opener))
			count++;
	}
	return count;
}

static struct fk_opener *claim(struct fk_control *control)
{
	for (int i = 0; i < FK_MAX_OPENERS; i++) {
		struct fk_opener *opener = &control->openers[i];
		int pid = opener->pid;

		if (pid && opener_lives(opener))
			continue;
		if (!atomic_compare_exchange_strong(&opener->pid, &pid, fk_self()->pid))
			continue;
		opener->opens = 0;
		opener->closes = 0;
		opener->start_time = fk_self()->start_time;
		return opener;
	}
	return NULL;
}

static struct fk_opened *opened_find(struct fk_span *span, unsigned int index,
				     uint64_t generation)
{
	for (unsigned int i = 0; i < span->opened_count; i++)
		if (span->opened[i].index == index && span->opened[i].generation == generation)
			return &span->opened[i];
	return NULL;
}

static struct fk_opened *opened_make(struct fk_span *span, struct fk_control *control,
				     unsigned int index, uint64_t generation, size_t offset)
{
	struct fk_opened *all = realloc(span->opened, (span->opened_count + 1) * sizeof(*all));
	struct fk_opener *opener;

	if (!all)
		return NULL;
	span->opened = all;
	opener = claim(control);
	if (!opener)
		return NULL;
	opener->index = index;
	opener->generation = generation;
	all[span->opened_count] = (struct fk_opened) {
		.index = index, .generation = generation, .offset = offset,
		.bytes = control->exports[index].bytes, .opener = opener,
	};
	return &all[span->opened_count++];
}

static void opened_forget(struct fk_span *span, struct fk_opened *opened)
{
	opened->opener->opens = 0;
	opened->opener->pid = 0;
	*opened = span->opened[--span->opened_count];
}

CUresult fk_opened_add_locked(struct fk_span *span, struct fk_control *control,
			      unsigned int index, uint64_t generation, size_t offset)
{
	struct fk_opened *opened = opened_find(span, index, generation);

	if (!opened)
		opened = opened_make(span, control, index, generation, offset);
	if (!opened)
		return FK_OUT_OF_MEMORY;
	opened->opens++;
	opened->opener->opens++;
	if (control->exports[index].generation == generation)
		return FK_OK;
	opened->opener->opens--;
	if (!--opened->opens)
		opened_forget(span, opened);
	return FK_INVALID_HANDLE;
}

bool fk_opened_remove_locked(struct fk_span *span, size_t offset)
{
	unsigned int opens = 0, closes = 0, i;	/* closes: of the one that was opened first */
	unsigned int now;

	for (i = 0; i < span->opened_count; i++) {
		if (span->opened[i].offset != offset)
			continue;
		opens += span->opened[i].opens;
		now = ++span->opened[i].opener->closes;
		closes = now > closes ? now : closes;
	}
	if (!opens)
		return false;
	/* All are closed, so there is no doubt any more. */
	for (i = span->opened_count; i-- && closes == opens;)
		if (span->opened[i].offset == offset)
			opened_forget(span, &span->opened[i]);
	return true;
}

bool fk_opened_free_locked(struct fk_span *span, size_t offset)
{
	struct fk_opened *opened;

	for (opened = span->opened; opened != span->opened + span->opened_count; opened++) {
		if (opened->offset != offset || opened->frees == opened->opens)
			continue;
		opened->frees++;
		return true;
	}
	return false;
}

unsigned int fk_opened_count_locked(const struct fk_span *span)
{
	return span->opened_count;
}
