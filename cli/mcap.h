/* SPDX-License-Identifier: MIT */
/*
 * Recordings: files in the format MCAP (https://mcap.dev/spec), as far as record and replay need
 * it. The writer makes chunks without compression, with a CRC and an index of their messages. The
 * reader trusts no length in a file: whatever the file has, it stays within it.
 */
#ifndef CLI_MCAP_H
#define CLI_MCAP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MCAP_MAGIC		"\x89MCAP0\r\n"
#define MCAP_MAGIC_BYTES	8
#define MCAP_CHANNELS		256	/* of a writer, at most */
#define MCAP_RECORD_HEAD	9	/* of each record: its kind, and a length of 8 bytes */
#define MCAP_CHUNK_HEAD		40	/* of a chunk without compression, before its records */
#define MCAP_MESSAGE_HEAD	22	/* of a message, before its data */

enum mcap_kind {
	MCAP_HEADER = 1, MCAP_FOOTER = 2, MCAP_SCHEMA = 3, MCAP_CHANNEL = 4, MCAP_MESSAGE = 5,
	MCAP_CHUNK = 6, MCAP_MESSAGE_INDEX = 7, MCAP_CHUNK_INDEX = 8, MCAP_STATISTICS = 11,
	MCAP_DATA_END = 15,
};

/* Bytes that grow. All numbers are little endian. Without memory the tool ends. */
struct mcap_bytes {
	uint8_t *data;
	size_t used, room;
};

void mcap_put(struct mcap_bytes *bytes, const void *data, size_t count);
void mcap_put_number(struct mcap_bytes *bytes, uint64_t value, int count);
void mcap_put_text(struct mcap_bytes *bytes, const char *text);
uint64_t mcap_number(const void *data, int count);

/* CRC-32 as in zlib, of @data after bytes whose CRC is @crc; 0 at first. */
uint32_t mcap_crc(uint32_t crc, const void *data, size_t count);

/* Read or write all of these bytes. Returns: 0, or a negative errno; reading: -ENODATA at the
 * file's end. */
int mcap_read_at(int fd, void *data, size_t count, uint64_t at);

/* ---- writing (mcap_write.c) ---- */

struct mcap_place {			/* of a message in the chunk that is being gathered */
	uint16_t channel;
	uint64_t log_ns, at;
};

struct mcap_writer {
	int fd;
	uint64_t first;			/* where the first chunk begins */
	uint64_t end;			/* of the last whole chunk with its index */
	struct mcap_bytes chunk;	/* its head, and the records gathered so far */
	struct mcap_bytes places;	/* struct mcap_place */
	struct mcap_bytes kinds[2];	/* copies of the records of schemas and channels */
	uint16_t schemas, channels;
	uint64_t counts[MCAP_CHANNELS + 1];	/* of messages in the file, for each channel:
						 * mcap_finish */
};

/* Messages of a written chunk are safe; others go with a killed process. */
int mcap_begin(struct mcap_writer *writer, int fd, const char *library);

/* Both return a new number. Both are written with the next message. */
uint16_t mcap_schema(struct mcap_writer *writer, const char *name, const char *encoding,
		     const char *text);
uint16_t mcap_channel(struct mcap_writer *writer, uint16_t schema, const char *topic,
		      const char *encoding, const json_t *metadata);

/* The data of a message are @head and then @contents, which are not copied if they are large. */
struct mcap_new {
	uint16_t channel;
	uint32_t sequence;
	uint64_t log_ns, publish_ns;
	const struct mcap_bytes *head;	/* or NULL */
	const void *contents;
	size_t bytes;
};

/* Returns: 0, or a negative errno: then the file ends with its last whole chunk. */
int mcap_write(struct mcap_writer *writer, const struct mcap_new *message);
int mcap_flush(struct mcap_writer *writer);

/*
 * End the file with its summary. If the disk is too full for that, the last chunks go. Returns: 0,
 * or a negative errno.
 */
int mcap_finish(struct mcap_writer *writer);

/* ---- reading (mcap_read.c) ---- */

struct mcap_channel {
	struct mcap_channel *next;
	uint16_t id;
	char *topic, *encoding;
	json_t *metadata;		/* an object of texts */
};

struct mcap_reader {
	int fd;
	bool checks;			/* CRCs of chunks */
	uint64_t size;			/* of the file */
	uint64_t at;			/* the next record */
	uint64_t chunk_end;		/* of the records of a chunk; 0: not in a chunk */
	uint64_t chunk_after;		/* where the record after the chunk begins */
	struct mcap_channel *channels;
	char why[240];			/* of a failure, with the offset */
};

struct mcap_message {
	const struct mcap_channel *channel;
	uint32_t sequence;
	uint64_t log_ns, publish_ns;
	uint64_t at, bytes;		/* of its data in the file, within it */
};

/* NULL: @why. */
struct mcap_reader *mcap_open(int fd, char *why, size_t bytes);
void mcap_close(struct mcap_reader *reader);
void mcap_rewind(struct mcap_reader *reader);

/* 1: the next message. 0: the data have ended. -1: reader->why; then it cannot go on. */
int mcap_next(struct mcap_reader *reader, struct mcap_message *ret_message);

#endif
