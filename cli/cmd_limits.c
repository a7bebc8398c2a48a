// SPDX-License-Identifier: MIT
/*
 * xmem limits: the limits of this user or of a pool, and how much of each is in use.
 */
#include <errno.h>

#include "cli.h"

static char *most_text(const json_t *row)
{
	const json_t *most = json_object_get(row, "most");

	return json_is_integer(most) ? cli_format("%" JSON_INTEGER_FORMAT,
						  json_integer_value(most)) : cli_format("-");
}

static const struct cli_column columns[] = {
	{ "OF", "scope", NULL },	{ "WHAT", "what", NULL },
	{ "USED", "used", NULL },	{ "MOST", NULL, most_text },
	{ "NAME", "name", NULL },	{ 0 },
};

static json_t *row_of(const struct xmem_limit_info *info)
{
	static const char *const scopes[] = {
		[XMEM_LIMIT_OF_USER] = "user", [XMEM_LIMIT_OF_HOST] = "host",
		[XMEM_LIMIT_OF_POOL] = "pool", [XMEM_LIMIT_OF_CLIENT] = "client",
	};
	bool known = info->scope <= XMEM_LIMIT_OF_CLIENT;
	json_t *row = cli_object();

	cli_set_number(row, "number", info->number);
	cli_set(row, "scope", json_string(known ? scopes[info->scope] : "other"));
	cli_set(row, "uid", info->scope == XMEM_LIMIT_OF_USER ? json_integer(info->uid) :
							       json_null());
	cli_set(row, "what", json_string(info->what));
	cli_set(row, "bytes", json_boolean(info->in_bytes));
	cli_set_number(row, "used", info->used);
	cli_set(row, "most", info->most <= INT64_MAX ? json_integer((json_int_t)info->most) :
						       json_null());
	cli_set(row, "name", json_string(info->name));
	return row;
}

/* Returns -ENOENT at the end of the list, or another -errno. */
static int gather(struct xmem_pool *pool, json_t *rows)
{
	struct xmem_limit_info info = { 0 };
	uint32_t number = 0;
	int err;

	for (;;) {
		info.size = sizeof(info);
		err = xmem_limit_next(pool, number, &info);
		if (err)
			return err;
		cli_append(rows, row_of(&info));
		number = info.number + 1;
	}
}

static int gather_of_pool(const char *name, json_t *rows)
{
	struct xmem_pool *pool = cli_open(name);
	int err;

	if (!pool)
		return -1;
	err = gather(pool, rows);
	return cli_close(pool, err == -ENOENT ? 0 : err);
}

static int gather_of_host(json_t *rows)
{
	int err;

	cli_ask();
	err = gather(NULL, rows);
	cli_answered();
	if (err == -ENOENT)
		return 0;
	cli_fail_xmem();
	return err;
}

int cli_limits(const struct cli_arguments *arguments)
{
	json_t *rows = cli_array();
	int err = arguments->pool ? gather_of_pool(arguments->pool, rows) : gather_of_host(rows);

	if (!err && arguments->json)
		cli_print_json(rows);
	else if (!err)
		cli_print_table(rows, columns);
	json_decref(rows);
	return err ? CLI_FAILED : CLI_DONE;
}
