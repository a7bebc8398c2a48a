// SPDX-License-Identifier: MIT
/*
 * xmem: a look at pools and GPUs from the command line, through the public API alone, and ending
 * clients and pools. Here are
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

static const char list_more[] =
	"BYTES are of all buffers, FILES of the files that these are in, and KEPT those\n"
	"of FILES whose owner has ended. Buffers on GPUs are in BYTES and in no file: stat\n"
	"says what a pool has on which GPU.\n";
static const char stat_more[] =
	"A word on each number, and then, if the pool has buffers on GPUs or has had some,\n"
	"a table of these: DEVICE is the number of the GPU in the pool, BYTES what is\n"
	"allocated there for the pool, and CLOSING what of this has no buffers any more,\n"
	"but processes still have it open.\n";
static const char clients_more[] =
	"SLOTS counts the buffers that a client owns, HOLDS the handles that it has,\n"
	"FOLLOWS the publishers that it follows, BEHIND what these have published and it\n"
	"has yet to receive, and FOLLOWERS the clients that follow it. AWAITS says writer\n"
	"if it waits because no writer is there that it could follow. MAPPED is bytes of\n"
	"the files that it has mapped, and KEPT of those files of ended owners that it\n"
	"keeps. LIMBO counts the buffers that it holds and whose owner has ended, or wants\n"
	"them back. MAPPED and KEPT have no memory of GPUs.\n";
static const char holders_more[] =
	"Without SLOT: all buffers that somebody holds. Behind each holder is how many\n"
	"handles it has. DEVICE is the GPU that the buffer is on, or cpu. FILE is the\n"
	"size of the file, or on a GPU of the allocation, that the buffer is in. If somebody\n"
	"holds buffers whose owner has ended, a table says who and how many bytes of them:\n"
	"the kernel ends a client that has more than the pool's limbo_bytes.\n";
static const char claims_more[] =
	"Without SLOT: all buffers that have claims. DEVICE is the GPU that the buffer is\n"
	"on, or cpu. HOLDS counts the handles of all clients, and CLAIMS the references\n"
	"that are set aside. A handle that xmem_set_ref_count has counted in is in both\n"
	"until it is dropped, so that their sum can be more than the references.\n"
	"--void voids the claims that are printed: nobody comes for them any more.\n"
	"VOIDED says how many these were.\n";
static const char limits_more[] =
	"OF says whose limit it is: of this user, of the host with all its users, and if a\n"
	"POOL is named, of the pool and of a client, which is the tool's own then. NAME is\n"
	"the kernel module's parameter that sets it, where there is one:\n"
	"/sys/module/xmem/parameters/NAME. USED and MOST are bytes where WHAT says so; a dash\n"
	"is no limit.\n";
static const char evict_more[] =
	"CLIENT is the number that clients prints. It is ended as if its process had been\n"
	"killed, whether that runs, is stopped or hangs, and what it held is free when the\n"
	"tool returns; the process itself goes on, and its calls in this pool fail. For the\n"
	"pool's owner, and with CAP_SYS_ADMIN; only where the kernel is the host.\n";
static const char drain_more[] =
	"Nobody joins the pool any more. Its clients go on, but for --evict, which ends\n"
	"all clients at once (only where the kernel is the host); with the last of them the\n"
	"pool is gone and its name free. For the pool's owner, and with CAP_SYS_ADMIN.\n"
	"EVICTED says how many clients that has ended.\n";
static const char gpu_more[] =
	"First the driver's library and the version of CUDA that it speaks. GRANULARITY is\n"
	"what sizes of exported memory are multiples of. WORKS says what can be used:\n"
	"  descriptors         memory that is exported as a descriptor (cuMemCreate)\n"
	"  ipc                 memory that goes with its owner (cuMemAlloc, cudaMalloc)\n"
	"  pools               memory pools that are exported as descriptors\n"
	"  memops              streams that write, and wait for, 64 bits of memory\n"
	"  register            memory of the host that streams can use,\n"
	"  register_read_only  also if this process can only read it\n"
	"  host_atomics        and that the GPU changes atomically\n"
	"Where there is no driver or no GPU, it is said why, and the status is 1.\n";

static const struct cli_command commands[] = {
	{ "list", "[--json]", "the pools of this host", list_more, 0, 0, true, 0, cli_list },
	{ "stat", "[--json] POOL", "what is in a pool now", stat_more, 1, 1, true, 0,
	  cli_stat },
	{ "clients", "[--json] POOL", "who is in a pool", clients_more, 1, 1, true, 0,
	  cli_clients },
	{ "holders", "[--json] POOL [SLOT]", "who holds which buffer", holders_more, 1, 2, true,
	  0, cli_holders },
	{ "claims", "[--json] [--void] POOL [SLOT]", "references that are set aside", claims_more,
	  1, 2, true, 'v', cli_claims },
	{ "limits", "[--json] [POOL]", "what may be used, and what is", limits_more, 0, 1, true,
	  0, cli_limits },
	{ "evict", "[--json] POOL CLIENT", "end a client of a pool", evict_more, 2, 2, true, 0,
	  cli_evict },
	{ "drain", "[--json] [--evict] POOL", "let nobody join a pool any more", drain_more, 1, 1,
	  true, 'e', cli_drain },
	{ "gpu", "[--json]", "the CUDA driver, its GPUs, and what works there", gpu_more, 0, 0,
	  true, 0, cli_gpu },
	{ "backend", "", "which host programs get: kernel or daemon", NULL, 0, 0, false, 0,
	  cli_backend },
	{ "version", "", "print the version", NULL, 0, 0, false, 0, cli_version },
	{ "help", "[COMMAND]", "print this, or more about one command", NULL, 0, 1, false, 0,
	  help },
};
#define COMMANDS	(sizeof(commands) / sizeof(*commands))

static int help_all(void)
{
	size_t i;

	puts("Usage: xmem COMMAND [ARGUMENT]...\n");
	for (i = 0; i < COMMANDS; i++)
		printf("  %-8s %-30s %s\n", commands[i].name, commands[i].arguments,
		       commands[i].meaning);
	puts("\n"
	     "POOL is a name, or USER:NAME for another user's pool. Give a pool without a name by\n"
	     "its number: @17, or USER:@17.\n"
	     "stat, clients, holders, claims, limits, evict and drain join the pool for a moment,\n"
	     "so they need one free place among its clients; they leave before they print.\n"
	     "\n"
	     "claims --void voids the references that it prints: nobody comes for them any more.\n"
	     "drain --evict ends all clients of the pool as well.\n"
	     "The help of each command says what its columns count.\n"
	     "\n"
	     "--json prints this, and more, for programs. No command but backend starts a\n"
	     "daemon. A host that does not answer for 10 seconds is an error. The status is 0; 1\n"
	     "if the command failed; 2 if it was not understood.\n"
	     "Environment, see docs/environment.md: XMEM_BACKEND, XMEM_DAEMON, XMEM_DEVICE,\n"
	     "XMEM_SOCKET, XMEM_CUDA_DRIVER.");
	return CLI_DONE;
}

static int help_of(const struct cli_command *command)
{
	printf("Usage: xmem %s%s%s\n\n  %s\n", command->name, *command->arguments ? " " : "",
	       command->arguments, command->meaning);
	if (command->more)
		printf("\n%s", command->more);
	puts("\nxmem --help says what holds for all commands.");
	return CLI_DONE;
}

static int no_command(const char *name)
{
	return cli_usage("there is no command '%s'", name);
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

static int help(const struct cli_arguments *arguments)
{
	const struct cli_command *command;

	if (!arguments->pool)
		return help_all();
	command = find(arguments->pool);
	return command ? help_of(command) : no_command(arguments->pool);
}

/* ---- arguments ---- */

/* getopt_long has just refused one. optopt: a letter, or that of --json with a value. */
static int bad_option(const struct cli_command *command, char **argv)
{
	if (optopt && !strchr("jve", optopt))
		return cli_usage("%s: there is no option -%c", command->name, optopt);
	return cli_usage("%s: there is no option %s", command->name, argv[optind - 1]);
}

/* 0, or CLI_USAGE. */
static int parse(const struct cli_command *command, int argc, char **argv,
		 struct cli_arguments *ret)
{
	static const struct option known[] = {
		{ "json", no_argument, NULL, 'j' }, { "void", no_argument, NULL, 'v' },
		{ "evict", no_argument, NULL, 'e' },
		{ "help", no_argument, NULL, 'h' }, { 0 },
	};
	int c, count;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		if (c == 'h') {
			ret->help = true;
			return 0;
		}
		if (!(c == 'j' && command->json) && c != command->option)
			return bad_option(command, argv);
		ret->json |= c == 'j';
		ret->voids |= c == 'v';
		ret->evicts |= c == 'e';
	}
	count = argc - optind;
	if (count > 0 && !*command->arguments)
		return cli_usage("%s: it takes no arguments", command->name);
	if (count < command->least || count > command->most)
		return cli_usage("%s: the arguments are '%s'", command->name, command->arguments);
	ret->pool = count > 0 ? argv[optind] : NULL;
	ret->slot = count > 1 ? argv[optind + 1] : NULL;
	if (ret->pool && !*ret->pool && command->run != help)
		return cli_usage("%s: the name of the pool is empty", command->name);
	return 0;
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

	if (!fclose(stdout) && !before)
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
		return no_command(argv[1]);
	status = parse(command, argc - 1, argv + 1, &arguments);
	if (status)
		return status;
	return close_output(arguments.help ? help_of(command) : command->run(&arguments));
}
