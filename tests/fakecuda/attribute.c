// SPDX-License-Identifier: MIT
/*
 * The attributes of a device. FAKECUDA_ATTRIBUTES=102=0,93=0 sets some to other values, so that
 * clients meet devices that can do less.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

enum { LAST_ATTRIBUTE = 160 };

static const struct { short attribute; int value; } attributes[] = {
	{ 1, 1024 },		/* threads in a block; then the sizes of blocks and grids */
	{ 2, 1024 }, { 3, 1024 }, { 4, 64 }, { 5, 0x7fffffff }, { 6, 65535 }, { 7, 65535 },
	{ 8, 49152 }, { 9, 65536 },	/* shared and constant memory */
	{ 10, 32 },		/* threads in a warp */
	{ 12, 65536 },		/* registers in a block */
	{ 13, 1000000 },	/* kHz */
	{ 15, 1 },		/* copies while a kernel runs */
	{ 16, 4 },		/* multiprocessors */
	{ 19, 1 },		/* maps memory of the CPU */
	{ 31, 1 },		/* concurrent kernels */
	{ 40, 2 },		/* copy engines */
	{ 41, 1 },		/* one address space with the CPU */
	{ 75, 9 }, { 76, 0 },	/* compute capability */
	{ 78, 1 },		/* priorities of streams */
	{ 83, 1 },		/* managed memory, */
	{ 89, 1 },		/* also while kernels run */
	{ 91, 1 },		/* registered memory has the CPU's address */
	{ 92, 1 }, { 93, 1 }, { 94, 1 },	/* stream memory operations of the first kind */
	{ 99, 1 },		/* registers memory of the CPU */
	{ 102, 1 },		/* virtual memory management */
	{ 103, 1 },		/* and exports it as descriptors */
	{ 113, 1 },		/* registers memory of the CPU for reading only */
	{ 115, 1 },		/* memory pools */
	{ 119, 1 },		/* whose handles are descriptors */
	{ 121, 1 }, { 122, 1 }, { 123, 1 },	/* stream memory operations, 64 bits, NOR */
	{ 125, 1 },		/* interprocess events */
	/* 86: no native atomics on memory of the CPU; 128: no fabric; 124: no dma-buf. */
};

static int from_environment(int attribute, int otherwise)
{
	const char *list = fk_option("ATTRIBUTES", "");
	char word[16];

	snprintf(word, sizeof(word), "%d=", attribute);
	for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
		if (at == list || at[-1] == ',')
			return atoi(at + strlen(word));
	return otherwise;
}

int fk_device_attribute(const struct fk_device *device, int attribute)
{
	int value = 0;

	if (attribute <= 0 || attribute > LAST_ATTRIBUTE)
		return -1;
	for (unsigned int i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].attribute == attribute)
			value = attributes[i].value;
	if (attribute == 33)		/* the PCI bus */
		value = device->index + 1;
	return from_environment(attribute, value);
}
