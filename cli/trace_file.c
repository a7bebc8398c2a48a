// SPDX-License-Identifier: MIT
/*
 * Events as a file in Chrome's JSON format, which ui.perfetto.dev and chrome://tracing open. A
 * client is a track of its process. The life of a buffer, and each hold on it, is an asynchronous
 * span; the id of a life is SLOT.GENERATION. Times are microseconds of CLOCK_MONOTONIC.
 *
 * A file is complete after each look: the next look overwrites the end. So a full disk, or the end
 * of this process, costs only the events since the last write.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/trace.h"

/* The text of events since the last flush. */
static char *text;
static size_t length;
static FILE *out;

static void print(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void print(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (vfprintf(out, format, arguments) < 0)
		cli_no_memory();
	va_end(arguments);
}

/* ---- bytes ---- */

static int write_all(struct trace *trace, const char *bytes, size_t count, uint64_t at)
{
	ssize_t done;

	while (count) {
		done = trace->seeks ? pwrite(trace->file, bytes, count, (off_t)at) :
				      write(trace->file, bytes, count);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -ENOSPC;
		bytes += done;
		count -= done;
		at += done;
	}
	return 0;
}

static void open_text(void)
{
	free(text);
	text = NULL;
	out = open_memstream(&text, &length);
	if (!out)
		cli_no_memory();
}

static void close_text(void)
{
	if (fclose(out))
		cli_no_memory();
}

static char *end_of(const struct trace *trace)
{
	json_t *about = json_pack("{ss so sI sI}", "version", XMEM_VERSION, "pool",
				  cli_text(trace->pool, SIZE_MAX), "lives",
				  (json_int_t)trace->lives, "lost", (json_int_t)trace->lost);
	char *facts = about ? json_dumps(about, 0) : NULL, *end;

	if (!facts)
		cli_no_memory();
	end = cli_format("\n],\n\"displayTimeUnit\": \"ns\",\n\"otherData\": %s\n}\n", facts);
	json_decref(about);
	free(facts);
	return end;
}

/* The file becomes what it was after the look before. */
static void undo(struct trace *trace, const char *end)
{
	size_t bytes = trace->offset ? strlen(end) : 0;

	if (!write_all(trace, end, bytes, trace->offset) &&
	    ftruncate(trace->file, (off_t)(trace->offset + bytes)))
		return;			/* it is no file, or bytes behind the end stay */
}

int trace_flush(struct trace *trace)
{
	char *end = end_of(trace);
	int err;

	trace_drain(trace, trace->now_ns);
	close_text();
	err = write_all(trace, text, length, trace->offset);
	if (!err && trace->seeks)
		err = write_all(trace, end, strlen(end), trace->offset + length);
	if (!err)
		trace->offset += length;
	else if (trace->seeks)
		undo(trace, end);
	free(end);
	open_text();
	return err;
}

int trace_begin(struct trace *trace, const char *path)
{
	trace->file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) :
			     STDOUT_FILENO;
	if (trace->file < 0)
		return -errno;
	trace->seeks = path && lseek(trace->file, 0, SEEK_CUR) >= 0;
	open_text();
	print("{\"traceEvents\": [");
	return 0;
}

int trace_end(struct trace *trace)
{
	char *end = end_of(trace);
	int err = trace->seeks ? 0 : write_all(trace, end, strlen(end), 0);

	close_text();
	free(text);
	free(end);
	if (trace->file != STDOUT_FILENO && close(trace->file) && !err)
		err = -errno;
	return err;
}

/* ---- events ---- */

static void print_head(struct trace *trace, const char *ph, uint32_t pid, uint64_t track)
{
	print("%s\n{\"ph\": \"%s\", \"pid\": %" PRIu32 ", \"tid\": %" PRIu64,
	      trace->comma ? "," : "", ph, pid, track);
	trace->comma = true;
}

static void print_time(const char *key, uint64_t ns)
{
	print(", \"%s\": %" PRIu64 ".%03u", key, ns / 1000, (unsigned int)(ns % 1000));
}

void trace_name(struct trace *trace, uint32_t client, const char *label, size_t most)
{
	const struct trace_client *one = &trace->client[client];
	json_t *name = cli_text(label, most);
	char *quoted = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
	static const char *const whose[] = { "process_name", "thread_name" };
	int i;

	if (!quoted)
		cli_no_memory();
	for (i = 0; i < 2; i++) {
		print_head(trace, "M", one->pid, one->track);
		print(", \"name\": \"%s\", \"args\": {\"name\": %s}}", whose[i], quoted);
	}
	json_decref(name);
	free(quoted);
}

static void print_slice(struct trace *trace, const struct trace_event *event, const char *name,
			uint64_t ns, uint64_t step)
{
	print_head(trace, "X", event->pid, event->track);
	print(", \"cat\": \"xmem\", \"name\": \"%s\"", name);
	print_time("ts", ns);
	print_time("dur", step);
	print(", \"args\": {\"slot\": %" PRIu32 ", \"generation\": %" PRIu64, event->slot,
	      event->generation);
	if (event->kind == TRACE_PUBLISH)
		print(", \"bytes\": %" PRIu64, event->number);
	print("}}");
}

/* @of: "life", or "hold", whose id has the client. */
static void print_span(struct trace *trace, const struct trace_event *event, const char *ph,
		       const char *of, uint64_t ns)
{
	print_head(trace, ph, event->pid, event->track);
	print(", \"cat\": \"%s\", \"name\": \"%s of slot %" PRIu32 "\", \"id\": \"%" PRIu32 ".%"
	      PRIu64, of, of, event->slot, event->slot, event->generation);
	if (*of == 'h')
		print(".%" PRIu64, event->track);
	print("\"");
	print_time("ts", ns);
	print("}");
}

/* An arrow from the publication, which may be far behind in the file. */
static void print_arrow(struct trace *trace, const struct trace_event *event, uint64_t ns)
{
	const struct trace_origin *from = &trace->origin[event->slot];
	static const char same[] = "\"cat\": \"xmem\", \"name\": \"hand-over\"";

	if (from->generation != event->generation)
		return;
	trace->arrows++;
	print_head(trace, "s", from->pid, from->track);
	print(", %s, \"id\": %" PRIu64, same, trace->arrows);
	print_time("ts", from->ns);
	print("}");
	print_head(trace, "f", event->pid, event->track);
	print(", %s, \"id\": %" PRIu64 ", \"bp\": \"e\"", same, trace->arrows);
	print_time("ts", ns);
	print("}");
}

static void print_event(struct trace *trace, const struct trace_event *event, uint64_t ns,
			uint64_t step)
{
	switch (event->kind) {
	case TRACE_ACQUIRE:
		print_slice(trace, event, "acquire", ns, step);
		/* fallthrough */
	case TRACE_WAS_THERE:
		print_span(trace, event, "b", "life", ns);
		break;
	case TRACE_PUBLISH:
		print_slice(trace, event, "publish", ns, step);
		trace->origin[event->slot] = (struct trace_origin){
			.generation = event->generation, .ns = ns, .track = event->track,
			.pid = event->pid,
		};
		break;
	case TRACE_RECEIVE:
	case TRACE_HOLD:
		print_slice(trace, event, event->kind == TRACE_HOLD ? "hold" : "receive", ns, step);
		print_arrow(trace, event, ns);
		/* fallthrough */
	case TRACE_WAS_HELD:
		print_span(trace, event, "b", "hold", ns);
		break;
	case TRACE_RELEASE:
		print_slice(trace, event, "release", ns, step);
		print_span(trace, event, "e", "hold", ns);
		break;
	case TRACE_GONE:
		print_span(trace, event, "e", "life", ns);
		break;
	case TRACE_LOST:
		print_head(trace, "i", event->pid, event->track);
		print(", \"s\": \"t\", \"name\": \"lost\", \"args\": {\"publications\": %" PRIu64
		      "}", event->number);
		print_time("ts", ns);
		print("}");
		break;
	}
}

void trace_drain(struct trace *trace, uint64_t until_ns)
{
	uint64_t step = (until_ns - trace->before_ns) / (trace->count + 1);
	uint32_t i;

	for (i = 0; i < trace->count; i++)
		print_event(trace, &trace->event[i], trace->before_ns + (i + 1) * step, step);
	trace->before_ns = until_ns;
	trace->count = 0;
}
