// SPDX-License-Identifier: MIT
/* The GPUs in whose memory a pool has buffers: shared by the commands that show them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

json_t *cli_uuid(const uint8_t *uuid)
{
	char text[48] = "GPU", *at = text + 3;
	int i;

	for (i = 0; i < 16; i++)
		at += sprintf(at, "%s%02x", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ?
			      "-" : "", uuid[i]);
	return json_string(text);
}

static json_t *row_of(const struct xmem_device_info *info)
{
	json_t *row = cli_object();

	cli_set_number(row, "device", info->device);
	cli_set(row, "uuid", cli_uuid(info->uuid));
	cli_set_number(row, "bytes", info->bytes);
	cli_set_number(row, "bytes_closing", info->bytes_closing);
	return row;
}

int cli_devices(struct xmem_pool *pool, json_t *devices)
{
	struct xmem_device_info info;
	uint32_t device = 1;
	int err;

	for (;; device++) {
		info.size = sizeof(info);
		err = xmem_pool_device_info(pool, device, &info);
		if (err)
			break;
		cli_append(devices, row_of(&info));
	}
	/* If a pool has the maximum number of GPUs, there is no next number. */
	return err == -ENOENT || err == -EINVAL ? 0 : err;
}

void cli_set_device(json_t *row, struct xmem_pool *pool, uint32_t device)
{
	struct xmem_device_info info = { .size = sizeof(info) };
	bool known = device && !xmem_pool_device_info(pool, device, &info);

	cli_set_number(row, "device", device);
	cli_set(row, "uuid", known ? cli_uuid(info.uuid) : json_null());
}

char *cli_device_text(const json_t *row)
{
	const char *uuid = json_string_value(json_object_get(row, "uuid"));
	const char *state = json_string_value(json_object_get(row, "state"));

	if (state && !strcmp(state, cli_state_name(XMEM_USE_NONE)))
		return cli_format("-");
	return cli_format("%s", uuid ? uuid : "cpu");
}
