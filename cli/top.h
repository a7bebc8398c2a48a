/* SPDX-License-Identifier: MIT */
/*
 * xmem top: a sample (look.h) and a view of it. The view is a plain struct: a key makes a new view
 * of it, and a view and a sample make lines of text. Neither needs a terminal, so tests drive both.
 *
 *   top_table.c   tables: columns, cells, sorting
 *   top_view.c    the view: keys, and the lines of a screen
 *   top_screen.c  the terminal
 */
#ifndef TOP_H
#define TOP_H

#include "cli/cli.h"

/* ---- tables ---- */

enum top_table { TOP_POOLS, TOP_CLIENTS, TOP_SLOTS, TOP_TABLES };

struct top_rows {
	enum top_table table;
	json_t *row;			/* array: the rows, in order */
	double seconds;			/* from the sample before; 0: there is none */
	const json_t *pool;		/* of clients and slots */
};

/* How many columns does the table have? */
int top_columns(enum top_table table);
const char *top_title(enum top_table table, int column);

/* Is the highest number the first when the rows are sorted by that column? */
bool top_falls(enum top_table table, int column);

/* The number by which a row is known: of a pool, a client or a slot. */
json_int_t top_id(const struct top_rows *rows, size_t i);

/* Keep rows in which a cell has that text, in capitals or not, and sort them. */
void top_filter(struct top_rows *rows, const char *text);
void top_sort(struct top_rows *rows, int column, bool reverse);

/*
 * A malloc'ed line for row @i, or the titles if it is -1. The last column has no end: it is as long
 * as its text.
 */
char *top_line(const struct top_rows *rows, int i);

/* A number of at most five characters: 9999, 12k, 1.5M. @unit: 1000 or 1024. */
void top_short(char *ret, double number, int unit);

/* ---- the view ---- */

/* Keys that are no characters. */
enum top_key {
	TOP_SAMPLE = 0x1000, TOP_UP, TOP_DOWN, TOP_PAGE_UP, TOP_PAGE_DOWN, TOP_HOME, TOP_END,
	TOP_ENTER, TOP_BACK, TOP_ERASE, TOP_ESCAPE,
};

struct top_place {
	int column;			/* by which the rows are sorted */
	bool reverse;
	json_int_t id;			/* of the selected row; -1: the first */
	int at;				/* its index when it was last seen */
};

struct top_view {
	int rows, columns;		/* of the screen */
	enum top_table table;
	json_int_t pool;		/* of clients and slots: its number */
	char name[160];			/* and its name */
	json_int_t slot;		/* only holders of that slot are shown; -1: all clients */
	struct top_place place[TOP_TABLES];
	char filter[32];
	bool types;			/* keys go into the filter */
	bool helps;			/* the keys are explained */
	bool paused;
	json_int_t evict;		/* the client that the question is about; -1: no question */
	json_int_t incarnation;		/* its incarnation */
	char message[256];		/* in the last line until the next key */
};

enum top_action { TOP_NOTHING, TOP_QUIT, TOP_EVICT };

void top_begin(struct top_view *view);

/* Go into that pool. */
void top_show(struct top_view *view, const json_t *pool);

/*
 * Change the view by a key; TOP_SAMPLE: there is a new sample. TOP_EVICT: the user has said yes to
 * the eviction of view->evict, which is -1 again after the next key.
 */
enum top_action top_key(struct top_view *view, const json_t *sample, int key);

/* The rows that the view shows. The caller gives back their array by json_decref. */
struct top_rows top_rows(const struct top_view *view, const json_t *sample);

/*
 * A malloc'ed text: view->rows lines, of at most view->columns characters. *ret_titles and
 * *ret_selected are the lines to be marked, or -1.
 */
char *top_draw(const struct top_view *view, const json_t *sample, int *ret_titles,
	       int *ret_selected);

/* ---- the terminal ---- */

/* Show the view until the user ends it. @pool: its name, or NULL. Returns the exit status. */
int top_screen(const char *pool, uint64_t interval);

#endif
