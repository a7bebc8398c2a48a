// SPDX-License-Identifier: MIT
/*
 * gpu.h says what this is for.
 */
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "gpu.h"

const char *gpu_wrong(const char *file, int line, const char *what)
{
	static char text[400];

	snprintf(text, sizeof(text), "%s:%d: not so: %s", file, line, what);
	return text;
}

/* ---- parameters ---- */

static const char *read_line(const char *path)
{
	static char text[256];
	FILE *file = fopen(path, "re");

	text[0] = 0;
	if (file && fgets(text, sizeof(text), file))
		text[strcspn(text, "\n")] = 0;
	if (file)
		fclose(file);
	return text;
}

static int write_line(const char *path, const char *value)
{
	int file = open(path, O_WRONLY | O_CLOEXEC), err = 0;
	size_t length = strlen(value);

	if (file < 0)
		return -errno;
	if (write(file, value, length) != (ssize_t)length)
		err = -errno;
	close(file);
	return err;
}

static const char *parameter(const char *module, const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module, name);
	return path;
}

long gpu_number(const char *name)
{
	const char *text = read_line(parameter("xmem_test_gpu", name));

	return *text ? strtol(text, NULL, 10) : -1;
}

bool gpu_set(const char *name, const char *value)
{
	return !write_line(parameter("xmem_test_gpu", name), value);
}

int xmem_set(const char *name, const char *value)
{
	return write_line(parameter("xmem", name), value);
}

const char *pool_folder(void)
{
	static char folder[64];
	glob_t found;

	folder[0] = 0;
	if (glob("/sys/class/xmem/pool*", 0, NULL, &found))
		return folder;
	if (found.gl_pathc == 1)
		snprintf(folder, sizeof(folder), "%s", found.gl_pathv[0]);
	globfree(&found);
	return folder;
}

const char *pool_says(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", pool_folder(), name);
	return read_line(path);
}

/* ---- payloads ---- */

int gpu_file(void)
{
	int fd = open(XMEM_TEST_GPU_DEVICE, O_RDWR | O_CLOEXEC);
	u64 bytes = GPU_BYTES;
	int err;

	if (fd < 0)
		return -errno;
	if (!ioctl(fd, XMEM_TEST_GPU_SET_BYTES, &bytes))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

struct xmem_attach_request gpu_attaching(int fd, u32 flags, unsigned int count,
					 unsigned char device, unsigned char name)
{
	struct xmem_attach_request attach = raw_attaching(fd, count);

	attach.flags = XMEM_ATTACH_CUDA | flags;
	attach.bytes = GPU_BYTES;
	memset(attach.device, device, sizeof(attach.device));
	memset(attach.handle, name, sizeof(attach.handle));
	return attach;
}

int gpu_attach(const struct raw *raw, u32 flags, struct xmem_attach_request *attach)
{
	int fd = gpu_file(), err;

	if (fd < 0)
		return fd;
	*attach = gpu_attaching(fd, flags, 1, 1, 0x77);
	err = raw_request(raw, XMEM_IOC_ATTACH, attach);
	close(fd);
	return err;
}

int gpu_detach(const struct raw *raw, u32 slot)
{
	return raw_slot(raw, XMEM_OP_DETACH_FILE, slot);
}

int gpu_ask(const struct raw *raw, u64 payload, u32 flags, struct xmem_payload_request *answer)
{
	*answer = (struct xmem_payload_request){
		.size = sizeof(*answer), .flags = flags, .payload = payload, .fd = -2,
	};
	return raw_request(raw, XMEM_IOC_PAYLOAD, answer);
}

int gpu_open(const struct raw *raw, u64 payload)
{
	struct xmem_payload_request answer;
	int err = gpu_ask(raw, payload, XMEM_PAYLOAD_OPEN, &answer);

	return err ? err - 1 : answer.fd;
}

int gpu_close(const struct raw *raw, u64 payload)
{
	struct xmem_payload_request answer;

	return gpu_ask(raw, payload, XMEM_PAYLOAD_CLOSE, &answer);
}

int gpu_query(const struct raw *raw, u64 payload)
{
	struct xmem_payload_request answer;

	return gpu_ask(raw, payload, 0, &answer);
}

int gpu_start(struct raw *raw, enum xmem_role role)
{
	struct xmem_join_request join = raw_joining(GPU_NAME, role);

	return raw_start(raw, &join);
}

/* ---- other processes ---- */

static int kid_in = -1, kid_out = -1;	/* in a kid */
static struct kid last;			/* in the parent; pid 0: none */

static void kid_run(const char *(*live)(void *), void *argument)
{
	const char *wrong;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	wrong = live(argument);
	if (wrong) {
		dprintf(kid_out, "%s", wrong);
		_exit(1);
	}
	kid_pause();
	_exit(0);
}

const char *kid_start(struct kid *kid, const char *(*live)(void *), void *argument)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return "pipe";
	fflush(stdout);
	kid->pid = fork();
	if (!kid->pid) {
		close(in[1]);
		close(out[0]);
		kid_in = in[0];
		kid_out = out[1];
		kid_run(live, argument);
	}
	close(in[0]);
	close(out[1]);
	kid->in = in[1];
	kid->out = out[0];
	last = *kid;
	return kid->pid < 0 ? "fork" : kid_ready(kid);
}

void kid_wait(void)
{
	char c;

	while (read(kid_in, &c, 1) < 0 && errno == EINTR)
		;
}

void kid_say_ready(void)
{
	if (write(kid_out, "", 1) != 1)
		_exit(1);
}

void kid_pause(void)
{
	kid_say_ready();
	kid_wait();
}

void kid_go_on(const struct kid *kid)
{
	if (write(kid->in, "", 1) != 1)
		perror("kid_go_on");
}

const char *kid_ready(const struct kid *kid)
{
	static char text[500];
	ssize_t n = read(kid->out, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = 0;
	if (n <= 0)
		return "the kid has gone";
	return text[0] ? text : NULL;
}

void kid_kill(struct kid *kid)
{
	kill(kid->pid, SIGKILL);
}

void kid_reap(struct kid *kid)
{
	while (waitpid(kid->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(kid->in);
	close(kid->out);
	last.pid = 0;
}

void kid_forget(void)
{
	if (last.pid <= 0)
		return;
	kid_kill(&last);
	kid_reap(&last);
}
