/* SPDX-License-Identifier: MIT */
/* Handles of the C library in blocks of OCaml; managed.c has the rules. */
#ifndef XMEM_MANAGED_H
#define XMEM_MANAGED_H

#include <stdatomic.h>
#include <stdbool.h>

#define CAML_NAME_SPACE
#include <caml/mlvalues.h>
#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/memory.h>
#include <xmem.h>

enum kind { POOL, SUBSCRIPTION, BUFFER };	/* as in managed.ml */

/* A handle apart from its block: a buffer's that has views, or any other handle. */
struct managed {
	struct managed *next;			/* in the list of handles to end */
	enum kind kind;
	_Atomic long users;			/* the block, and each view */
	_Atomic(void *) handle;			/* NULL: C has taken it */
};

/* In a block, one of the two is set until the handle is dropped. */
struct block {
	_Atomic(void *) handle;			/* a buffer without views */
	_Atomic(struct managed *) shared;
};
#define BLOCK(value)	((struct block *)Data_custom_val(value))

/* One more user, for a view. Returns: NULL: the handle was dropped, or there is no memory. */
struct managed *managed_share(value block);
void managed_drop(struct managed *it);

/* Remember a handle until it is in a block. Returns: @handle. */
void *xmem_ml_note(int kind, void *handle);

bool callbacks_noted(void);

#endif
