// SPDX-License-Identifier: MIT
/*
 * Memory that others have open when its pool is closed, that shares a block, or that the driver
 * does not close: which process has it, when it is freed or given back, and in which thread.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/cuda/own.h"
#include "work.h"

#define BLOCK	(2 << 20)
#define BYTES	100000
#define FLAGS	(XMEM_MEMORY_LEGACY | XMEM_MEMORY_READERS)

/* ---- a reader in a process of its own ---- */

enum order { OPEN_POOL = 1, LOOK, RELEASE, STAT, LEAVE };
#define MOST	4

static void obey(void *name)
{
	struct xmem_buffer *buffer[MOST];
	struct xmem_pool *pool = NULL;
	unsigned int count = 0, next = 0;
	uint64_t order;

	while ((order = hear_parent()) != LEAVE) {
		switch (order) {
		case OPEN_POOL:
			pool = OPEN(name, .flags = 0);
			break;
		case LOOK:
			CHECK(count < MOST);
			buffer[count] = xmem_get(pool, hear_parent());
			CHECK(buffer[count]);
			CHECK(xmem_cuda_ptr(buffer[count++]));
			break;
		case RELEASE:		/* the oldest */
			xmem_release(buffer[next++]);
			break;
		case STAT:
			stat_of(pool);
			break;
		}
		tell_parent(order);
	}
	while (next < count)
		xmem_release(buffer[next++]);
	xmem_pool_close(pool);
	no_violations();
}

static void order(struct child *child, enum order what)
{
	tell(child, what);
	SAME(hear(child), what);
}

static void let_look(struct child *child, uint64_t token)
{
	tell(child, LOOK);
	tell(child, token);
	SAME(hear(child), LOOK);
}

static void leave(struct child *child)
{
	tell(child, LEAVE);
	finish_child(child);
}

/* ---- the owner of what the reader reads ---- */

static unsigned int done;

static void note_done(void *user)
{
	CHECK(user == &done);
	done++;
}

/* A pool with memory that the library has made, and memory of the program. */
struct scene {
	char name[32];
	struct child *reader;
	struct xmem_pool *pool, *other;		/* any other pool */
	CUdeviceptr mine;
	struct xmem_buffer *kept[2];
	uint64_t token[2];
	struct xl_gpu_scope scope;
};

static struct xmem_buffer *attach(struct xmem_pool *pool, CUdeviceptr at, size_t bytes,
				  void (*call)(void *), void *user, uint64_t *ret_token)
{
	const struct xmem_publish_options keep = {
		.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
	};
	struct xmem_buffer *buffer;

	buffer = xmem_attach_cuda(pool, (void *)at, bytes, XMEM_MEMORY_READERS, call, user);
	if (!buffer)
		WORKED(xmem_peek_last_error(NULL));
	WORKED(xmem_publish(buffer, &keep, ret_token));
	return buffer;
}

/* @clients: how many can join. */
static void begin(struct scene *scene, unsigned int clients)
{
	*scene = (struct scene){ .pool = NULL };
	snprintf(scene->name, sizeof(scene->name), "%s", new_name());
	scene->reader = spawn(obey, scene->name);
	scene->other = OPEN(new_name(), .flags = 0);
	scene->pool = OPEN(scene->name, .flags = XMEM_OPEN_WRITER, .clients = clients);
	order(scene->reader, OPEN_POOL);
	WORKED(make_on_gpu(scene->pool, BYTES, 1, 0, FLAGS));
	scene->token[0] = cuda_publish(scene->pool, BYTES, 5, &scene->kept[0]);
	WORKED(xl_gpu_enter(xl_gpu(0), &scene->scope));
	must(xl_cuda()->mem_alloc(&scene->mine, BLOCK));
	scene->kept[1] = attach(scene->pool, scene->mine, BYTES, note_done, &done,
				&scene->token[1]);
	USED(2 * BLOCK);
}

static void look(struct scene *scene)
{
	let_look(scene->reader, scene->token[0]);
	let_look(scene->reader, scene->token[1]);
}

static void close_pool(struct scene *scene)
{
	xmem_release(scene->kept[0]);
	xmem_release(scene->kept[1]);
	xmem_pool_close(scene->pool);
}

static void nothing_has_gone(void)
{
	SAME(done, 0);
	USED(2 * BLOCK);
}

static void stop_looking(struct scene *scene)
{
	order(scene->reader, RELEASE);
	order(scene->reader, RELEASE);
}

/* Any call that may take time finds out that no client has it open. */
static void end(struct scene *scene)
{
	EVENTUALLY((order(scene->reader, STAT), stat_of(scene->other), done));
	SAME(done, 1);
	EVENTUALLY((stat_of(scene->other), gpu_uses(BLOCK)));
	must(xl_cuda()->mem_free(scene->mine));
	xl_gpu_leave(&scene->scope);
	leave(scene->reader);
	xmem_pool_close(scene->other);
	no_violations();
}

/* ---- a pool is closed where its memory is hard to check ---- */

TEST(CUDA_a_full_pool_gives_back_at_its_close_what_nobody_has_open)
{
	struct scene scene;

	begin(&scene, 2);
	close_pool(&scene);
	SAME(done, 1);
	USED(BLOCK);
	end(&scene);
}

TEST(CUDA_memory_of_a_full_pool_waits_for_those_who_have_it_open)
{
	struct scene scene;

	begin(&scene, 2);
	look(&scene);
	close_pool(&scene);
	nothing_has_gone();
	stop_looking(&scene);
	end(&scene);
}

TEST(CUDA_a_pool_is_closed_without_a_descriptor_left)
{
	struct rlimit before, none;
	struct scene scene;

	begin(&scene, 0);
	look(&scene);
	SAME(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 3, before.rlim_max };
	SAME(setrlimit(RLIMIT_NOFILE, &none), 0);
	close_pool(&scene);
	SAME(setrlimit(RLIMIT_NOFILE, &before), 0);
	nothing_has_gone();
	stop_looking(&scene);
	end(&scene);
}

/* The last client ends in between, and the pool with it. */
TEST(CUDA_a_pool_that_has_ended_meanwhile_is_asked_no_more)
{
	struct rlimit before, none;
	struct scene scene;

	begin(&scene, 0);
	look(&scene);
	SAME(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 3, before.rlim_max };
	SAME(setrlimit(RLIMIT_NOFILE, &none), 0);
	close_pool(&scene);
	SAME(setrlimit(RLIMIT_NOFILE, &before), 0);
	nothing_has_gone();
	tell(scene.reader, LEAVE);
	finish_child(scene.reader);
	scene.reader = spawn(obey, scene.name);
	order(scene.reader, OPEN_POOL);	/* another pool of that name */
	end(&scene);
}

static void stopped(bool looks)
{
	struct scene scene;
	pid_t daemon;

	daemon_only("the module is never stopped");
	use_own_daemon();
	begin(&scene, 0);
	if (looks)
		look(&scene);
	daemon = stop_daemon();
	close_pool(&scene);
	nothing_has_gone();
	stat_of(scene.other);
	nothing_has_gone();
	continue_daemon(daemon);
	if (looks) {
		order(scene.reader, STAT);
		stat_of(scene.other);
		nothing_has_gone();
		stop_looking(&scene);
	}
	end(&scene);
}

TEST(CUDA_a_pool_that_is_closed_while_xmemd_is_stopped_gives_back_afterwards)
{
	stopped(false);
}

TEST(CUDA_what_others_have_open_stays_when_xmemd_was_stopped)
{
	stopped(true);
}

/* ---- two attachments in one block of the driver ---- */

static unsigned int done_of[2];

static void note_done_of(void *which)
{
	++*(unsigned int *)which;
}

/* Does the driver report blocks, or each allocation by itself? */
static bool is_one_block(const CUdeviceptr *at)
{
	CUdeviceptr base[2];
	size_t bytes;
	int i;

	for (i = 0; i < 2; i++)
		must(xl_cuda()->mem_get_address_range(&base[i], &bytes, at[i]));
	return base[0] == base[1];
}

TEST(CUDA_attachments_that_share_a_block_are_given_back_together)
{
	const char *name = new_name();
	struct child *reader = spawn(obey, (void *)name);
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xl_gpu_scope scope;
	struct xmem_buffer *buffer[2];
	CUdeviceptr at[2];
	uint64_t token[2];
	int i;

	order(reader, OPEN_POOL);
	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	for (i = 0; i < 2; i++)
		must(xl_cuda()->mem_alloc(&at[i], BYTES));
	USED(BLOCK);
	for (i = 0; i < 2; i++)
		buffer[i] = attach(pool, at[i], BYTES, note_done_of, &done_of[i], &token[i]);
	let_look(reader, token[1]);
	/*
	 * The first one has never been opened, but a process that has the second one open has both.
	 */
	xmem_release(buffer[0]);
	EVENTUALLY(stat_of(pool).attached == 1);
	SAME(stat_of(pool).bytes_closing, 0);
	stat_of(pool);
	SAME(done_of[0], !is_one_block(at));
	SAME(done_of[1], 0);
	xmem_release(buffer[1]);
	order(reader, RELEASE);
	EVENTUALLY((order(reader, STAT), stat_of(pool), done_of[1]));
	SAME(done_of[0], 1);
	SAME(done_of[1], 1);
	for (i = 0; i < 2; i++)
		must(xl_cuda()->mem_free(at[i]));
	xl_gpu_leave(&scope);
	leave(reader);
	xmem_pool_close(pool);
	no_violations();
}

/* ---- the driver does not close it ---- */

static void fail_and_obey(void *name)
{
	fake_only("it fails on demand");
	driver_fails("cuIpcCloseMemHandle:1:999");
	obey(name);
}

TEST(CUDA_what_the_driver_does_not_close_stays_open_until_the_process_ends)
{
	const char *name = new_name();
	struct child *reader = spawn(fail_and_obey, (void *)name);
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *kept;
	uint64_t token;

	order(reader, OPEN_POOL);
	WORKED(make_on_gpu(pool, BYTES, 1, 0, FLAGS));
	token = cuda_publish(pool, BYTES, 5, &kept);
	let_look(reader, token);
	xmem_release(kept);
	order(reader, RELEASE);
	SAME(trim_pool(pool, 0), BLOCK);
	order(reader, STAT);
	order(reader, STAT);
	SAME(stat_of(pool).bytes_closing, BLOCK);
	USED(BLOCK);
	kill_child(reader);
	EVENTUALLY((stat_of(pool), gpu_uses(0)));
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_what_the_driver_does_not_free_is_not_counted_as_given_back)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);

	fake_only("it fails on demand");
	WORKED(make_on_gpu(pool, BYTES, 1, 0, FLAGS));
	files_may_stay = true;		/* the memory is a file in the fake driver */
	driver_fails("cuMemFree:1:999");
	SAME(trim_pool(pool, 0), 0);
	driver_fails(NULL);
	USED(BLOCK);
	SAME(trim_pool(pool, 0), 0);
	xmem_pool_close(pool);
}

/* ---- a pool is closed while streams will drop handles ---- */

/* The function frees the memory that is given back: any thread has the context for that. */
static void free_it(void *at)
{
	must(xl_cuda()->mem_free((CUdeviceptr)at));
	__atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
}

static struct xmem_buffer *attach_new(struct xmem_pool *pool, void (*call)(void *))
{
	CUdeviceptr at;
	uint64_t token;

	must(xl_cuda()->mem_alloc(&at, BLOCK));
	return attach(pool, at, BYTES, call, (void *)at, &token);
}

static bool is_done(void)
{
	return __atomic_load_n(&done, __ATOMIC_SEQ_CST);
}

TEST(CUDA_memory_is_freed_when_a_stream_ends_its_pool)
{
	unsigned int files = own_files();
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer;
	struct work work;

	begin_work(&work);
	buffer = attach_new(pool, free_it);
	close_gate(&work);
	WORKED(xmem_release_on(buffer, work.stream));
	xmem_pool_close(pool);
	CHECK(!is_done());
	open_gate(&work);
	EVENTUALLY(is_done());
	USED(0);
	EVENTUALLY(own_files() == files);
	no_violations();
}

static void *settle(void *pool)
{
	CUcontext context = NULL, before;

	must(xl_cuda()->ctx_get_current(&context));
	CHECK(!context || on_hip());
	before = context;
	EVENTUALLY((stat_of(pool), is_done()));
	must(xl_cuda()->ctx_get_current(&context));
	CHECK(context == before);
	return NULL;
}

TEST(CUDA_memory_is_freed_by_a_thread_without_a_context)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer;
	struct work work;
	pthread_t thread;

	begin_work(&work);
	buffer = attach_new(pool, free_it);
	close_gate(&work);
	WORKED(xmem_release_on(buffer, work.stream));
	open_gate(&work);
	must(xl_cuda()->stream_synchronize(work.stream));
	SAME(pthread_create(&thread, NULL, settle, pool), 0);
	SAME(pthread_join(thread, NULL), 0);
	USED(0);
	xmem_pool_close(pool);
	no_violations();
}

static unsigned int opened;

static void *open_it(void *work)
{
	look_again_soon();
	look_again_soon();
	__atomic_store_n(&opened, 1, __ATOMIC_SEQ_CST);
	open_gate(work);
	return NULL;
}

TEST(CUDA_a_close_waits_for_a_stream_that_writes_and_drops)
{
	unsigned int files = own_files();
	struct xmem_pool *pool = cuda_writer(new_name(), 2, WORK_BYTES, 0);
	struct xmem_buffer *buffer, *dropped;
	struct work work;
	pthread_t thread;

	begin_work(&work);
	close_gate(&work);
	cuda_publish(pool, WORK_BYTES, 1, &dropped);
	buffer = cuda_acquire(pool, WORK_BYTES);
	fill_on(buffer, 2, &work);
	WORKED(publish_on(buffer, work.stream));
	WORKED(xmem_release_on(dropped, work.stream));
	SAME(pthread_create(&thread, NULL, open_it, &work), 0);
	xmem_pool_close(pool);
	CHECK(__atomic_load_n(&opened, __ATOMIC_SEQ_CST));
	SAME(pthread_join(thread, NULL), 0);
	EVENTUALLY(gpu_uses(0));
	EVENTUALLY(own_files() == files);	/* the pool has a thread of its own for that */
	no_violations();
}

/* ---- the process ends meanwhile ---- */

static unsigned int begun, finished;

/* The first function that is called runs when exit has begun. */
static void wait_for_exit(void *at)
{
	__atomic_fetch_add(&begun, 1, __ATOMIC_SEQ_CST);
	EVENTUALLY(xm_load(&xl_own_stopped));
	must(xl_cuda()->mem_free((CUdeviceptr)at));
	__atomic_fetch_add(&finished, 1, __ATOMIC_SEQ_CST);
}

/* It runs after the library's own end. */
static void check_last(void)
{
	unsigned int calls = __atomic_load_n(&begun, __ATOMIC_SEQ_CST);

	_exit(calls == 1 && __atomic_load_n(&finished, __ATOMIC_SEQ_CST) == 1 ? 0 : 2);
}

static void exit_under_way(void *name)
{
	struct xmem_buffer *buffer[2];
	struct xmem_pool *pool;
	struct work work;
	int i;

	SAME(atexit(check_last), 0);
	pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	begin_work(&work);
	for (i = 0; i < 2; i++)
		buffer[i] = attach_new(pool, wait_for_exit);
	close_gate(&work);
	for (i = 0; i < 2; i++)
		WORKED(xmem_release_on(buffer[i], work.stream));
	xmem_pool_close(pool);
	open_gate(&work);
	EVENTUALLY(__atomic_load_n(&begun, __ATOMIC_SEQ_CST));
	exit(1);
}

TEST(CUDA_no_memory_is_given_back_by_a_thread_of_ours_once_exit_has_begun)
{
	finish_child(spawn(exit_under_way, (void *)new_name()));
}

/* ---- memory for another pool ---- */

/*
 * A GPU of 64 MiB. The first pool's memory by handle is given back, a reader has closed it since,
 * and no call of the first pool has freed it yet.
 */
TEST(CUDA_what_another_pool_of_the_process_can_free_makes_room)
{
	struct xmem_pool *pool, *other;
	struct xmem_buffer *kept;
	struct child *reader;
	const char *name = new_name();
	uint64_t token;

	setenv("FAKECUDA_MEMORY_MIB", "64", 1);
	reader = spawn(obey, (void *)name);
	fake_only("a real GPU is not filled");
	pool = cuda_writer(name, 1, 32 << 20, FLAGS);
	token = cuda_publish(pool, BYTES, 1, &kept);
	order(reader, OPEN_POOL);
	let_look(reader, token);
	xmem_release(kept);
	order(reader, RELEASE);
	CHECK(trim_pool(pool, 0) >= 0);
	USED(32 << 20);			/* the reader still has it open, */
	order(reader, STAT);
	USED(32 << 20);			/* and now nobody */
	other = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	xmem_clear_last_error();
	WORKED(make_on_gpu(other, 16 << 20, 3, 0, 0));
	SAME(xmem_peek_last_error(NULL), 0);
	USED(48 << 20);
	SAME(make_on_gpu(pool, 16 << 20, 2, 0, 0), -ENOMEM);
	SAYS(ENOMEM, "GPU 0 has too little memory left", "which this process has open too, has "
	     "50331648 there");
	leave(reader);
	xmem_pool_close(other);
	xmem_pool_close(pool);
	USED(0);
	no_violations();
}
