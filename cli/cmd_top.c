// SPDX-License-Identifier: MIT
/*
 * xmem top [--once] [--json] [--interval S] [POOL]: pools and their clients, with what they hand
 * over each second. It joins no pool. --json implies --once.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/look.h"
#include "cli/top.h"

/* Two samples, of which the second counts what was handed over. NULL: an error was printed. */
static json_t *look_twice(uint64_t interval)
{
	json_t *before, *sample;
	const char *error;

	cli_stop_by_signal();
	cli_ask();
	before = look(NULL);
	cli_answered();
	cli_pause(interval);
	cli_ask();
	sample = look(before);
	cli_answered();
	json_decref(before);
	error = json_string_value(json_object_get(sample, "error"));
	if (!error)
		return sample;
	cli_fail("%s", error);
	json_decref(sample);
	return NULL;
}

static void print_rows(const json_t *sample, const json_t *pool)
{
	struct top_view view;
	struct top_rows rows;
	int i;

	top_begin(&view);
	if (pool)
		top_show(&view, pool);
	rows = top_rows(&view, sample);
	for (i = -1; i < (int)json_array_size(rows.row); i++) {
		char *line = top_line(&rows, i);

		puts(line);
		free(line);
	}
	json_decref(rows.row);
}

int cli_top(const struct cli_arguments *arguments)
{
	json_t *sample, *pool = NULL, *only;

	if (!arguments->once && !arguments->json)
		return top_screen(arguments->pool, arguments->interval);
	sample = look_twice(arguments->interval);
	if (!sample)
		return CLI_FAILED;
	if (arguments->pool)
		pool = look_named(sample, arguments->pool);
	if (arguments->pool && !pool) {
		json_decref(sample);
		return cli_fail("there is no pool '%s'", arguments->pool);
	}
	if (pool) {
		only = cli_array();
		cli_append(only, json_incref(pool));
		cli_set(sample, "pools", only);
	}
	if (arguments->json)
		cli_print_json(sample);
	else
		print_rows(sample, pool);
	json_decref(sample);
	return CLI_DONE;
}
