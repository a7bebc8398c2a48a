// SPDX-License-Identifier: MIT
/*
 * Ends of clients and processes that use GPU memory: what the host drops at once, and what it keeps
 * until the process has exited and then drops. gpu_payloads.c runs these tests.
 *
 * A kid can take long to exit. It has a file of the test GPU open, and while the gate is closed the
 * release of that file does not end. Meanwhile its client has ended, and its process has not
 * exited.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "core/policy.h"
#include "gpu.h"

/* A kid tells the parent these values. */
struct told {
	u32 client, slot;
	u64 payload;
	u64 value;			/* for the kid: the ready value that its contents need */
	u64 token, handle_token;
	struct xmem_attach_request file, handle;
};
static struct told *told;

static struct raw me = RAW_NONE;	/* the client of the parent, or, in a kid, of the kid */

static const char *begin(enum xmem_role role)
{
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	WANT(told != MAP_FAILED && !gpu_start(&me, role));
	return NULL;
}

static void end(void)
{
	raw_end(&me);
	munmap(told, sizeof(*told));
}

void gpu_ends_clean_up(void)
{
	kid_forget();
	raw_end(&me);
}

static u32 state_of(u32 client)
{
	return xm_load(&xm_client_row(&me.map, client)->state);
}

static bool in_quarantine(u32 client)
{
	return !strcmp(shown_client(pool_folder(), client).state, "quarantine");
}

/* A slot of the caller's, with contents that no client holds. 0 or -errno. */
static int make_live(u32 slot, u64 *token)
{
	int err = raw_map_group(&me, slot / XMEM_GROUP_SLOTS);
	struct xm_own own = xm_own(&me.map, slot);

	if (!err)
		err = xm_take(&me.map, slot);
	if (!err)
		*token = xm_make_live(&own);
	return err;
}

/* Can the owner have its slot back? It scans, and then makes the slot LIVE again. */
static bool comes_back(u32 slot)
{
	struct xm_scan_rules rules = { .owner = me.join.client };
	struct xm_own own = xm_own(&me.map, slot);
	struct xm_waited waited;
	u32 culprit;

	rules.passed = rules.evictable = xm_passed(&me.map, rules.owner, &culprit);
	xm_read_waited(&me.map, rules.owner, &waited);
	rules.tail = waited.tail;
	if (!xm_scan_one(&me.map, &rules, slot))
		return false;
	xm_make_live(&own);
	return true;
}

/* ---- the owner ends ---- */

static const char *live_as_owner(void *unused)
{
	int fd = gpu_file();
	char *start;

	WANT(fd >= 0 && !gpu_start(&me, XMEM_ROLE_WRITER));
	told->client = me.join.client;
	start = mmap(NULL, GPU_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	WANT(start != MAP_FAILED);
	memset(start, 0x5a, GPU_BYTES);
	told->file = gpu_attaching(fd, XMEM_ATTACH_READERS, 1, 1, 1);
	WANT(!raw_request(&me, XMEM_IOC_ATTACH, &told->file));
	told->handle = gpu_attaching(-1, XMEM_ATTACH_READERS | XMEM_ATTACH_HANDLE, 1, 1, 2);
	WANT(!raw_request(&me, XMEM_IOC_ATTACH, &told->handle));
	close(fd);
	WANT(!make_live(told->file.slot[0], &told->token));
	WANT(!make_live(told->handle.slot[0], &told->handle_token));
	told->slot = told->handle.slot[0];
	return NULL;
}

static int collect(u32 slot)
{
	return raw_slot(&me, XMEM_OP_COLLECT, slot);
}

static const char *owner_dies_first(void)
{
	struct kid kid;
	const char *wrong = begin(XMEM_ROLE_READER);
	char *start;
	int fd;

	if (!wrong)
		wrong = kid_start(&kid, live_as_owner, NULL);
	if (wrong)
		return wrong;
	WANT(!xm_get(&me.map, me.join.client, told->token));
	WANT(!xm_get(&me.map, me.join.client, told->handle_token));
	kid_kill(&kid);
	kid_reap(&kid);
	WANT(EVENTUALLY(state_of(told->client) == XMEM_CLIENT_NONE));
	/* The file, with all its bytes, has outlived its owner; the handle has not. */
	fd = gpu_open(&me, told->file.payload);
	WANT(fd >= 0);
	start = mmap(NULL, GPU_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	WANT(start != MAP_FAILED && start[0] == 0x5a && start[GPU_BYTES - 1] == 0x5a);
	munmap(start, GPU_BYTES);
	close(fd);
	WANT(gpu_open(&me, told->handle.payload) == -EOWNERDEAD - 1);
	WANT(gpu_query(&me, told->handle.payload) == -EOWNERDEAD);
	xm_put(&me.map, me.join.client, told->file.slot[0]);
	xm_put(&me.map, me.join.client, told->slot);
	WANT(!collect(told->file.slot[0]) && !collect(told->slot));
	WANT(EVENTUALLY(!xm_load(&me.map.pool->payloads)));
	/* It is closing, because this process still has it open. */
	WANT(EVENTUALLY(!strcmp(pool_says("device_files"), "1")));
	WANT(EVENTUALLY(!gpu_number("files")));
	WANT(!gpu_close(&me, told->file.payload));
	WANT(EVENTUALLY(!strcmp(pool_says("device_files"), "0")));
	end();
	return NULL;
}

/* No stream of its GPU can be left, so nothing waits for the exit of its process. */
static const char *live_and_leave(void *unused)
{
	const char *wrong = live_as_owner(unused);

	if (wrong)
		return wrong;
	raw_end(&me);
	return NULL;
}

static const char *owner_leaves_in_order(void)
{
	struct kid kid;
	const char *wrong = begin(XMEM_ROLE_READER);

	if (!wrong)
		wrong = kid_start(&kid, live_and_leave, NULL);
	if (wrong)
		return wrong;
	WANT(EVENTUALLY(state_of(told->client) == XMEM_CLIENT_NONE));
	kid_kill(&kid);
	kid_reap(&kid);
	end();
	return NULL;
}

/* ---- an opener ends ---- */

static const char *live_as_opener(void *unused)
{
	WANT(!gpu_start(&me, XMEM_ROLE_READER));
	told->client = me.join.client;
	WANT(gpu_open(&me, told->payload) >= 0);
	return NULL;
}

static const char *opener_is_killed(void)
{
	struct xmem_attach_request request, behind;
	struct kid kid;
	const char *wrong = begin(XMEM_ROLE_WRITER);
	u64 closed;

	WANT(!wrong && !gpu_attach(&me, XMEM_ATTACH_READERS, &request));
	closed = me.map.pool->payloads_closed;
	told->payload = request.payload;
	wrong = kid_start(&kid, live_as_opener, NULL);
	if (wrong)
		return wrong;
	/* A pool drops its files in order, so the host dropped the first before the second. */
	WANT(!gpu_attach(&me, XMEM_ATTACH_READERS, &behind));
	WANT(!gpu_detach(&me, request.slot[0]) && !gpu_detach(&me, behind.slot[0]));
	WANT(EVENTUALLY(gpu_number("files") == 1) && gpu_set("gate", "1"));
	kid_kill(&kid);
	WANT(EVENTUALLY(gpu_number("releasing") == 1));
	WANT(EVENTUALLY(state_of(told->client) == XMEM_CLIENT_ZOMBIE));
	WANT(EVENTUALLY(in_quarantine(told->client)));
	WANT(gpu_query(&me, request.payload) == -EBUSY);
	WANT(gpu_set("gate", "0"));
	WANT(EVENTUALLY(gpu_query(&me, request.payload) == -ENOENT));
	WANT(me.map.pool->payloads_closed == closed + 2);
	WANT(EVENTUALLY(state_of(told->client) == XMEM_CLIENT_NONE));
	kid_reap(&kid);		/* only now, because nothing has waited for it */
	end();
	return NULL;
}

/* ---- quarantine ---- */

static u32 slots[2];		/* one with a GPU pointer, one without */
static u64 tokens[2];

/* A process with both slots, and with a file whose release can be late. */
static const char *live_as_holder(void *unused)
{
	u32 *hold;

	WANT(gpu_file() >= 0 && !gpu_start(&me, XMEM_ROLE_READER));
	told->client = me.join.client;
	WANT(!xm_get(&me.map, me.join.client, tokens[0]));
	WANT(!xm_get(&me.map, me.join.client, tokens[1]));
	hold = xm_hold(&me.map, me.join.client, slots[0]);
	xm_store(hold, xm_load(hold) | XM_HOLD_DEVICE);
	return NULL;
}

static const char *begin_quarantine(struct kid *kid, const char *(*live)(void *), void *argument)
{
	struct xmem_attach_request request;
	const char *wrong = begin(XMEM_ROLE_WRITER);
	int i;

	if (wrong)
		return wrong;
	for (i = 0; i < 2; i++) {
		WANT(!gpu_attach(&me, XMEM_ATTACH_READERS, &request));
		slots[i] = request.slot[0];
		WANT(!make_live(slots[i], &tokens[i]));
	}
	wrong = kid_start(kid, live, argument);
	if (wrong)
		return wrong;
	WANT(argument || (!comes_back(slots[0]) && !comes_back(slots[1])));
	return NULL;
}

/* The client has ended, and its process has not exited. */
static const char *check_quarantine(void)
{
	WANT(EVENTUALLY(state_of(told->client) == XMEM_CLIENT_ZOMBIE));
	WANT(EVENTUALLY(comes_back(slots[1])));
	WANT(EVENTUALLY(in_quarantine(told->client)) && !comes_back(slots[0]));
	return NULL;
}

static const char *check_quarantine_over(void)
{
	WANT(EVENTUALLY(comes_back(slots[0])));
	WANT(EVENTUALLY(state_of(told->client) == XMEM_CLIENT_NONE));
	return NULL;
}

#define LONG_NS		100000000000ULL		/* only a lost wake-up takes so long */

static const char *holder_is_killed(void)
{
	struct xmem_wait_request wait = { .size = sizeof(wait), .kind = XMEM_WAIT_SLOTS };
	struct kid kid;
	const char *wrong = begin_quarantine(&kid, live_as_holder, NULL);

	if (wrong)
		return wrong;
	WANT(gpu_set("gate", "1"));
	kid_kill(&kid);
	wrong = check_quarantine();
	if (wrong)
		return wrong;
	wait.client = me.join.client;
	WANT(!raw_wait(&me, XMEM_OP_ARM, &wait));
	WANT(gpu_set("gate", "0"));
	wait.deadline_ns = raw_now_ns() + LONG_NS;
	WANT(!raw_wait(&me, XMEM_OP_WAIT, &wait));
	wrong = check_quarantine_over();
	kid_reap(&kid);
	end();
	return wrong;
}

static const char *live_without_client(void *unused)
{
	const char *wrong = live_as_holder(NULL);

	if (wrong)
		return wrong;
	raw_end(&me);
	return NULL;
}

static const char *process_outlives_its_client(void)
{
	struct kid kid;
	const char *wrong = begin_quarantine(&kid, live_without_client, told);

	if (!wrong)
		wrong = check_quarantine();
	if (wrong)
		return wrong;
	kid_go_on(&kid);	/* it exits */
	wrong = check_quarantine_over();
	kid_reap(&kid);
	end();
	return wrong;
}

/* The thread that joined may be the first one to exit. */
static void *other_thread(void *unused)
{
	raw_end(&me);
	kid_pause();
	kid_pause();
	_exit(0);
}

static const char *live_on_in_a_thread(void *unused)
{
	const char *wrong = live_as_holder(NULL);
	pthread_t thread;

	if (wrong)
		return wrong;
	WANT(!pthread_create(&thread, NULL, other_thread, NULL));
	pthread_exit(NULL);
}

static bool main_thread_is_dead(pid_t pid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (file)
		fclose(file);
	return state == 'Z';
}

static const char *thread_outlives_the_first(void)
{
	struct kid kid;
	const char *wrong = begin_quarantine(&kid, live_on_in_a_thread, told);

	if (wrong)
		return wrong;
	WANT(EVENTUALLY(main_thread_is_dead(kid.pid)));
	wrong = check_quarantine();
	kid_go_on(&kid);
	if (!wrong)
		wrong = kid_ready(&kid);
	if (!wrong)
		wrong = check_quarantine();
	if (wrong)
		return wrong;
	kid_go_on(&kid);
	wrong = check_quarantine_over();
	kid_reap(&kid);
	end();
	return wrong;
}

static const char *live_as_another_program(void *unused)
{
	const char *wrong = live_as_holder(NULL);

	if (wrong)
		return wrong;
	kid_pause();
	execl("/bin/sleep", "sleep", "1000", NULL);
	return "exec";
}

static const char *exec_does_not_end_it(void)
{
	struct kid kid;
	const char *wrong = begin_quarantine(&kid, live_as_another_program, NULL);

	if (wrong)
		return wrong;
	kid_go_on(&kid);
	wrong = check_quarantine();
	if (wrong)
		return wrong;
	kid_kill(&kid);
	wrong = check_quarantine_over();
	kid_reap(&kid);
	end();
	return wrong;
}

/* Then there is nothing left to wait for, and the process may exit at any time. */
static const char *pool_goes_before_the_process(void)
{
	struct kid kid;
	const char *wrong = begin_quarantine(&kid, live_without_client, told);

	if (!wrong)
		wrong = check_quarantine();
	if (wrong)
		return wrong;
	end();
	WANT(!raw_pool_exists(GPU_NAME) && !raw_pools_shown(0));
	WANT(EVENTUALLY(gpu_number("files") == 1));	/* the kid's own file */
	kid_go_on(&kid);
	kid_reap(&kid);
	return NULL;
}

/* ---- ready words ---- */

/* An owner whose GPU writes a ready word as late as possible. */
static const char *live_with_a_stream(void *unused)
{
	struct xmem_test_gpu_late late = { .value = 7 };
	int gpu = gpu_file();

	WANT(gpu >= 0 && !gpu_start(&me, XMEM_ROLE_WRITER));
	told->client = me.join.client;
	WANT(!gpu_attach(&me, XMEM_ATTACH_READERS, &told->file));
	told->slot = told->file.slot[0];
	WANT(!make_live(told->slot, &told->token));
	xm_metadata(&me.map, told->slot)->order_kind = XMEM_ORDER_READY;
	xm_metadata(&me.map, told->slot)->order_value = told->value;
	late.address = (u64)(uintptr_t)xm_ready_word(&me.map, told->slot);
	WANT(!ioctl(gpu, XMEM_TEST_GPU_WRITE_LATE, &late));
	return NULL;
}

/* Keeps the word's present page, as a GPU that waits for the word does. */
static const char *pin_page(const void *word, int *pipe_fd, size_t *offset)
{
	struct iovec page = { .iov_len = RAW_PAGE };
	int ends[2];

	*offset = (uintptr_t)word % RAW_PAGE;
	page.iov_base = (void *)((uintptr_t)word - *offset);
	WANT(*(volatile u64 *)word == 0 && !pipe2(ends, O_CLOEXEC));
	WANT(vmsplice(ends[1], &page, 1, 0) == RAW_PAGE);
	close(ends[1]);
	*pipe_fd = ends[0];
	return NULL;
}

/* The GPU writes 7. @value: the value that the contents need. @end: the word's last value. */
static const char *late_word(u64 value, u64 end_value)
{
	struct kid kid;
	const char *wrong = begin(XMEM_ROLE_READER);
	char page[RAW_PAGE];
	size_t offset = 0;
	int pinned = -1;
	u64 *word;

	told->value = value;
	if (!wrong)
		wrong = kid_start(&kid, live_with_a_stream, NULL);
	if (wrong)
		return wrong;
	WANT(!xm_get(&me.map, me.join.client, told->token));
	word = xm_ready_word(&me.map, told->slot);
	wrong = pin_page(word, &pinned, &offset);
	if (wrong)
		return wrong;
	WANT(gpu_set("gate", "1"));
	kid_kill(&kid);
	WANT(EVENTUALLY(state_of(told->client) == XMEM_CLIENT_ZOMBIE));
	/* By now the reader sees a copy, which no GPU writes. */
	WANT(xm_load(word) == 0);
	WANT(EVENTUALLY(in_quarantine(told->client)));
	WANT(gpu_set("gate", "0"));
	WANT(EVENTUALLY(state_of(told->client) == XMEM_CLIENT_NONE));
	WANT(read(pinned, page, RAW_PAGE) == RAW_PAGE);
	WANT(*(u64 *)(page + offset) == end_value && xm_load(word) == end_value);
	close(pinned);
	kid_reap(&kid);
	end();
	return NULL;
}

static const char *ready_words_end(void)
{
	return late_word(8, XMEM_READY_ENDED);
}

/* Contents that a dead owner's GPU has finished get no ENDED, not even in the copied page. */
static const char *late_contents_are_complete(void)
{
	return late_word(7, XMEM_READY_OVER);
}

/* ---- at any moment ---- */

static const char *live_until_killed(void *unused)
{
	struct xmem_attach_request request;
	u32 *hold;

	kid_pause();
	for (;;) {
		WANT(!gpu_start(&me, XMEM_ROLE_WRITER));
		hold = xm_hold(&me.map, me.join.client, slots[0]);
		WANT(gpu_open(&me, told->payload) >= 0);
		WANT(!xm_get(&me.map, me.join.client, tokens[0]));
		xm_store(hold, xm_load(hold) | XM_HOLD_DEVICE);
		WANT(!gpu_attach(&me, XMEM_ATTACH_READERS, &request));
		WANT(!gpu_detach(&me, request.slot[0]));
		WANT(!gpu_close(&me, told->payload));
		xm_put(&me.map, me.join.client, slots[0]);
		raw_end(&me);
	}
}

#define KILLS	40

static const char *killed_at_any_moment(void)
{
	const char *wrong = begin(XMEM_ROLE_WRITER);
	struct xmem_attach_request request;
	struct kid kid;
	int i;

	WANT(!wrong && !gpu_attach(&me, XMEM_ATTACH_READERS, &request));
	told->payload = request.payload;
	slots[0] = request.slot[0];
	WANT(!make_live(slots[0], &tokens[0]) && gpu_set("release_ms", "1"));
	srand(1);
	for (i = 0; i < KILLS && !wrong; i++) {
		wrong = kid_start(&kid, live_until_killed, NULL);
		if (wrong)
			break;
		kid_go_on(&kid);
		usleep(rand() % 20000);
		kid_kill(&kid);
		kid_reap(&kid);
	}
	if (wrong)
		return wrong;
	WANT(EVENTUALLY(comes_back(slots[0])));
	WANT(EVENTUALLY(gpu_number("files") == 1));
	end();
	WANT(gpu_set("release_ms", "20"));
	return NULL;
}

const struct gpu_test gpu_ends_tests[] = {
	{ "owner dies first", owner_dies_first },
	{ "owner leaves in order", owner_leaves_in_order },
	{ "opener is killed", opener_is_killed },
	{ "holder is killed", holder_is_killed },
	{ "process outlives its client", process_outlives_its_client },
	{ "thread outlives the first", thread_outlives_the_first },
	{ "exec does not end it", exec_does_not_end_it },
	{ "pool goes before the process", pool_goes_before_the_process },
	{ "ready words end", ready_words_end },
	{ "late contents are complete", late_contents_are_complete },
	{ "killed at any moment", killed_at_any_moment },
	{ NULL, NULL },
};
