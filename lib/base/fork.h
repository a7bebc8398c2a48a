/* SPDX-License-Identifier: MIT */
/* What is done when the process forks: fork.c. */
#ifndef XMEM_FORK_H
#define XMEM_FORK_H

#include <stdbool.h>

/* No thread forks meanwhile. Nothing that may wait belongs in between. */
void xl_fork_lock(void);
void xl_fork_unlock(void);

/* What one file does at a fork. A member that is NULL does nothing. */
struct xl_fork_hook {
	void (*before)(void);		/* in the parent, under the fork lock */
	void (*after)(void);		/* in the parent */
	void (*child)(void);
	void (*unnoticed)(void);	/* in a child whose fork called none of the above */
	struct xl_fork_hook *next;
	bool added;
};

/* Call @hook from now on. It may be added before. Under the fork lock. */
void xl_fork_add(struct xl_fork_hook *hook);

/* This process may be a child whose fork called no handler. Under the fork lock. */
void xl_fork_unnoticed(void);

#endif
