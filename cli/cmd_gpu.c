// SPDX-License-Identifier: MIT
/*
 * xmem gpu: the driver (CUDA or HIP) and the GPUs that programs of this user find, and the
 * mechanisms that work there. It needs no host and no pool.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* The mechanisms, by their names in JSON and in the table. */
static const struct {
	const char *name;
	uint32_t bit;
} mechanisms[] = {
	{ "descriptors", XMEM_CUDA_CAN_EXPORT },
	{ "ipc", XMEM_CUDA_CAN_IPC },
	{ "pools", XMEM_CUDA_CAN_EXPORT_POOL },
	{ "memops", XMEM_CUDA_CAN_MEMOPS },
	{ "register", XMEM_CUDA_CAN_REGISTER },
	{ "register_read_only", XMEM_CUDA_CAN_REGISTER_READ_ONLY },
	{ "host_atomics", XMEM_CUDA_CAN_HOST_ATOMICS },
	{ "mps", XMEM_CUDA_CAN_MPS },
};
#define MECHANISMS	(sizeof(mechanisms) / sizeof(*mechanisms))

/* "descriptors, ipc", or a dash */
static char *works_text(const json_t *row)
{
	const json_t *works = json_object_get(row, "works");
	char *all = cli_format("%s", ""), *before;
	size_t i;

	for (i = 0; i < MECHANISMS; i++) {
		if (!json_is_true(json_object_get(works, mechanisms[i].name)))
			continue;
		before = all;
		all = cli_format("%s%s%s", before, *before ? ", " : "", mechanisms[i].name);
		free(before);
	}
	if (*all)
		return all;
	free(all);
	return cli_format("-");
}

static const struct cli_column columns[] = {
	{ "GPU", "gpu", NULL },		{ "UUID", "uuid", NULL },
	{ "NAME", "name", NULL },	{ "CAPABILITY", "capability", NULL },
	{ "BYTES", "bytes", NULL },	{ "GRANULARITY", "granularity", NULL },
	{ "WORKS", NULL, works_text },	{ 0 },
};

static json_t *version_text(uint32_t number, uint32_t unit, uint32_t minor_unit)
{
	char text[24];

	snprintf(text, sizeof(text), "%u.%u", number / unit, number % unit / minor_unit);
	return json_string(text);
}

static json_t *row_of(const struct xmem_cuda_device_info *info)
{
	json_t *row = cli_object(), *works = cli_object();
	size_t i;

	for (i = 0; i < MECHANISMS; i++)
		cli_set(works, mechanisms[i].name, json_boolean(info->can & mechanisms[i].bit));
	cli_set_number(row, "gpu", info->device_id);
	cli_set(row, "uuid", cli_uuid(info->uuid));
	cli_set(row, "name", cli_text(info->name, sizeof(info->name)));
	cli_set(row, "capability", version_text(info->capability, 10, 1));
	cli_set_number(row, "bytes", info->bytes);
	cli_set_number(row, "granularity", info->granularity);
	cli_set(row, "works", works);
	return row;
}

/* 0, or -errno, with the library's message. */
static int gather(json_t *all, json_t *rows)
{
	struct xmem_cuda_info driver = { .size = sizeof(driver) };
	struct xmem_cuda_device_info info;
	int err = xmem_cuda_query(&driver);
	uint32_t i;

	if (err)
		return err;
	cli_set(all, "driver", cli_text(driver.file, sizeof(driver.file)));
	cli_set(all, driver.hip ? "hip" : "cuda", version_text(driver.version, 1000, 10));
	for (i = 0; !err && i < driver.devices; i++) {
		info.size = sizeof(info);
		err = xmem_cuda_device_query((int)i, &info);
		if (!err)
			cli_append(rows, row_of(&info));
	}
	return err;
}

static void print_text(const json_t *all, const json_t *rows)
{
	const char *file = json_string_value(json_object_get(all, "driver"));
	const json_t *cuda = json_object_get(all, "cuda"), *hip = json_object_get(all, "hip");

	printf("driver  %s\n", file ? file : "-");
	printf("%s%s\n\n", cuda ? "cuda    " : "hip     ", json_string_value(cuda ? cuda : hip));
	cli_print_table(rows, columns);
}

int cli_gpu(const struct cli_arguments *arguments)
{
	json_t *all = cli_object(), *rows = cli_array();
	int err;

	cli_set(all, "gpus", rows);
	err = gather(all, rows);
	if (err)
		cli_fail_xmem();
	else if (arguments->json)
		cli_print_json(all);
	else
		print_text(all, rows);
	json_decref(all);
	return err ? CLI_FAILED : CLI_DONE;
}
