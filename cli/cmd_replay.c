// SPDX-License-Identifier: MIT
/*
 * xmem replay FILE: publications of a recording once more, at the recorded pace. The file is looked
 * through first, without its contents, so all pools are there before the first publication.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/flow.h"

#define DESCRIPTION_MOST	(1u << 20)	/* bytes */

struct target {
	struct target *next;
	const char *name;		/* in the recording */
	struct xmem_pool *pool;
	json_t *description;		/* of the next contents; NULL: there is none */
};

struct replay {
	const struct cli_arguments *arguments;
	const char *name;		/* of the file */
	struct mcap_reader *reader;
	struct target *targets;
	double rate;			/* 0: no pauses */
	uint64_t start;			/* nanoseconds to leave out */
	uint64_t wait_for, bound;
	uint64_t first;			/* time of publication in the file */
	uint64_t base;			/* when the first of this pass is due */
	uint64_t publications, lost;
	uint64_t empty;			/* publications of 0 bytes, which are left out */
};

static int fail_file(const struct replay *replay, const char *why)
{
	return cli_fail("%s: %s", replay->name, why);
}

/* ---- pools ---- */

/* The name of the pool that takes the messages of a channel. */
static const char *pool_of(const struct mcap_channel *channel)
{
	const char *name = json_string_value(json_object_get(channel->metadata, "pool"));

	return name ? name : channel->topic;
}

static const char *renamed(const struct replay *replay, const char *name)
{
	size_t bytes = strlen(name);
	int i;

	for (i = 0; i < replay->arguments->renamed; i++) {
		const char *option = replay->arguments->renames[i];

		if (!strncmp(option, name, bytes) && option[bytes] == '=')
			return option + bytes + 1;
	}
	return name;
}

static bool is_description(const struct mcap_channel *channel)
{
	const char *kind = json_string_value(json_object_get(channel->metadata, "xmem"));

	return kind && !strcmp(kind, "description");
}

static uint32_t size(const struct mcap_channel *channel, const char *key, uint32_t most)
{
	uint64_t value = flow_word(channel->metadata, key);

	return value > most ? most : (uint32_t)value;
}

static struct xmem_pool *open_pool(const struct replay *replay, const struct mcap_channel *channel)
{
	uint64_t bound = flow_word(channel->metadata, "wait_bound_ns");
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_WRITER, .label = "xmem replay",
		.slots = size(channel, "slots", 65536), .clients = size(channel, "clients", 256),
		.ring_entries = size(channel, "ring_entries", 4096),
	};
	const char *name = renamed(replay, pool_of(channel));

	if (replay->arguments->value['b'])
		bound = replay->bound;
	options.wait_bound_ns = bound > INT64_MAX ? INT64_MAX : (int64_t)bound;
	if (*name == '@' || !*name) {
		cli_fail("%s: pool '%.*s' of the recording has no name: give one by --pool @N=NAME",
			 replay->name, (int)strspn(name, "@0123456789"), name);
		return NULL;
	}
	return flow_join(name, &options);
}

/* The pool of a channel. NULL: an error was printed. */
static struct target *target_of(struct replay *replay, const struct mcap_channel *channel)
{
	struct target *target;

	for (target = replay->targets; target; target = target->next)
		if (!strcmp(target->name, pool_of(channel)))
			return target;
	target = calloc(1, sizeof(*target));
	if (!target)
		cli_no_memory();
	target->name = pool_of(channel);
	target->pool = open_pool(replay, channel);
	if (!target->pool) {
		free(target);
		return NULL;
	}
	target->next = replay->targets;
	replay->targets = target;
	return target;
}

/* Look through the file: its pools, and the time of its first publication. */
static int prepare(struct replay *replay)
{
	struct mcap_message message;
	struct target *target;

	replay->first = UINT64_MAX;
	replay->reader->checks = false;
	while (mcap_next(replay->reader, &message) > 0) {
		if (is_description(message.channel))
			continue;
		if (!target_of(replay, message.channel))
			return CLI_FAILED;
		if (message.publish_ns < replay->first)
			replay->first = message.publish_ns;
	}
	replay->reader->checks = true;
	mcap_rewind(replay->reader);
	for (target = replay->targets; target; target = target->next)
		if (flow_await(target->pool, replay->wait_for))
			return CLI_FAILED;
	return CLI_DONE;
}

/* ---- messages ---- */

/* Keep the description until its contents come. A text that is no JSON describes nothing. */
static int take_description(struct replay *replay, const struct mcap_message *message)
{
	struct target *target;
	char *text;
	int err;

	for (target = replay->targets; target; target = target->next)
		if (!strcmp(target->name, pool_of(message->channel)))
			break;
	if (message->bytes > DESCRIPTION_MOST)
		return CLI_DONE;
	text = malloc(message->bytes + 1);
	if (!text)
		cli_no_memory();
	err = mcap_read_at(replay->reader->fd, text, message->bytes, message->at);
	if (!err && target) {
		json_decref(target->description);
		target->description = json_loadb(text, message->bytes, 0, NULL);
		replay->lost += flow_word(target->description, "lost");
	}
	free(text);
	return err ? fail_file(replay, strerror(-err)) : CLI_DONE;
}

static void pause_until(struct replay *replay, uint64_t time)
{
	uint64_t from = replay->first + replay->start;

	if (!replay->base)
		replay->base = flow_now();
	if (replay->rate > 0)
		flow_sleep(replay->base + (uint64_t)((double)(time - from) / replay->rate));
}

static int publish(struct replay *replay, struct target *target, struct xmem_buffer *buffer,
		   uint64_t time, uint64_t bytes)
{
	struct xmem_publish_options options = { .size = sizeof(options), .length = bytes };

	flow_restore(buffer, target->description);
	pause_until(replay, time);
	if (!target->description || flow_word(target->description, "published_ns"))
		options.timestamp_ns = flow_now();
	json_decref(target->description);
	target->description = NULL;
	if (xmem_publish(buffer, &options, NULL)) {
		cli_fail_xmem();
		xmem_release(buffer);
		return CLI_FAILED;
	}
	replay->publications++;
	return CLI_DONE;
}

/* The contents are the last bytes of a message: an image has a head before them. */
static int take_contents(struct replay *replay, const struct mcap_message *message)
{
	struct target *target = target_of(replay, message->channel);
	uint64_t bytes = message->bytes, told;
	struct xmem_buffer *buffer;
	int err;

	if (!target)
		return CLI_FAILED;
	told = flow_word(target->description, "bytes");
	if (told && told < bytes)
		bytes = told;
	if (message->publish_ns < replay->first + replay->start)
		return CLI_DONE;
	if (!bytes) {			/* a buffer has at least a byte */
		replay->empty++;
		return CLI_DONE;
	}
	buffer = xmem_acquire(target->pool, bytes, XMEM_FOREVER);
	if (!buffer)
		return cli_fail_xmem();
	err = mcap_read_at(replay->reader->fd, xmem_data_mut(buffer), bytes,
			   message->at + message->bytes - bytes);
	if (!err)
		return publish(replay, target, buffer, message->publish_ns, bytes);
	xmem_release(buffer);
	return fail_file(replay, strerror(-err));
}

/* The whole file once. */
static int pass(struct replay *replay)
{
	struct mcap_message message;
	int status = CLI_DONE, next = 0;

	while (!status && (next = mcap_next(replay->reader, &message)) > 0)
		status = is_description(message.channel) ? take_description(replay, &message) :
							   take_contents(replay, &message);
	return next < 0 ? fail_file(replay, replay->reader->why) : status;
}

static int play(struct replay *replay)
{
	uint64_t before;
	int status;

	do {
		before = replay->publications;
		status = pass(replay);
		mcap_rewind(replay->reader);
		replay->base = 0;
	} while (!status && replay->arguments->value['l'] && replay->publications > before);
	return status;
}

/* ---- the command ---- */

static bool take_options(struct replay *replay, const struct cli_arguments *arguments)
{
	const char *const *value = arguments->value;
	int i;

	replay->rate = value['F'] ? 0 : 1;
	if (value['F'] && value['r'])
		return cli_usage("replay: --rate or --fast"), false;
	for (i = 0; i < arguments->renamed; i++)
		if (!strchr(arguments->renames[i], '='))
			return cli_usage("replay: --pool is OLD=NEW, not '%s'",
					 arguments->renames[i]), false;
	return (!value['r'] || flow_rate("rate", value['r'], &replay->rate)) &&
	       (!value['s'] || flow_seconds("start", value['s'], &replay->start)) &&
	       (!value['N'] || flow_number("wait-for", value['N'], 256, &replay->wait_for)) &&
	       (!value['b'] || flow_seconds("wait-bound", value['b'], &replay->bound));
}

static void leave(struct replay *replay)
{
	struct target *target;

	while ((target = replay->targets)) {
		replay->targets = target->next;
		json_decref(target->description);
		xmem_pool_close(target->pool);
		free(target);
	}
	mcap_close(replay->reader);
}

int cli_replay(const struct cli_arguments *arguments)
{
	struct replay replay = { .arguments = arguments, .name = arguments->pool };
	char why[80];
	int fd, status;

	if (!take_options(&replay, arguments))
		return CLI_USAGE;
	fd = open(replay.name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail_file(&replay, strerror(errno));
	replay.reader = mcap_open(fd, why, sizeof(why));
	if (!replay.reader)
		return fail_file(&replay, why);
	status = prepare(&replay);
	if (!status) {
		status = play(&replay);
		fprintf(stderr, "xmem: %" PRIu64 " publications of %s, %" PRIu64
			" lost when they were recorded\n", replay.publications, replay.name,
			replay.lost);
		if (replay.empty)
			fprintf(stderr, "xmem: %" PRIu64 " publications of 0 bytes are left out\n",
				replay.empty);
	}
	leave(&replay);
	close(fd);
	return status;
}
