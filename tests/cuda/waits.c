// SPDX-License-Identifier: MIT
/*
 * Waits in a thread: for contents that are to be written in place, where a stream does not take the
 * wait, and after the end of xmemd.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/step.h"
#include "scene.h"

/* A call that waits ends once the pool is cancelled. A call that does not wait is not affected. */
TEST(CUDA_who_writes_in_place_waits_for_the_owners_stream)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_buffer *buffer;
	struct scene scene;
	pthread_t thread;
	int i;

	spawn_writer(&scene, new_name(), 2, 0);
	start_writer(&scene, NULL);
	for (i = 1; i <= 2; i++) {
		order_writer(&scene, TELL(FILL, i));
		buffer = receive_next(&scene);
		WORKED(xmem_get_mut(buffer));
		SAME(xmem_wait_contents(buffer, 0), -EAGAIN);
		if (i == 2) {
			WORKED(xmem_cancel(scene.pool));
			REFUSED(xmem_cuda_ptr_mut(buffer), ECANCELED);
		}
		SAME(pthread_create(&thread, NULL, open_later, &scene), 0);
		EVENTUALLY(xmem_cuda_ptr_mut(buffer));
		SAME(pthread_join(thread, NULL), 0);
		cuda_check(buffer, i);
		cuda_fill(buffer, i + 10);
		WORKED(xmem_publish(buffer, &keep, NULL));
		SAME(xmem_wait_contents(buffer, 0), 0);
		cuda_check(buffer, i + 10);
		xmem_release(buffer);
	}
	end_scene(&scene);
}

static struct scene *waits_for;

static void open_now(int step)
{
	order_writer(waits_for, OPEN_GATE);
}

/*
 * The device says that it can, and the driver that it cannot. The contents become complete only
 * once the thread waits: a call that came later would have nothing to tell the stream.
 */
TEST(CUDA_a_wait_that_a_stream_does_not_take_leaves_no_error)
{
	struct xmem_buffer *buffer;
	struct scene scene;
	struct work work;

	fake_only("it fails on demand");
	steps_only();
	begin_scene(&scene, 2);
	begin_work(&work);
	order_writer(&scene, TELL(FILL, 1));
	buffer = receive_next(&scene);
	driver_fails("cuStreamWaitValue64_v2:1:801");
	xmem_clear_last_error();
	waits_for = &scene;
	at_step(XM_STEP_WAIT, 0, STEP_CALL, open_now);
	WORKED(xmem_wait_on(buffer, work.stream));
	no_step();
	SAME(xmem_peek_last_error(NULL), 0);
	SAME(last_result(), 0);
	SAME(xmem_wait_contents(buffer, 0), 0);
	cuda_check(buffer, 1);
	xmem_release(buffer);
	end_scene(&scene);
}

/* ---- without xmemd ---- */

static void kill_the_daemon(struct xmem_pool *pool)
{
	pid_t daemon = stop_daemon();

	continue_daemon(daemon);
	CHECK(!kill(daemon, SIGKILL));
	EVENTUALLY(xmem_preallocate(pool, WORK_BYTES, 1, NULL) == -ENOTCONN);
}

/* Killed, and a zombie until its status is read. */
static void kill_and_leave(struct child *child)
{
	siginfo_t info;

	CHECK(!kill(child->pid, SIGKILL));
	SAME(waitid(P_PID, child->pid, &info, WEXITED | WNOWAIT), 0);
}

TEST(P9_a_writer_that_is_a_zombie_has_ended)
{
	struct xmem_buffer *buffer;
	struct scene scene;
	struct work work;

	daemon_only("the kernel does not end");
	use_own_daemon();
	begin_scene(&scene, 2);
	begin_work(&work);
	order_writer(&scene, TELL(FILL, 1));
	buffer = receive_next(&scene);
	WORKED(xmem_wait_on(buffer, work.stream));
	kill_the_daemon(scene.pool);
	SAME(xmem_wait_contents(buffer, XMEM_FOREVER), -ENOTCONN);	/* it may still write */
	kill_and_leave(scene.writer);
	SAME(xmem_wait_contents(buffer, XMEM_FOREVER), -EOWNERDEAD);
	must(xl_cuda()->stream_synchronize(work.stream));
	died_of_kill(scene.writer);
	xmem_release(buffer);
	xmem_unsubscribe(scene.sub);
	xmem_pool_close(scene.pool);
}


static struct scene *ending;

/* The word has been read. Now the stream writes it, and the process ends. */
static void complete_and_end(int step)
{
	(void)step;
	order_writer(ending, OPEN_GATE);
	order_writer(ending, CLOSE_POOL);
	kill_child(ending->writer);
}

TEST(P8_what_comes_just_before_its_writers_end_is_complete)
{
	struct xmem_buffer *buffer;
	struct scene scene;

	daemon_only("the kernel does not end");
	steps_only();
	use_own_daemon();
	begin_scene(&scene, 2);
	order_writer(&scene, TELL(FILL, 1));
	buffer = receive_next(&scene);
	kill_the_daemon(scene.pool);
	ending = &scene;
	at_step(XM_STEP_CUDA_LOOKED, 0, STEP_CALL, complete_and_end);
	SAME(xmem_wait_contents(buffer, 0), 0);
	WORKED(xmem_wait_contents(buffer, XMEM_FOREVER));
	xmem_release(buffer);
	xmem_unsubscribe(scene.sub);
	xmem_pool_close(scene.pool);
}
