/* SPDX-License-Identifier: MIT */
/*
 * Interprocess events of the fake driver: the memory that processes share. Each process has one
 * table, a memfd that other processes find by /proc/PID/fd. Only atomics and futexes work on it, so
 * a process may be killed at any point.
 *
 * A table's entry is used again after its event was destroyed. But its numbers continue, so that
 * the next event does not hold up a wait for an earlier record.
 *
 * FAKECUDA_IPC_EVENTS      how many interprocess events a process may have (22000)
 * FAKECUDA_EVENT_SELF      result of opening one in the process that made it (201)
 * FAKECUDA_EVENT_GARBAGE   result of opening 64 bytes that are no handle (400)
 * FAKECUDA_EVENT_ENDED     a record is pending and its process has ended: hang (default),
 *                          complete, or error (700)
 */
#ifndef FAKECUDA_EVENT_SHARE_H
#define FAKECUDA_EVENT_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FK_EVENT_RECORDS 8

/* One record of an event. Records whose numbers differ by FK_EVENT_RECORDS share an entry. */
struct fk_shared_record {
	_Atomic uint32_t done;		/* futex: the greatest number that is complete */
	_Atomic uint32_t pid;		/* of the process that recorded last */
	_Atomic uint64_t start_time;	/* of that process */
};

struct fk_shared_event {
	_Atomic uint32_t generation;	/* odd: there is such an event */
	_Atomic uint32_t number;	/* of the last record */
	_Atomic uint32_t unrecorded;	/* the number when the event was made */
	uint32_t reserved;
	struct fk_shared_record records[FK_EVENT_RECORDS];
};

/* A new event of this process; NULL: there are too many. */
struct fk_shared_event *fk_share_new(uint32_t *ret_generation);
void fk_share_destroy(struct fk_shared_event *event);

/* The 64 bytes by which another process finds the event. */
void fk_share_handle(const struct fk_shared_event *event, void *ret_handle);

/* Finds the event of a handle. Returns a CUresult. */
int fk_share_open(const void *handle, struct fk_shared_event **ret_event,
		  uint32_t *ret_generation);

/* Begins a record by this process, and completes it. */
uint32_t fk_share_record(struct fk_shared_event *event);
void fk_share_complete(struct fk_shared_event *event, uint32_t number);

/* The number of the record that a wait is for now; false: there was none. */
bool fk_share_last(struct fk_shared_event *event, uint32_t *ret_number);
bool fk_share_is_complete(struct fk_shared_event *event, uint32_t number, int *ret_result);

/*
 * Waits until that record is complete, a context is lost, or *give_up (which may be NULL) is set.
 * Returns a CUresult.
 */
int fk_share_wait(struct fk_shared_event *event, uint32_t number, const _Atomic bool *give_up);

#endif
