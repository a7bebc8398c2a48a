// SPDX-License-Identifier: MIT
/*
 * xmem: pools and GPUs from the command line, through the public API; top also looks at pools in
 * other ways (look.h). This file has the table of commands, their arguments, and standard output;
 * each command has a file of its own. Exit status: 0; 1: it failed, and a line says why; 2: bad
 * usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static int help(const struct cli_arguments *arguments);

static const char top_more[] =
	"Without --once: a view on the terminal; the key h lists its keys. The tool joins no\n"
	"pool. With POOL the view begins in that pool, and --once prints its clients.\n"
	"FRAMES/s and BYTES/s of a pool count publications. OUT/s counts the publications of\n"
	"a client, IN/s those that it has received or lost, and its BYTES/s both. LAG counts\n"
	"publications that subscribers have yet to receive, and LOST those of them that are\n"
	"gone. LIMBO counts buffers that are in use although their owner has ended or wants\n"
	"them back. CPU and GPU are the bytes of files and of memory on GPUs. WAITS FOR\n"
	"names the clients that a client waits for. A dash means that the number is not\n"
	"known. xmem.ko does not show rings, so with xmem.ko IN/s, LAG, LOST and WAITS FOR\n"
	"are dashes, and OUT/s counts the buffers that a client has acquired.\n"
	"--once looks twice, --interval S seconds apart (1). SIGINT ends this wait.\n";
static const char trace_more[] =
	"The file is a trace in Chrome's JSON format, for ui.perfetto.dev. It has a track for\n"
	"each client, a span for the life of each buffer and for each hold on it, and an\n"
	"arrow for each hand-over. The tool joins no pool. It looks at the pool once in each\n"
	"--interval S (0.001 seconds), until SIGINT or until the pool ends.\n"
	"The tool knows the order of the events between two looks, but not their times. The\n"
	"file spreads them evenly over this time. If a subscriber has passed a publication\n"
	"and does not hold it, the publication counts as received.\n"
	"\"lost\" counts the publications that were overwritten before the tool looked.\n"
	"xmem.ko does not show rings: with it, a hand-over is a hold that a look finds.\n"
	"The file is complete after each look. Without --output it is standard output.\n";
static const char metrics_more[] =
	"All pools and their clients in Prometheus' text format. A reader of FILE, such as the\n"
	"textfile collector of node_exporter, sees the old file or the whole new one. With\n"
	"--watch the tool replaces FILE each second, or each --interval S, until SIGINT. Only\n"
	"with --watch are there counters of bytes; they begin at 0 when the tool begins. The\n"
	"tool leaves out a number that the host does not show: xmem.ko does not show rings.\n"
	"The label number differs between pools of one name. The labels client and publisher\n"
	"are incarnations: each client that a pool ever has gets another number.\n";
static const char list_more[] =
	"BYTES counts all buffers, FILES the files that these are in, and KEPT those of\n"
	"FILES whose owner has ended. Buffers on GPUs are in BYTES and in no file: stat\n"
	"shows what a pool has on each GPU.\n";
static const char stat_more[] =
	"Each number with its meaning. If the pool has, or has had, buffers on GPUs, a\n"
	"table of the GPUs follows: DEVICE is the number of the GPU in the pool, BYTES the\n"
	"memory that is allocated there for the pool, and CLOSING the part of it that has\n"
	"no buffers any more, but that processes still have open.\n";
static const char clients_more[] =
	"SLOTS counts the buffers that a client owns, HOLDS its handles, FOLLOWS the\n"
	"publishers that it follows, BEHIND their publications that it has yet to receive,\n"
	"and FOLLOWERS the clients that follow it. AWAITS is \"writer\" if it waits because\n"
	"there is no writer to follow. MAPPED is the bytes of the files that it has mapped,\n"
	"and KEPT those of files of ended owners that it keeps. LIMBO counts the buffers\n"
	"that it holds and whose owner has ended or wants them back. MAPPED and KEPT do\n"
	"not include memory of GPUs.\n";
static const char holders_more[] =
	"Without SLOT: all buffers that a client holds. The number behind each holder is\n"
	"that of its handles. DEVICE is the GPU that the buffer is on, or cpu. FILE is the\n"
	"size of the file, or on a GPU of the allocation, that the buffer is in. If clients\n"
	"hold buffers whose owner has ended, a table names them and the bytes of these\n"
	"buffers.\n";
static const char claims_more[] =
	"Without SLOT: all buffers that have claims. DEVICE is the GPU that the buffer is\n"
	"on, or cpu. HOLDS counts the handles of all clients, and CLAIMS the references\n"
	"that are set aside.\n"
	"--void voids the claims that are printed, if no client will take them any more.\n"
	"VOIDED is the number of claims that were voided.\n";
static const char limits_more[] =
	"OF is the scope of a limit: this user, the host with all its users, and with POOL\n"
	"also the pool and a client, which is the tool itself. NAME is the parameter of the\n"
	"kernel module that sets the limit, if there is one:\n"
	"/sys/module/xmem/parameters/NAME. USED and MOST are bytes if WHAT says so; a dash\n"
	"is no limit.\n";
static const char evict_more[] =
	"CLIENT is the number that clients prints. The client ends as if its process had\n"
	"been killed, whether the process runs, is stopped or hangs, and its buffers are\n"
	"free when the tool returns. The process itself goes on, and its calls in this pool\n"
	"fail. For the pool's owner, and with CAP_SYS_ADMIN; only with the kernel as host.\n";
static const char drain_more[] =
	"Nobody joins the pool any more. Its clients go on, except with --evict, which ends\n"
	"all clients at once (only with the kernel as host). With the last client the pool\n"
	"is gone and its name free. For the pool's owner, and with CAP_SYS_ADMIN. EVICTED\n"
	"is the number of clients that were ended.\n";
static const char gpu_more[] =
	"First the driver's library, and the version of CUDA or HIP. GRANULARITY is\n"
	"the unit of sizes of exported memory. WORKS lists the mechanisms that can be used:\n"
	"  descriptors         memory that is exported as a descriptor (cuMemCreate)\n"
	"  ipc                 memory that goes with its owner (cuMemAlloc, cudaMalloc)\n"
	"  pools               memory pools that are exported as descriptors\n"
	"  memops              streams that write, and wait for, 64 bits of memory\n"
	"  register            memory of the host that streams can use,\n"
	"  register_read_only  also if this process can only read it\n"
	"  host_atomics        and that the GPU changes atomically\n"
	"  mps                 MPS serves processes, so hand-overs on streams are fast\n"
	"Without a driver or a GPU, a message says why, and the status is 1.\n";

static const char record_more[] =
	"The file is an MCAP file, which for example the Python library mcap reads.\n"
	"The recording ends when all publishers have ended, at a limit, at SIGINT and at\n"
	"SIGTERM. Then the file is complete. If the disk is full, the file has all publications\n"
	"that fit. After SIGKILL it lacks only the publications of the last moments.\n"
	"If the tool is too slow, it loses publications. It counts them, in the file too.\n"
	"  -o FILE, --output FILE  the file, which must not exist\n"
	"  --force                 overwrite FILE\n"
	"  --count N               end after N publications\n"
	"  --seconds S             end after S seconds\n"
	"  --bytes N               end after N bytes of contents (K, M, G, T)\n"
	"  --wait                  let publishers wait for the tool, up to their bound\n"
	"  --lasts                 do not end when all publishers have ended\n";
static const char replay_more[] =
	"The tool publishes into pools with the recorded names, and makes those that do not\n"
	"exist. The pauses between publications and their metadata are those of the recording.\n"
	"The time of publication is the present time. Messages that another program has\n"
	"recorded are published without metadata.\n"
	"  --rate R          R times as fast\n"
	"  --fast            without a pause\n"
	"  --loop            again and again, until SIGINT\n"
	"  --start S         without the first S seconds\n"
	"  --pool OLD=NEW    pool OLD of the recording into pool NEW; can be repeated\n"
	"  --wait-for N      begin when each pool has N subscribers\n"
	"  --wait-bound S    wait up to S seconds for slow subscribers, not as recorded\n";
static const char cat_more[] =
	"The tool writes the contents of each publication, one after the other. It ends when\n"
	"all publishers have ended, or when nobody reads its output.\n"
	"Example: xmem cat cam --y4m | ffplay -\n"
	"  --y4m       write YUV4MPEG2; the contents must be gray or planar YUV images\n"
	"  --rate R    frames a second in the header of YUV4MPEG2 (25)\n"
	"  --count N   end after N publications\n"
	"  --wait      let publishers wait for the tool, up to their bound\n";
static const char put_more[] =
	"The tool reads each frame into a buffer and publishes it, until the input ends. Give\n"
	"one of --size, --shape and --y4m.\n"
	"  --size N          a frame is N bytes (K, M, G, T)\n"
	"  --shape N,N...    a frame is a tensor of this shape, such as 480,640,3\n"
	"  --dtype TYPE      type of the tensor's elements: uint8 (default), float32 ...\n"
	"  --y4m             a frame is an image, and the input is YUV4MPEG2\n"
	"  --slots N         a new pool has room for at least N buffers\n"
	"  --rate R          publish R frames a second; default: as they come\n"
	"  --count N         end after N frames\n"
	"  --wait-for N      begin when N clients subscribe\n"
	"  --wait-bound S    wait up to S seconds for slow subscribers that ask for it (0)\n";

static const struct cli_command commands[] = {
	{ "top", "[--once] [--json] [POOL]", "watch pools and their clients",
	  top_more, 0, 1, "jiO", cli_top },
	{ "trace", "[--output FILE] POOL", "record hand-overs for ui.perfetto.dev",
	  trace_more, 1, 1, "oi", cli_trace },
	{ "metrics", "[--output FILE] [--watch]", "all numbers, for Prometheus",
	  metrics_more, 0, 0, "owi", cli_metrics },
	{ "list", "[--json] [--watch]", "the pools of this host", list_more, 0, 0,
	  "jwi", cli_list },
	{ "stat", "[--json] POOL", "the contents of a pool now", stat_more, 1, 1, "j", cli_stat },
	{ "clients", "[--json] [--watch] POOL", "the clients of a pool",
	  clients_more, 1, 1, "jwi", cli_clients },
	{ "holders", "[--json] [--watch] POOL [SLOT]",
	  "the holders of each buffer", holders_more, 1, 2, "jwi", cli_holders },
	{ "claims", "[--json] [--void] POOL [SLOT]", "references that are set aside", claims_more,
	  1, 2, "jv", cli_claims },
	{ "limits", "[--json] [POOL]", "limits, and their use", limits_more, 0, 1, "j",
	  cli_limits },
	{ "evict", "[--json] POOL CLIENT", "end a client of a pool", evict_more, 2, 2, "j",
	  cli_evict },
	{ "drain", "[--json] [--evict] POOL", "let nobody join a pool any more", drain_more, 1, 1,
	  "je", cli_drain },
	{ "gpu", "[--json]", "the GPUs, their driver and mechanisms", gpu_more, 0, 0, "j",
	  cli_gpu },
	{ "record", "POOL... -o FILE [OPTION]...", "record publications into a file",
	  record_more, 1, CLI_MANY, "onSBfWL", cli_record },
	{ "replay", "FILE [OPTION]...", "publish again what was recorded", replay_more, 1, 1,
	  "rFlpsNb", cli_replay },
	{ "cat", "POOL [OPTION]...", "write contents to standard output", cat_more, 1, 1,
	  "nyrW", cli_cat },
	{ "put", "POOL [OPTION]...", "publish what standard input has", put_more, 1, 1,
	  "zadycrnNb", cli_put },
	{ "backend", "", "the host that programs get: kernel or daemon", NULL, 0, 0, "",
	  cli_backend },
	{ "version", "", "print the version", NULL, 0, 0, "", cli_version },
	{ "help", "[COMMAND]", "print this, or more about one command", NULL, 0, 1, "", help },
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
	     "record and cat are readers of a pool, put and replay are writers.\n"
	     "\n"
	     "claims --void voids the references that it prints.\n"
	     "drain --evict ends all clients of the pool as well.\n"
	     "The help of each command explains its columns.\n"
	     "\n"
	     "--watch prints the table again each second, or each --interval S, until SIGINT.\n"
	     "--json prints the table, and more, for programs. Only backend, put and replay\n"
	     "start a daemon. A host that does not answer for 10 seconds is an error. The status\n"
	     "is 0; 1 if the command failed; 2 if it was not understood.\n"
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
	puts("\nSee also xmem --help, about all commands.");
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

static const struct option known[] = {
	{ "json", no_argument, NULL, 'j' }, { "void", no_argument, NULL, 'v' },
	{ "evict", no_argument, NULL, 'e' }, { "watch", no_argument, NULL, 'w' },
	{ "once", no_argument, NULL, 'O' }, { "interval", required_argument, NULL, 'i' },
	{ "output", required_argument, NULL, 'o' }, { "force", no_argument, NULL, 'f' },
	{ "count", required_argument, NULL, 'n' }, { "seconds", required_argument, NULL, 'S' },
	{ "bytes", required_argument, NULL, 'B' }, { "wait", no_argument, NULL, 'W' },
	{ "lasts", no_argument, NULL, 'L' }, { "rate", required_argument, NULL, 'r' },
	{ "fast", no_argument, NULL, 'F' }, { "loop", no_argument, NULL, 'l' },
	{ "pool", required_argument, NULL, 'p' }, { "start", required_argument, NULL, 's' },
	{ "wait-for", required_argument, NULL, 'N' }, { "y4m", no_argument, NULL, 'y' },
	{ "wait-bound", required_argument, NULL, 'b' }, { "size", required_argument, NULL, 'z' },
	{ "shape", required_argument, NULL, 'a' }, { "dtype", required_argument, NULL, 'd' },
	{ "slots", required_argument, NULL, 'c' }, { "help", no_argument, NULL, 'h' }, { 0 },
};

static const struct option *option_of(int letter)
{
	const struct option *option;

	for (option = known; option->name; option++)
		if (option->val == letter)
			return option;
	return NULL;
}

/*
 * getopt_long has just refused an option, or the command has no such one. optopt: the letter of a
 * refused one; of --json with a value, the letter of --json.
 */
static int bad_option(const struct cli_command *command, int c, char **argv)
{
	if (c == ':')
		return cli_usage("%s: --%s needs a value", command->name, option_of(optopt)->name);
	if (c != '?')
		return cli_usage("%s: there is no option --%s", command->name, option_of(c)->name);
	if (optopt && !option_of(optopt))
		return cli_usage("%s: there is no option -%c", command->name, optopt);
	return cli_usage("%s: there is no option %s", command->name, argv[optind - 1]);
}

/* trace shows hand-overs, so it looks more often than a person. */
static double least_seconds(const struct cli_command *command)
{
	return command->run == cli_trace ? 0.0001 : 0.1;
}

/* Seconds, or parts of one, in nanoseconds. 0: it is no such number, or too short or too long. */
static uint64_t interval_of(const char *text, double least)
{
	char *end;
	double seconds = strtod(text, &end);

	if (!*text || *end || !(seconds >= least && seconds <= 86400))
		return 0;
	return (uint64_t)(seconds * 1e9);
}

/* 0, or CLI_USAGE. */
static int parse(const struct cli_command *command, int argc, char **argv,
		 struct cli_arguments *ret)
{
	int c, count;

	opterr = 0;
	ret->interval = (uint64_t)(least_seconds(command) * 1e10);
	while ((c = getopt_long(argc, argv, ":o:", known, NULL)) >= 0) {
		if (c == 'h') {
			ret->help = true;
			return 0;
		}
		if (c == ':' || c == '?' || !strchr(command->options, c))
			return bad_option(command, c, argv);
		ret->value[c] = optarg ? optarg : "";
		if (c == 'p' && ret->renamed == CLI_RENAMES)
			return cli_usage("%s: more than %d times --pool", command->name,
					 CLI_RENAMES);
		if (c == 'p')
			ret->renames[ret->renamed++] = optarg;
		if (c == 'i')
			ret->interval = interval_of(optarg, least_seconds(command));
		if (!ret->interval)
			return cli_usage("%s: --interval is %g to 86400 seconds, not '%s'",
					 command->name, least_seconds(command), optarg);
	}
	ret->json = ret->value['j'];
	ret->voids = ret->value['v'];
	ret->evicts = ret->value['e'];
	ret->watch = ret->value['w'];
	ret->once = ret->value['O'];
	count = argc - optind;
	ret->operands = argv + optind;
	ret->count = count;
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
 * A file of the pool would get the number of a closed standard descriptor, and our output would be
 * written into it. So another file takes that number, to which writing fails as it should.
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
	bool before = ferror(stdout);	/* the errno of a write before that is lost */

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
	if (arguments.help)
		return close_output(help_of(command));
	return close_output(arguments.watch ? cli_watch(command->run, &arguments) :
			    command->run(&arguments));
}
