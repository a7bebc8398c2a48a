// SPDX-License-Identifier: MIT
/* The writer and the reader of recordings share this: bytes that grow, numbers, CRC-32. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/mcap.h"

void mcap_put(struct mcap_bytes *bytes, const void *data, size_t count)
{
	if (bytes->room - bytes->used < count) {
		bytes->room = (bytes->used + count) * 2;
		bytes->data = realloc(bytes->data, bytes->room);
		if (!bytes->data)
			cli_no_memory();
	}
	if (count)
		memcpy(bytes->data + bytes->used, data, count);
	bytes->used += count;
}

void mcap_put_number(struct mcap_bytes *bytes, uint64_t value, int count)
{
	uint8_t data[8];
	int i;

	for (i = 0; i < count; i++)
		data[i] = (uint8_t)(value >> 8 * i);
	mcap_put(bytes, data, (size_t)count);
}

void mcap_put_text(struct mcap_bytes *bytes, const char *text)
{
	mcap_put_number(bytes, strlen(text), 4);
	mcap_put(bytes, text, strlen(text));
}

uint64_t mcap_number(const void *data, int count)
{
	const uint8_t *bytes = data;
	uint64_t value = 0;

	while (count--)
		value = value << 8 | bytes[count];
	return value;
}

/* Eight bytes a step: table[i] advances a byte by i more bytes. */
static uint32_t table[8][256];

static void make_table(void)
{
	uint32_t i, j, bit;

	for (i = 0; i < 256; i++) {
		table[0][i] = i;
		for (bit = 0; bit < 8; bit++)
			table[0][i] = table[0][i] >> 1 ^ (table[0][i] & 1 ? 0xedb88320 : 0);
	}
	for (j = 1; j < 8; j++)
		for (i = 0; i < 256; i++)
			table[j][i] = table[j - 1][i] >> 8 ^ table[0][table[j - 1][i] & 0xff];
}

uint32_t mcap_crc(uint32_t crc, const void *data, size_t count)
{
	const uint8_t *bytes = data;
	uint64_t word;
	int i;

	if (!table[0][1])
		make_table();
	for (crc = ~crc; count >= 8; count -= 8, bytes += 8) {
		word = mcap_number(bytes, 8) ^ crc;
		for (crc = 0, i = 0; i < 8; i++)
			crc ^= table[7 - i][word >> 8 * i & 0xff];
	}
	while (count--)
		crc = crc >> 8 ^ table[0][(crc ^ *bytes++) & 0xff];
	return ~crc;
}

int mcap_read_at(int fd, void *data, size_t count, uint64_t at)
{
	uint8_t *bytes = data;
	ssize_t got;

	while (count) {
		got = pread(fd, bytes, count, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -ENODATA;
		bytes += got;
		at += (uint64_t)got;
		count -= (size_t)got;
	}
	return 0;
}
