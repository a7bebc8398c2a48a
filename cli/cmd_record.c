// SPDX-License-Identifier: MIT
/*
 * xmem record POOL... -o FILE: publications of pools into a file. The tool is a reader of each
 * pool, and holds a buffer only while it writes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cli/flow.h"

#define SECOND	1000000000ull
#define TICK	(SECOND / 4)	/* for progress, and to see if publishers have ended */

enum { DESCRIPTIONS, CONTENTS, IMAGES, CHANNELS };

struct source {
	const char *given;		/* the pool's name as the user gave it */
	char name[160];			/* as replay makes it */
	struct xmem_pool *pool;
	struct xmem_subscription *subscription;
	struct pollfd *poll;
	uint16_t channels[CHANNELS];	/* in the file; 0: none yet */
	uint64_t lost;			/* as told in the file */
	bool had_writer;
};

struct recording {
	struct source sources[CLI_MANY];
	struct pollfd polls[CLI_MANY + 1];	/* of the sources, and of signals at the end */
	int count;
	const char *name;		/* of the file */
	struct mcap_writer writer;
	uint16_t image_schema;
	uint64_t epoch;			/* CLOCK_REALTIME minus CLOCK_MONOTONIC, at the beginning */
	uint64_t began, told;		/* times: the last line of progress */
	uint64_t publications, bytes;
	uint64_t most, most_bytes, until;	/* the limits */
	bool lasts, shows;
	struct flow_memory memory;
	struct mcap_bytes head;
};

/* ---- the beginning ---- */

static bool take_limits(struct recording *recording, const struct cli_arguments *arguments)
{
	const char *count = arguments->value['n'], *bytes = arguments->value['B'];
	const char *seconds = arguments->value['S'];

	recording->most = recording->most_bytes = recording->until = UINT64_MAX;
	if ((count && !flow_number("count", count, INT64_MAX, &recording->most)) ||
	    (bytes && !flow_bytes("bytes", bytes, &recording->most_bytes)) ||
	    (seconds && !flow_seconds("seconds", seconds, &recording->until)))
		return false;
	recording->lasts = arguments->value['L'];
	return true;
}

/* Without the user: replay makes pools of its own user. */
static void name_source(struct source *source)
{
	const char *colon = strchr(source->given, ':');

	snprintf(source->name, sizeof(source->name), "%s", colon ? colon + 1 : source->given);
}

static bool follow(struct recording *recording, struct source *source, bool waits)
{
	const struct xmem_subscribe_options options = {
		.size = sizeof(options),
		.flags = XMEM_SUBSCRIBE_LASTS | (waits ? XMEM_SUBSCRIBE_WAITS : 0),
	};
	int fd;

	name_source(source);
	source->pool = cli_open(source->given);
	if (!source->pool)
		return false;
	source->subscription = xmem_subscribe(source->pool, &options);
	fd = source->subscription ? xmem_pool_poll_fd(source->pool) : -1;
	source->poll = &recording->polls[recording->count++];
	*source->poll = (struct pollfd){ .fd = fd, .events = POLLIN };
	if (fd < 0)
		cli_fail_xmem();
	return fd >= 0;
}

static void leave(struct recording *recording)
{
	int i;

	for (i = 0; i < recording->count; i++) {
		xmem_unsubscribe(recording->sources[i].subscription);
		xmem_pool_close(recording->sources[i].pool);
	}
	free(recording->memory.data);
	free(recording->head.data);
}

/* From now on SIGINT and SIGTERM only end the recording. A file that is too large is an error. */
static int watch_signals(void)
{
	sigset_t signals;

	signal(SIGXFSZ, SIG_IGN);
	signal(SIGINT, SIG_DFL);	/* shells start background jobs that ignore it */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_CLOEXEC);
}

/* The file is locked, so that --force does not overwrite what another recorder writes. */
static int open_file(const struct cli_arguments *arguments)
{
	int flags = arguments->value['f'] ? 0 : O_EXCL, err;
	int fd = open(arguments->value['o'], O_RDWR | O_CREAT | O_CLOEXEC | flags, 0666);

	if (fd < 0 || (!flock(fd, LOCK_EX | LOCK_NB) && !ftruncate(fd, 0)))
		return fd;
	err = errno;
	close(fd);
	errno = err == EWOULDBLOCK ? EBUSY : err;
	return -1;
}

/* ---- channels ---- */

static void set_size(json_t *object, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	cli_set(object, key, json_string(text));
}

/* Replay makes the pool with these sizes, and waits as long as its publisher does. */
static json_t *about(const struct source *source, const char *kind, uint32_t publisher)
{
	struct xmem_client_info client = { .size = sizeof(client) };
	struct xmem_pool_info pool = { .size = sizeof(pool) };
	json_t *object = cli_object();

	cli_set(object, "xmem", json_string(kind));
	cli_set(object, "pool", json_string(source->name));
	xmem_pool_stat(source->pool, &pool);
	set_size(object, "slots", pool.slots);
	set_size(object, "clients", pool.clients_max);
	set_size(object, "ring_entries", pool.ring_entries);
	if (!xmem_pool_client_info(source->pool, publisher, &client))
		set_size(object, "wait_bound_ns", client.wait_bound_ns);
	return object;
}

static uint16_t channel(struct recording *recording, struct source *source, int kind,
			uint32_t publisher)
{
	static const char *const kinds[CHANNELS] = { "description", "contents", "contents" };
	static const char *const encodings[CHANNELS] = { "json", "raw", "cdr" };
	json_t *metadata;
	char *topic;

	if (source->channels[kind])
		return source->channels[kind];
	if (kind == IMAGES && !recording->image_schema)
		recording->image_schema = mcap_schema(&recording->writer, "sensor_msgs/msg/Image",
						      "ros2msg", flow_ros_schema);
	topic = cli_format("%s%s", source->name, kind == DESCRIPTIONS ? "/@xmem" : "");
	metadata = about(source, kinds[kind], publisher);
	source->channels[kind] = mcap_channel(&recording->writer, kind == IMAGES ?
					      recording->image_schema : 0, topic, encodings[kind],
					      metadata);
	json_decref(metadata);
	free(topic);
	return source->channels[kind];
}

/* ---- publications ---- */

static int write_description(struct recording *recording, struct source *source,
			     const json_t *description, struct mcap_new *message,
			     uint32_t publisher)
{
	char *text = json_dumps(description, JSON_COMPACT);
	int err;

	if (!text)
		cli_no_memory();
	message->channel = channel(recording, source, DESCRIPTIONS, publisher);
	message->contents = text;
	message->bytes = strlen(text);
	err = mcap_write(&recording->writer, message);
	free(text);
	return err;
}

static uint64_t newly_lost(struct source *source)
{
	struct xmem_subscription_info info = { .size = sizeof(info) };
	uint64_t before = source->lost;

	if (!xmem_subscription_stat(source->subscription, &info))
		source->lost = info.lost;
	return source->lost - before;
}

/* 0, or a negative errno of the file. */
static int record_one(struct recording *recording, struct source *source,
		      struct xmem_buffer *buffer, const void *contents)
{
	struct xmem_buffer_info info = XMEM_INIT(info);
	struct mcap_new message = { .log_ns = flow_now() + recording->epoch };
	json_t *description = flow_describe(buffer, newly_lost(source));
	bool image;
	int err;

	xmem_buffer_stat(buffer, &info);
	message.publish_ns = info.timestamp_ns ? info.timestamp_ns + recording->epoch :
						 message.log_ns;
	message.sequence = (uint32_t)info.sequence;
	image = flow_ros_image(buffer, message.publish_ns, &recording->head);
	if (image)
		channel(recording, source, IMAGES, info.publisher);
	err = write_description(recording, source, description, &message, info.publisher);
	json_decref(description);
	if (err)
		return err;
	message.channel = channel(recording, source, image ? IMAGES : CONTENTS, info.publisher);
	message.head = image ? &recording->head : NULL;
	message.contents = contents;
	message.bytes = info.bytes;
	recording->publications++;
	source->had_writer = true;
	recording->bytes += info.bytes;
	return mcap_write(&recording->writer, &message);
}

/* Losses after the last publication. */
static int record_losses(struct recording *recording)
{
	struct mcap_new message = { .log_ns = flow_now() + recording->epoch };
	uint64_t lost;
	json_t *object;
	int i, err = 0;

	message.publish_ns = message.log_ns;
	for (i = 0; i < recording->count && !err; i++) {
		lost = newly_lost(&recording->sources[i]);
		if (!lost)
			continue;
		object = cli_object();
		set_size(object, "lost", lost);
		err = write_description(recording, &recording->sources[i], object, &message,
					XMEM_NOBODY);
		json_decref(object);
	}
	return err;
}

static int fail_file(const struct recording *recording, int err)
{
	return cli_fail("%s: %s", recording->name, strerror(-err));
}

/* 1: one was recorded. 0: there is none. -1: the recording ends, and an error was printed. */
static int receive_one(struct recording *recording, struct source *source)
{
	struct xmem_buffer *buffer = xmem_receive(source->subscription, 0);
	const void *contents = buffer ? flow_contents(buffer, &recording->memory) : NULL;
	int err;

	if (!buffer && xmem_peek_last_error(NULL) == -EAGAIN)
		return 0;
	if (!contents) {
		cli_fail_xmem();
		xmem_release(buffer);
		return -1;
	}
	err = record_one(recording, source, buffer, contents);
	xmem_release(buffer);
	if (err)
		fail_file(recording, err);
	return err ? -1 : 1;
}

/* ---- the end ---- */

static bool has_writer(const struct source *source)
{
	struct xmem_client_info client = { .size = sizeof(client) };
	struct xmem_pool_info pool = { .size = sizeof(pool) };
	uint32_t id;

	xmem_pool_stat(source->pool, &pool);
	for (id = 0; id < pool.clients_max; id++) {
		client.size = sizeof(client);
		if (!xmem_pool_client_info(source->pool, id, &client) && client.alive &&
		    client.role == XMEM_CLIENT_WRITER)
			return true;
	}
	return false;
}

/* Each pool has had a publisher, and has none any more. All that they published is received. */
static bool is_over(struct recording *recording)
{
	bool over = !recording->lasts;
	int i;

	for (i = 0; i < recording->count; i++) {
		struct source *source = &recording->sources[i];
		bool has = has_writer(source);

		over &= !has && source->had_writer;
		source->had_writer |= has;
	}
	return over;
}

static uint64_t all_lost(const struct recording *recording)
{
	uint64_t lost = 0;
	int i;

	for (i = 0; i < recording->count; i++)
		lost += recording->sources[i].lost;
	return lost;
}

static void show_progress(struct recording *recording, uint64_t now)
{
	double seconds = (double)(now - recording->began) / 1e9;

	recording->told = now;
	if (recording->shows)
		fprintf(stderr, "\r%.0f s: %" PRIu64 " publications (%.1f/s), %.1f MB (%.1f/s), "
			"%" PRIu64 " lost ", seconds, recording->publications,
			(double)recording->publications / seconds, (double)recording->bytes / 1e6,
			(double)recording->bytes / 1e6 / seconds, all_lost(recording));
}

/* Wait for publications, signals, or the next tick. true: the recording ends. */
static bool wait_for_more(struct recording *recording, bool idle)
{
	uint64_t now = flow_now(), next = recording->told + TICK;
	struct timespec time = { 0 };

	if (next > recording->until)
		next = recording->until;
	if (idle && next > now)
		time = (struct timespec){ (time_t)((next - now) / SECOND),
					  (long)((next - now) % SECOND) };
	if (ppoll(recording->polls, (nfds_t)recording->count + 1, &time, NULL) > 0 &&
	    recording->polls[recording->count].revents)
		return true;
	now = flow_now();
	return now >= recording->until;
}

/* Returns: CLI_DONE, or CLI_FAILED after an error that was printed. */
static int record(struct recording *recording)
{
	bool over = false;
	int i, err, got = 0, more = 0;

	while (!over || more) {
		for (i = 0, more = 0; i < recording->count && got >= 0; i++) {
			if (recording->publications >= recording->most ||
			    recording->bytes >= recording->most_bytes)
				return CLI_DONE;
			got = receive_one(recording, &recording->sources[i]);
			more |= got > 0;
		}
		if (got < 0)
			return CLI_FAILED;
		if (over)
			continue;
		if (wait_for_more(recording, !more))
			return CLI_DONE;
		if (flow_now() < recording->told + TICK)
			continue;
		show_progress(recording, flow_now());
		over = is_over(recording);
		more |= over;		/* what was published before the end */
		err = mcap_flush(&recording->writer);
		if (err)
			return fail_file(recording, err);
	}
	return CLI_DONE;
}

static int finish(struct recording *recording, int status)
{
	uint64_t kept = 0;
	int i, err = record_losses(recording), end = mcap_finish(&recording->writer);

	err = end ? end : err;
	for (i = 0; i < recording->count; i++)
		kept += recording->writer.counts[recording->sources[i].channels[CONTENTS]] +
			recording->writer.counts[recording->sources[i].channels[IMAGES]];
	if (close(recording->writer.fd) && !err)
		err = -errno;
	if (err && !status)
		status = fail_file(recording, err);
	fprintf(stderr, "%sxmem: %" PRIu64 " publications in %s, %" PRIu64 " lost\n",
		recording->shows ? "\n" : "", kept, recording->name, all_lost(recording));
	return status;
}

int cli_record(const struct cli_arguments *arguments)
{
	static struct recording recording_of_the_tool;
	struct recording *recording = &recording_of_the_tool;
	struct timespec real;
	int i, fd, err, status = CLI_FAILED;

	if (!arguments->value['o'])
		return cli_usage("record: which file? -o FILE");
	recording->name = arguments->value['o'];
	recording->shows = isatty(STDERR_FILENO);
	if (!take_limits(recording, arguments))
		return CLI_USAGE;
	for (i = 0; i < arguments->count; i++) {
		recording->sources[i].given = arguments->operands[i];
		if (!follow(recording, &recording->sources[i], arguments->value['W']))
			goto out;
	}
	recording->polls[i] = (struct pollfd){ .fd = watch_signals(), .events = POLLIN };
	fd = open_file(arguments);
	err = fd < 0 ? -errno : mcap_begin(&recording->writer, fd, "xmem " XMEM_VERSION);
	clock_gettime(CLOCK_REALTIME, &real);
	recording->began = recording->told = flow_now();
	recording->epoch = (uint64_t)real.tv_sec * SECOND + (uint64_t)real.tv_nsec -
			   recording->began;
	if (recording->until < UINT64_MAX)
		recording->until += recording->began;
	if (err)
		fail_file(recording, err);
	else
		status = finish(recording, record(recording));
out:
	leave(recording);
	return status;
}
