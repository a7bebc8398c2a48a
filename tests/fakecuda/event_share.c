// SPDX-License-Identifier: MIT
/*
 * Interprocess events: the table of this process, those of others, and waiting on their entries;
 * see event_share.h.
 */
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "event_share.h"
#include "fake.h"

#define HANDLE_MAGIC 0x544e5645414b4146u

struct handle {
	uint64_t magic;
	struct fk_name name;		/* of the table */
	uint32_t index;
	uint32_t generation;
	uint32_t count;			/* entries of the table */
	uint32_t check;			/* index ^ generation ^ count */
};

_Static_assert(sizeof(struct handle) == 64, "the handle of an event has 64 bytes");

/* A table that this process has mapped: its own, or that of another process. Never unmapped. */
struct table {
	struct fk_shared_event *events;
	uint32_t count;
	struct fk_name name;
	struct table *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards these: */
static struct table *own, *others;
static uint32_t next_index;

static struct fk_shared_event *map(int fd, uint32_t count)
{
	void *at = mmap(NULL, count * sizeof(struct fk_shared_event), PROT_READ | PROT_WRITE,
			MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void make_own_locked(void)
{
	uint32_t count = fk_option_number("IPC_EVENTS", 22000);
	uint32_t room = count ? count : 1;	/* a mapping of 0 bytes cannot be made */
	int fd = fk_file_create("fakecuda-events", room * sizeof(struct fk_shared_event));

	own = calloc(1, sizeof(*own));
	if (!own || fd < 0 || !fk_name_file(fd, &own->name))
		abort();
	own->count = count;
	own->events = map(fd, room);
	if (!own->events)
		abort();
}

struct fk_shared_event *fk_share_new(uint32_t *ret_generation)
{
	struct fk_shared_event *event = NULL;
	uint32_t i;

	pthread_mutex_lock(&lock);
	if (!own)
		make_own_locked();
	for (i = 0; i < own->count && !event; i++) {
		event = &own->events[next_index++ % own->count];
		if (event->generation & 1)
			event = NULL;
	}
	if (event) {
		event->unrecorded = event->number;
		*ret_generation = ++event->generation;
	}
	pthread_mutex_unlock(&lock);
	return event;
}

void fk_share_destroy(struct fk_shared_event *event)
{
	event->generation++;
}

void fk_share_handle(const struct fk_shared_event *event, void *ret_handle)
{
	struct handle handle = {
		.magic = HANDLE_MAGIC,
		.name = own->name,
		.index = event - own->events,
		.generation = event->generation,
		.count = own->count,
	};

	handle.check = handle.index ^ handle.generation ^ handle.count;
	memcpy(ret_handle, &handle, sizeof(handle));
}

/* The table of another process, which must still have it. */
static struct table *open_table(const struct handle *handle)
{
	struct fk_shared_event *events;
	struct table *table;
	int fd = fk_name_open(&handle->name);

	if (fd < 0)
		return NULL;
	events = map(fd, handle->count);
	close(fd);
	if (!events)
		return NULL;
	table = calloc(1, sizeof(*table));
	if (!table)
		abort();
	*table = (struct table){ events, handle->count, handle->name, others };
	return others = table;
}

static struct table *find_table_locked(const struct handle *handle)
{
	struct table *table;

	for (table = others; table; table = table->next)
		if (!memcmp(&table->name, &handle->name, sizeof(table->name)))
			return table;
	return open_table(handle);
}

int fk_share_open(const void *bytes, struct fk_shared_event **ret_event,
		  uint32_t *ret_generation)
{
	struct handle handle;
	struct table *table;

	memcpy(&handle, bytes, sizeof(handle));
	if (handle.magic != HANDLE_MAGIC || handle.index >= handle.count ||
	    handle.check != (handle.index ^ handle.generation ^ handle.count))
		return fk_option_number("EVENT_GARBAGE", FK_INVALID_HANDLE);
	if (handle.name.owner.pid_namespace != fk_self()->pid_namespace)
		return FK_INVALID_CONTEXT;
	if (fk_process_is_self(&handle.name.owner))
		return fk_option_number("EVENT_SELF", FK_INVALID_CONTEXT);
	if (!fk_process_lives(&handle.name.owner))
		return FK_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	table = find_table_locked(&handle);
	pthread_mutex_unlock(&lock);
	if (!table || table->events[handle.index].generation != handle.generation)
		return FK_INVALID_HANDLE;
	*ret_event = &table->events[handle.index];
	*ret_generation = handle.generation;
	return 0;
}

static struct fk_shared_record *record_of(struct fk_shared_event *event, uint32_t number)
{
	return &event->records[number % FK_EVENT_RECORDS];
}

uint32_t fk_share_record(struct fk_shared_event *event)
{
	uint32_t number = atomic_fetch_add(&event->number, 1) + 1;
	struct fk_shared_record *record = record_of(event, number);

	record->pid = fk_self()->pid;
	record->start_time = fk_self()->start_time;
	return number;
}

static bool is_done(const struct fk_shared_record *record, uint32_t number)
{
	return (int32_t)(record->done - number) >= 0;
}

void fk_share_complete(struct fk_shared_event *event, uint32_t number)
{
	struct fk_shared_record *record = record_of(event, number);
	uint32_t done = record->done;

	while ((int32_t)(done - number) < 0 &&
	       !atomic_compare_exchange_weak(&record->done, &done, number))
		;
	syscall(SYS_futex, &record->done, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool fk_share_last(struct fk_shared_event *event, uint32_t *ret_number)
{
	*ret_number = event->number;
	return *ret_number != event->unrecorded;
}

/* A record whose process has ended: is it over, and how? */
static bool has_ended(const struct fk_shared_record *record, int *ret_result)
{
	struct fk_process process = *fk_self();

	process.pid = record->pid;
	process.start_time = record->start_time;
	if (fk_option_is("EVENT_ENDED", "hang", "hang") || fk_process_lives(&process))
		return false;
	if (fk_option_is("EVENT_ENDED", "error", "hang"))
		*ret_result = FK_ILLEGAL_ADDRESS;
	return true;
}

bool fk_share_is_complete(struct fk_shared_event *event, uint32_t number, int *ret_result)
{
	struct fk_shared_record *record = record_of(event, number);

	*ret_result = 0;
	return is_done(record, number) || has_ended(record, ret_result);
}

/* Nothing wakes a futex when a process ends, so this checks now and then. */
int fk_share_wait(struct fk_shared_event *event, uint32_t number, const _Atomic bool *give_up)
{
	const struct timespec a_while = { .tv_nsec = 20 * 1000 * 1000 };
	struct fk_shared_record *record = record_of(event, number);
	int result = 0;

	while (!fk_share_is_complete(event, number, &result)) {
		uint32_t done = record->done;

		if ((give_up && *give_up) || fk_sticky())
			break;
		if ((int32_t)(done - number) < 0)
			syscall(SYS_futex, &record->done, FUTEX_WAIT, done, &a_while, NULL, 0);
	}
	return result;
}
