// SPDX-License-Identifier: MIT
/*
 * xmem metrics [--output FILE] [--watch]: pools and their clients in Prometheus' text format. It
 * joins no pool. A file is replaced at once, for the textfile collector of node_exporter.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/look.h"

/* The subject of a number, which decides its labels and how often it comes. */
enum scope { HOST, POOL, DEVICE, CLIENT, SUBSCRIPTION };

static const struct metric {
	const char *name, *type, *help;
	enum scope scope;
	const char *key;		/* of the sample: look.c */
} metrics[] = {
	{ "xmem_host_pools", "gauge", "Pools that this user sees.", HOST, "pools" },
	{ "xmem_pool_clients", "gauge", "Clients that are alive.", POOL, "alive" },
	{ "xmem_pool_clients_max", "gauge", "Room for clients.", POOL, "clients_max" },
	{ "xmem_pool_slots", "gauge", "Buffers.", POOL, "slots" },
	{ "xmem_pool_slots_max", "gauge", "Room for buffers.", POOL, "slots_max" },
	{ "xmem_pool_holds", "gauge", "Handles of clients on buffers.", POOL, "holds" },
	{ "xmem_pool_limbo_slots", "gauge", "Buffers in use that their owner has left or wants.",
	  POOL, "limbo" },
	{ "xmem_pool_limbo_bytes", "gauge", "Size of the buffers in limbo.", POOL, "bytes_limbo" },
	{ "xmem_pool_buffer_bytes", "gauge", "Size of all buffers.", POOL, "bytes" },
	{ "xmem_pool_file_bytes", "gauge", "Size of the files of buffers.", POOL, "bytes_files" },
	{ "xmem_pool_kept_bytes", "gauge", "Size of the files whose owner has ended.", POOL,
	  "bytes_kept" },
	{ "xmem_pool_device_bytes", "gauge", "Memory on a GPU.", DEVICE, "bytes" },
	{ "xmem_client_slots", "gauge", "Buffers that the client owns.", CLIENT, "slots" },
	{ "xmem_client_holds", "gauge", "Handles of the client on buffers.", CLIENT, "holds" },
	{ "xmem_client_limbo_slots", "gauge", "Buffers that it holds and that are in limbo.",
	  CLIENT, "limbo" },
	{ "xmem_client_limbo_bytes", "gauge", "Size of its buffers in limbo.", CLIENT,
	  "bytes_limbo" },
	{ "xmem_client_mapped_bytes", "gauge", "Size of the files that it has mapped.", CLIENT,
	  "bytes_mapped" },
	{ "xmem_frames_published_total", "counter", "Publications of the client.", CLIENT,
	  "published" },
	{ "xmem_bytes_published_total", "counter", "Bytes published since the tool began.",
	  CLIENT, "bytes_published_total" },
	{ "xmem_bytes_received_total", "counter", "Bytes passed since the tool began.", CLIENT,
	  "bytes_received_total" },
	{ "xmem_frames_passed_total", "counter",
	  "Publications of publisher that the client has received or lost, from its first one.",
	  SUBSCRIPTION, "position" },
	{ "xmem_frames_lag", "gauge", "Publications that it has yet to receive.",
	  SUBSCRIPTION, "behind" },
	{ "xmem_frames_lost", "gauge", "Publications that it has yet to receive and that are gone.",
	  SUBSCRIPTION, "lost" },
};
#define METRICS	(sizeof(metrics) / sizeof(*metrics))

/* ---- sums since the first look ---- */

/* The sample before this one, if there is one; so --watch has counters that grow. */
static json_t *before;

static void add_total(json_t *client, const json_t *old, const char *total, const char *key)
{
	if (before && json_is_integer(json_object_get(client, key)))
		cli_set_number(client, total, look_number(old, total) + look_number(client, key));
}

/*
 * Add the counters of each client, which begin at 0 when --watch first sees the client. With
 * xmem.ko, the counter of publications is one of them: the module does not tell the earlier ones.
 */
static void add_totals(json_t *pool, const json_t *old_pool)
{
	const json_t *old;
	json_t *client;
	size_t i;

	json_array_foreach(json_object_get(pool, "clients"), i, client) {
		old = look_find(json_object_get(old_pool, "clients"), "incarnation",
				look_number(client, "incarnation"));
		add_total(client, old, "bytes_published_total", "bytes_published");
		add_total(client, old, "bytes_received_total", "bytes_received");
		if (!json_is_integer(json_object_get(client, "published")))
			add_total(client, old, "published", "frames_published");
	}
}

/* ---- text ---- */

/* A label whose name is a part of the program. @value: a text, a number, or NULL: no label. */
static void print_label(FILE *out, const char *name, const json_t *value, const char *comma)
{
	const char *at = json_string_value(value);

	fprintf(out, "%s%s=\"", comma, name);
	if (json_is_integer(value))
		fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	for (; at && *at; at++) {
		if (*at == '\n')
			fputs("\\n", out);
		else
			fprintf(out, *at == '\\' || *at == '"' ? "\\%c" : "%c", *at);
	}
	putc('"', out);
}

static void print_labels(FILE *out, const json_t *pool, const json_t *client, const json_t *row,
			 enum scope scope)
{
	print_label(out, "pool", json_object_get(pool, "pool"), "{");
	print_label(out, "number", json_object_get(pool, "number"), ",");
	if (scope == DEVICE) {
		print_label(out, "device", json_object_get(row, "device"), ",");
		print_label(out, "uuid", json_object_get(row, "uuid"), ",");
	}
	if (client) {
		print_label(out, "client", json_object_get(client, "incarnation"), ",");
		print_label(out, "label", json_object_get(client, "label"), ",");
		print_label(out, "pid", json_object_get(client, "pid"), ",");
	}
	if (scope == SUBSCRIPTION)
		print_label(out, "publisher", json_object_get(row, "incarnation"), ",");
	putc('}', out);
}

/* A value that the host does not tell has no line. */
static void print_value(FILE *out, const struct metric *metric, const json_t *pool,
			const json_t *client, const json_t *row)
{
	const json_t *value = json_object_get(row, metric->key);

	if (!json_is_integer(value) && !json_is_array(value))
		return;
	fputs(metric->name, out);
	if (pool)
		print_labels(out, pool, client, row, metric->scope);
	fprintf(out, " %" JSON_INTEGER_FORMAT "\n", json_is_integer(value) ?
		json_integer_value(value) : (json_int_t)json_array_size(value));
}

static void print_pool(FILE *out, const struct metric *metric, const json_t *pool)
{
	const json_t *client, *row;
	size_t i, k;

	if (metric->scope == POOL)
		print_value(out, metric, pool, NULL, pool);
	if (metric->scope == DEVICE)
		json_array_foreach(json_object_get(pool, "devices"), i, row)
			print_value(out, metric, pool, NULL, row);
	if (metric->scope == CLIENT)
		json_array_foreach(json_object_get(pool, "clients"), i, client)
			print_value(out, metric, pool, client, client);
	if (metric->scope == SUBSCRIPTION)
		json_array_foreach(json_object_get(pool, "clients"), i, client)
			json_array_foreach(json_object_get(client, "subscriptions"), k, row)
				print_value(out, metric, pool, client, row);
}

/* All lines of a metric stand together. */
static void print_all(FILE *out, const json_t *sample)
{
	const json_t *pool;
	size_t m, i;

	for (m = 0; m < METRICS; m++) {
		fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[m].name, metrics[m].help,
			metrics[m].name, metrics[m].type);
		if (metrics[m].scope == HOST)
			print_value(out, &metrics[m], NULL, NULL, sample);
		json_array_foreach(json_object_get(sample, "pools"), i, pool)
			print_pool(out, &metrics[m], pool);
	}
}

/* ---- the command ---- */

static int fail(const char *path)
{
	return cli_fail("%s: %s", path, strerror(errno));
}

/* A reader of the file sees the old one or the new one. */
static int write_in_place(const char *path, const json_t *sample)
{
	FILE *out = fopen(path, "we");
	bool bad;

	if (!out)
		return fail(path);
	print_all(out, sample);
	bad = fflush(out);
	fclose(out);
	return bad ? fail(path) : CLI_DONE;
}

/* Not a device, a pipe or a symbolic link. */
static bool is_replaced(const char *path)
{
	struct stat file;

	return lstat(path, &file) || S_ISREG(file.st_mode);
}

static int replace(const char *path, const json_t *sample)
{
	char *name = cli_format("%s.XXXXXX", path);
	int file = mkostemp(name, O_CLOEXEC), status = CLI_DONE;
	mode_t mask = umask(0);
	FILE *out = file < 0 ? NULL : fdopen(file, "w");
	bool bad;

	umask(mask);
	if (!out) {
		status = fail(name);
		free(name);
		return status;
	}
	print_all(out, sample);
	bad = fflush(out) || fchmod(file, 0666 & ~mask);
	if (bad || rename(name, path)) {
		status = fail(path);
		unlink(name);
	}
	fclose(out);
	free(name);
	return status;
}

int cli_metrics(const struct cli_arguments *arguments)
{
	json_t *sample, *pools, *pool;
	const char *error;
	int status = CLI_DONE;
	size_t i;

	cli_ask();
	sample = look(before);
	cli_answered();
	error = json_string_value(json_object_get(sample, "error"));
	pools = json_object_get(sample, "pools");
	json_array_foreach(pools, i, pool)
		add_totals(pool, look_find(json_object_get(before, "pools"), "number",
					   look_number(pool, "number")));
	if (error)
		status = cli_fail("%s", error);
	else if (arguments->value['o'])
		status = (is_replaced(arguments->value['o']) ? replace : write_in_place)(
			arguments->value['o'], sample);
	else
		print_all(stdout, sample);
	json_decref(before);
	before = sample;
	return status;
}
