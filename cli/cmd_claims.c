// SPDX-License-Identifier: MIT
/*
 * xmem claims [--void] POOL [SLOT]: all buffers with claims, which are references set aside for
 * clients not yet known, or the buffer in SLOT. --void voids the claims that are shown.
 */
#include <errno.h>

#include "cli.h"

static char *owner_text(const json_t *row)
{
	return cli_client_text(json_object_get(row, "owner"));
}

static const struct cli_column columns[] = {
	{ "SLOT", "slot", NULL },	{ "STATE", "state", NULL },
	{ "BYTES", "bytes", NULL },	{ "DEVICE", NULL, cli_device_text },
	{ "OWNER", NULL, owner_text },	{ "HOLDS", "holds", NULL },
	{ "CLAIMS", "claims", NULL },	{ "VOIDED", "voided", NULL }, { 0 },
};

/* Show the claims of a slot, and void them if asked to. 0, or -errno. */
static int show(struct xmem_pool *pool, const struct xmem_slot_info *info, bool voids,
		json_t *rows)
{
	json_t *row;
	int err = 0;

	if (voids && info->claims) {
		cli_ask();
		err = xmem_void_claims(pool, info->token);
		cli_answered();
	}
	/* The claims were just taken, or have just expired. */
	if (err == -ENOENT || err == -ESTALE)
		return 0;
	if (err)
		return err;
	row = cli_object();
	cli_set_number(row, "slot", info->slot);
	cli_set(row, "state", json_string(cli_state_name(info->state)));
	cli_set_number(row, "bytes", info->bytes);
	cli_set_device(row, pool, info->device);
	cli_set(row, "token", cli_token(info->token));
	cli_set(row, "owner", cli_client(pool, info->owner));
	cli_set_number(row, "holds", info->holds);
	cli_set_number(row, "claims", voids ? 0 : info->claims);
	cli_set_number(row, "voided", voids ? info->claims : 0);
	cli_append(rows, row);
	return 0;
}

/* The slots from @first up to @end that have claims, or all of them. 0, or -errno. */
static int gather(struct xmem_pool *pool, uint32_t first, uint32_t end, bool all, bool voids,
		  json_t *rows)
{
	struct xmem_slot_info info;
	uint32_t slot;
	int err = 0;

	for (slot = first; !err && slot < end; slot++) {
		info.size = sizeof(info);
		err = xmem_pool_slot_info(pool, slot, &info);
		if (!err && (all || info.claims))
			err = show(pool, &info, voids, rows);
	}
	return err;
}

int cli_claims(const struct cli_arguments *arguments)
{
	uint32_t slot = arguments->slot ? cli_slot_number(arguments->slot) : 0;
	struct xmem_pool_info stat = { .size = sizeof(stat) };
	struct xmem_pool *pool;
	json_t *all, *rows;
	int err;

	if (slot == XMEM_NOBODY)
		return cli_usage("claims: SLOT is a number, not '%s'", arguments->slot);
	pool = cli_open(arguments->pool);
	if (!pool)
		return CLI_FAILED;
	all = cli_about(arguments->pool, pool);
	rows = cli_array();
	cli_set(all, "slots", rows);
	err = xmem_pool_stat(pool, &stat);
	if (!err && !arguments->slot)
		err = gather(pool, 0, stat.slots, false, arguments->voids, rows);
	else if (!err && slot < stat.slots)
		err = gather(pool, slot, slot + 1, true, arguments->voids, rows);
	err = cli_close(pool, err);
	if (!err && arguments->slot && slot >= stat.slots)
		err = cli_fail("pool '%s': it has no slot %s, only 0 to %u", arguments->pool,
			       arguments->slot, stat.slots - 1);
	else if (!err && arguments->json)
		cli_print_json(all);
	else if (!err)
		cli_print_table(rows, columns);
	json_decref(all);
	return err ? CLI_FAILED : CLI_DONE;
}
