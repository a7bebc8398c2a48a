// SPDX-License-Identifier: MIT
/*
 * How a recording describes a publication: a JSON object with its metadata, its publisher and its
 * number. Numbers of 64 bits are texts, because many readers of JSON take numbers as floating point
 * with 53 bits. Fields that are 0 or empty are left out.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/flow.h"

enum kind { NUMBER, WORD, TEXT };

/* The fields of the metadata that are written and read back alike. */
static const struct {
	const char *name;
	enum kind kind;
	size_t at, bytes;		/* in struct xmem_metadata; of a text */
} fields[] = {
#define FIELD(kind, field) \
	{ #field, kind, offsetof(struct xmem_metadata, field), \
	  sizeof(((struct xmem_metadata *)0)->field) }
	FIELD(WORD, id), FIELD(TEXT, content_type), FIELD(TEXT, producer),
	FIELD(WORD, timestamp_ns), FIELD(TEXT, clock), FIELD(NUMBER, dtype), FIELD(NUMBER, image),
	FIELD(NUMBER, image_width), FIELD(NUMBER, image_height), FIELD(WORD, image_stride),
	FIELD(NUMBER, column), FIELD(NUMBER, column_flags), FIELD(WORD, column_rows),
	FIELD(WORD, column_chars),
};
#define FIELDS	(sizeof(fields) / sizeof(*fields))

static void set_word(json_t *object, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	if (value)
		cli_set(object, key, json_string(text));
}

uint64_t flow_word(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? strtoull(text, NULL, 10) : 0;
}

static uint64_t number(const json_t *value)
{
	return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
}

static void set_field(json_t *object, size_t i, const struct xmem_metadata *metadata)
{
	const void *field = (const char *)metadata + fields[i].at;
	uint64_t word;
	uint32_t half;

	switch (fields[i].kind) {
	case NUMBER:
		memcpy(&half, field, sizeof(half));
		if (half)
			cli_set_number(object, fields[i].name, half);
		break;
	case WORD:
		memcpy(&word, field, sizeof(word));
		set_word(object, fields[i].name, word);
		break;
	case TEXT:
		if (*(const char *)field)
			cli_set(object, fields[i].name, json_string(field));
	}
}

static json_t *integers(const int64_t *values, uint32_t count)
{
	json_t *array = cli_array();
	uint32_t i;

	for (i = 0; i < count; i++)
		cli_append(array, json_integer(values[i]));
	return array;
}

/* The element as numpy's typestr, for programs without xmem. NULL: it has none. */
static const char *typestr(uint32_t dtype, char text[8])
{
	static const char codes[] = { 'i', 'u', 'f', 0, 0, 'c', 'b' };
	uint32_t code = XMEM_DTYPE_CODE(dtype), bits = XMEM_DTYPE_BITS(dtype);

	if (code >= sizeof(codes) || !codes[code] || bits % 8 || XMEM_DTYPE_LANES(dtype) != 1)
		return NULL;
	snprintf(text, 8, "%c%c%u", bits == 8 ? '|' : '<', codes[code], bits / 8);
	return text;
}

static void set_tensor(json_t *object, const struct xmem_metadata *metadata)
{
	uint32_t ndim = metadata->ndim <= XMEM_MAX_DIMENSIONS ? metadata->ndim : 0;
	char text[8];

	if (!metadata->dtype)
		return;
	if (typestr(metadata->dtype, text))
		cli_set(object, "typestr", json_string(text));
	cli_set(object, "shape", integers(metadata->shape, ndim));
	cli_set(object, "strides", integers(metadata->strides, ndim));
}

json_t *flow_describe(struct xmem_buffer *buffer, uint64_t lost)
{
	struct xmem_buffer_info info = XMEM_INIT(info);
	struct xmem_metadata metadata = { 0 };
	json_t *object = cli_object(), *user = cli_array();
	char text[24];
	size_t i, last;

	xmem_buffer_stat(buffer, &info);
	xmem_metadata_view(buffer, &metadata);
	set_word(object, "lost", lost);
	cli_set(object, "sequence", json_integer((json_int_t)info.sequence));
	set_word(object, "bytes", info.bytes);
	set_word(object, "published_ns", info.timestamp_ns);
	cli_set(object, "publisher", json_string(info.label));
	for (i = 0; i < FIELDS; i++)
		set_field(object, i, &metadata);
	set_tensor(object, &metadata);
	for (last = 8; last && !metadata.user[last - 1]; last--)
		;
	for (i = 0; i < last; i++) {
		snprintf(text, sizeof(text), "%" PRIu64, metadata.user[i]);
		cli_append(user, json_string(text));
	}
	if (last)
		cli_set(object, "user", json_incref(user));
	json_decref(user);
	return object;
}

/* ---- back ---- */

static void restore_field(struct xmem_metadata *metadata, size_t i, const json_t *object)
{
	const json_t *value = json_object_get(object, fields[i].name);
	void *field = (char *)metadata + fields[i].at;
	uint64_t word = flow_word(object, fields[i].name);
	uint32_t half = (uint32_t)number(value);
	const char *text = json_string_value(value);

	if (fields[i].kind == NUMBER)
		memcpy(field, &half, sizeof(half));
	else if (fields[i].kind == WORD)
		memcpy(field, &word, sizeof(word));
	else if (text)
		memcpy(field, text, strnlen(text, fields[i].bytes - 1));
}

void flow_restore(struct xmem_buffer *buffer, const json_t *description)
{
	struct xmem_metadata *metadata = xmem_metadata_mut(buffer);
	const json_t *shape = json_object_get(description, "shape");
	const json_t *strides = json_object_get(description, "strides");
	const json_t *user = json_object_get(description, "user"), *word;
	size_t i;

	memset(metadata, 0, sizeof(*metadata));
	for (i = 0; i < FIELDS; i++)
		restore_field(metadata, i, description);
	if (json_array_size(shape) <= XMEM_MAX_DIMENSIONS &&
	    json_array_size(shape) == json_array_size(strides))
		metadata->ndim = (uint32_t)json_array_size(shape);
	for (i = 0; i < metadata->ndim; i++) {
		metadata->shape[i] = json_integer_value(json_array_get(shape, i));
		metadata->strides[i] = json_integer_value(json_array_get(strides, i));
	}
	for (i = 0; i < 8 && i < json_array_size(user); i++) {
		word = json_array_get(user, i);
		if (json_string_value(word))
			metadata->user[i] = strtoull(json_string_value(word), NULL, 10);
	}
}

/* ---- images ---- */

/* The names of sensor_msgs/image_encodings. */
static const char *const ros_names[XMEM_IMAGE_FORMATS] = {
	[XMEM_IMAGE_GRAY8] = "mono8", [XMEM_IMAGE_GRAY16] = "mono16",
	[XMEM_IMAGE_RGB8] = "rgb8", [XMEM_IMAGE_BGR8] = "bgr8",
	[XMEM_IMAGE_RGBA8] = "rgba8", [XMEM_IMAGE_BGRA8] = "bgra8",
	[XMEM_IMAGE_UYVY] = "yuv422", [XMEM_IMAGE_YUYV] = "yuv422_yuy2",
	[XMEM_IMAGE_RGB48] = "rgb16", [XMEM_IMAGE_RGBA64] = "rgba16",
	[XMEM_IMAGE_BAYER_BGGR8] = "bayer_bggr8", [XMEM_IMAGE_BAYER_GBRG8] = "bayer_gbrg8",
	[XMEM_IMAGE_BAYER_GRBG8] = "bayer_grbg8", [XMEM_IMAGE_BAYER_RGGB8] = "bayer_rggb8",
	[XMEM_IMAGE_BAYER_BGGR16] = "bayer_bggr16", [XMEM_IMAGE_BAYER_GBRG16] = "bayer_gbrg16",
	[XMEM_IMAGE_BAYER_GRBG16] = "bayer_grbg16", [XMEM_IMAGE_BAYER_RGGB16] = "bayer_rggb16",
};

#define ROS_LINE	"====================" "====================" \
			"====================" "====================" "\n"

const char flow_ros_schema[] =
	"std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\n"
	"uint8 is_bigendian\nuint32 step\nuint8[] data\n"
	ROS_LINE "MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n"
	ROS_LINE "MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n";

/* Numbers of four bytes begin at multiples of four after the first four bytes. */
static void align(struct mcap_bytes *bytes)
{
	while (bytes->used % 4)
		mcap_put_number(bytes, 0, 1);
}

bool flow_ros_image(struct xmem_buffer *buffer, uint64_t time_ns, struct mcap_bytes *ret_head)
{
	struct xmem_metadata image = { 0 };
	const char *name;

	xmem_metadata_view(buffer, &image);
	name = image.image < XMEM_IMAGE_FORMATS ? ros_names[image.image] : NULL;
	if (!name || image.image_stride > UINT32_MAX || xmem_size(buffer) > UINT32_MAX ||
	    xmem_image_bytes(image.image, image.image_width, image.image_height,
			     image.image_stride) != (int64_t)xmem_size(buffer))
		return false;
	ret_head->used = 0;
	mcap_put(ret_head, "\0\1\0\0", 4);		/* CDR, little endian */
	mcap_put_number(ret_head, time_ns / 1000000000, 4);
	mcap_put_number(ret_head, time_ns % 1000000000, 4);
	mcap_put_number(ret_head, 1, 4);		/* an empty frame_id, with its NUL */
	mcap_put_number(ret_head, 0, 1);
	align(ret_head);
	mcap_put_number(ret_head, image.image_height, 4);
	mcap_put_number(ret_head, image.image_width, 4);
	mcap_put_number(ret_head, strlen(name) + 1, 4);
	mcap_put(ret_head, name, strlen(name) + 1);
	mcap_put_number(ret_head, 0, 1);		/* not big endian */
	align(ret_head);
	mcap_put_number(ret_head, image.image_stride, 4);
	mcap_put_number(ret_head, xmem_size(buffer), 4);
	return true;
}

/* The first name of a format is the one that is written. */
static const struct {
	const char *name;
	uint32_t format;
} y4m[] = {
	{ "420jpeg", XMEM_IMAGE_I420 }, { "420", XMEM_IMAGE_I420 }, { "420mpeg2", XMEM_IMAGE_I420 },
	{ "420paldv", XMEM_IMAGE_I420 }, { "422", XMEM_IMAGE_I422 }, { "444", XMEM_IMAGE_I444 },
	{ "mono", XMEM_IMAGE_GRAY8 }, { "mono16", XMEM_IMAGE_GRAY16 },
};
#define Y4M	(sizeof(y4m) / sizeof(*y4m))

const char *flow_y4m_name(uint32_t format)
{
	size_t i;

	for (i = 0; i < Y4M; i++)
		if (y4m[i].format == format)
			return y4m[i].name;
	return NULL;
}

uint32_t flow_y4m_format(const char *name)
{
	size_t i;

	for (i = 0; i < Y4M; i++)
		if (!strcmp(y4m[i].name, name))
			return y4m[i].format;
	return XMEM_IMAGE_NONE;
}
