// SPDX-License-Identifier: MIT
/* The view of xmem top: what keys do to it, and its lines. Pure: top.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/look.h"
#include "cli/top.h"

#define HEAD	3			/* lines above the rows; the last has the titles */

static const char *const help[] = {
	"Up, Down, PgUp, PgDn, Home, End   select a row",
	"Enter     pool: its clients; slot: the clients that hold it",
	"Esc       back",
	"Tab       a pool's clients, or its slots",
	"< and >   sort by the column before or after; the highest numbers first",
	"r         sort the other way round",
	"/         show only rows that contain a text; Enter ends it, Esc shows all again",
	"e         evict the selected client, after a question (kernel only)",
	"p         pause, and go on",
	"q         quit",
	"",
	"xmem help top explains the columns.",
};

void top_begin(struct top_view *view)
{
	int i;

	*view = (struct top_view){ .rows = 24, .columns = 80, .slot = -1, .evict = -1 };
	for (i = 0; i < TOP_TABLES; i++)
		view->place[i].id = -1;
	view->place[TOP_POOLS].column = top_columns(TOP_POOLS) - 1;	/* the name */
}

/* ---- rows ---- */

static const json_t *pool_of(const struct top_view *view, const json_t *sample)
{
	return look_find(json_object_get(sample, "pools"), "number", view->pool);
}

/* The clients that hold that slot. */
static json_t *holders_of(const json_t *pool, json_int_t slot)
{
	const json_t *row = look_find(json_object_get(pool, "slots"), "slot", slot), *id;
	json_t *holders = cli_array(), *client;
	size_t i;

	json_array_foreach(json_object_get(row, "holders"), i, id) {
		client = look_find(json_object_get(pool, "clients"), "client",
				   json_integer_value(id));
		if (client)
			cli_append(holders, json_incref(client));
	}
	return holders;
}

struct top_rows top_rows(const struct top_view *view, const json_t *sample)
{
	const struct top_place *place = &view->place[view->table];
	struct top_rows rows = {
		.table = view->table,
		.seconds = look_number(sample, "interval_ns") / 1e9,
		.pool = view->table == TOP_POOLS ? NULL : pool_of(view, sample),
	};
	json_t *all = view->table == TOP_POOLS ? json_object_get(sample, "pools") :
		      json_object_get(rows.pool, view->table == TOP_SLOTS ? "slots" : "clients");

	rows.row = view->table == TOP_CLIENTS && view->slot >= 0 ?
		   holders_of(rows.pool, view->slot) : all ? json_copy(all) : cli_array();
	if (!rows.row)
		cli_no_memory();
	top_filter(&rows, view->filter);
	top_sort(&rows, place->column, place->reverse);
	return rows;
}

/*
 * The index of the selected row. A row keeps the selection wherever it moves; when it has gone, the
 * row in its place is selected. -1: there are no rows.
 */
static int selected(const struct top_view *view, const struct top_rows *rows)
{
	const struct top_place *place = &view->place[view->table];
	int count = json_array_size(rows->row), i;

	for (i = 0; place->id >= 0 && i < count; i++)
		if (top_id(rows, i) == place->id)
			return i;
	return place->at < count ? place->at : count - 1;
}

static void select_row(struct top_view *view, const json_t *sample, int by)
{
	struct top_place *place = &view->place[view->table];
	struct top_rows rows = top_rows(view, sample);
	int last = (int)json_array_size(rows.row) - 1, at = selected(view, &rows);

	at = at + by > last ? last : at + by;
	place->at = at < 0 ? 0 : at;
	place->id = last < 0 ? -1 : top_id(&rows, place->at);
	json_decref(rows.row);
}

/* ---- keys ---- */

void top_show(struct top_view *view, const json_t *pool)
{
	view->pool = look_number(pool, "number");
	snprintf(view->name, sizeof(view->name), "%s",
		 json_string_value(json_object_get(pool, "pool")));
	view->table = TOP_CLIENTS;
	view->slot = -1;
	view->place[TOP_CLIENTS].id = view->place[TOP_SLOTS].id = -1;
	view->place[TOP_CLIENTS].at = view->place[TOP_SLOTS].at = 0;
}

static void go_in(struct top_view *view, const json_t *sample)
{
	json_int_t id = view->place[view->table].id;
	const json_t *pool = look_find(json_object_get(sample, "pools"), "number", id);

	if (id < 0 || view->table == TOP_CLIENTS)
		return;
	view->filter[0] = '\0';
	if (view->table == TOP_POOLS) {
		top_show(view, pool);
		return;
	}
	view->slot = id;
	view->table = TOP_CLIENTS;
	view->place[TOP_CLIENTS].id = -1;
}

static void go_back(struct top_view *view)
{
	if (view->filter[0])
		view->filter[0] = '\0';
	else if (view->slot >= 0)
		view->table = TOP_SLOTS;
	else
		view->table = TOP_POOLS;
	view->slot = -1;
}

static void sort_by(struct top_view *view, int step)
{
	struct top_place *place = &view->place[view->table];
	int count = top_columns(view->table);

	place->column = (place->column + step + count) % count;
	place->reverse = top_falls(view->table, place->column);
}

/* Ask about the selected client, or say why not. */
static void ask(struct top_view *view, const json_t *sample)
{
	const json_t *client = look_find(json_object_get(pool_of(view, sample), "clients"),
					 "client", view->place[TOP_CLIENTS].id);

	if (view->table != TOP_CLIENTS || !client) {
		snprintf(view->message, sizeof(view->message),
			 "Select a client first: Enter shows those of a pool.");
		return;
	}
	view->evict = view->place[TOP_CLIENTS].id;
	view->incarnation = look_number(client, "incarnation");
	snprintf(view->message, sizeof(view->message),
		 "Evict client %" JSON_INTEGER_FORMAT " (%s, pid %" JSON_INTEGER_FORMAT
		 ") from %s? y/N", view->evict,
		 json_string_value(json_object_get(client, "label")), look_number(client, "pid"),
		 view->name);
}

/* The pool that is shown may have ended. */
static void follow(struct top_view *view, const json_t *sample)
{
	if (view->table != TOP_POOLS && !pool_of(view, sample)) {
		snprintf(view->message, sizeof(view->message), "Pool %s has ended.", view->name);
		view->table = TOP_POOLS;
		view->slot = view->evict = -1;
	}
	select_row(view, sample, 0);
}

static void type(struct top_view *view, int key)
{
	size_t length = strlen(view->filter);

	if (key == TOP_ERASE && length)
		view->filter[length - 1] = '\0';
	else if (key == TOP_ESCAPE)
		view->filter[0] = '\0';
	else if (key >= ' ' && key <= '~' && length + 1 < sizeof(view->filter))
		snprintf(view->filter + length, 2, "%c", key);
	view->types = key != TOP_ENTER && key != TOP_ESCAPE;
}

static void press(struct top_view *view, const json_t *sample, int key)
{
	int page = view->rows - HEAD - 1 > 1 ? view->rows - HEAD - 1 : 1;

	switch (key) {
	case TOP_UP: case 'k':		select_row(view, sample, -1); break;
	case TOP_DOWN: case 'j':	select_row(view, sample, 1); break;
	case TOP_PAGE_UP:		select_row(view, sample, -page); break;
	case TOP_PAGE_DOWN: case ' ':	select_row(view, sample, page); break;
	case TOP_HOME:			select_row(view, sample, -(1 << 20)); break;
	case TOP_END:			select_row(view, sample, 1 << 20); break;
	case TOP_ENTER:			go_in(view, sample); break;
	case TOP_BACK: case TOP_ESCAPE:	go_back(view); break;
	case '\t':
		if (view->table == TOP_POOLS)
			break;
		view->table = view->table == TOP_SLOTS ? TOP_CLIENTS : TOP_SLOTS;
		view->slot = -1;
		break;
	case '<':	sort_by(view, -1); break;
	case '>':	sort_by(view, 1); break;
	case 'r':	view->place[view->table].reverse ^= true; break;
	case '/':	view->types = true; break;
	case 'e':	ask(view, sample); break;
	case 'p':	view->paused ^= true; break;
	case 'h': case '?':	view->helps = true; break;
	}
}

enum top_action top_key(struct top_view *view, const json_t *sample, int key)
{
	bool asked = view->evict >= 0;

	if (key == TOP_SAMPLE) {
		follow(view, sample);
		return TOP_NOTHING;
	}
	if (asked && key == 'y')
		return TOP_EVICT;
	view->message[0] = '\0';
	view->evict = -1;
	if (view->types)
		type(view, key);
	else if (view->helps)
		view->helps = false;
	else if (key == 'q')
		return TOP_QUIT;
	else if (!asked)
		press(view, sample, key);
	follow(view, sample);
	return TOP_NOTHING;
}

/* ---- lines ---- */

static char *first_line(const struct top_view *view, const json_t *sample)
{
	const char *backend = json_string_value(json_object_get(sample, "backend"));
	char *where = view->table == TOP_POOLS ? cli_format("pools") :
		      view->slot >= 0 ? cli_format("%s: holders of slot %" JSON_INTEGER_FORMAT,
						   view->name, view->slot) :
		      cli_format("%s: %s", view->name,
				 view->table == TOP_SLOTS ? "slots" : "clients");
	const struct top_place *place = &view->place[view->table];
	char *line = cli_format("xmem top  %s  %s, by %s%s%s%s%s", backend ? backend : "no host",
				where, top_title(view->table, place->column),
				place->reverse ? " (falling)" : "",
				*view->filter ? "  filter: " : "", view->filter,
				view->paused ? "  PAUSED" : "");

	free(where);
	return line;
}

/* The sums of the pool, or why nothing is shown. */
static char *second_line(const struct top_view *view, const json_t *sample)
{
	const json_t *pool = view->table == TOP_POOLS ? NULL : pool_of(view, sample);
	const char *error = json_string_value(json_object_get(sample, "error"));
	const json_t *devices = json_object_get(pool, "devices"), *device;
	char *line, *before, size[3][8];
	size_t i;

	if (error)
		return cli_format("%s", error);
	if (!pool)
		return cli_format("pools: %zu", json_array_size(json_object_get(sample, "pools")));
	if (!json_object_get(pool, "clients"))
		return cli_format("This pool cannot be looked at.");
	top_short(size[0], look_number(pool, "bytes_files"), 1024);
	top_short(size[1], look_number(pool, "bytes_kept"), 1024);
	top_short(size[2], look_number(pool, "bytes_limbo"), 1024);
	line = cli_format("%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " clients, %zu of %"
			  JSON_INTEGER_FORMAT " slots, CPU %s (kept %s), limbo %s",
			  look_number(pool, "alive"), look_number(pool, "clients_max"),
			  json_array_size(json_object_get(pool, "slots")),
			  look_number(pool, "slots_max"), size[0], size[1], size[2]);
	json_array_foreach(devices, i, device) {
		before = line;
		top_short(size[0], look_number(device, "bytes"), 1024);
		line = cli_format("%s, gpu%" JSON_INTEGER_FORMAT " %s", before,
				  look_number(device, "device"), size[0]);
		free(before);
	}
	return line;
}

static char *last_line(const struct top_view *view)
{
	if (view->types)
		return cli_format("/%s", view->filter);
	if (*view->message)
		return cli_format("%s", view->message);
	if (view->helps)
		return cli_format("Any key goes back.");
	return cli_format("Enter in  Esc back  Tab slots  < > sort  / filter  e evict  h help  "
			  "q quit");
}

/* Line @y of the screen; @first: the row in the first line below the titles. */
static char *line_of(const struct top_view *view, const json_t *sample,
		     const struct top_rows *rows, int first, int y)
{
	int i = y - HEAD;

	if (y == view->rows - 1)
		return last_line(view);
	if (y == 0)
		return first_line(view, sample);
	if (view->helps)
		return cli_format("%s", y - 2 >= 0 && y - 2 < (int)(sizeof(help) / sizeof(*help)) ?
				  help[y - 2] : "");
	if (y == 1)
		return second_line(view, sample);
	if (y == 2)
		return top_line(rows, -1);
	return first + i < (int)json_array_size(rows->row) ? top_line(rows, first + i) :
							      cli_format("%s", "");
}

char *top_draw(const struct top_view *view, const json_t *sample, int *ret_titles,
	       int *ret_selected)
{
	struct top_rows rows = top_rows(view, sample);
	int at = selected(view, &rows), room = view->rows - HEAD - 1, first = 0, y;
	char *all = cli_format("%s", ""), *line, *before;

	/* The selected row is in the last line if it does not fit into the first ones. */
	if (room > 0 && at >= room)
		first = at - room + 1;
	*ret_titles = view->rows > HEAD && !view->helps ? HEAD - 1 : -1;
	*ret_selected = room > 0 && at >= 0 && !view->helps ? HEAD + at - first : -1;
	for (y = 0; y < view->rows; y++) {
		line = line_of(view, sample, &rows, first, y);
		before = all;
		all = cli_format("%s%.*s\n", before, view->columns, line);
		free(before);
		free(line);
	}
	json_decref(rows.row);
	return all;
}
