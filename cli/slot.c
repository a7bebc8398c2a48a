// SPDX-License-Identifier: MIT
/* Shared by the commands that show slots: numbers, tokens, states, and the clients in them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

uint32_t cli_slot_number(const char *text)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (!*text || *end || strspn(text, "0123456789") != strlen(text) || errno ||
	    value >= XMEM_NOBODY)
		return XMEM_NOBODY;
	return (uint32_t)value;
}

json_t *cli_token(uint64_t token)
{
	char text[24];

	if (!token)
		return json_null();
	snprintf(text, sizeof(text), "0x%016" PRIx64, token);
	return json_string(text);
}

const char *cli_state_name(uint32_t state)
{
	static const char *const name[] = {
		[XMEM_USE_NONE] = "none", [XMEM_USE_FREE] = "free", [XMEM_USE_WRITING] = "writing",
		[XMEM_USE_LIVE] = "live", [XMEM_USE_LIMBO] = "limbo",
	};

	return state < sizeof(name) / sizeof(*name) ? name[state] : "unknown";
}

json_t *cli_client(struct xmem_pool *pool, uint32_t id)
{
	struct xmem_client_info info = { .size = sizeof(info) };
	json_t *client;

	if (xmem_pool_client_info(pool, id, &info))
		return json_null();
	client = cli_object();
	cli_set_number(client, "client", info.id);
	cli_set(client, "label", cli_text(info.label, sizeof(info.label)));
	cli_set_number(client, "pid", info.pid);
	return client;
}

char *cli_client_text(const json_t *client)
{
	if (!json_is_object(client))
		return cli_format("-");
	return cli_format("%s %" JSON_INTEGER_FORMAT,
			  json_string_value(json_object_get(client, "label")),
			  json_integer_value(json_object_get(client, "pid")));
}
