/* SPDX-License-Identifier: MIT */
/* Handles of the C library in blocks of OCaml; managed.c has the rules. */
#ifndef XMEM_MANAGED_H
#define XMEM_MANAGED_H

#include <stdatomic.h>

#define CAML_NAME_SPACE
#include <caml/mlvalues.h>
#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/memory.h>
#include <xmem.h>

enum kind { POOL, SUBSCRIPTION, BUFFER };	/* as in managed.ml */

/* A handle, which its block and the views of its contents have together. */
struct managed {
	struct managed *next;			/* in the list of later.c */
	enum kind kind;
	_Atomic long users;			/* the block, and each view */
	_Atomic(void *) handle;			/* NULL: it was given away */
};

#define MANAGED(block)	(*(_Atomic(struct managed *) *)Data_custom_val(block))

void managed_drop(struct managed *it);

#endif
