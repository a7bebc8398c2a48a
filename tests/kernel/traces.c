// SPDX-License-Identifier: MIT
/*
 * The tracepoints of xmem.ko: a scene whose events are all known, and the events that tracefs has
 * of it.
 *
 *   traces         does the scene, reads the trace, and compares traces scene   only does the
 *                  scene, and prints "expect EVENT COUNT", for perf and bpftrace
 *                  (tests/kernel/trace-tools.sh)
 *
 * No other process may use the module meanwhile.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "raw.h"

#define TRACING		"/sys/kernel/tracing/"
#define MAX_POOLS	"/sys/module/xmem/parameters/max_pools"
#define NAME		"traced"
#define TINY		"traced-tiny"

/* The events that the scene causes, and how often. */
static const struct {
	const char *event;
	unsigned int count;
} expected[] = {
	{ "xmem_client_join", 4 }, { "xmem_attach", 1 }, { "xmem_limit", 3 },
	{ "xmem_client_evict", 1 }, { "xmem_client_end", 4 }, { "xmem_reclaim", 1 },
};
#define EVENTS	(sizeof(expected) / sizeof(*expected))

/* Values with which the fields are compared. */
struct scene {
	u32 writer, reader, slot;
	u64 payload;
	u64 incarnation;		/* the reader's incarnation */
};

static int write_file(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (file < 0)
		return -errno;
	if (write(file, text, strlen(text)) != (ssize_t)strlen(text))
		err = -errno;
	close(file);
	return err;
}

static int read_file(const char *path, char *text, size_t bytes)
{
	size_t n = 0;
	ssize_t more = 1;
	int file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return -errno;
	while (n < bytes - 1 && more > 0) {
		more = read(file, text + n, bytes - 1 - n);
		n += more > 0 ? more : 0;
	}
	text[n] = 0;
	close(file);
	return more < 0 ? -EIO : (int)n;
}

/* ---- the scene: each function says what went wrong, or NULL ---- */

/* Two joins fail: one for another pool, one for a second client in a pool for one. */
static const char *reach_limits(void)
{
	struct xmem_join_request join = raw_joining(TINY, XMEM_ROLE_READER);
	struct raw first = RAW_NONE, second = RAW_NONE;
	const char *why = NULL;
	char before[32] = "";
	int err;

	if (read_file(MAX_POOLS, before, sizeof(before)) <= 0 || write_file(MAX_POOLS, "1"))
		return "max_pools";
	err = raw_start(&first, &join);
	raw_end(&first);
	if (write_file(MAX_POOLS, before))
		return "max_pools, back";
	if (err != -EDQUOT)
		return "a pool beyond max_pools";
	join.clients = 1;
	if (raw_start(&first, &join))
		return "join of the tiny pool";
	if (raw_start(&second, &join) != -EUSERS)
		why = "the tiny pool has room for two";
	raw_end(&second);
	raw_end(&first);
	return why;
}

static const char *evict_reader(const struct raw *keeper, const struct scene *scene)
{
	struct xmem_evict_request evict = {
		.size = sizeof(evict), .client = scene->reader, .incarnation = scene->incarnation,
		.reason = XMEM_REASON_LIMBO,
	};

	return raw_request(keeper, XMEM_IOC_EVICT, &evict) ? "evict" : NULL;
}

/*
 * The writer ends while the reader holds its slot twice. Then the reader is evicted. The keeper
 * ends last.
 */
static const char *play(struct scene *scene)
{
	struct xmem_join_request join = raw_joining(NAME, XMEM_ROLE_WRITER);
	struct raw keeper = RAW_NONE;
	struct pair p;
	const char *why = pair_hand_over(&p, NAME);

	*scene = (struct scene){
		.writer = p.writer.join.client, .reader = p.reader.join.client,
		.slot = p.attached.slot[0], .payload = p.attached.payload,
		.incarnation = p.reader.join.incarnation,
	};
	if (!why && xm_get(&p.reader.map, scene->reader, p.publication.token))
		why = "get";
	if (!why && raw_start(&keeper, &join))
		why = "join of the keeper";
	if (!why)
		why = reach_limits();
	raw_end(&p.writer);
	if (!why)
		why = evict_reader(&keeper, scene);
	raw_end(&p.reader);
	raw_end(&keeper);
	if (!why && raw_pool_exists(NAME) != 0)
		why = "the pool is still there";
	return why;
}

/* ---- the trace ---- */

static char trace[1 << 20];

/* Counts the lines that have this event, with this text behind it. */
static unsigned int lines(const char *event, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static unsigned int lines(const char *event, const char *format, ...)
{
	unsigned int count = 0;
	const char *line;
	char text[256];
	va_list args;
	size_t n = snprintf(text, sizeof(text), " %s: ", event);

	va_start(args, format);
	vsnprintf(text + n, sizeof(text) - n, format, args);
	va_end(args);
	for (line = trace; (line = strstr(line, text)); line++)
		count++;
	return count;
}

static void check_line(const char *name, unsigned int got, unsigned int want)
{
	if (got == want)
		pass(name, "%u", want);
	else
		fail(name, "%u lines of the trace say so, not %u", got, want);
}

static void check_counts(void)
{
	unsigned int i;

	for (i = 0; i < EVENTS; i++)
		check_line(expected[i].event, lines(expected[i].event, "%s", ""),
			   expected[i].count);
}

/* The end of the reader, up to the duration. */
static void check_duration(const struct scene *scene, u32 pool)
{
	unsigned long long ns = 0;
	const char *line;
	char text[160];

	snprintf(text, sizeof(text),
		 "xmem_client_end: pool=%u client=%u incarnation=%llu holds=2 slots=0 duration_ns=",
		 pool, scene->reader, (unsigned long long)scene->incarnation);
	line = strstr(trace, text);
	if (line)
		ns = strtoull(line + strlen(text), NULL, 10);
	if (ns > 0 && ns < 60000000000ULL)
		pass("end-of-the-holder", "2 holds, %llu ns", ns);
	else
		fail("end-of-the-holder", "no line with \"%s\" and a duration: %llu", text, ns);
}

static void check_fields(const struct scene *scene)
{
	const char *attach = strstr(trace, " xmem_attach: ");
	u32 pool = 0;

	if (!attach || sscanf(attach, " xmem_attach: pool=%u", &pool) != 1) {
		fail("attach", "no line says in which pool");
		return;
	}
	check_line("join-fields", lines("xmem_client_join", "pool=%u client=%u incarnation=%llu\n",
					pool, scene->reader,
					(unsigned long long)scene->incarnation), 1);
	check_line("attach-fields", lines("xmem_attach", "pool=%u client=%u payload=%llu slots=1\n",
		   pool, scene->writer, scene->payload), 1);
	check_line("evicted", lines("xmem_client_evict",
				    "pool=%u client=%u incarnation=%llu reason=3\n", pool,
				    scene->reader, (unsigned long long)scene->incarnation), 1);
	check_line("end-of-the-owner", lines("xmem_client_end", "pool=%u client=%u incarnation=1 "
		   "holds=0 slots=1 duration_ns=", pool, scene->writer), 1);
	check_duration(scene, pool);
	check_line("reclaim-fields", lines("xmem_reclaim", "pool=%u slot=%u payload=%llu\n", pool,
		   scene->slot, scene->payload), 1);
	/* A request that meets a limit of all users tries twice: see xk_ends_retry. */
	check_line("limit-of-pools",
		   lines("xmem_limit", "pool=-1 limit=max_pools wanted=2 most=1\n"), 2);
	check_line("limit-of-clients",
		   lines("xmem_limit", "pool=%u limit=clients wanted=2 most=1\n", pool + 1), 1);
}

static int only_the_scene(void)
{
	struct scene scene;
	const char *why = play(&scene);
	unsigned int i;

	if (why) {
		fprintf(stderr, "traces: %s failed\n", why);
		return 1;
	}
	for (i = 0; i < EVENTS; i++)
		printf("expect %s %u\n", expected[i].event, expected[i].count);
	return 0;
}

int main(int argc, char **argv)
{
	struct scene scene;
	const char *why;

	if (argc > 1 && !strcmp(argv[1], "scene"))
		return only_the_scene();
	if (write_file(TRACING "trace", "\n") || write_file(TRACING "events/xmem/enable", "1")) {
		fail("tracefs", "%sevents/xmem/enable: %s", TRACING, strerror(errno));
		return summary();
	}
	why = play(&scene);
	if (write_file(TRACING "events/xmem/enable", "0"))
		fail("tracefs", "the events cannot be switched off again");
	if (why)
		fail("scene", "%s failed", why);
	else if (read_file(TRACING "trace", trace, sizeof(trace)) <= 0)
		fail("tracefs", "no trace");
	if (!failures()) {
		check_counts();
		check_fields(&scene);
	}
	if (failures())
		fputs(trace, stderr);
	return summary();
}
