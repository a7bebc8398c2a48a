// SPDX-License-Identifier: MIT
/*
 * The fork lock, and the handlers of pthread_atfork. The child must close the parent's files at
 * once, because they would keep the parent's client alive after the parent's end.
 */
#include <pthread.h>

#include "lib/base/fork.h"

/*
 * Guards the state of files.c and process.c, the list of hooks, and `cancelling`. It is held across
 * fork.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xl_fork_hook *hooks;
static int cancelling;		/* the cancel state that the thread with the lock had before */

static void before_fork(void)
{
	struct xl_fork_hook *hook;

	pthread_mutex_lock(&lock);
	for (hook = hooks; hook; hook = hook->next)
		if (hook->before)
			hook->before();
}

static void after_fork_parent(void)
{
	struct xl_fork_hook *hook;

	for (hook = hooks; hook; hook = hook->next)
		if (hook->after)
			hook->after();
	pthread_mutex_unlock(&lock);
}

static void after_fork_child(void)
{
	struct xl_fork_hook *hook;

	for (hook = hooks; hook; hook = hook->next)
		if (hook->child)
			hook->child();
	pthread_mutex_init(&lock, NULL);
}

void xl_fork_unnoticed(void)
{
	struct xl_fork_hook *hook;

	for (hook = hooks; hook; hook = hook->next)
		if (hook->unnoticed)
			hook->unnoticed();
}

void xl_fork_add(struct xl_fork_hook *hook)
{
	if (hook->added)
		return;
	hook->added = true;
	hook->next = hooks;
	hooks = hook;
}

/* The handlers are added before the library makes its first descriptor or mapping. */
static void add_handlers(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void xl_fork_lock(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	int before;

	/*
	 * A thread that is cancelled under the lock would leave it locked, and no thread could
	 * fork.
	 */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	pthread_once(&once, add_handlers);
	pthread_mutex_lock(&lock);
	cancelling = before;
}

void xl_fork_unlock(void)
{
	int before = cancelling;

	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(before, NULL);
}
