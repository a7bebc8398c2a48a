/* SPDX-License-Identifier: MIT */
/*
 * The life of a consumer. Every frame is used in place: no copy is made. Its checksum is verified
 * when it is received and again just before it is released, because xmem promises that nobody
 * writes it in between. That also holds for a frame on a GPU, but this process works on a copy that
 * its stream has made; a stage passes the frame on without looking at it, and needs no GPU.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer.h"
#include "control.h"
#include "gpu_frame.h"

#define LOOK_UP_NS	(20 * 1000 * 1000)	/* look for messages of the director this often */
#define COME_NS		(30LL * 1000 * 1000 * 1000)

struct life {
	const struct consumer *consumer;
	const char *folder;
	int control;
	struct xmem_subscription *subscription;
	struct frame previous;
	struct message count;		/* frames, lost, corrupt, passed */
	uint32_t publisher;		/* the number of the last frame */
	uint64_t first;			/* sequence of the first publication that this process
					 * can receive */
	bool hold;			/* the director's order: stand still while holding the
					 * next frame */
};

static void life_say(struct life *life, uint32_t kind, uint32_t value)
{
	life->count.kind = kind;
	life->count.value = value;
	control_say(life->control, &life->count);
}

static void life_open(struct life *life, const char *pool_name, int publisher)
{
	struct xmem_pool_options options = {
		.size = sizeof(options),
		.flags = XMEM_OPEN_EXISTING |
			 (life->consumer->forwards ? XMEM_OPEN_WRITER : 0),
		.label = life->consumer->label,
	};
	struct xmem_subscribe_options subscribe = {
		.size = sizeof(subscribe),
		.flags = life->consumer->subscribe_flags |
			 (publisher >= 0 ? XMEM_SUBSCRIBE_PUBLISHER : 0),
		.publisher = publisher >= 0 ? publisher : 0,
		.timeout_ns = COME_NS,
	};
	struct xmem_pool *pool = xmem_pool_open(pool_name, &options);

	if (!pool)
		control_fail_xmem(life->control, "cannot join the pool");
	life->subscription = xmem_subscribe(pool, &subscribe);
	if (!life->subscription)
		control_fail_xmem(life->control, "cannot follow the producer");
	life_say(life, SAY_READY, (uint32_t)xmem_pool_client(pool));
	xmem_pool_close(pool);		/* the subscription keeps the pool */
}

static void life_obey(struct life *life)
{
	switch (control_told(life->control)) {
	case TELL_HOLD:
		life->hold = true;
		break;
	case TELL_PAUSE:
		life_say(life, SAY_PAUSED, life->previous.buffer != NULL);
		while (control_wait(life->control) != TELL_GO)
			;
		break;
	}
}

static uint64_t life_lost(const struct life *life)
{
	struct xmem_subscription_info told = XMEM_INIT(told);

	return xmem_subscription_stat(life->subscription, &told) ? 0 : told.lost;
}

/* Publications are numbered: those that were not received must have been counted as lost. */
static void life_count(struct life *life, struct xmem_buffer *buffer)
{
	struct xmem_buffer_info info = XMEM_INIT(info);
	uint64_t lost = life_lost(life);

	xmem_buffer_stat(buffer, &info);
	/* Without a PUBLISHER another publisher may come and count from 0. */
	if (!life->count.frames || info.publisher != life->publisher)
		life->first = info.sequence - lost - life->count.frames;
	life->publisher = info.publisher;
	if (info.sequence != life->first + life->count.frames + lost)
		control_fail(life->control,
			     "%s: publication %llu follows %llu, with %llu counted as lost",
			     life->consumer->label, (unsigned long long)info.sequence,
			     (unsigned long long)life->count.passed - 1, (unsigned long long)lost);
	life->count.frames++;
	life->count.lost = lost;
	life->count.passed = info.sequence + 1;
}

/* A frame that is wrong is counted once. */
static void life_verify(struct life *life, struct frame *frame, bool intact)
{
	if (frame->corrupt || intact)
		return;
	frame->corrupt = true;
	life->count.corrupt++;
}

static void life_release(struct life *life, struct frame *frame)
{
	if (!frame->buffer)
		return;
	if (!frame->on_gpu)
		life_verify(life, frame, frame_intact(frame));
	if (frame->copy)
		life_verify(life, frame, gpu_frame_release(life->control, frame));
	else if (!life->consumer->forwards)
		xmem_release(frame->buffer);
	else if (xmem_publish(frame->buffer, XMEM_OPTIONS(xmem_publish_options,
							  .timeout_ns = XMEM_FOREVER), NULL))
		control_fail_xmem(life->control, "cannot pass a frame on");
	frame->buffer = NULL;
}

static void life_stand_still(struct life *life)
{
	life_say(life, SAY_HOLDING, 1 + (life->previous.buffer != NULL));
	/*
	 * The director kills this process here; if the director dies, control_wait ends the
	 * process.
	 */
	for (;;)
		control_wait(life->control);
}

static void life_frame(struct life *life, struct xmem_buffer *buffer)
{
	struct frame frame = { .buffer = NULL };

	life_count(life, buffer);
	if (!frame_understand(&frame, buffer))
		control_fail(life->control, "%s: publication %llu is not a frame",
			     life->consumer->label, (unsigned long long)life->count.passed - 1);
	if (frame.on_gpu && !life->consumer->forwards)
		gpu_frame_fetch(life->control, &frame);
	if (frame.luma)
		life_verify(life, &frame, frame_intact(&frame));
	life->consumer->work(&frame, &life->previous);
	if (life->hold && (life->previous.buffer || !life->consumer->keeps_previous))
		life_stand_still(life);
	life_release(life, &life->previous);
	if (life->consumer->keeps_previous)
		life->previous = frame;
	else
		life_release(life, &frame);
	life_say(life, SAY_FRAME, 0);
}

/* Receive until the producer has ended and no frame is in flight. */
static void life_follow(struct life *life)
{
	struct xmem_buffer *buffer;

	for (;;) {
		life_obey(life);
		buffer = xmem_receive(life->subscription, LOOK_UP_NS);
		if (buffer) {
			life_frame(life, buffer);
			continue;
		}
		switch (xmem_peek_last_error(NULL)) {
		case -ETIMEDOUT:
		case -EINTR:
			break;
		case -EPIPE:
			return;
		default:
			control_fail_xmem(life->control, "cannot receive");
		}
	}
}

int consumer_main(const struct consumer *consumer, int argc, char **argv)
{
	struct life life = { .consumer = consumer, .folder = ".", .control = -1 };
	bool good;

	if (argc < 2) {
		fprintf(stderr, "usage: %s POOL [PUBLISHER FOLDER [SOCKET]]\n", argv[0]);
		return 2;
	}
	if (argc > 3)
		life.folder = argv[3];
	if (argc > 4)
		life.control = control_open(argv[4]);
	life_open(&life, argv[1], argc > 2 ? atoi(argv[2]) : -1);
	life_follow(&life);
	life_release(&life, &life.previous);
	life.count.lost = life_lost(&life);
	if (life.count.frames)
		life.count.passed = life.first + life.count.frames + life.count.lost;
	xmem_unsubscribe(life.subscription);

	good = consumer->finish(life.folder, life.count.text, sizeof(life.count.text));
	if (!good)
		control_fail(life.control, "%s: %s", consumer->label, life.count.text);
	if (life.control < 0)
		printf("%s: %llu frames, %llu lost, %llu corrupt; %s\n", consumer->label,
		       (unsigned long long)life.count.frames, (unsigned long long)life.count.lost,
		       (unsigned long long)life.count.corrupt, life.count.text);
	life_say(&life, SAY_DONE, 0);
	return life.count.corrupt ? 1 : 0;
}
