// SPDX-License-Identifier: MIT
/*
 * The table: rows, their verdicts, as text and as JSON.
 *
 * A target is missed when the figure is above it by more than the spread, that
 * is the distance between the quartiles of the repetitions of this very run. Of
 * ratios the median is judged: a busy machine slows both alike. Of times it is
 * the minimum: the rest says how busy the machine is.
 */
#include "bench.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static struct row *row_new(struct bench *bench, const char *what, const char *floor_name,
			   const char *unit)
{
	struct row *row = &bench->row[bench->rows];

	if (bench->rows == BENCH_MAX_ROWS)
		die("too many rows");
	bench->rows++;
	snprintf(row->what, sizeof(row->what), "%s", what);
	snprintf(row->floor_name, sizeof(row->floor_name), "%s", floor_name);
	snprintf(row->unit, sizeof(row->unit), "%s", unit);
	return row;
}

void row_series(struct bench *bench, const char *what, const char *floor_name,
		enum target_kind kind, double target, struct series *series)
{
	struct row *row = row_new(bench, what, floor_name, "ns");

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

static const struct figure *judged(const struct row *row)
{
	return row->kind == TARGET_RATIO ? &row->figures.ratio : &row->figures.value;
}

static double level(const struct row *row)
{
	return row->kind == TARGET_RATIO ? judged(row)->median : judged(row)->min;
}

static bool missed(const struct row *row)
{
	return row->kind != TARGET_NONE && level(row) - figure_spread(judged(row)) > row->target;
}

static const char *verdict(const struct row *row)
{
	if (row->kind == TARGET_NONE)
		return "";
	if (level(row) <= row->target)
		return "met";
	return missed(row) ? "MISSED" : "within spread";
}

void table_print_head(void)
{
	printf("%-36s %11s %11s %-28s %8s %7s  %-9s %s\n",
	       "what", "min", "median", "floor (median)", "ratio", "spread", "target", "verdict");
}

static void print_row(const struct row *row)
{
	char floor_text[64] = "", ratio[16] = "", spread[16] = "", target[24] = "";
	const struct figures *figures = &row->figures;

	if (row->floor_name[0]) {
		snprintf(floor_text, sizeof(floor_text), "%s %.4g", row->floor_name,
			 figures->floor.median);
		snprintf(ratio, sizeof(ratio), "%.3g", figures->ratio.median);
		snprintf(spread, sizeof(spread), "%.2g",
			 figure_spread(row->kind == TARGET_VALUE ? &figures->value :
				       &figures->ratio));
	}
	if (row->kind == TARGET_RATIO)
		snprintf(target, sizeof(target), "<= %g x", row->target);
	else if (row->kind == TARGET_VALUE)
		snprintf(target, sizeof(target), "<= %g %s", row->target, row->unit);
	printf("%-36s %7.4g %-3s %7.4g %-3s %-28s %8s %7s  %-9s %s\n", row->what,
	       figures->value.min, row->unit, figures->value.median, row->unit,
	       floor_text, ratio, spread, target, verdict(row));
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

/* ---- JSON ---- */

static void write_figure(FILE *file, const char *name, const struct figure *figure)
{
	fprintf(file, ", \"%s\": {\"min\": %.6g, \"low\": %.6g, \"median\": %.6g, \"high\": %.6g}",
		name, figure->min, figure->low, figure->median, figure->high);
}

static void write_row(FILE *file, const struct row *row)
{
	fprintf(file, "    {\"what\": \"%s\", \"unit\": \"%s\"", row->what, row->unit);
	write_figure(file, "value", &row->figures.value);
	if (row->floor_name[0]) {
		fprintf(file, ", \"floor_name\": \"%s\"", row->floor_name);
		write_figure(file, "floor", &row->figures.floor);
		write_figure(file, "ratio", &row->figures.ratio);
	}
	if (row->kind != TARGET_NONE)
		fprintf(file, ", \"target\": %g, \"of\": \"%s\", \"verdict\": \"%s\"", row->target,
			row->kind == TARGET_RATIO ? "ratio" : "value", verdict(row));
	fputc('}', file);
}

bool table_write(const struct bench *bench, const char *path)
{
	FILE *file = fopen(path, "w");
	struct utsname system;
	unsigned int n;

	if (!file || uname(&system))
		return false;
	fprintf(file, "{\n  \"backend\": \"%s\", \"kernel\": \"%s\", \"machine\": \"%s\", "
		"\"repetitions\": %u,\n  \"hand_overs\": %llu,\n  \"rows\": [\n",
		bench->backend, system.release, system.machine, bench->reps,
		(unsigned long long)bench->hand_overs);
	for (n = 0; n < bench->rows; n++) {
		write_row(file, &bench->row[n]);
		fputs(n + 1 < bench->rows ? ",\n" : "\n", file);
	}
	fputs("  ]\n}\n", file);
	return !fclose(file);
}
