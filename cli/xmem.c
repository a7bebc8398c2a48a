// SPDX-License-Identifier: MIT
/*
 * xmem: a look at pools from the command line, through the public API alone. Here are
 * the table of commands, their arguments, and standard output; each command has a file
 * of its own. Exit status: 0; 1, it failed and a line says why; 2, bad usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static int help(const struct cli_arguments *arguments);

static const struct cli_command commands[] = {
	{ "list", "[--json]", "the pools of this host", 0, 0, true, false, cli_list },
	{ "stat", "[--json] POOL", "what is in a pool now", 1, 1, true, false, cli_stat },
	{ "clients", "[--json] POOL", "who is in a pool", 1, 1, true, false, cli_clients },
	{ "holders", "[--json] POOL [SLOT]", "who holds which buffer", 1, 2, true, false,
	  cli_holders },
	{ "claims", "[--json] [--void] POOL [SLOT]", "references that are set aside", 1, 2, true,
	  true, cli_claims },
	{ "backend", "", "which host programs get: kernel or daemon", 0, 0, false, false,
	  cli_backend },
	{ "version", "", "print the version", 0, 0, false, false, cli_version },
	{ "help", "", "print this", 0, 0, false, false, help },
};
#define COMMANDS	(sizeof(commands) / sizeof(*commands))

static int help(const struct cli_arguments *arguments)
{
	size_t i;

	puts("Usage: xmem COMMAND [ARGUMENT]...\n");
	for (i = 0; i < COMMANDS; i++)
		printf("  %-8s %-30s %s\n", commands[i].name, commands[i].arguments,
		       commands[i].meaning);
	puts("\n"
	     "POOL is a name: a pool without one, which list calls anonymous, can be listed and\n"
	     "not looked at. stat, clients, holders and claims join the pool while they look, so\n"
	     "they need one free place among its clients; they leave before they print.\n"
	     "\n"
	     "claims --void voids the references that it prints: nobody comes for them any more.\n"
	     "\n"
	     "--json prints the same, and more, for programs. No command but backend starts a\n"
	     "daemon. A host that does not answer for 10 seconds is an error. The status is 0; 1\n"
	     "if the command failed; 2 if it was not understood.\n"
	     "Environment, see docs/environment.md: XMEM_BACKEND, XMEM_DAEMON, XMEM_DEVICE,\n"
	     "XMEM_SOCKET.");
	return CLI_DONE;
}

/* ---- arguments ---- */

/* getopt_long has just refused one. optopt: a letter, or that of --json with a value. */
static int bad_option(const struct cli_command *command, char **argv)
{
	if (optopt && !strchr("jv", optopt))
		return cli_usage("%s: there is no option -%c", command->name, optopt);
	return cli_usage("%s: there is no option %s", command->name, argv[optind - 1]);
}

/* 0, or CLI_USAGE. */
static int parse(const struct cli_command *command, int argc, char **argv,
		 struct cli_arguments *ret)
{
	static const struct option known[] = {
		{ "json", no_argument, NULL, 'j' }, { "void", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' }, { 0 },
	};
	int c, count;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		if (c == 'h') {
			ret->help = true;
			return 0;
		}
		if (!(c == 'j' && command->json) && !(c == 'v' && command->voids))
			return bad_option(command, argv);
		ret->json |= c == 'j';
		ret->voids |= c == 'v';
	}
	count = argc - optind;
	if (count < command->least || count > command->most)
		return cli_usage("%s: the arguments are '%s'", command->name, command->arguments);
	ret->pool = count > 0 ? argv[optind] : NULL;
	ret->slot = count > 1 ? argv[optind + 1] : NULL;
	if (ret->pool && !*ret->pool)
		return cli_usage("%s: the name of the pool is empty", command->name);
	return 0;
}

static const struct cli_command *find(const char *name)
{
	size_t i;

	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		name = "version";
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	for (i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

/* ---- standard output ---- */

/*
 * A closed standard descriptor would be given to the pool, and then our output would be
 * written into it: something is put in its place. Writing to it fails as it should.
 */
static bool fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	return fd >= 0 && !close(fd);
}

static int close_output(int status)
{
	bool before = ferror(stdout);	/* whose errno is lost */

	if (!fflush(stdout) && !before)
		return status;
	return cli_fail("standard output: %s", before ? "it cannot be written" : strerror(errno));
}

int main(int argc, char **argv)
{
	struct cli_arguments arguments = { 0 };
	const struct cli_command *command;
	int status;

	if (!fill_standard_descriptors())
		return cli_fail("/dev/null: %s", strerror(errno));
	if (argc < 2)
		return cli_usage("which command?");
	command = find(argv[1]);
	if (!command)
		return cli_usage("there is no command '%s'", argv[1]);
	status = parse(command, argc - 1, argv + 1, &arguments);
	if (status)
		return status;
	return close_output(arguments.help ? help(NULL) : command->run(&arguments));
}
