// SPDX-License-Identifier: MIT
/*
 * JSON values, and printing them: as JSON, or as a table with a line for each row.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ---- values ---- */

static json_t *need(json_t *value)
{
	if (!value)
		cli_no_memory();
	return value;
}

json_t *cli_array(void)
{
	return need(json_array());
}

json_t *cli_object(void)
{
	return need(json_object());
}

void cli_set(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, need(value)))
		cli_no_memory();
}

/* Numbers of JSON end at 2^63 here; no number comes near that. */
void cli_set_number(json_t *object, const char *key, uint64_t value)
{
	cli_set(object, key, json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value));
}

void cli_append(json_t *array, json_t *value)
{
	if (json_array_append_new(array, need(value)))
		cli_no_memory();
}

json_t *cli_text(const char *bytes, size_t most)
{
	char *text = strndup(bytes, most), *at;
	json_t *value = text ? json_string(text) : NULL;

	if (!text)
		cli_no_memory();
	for (at = text; !value && *at; at++)
		if (*at & 0x80)
			*at = '?';
	if (!value)
		value = json_string(text);
	free(text);
	return value;
}

char *cli_format(const char *format, ...)
{
	va_list arguments;
	char *text;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		cli_no_memory();
	return text;
}

/* ---- JSON ---- */

/* Errors of writing are seen when standard output is closed. */
void cli_print_json(const json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(2));
	putchar('\n');
}

/* ---- tables ---- */

/* @row NULL: the column's title. The caller frees it. */
static char *cell(const json_t *row, const struct cli_column *column)
{
	const json_t *value;

	if (!row)
		return cli_format("%s", column->title);
	if (column->text)
		return column->text(row);
	value = json_object_get(row, column->key);
	if (json_is_integer(value))
		return cli_format("%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return cli_format("%s", json_is_string(value) ? json_string_value(value) : "-");
}

static bool is_number(const json_t *rows, const struct cli_column *column)
{
	const json_t *first = json_array_get(rows, 0);

	return column->key && json_is_integer(json_object_get(first, column->key));
}

static int width_of(const json_t *rows, const struct cli_column *column)
{
	size_t i, width = strlen(column->title);
	const json_t *row;

	json_array_foreach(rows, i, row) {
		char *text = cell(row, column);

		width = strlen(text) > width ? strlen(text) : width;
		free(text);
	}
	return (int)width;
}

/* A line has no spaces at its end. */
static void print_row(const json_t *rows, const json_t *row, const struct cli_column *columns,
		      const int *width)
{
	size_t c;

	for (c = 0; columns[c].title; c++) {
		char *text = cell(row, &columns[c]);

		if (is_number(rows, &columns[c]))
			printf("%*s", width[c], text);
		else
			printf("%-*s", columns[c + 1].title ? width[c] : 0, text);
		fputs(columns[c + 1].title ? "  " : "\n", stdout);
		free(text);
	}
}

void cli_print_table(const json_t *rows, const struct cli_column *columns)
{
	const json_t *row;
	size_t c, i, count = 0;
	int *width;

	while (columns[count].title)
		count++;
	width = calloc(count, sizeof(*width));
	if (!width)
		cli_no_memory();
	for (c = 0; c < count; c++)
		width[c] = width_of(rows, &columns[c]);
	print_row(rows, NULL, columns, width);
	json_array_foreach(rows, i, row)
		print_row(rows, row, columns, width);
	free(width);
}
