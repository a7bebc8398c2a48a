// SPDX-License-Identifier: MIT
/*
 * xmem: a look at pools from the command line, through the public API alone.
 * One table of commands; each prints to standard output and returns the exit
 * status: 0, 1 (it failed, a line says why), 2 (bad usage).
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "xmem.h"

static int fail(const char *what)
{
	const char *why;
	int err = xmem_peek_last_error(&why);

	fprintf(stderr, "xmem: %s: %s (%s)\n", what, why, strerror(-err));
	return 1;
}

/* ---- stat ---- */

/* What the tool itself adds to the pool it looks at is left out: one client. */
static void print_stat(const char *name, const char *backend, const struct xmem_pool_info *s, bool json)
{
	const struct {
		const char *name;
		uint64_t value;
		const char *meaning;
	} line[] = {
		{ "slots", s->slots, "capacity" },
		{ "attached", s->attached, "have a payload" },
		{ "free", s->free, "of these, without contents" },
		{ "writing", s->writing, "being written" },
		{ "live", s->live, "with contents" },
		{ "held", s->held, "somebody holds" },
		{ "limbo", s->limbo, "their owner has ended, others still use them" },
		{ "holds", s->holds, "of all clients together" },
		{ "clients", s->clients ? s->clients - 1 : 0, "alive" },
		{ "zombies", s->zombies, "ended, still being read" },
		{ "bytes", s->bytes, "of all attached slots" },
	};
	size_t i;

	printf(json ? "{\"pool\": \"%s\", \"backend\": \"%s\"" : "pool      %s\nbackend   %s\n", name, backend);
	for (i = 0; i < sizeof(line) / sizeof(*line); i++) {
		if (json)
			printf(", \"%s\": %" PRIu64, line[i].name, line[i].value);
		else
			printf("%-9s %-12" PRIu64 " %s\n", line[i].name, line[i].value, line[i].meaning);
	}
	printf(json ? "}\n" : "");
}

static int command_stat(int argc, char **argv)
{
	static const struct option known[] = { { "json", no_argument, NULL, 'j' }, { 0 } };
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_EXISTING | XMEM_OPEN_FOREIGN, .label = "xmem stat",
	};
	struct xmem_pool_info stat = { .size = sizeof(stat) };
	struct xmem_pool *pool;
	bool json = false;
	int c, err;

	while ((c = getopt_long(argc, argv, "j", known, NULL)) >= 0) {
		if (c != 'j')
			return 2;
		json = true;
	}
	if (optind + 1 != argc || !*argv[optind]) {
		fprintf(stderr, "xmem: stat takes the name of one pool; see xmem --help\n");
		return 2;
	}
	pool = xmem_pool_open(argv[optind], &options);
	if (!pool)
		return fail(argv[optind]);
	err = xmem_pool_stat(pool, &stat);
	if (!err)
		print_stat(argv[optind], xmem_pool_backend(pool), &stat, json);
	else
		fail(argv[optind]);
	xmem_pool_close(pool);
	return err ? 1 : 0;
}

/* ---- backend, version ---- */

/* Only a pool has a host: an anonymous one is made for a moment. */
static int command_backend(int argc, char **argv)
{
	struct xmem_pool *pool = xmem_pool_open(NULL, NULL);

	if (!pool)
		return fail("no host");
	puts(xmem_pool_backend(pool));
	xmem_pool_close(pool);
	return 0;
}

static int command_version(int argc, char **argv)
{
	puts("xmem " XMEM_VERSION);
	return 0;
}

/* ---- all ---- */

static int command_help(int argc, char **argv);

static const struct command {
	const char *name;
	const char *arguments;
	const char *meaning;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "stat", "[--json] POOL", "what is in a pool now", command_stat },
	{ "backend", "", "which host this machine has: kernel or daemon", command_backend },
	{ "version", "", "print the version", command_version },
	{ "help", "", "print this", command_help },
};
#define COMMANDS	(sizeof(commands) / sizeof(*commands))

static int command_help(int argc, char **argv)
{
	size_t i;

	puts("Usage: xmem COMMAND [ARGUMENT]...\n");
	for (i = 0; i < COMMANDS; i++)
		printf("  %-8s %-14s %s\n", commands[i].name, commands[i].arguments, commands[i].meaning);
	puts("\nEnvironment, see docs/environment.md: XMEM_BACKEND, XMEM_DAEMON, XMEM_DEVICE, XMEM_SOCKET.");
	return 0;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	size_t i;

	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		name = "version";
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	for (i = 0; i < COMMANDS; i++) {
		if (strcmp(commands[i].name, name))
			continue;
		if (commands[i].run != command_stat && argc > 2) {
			fprintf(stderr, "xmem: %s takes no arguments; see xmem --help\n", name);
			return 2;
		}
		return commands[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "xmem: %s%s; see xmem --help\n", argc > 1 ? "no such command: " : "what?", name);
	return 2;
}
