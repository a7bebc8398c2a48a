// SPDX-License-Identifier: MIT
/*
 * The table: rows and their verdicts, as text.
 *
 * Of ratios the median is judged: a busy machine slows both sides alike. A target is missed when
 * the median is beyond it by more than the margin of this run, and by more than 3 %. Times alone
 * are never judged, because they differ from machine to machine.
 */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct row *row_new(struct bench *bench, const char *what, const char *base_name,
			   const char *unit)
{
	struct row *row = &bench->row[bench->rows];

	if (bench->rows == BENCH_MAX_ROWS)
		die("too many rows");
	bench->rows++;
	snprintf(row->what, sizeof(row->what), "%s", what);
	snprintf(row->base_name, sizeof(row->base_name), "%s", base_name);
	snprintf(row->unit, sizeof(row->unit), "%s", unit);
	return row;
}

void row_series(struct bench *bench, const char *what, const char *base_name,
		enum target_kind kind, double target, struct series *series)
{
	struct row *row = row_new(bench, what, base_name, "ns");

	row->kind = bench->untimed ? TARGET_NONE : kind;
	row->target = target;
	row->figures = figures_of(series);
}

void row_number(struct bench *bench, const char *what, const char *unit, double value,
		double target)
{
	struct row *row = row_new(bench, what, "", unit);

	row->kind = target < 0 ? TARGET_NONE : TARGET_VALUE;
	row->target = target;
	row->figures.value = (struct figure){ value, value, value, value };
}

static bool is_ratio(const struct row *row)
{
	return row->kind == TARGET_MOST || row->kind == TARGET_LEAST;
}

/* The distance of the figure from its target on the wrong side; negative: on the right side. */
static double beyond(const struct row *row)
{
	double level = is_ratio(row) ? row->figures.ratio.median : row->figures.value.min;

	return row->kind == TARGET_LEAST ? row->target - level : level - row->target;
}

static double spread_of(const struct row *row)
{
	return figure_spread(row->base_name[0] ? &row->figures.ratio : &row->figures.value);
}

/* Counted numbers have no spread. */
static double margin(const struct row *row)
{
	if (!is_ratio(row))
		return 0;
	return fmax(row->figures.margin, 0.03 * row->target);
}

static bool missed(const struct row *row)
{
	return row->kind != TARGET_NONE && beyond(row) > margin(row);
}

const char *row_verdict(const struct row *row)
{
	if (row->kind == TARGET_NONE)
		return "";
	if (beyond(row) <= 0)
		return "met";
	return missed(row) ? "MISSED" : "just missed";
}

void table_print_head(void)
{
	printf("%-36s %11s %11s  %-28s %8s %7s  %-9s %s\n", "what", "min", "median",
	       "against (median)", "now", "spread", "target", "verdict");
}

static void print_row(const struct row *row)
{
	char base[64] = "", ratio[16] = "", spread[16] = "", target[24] = "";
	const struct figures *figures = &row->figures;

	if (row->base_name[0]) {
		snprintf(base, sizeof(base), "%s %.4g", row->base_name, figures->floor.median);
		snprintf(ratio, sizeof(ratio), "%.3g x", figures->ratio.median);
		snprintf(spread, sizeof(spread), "%.2g", spread_of(row));
	}
	if (is_ratio(row))
		snprintf(target, sizeof(target), "%s %g x", row->kind == TARGET_MOST ? "<=" : ">=",
			 row->target);
	else if (row->kind == TARGET_VALUE)
		snprintf(target, sizeof(target), "<= %g %s", row->target, row->unit);
	printf("%-36s %8.4g %-2s %8.4g %-2s  %-28s %8s %7s  %-9s %s\n", row->what,
	       figures->value.min, row->unit, figures->value.median, row->unit, base, ratio, spread,
	       target, row_verdict(row));
}

unsigned int table_print(const struct bench *bench, unsigned int first)
{
	unsigned int misses = 0;

	for (; first < bench->rows; first++) {
		print_row(&bench->row[first]);
		misses += missed(&bench->row[first]);
	}
	fflush(stdout);
	return misses;
}
