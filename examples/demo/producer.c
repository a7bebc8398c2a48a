/* SPDX-License-Identifier: MIT */
/*
 * demo-producer: decodes a video into a pool of 8 buffers and publishes every
 * frame. ffmpeg's pipe is read straight into the buffer that will be published;
 * with -g the buffers are on a GPU, to which a stream copies each frame.
 *
 * It keeps two decoded frames back, so that it knows the last ones. They are published when the
 * director says so, and then the producer dies with a frame half written. A video of less than 250
 * frames is decoded again from its start. If it is so short that starting ffmpeg would take most of
 * the time, ffmpeg itself repeats it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control.h"
#include "frame.h"
#include "gpu.h"
#include "gpu_frame.h"
#include "video.h"
#include "xmem/cuda.h"
#include "xmem/stream.h"

#define BUFFERS		8
#define AHEAD		2
#define FRAMES_LEAST	250
#define KEEP_BYTES	(256ull << 20)	/* of frames, at most, that ffmpeg repeats */
#define ACQUIRE_NS	(60LL * 1000 * 1000 * 1000)	/* by then something is wrong */

static const char *path;
static int control = -1;
static bool on_gpu;
static struct video video;
static char why[VIDEO_TEXT];
static struct xmem_pool *pool;
static struct xmem_buffer *ahead[AHEAD];
static uint64_t decoded;
static uint64_t published;
static unsigned int passes;		/* times that the video was opened */
static uint64_t pass_frames;		/* decoded since then */
static uint64_t video_frames;		/* of the video; 0: not known yet */

static void say(uint32_t kind, uint32_t value)
{
	struct message message = {
		.kind = kind, .value = value, .frames = published, .passed = published,
	};

	control_say(control, &message);
}

/* Start of the video; all passes must have pictures of the same size. */
static void open_video(void)
{
	int width = video.width, height = video.height;
	uint64_t keep = video_frames, times = keep ? (FRAMES_LEAST + keep - 1) / keep : 0;

	if (times < 2 || keep * frame_bytes(width, height) > KEEP_BYTES)
		keep = 0;
	if (!video_open(&video, path, keep, times, why))
		control_fail(control, "%s: %s", path, why);
	if (passes++ && (video.width != width || video.height != height))
		control_fail(control, "%s: it has changed meanwhile", path);
	pass_frames = 0;
	if (!frame_bytes(video.width, video.height))
		control_fail(control, "%s: pictures of %d x %d", path, video.width, video.height);
}

static void close_video(void)
{
	int width = video.width, height = video.height;

	video_close(&video);
	video.width = width;
	video.height = height;
}

/* Consumers are readers of the pool. On a GPU they could also write, so they must be trusted. */
static void make_buffers(size_t bytes)
{
	const struct xmem_preallocate_options options = {
		.size = sizeof(options), .device_id = GPU_DEVICE,
		.flags = XMEM_MEMORY_CUDA | XMEM_MEMORY_READERS,
	};

	if (on_gpu && !gpu_open())
		control_fail(control, "cannot use the GPU: %s", gpu_why());
	if (xmem_preallocate(pool, bytes, BUFFERS, on_gpu ? &options : NULL))
		control_fail_xmem(control, "cannot make the buffers");
}

static void open_pool(const char *name, int64_t wait_bound_ns)
{
	struct xmem_pool_options options = {
		.size = sizeof(options),
		.flags = XMEM_OPEN_WRITER | (control < 0 ? 0 : XMEM_OPEN_EXISTING),
		.wait_bound_ns = wait_bound_ns,
		.label = "producer",
	};

	pool = xmem_pool_open(name, &options);
	if (!pool)
		control_fail_xmem(control, "cannot join the pool");
	make_buffers(frame_bytes(video.width, video.height));
}

static struct xmem_buffer *acquire(void)
{
	size_t bytes = frame_bytes(video.width, video.height);
	struct xmem_buffer *buffer;

	do
		buffer = on_gpu ? xmem_acquire_cuda(pool, bytes, GPU_DEVICE, ACQUIRE_NS) :
				  xmem_acquire(pool, bytes, ACQUIRE_NS);
	while (!buffer && xmem_peek_last_error(NULL) == -EINTR);
	if (!buffer)
		control_fail_xmem(control, "cannot acquire a buffer");
	return buffer;
}

/*
 * Read @bytes of the next frame into a buffer, or into memory from which they are uploaded when
 * they are published. Returns their address.
 */
static const uint8_t *fill(struct xmem_buffer *buffer, size_t bytes)
{
	uint8_t *data = on_gpu ? gpu_frame_stage(control, bytes) : xmem_data_mut(buffer);

	if (!data)
		control_fail_xmem(control, "cannot write a buffer");
	if (!video_read(&video, data, bytes, why))
		control_fail(control, "%s: %s", path, why);
	return data;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void publish_oldest(void)
{
	struct xmem_publish_options options = { .size = sizeof(options), .timestamp_ns = now_ns() };
	struct xmem_buffer *buffer = ahead[0];
	int i;

	for (i = 0; i + 1 < AHEAD; i++)
		ahead[i] = ahead[i + 1];
	ahead[AHEAD - 1] = NULL;
	if (on_gpu)
		gpu_frame_upload(control, buffer);
	options.stream = on_gpu ? gpu_stream() : NULL;
	options.length = frame_bytes(video.width, video.height);	/* a buffer may be larger */
	if (xmem_publish(buffer, &options, NULL))
		control_fail_xmem(control, "cannot publish");
	published++;
	say(SAY_FRAME, 0);
	if (control_told(control) == TELL_PAUSE)
		while (control_wait(control) != TELL_GO)
			;
}

/*
 * Read the next frame of this pass into a buffer. If that makes one buffer too
 * many, publish the oldest. false: the pass has no more frames.
 */
static bool one_frame(void)
{
	struct xmem_buffer *buffer;
	const uint8_t *data;
	int i, next = video_next(&video, why);

	if (next < 0)
		control_fail(control, "%s: %s", path, why);
	if (!next)
		return false;
	if (ahead[AHEAD - 1])
		publish_oldest();
	buffer = acquire();
	data = fill(buffer, frame_bytes(video.width, video.height));
	if (!frame_describe(buffer, data, video.width, video.height, decoded++))
		control_fail_xmem(control, "cannot describe a frame");
	for (i = 0; ahead[i]; i++)
		;
	ahead[i] = buffer;
	pass_frames++;
	return true;
}

/* Decode all frames of the video, or as many as are still missing. */
static void one_pass(void)
{
	while (one_frame())
		if (passes > 1 && decoded == FRAMES_LEAST)
			return;
	if (!pass_frames)
		control_fail(control, "%s: there is no picture in it", path);
	if (passes == 1)
		video_frames = pass_frames;
	close_video();
}

/* Are these enough frames? Asks the director, which may want the video once more. */
static bool enough(void)
{
	uint32_t told;

	if (decoded < FRAMES_LEAST)
		return false;
	if (control < 0)
		return true;
	say(SAY_AT_END, AHEAD);
	do
		told = control_wait(control);
	while (told != TELL_AGAIN && told != TELL_FINISH);
	return told == TELL_FINISH;
}

/* Stop in the middle of a frame, for the director to kill. */
static void write_half_a_frame(void)
{
	struct xmem_buffer *buffer;
	int next;

	if (video.pipe < 0)
		open_video();
	next = video_next(&video, why);
	if (!next) {
		close_video();
		open_video();
		next = video_next(&video, why);
	}
	if (next != 1)
		control_fail(control, "%s: %s", path, next ? why : "there is no picture in it");
	buffer = acquire();
	/*
	 * Frames that are not on the GPU when the process dies are lost: wait until all published
	 * ones are.
	 */
	if (on_gpu && !gpu_finish())
		control_fail(control, "cannot upload: %s", gpu_why());
	fill(buffer, frame_bytes(video.width, video.height) / 2);
	if (on_gpu)
		gpu_frame_upload(control, buffer);
	say(SAY_HALFWAY, 0);
	for (;;)
		control_wait(control);		/* ends the process if the director dies */
}

int main(int argc, char **argv)
{
	on_gpu = argc > 1 && !strcmp(argv[1], "-g");
	argc -= on_gpu;
	argv += on_gpu;
	if (argc < 3) {
		fprintf(stderr, "usage: demo-producer [-g] POOL VIDEO [WAIT-MS [SOCKET]]\n");
		return 2;
	}
	path = argv[2];
	video = (struct video){ .pid = -1, .pipe = -1, .complaints = -1 };
	control = control_open(argc > 4 ? argv[4] : NULL);
	open_video();
	open_pool(argv[1], (argc > 3 ? atoll(argv[3]) : 200) * 1000000);
	say(SAY_READY, (uint32_t)xmem_pool_client(pool));
	while (control >= 0 && control_wait(control) != TELL_GO)
		;
	do {
		if (video.pipe < 0)
			open_video();
		one_pass();
	} while (!enough());
	while (ahead[0])
		publish_oldest();
	if (control >= 0)
		write_half_a_frame();
	video_close(&video);
	xmem_pool_close(pool);
	return 0;
}
