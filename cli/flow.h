/* SPDX-License-Identifier: MIT */
/*
 * Shared by record, replay, cat and put: contents on their way between pools, files and pipes, and
 * how a recording describes them.
 *
 * In a recording a pool has a channel of descriptions, which are JSON, and a channel of contents.
 * Each message of contents follows its description in the same chunk.
 */
#ifndef CLI_FLOW_H
#define CLI_FLOW_H

#include "cli/cli.h"
#include "cli/mcap.h"

/* Memory for contents that are on a GPU. */
struct flow_memory {
	void *data;
	size_t room;
};

/* The contents of a held buffer in memory of the CPU. NULL: xmem's last error says why. */
const void *flow_contents(struct xmem_buffer *buffer, struct flow_memory *memory);

/* Read or write so many bytes. Returns how many there were before the file ended, or -errno. */
ssize_t flow_read(int fd, void *data, size_t bytes);
int flow_write(int fd, const void *data, size_t bytes);

/* Join a pool as a writer, or make it with these options. NULL: an error was printed. */
struct xmem_pool *flow_join(const char *name, const struct xmem_pool_options *options);

/* Wait until @count clients follow this writer. Returns: CLI_DONE, or CLI_FAILED. */
int flow_await(struct xmem_pool *pool, uint64_t count);

uint64_t flow_now(void);		/* CLOCK_MONOTONIC, in nanoseconds */
void flow_sleep(uint64_t until);	/* at that clock */

/* ---- options: false: an error was printed ---- */

/* @most: the largest number. */
bool flow_number(const char *option, const char *text, uint64_t most, uint64_t *ret);
bool flow_bytes(const char *option, const char *text, uint64_t *ret);	/* K, M, G, T: of 1024 */
bool flow_seconds(const char *option, const char *text, uint64_t *ret_ns);
bool flow_rate(const char *option, const char *text, double *ret);
bool flow_dtype(const char *text, uint32_t *ret);

/* ---- descriptions ---- */

/* A new object: everything that is known about a publication; @lost before it. */
json_t *flow_describe(struct xmem_buffer *buffer, uint64_t lost);

/* Give a buffer that is being written the metadata of such an object; NULL: none. */
void flow_restore(struct xmem_buffer *buffer, const json_t *description);

/* The text of a number of 64 bits. 0: there is none. */
uint64_t flow_word(const json_t *object, const char *key);

/* ---- images ---- */

/*
 * Is it an image of which ROS, and so Foxglove, have a name? Then @ret_head is what stands before
 * its pixels in a message of the type sensor_msgs/msg/Image.
 */
bool flow_ros_image(struct xmem_buffer *buffer, uint64_t time_ns, struct mcap_bytes *ret_head);
extern const char flow_ros_schema[];

/* The name of a format after the C of a stream of YUV4MPEG2, and the format. */
const char *flow_y4m_name(uint32_t format);
uint32_t flow_y4m_format(const char *name);	/* XMEM_IMAGE_NONE: there is none */

#endif
