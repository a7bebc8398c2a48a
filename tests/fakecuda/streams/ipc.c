// SPDX-License-Identifier: MIT
/*
 * Events between processes. The other process (the exporter) makes them; this one opens them. A
 * word that both see shows the order.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static int *shared;	/* words of memory that both processes have */

static void make_shared(void)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
}

static void set_to_round(void *user)
{
	shared[0] = (int)(intptr_t)user;
}

static CUevent new_event(CUipcEventHandle *ret_handle)
{
	CUevent event;

	OK(cuEventCreate(&event, 6));
	OK(cuIpcGetEventHandle(ret_handle, event));
	return event;
}

static void record_rounds(int fd)
{
	CUipcEventHandle handle;
	CUevent event;
	int i;

	begin(2000);
	event = new_event(&handle);
	tell(fd, &handle, sizeof(handle));
	hear(fd, &i, sizeof(i));
	while (i) {
		OK(cuLaunchHostFunc(NULL, set_to_round, (void *)(intptr_t)i));
		OK(cuEventRecord(event, NULL));
		tell(fd, &i, sizeof(i));
		hear(fd, &i, sizeof(i));
	}
}

static int seen;

static void look(void *user)
{
	seen = __atomic_load_n(shared, __ATOMIC_SEQ_CST);
}

/* Is the other process's store seen? */
static bool right_round(struct other *other, CUevent event, int round, bool wait)
{
	tell(other->fd, &round, sizeof(round));
	hear(other->fd, &round, sizeof(round));
	if (wait)
		OK(cuStreamWaitEvent(NULL, event, 0));
	OK(cuLaunchHostFunc(NULL, look, NULL));
	OK(cuStreamSynchronize(NULL));
	OK(cuEventSynchronize(event));
	return seen == round;
}

/*
 * Repeat until both orders have occurred, or @most times. Returns the number of rounds, and how
 * many of them were right.
 */
static int look_for_both(bool wait, int most, int *ret_right)
{
	CUipcEventHandle handle;
	struct other other;
	const int end = 0;
	int right = 0, i = 0;
	CUevent event;

	make_shared();
	other = other_begin(record_rounds);
	begin(2000);
	hear(other.fd, &handle, sizeof(handle));
	OK(cuIpcOpenEventHandle(&event, handle));
	while (i < most && (!right || right == i))
		right += right_round(&other, event, ++i, wait);
	tell(other.fd, &end, sizeof(end));
	other_end(other);
	*ret_right = right;
	return i;
}

static void events_order_processes(void)
{
	int right;

	CHECK(look_for_both(true, ROUNDS, &right) == ROUNDS);
	CHECK(right == ROUNDS);
}

static void processes_are_not_ordered_without(void)
{
	int right, rounds = look_for_both(false, MANY_ROUNDS, &right);

	CHECK(right > 0 && right < rounds);
}

static void record_once_more(int fd)
{
	CUipcEventHandle handle;
	CUevent event;
	char c;

	begin(0);
	event = new_event(&handle);
	tell(fd, &handle, sizeof(handle));
	hear(fd, &c, 1);
	EXPECT(cuEventQuery(event), 600);
	tell(fd, &c, 1);
	OK(cuEventSynchronize(event));
}

/* The opener records too, and the exporter waits. */
static void both_may_record(void)
{
	struct other other = other_begin(record_once_more);
	CUipcEventHandle handle;
	struct gate *gate;
	CUevent event;
	char c = 0;

	begin(0);
	hear(other.fd, &handle, sizeof(handle));
	OK(cuIpcOpenEventHandle(&event, handle));
	OK(cuEventQuery(event));
	gate = gate_in(NULL);
	OK(cuEventRecord(event, NULL));
	tell(other.fd, &c, 1);
	hear(other.fd, &c, 1);
	gate_open(gate);
	other_end(other);
	OK(cuEventDestroy_v2(event));
}

static void destroy_when_told(int fd)
{
	CUipcEventHandle handle;
	CUevent event;
	char c;

	begin(0);
	event = new_event(&handle);
	tell(fd, &handle, sizeof(handle));
	hear(fd, &c, 1);
	OK(cuEventDestroy_v2(event));
	tell(fd, &c, 1);
	hear(fd, &c, 1);
}

static void using_a_destroyed_event_is_a_violation(void)
{
	struct other other = other_begin(destroy_when_told);
	CUipcEventHandle handle;
	CUevent event;
	char c = 0;

	begin(0);
	hear(other.fd, &handle, sizeof(handle));
	OK(cuIpcOpenEventHandle(&event, handle));
	OK(cuEventQuery(event));
	CHECK(cuFakeViolations() == 0);
	tell(other.fd, &c, 1);
	hear(other.fd, &c, 1);
	EXPECT(cuStreamWaitEvent(NULL, event, 0), 400);
	CHECK(cuFakeViolations() == 1);
	OK(cuEventDestroy_v2(event));
	EXPECT(cuIpcOpenEventHandle(&event, handle), 400);
	tell(other.fd, &c, 1);
	other_end(other);
	EXPECT(cuIpcOpenEventHandle(&event, handle), 400);
}

static void bad_handles_are_refused(void)
{
	CUipcEventHandle handle;
	CUevent event, plain;

	begin(0);
	OK(cuEventCreate(&plain, 2));
	EXPECT(cuIpcGetEventHandle(&handle, plain), 400);
	memset(&handle, 0x55, sizeof(handle));
	EXPECT(cuIpcOpenEventHandle(&event, handle), 400);
	new_event(&handle);
	EXPECT(cuIpcOpenEventHandle(&event, handle), 201);
}

static void there_are_so_many_events(void)
{
	CUevent events[3], more;
	int i;

	setenv("FAKECUDA_IPC_EVENTS", "3", 1);
	begin(0);
	for (i = 0; i < 3; i++)
		OK(cuEventCreate(&events[i], 6));
	EXPECT(cuEventCreate(&more, 6), 2);
	OK(cuEventDestroy_v2(events[1]));
	OK(cuEventCreate(&more, 6));
	OK(cuEventQuery(more));
	OK(cuEventCreate(&more, 2));
}

static void leave_one_pending(int fd)
{
	CUipcEventHandle handle;
	CUevent event;

	begin(0);
	event = new_event(&handle);
	gate_in(NULL);
	OK(cuEventRecord(event, NULL));
	tell(fd, &handle, sizeof(handle));
	pause();
}

/* The exporter is killed while its record is pending. */
static CUevent orphan(void)
{
	struct other other = other_begin(leave_one_pending);
	CUipcEventHandle handle;
	CUevent event;
	int status;

	begin(0);
	hear(other.fd, &handle, sizeof(handle));
	OK(cuIpcOpenEventHandle(&event, handle));
	EXPECT(cuEventQuery(event), 600);
	kill(other.pid, SIGKILL);
	CHECK(waitpid(other.pid, &status, 0) == other.pid);
	return event;
}

static void a_dead_process_never_completes(void)
{
	EXPECT(cuEventQuery(orphan()), 600);
}

static void a_dead_process_completes(void)
{
	CUevent event;

	setenv("FAKECUDA_EVENT_ENDED", "complete", 1);
	event = orphan();
	OK(cuEventQuery(event));
	OK(cuEventSynchronize(event));
	OK(cuStreamWaitEvent(NULL, event, 0));
	OK(cuStreamSynchronize(NULL));
}

static void a_dead_process_is_an_error(void)
{
	CUevent event;

	setenv("FAKECUDA_EVENT_ENDED", "error", 1);
	event = orphan();
	OK(cuStreamWaitEvent(NULL, event, 0));
	EXPECT(cuStreamSynchronize(NULL), 700);
	EXPECT(cuStreamQuery(NULL), 700);
}

const struct test ipc_tests[] = {
	TEST(events_order_processes),
	TEST(processes_are_not_ordered_without),
	TEST(both_may_record),
	TEST(using_a_destroyed_event_is_a_violation),
	TEST(bad_handles_are_refused),
	TEST(there_are_so_many_events),
	TEST(a_dead_process_never_completes),
	TEST(a_dead_process_completes),
	TEST(a_dead_process_is_an_error),
	{ 0 },
};
