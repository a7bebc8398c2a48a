// SPDX-License-Identifier: MIT
/*
 * Scenes for tests of the xmem tool, in which the holders of each slot are known.
 *
 *   cli-scene POOL --waits     a client that waits for a writer
 *   cli-scene POOL [CLIENTS]   a pool for so many clients (8), see below
 *   cli-scene POOL --gpus      a pool with memory on two GPUs, see below
 *   cli-scene POOL --stuck     a publisher cam that waits for its subscriber viewer
 *   cli-scene POOL --stream [LABEL]   a pool with a publisher and a subscriber, see below
 *
 * The processes of the pool are:
 *
 *   cam      owns four buffers: it publishes A, B and C, and is writing a fourth
 *   viewer   follows cam and has received nothing; holds A twice and B once
 *   logger   holds A once, and has mapped its file
 *   cam      also holds A, and has set two references to B aside; no client holds C, which is
 *            in flight to viewer
 *
 * The scene itself is the only client of a pool without a name. It prints a line for each
 * process and each token, then "ready". After a line on its standard input it kills cam and
 * prints "killed". At the end of its standard input it ends with all the others.
 *
 * With GPUs the scene uses the driver's handles, which need no device file:
 *
 *   cam      had a buffer on GPU 1, which viewer has opened and still has open. Then it publishes
 *            A, on the CPU, and B, on GPU 0, and sets two references to B aside
 *   viewer   holds A and B
 *
 * The stream is one process with two clients. "N M K" on its standard input lets cam publish N
 * buffers of 4096 bytes, and viewer receive M, of which it keeps the last K until the next line.
 * Then the stream prints "done". Without K it keeps none. LABEL is that of viewer.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "xmem.h"

enum { A, B, C, TOKENS };

static const char *name;
static uint32_t clients = 8;

/* One of the processes. Its parent writes to `to` and reads from `from`; the process does the
 * reverse. */
struct member {
	pid_t pid;
	int to, from;
};

static void fail(const char *what)
{
	struct xmem_error why = XMEM_INIT(why);

	xmem_peek_last_error(&why);
	fprintf(stderr, "cli-scene: %s: %s\n", what, why.message);
	exit(1);
}

static void tell(int fd, const void *data, size_t bytes)
{
	if (write(fd, data, bytes) != (ssize_t)bytes)
		fail("a process of the scene has ended");
}

static void hear(int fd, void *data, size_t bytes)
{
	if (read(fd, data, bytes) != (ssize_t)bytes)
		fail("a process of the scene has ended");
}

static void tell_done(int fd)
{
	tell(fd, "", 1);
}

static void hear_done(int fd)
{
	char byte;

	hear(fd, &byte, 1);
}

/* ---- the processes ---- */

static struct xmem_pool *join(const char *label, uint32_t flags)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = flags, .slots = 128, .clients = clients,
		.ring_entries = 8, .label = label, .wait_bound_ns = 3600000000000,
	};
	struct xmem_pool *pool = xmem_pool_open(name, &options);

	if (!pool)
		fail(label);
	return pool;
}

static struct xmem_buffer *publish(struct xmem_pool *pool, uint64_t *ret_token)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_buffer *buffer = xmem_acquire(pool, 4096, 0);

	if (!buffer || xmem_publish(buffer, &keep, ret_token))
		fail("publish");
	return buffer;
}

static void cam(int in, int out)
{
	struct xmem_pool *pool = join("cam", XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer[TOKENS];
	uint64_t token[TOKENS];
	int i;

	if (xmem_preallocate(pool, 4096, 4, NULL))
		fail("preallocate");
	tell_done(out);
	hear_done(in);			/* viewer follows */
	for (i = A; i < TOKENS; i++)
		buffer[i] = publish(pool, &token[i]);
	tell(out, token, sizeof(token));
	hear_done(in);			/* the others have their holds */
	if (xmem_set_ref_count(buffer[B], 3, XMEM_FOREVER))
		fail("set_ref_count");
	xmem_release(buffer[B]);	/* one of the three */
	xmem_release(buffer[C]);
	if (!xmem_acquire(pool, 4096, 0))
		fail("acquire");
	tell_done(out);
}

static struct xmem_buffer *get(struct xmem_pool *pool, uint64_t token)
{
	struct xmem_buffer *buffer = xmem_get(pool, token);

	if (!buffer)
		fail("get");
	return buffer;
}

static void viewer(int in, int out)
{
	struct xmem_pool *pool = join("viewer", XMEM_OPEN_EXISTING);
	uint64_t token[TOKENS];

	if (!xmem_subscribe(pool, NULL))
		fail("subscribe");
	tell_done(out);
	hear(in, token, sizeof(token));
	get(pool, token[A]);
	get(pool, token[A]);
	get(pool, token[B]);
	tell_done(out);
}

static void logger(int in, int out)
{
	struct xmem_pool *pool = join("logger", XMEM_OPEN_EXISTING);
	uint64_t token[TOKENS];

	hear(in, token, sizeof(token));
	if (!xmem_data(get(pool, token[A])))	/* this maps the file */
		fail("data");
	tell_done(out);
}

/* ---- the processes with GPUs ---- */

static struct xmem_buffer *publish_cuda(struct xmem_pool *pool, int device, uint64_t *ret_token)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	const struct xmem_preallocate_options on_gpu = {
		.size = sizeof(on_gpu), .device_id = device,
		.flags = XMEM_MEMORY_CUDA | XMEM_MEMORY_LEGACY | XMEM_MEMORY_READERS,
	};
	struct xmem_buffer *buffer;

	if (xmem_preallocate(pool, 100000, 1, &on_gpu))
		fail("preallocate on a GPU");
	buffer = xmem_acquire_cuda(pool, 100000, device, 0);
	if (!buffer || !xmem_cuda_ptr_mut(buffer) || xmem_publish(buffer, &keep, ret_token))
		fail("publish_cuda");
	return buffer;
}

static void cuda_cam(int in, int out)
{
	struct xmem_pool *pool = join("cam", XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer;
	uint64_t token[TOKENS], given;

	buffer = publish_cuda(pool, 1, &token[C]);
	tell(out, token, sizeof(token));
	hear_done(in);			/* viewer has opened it */
	xmem_release(buffer);
	if (xmem_collect(pool, 0, &given) < 0 || given != 2 << 20)
		fail("trim");
	if (xmem_preallocate(pool, 4096, 1, NULL))
		fail("preallocate");
	xmem_release(publish(pool, &token[A]));
	buffer = publish_cuda(pool, 0, &token[B]);
	tell(out, token, sizeof(token));
	hear_done(in);			/* viewer holds both */
	if (xmem_set_ref_count(buffer, 3, XMEM_FOREVER))
		fail("set_ref_count");
	xmem_release(buffer);		/* one of the three */
	tell_done(out);
}

static void cuda_viewer(int in, int out)
{
	struct xmem_pool *pool = join("viewer", XMEM_OPEN_EXISTING);
	struct xmem_buffer *buffer;
	uint64_t token[TOKENS];

	hear(in, token, sizeof(token));
	buffer = get(pool, token[C]);
	if (!xmem_cuda_ptr(buffer))
		fail("cuda_ptr");
	xmem_release(buffer);
	tell_done(out);
	hear(in, token, sizeof(token));
	get(pool, token[A]);
	get(pool, token[B]);
	tell_done(out);
}

/* ---- scenes ---- */

static struct member start(void (*play)(int in, int out))
{
	int to[2], from[2];
	pid_t pid;

	if (pipe(to) || pipe(from))
		fail("pipe");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(to[1]);
		close(from[0]);
		play(to[0], from[1]);
		for (;;)
			pause();
	}
	close(to[0]);		/* so that the end of the process is the end of both pipes */
	close(from[1]);
	return (struct member){ .pid = pid, .to = to[1], .from = from[0] };
}

static void end(struct member *member)
{
	if (!member->pid)
		return;		/* it has been killed */
	kill(member->pid, SIGKILL);
	waitpid(member->pid, NULL, 0);
	member->pid = 0;
}

static struct member c, v, l;
static uint64_t token[TOKENS];

static void set_scene(void)
{
	c = start(cam);
	hear_done(c.from);
	v = start(viewer);
	hear_done(v.from);
	tell_done(c.to);
	hear(c.from, token, sizeof(token));
	tell(v.to, token, sizeof(token));
	hear_done(v.from);
	l = start(logger);
	tell(l.to, token, sizeof(token));
	hear_done(l.from);
	tell_done(c.to);
	hear_done(c.from);
	if (!xmem_pool_open(NULL, NULL))
		fail("a pool without a name");
}

static void set_scene_with_gpus(void)
{
	int i;

	c = start(cuda_cam);
	hear(c.from, token, sizeof(token));
	v = start(cuda_viewer);
	for (i = 0; i < 2; i++) {
		tell(v.to, token, sizeof(token));
		hear_done(v.from);
		tell_done(c.to);
		if (!i)
			hear(c.from, token, sizeof(token));
	}
	hear_done(c.from);
}

/* It runs until it is killed. */
static int wait_for_a_writer(void)
{
	struct xmem_pool *pool = xmem_pool_open(name, NULL);

	if (!pool || !xmem_subscribe(pool, NULL))
		fail("wait for a writer");
	return 0;
}

/* It has published all that viewer lets it publish. It runs until its standard input ends. */
static int stuck(void)
{
	const struct xmem_subscribe_options waits = {
		.size = sizeof(waits), .flags = XMEM_SUBSCRIBE_WAITS,
	};
	struct xmem_pool *cam = join("cam", XMEM_OPEN_WRITER);
	struct xmem_pool *viewer = join("viewer", XMEM_OPEN_EXISTING);
	struct xmem_buffer *buffer;

	if (!xmem_subscribe(viewer, &waits) || xmem_preallocate(cam, 4096, 4, NULL))
		fail("stuck");
	while ((buffer = xmem_acquire(cam, 4096, 0)))
		if (xmem_publish(buffer, NULL, NULL))
			fail("publish");
	puts("ready");
	fflush(stdout);
	return getchar() == EOF ? 0 : 1;
}

/* Receive so many, and keep the last ones until the next call. */
static void take(struct xmem_subscription *follow, unsigned int count, unsigned int keeps)
{
	static struct xmem_buffer *kept[8];
	struct xmem_buffer *buffer;
	unsigned int i;

	for (i = 0; i < 8; i++)
		xmem_release(kept[i]);
	memset(kept, 0, sizeof(kept));
	while (count--) {
		buffer = xmem_receive(follow, 0);
		if (!buffer)
			fail("receive");
		if (count < keeps && count < 8)
			kept[count] = buffer;
		else
			xmem_release(buffer);
	}
}

static int stream(const char *label)
{
	struct xmem_pool *cam = join("cam", XMEM_OPEN_WRITER);
	struct xmem_pool *viewer = join(label, XMEM_OPEN_EXISTING);
	struct xmem_subscription *follow = xmem_subscribe(viewer, NULL);
	unsigned int out, in, keeps;
	uint64_t token;
	char line[64];

	if (!follow || xmem_preallocate(cam, 4096, 16, NULL))
		fail("stream");
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		keeps = 0;
		if (sscanf(line, "%u %u %u", &out, &in, &keeps) < 2)
			return 2;
		while (out--)
			xmem_release(publish(cam, &token));
		take(follow, in, keeps);
		puts("done");
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	bool gpus = argc == 3 && !strcmp(argv[2], "--gpus");
	char line[64];

	if (argc < 2 || argc > 4)
		return 2;
	name = argv[1];
	signal(SIGPIPE, SIG_IGN);
	if (argc > 3 && strcmp(argv[2], "--stream"))
		return 2;
	if (argc == 3 && !strcmp(argv[2], "--waits"))
		return wait_for_a_writer();
	if (argc == 3 && !strcmp(argv[2], "--stuck"))
		return stuck();
	if (argc >= 3 && !strcmp(argv[2], "--stream"))
		return stream(argc == 4 ? argv[3] : "viewer");
	if (argc == 3 && !gpus)
		clients = (uint32_t)strtoul(argv[2], NULL, 10);
	if (gpus)
		set_scene_with_gpus();
	else
		set_scene();
	printf("cam %d\nviewer %d\nlogger %d\n", c.pid, v.pid, l.pid);
	printf("A 0x%016" PRIx64 "\nB 0x%016" PRIx64 "\nC 0x%016" PRIx64 "\nready\n", token[A],
	       token[B], token[C]);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		end(&c);
		puts("killed");
		fflush(stdout);
	}
	end(&v);
	end(&l);
	end(&c);
	return 0;
}
