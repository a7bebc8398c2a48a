/* SPDX-License-Identifier: MIT */
/*
 * Shared by the commands of the xmem tool. A command gathers JSON values, which are printed either
 * as JSON or as a table, so that both agree.
 */
#ifndef CLI_H
#define CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xmem.h"

/* Exit statuses of all commands. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

#define CLI_RENAMES	64
#define CLI_MANY	64	/* of operands, at most */

struct cli_arguments {
	bool json;
	bool help;			/* help is asked for, and other arguments do not matter */
	const char *pool;		/* NULL: not given; of help: a command */
	const char *slot;		/* or NULL; of evict: a client */
	bool voids;			/* --void */
	bool evicts;			/* --evict */
	bool watch;			/* --watch */
	bool once;			/* --once */
	uint64_t interval;		/* --interval, in nanoseconds */
	const char *value[128];		/* of all options, by their letters (xmem.c); NULL: not
					 * given; "": given, and it has no value */
	const char *renames[CLI_RENAMES];	/* --pool, as often as it is given */
	int renamed;
	char **operands;		/* all arguments that are no options */
	int count;
};

struct cli_command {
	const char *name;
	const char *arguments;		/* the arguments in --help */
	const char *meaning;
	const char *more;		/* more text for its own help; NULL: none */
	int least, most;		/* arguments, without options: POOL, then SLOT */
	const char *options;		/* the letters of the options that it takes: xmem.c */
	int (*run)(const struct cli_arguments *arguments);
};

int cli_top(const struct cli_arguments *arguments);
int cli_trace(const struct cli_arguments *arguments);
int cli_metrics(const struct cli_arguments *arguments);
int cli_list(const struct cli_arguments *arguments);
int cli_stat(const struct cli_arguments *arguments);
int cli_clients(const struct cli_arguments *arguments);
int cli_holders(const struct cli_arguments *arguments);
int cli_claims(const struct cli_arguments *arguments);
int cli_limits(const struct cli_arguments *arguments);
int cli_evict(const struct cli_arguments *arguments);
int cli_drain(const struct cli_arguments *arguments);
int cli_gpu(const struct cli_arguments *arguments);
int cli_backend(const struct cli_arguments *arguments);
int cli_record(const struct cli_arguments *arguments);
int cli_replay(const struct cli_arguments *arguments);
int cli_cat(const struct cli_arguments *arguments);
int cli_put(const struct cli_arguments *arguments);
int cli_version(const struct cli_arguments *arguments);

/* ---- errors: one line on standard error, "xmem: what: why" ---- */

/* Both return their exit status, CLI_FAILED and CLI_USAGE. */
__attribute__((format(printf, 1, 2))) int cli_fail(const char *format, ...);
__attribute__((format(printf, 1, 2))) int cli_usage(const char *format, ...);

/* The name of that user, or NULL; valid until the next call. */
const char *cli_user(uint32_t uid);

/* Print the library's last error, which names the call that failed. */
int cli_fail_xmem(void);

__attribute__((noreturn)) void cli_no_memory(void);

/*
 * Between these two calls the tool waits for the host. If the host does not answer for long,
 * because it is stopped, the tool says so and ends with CLI_FAILED.
 */
void cli_ask(void);
void cli_answered(void);

/* ---- again and again (watch.c) ---- */

/* From now on SIGINT ends the present or the next cli_pause, and does nothing else. */
void cli_stop_by_signal(void);

/* Wait so long. false: SIGINT has come. */
bool cli_pause(uint64_t ns);

/* Run a command after each interval, until SIGINT or until it fails. Returns its exit status. */
int cli_watch(int (*run)(const struct cli_arguments *arguments),
	      const struct cli_arguments *arguments);

/* ---- pools ---- */

/*
 * Join the pool @name as a reader, to look at it. A daemon is not started for that. NULL: the
 * reason has been printed. The caller leaves its own client out of its output.
 */
struct xmem_pool *cli_open(const char *name);

/*
 * Leave the pool. A command does so before it prints, because the reader of the output may be slow,
 * and the tool would keep alive a pool that all other clients have left. @err: 0, or the -errno of
 * the command, whose message is printed here. Returns: @err.
 */
int cli_close(struct xmem_pool *pool, int err);

/* Does @given, as commands take it, stand for the pool with that name, number and owner? */
bool cli_names(const char *given, const char *name, uint64_t number, uint32_t uid);

/* Add a row for each pool of the host, which joins none. 0, or -errno, and the library's error. */
int cli_pools(json_t *rows);

/*
 * A malloc'ed text: the pool of such a row as the commands take it: another user's pool with that
 * user's number, and a pool without a name by its own number.
 */
char *cli_pool_name(const json_t *row);

/* A new object that identifies the pool: "pool", "backend". */
json_t *cli_about(const char *name, struct xmem_pool *pool);

/* ---- slots (slot.c) ---- */

/* Digits only. XMEM_NOBODY: it is no number that a slot can have. */
uint32_t cli_slot_number(const char *text);

/*
 * A token is text, because many readers of JSON take numbers as floating point with 53 bits. 0:
 * null.
 */
json_t *cli_token(uint64_t token);

const char *cli_state_name(uint32_t state);

/* An object that describes a client; null if there is none. */
json_t *cli_client(struct xmem_pool *pool, uint32_t id);

/* The object of cli_client as a malloc'ed text: "label pid", or a dash if there is no client. */
char *cli_client_text(const json_t *client);

/* ---- GPUs of a pool (device.c) ---- */

/* A UUID as nvidia-smi prints it. */
json_t *cli_uuid(const uint8_t *uuid);

/* Add a row for each GPU in whose memory the pool has, or has had, buffers. 0, or -errno. */
int cli_devices(struct xmem_pool *pool, json_t *devices);

/* Put the place of a buffer into its row: "device", 0 for the CPU, and "uuid", null for the CPU. */
void cli_set_device(json_t *row, struct xmem_pool *pool, uint32_t device);

/* The place of a row as a malloc'ed text: the UUID, "cpu", or a dash if there is no buffer. */
char *cli_device_text(const json_t *row);

/* ---- what is shown ---- */

/* A new, empty array or object. */
json_t *cli_array(void);
json_t *cli_object(void);

/* Put a field into an object. @value: the object takes it over; NULL: there was no memory. */
void cli_set(json_t *object, const char *key, json_t *value);
void cli_set_number(json_t *object, const char *key, uint64_t value);
void cli_append(json_t *array, json_t *value);

/*
 * A text that comes from elsewhere, of at most @most bytes: all of them, if they are UTF-8, which
 * json_string would insist on; otherwise '?' stands for each byte that is no ASCII.
 */
json_t *cli_text(const char *bytes, size_t most);

struct cli_column {
	const char *title;
	const char *key;		/* the field of each row: a number, a text or null */
	char *(*text)(const json_t *row);	/* used instead of key; returns a malloc'ed text */
};

/* Columns end with a title of NULL. Numbers stand on the right, texts on the left. */
void cli_print_table(const json_t *rows, const struct cli_column *columns);
void cli_print_json(const json_t *value);

/* snprintf into memory of its own; never NULL. */
__attribute__((format(printf, 1, 2))) char *cli_format(const char *format, ...);

#endif
