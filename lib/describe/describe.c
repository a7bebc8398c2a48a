// SPDX-License-Identifier: MIT
/*
 * The calls that describe the contents of a buffer, and read such a description. tensor.c, image.c
 * and strings.c check it.
 */
#include <string.h>

#include "lib/base/handle.h"
#include "lib/base/structs.h"
#include "lib/describe/tensor.h"

#define FIELD(m, name)	(m)->name, sizeof((m)->name)

/* ---- describing ---- */

/* The metadata of a buffer that is written. NULL: *err has been noted. */
static struct xmem_metadata *metadata_mut(struct xmem_buffer *handle, int *err)
{
	struct xmem_metadata *metadata = xmem_metadata_mut(handle);

	*err = metadata ? 0 : xl_last_error();
	return metadata;
}

/* Replace the whole description by @fresh. xmem_publish fills in where the contents are. */
static void replace(struct xmem_buffer *handle, struct xmem_metadata *metadata,
		    struct xmem_metadata *fresh)
{
	const struct xmem_pool *pool = xl_buffer(handle)->pool;
	const struct xmem_client_row *row = xm_client_row(&pool->map, pool->me);

	memcpy(fresh->producer, row->label, XMEM_LABEL_BYTES - 1);
	fresh->size = xmem_size(handle);
	memcpy(metadata, fresh, sizeof(*fresh));
}

static int take_shape(struct xmem_metadata *fresh, const int64_t *shape, const int64_t *strides,
		      const struct xl_says *says)
{
	size_t bytes = fresh->ndim * sizeof(*shape);

	if (fresh->ndim > XMEM_MAX_DIMENSIONS)
		return xl_fail(EINVAL, "%s: ndim is %u, and may be %d at most", says->what,
			       fresh->ndim, XMEM_MAX_DIMENSIONS);
	if (bytes && !shape)
		return xl_fail(EINVAL, "%s: no shape", says->what);
	if (bytes)
		memcpy(fresh->shape, shape, bytes);
	if (!strides)
		return xl_tensor_make_dense(fresh, says);
	if (bytes)
		memcpy(fresh->strides, strides, bytes);
	return 0;
}

XMEM_API int xmem_describe_tensor(struct xmem_buffer *handle, uint32_t dtype, uint32_t ndim,
				  const int64_t *shape, const int64_t *strides)
{
	XL_CALL;
	static const struct xl_says says = { "describe_tensor", EINVAL };
	struct xmem_metadata fresh = { .dtype = dtype, .ndim = ndim };
	struct xmem_metadata *metadata;
	int err;

	metadata = metadata_mut(handle, &err);
	if (!metadata)
		return err;
	err = take_shape(&fresh, shape, strides, &says);
	if (!err)
		err = xl_tensor_measure(&fresh, NULL, xmem_size(handle), &says, NULL);
	if (err)
		return err;
	replace(handle, metadata, &fresh);
	return 0;
}

XMEM_API int xmem_describe_image(struct xmem_buffer *handle, uint32_t format, uint32_t width,
				 uint32_t height, size_t stride)
{
	XL_CALL;
	static const struct xl_says says = { "describe_image", EINVAL };
	struct xmem_metadata fresh = { 0 };
	struct xmem_metadata *metadata;
	int err;

	metadata = metadata_mut(handle, &err);
	if (!metadata)
		return err;
	err = xl_image_fill(&fresh, format, width, height, stride, &says);
	if (!err)
		err = xl_image_measure(&fresh, NULL, xmem_size(handle), &says, NULL);
	if (err)
		return err;
	replace(handle, metadata, &fresh);
	return 0;
}

XMEM_API int xmem_describe_strings(struct xmem_buffer *handle, uint64_t rows, uint64_t chars,
				   uint32_t flags)
{
	XL_CALL;
	static const struct xl_says says = { "describe_strings", EINVAL };
	struct xmem_metadata fresh = { 0 };
	struct xmem_metadata *metadata;
	int err;

	metadata = metadata_mut(handle, &err);
	if (!metadata)
		return err;
	err = xl_strings_fill(&fresh, rows, chars, flags, &says);
	if (!err)
		err = xl_strings_measure(&fresh, NULL, xmem_size(handle), &says, NULL);
	if (err)
		return err;
	replace(handle, metadata, &fresh);
	return 0;
}

static int take_source(const struct xmem_source *given, struct xmem_source *ret)
{
	int err;

	if (!given)
		return xl_fail_fast(EINVAL, "xmem_source: there is none");
	err = xl_options_take("xmem_source", given, ret, sizeof(*ret));
	if (!err && (ret->flags || ret->reserved))
		err = xl_fail(EINVAL, "xmem_source: flags has 0x%x and reserved 0x%x; both must "
			      "be 0", ret->flags, ret->reserved);
	if (ret->timestamp_ns && !ret->clock)
		ret->clock = "CLOCK_MONOTONIC";
	return err;
}

/* Put a string into a field, unless it is NULL. */
static int set_string(char *field, size_t bytes, const char *name, const char *string)
{
	return string ? xl_metadata_string(field, bytes, name, string) : 0;
}

XMEM_API int xmem_describe_source(struct xmem_buffer *handle, const struct xmem_source *given)
{
	XL_CALL;
	struct xmem_source source = { 0 };
	struct xmem_metadata *metadata, fresh;
	int err;

	metadata = metadata_mut(handle, &err);
	if (!err)
		err = take_source(given, &source);
	if (err)
		return err;
	/* Check all strings before any field changes. */
	fresh = *metadata;
	err = set_string(FIELD(&fresh, content_type), "content type", source.content_type);
	if (!err)
		err = set_string(FIELD(&fresh, producer), "producer", source.producer);
	if (!err)
		err = set_string(FIELD(&fresh, clock), "clock", source.clock);
	if (err)
		return err;
	if (source.clock)
		fresh.timestamp_ns = source.timestamp_ns;
	*metadata = fresh;
	return 0;
}

/* ---- reading ---- */

/* Take a copy of a buffer's description. Returns 0, or -errno, noted. */
static int take(struct xmem_buffer *handle, const char *what, struct xmem_metadata *ret)
{
	struct xmem_buffer *buffer = xl_buffer(handle);
	u32 traits;

	if (unlikely(!buffer))
		return xl_no_buffer(handle, what);
	traits = xm_load(&xm_slot_row(&buffer->pool->map, buffer->slot)->traits);
	xl_metadata_take(xmem_metadata_ptr(handle), ret);
	xl_place_contents(buffer);
	if (traits & XMEM_TRAIT_CUDA) {
		ret->storage = XMEM_STORAGE_CUDA;
		ret->device = xm_device(traits);
	}
	ret->size = buffer->what.length;
	ret->offset = buffer->what.offset;
	return 0;
}

XMEM_API int xmem_metadata_view(struct xmem_buffer *handle, struct xmem_metadata *ret_metadata)
{
	XL_CALL;

	if (!ret_metadata)
		return xl_fail_fast(EINVAL, "no place for the answer");
	return take(handle, "metadata_view", ret_metadata);
}

/* Is there a description, and are the contents in memory of the CPU, or in storage @allowed? */
static int check_described(const struct xmem_metadata *m, const char *what, bool said, u32 allowed)
{
	if (m->storage != XMEM_STORAGE_CPU && m->storage != allowed)
		return xl_fail(EBADMSG, "%s: by their metadata, the contents are in storage %u, "
			       "which is not memory of the CPU", what, m->storage);
	if (!said)
		return xl_fail(ENODATA, "%s: the publisher has not described the contents; it uses "
			       "xmem_describe_tensor, xmem_describe_image or "
			       "xmem_describe_strings for that", what);
	return 0;
}

/* The contents of a buffer, their description, and their place. */
struct seen {
	struct xmem_metadata said;
	const void *data;
	int device_id;			/* a GPU, or XMEM_CPU */
};

/* Get the contents for one of the views. 0, or -errno, noted. */
static int get_contents(struct xmem_buffer *handle, uint32_t flags, const char *what,
			struct seen *ret)
{
	int err = take(handle, what, &ret->said);
	bool on_gpu;

	if (err)
		return err;
	if (flags & ~XMEM_VIEW_CUDA)
		return xl_fail(EINVAL, "%s: flags 0x%x; there is XMEM_VIEW_CUDA", what, flags);
	on_gpu = flags && xl_is_on_gpu(xl_buffer(handle));
	ret->data = on_gpu ? xmem_cuda_ptr(handle) : xmem_data(handle);
	if (!ret->data)
		return xl_last_error();
	ret->device_id = on_gpu ? xmem_cuda_device(handle) : XMEM_CPU;
	return ret->device_id < XMEM_CPU ? ret->device_id : 0;
}

static u32 storage_of(const struct seen *seen)
{
	return seen->device_id == XMEM_CPU ? XMEM_STORAGE_CPU : XMEM_STORAGE_CUDA;
}

XMEM_API int xmem_tensor_view(struct xmem_buffer *handle, uint32_t flags,
			      struct xmem_tensor *ret_tensor)
{
	XL_CALL;
	static const struct xl_says says = { "tensor_view", EBADMSG };
	int err = xl_answer_check("xmem_tensor", ret_tensor);
	struct xmem_tensor tensor;
	struct seen seen;

	if (!err)
		err = get_contents(handle, flags, says.what, &seen);
	if (!err)
		err = check_described(&seen.said, says.what, seen.said.dtype != XMEM_DTYPE_NONE,
				      storage_of(&seen));
	if (!err)
		err = xl_tensor_measure(&seen.said, seen.data, seen.said.size, &says, &tensor);
	if (err)
		return err;
	tensor.device_id = seen.device_id;
	xl_answer_give(ret_tensor, &tensor, sizeof(tensor));
	return 0;
}

XMEM_API int xmem_image_view(struct xmem_buffer *handle, uint32_t flags,
			     struct xmem_image *ret_image)
{
	XL_CALL;
	static const struct xl_says says = { "image_view", EBADMSG };
	int err = xl_answer_check("xmem_image", ret_image);
	struct xmem_image image;
	struct seen seen;

	if (!err)
		err = get_contents(handle, flags, says.what, &seen);
	if (!err)
		err = check_described(&seen.said, says.what, seen.said.image != XMEM_IMAGE_NONE,
				      storage_of(&seen));
	if (!err)
		err = xl_image_measure(&seen.said, seen.data, seen.said.size, &says, &image);
	if (err)
		return err;
	image.device_id = seen.device_id;
	xl_answer_give(ret_image, &image, sizeof(image));
	return 0;
}

XMEM_API int xmem_strings_view(struct xmem_buffer *handle, uint32_t flags,
			       struct xmem_strings *ret_strings)
{
	XL_CALL;
	static const struct xl_says says = { "strings_view", EBADMSG };
	int err = xl_answer_check("xmem_strings", ret_strings);
	struct xmem_strings strings;
	struct seen seen;

	if (!err)
		err = get_contents(handle, flags, says.what, &seen);
	if (!err)
		err = check_described(&seen.said, says.what, seen.said.column != XMEM_COLUMN_NONE,
				      storage_of(&seen));
	if (!err)
		err = xl_strings_measure(&seen.said, seen.data, seen.said.size, &says, &strings);
	if (err)
		return err;
	strings.device_id = seen.device_id;
	xl_answer_give(ret_strings, &strings, sizeof(strings));
	return 0;
}

XMEM_API int xmem_tensor_check(const struct xmem_metadata *metadata, uint64_t bytes)
{
	XL_CALL;
	static const struct xl_says says = { "tensor_check", EBADMSG };
	int err;

	if (!metadata)
		return xl_fail_fast(EINVAL, "no metadata");
	err = check_described(metadata, says.what, metadata->dtype != XMEM_DTYPE_NONE,
			      XMEM_STORAGE_CUDA);
	return err ? err : xl_tensor_measure(metadata, NULL, bytes, &says, NULL);
}

XMEM_API int xmem_image_plane(const struct xmem_image *image, uint32_t plane,
			      struct xmem_tensor *ret_tensor)
{
	XL_CALL;
	static const struct xl_says says = { "image_plane", EINVAL };
	struct xmem_tensor tensor;
	int err = xl_answer_check("xmem_tensor", ret_tensor);

	if (!err && !image)
		err = xl_fail_fast(EINVAL, "no image");
	if (!err && image->size < sizeof(*image))
		err = xl_fail_fast(EINVAL, "the image is cut: its size is too small");
	if (!err)
		err = xl_plane_measure(image, plane, &says, &tensor);
	if (err)
		return err;
	tensor.device_id = image->device_id;
	xl_answer_give(ret_tensor, &tensor, sizeof(tensor));
	return 0;
}
