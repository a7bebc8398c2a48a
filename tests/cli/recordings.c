// SPDX-License-Identifier: MIT
/*
 * Recordings that are cut off, damaged, or hostile, and disks that are too small for them:
 *	build/asan/cli-recordings [NAME...]
 * A small recording is made, cut off or changed at each of its bytes, and read. The reader may stop
 * early, but whatever it gives is what was written.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/mcap.h"

#define MESSAGES	6
#define LARGE		70000		/* bytes of the last one: it is not gathered */

static uint8_t contents[MESSAGES][LARGE];
static const size_t lengths[MESSAGES] = { 5, 0, 300, 64, 1, LARGE };
static uint64_t chunk_ends[MESSAGES];	/* of the file, after each message */
static struct mcap_writer writer;
static uint8_t *file;			/* the whole recording */
static size_t file_bytes;
static const char *name;
static int failed;

__attribute__((format(printf, 1, 2))) static void says(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("FAIL %s: ", name);
	vprintf(format, arguments);
	putchar('\n');
	va_end(arguments);
	failed++;
}

/* Write the messages, two to a chunk. Returns how many were accepted. */
static int write_messages(int fd)
{
	json_t *metadata = json_pack("{s:s}", "pool", "cam");
	struct mcap_new message = { 0 };
	int i, err = mcap_begin(&writer, fd, "test");

	for (i = 0; i < MESSAGES && !err; i++) {
		if (i == 0)
			message.channel = mcap_channel(&writer, 0, "cam", "raw", metadata);
		message.sequence = (uint32_t)i;
		message.log_ns = message.publish_ns = 1000u + (uint64_t)i;
		message.contents = contents[i];
		message.bytes = lengths[i];
		err = mcap_write(&writer, &message);
		if (!err && i % 2)
			err = mcap_flush(&writer);
		chunk_ends[i] = writer.end;
	}
	json_decref(metadata);
	return err ? i - 1 : i;
}

static int memory_file(const void *data, size_t bytes)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	if (fd < 0 || (data && pwrite(fd, data, bytes, 0) != (ssize_t)bytes))
		abort();
	return fd;
}

static void make_file(void)
{
	struct stat stat;
	int fd = memory_file(NULL, 0), i;
	size_t j;

	for (i = 0; i < MESSAGES; i++)
		for (j = 0; j < LARGE; j++)
			contents[i][j] = (uint8_t)(i * 31 + (int)j * 7);
	if (write_messages(fd) != MESSAGES || mcap_finish(&writer) || fstat(fd, &stat))
		abort();
	file_bytes = (size_t)stat.st_size;
	file = malloc(file_bytes);
	if (!file || mcap_read_at(fd, file, file_bytes, 0))
		abort();
	close(fd);
}

/* Is this place in one of the chunks? Only these have a CRC. */
static bool in_chunk(uint64_t at)
{
	uint64_t begin = writer.first;
	int i;

	for (i = 1; i < MESSAGES; begin = chunk_ends[i], i += 2)
		if (at >= begin && at < begin + MCAP_RECORD_HEAD + mcap_number(file + begin + 1, 8))
			return true;
	return false;
}

/* Is this message one that was written? A record between the chunks may be taken for a message. */
static bool is_good(const struct mcap_message *message, int fd)
{
	static uint8_t data[LARGE];
	uint32_t i = message->sequence;

	return !in_chunk(message->at) ? message->at + message->bytes <= file_bytes :
	       i < MESSAGES && !strcmp(message->channel->topic, "cam") &&
	       message->bytes == lengths[i] &&
	       !mcap_read_at(fd, data, lengths[i], message->at) &&
	       !memcmp(data, contents[i], lengths[i]);
}

/* Read a file. Returns how many messages it gave; *ret_end: as the last mcap_next. */
static int read_file(int fd, const char *what, uint64_t at, int *ret_end)
{
	struct mcap_message message;
	struct mcap_reader *reader;
	char why[80];
	int count = 0;

	*ret_end = -1;
	reader = mcap_open(fd, why, sizeof(why));
	if (!reader)
		return 0;
	while ((*ret_end = mcap_next(reader, &message)) > 0) {
		if (!is_good(&message, fd))
			says("%s %" PRIu64 ": message %d is not one that was written", what, at,
			     count);
		if (++count > 2 * MESSAGES)
			break;
	}
	if (*ret_end < 0 && strncmp(reader->why, "byte ", 5))
		says("%s %" PRIu64 ": it does not say where: %s", what, at, reader->why);
	mcap_close(reader);
	return count;
}

/* All messages of whole chunks are read, and no other. */
static void cut_off_at_each_byte(void)
{
	int fd = memory_file(file, file_bytes), end, wanted, got, i;
	const uint64_t whole = writer.end + MCAP_RECORD_HEAD + 4; /* with the data's end */
	size_t bytes;

	for (bytes = file_bytes; bytes--; ) {
		if (ftruncate(fd, (off_t)bytes))
			abort();
		/* Only the ends of the contents, and not each of their bytes. */
		if (bytes % 1000 && bytes > chunk_ends[4] + 500 && bytes + 1000 < writer.end)
			continue;
		for (wanted = 0, i = 1; i < MESSAGES; i += 2)
			if (bytes >= chunk_ends[i] - 80)	/* its index may be missing */
				wanted = i + 1;
		got = read_file(fd, "cut off at byte", bytes, &end);
		if (got > wanted || (bytes >= chunk_ends[MESSAGES - 1] && got != MESSAGES))
			says("cut off at byte %zu: %d messages, not %d", bytes, got, wanted);
		for (i = 1; i < MESSAGES; i += 2)
			if (bytes >= chunk_ends[i] && got < i + 1)
				says("cut off at byte %zu: %d messages, not %d", bytes, got, i + 1);
		if ((bytes < whole) != (end < 0))
			says("cut off at byte %zu: the end is %d", bytes, end);
	}
	close(fd);
}

/* Each byte changed, in several ways, and each place taken for a length. */
static void changed_at_each_byte(void)
{
	static const uint64_t words[] = { UINT64_MAX, INT64_MAX, 1u << 31, 0 };
	int fd = memory_file(file, file_bytes), end;
	uint8_t flips[] = { 0xff, 1, 2, 0x80 }, changed;
	uint64_t at;
	size_t i;

	for (at = 0; at < file_bytes; at++) {
		if (at % 1000 && at > chunk_ends[4] + 500 && at + 1000 < writer.end)
			continue;
		for (i = 0; i < sizeof(flips); i++) {
			changed = file[at] ^ flips[i];
			if (pwrite(fd, &changed, 1, (off_t)at) != 1)
				abort();
			read_file(fd, "changed byte", at, &end);
		}
		for (i = 0; i < 4 && at + 8 <= file_bytes; i++) {
			if (pwrite(fd, &words[i], 8, (off_t)at) != 8)
				abort();
			read_file(fd, "changed word", at, &end);
		}
		i = file_bytes - at < 8 ? file_bytes - at : 8;
		if (pwrite(fd, file + at, i, (off_t)at) != (ssize_t)i)
			abort();
	}
	close(fd);
}

/* Without its CRC a chunk is believed, but its lengths are not. */
static void lengths_within_a_chunk(void)
{
	const uint64_t chunk = writer.first;
	int fd = memory_file(file, file_bytes);
	struct mcap_message message;
	struct mcap_reader *reader;
	uint64_t at, records = chunk + MCAP_RECORD_HEAD + MCAP_CHUNK_HEAD;
	uint64_t word = 1u << 20;
	char why[80];

	if (pwrite(fd, "\0\0\0\0", 4, (off_t)(chunk + MCAP_RECORD_HEAD + 24)) != 4)
		abort();
	for (at = records; at + 8 < chunk_ends[1]; at++) {
		if (pwrite(fd, &word, 8, (off_t)at) != 8)
			abort();
		reader = mcap_open(fd, why, sizeof(why));
		while (mcap_next(reader, &message) > 0)
			if (message.at > file_bytes || message.bytes > file_bytes - message.at)
				says("changed word %" PRIu64 ": a message reaches beyond the file",
				     at);
		mcap_close(reader);
		if (pwrite(fd, file + at, 8, (off_t)at) != 8)
			abort();
	}
	close(fd);
}

static void compressed_chunks_are_refused(void)
{
	struct mcap_message message;
	struct mcap_reader *reader;
	uint8_t *copy = malloc(file_bytes);
	char why[80];
	int fd;

	memcpy(copy, file, file_bytes);
	memcpy(copy + writer.first + MCAP_RECORD_HEAD + 28, "\4\0\0\0zstd", 8);
	fd = memory_file(copy, file_bytes);
	reader = mcap_open(fd, why, sizeof(why));
	if (mcap_next(reader, &message) >= 0 || !strstr(reader->why, "compressed (zstd)"))
		says("it says %s", reader->why);
	mcap_close(reader);
	close(fd);
	free(copy);
}

/* Does the file end as a recording does, and not with a torn record? */
static bool ends_well(int fd)
{
	char magic[MCAP_MAGIC_BYTES] = "";
	struct stat stat;

	if (fstat(fd, &stat) || mcap_read_at(fd, magic, sizeof(magic),
					     (uint64_t)stat.st_size - sizeof(magic)))
		abort();
	return !memcmp(magic, MCAP_MAGIC, sizeof(magic));
}

/*
 * The disk is full after each number of bytes. A recording that could be ended at all is whole, and
 * has everything that fits.
 */
static void full_after_each_byte(void)
{
	struct rlimit limit, before;
	uint64_t bytes;
	int fd, end, got, accepted, err;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	for (bytes = file_bytes; bytes > writer.first; bytes -= bytes > chunk_ends[4] + 500 &&
	     bytes < file_bytes - 1000 ? 1000 : 1) {
		fd = memory_file(NULL, 0);
		limit = (struct rlimit){ bytes, before.rlim_max };
		setrlimit(RLIMIT_FSIZE, &limit);
		accepted = write_messages(fd);
		err = mcap_finish(&writer);
		setrlimit(RLIMIT_FSIZE, &before);
		got = read_file(fd, "full after byte", bytes, &end);
		if (got > accepted)
			says("full after byte %" PRIu64 ": %d messages of %d", bytes, got,
			     accepted);
		err = accepted < MESSAGES ? -EFBIG : err;
		if (bytes == file_bytes ? err || got != MESSAGES : err != -EFBIG)
			says("full after byte %" PRIu64 ": it is not told", bytes);
		if (bytes > 1000 && (end < 0 || !ends_well(fd) ||
				     (uint64_t)got != writer.counts[1]))
			says("full after byte %" PRIu64 ": %d messages, and the end is %d", bytes,
			     got, end);
		close(fd);
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "cut_off_at_each_byte", cut_off_at_each_byte },
	{ "changed_at_each_byte", changed_at_each_byte },
	{ "lengths_within_a_chunk", lengths_within_a_chunk },
	{ "compressed_chunks_are_refused", compressed_chunks_are_refused },
	{ "full_after_each_byte", full_after_each_byte },
};
#define TESTS	(sizeof(tests) / sizeof(*tests))

int main(int argc, char **argv)
{
	int passed = 0, bad = 0, i;
	size_t t;

	make_file();
	for (t = 0; t < TESTS; t++) {
		for (i = 1; i < argc && strcmp(argv[i], tests[t].name); i++)
			;
		if (argc > 1 && i == argc)
			continue;
		name = tests[t].name;
		failed = 0;
		tests[t].run();
		passed += !failed;
		bad += !!failed;
	}
	printf("%d passed, %d failed, 0 skipped\n", passed, bad);
	return bad || !passed;
}
