/* SPDX-License-Identifier: MIT */
/* The fork lock, and hooks that run when the process forks (fork.c). */
#ifndef XMEM_FORK_H
#define XMEM_FORK_H

#include <stdbool.h>

/* No thread forks between these two. Code between them must not wait. */
void xl_fork_lock(void);
void xl_fork_unlock(void);

/* The functions that one file runs at a fork. A member may be NULL. */
struct xl_fork_hook {
	void (*before)(void);		/* in the parent, under the fork lock */
	void (*after)(void);		/* in the parent */
	void (*child)(void);
	void (*unnoticed)(void);	/* in a child whose fork called none of the above */
	struct xl_fork_hook *next;
	bool added;
};

/* Call @hook at all later forks. Adding a hook twice is harmless. Under the fork lock. */
void xl_fork_add(struct xl_fork_hook *hook);

/*
 * Run the `unnoticed` hooks: this process may be a child whose fork called no handler. Under the
 * fork lock.
 */
void xl_fork_unnoticed(void);

#endif
