// SPDX-License-Identifier: MIT
/*
 * Writing a recording. The data are chunks alone, each followed by the index of its messages:
 *
 *	magic | header | chunk, indexes | chunk, indexes ... | data end | summary | footer | magic
 *
 * Small messages gather in memory until there are enough for a chunk. A large message ends its
 * chunk, and is written from where it is. A chunk that cannot be written whole is cut off, so the
 * file always ends with a whole one. The summary is made from the file itself when it ends: until
 * then nothing grows with the file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/mcap.h"

#define LARGE		(64 << 10)	/* bytes of a message that is not copied */
#define CHUNK		(1 << 20)	/* bytes of small messages in a chunk */
#define BLOCK		(64 << 10)	/* of the summary, which is written piece by piece */

/* Begin a record, whose length end_record fills in. Returns where it begins. */
static size_t begin_record(struct mcap_bytes *bytes, enum mcap_kind kind)
{
	mcap_put_number(bytes, kind, 1);
	mcap_put_number(bytes, 0, 8);
	return bytes->used;
}

static void set_number(uint8_t *data, uint64_t value, int count)
{
	for (; count--; value >>= 8)
		*data++ = (uint8_t)value;
}

static void end_record(struct mcap_bytes *bytes, size_t begin, uint64_t more)
{
	set_number(bytes->data + begin - 8, bytes->used - begin + more, 8);
}

/* All of it, at this offset. */
static int write_at(int fd, struct iovec *iov, int count, uint64_t at)
{
	ssize_t put;

	while (count) {
		put = pwritev(fd, iov, count, (off_t)at);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		for (at += (uint64_t)put; count && (size_t)put >= iov->iov_len; iov++, count--)
			put -= (ssize_t)iov->iov_len;
		if (count) {
			iov->iov_base = (char *)iov->iov_base + put;
			iov->iov_len -= (size_t)put;
		}
	}
	return 0;
}

/* ---- chunks ---- */

static void begin_chunk(struct mcap_writer *writer)
{
	static const uint8_t head[MCAP_RECORD_HEAD + MCAP_CHUNK_HEAD] = { MCAP_CHUNK };

	writer->chunk.used = writer->places.used = 0;
	mcap_put(&writer->chunk, head, sizeof(head));
}

int mcap_begin(struct mcap_writer *writer, int fd, const char *library)
{
	struct mcap_bytes bytes = { 0 };
	struct iovec iov;
	size_t begin;
	int err;

	*writer = (struct mcap_writer){ .fd = fd };
	mcap_put(&bytes, MCAP_MAGIC, MCAP_MAGIC_BYTES);
	begin = begin_record(&bytes, MCAP_HEADER);
	mcap_put_text(&bytes, "");
	mcap_put_text(&bytes, library);
	end_record(&bytes, begin, 0);
	iov = (struct iovec){ bytes.data, bytes.used };
	writer->first = writer->end = bytes.used;
	err = write_at(fd, &iov, 1, 0);
	free(bytes.data);
	begin_chunk(writer);
	return err;
}

/* The record that has just been put stands in the summary again. */
static void keep(struct mcap_writer *writer, int kind, size_t begin)
{
	struct mcap_bytes *chunk = &writer->chunk;

	end_record(chunk, begin, 0);
	begin -= MCAP_RECORD_HEAD;
	mcap_put(&writer->kinds[kind], chunk->data + begin, chunk->used - begin);
}

uint16_t mcap_schema(struct mcap_writer *writer, const char *name, const char *encoding,
		     const char *text)
{
	size_t begin = begin_record(&writer->chunk, MCAP_SCHEMA);

	mcap_put_number(&writer->chunk, ++writer->schemas, 2);
	mcap_put_text(&writer->chunk, name);
	mcap_put_text(&writer->chunk, encoding);
	mcap_put_text(&writer->chunk, text);
	keep(writer, 0, begin);
	return writer->schemas;
}

uint16_t mcap_channel(struct mcap_writer *writer, uint16_t schema, const char *topic,
		      const char *encoding, const json_t *metadata)
{
	struct mcap_bytes *chunk = &writer->chunk;
	size_t begin = begin_record(chunk, MCAP_CHANNEL), map;
	const char *key;
	json_t *value;

	mcap_put_number(chunk, ++writer->channels, 2);
	mcap_put_number(chunk, schema, 2);
	mcap_put_text(chunk, topic);
	mcap_put_text(chunk, encoding);
	mcap_put_number(chunk, 0, 4);
	map = chunk->used;
	json_object_foreach((json_t *)metadata, key, value) {
		mcap_put_text(chunk, key);
		mcap_put_text(chunk, json_string_value(value));
	}
	set_number(chunk->data + map - 4, chunk->used - map, 4);
	keep(writer, 1, begin);
	return writer->channels;
}

static const struct mcap_place *place(const struct mcap_writer *writer, size_t i)
{
	return (struct mcap_place *)(void *)writer->places.data + i;
}

/* The index of the chunk: a record for each channel. */
static void put_indexes(const struct mcap_writer *writer, struct mcap_bytes *ret)
{
	size_t count = writer->places.used / sizeof(struct mcap_place), begin, i;
	uint16_t channel;

	for (channel = 1; channel <= writer->channels; channel++) {
		begin = begin_record(ret, MCAP_MESSAGE_INDEX);
		mcap_put_number(ret, channel, 2);
		mcap_put_number(ret, 0, 4);
		for (i = 0; i < count; i++) {
			if (place(writer, i)->channel != channel)
				continue;
			mcap_put_number(ret, place(writer, i)->log_ns, 8);
			mcap_put_number(ret, place(writer, i)->at, 8);
		}
		set_number(ret->data + begin + 2, ret->used - begin - 6, 4);
		end_record(ret, begin, 0);
		if (ret->used == begin + 6)
			ret->used = begin - MCAP_RECORD_HEAD;
	}
}

/* Fill in the head of the chunk, whose records end with @contents. */
static void set_head(struct mcap_writer *writer, const void *contents, size_t bytes)
{
	const size_t count = writer->places.used / sizeof(struct mcap_place);
	uint8_t *head = writer->chunk.data + MCAP_RECORD_HEAD, *records = head + MCAP_CHUNK_HEAD;
	size_t gathered = writer->chunk.used - MCAP_RECORD_HEAD - MCAP_CHUNK_HEAD, i;
	uint64_t first = place(writer, 0)->log_ns, last = first;

	for (i = 1; i < count; i++) {
		first = place(writer, i)->log_ns < first ? place(writer, i)->log_ns : first;
		last = place(writer, i)->log_ns > last ? place(writer, i)->log_ns : last;
	}
	set_number(head - 8, MCAP_CHUNK_HEAD + gathered + bytes, 8);
	set_number(head, first, 8);
	set_number(head + 8, last, 8);
	set_number(head + 16, gathered + bytes, 8);
	set_number(head + 24, mcap_crc(mcap_crc(0, records, gathered), contents, bytes), 4);
	set_number(head + 28, 0, 4);			/* no compression */
	set_number(head + 32, gathered + bytes, 8);
}

/* Write the records that wait, with @contents at their end, as one chunk; or nothing. */
static int write_chunk(struct mcap_writer *writer, const void *contents, size_t bytes)
{
	struct mcap_bytes indexes = { 0 };
	struct iovec iov[3];
	uint64_t whole;
	int err;

	if (!writer->places.used)
		return 0;
	set_head(writer, contents, bytes);
	put_indexes(writer, &indexes);
	iov[0] = (struct iovec){ writer->chunk.data, writer->chunk.used };
	iov[1] = (struct iovec){ (void *)contents, bytes };
	iov[2] = (struct iovec){ indexes.data, indexes.used };
	whole = writer->chunk.used + bytes + indexes.used;
	err = write_at(writer->fd, iov, 3, writer->end);
	if (!err)
		writer->end += whole;
	else if (ftruncate(writer->fd, (off_t)writer->end))
		err = -errno;
	free(indexes.data);
	begin_chunk(writer);
	return err;
}

int mcap_flush(struct mcap_writer *writer)
{
	return write_chunk(writer, NULL, 0);
}

int mcap_write(struct mcap_writer *writer, const struct mcap_new *message)
{
	struct mcap_bytes *chunk = &writer->chunk;
	struct mcap_place where = { message->channel, message->log_ns,
				    chunk->used - MCAP_RECORD_HEAD - MCAP_CHUNK_HEAD };
	size_t begin = begin_record(chunk, MCAP_MESSAGE);

	mcap_put(&writer->places, &where, sizeof(where));
	mcap_put_number(chunk, message->channel, 2);
	mcap_put_number(chunk, message->sequence, 4);
	mcap_put_number(chunk, message->log_ns, 8);
	mcap_put_number(chunk, message->publish_ns, 8);
	if (message->head)
		mcap_put(chunk, message->head->data, message->head->used);
	if (message->bytes >= LARGE) {
		end_record(chunk, begin, message->bytes);
		return write_chunk(writer, message->contents, message->bytes);
	}
	mcap_put(chunk, message->contents, message->bytes);
	end_record(chunk, begin, 0);
	return chunk->used >= CHUNK ? mcap_flush(writer) : 0;
}

/* ---- the end of the file ---- */

struct tail {
	struct mcap_bytes bytes;	/* that are not written yet */
	uint64_t at;			/* where they belong */
	uint32_t crc;			/* of the summary before them */
	uint64_t messages, first_ns, last_ns, chunk;
	uint32_t chunks;
	int err;			/* of writing */
	int lost;			/* of reading the file that was written */
};

static void tail_write(struct mcap_writer *writer, struct tail *tail)
{
	struct iovec iov = { tail->bytes.data, tail->bytes.used };

	if (!tail->err)
		tail->err = write_at(writer->fd, &iov, 1, tail->at);
	tail->crc = mcap_crc(tail->crc, tail->bytes.data, tail->bytes.used);
	tail->at += tail->bytes.used;
	tail->bytes.used = 0;
}

/* The kind of the record at @at, and its length; then its first bytes. */
static int look_at(struct mcap_writer *writer, uint64_t at, uint64_t *ret_length,
		   uint8_t ret[MCAP_RECORD_HEAD + MCAP_CHUNK_HEAD])
{
	uint64_t rest = writer->end - at;
	int err;

	memset(ret, 0, MCAP_RECORD_HEAD + MCAP_CHUNK_HEAD);
	if (rest > MCAP_RECORD_HEAD + MCAP_CHUNK_HEAD)
		rest = MCAP_RECORD_HEAD + MCAP_CHUNK_HEAD;
	err = mcap_read_at(writer->fd, ret, rest, at);
	*ret_length = MCAP_RECORD_HEAD + mcap_number(ret + 1, 8);
	return err;
}

/* Put the index of the chunk at @at. Returns where the next one begins. */
static uint64_t index_chunk(struct mcap_writer *writer, struct tail *tail, uint64_t at)
{
	uint8_t head[MCAP_RECORD_HEAD + MCAP_CHUNK_HEAD], other[sizeof(head)];
	struct mcap_bytes map = { 0 };
	uint64_t length, more, next, count;
	size_t begin;

	tail->lost = look_at(writer, at, &length, head);
	tail->chunk = at;
	for (next = at + length; !tail->lost && next < writer->end; next += more) {
		tail->lost = look_at(writer, next, &more, other);
		if (tail->lost || *other != MCAP_MESSAGE_INDEX)
			break;
		mcap_put(&map, other + MCAP_RECORD_HEAD, 2);
		mcap_put_number(&map, next, 8);
		count = mcap_number(other + MCAP_RECORD_HEAD + 2, 4) / 16;
		writer->counts[mcap_number(other + MCAP_RECORD_HEAD, 2) % MCAP_CHANNELS] += count;
		tail->messages += count;
	}
	begin = begin_record(&tail->bytes, MCAP_CHUNK_INDEX);
	mcap_put(&tail->bytes, head + MCAP_RECORD_HEAD, 16);
	mcap_put_number(&tail->bytes, at, 8);
	mcap_put_number(&tail->bytes, length, 8);
	mcap_put_number(&tail->bytes, map.used, 4);
	mcap_put(&tail->bytes, map.data, map.used);
	mcap_put_number(&tail->bytes, next - at - length, 8);
	mcap_put_text(&tail->bytes, "");
	mcap_put_number(&tail->bytes, length - MCAP_RECORD_HEAD - MCAP_CHUNK_HEAD, 8);
	mcap_put_number(&tail->bytes, length - MCAP_RECORD_HEAD - MCAP_CHUNK_HEAD, 8);
	end_record(&tail->bytes, begin, 0);
	free(map.data);
	if (!tail->chunks++ || mcap_number(head + MCAP_RECORD_HEAD, 8) < tail->first_ns)
		tail->first_ns = mcap_number(head + MCAP_RECORD_HEAD, 8);
	if (mcap_number(head + MCAP_RECORD_HEAD + 8, 8) > tail->last_ns)
		tail->last_ns = mcap_number(head + MCAP_RECORD_HEAD + 8, 8);
	return next;
}

static void put_statistics(struct mcap_writer *writer, struct tail *tail)
{
	struct mcap_bytes *bytes = &tail->bytes;
	size_t begin = begin_record(bytes, MCAP_STATISTICS);
	uint16_t i;

	mcap_put_number(bytes, tail->messages, 8);
	mcap_put_number(bytes, writer->schemas, 2);
	mcap_put_number(bytes, writer->channels, 4);
	mcap_put_number(bytes, 0, 8);			/* attachments, metadata */
	mcap_put_number(bytes, tail->chunks, 4);
	mcap_put_number(bytes, tail->first_ns, 8);
	mcap_put_number(bytes, tail->last_ns, 8);
	mcap_put_number(bytes, writer->channels * 10u, 4);
	for (i = 1; i <= writer->channels; i++) {
		mcap_put_number(bytes, i, 2);
		mcap_put_number(bytes, writer->counts[i], 8);
	}
	end_record(bytes, begin, 0);
}

static void put_summary(struct mcap_writer *writer, struct tail *tail)
{
	uint64_t at = writer->first;

	mcap_put(&tail->bytes, writer->kinds[0].data, writer->kinds[0].used);
	mcap_put(&tail->bytes, writer->kinds[1].data, writer->kinds[1].used);
	while (!tail->lost && at < writer->end) {
		at = index_chunk(writer, tail, at);
		if (tail->bytes.used >= BLOCK)
			tail_write(writer, tail);
	}
	put_statistics(writer, tail);
}

/* Everything after the last chunk. */
static void put_tail(struct mcap_writer *writer, struct tail *tail)
{
	uint64_t start;
	size_t begin;

	tail->at = writer->end;
	begin = begin_record(&tail->bytes, MCAP_DATA_END);
	mcap_put_number(&tail->bytes, 0, 4);
	end_record(&tail->bytes, begin, 0);
	tail_write(writer, tail);
	tail->crc = 0;
	start = tail->at;
	put_summary(writer, tail);
	begin = begin_record(&tail->bytes, MCAP_FOOTER);
	mcap_put_number(&tail->bytes, start, 8);
	mcap_put_number(&tail->bytes, 0, 8);
	end_record(&tail->bytes, begin, 4);
	tail_write(writer, tail);
	mcap_put_number(&tail->bytes, tail->crc, 4);
	mcap_put(&tail->bytes, MCAP_MAGIC, MCAP_MAGIC_BYTES);
	tail_write(writer, tail);
}

static bool is_full(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EFBIG;
}

/* -EAGAIN: the disk is full, *@ret_err says how, and the last chunk has gone to make room. */
static int try_finish(struct mcap_writer *writer, int *ret_err)
{
	struct tail tail = { 0 };
	int err;

	memset(writer->counts, 0, sizeof(writer->counts));
	put_tail(writer, &tail);
	err = tail.lost ? tail.lost : tail.err;
	if (is_full(err) && tail.chunks) {
		writer->end = tail.chunk;
		*ret_err = err;
		err = -EAGAIN;
	}
	if (err && ftruncate(writer->fd, (off_t)writer->end))
		err = -errno;
	free(tail.bytes.data);
	return err;
}

int mcap_finish(struct mcap_writer *writer)
{
	int err = mcap_flush(writer), end;

	while ((end = try_finish(writer, &err)) == -EAGAIN)
		;
	free(writer->chunk.data);
	free(writer->places.data);
	free(writer->kinds[0].data);
	free(writer->kinds[1].data);
	return end ? end : err;
}
