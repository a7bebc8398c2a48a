// SPDX-License-Identifier: MIT
/* The tables of xmem top: their columns, cells and order. Pure: top.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/look.h"
#include "cli/top.h"

/* COUNT, SIZE: a number; RATE, FLOW: a number of the interval, for a second; others: texts. */
enum kind { COUNT, SIZE, RATE, FLOW, TEXT, WHERE, WHOSE, WHOM };

struct column {
	const char *title;
	int width;
	enum kind kind;
	const char *key, *other;	/* RATE and FLOW: the other is added */
};

static const struct column columns[TOP_TABLES][12] = {
	[TOP_POOLS] = {
		{ "CLIENTS", 7, COUNT, "alive" },
		{ "FRAMES/s", 8, RATE, "frames_published" },
		{ "BYTES/s", 7, FLOW, "bytes_published" }, { "LAG", 5, COUNT, "behind" },
		{ "LOST", 5, COUNT, "lost" }, { "HOLDS", 5, COUNT, "holds" },
		{ "LIMBO", 5, COUNT, "limbo" }, { "CPU", 5, SIZE, "bytes_files" },
		{ "GPU", 5, SIZE, "bytes_cuda" }, { "POOL", 0, TEXT, "pool" },
	},
	[TOP_CLIENTS] = {
		{ "ID", 3, COUNT, "client" }, { "LABEL", 12, TEXT, "label" },
		{ "PID", 7, COUNT, "pid" }, { "OUT/s", 5, RATE, "frames_published" },
		{ "IN/s", 5, RATE, "frames_received" },
		{ "BYTES/s", 7, FLOW, "bytes_published", "bytes_received" },
		{ "LAG", 4, COUNT, "behind" }, { "LOST", 4, COUNT, "lost" },
		{ "HOLDS", 5, COUNT, "holds" }, { "LIMBO", 5, COUNT, "limbo" },
		{ "WAITS FOR", 0, WHOM, "waits_for" },
	},
	[TOP_SLOTS] = {
		{ "SLOT", 5, COUNT, "slot" }, { "STATE", 7, TEXT, "state" },
		{ "BYTES", 5, SIZE, "bytes" }, { "WHERE", 5, WHERE, "device" },
		{ "OWNER", 15, WHOSE, "owner" }, { "HOLDS", 5, COUNT, "holds" },
		{ "CLAIMS", 6, COUNT, "claims" }, { "HOLDERS", 0, WHOM, "holders" },
	},
};

int top_columns(enum top_table table)
{
	int count = 0;

	while (columns[table][count].title)
		count++;
	return count;
}

const char *top_title(enum top_table table, int column)
{
	return columns[table][column].title;
}

static const char *const id_key[TOP_TABLES] = { "number", "client", "slot" };

static json_int_t id_of(const struct top_rows *rows, const json_t *row)
{
	return look_number(row, id_key[rows->table]);
}

json_int_t top_id(const struct top_rows *rows, size_t i)
{
	return id_of(rows, json_array_get(rows->row, i));
}

/* ---- cells ---- */

void top_short(char *ret, double number, int unit)
{
	static const char letters[] = " kMGTPE";
	int i = 0;

	if (number < 9999.5) {
		snprintf(ret, 8, "%.0f", number);
		return;
	}
	for (; number >= unit * 0.9995 && letters[i + 1]; i++)
		number /= unit;
	snprintf(ret, 8, "%.*f%c", number < 9.95, number, letters[i]);
}

static bool is_number(enum kind kind)
{
	return kind <= FLOW;
}

bool top_falls(enum top_table table, int column)
{
	return is_number(columns[table][column].kind) &&
	       strcmp(columns[table][column].key, id_key[table]);
}

/* The number in a cell. false: it is unknown. */
static bool number_of(const struct top_rows *rows, const json_t *row, const struct column *column,
		      double *ret)
{
	bool known = json_is_integer(json_object_get(row, column->key));

	*ret = look_number(row, column->key);
	if (column->other) {
		known |= json_is_integer(json_object_get(row, column->other));
		*ret += look_number(row, column->other);
	}
	if (column->kind == RATE || column->kind == FLOW) {
		known &= rows->seconds > 0;
		*ret /= rows->seconds > 0 ? rows->seconds : 1;
	}
	return known;
}

static const char *label_of(const struct top_rows *rows, const json_t *id)
{
	const json_t *clients = json_object_get(rows->pool, "clients");
	const json_t *client = !json_is_integer(id) ? NULL :
			       look_find(clients, "client", json_integer_value(id));

	return client ? json_string_value(json_object_get(client, "label")) : "-";
}

/* "cam, viewer", or "a writer", or a dash */
static char *names_of(const struct top_rows *rows, const json_t *row, const char *key)
{
	char *all = cli_format("%s", json_is_string(json_object_get(row, "awaits")) ?
			       "a writer" : ""), *before;
	const json_t *id;
	size_t i;

	json_array_foreach(json_object_get(row, key), i, id) {
		before = all;
		all = cli_format("%s%s%s", before, *before ? ", " : "", label_of(rows, id));
		free(before);
	}
	if (*all)
		return all;
	free(all);
	return cli_format("-");
}

static char *cell(const struct top_rows *rows, const json_t *row, const struct column *column)
{
	const json_t *value = json_object_get(row, column->key);
	double number;
	char text[8];

	switch (column->kind) {
	case TEXT:
		return cli_format("%s", json_is_string(value) ? json_string_value(value) : "-");
	case WHOSE:
		return cli_format("%s", label_of(rows, value));
	case WHOM:
		return names_of(rows, row, column->key);
	case WHERE:
		return json_integer_value(value) ?
		       cli_format("gpu%" JSON_INTEGER_FORMAT, json_integer_value(value)) :
		       cli_format("cpu");
	default:
		if (!number_of(rows, row, column, &number))
			return cli_format("-");
		if (column->width >= 7 && column->kind == COUNT)
			return cli_format("%.0f", number);
		top_short(text, number, column->kind == SIZE || column->kind == FLOW ? 1024 : 1000);
		return cli_format("%s", text);
	}
}

/* Programs choose labels and names, so a terminal must not see all of their bytes. */
static void clean(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

char *top_line(const struct top_rows *rows, int i)
{
	const struct column *column = columns[rows->table];
	char *line = cli_format("%s", ""), *before, *text;

	for (; column->title; column++) {
		int width = column[1].title ? column->width : 0;

		text = i < 0 ? cli_format("%s", column->title) :
		       cell(rows, json_array_get(rows->row, i), column);
		clean(text);
		before = line;
		line = is_number(column->kind) ?
		       cli_format("%s%s%*s", before, *before ? " " : "", width, text) :
		       cli_format("%s%s%-*.*s", before, *before ? " " : "", width,
				  width ? width : 1 << 20, text);
		free(before);
		free(text);
	}
	return line;
}

/* ---- which rows, and in which order ---- */

static bool has(const char *line, const char *text)
{
	size_t length = strlen(text);

	for (; *line; line++)
		if (!strncasecmp(line, text, length))
			return true;
	return !length;
}

void top_filter(struct top_rows *rows, const char *text)
{
	size_t i = json_array_size(rows->row);

	while (*text && i-- > 0) {
		char *line = top_line(rows, i);

		if (!has(line, text))
			json_array_remove(rows->row, i);
		free(line);
	}
}

/* qsort has no argument for these. */
static const struct top_rows *sorted;
static const struct column *by;
static int sign;

static int compare(const void *a, const void *b)
{
	const json_t *p = *(json_t *const *)a, *q = *(json_t *const *)b;
	double x = 0, y = 0;
	char *s, *t;
	int order;

	if (is_number(by->kind)) {
		x = number_of(sorted, p, by, &x) ? x : -1;
		y = number_of(sorted, q, by, &y) ? y : -1;
		order = (x > y) - (x < y);
	} else {
		s = cell(sorted, p, by);
		t = cell(sorted, q, by);
		order = strcmp(s, t);
		free(s);
		free(t);
	}
	return order ? order * sign : id_of(sorted, p) < id_of(sorted, q) ? -1 : 1;
}

void top_sort(struct top_rows *rows, int column, bool reverse)
{
	size_t count = json_array_size(rows->row), i;
	json_t **row = calloc(count + 1, sizeof(*row)), *order = cli_array();

	if (!row)
		cli_no_memory();
	for (i = 0; i < count; i++)
		row[i] = json_array_get(rows->row, i);
	sorted = rows;
	by = &columns[rows->table][column];
	sign = reverse ? -1 : 1;
	qsort(row, count, sizeof(*row), compare);
	for (i = 0; i < count; i++)
		cli_append(order, json_incref(row[i]));
	json_decref(rows->row);
	rows->row = order;
	free(row);
}
