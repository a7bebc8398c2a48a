// SPDX-License-Identifier: MIT
/*
 * The table for programs: results.json has all rows, and ratios.tsv those that bench/plot.gp draws.
 */
#include "bench.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static json_t *figure_json(const struct figure *figure)
{
	return json_pack("{s:f, s:f, s:f, s:f}", "min", figure->min, "low", figure->low, "median",
			 figure->median, "high", figure->high);
}

static const char *const kinds[] = {
	[TARGET_MOST] = "ratio at most", [TARGET_LEAST] = "ratio at least",
	[TARGET_VALUE] = "value at most",
};

static json_t *row_json(const struct row *row)
{
	json_t *out = json_pack("{s:s, s:s, s:o}", "what", row->what, "unit", row->unit, "value",
				figure_json(&row->figures.value));

	if (row->base_name[0]) {
		json_object_set_new(out, "base_name", json_string(row->base_name));
		json_object_set_new(out, "base", figure_json(&row->figures.floor));
		json_object_set_new(out, "ratio", figure_json(&row->figures.ratio));
	}
	if (row->kind != TARGET_NONE) {
		json_object_set_new(out, "target", json_real(row->target));
		json_object_set_new(out, "target_kind", json_string(kinds[row->kind]));
		json_object_set_new(out, "verdict", json_string(row_verdict(row)));
	}
	return out;
}

void json_write(const struct bench *bench, const char *path)
{
	const struct machine *machine = &bench->machine;
	json_t *rows = json_array(), *all;
	unsigned int n;

	for (n = 0; n < bench->rows; n++)
		json_array_append_new(rows, row_json(&bench->row[n]));
	all = json_pack("{s:s, s:{s:s, s:i, s:s, s:s, s:f, s:f}, s:i, s:I, s:b, s:o}",
			"backend", bench->backend,
			"machine", "cpu", machine->cpu, "cores", (int)machine->cores, "hypervisor",
			machine->hypervisor, "kernel", machine->kernel, "two_adds_ns",
			machine->two_adds_ns, "raw_line_ns", machine->raw_line_ns,
			"repetitions", (int)bench->reps, "hand_overs",
			(json_int_t)bench->hand_overs, "timed", !bench->untimed, "rows", rows);
	if (!all || json_dump_file(all, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6)))
		die(path);
	json_decref(all);
}

/* A line for each ratio with a target: its name, the ratio, its quartiles, and the target. */
void plot_write(const struct bench *bench, const char *path)
{
	FILE *file = fopen(path, "w");
	unsigned int n;

	if (!file)
		die(path);
	for (n = 0; n < bench->rows; n++) {
		const struct row *row = &bench->row[n];

		if (row->kind == TARGET_MOST || row->kind == TARGET_LEAST)
			fprintf(file, "%s\t%g\t%g\t%g\t%g\n", row->what,
				row->figures.ratio.median, row->figures.ratio.low,
				row->figures.ratio.high, row->target);
	}
	if (fclose(file))
		die(path);
}
