/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Steps: the places between two stores to shared words at which a test may delay, stop or kill a
 * process. They are empty unless the build defines XMEM_STEPS.
 */
#ifndef XM_STEP_H
#define XM_STEP_H

enum xm_step {
	XM_STEP_GET_HELD,		/* get: hold taken, word not yet looked at */
	XM_STEP_GET_DONE,		/* get: about to return */
	XM_STEP_PUT_BEFORE,		/* put: hold not yet dropped */
	XM_STEP_PUT_DROPPED,		/* put: hold dropped, nobody woken yet */
	XM_STEP_TAKE_WRITING,		/* acquire: slot WRITING */
	XM_STEP_SCAN_CURSORS,		/* scan: cursors read, nothing marked */
	XM_STEP_SCAN_SCANNING,		/* scan: slots marked, holds not read */
	XM_STEP_SCAN_VOID,		/* scan: entries evicted, holds not read */
	XM_STEP_SCAN_HOLDS,		/* scan: holds read, verdict not written */
	XM_STEP_PUBLISH_POSITION,	/* publish: position recorded, not LIVE */
	XM_STEP_PUBLISH_LIVE,		/* publish: LIVE, entry untouched */
	XM_STEP_PUBLISH_OPEN,		/* publish: entry open (position 0) */
	XM_STEP_PUBLISH_FIELDS,		/* publish: fields written */
	XM_STEP_PUBLISH_ENTRY,		/* publish: entry complete, tail not moved */
	XM_STEP_PUBLISH_TAIL,		/* publish: tail moved, nobody woken */
	XM_STEP_RECEIVE_READ,		/* receive: fields read, no hold */
	XM_STEP_RECEIVE_HELD,		/* receive: hold taken, entry not looked at again */
	XM_STEP_RECEIVE_VALID,		/* receive: valid, cursor not moved */
	XM_STEP_RECEIVE_CURSOR,		/* receive: cursor moved, nobody woken */
	XM_STEP_FORWARD_NOTED,		/* forward: the hold says so, no entry yet */
	XM_STEP_RETRACT_OPEN,		/* retract: entries open, slot not looked at */
	XM_STEP_SCAN_SHARED,		/* scan: the word of a shared slot read, not marked */
	XM_CORE_STEPS,
	XM_STEP_RING_LOOK = XM_CORE_STEPS, /* scan: an entry of a ring looked at */
	XM_STEP_ROW_LOOK,		/* host: a row read because of its group's tenant */
	XM_STEP_SWEEP_BEGIN,		/* host: a sweep begins, no slot is marked yet */
	XM_STEP_SWEEP_LOOK,		/* host: a sweep reads the holds of a group */
	XM_STEP_END_NOTED,		/* xmemd: knows of an end, looks for another one */
	XM_STEP_NEXT_END,		/* xmemd: about to handle an end that it knows of */
	XM_STEP_LETS_GO,		/* end: the ring repaired, the holds not dropped */
	XM_STEP_SUBSCRIBE_CURSOR,	/* host: the cursor exists, the bit is not set */
	XM_STEP_SUBSCRIBE_BIT,		/* host: the bit is set, the cursor not at the tail */
	XM_STEP_MAPPING_LOOK,		/* library: one row or mapping looked at */
	XM_STEP_ROW_OFFSET,		/* library: an offset read, not the payload's id */
	XM_STEP_VIEW_FOUND,		/* library: contents found, row not read */
	XM_STEP_CLAIM_NOTED,		/* host: claims recorded, not added yet */
	XM_STEP_CLAIM_ADDED,		/* host: claims added, state word not read */
	XM_STEP_CLAIM_ALONE,		/* library: claims added without the host */
	XM_STEP_CLAIM_POSITION,		/* set_ref_count: claims added, position 0, not LIVE */
	XM_STEP_CLAIM_LIVE,		/* set_ref_count: LIVE without an entry */
	XM_STEP_CLAIM_HELD,		/* library: a get holds, its claim not taken */
	XM_STEP_CLAIM_TAKEN,		/* library: a get has taken its claim */
	XM_STEP_CLAIM_FORGET,		/* library: forget, the hold not dropped */
	XM_STEP_UPGRADE_BEGUN,		/* library: it may write in place, no record of it yet */
	XM_STEP_UPGRADE_LIVE,		/* library: the slot is LIVE, not in the ring */
	XM_STEP_UPGRADE_FILLED,		/* library: the slot may have claims, is not LIVE yet */
	XM_STEP_FILE_MADE,		/* library: file attached, its slots in no list */
	XM_STEP_FILE_TAKEN,		/* library: slots out of the lists, not detached */
	XM_STEP_FILE_DETACHED,		/* library: detached, still mapped */
	XM_STEP_WAIT,			/* library: before a waiter looks again or sleeps */
	XM_STEP_CUDA_MADE,		/* library: GPU memory made or taken, not attached */
	XM_STEP_CUDA_ATTACHED,		/* library: memory attached, without a handle yet */
	XM_STEP_CUDA_ASK,		/* library: before the host is asked to open it */
	XM_STEP_CUDA_ASKED,		/* library: open for the host, not for the driver */
	XM_STEP_CUDA_OPENED,		/* library: opened, in no table */
	XM_STEP_CUDA_CLOSING,		/* library: in no table, not closed or freed */
	XM_STEP_CUDA_CLOSED,		/* library: freed, or closed and still open for the host */
	XM_STEP_CUDA_ORDERED,		/* publish: the order is in the stream alone */
	XM_STEP_CUDA_WAITS,		/* wait_on: the stream waits, no record of it yet */
	XM_STEP_CUDA_LOOKED,		/* wait: the word read, its reason not */
	XM_STEP_CUDA_LEAVES,		/* release_on: the handle is gone, the stream has nothing */
	XM_STEP_CUDA_REFUSED,		/* release_on: the stream has refused a word, still taken */
	XM_STEP_CUDA_LEFT,		/* release_on: the release is in the stream */
	XM_STEP_CUDA_REACHED,		/* release_on: the stream is there, hold not dropped */
	XM_STEP_CUDA_DROPPED,		/* release_on: the stream has dropped the hold */
	XM_STEPS
};

#ifdef XMEM_STEPS
void xm_step(int step);
#define XM_STEP(step)		xm_step(step)
#else
#define XM_STEP(step)		((void)0)
#endif

#endif
