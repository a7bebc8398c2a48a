// SPDX-License-Identifier: MIT
/*
 * Drives the view of xmem top without a terminal.
 *
 *   cli-view ROWS COLUMNS WORD...
 *   cli-view --sysfs FILE         prints the pool in FILE with what /sys/class/xmem tells of it
 *
 * A word that ends in .json is a file with a sample, which becomes the present one. Other words are
 * keys: the name of one (Down), or characters. It prints the screen of that size, and then which
 * line is selected, and the last action.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/look.h"
#include "cli/top.h"

static const struct {
	const char *name;
	int key;
} names[] = {
	{ "Up", TOP_UP }, { "Down", TOP_DOWN }, { "PgUp", TOP_PAGE_UP },
	{ "PgDn", TOP_PAGE_DOWN }, { "Home", TOP_HOME }, { "End", TOP_END },
	{ "Enter", TOP_ENTER }, { "Left", TOP_BACK }, { "Erase", TOP_ERASE },
	{ "Esc", TOP_ESCAPE }, { "Tab", '\t' },
};

static json_t *load(const char *path)
{
	json_error_t error;
	json_t *sample = json_load_file(path, 0, &error);

	if (!sample) {
		fprintf(stderr, "cli-view: %s:%d: %s\n", path, error.line, error.text);
		exit(2);
	}
	return sample;
}

static enum top_action press(struct top_view *view, const json_t *sample, const char *word)
{
	enum top_action action = TOP_NOTHING;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(word, names[i].name))
			return top_key(view, sample, names[i].key);
	for (; *word; word++)
		action = top_key(view, sample, *word);
	return action;
}

int main(int argc, char **argv)
{
	static const char *const actions[] = { "nothing", "quit", "evict" };
	enum top_action action = TOP_NOTHING;
	int titles, selected, i;
	struct top_view view;
	json_t *sample = NULL;
	char *screen;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "--sysfs")) {
		sample = load(argv[2]);
		look_sysfs(sample, NULL);
		cli_print_json(sample);
		return 0;
	}
	top_begin(&view);
	view.rows = atoi(argv[1]);
	view.columns = atoi(argv[2]);
	for (i = 3; i < argc; i++) {
		const char *end = strrchr(argv[i], '.');

		if (!end || strcmp(end, ".json")) {
			action = press(&view, sample, argv[i]);
			continue;
		}
		json_decref(sample);
		sample = load(argv[i]);
		action = top_key(&view, sample, TOP_SAMPLE);
	}
	screen = top_draw(&view, sample, &titles, &selected);
	printf("%s-- titles %d, selected %d, %s\n", screen, titles, selected, actions[action]);
	free(screen);
	json_decref(sample);
	return 0;
}
