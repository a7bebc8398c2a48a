// SPDX-License-Identifier: MIT
/* Handles that are dropped when a stream has written a word: lib/gpu/passed.h. */
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "core/step.h"
#include "lib/gpu/passed.h"
#include "scene.h"

#define WORDS	512		/* of a process */
#define MORE	8

/* A pool of one buffer on a GPU, whose contents are held by @count handles. */
static struct xmem_pool *hold_many(struct xmem_buffer **handle, unsigned int count)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, WORK_BYTES, 0);
	unsigned int i;

	cuda_publish(pool, WORK_BYTES, 1, &handle[0]);
	for (i = 1; i < count; i++) {
		handle[i] = xmem_clone(handle[0]);
		CHECK(handle[i]);
	}
	return pool;
}

TEST(CUDA_a_stream_drops_handles_without_host_functions)
{
	struct xmem_buffer *handle[3];
	struct xmem_pool *pool = hold_many(handle, 3);
	struct work work;
	unsigned int i;

	fake_only("it counts calls");
	begin_work(&work);
	for (i = 0; i < 3; i++)
		WORKED(xmem_release_on(handle[i], work.stream));
	SAME(driver_calls("cuStreamWriteValue64"), 3);
	SAME(driver_calls("cuLaunchHostFunc"), 0);
	EVENTUALLY(!stat_of(pool).held);
	xmem_pool_close(pool);
	no_violations();
}

/* Read the first line of a file. false: there is none. */
static bool read_line(const char *path, char *ret, int bytes)
{
	FILE *file = fopen(path, "re");
	bool read = file && fgets(ret, bytes, file);

	if (file)
		fclose(file);
	if (read)
		ret[strcspn(ret, "\n")] = '\0';
	return read;
}

enum { ENDED, AWAKE, ASLEEP };

/* Where is the thread that looks at the words? It is ASLEEP until it is woken. */
static int watcher(void)
{
	char path[300], line[64] = "";
	struct dirent *task;
	int state = ENDED;
	DIR *tasks = opendir("/proc/self/task");

	CHECK(tasks);
	while ((task = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		if (!read_line(path, line, sizeof(line)) || strcmp(line, "xmem-streams"))
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", task->d_name);
		state = read_line(path, line, sizeof(line)) && atol(line) == SYS_futex ? ASLEEP :
										 AWAKE;
	}
	closedir(tasks);
	return state;
}

static void release_behind_a_gate(struct xmem_pool *pool, struct xmem_buffer *buffer,
				  struct work *work)
{
	close_gate(work);
	WORKED(xmem_release_on(buffer, work->stream));
	open_gate(work);
	EVENTUALLY(!stat_of(pool).held);
}

/*
 * No call of the library's looks at the words; its thread does. The first time it is new, then it
 * sleeps, and then it has ended, so that it keeps no process alive.
 */
TEST(CUDA_handles_are_dropped_although_no_call_follows)
{
	struct xmem_buffer *handle[1];
	struct xmem_pool *pool = hold_many(handle, 1);
	unsigned int round;
	struct work work;

	begin_work(&work);
	for (round = 0; round < 3; round++) {
		release_behind_a_gate(pool, handle[0], &work);
		if (round == 0)
			EVENTUALLY(watcher() != AWAKE);
		if (round == 1)
			EVENTUALLY(watcher() == ENDED);
		cuda_publish(pool, WORK_BYTES, round, &handle[0]);
	}
	xmem_release(handle[0]);
	xmem_pool_close(pool);
	no_violations();
}

/* A word that was written for one handle says nothing about the next one that uses it. */
TEST(CUDA_a_word_is_used_again_for_another_handle)
{
	struct xmem_buffer *handle[3];
	struct xmem_pool *pool = hold_many(handle, 3);
	uint32_t slot = xm_token_slot(xmem_token(handle[0]));
	struct work work;

	begin_work(&work);
	WORKED(xmem_release_on(handle[0], work.stream));
	EVENTUALLY(xmem_pool_holds(pool, xmem_pool_client(pool), slot) == 2);
	close_gate(&work);
	WORKED(xmem_release_on(handle[1], work.stream));
	WORKED(xmem_release_on(handle[2], work.stream));	/* looks at the words */
	SAME(stat_of(pool).held, 1);
	open_gate(&work);
	EVENTUALLY(!stat_of(pool).held);
	xmem_pool_close(pool);
	no_violations();
}

/* Host functions drop the others. */
TEST(CUDA_more_handles_wait_for_streams_than_there_are_words)
{
	struct xmem_buffer *handle[WORDS + MORE];
	struct xmem_pool *pool = hold_many(handle, WORDS + MORE);
	unsigned long functions;
	struct work work;
	unsigned int i;

	begin_work(&work);
	close_gate(&work);
	functions = driver_calls("cuLaunchHostFunc");
	for (i = 0; i < WORDS + MORE; i++)
		WORKED(xmem_release_on(handle[i], work.stream));
	ON_FAKE(SAME(driver_calls("cuLaunchHostFunc") - functions, MORE));
	SAME(stat_of(pool).held, 1);
	open_gate(&work);
	EVENTUALLY(!stat_of(pool).held);
	xmem_pool_close(pool);
	no_violations();
}

static struct xmem_buffer *refused;

/* As a thread does that has found the context lost. */
static void forget_refused(int step)
{
	(void)step;
	xl_passed_forget(refused);
}

TEST(CUDA_a_word_that_is_refused_and_forgotten_counts_once)
{
	struct xmem_buffer *handle[1];
	struct xmem_pool *pool = hold_many(handle, 1);
	struct work work;

	fake_only("it fails on demand");
	steps_only();
	begin_work(&work);
	refused = xl_buffer(handle[0]);
	driver_fails("cuStreamWriteValue64_v2:1:400");
	at_step(XM_STEP_CUDA_REFUSED, 0, STEP_CALL, forget_refused);
	CHECK(xmem_release_on(handle[0], work.stream) < 0);
	driver_fails(NULL);
	release_behind_a_gate(pool, handle[0], &work);
	EVENTUALLY(watcher() == ENDED);
	xmem_pool_close(pool);
	no_violations();
}

/* Its parent's words are not its own. */
static void use_a_pool(void *argument)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer;

	WORKED(xmem_preallocate(pool, WORK_BYTES, 1, NULL));
	buffer = xmem_acquire(pool, WORK_BYTES, 0);
	CHECK(buffer);
	xmem_release(buffer);
	xmem_pool_close(pool);
}

TEST(CUDA_a_forked_child_drops_no_handle_of_its_parent)
{
	struct xmem_buffer *handle[1];
	struct xmem_pool *pool = hold_many(handle, 1);
	struct work work;

	begin_work(&work);
	close_gate(&work);
	WORKED(xmem_release_on(handle[0], work.stream));
	in_child(use_a_pool, NULL);
	SAME(stat_of(pool).held, 1);
	open_gate(&work);
	EVENTUALLY(!stat_of(pool).held);
	xmem_pool_close(pool);
	no_violations();
}

/* ---- the end of a pool ---- */

static struct {
	sem_t drops, goes_on;
	bool went_on;			/* atomic */
} dropper;

static void await(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		;
}

static void stand_while_dropping(int step)
{
	(void)step;
	sem_post(&dropper.drops);
	await(&dropper.goes_on);
}

/* Let the dropper go on when the thread that closes the pool waits for it. */
static void *go_on_later(void *unused)
{
	EVENTUALLY(others_sleep());
	__atomic_store_n(&dropper.went_on, true, __ATOMIC_SEQ_CST);
	sem_post(&dropper.goes_on);
	return unused;
}

TEST(CUDA_a_close_waits_for_the_thread_that_drops_handles)
{
	struct xmem_buffer *handle;
	struct xmem_pool *pool;
	struct work work;
	pthread_t thread;
	bool went_on;

	steps_only();
	fake_only("its streams write words");
	pool = hold_many(&handle, 1);
	SAME(sem_init(&dropper.drops, 0, 0), 0);
	SAME(sem_init(&dropper.goes_on, 0, 0), 0);
	begin_work(&work);
	close_gate(&work);
	WORKED(xmem_release_on(handle, work.stream));
	at_step(XM_STEP_CUDA_REACHED, 0, STEP_CALL, stand_while_dropping);
	open_gate(&work);
	await(&dropper.drops);
	SAME(pthread_create(&thread, NULL, go_on_later, NULL), 0);
	xmem_pool_close(pool);
	went_on = __atomic_load_n(&dropper.went_on, __ATOMIC_SEQ_CST);
	if (!went_on)
		sem_post(&dropper.goes_on);
	SAME(pthread_join(thread, NULL), 0);
	CHECK(went_on);
	no_violations();
}
