// SPDX-License-Identifier: MIT
/*
 * Reading a recording from its beginning, without its summary: so a file that was cut off is read
 * up to its last whole chunk. Each length is checked against the bytes that are left.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/mcap.h"

#define CHANNEL_MOST	(1u << 20)	/* bytes of the record of a channel */
#define BLOCK		(64u << 10)

__attribute__((format(printf, 3, 4)))
static int fail(struct mcap_reader *reader, uint64_t at, const char *format, ...)
{
	va_list arguments;
	int used = snprintf(reader->why, sizeof(reader->why), "byte %" PRIu64 ": ", at);

	va_start(arguments, format);
	vsnprintf(reader->why + used, sizeof(reader->why) - (size_t)used, format, arguments);
	va_end(arguments);
	return -1;
}

static int read_bytes(struct mcap_reader *reader, void *data, size_t count, uint64_t at)
{
	int err = mcap_read_at(reader->fd, data, count, at);

	return err ? fail(reader, at, "%s", err == -ENODATA ? "the file has become shorter" :
						 strerror(-err)) : 0;
}

struct mcap_reader *mcap_open(int fd, char *why, size_t bytes)
{
	struct mcap_reader *reader = calloc(1, sizeof(*reader));
	char magic[MCAP_MAGIC_BYTES];
	struct stat stat;

	if (!reader)
		cli_no_memory();
	*reader = (struct mcap_reader){ .fd = fd, .checks = true };
	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode)) {
		snprintf(why, bytes, "it is no regular file");
	} else if (mcap_read_at(fd, magic, sizeof(magic), 0) ||
		   memcmp(magic, MCAP_MAGIC, sizeof(magic))) {
		snprintf(why, bytes, "byte 0: it is no MCAP file");
	} else {
		reader->size = (uint64_t)stat.st_size;
		mcap_rewind(reader);
		return reader;
	}
	free(reader);
	return NULL;
}

void mcap_rewind(struct mcap_reader *reader)
{
	reader->at = MCAP_MAGIC_BYTES;
	reader->chunk_end = 0;
}

static void free_channel(struct mcap_channel *channel)
{
	free(channel->topic);
	free(channel->encoding);
	json_decref(channel->metadata);
	free(channel);
}

void mcap_close(struct mcap_reader *reader)
{
	struct mcap_channel *channel;

	while ((channel = reader->channels)) {
		reader->channels = channel->next;
		free_channel(channel);
	}
	free(reader);
}

/* ---- channels ---- */

static struct mcap_channel *channel_of(struct mcap_reader *reader, uint64_t id)
{
	struct mcap_channel *channel = reader->channels;

	while (channel && channel->id != id)
		channel = channel->next;
	return channel;
}

/* Take the next text out of the @*left bytes at *@data. NULL: they are too few. */
static char *take_text(const uint8_t **data, size_t *left)
{
	size_t count = *left < 4 ? 0 : mcap_number(*data, 4);
	char *text;

	if (*left < 4 || count > *left - 4)
		return NULL;
	text = strndup((const char *)*data + 4, count);
	if (!text)
		cli_no_memory();
	*data += 4 + count;
	*left -= 4 + count;
	return text;
}

/* Texts that are not UTF-8 are left out. */
static bool take_map(const uint8_t *data, size_t left, json_t *map)
{
	char *key, *value;
	bool good = true;

	if (left < 4 || mcap_number(data, 4) > left - 4)
		return false;
	left = mcap_number(data, 4);
	for (data += 4; left && good; free(key), free(value)) {
		key = take_text(&data, &left);
		value = key ? take_text(&data, &left) : NULL;
		good = value;
		if (good)
			json_object_set_new(map, key, json_string(value));
	}
	return good;
}

static int read_channel(struct mcap_reader *reader, uint64_t at, uint64_t length)
{
	struct mcap_channel *channel;
	const uint8_t *data;
	uint8_t *record;
	size_t left = length - 4;
	int err = -1;

	if (length < 4 || length > CHANNEL_MOST)
		return fail(reader, at, "a channel's record of %" PRIu64 " bytes", length);
	record = malloc(length);
	channel = calloc(1, sizeof(*channel));
	if (!record || !channel)
		cli_no_memory();
	channel->metadata = cli_object();
	data = record + 4;
	if (read_bytes(reader, record, length, at))
		goto out;
	channel->id = (uint16_t)mcap_number(record, 2);
	channel->topic = take_text(&data, &left);
	if (channel->topic)
		channel->encoding = take_text(&data, &left);
	if (!channel->encoding || !take_map(data, left, channel->metadata)) {
		fail(reader, at, "a text of a channel is longer than its record");
		goto out;
	}
	err = 0;
	if (channel_of(reader, channel->id))	/* a copy of it, or not valid */
		goto out;
	channel->next = reader->channels;
	reader->channels = channel;
	free(record);
	return 0;
out:
	free(record);
	free_channel(channel);
	return err;
}

/* ---- chunks ---- */

static int check_crc(struct mcap_reader *reader, uint64_t at, uint32_t wanted)
{
	uint64_t rest = reader->chunk_end - at, from = at;
	uint8_t block[BLOCK];
	uint32_t crc = 0;
	size_t count;

	for (; rest; rest -= count, from += count) {
		count = rest < BLOCK ? (size_t)rest : BLOCK;
		if (read_bytes(reader, block, count, from))
			return -1;
		crc = mcap_crc(crc, block, count);
	}
	return crc == wanted ? 0 : fail(reader, at, "the chunk is damaged: its CRC is wrong");
}

/* A chunk begins: its records are next. */
static int enter_chunk(struct mcap_reader *reader, uint64_t at, uint64_t length)
{
	uint8_t head[MCAP_CHUNK_HEAD];
	char name[16] = "";
	uint64_t count;

	if (length < sizeof(head))
		return fail(reader, at, "a chunk of %" PRIu64 " bytes", length);
	if (read_bytes(reader, head, sizeof(head), at))
		return -1;
	count = mcap_number(head + 28, 4);
	if (count) {
		memcpy(name, head + 32, count < 8 ? count : 8);
		name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789")] = '\0';
		return fail(reader, at, "the chunk is compressed (%s): write the file again "
			    "without compression", name);
	}
	count = mcap_number(head + 32, 8);
	if (count > length - sizeof(head))
		return fail(reader, at, "the records of a chunk have %" PRIu64 " bytes, the chunk "
			    "only %" PRIu64, count, length);
	reader->chunk_end = at + sizeof(head) + count;
	reader->chunk_after = at + length;
	reader->at = at + sizeof(head);
	if (!reader->checks || !mcap_number(head + 24, 4))
		return 0;
	return check_crc(reader, reader->at, (uint32_t)mcap_number(head + 24, 4));
}

static int take_message(struct mcap_reader *reader, uint64_t at, uint64_t length,
			struct mcap_message *ret)
{
	uint8_t head[MCAP_MESSAGE_HEAD];

	if (length < sizeof(head))
		return fail(reader, at, "a message of %" PRIu64 " bytes", length);
	if (read_bytes(reader, head, sizeof(head), at))
		return -1;
	*ret = (struct mcap_message){
		.channel = channel_of(reader, mcap_number(head, 2)),
		.sequence = (uint32_t)mcap_number(head + 2, 4),
		.log_ns = mcap_number(head + 6, 8),
		.publish_ns = mcap_number(head + 14, 8),
		.at = at + sizeof(head),
		.bytes = length - sizeof(head),
	};
	return ret->channel ? 1 : fail(reader, at, "a message of channel %" PRIu64 ", which the "
				       "file does not have", mcap_number(head, 2));
}

/* The head of the next record, which lies within the chunk or the file. 1, 0 or -1. */
static int next_record(struct mcap_reader *reader, uint8_t *ret_kind, uint64_t *ret_at,
		       uint64_t *ret_length)
{
	uint8_t head[MCAP_RECORD_HEAD];
	uint64_t end;

	if (reader->at == reader->chunk_end) {
		reader->at = reader->chunk_after;
		reader->chunk_end = 0;
	}
	end = reader->chunk_end ? reader->chunk_end : reader->size;
	if (end - reader->at < sizeof(head))
		return fail(reader, reader->at, "the %s here, in the middle of a record: the "
			    "recording was cut off", end == reader->size ? "file ends" :
			    "chunk ends");
	if (read_bytes(reader, head, sizeof(head), reader->at))
		return -1;
	*ret_kind = *head;
	*ret_length = mcap_number(head + 1, 8);
	*ret_at = reader->at + sizeof(head);
	if (*ret_length > end - *ret_at)
		return fail(reader, reader->at, "a record of %" PRIu64 " bytes reaches beyond the "
			    "end of the %s: the recording was cut off", *ret_length,
			    reader->chunk_end ? "chunk" : "file");
	reader->at = *ret_at + *ret_length;
	return 1;
}

int mcap_next(struct mcap_reader *reader, struct mcap_message *ret)
{
	uint64_t at = 0, length = 0;
	uint8_t kind = 0;

	while (next_record(reader, &kind, &at, &length) > 0) {
		switch (kind) {
		case 0:
			return fail(reader, at - MCAP_RECORD_HEAD, "it is no record");
		case MCAP_MESSAGE:
			return take_message(reader, at, length, ret);
		case MCAP_CHANNEL:
			if (read_channel(reader, at, length))
				return -1;
			break;
		case MCAP_CHUNK:
			if (reader->chunk_end)
				return fail(reader, at, "a chunk in a chunk");
			if (enter_chunk(reader, at, length))
				return -1;
			break;
		case MCAP_DATA_END:
		case MCAP_FOOTER:
			if (!reader->chunk_end)
				return 0;
		}
	}
	return -1;
}
