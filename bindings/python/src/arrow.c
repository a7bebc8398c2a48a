// SPDX-License-Identifier: MIT
/*
 * Guard: Arrow's C data interface and C device data interface, without a copy. Exported arrays have
 * shares of the hold. Their release callbacks are pure C for any thread, and need neither the GIL
 * nor an interpreter.
 *
 *	contents that nobody has described	uint8
 *	one dimension, or none			the primitive type
 *	two and more				a list of fixed size for each index of the first;
 *						with the extension type arrow.fixed_shape_tensor,
 *						which says the other dimensions
 *	bool, of bytes				int8 with the extension type arrow.bool8
 *	a column of strings			utf8
 *
 * The library has checked that the parts of a column lie within the contents, but not its offsets.
 * Arrow's consumers take the last offset for the number of characters, so it is checked here; their
 * validation checks the others by it. A publisher can change all of them at any later moment.
 *
 * Arrays of Arrow never change, so contents that are being written are not exported.
 */
#include "core.h"
#include "dlpack.h"

#include <string.h>

/* ---- Arrow's structs, whose layout is an ABI ---- */

struct arrow_schema {
	const char *format;
	const char *name;
	const char *metadata;
	int64_t flags;
	int64_t n_children;
	struct arrow_schema **children;
	struct arrow_schema *dictionary;
	void (*release)(struct arrow_schema *self);
	void *private_data;
};

struct arrow_array {
	int64_t length;
	int64_t null_count;
	int64_t offset;
	int64_t n_buffers;
	int64_t n_children;
	const void **buffers;
	struct arrow_array **children;
	struct arrow_array *dictionary;
	void (*release)(struct arrow_array *self);
	void *private_data;
};

struct arrow_device_array {
	struct arrow_array array;
	int64_t device_id;
	int32_t device_type;		/* the numbers are those of DLPack */
	void *sync_event;
	int64_t reserved[3];
};

#define SCHEMA		"arrow_schema"
#define ARRAY		"arrow_array"
#define DEVICE_ARRAY	"arrow_device_array"

#define NULLABLE	2		/* a flag of a schema */
#define UNKNOWN		-1		/* how many rows are null */

/* Contents that are exported: a column of strings, or the elements of the view. */
struct seen {
	struct xp_view view;
	struct xmem_strings column;
	bool is_column;
	struct dl_device device;
};

/* ---- schemas ---- */

/*
 * The data that a schema points to. The struct of a child lies in that of its parent, but the child
 * has an owner of its own.
 */
struct schema_owner {
	char format[24];
	char metadata[320];
	struct arrow_schema child, *children;
};

static void release_schema(struct arrow_schema *schema)
{
	struct schema_owner *owner = schema->private_data;

	if (owner->child.release)
		owner->child.release(&owner->child);
	free(owner);
	schema->release = NULL;
}

static char *put(char *to, const char *text)
{
	int32_t bytes = strlen(text);

	memcpy(to, &bytes, sizeof(bytes));
	memcpy(to + sizeof(bytes), text, bytes);
	return to + sizeof(bytes) + bytes;
}

/* Metadata: the number of pairs, and each key and value behind its length. */
static void put_extension(struct schema_owner *owner, const char *name, const char *text)
{
	const int32_t pairs = 2;
	char *to = owner->metadata;

	memcpy(to, &pairs, sizeof(pairs));
	to = put(put(to + sizeof(pairs), "ARROW:extension:name"), name);
	put(put(to, "ARROW:extension:metadata"), text);
}

static struct schema_owner *fill_schema(struct arrow_schema *schema, const char *name)
{
	struct schema_owner *owner = calloc(1, sizeof(*owner));

	if (!owner)
		return NULL;
	*schema = (struct arrow_schema){
		.format = owner->format, .name = name, .private_data = owner,
		.release = release_schema,
	};
	return owner;
}

/* Arrow's letter of a type; 0: it has none. */
static char letter(uint32_t dtype)
{
	switch (dtype) {
	case XMEM_DTYPE_BOOL:
	case XMEM_DTYPE_INT8: return 'c';
	case XMEM_DTYPE_NONE:
	case XMEM_DTYPE_UINT8: return 'C';
	case XMEM_DTYPE_INT16: return 's';
	case XMEM_DTYPE_UINT16: return 'S';
	case XMEM_DTYPE_INT32: return 'i';
	case XMEM_DTYPE_UINT32: return 'I';
	case XMEM_DTYPE_INT64: return 'l';
	case XMEM_DTYPE_UINT64: return 'L';
	case XMEM_DTYPE_FLOAT16: return 'e';
	case XMEM_DTYPE_FLOAT32: return 'f';
	case XMEM_DTYPE_FLOAT64: return 'g';
	default: return 0;
	}
}

static bool fill_numbers(struct arrow_schema *schema, uint32_t dtype, const char *name)
{
	struct schema_owner *owner = fill_schema(schema, name);

	if (!owner)
		return false;
	owner->format[0] = letter(dtype);
	if (dtype == XMEM_DTYPE_BOOL) {
		put_extension(owner, "arrow.bool8", "");
		schema->metadata = owner->metadata;
	}
	return true;
}

/* Elements of one index of the first dimension. */
static int64_t inner(const struct xp_view *view)
{
	int64_t count = 1;
	int i;

	for (i = 1; i < view->ndim; i++)
		count *= view->shape[i];
	return count;
}

static bool fill_tensor(struct arrow_schema *schema, const struct xp_view *view)
{
	struct schema_owner *owner = fill_schema(schema, "");
	char text[200] = "{\"shape\":[";
	int i;

	if (!owner)
		return false;
	if (!fill_numbers(&owner->child, view->dtype, "item")) {
		release_schema(schema);
		return false;
	}
	owner->children = &owner->child;
	schema->n_children = 1;
	schema->children = &owner->children;
	PyOS_snprintf(owner->format, sizeof(owner->format), "+w:%lld", (long long)inner(view));
	for (i = 1; i < view->ndim; i++)
		PyOS_snprintf(text + strlen(text), 24, "%lld%s", (long long)view->shape[i],
			      i + 1 < view->ndim ? "," : "]}");
	put_extension(owner, "arrow.fixed_shape_tensor", text);
	schema->metadata = owner->metadata;
	return true;
}

static bool fill_strings(struct arrow_schema *schema, const struct xmem_strings *column)
{
	struct schema_owner *owner = fill_schema(schema, "");

	if (!owner)
		return false;
	owner->format[0] = 'u';
	if (column->flags & XMEM_STRINGS_VALIDITY)
		schema->flags = NULLABLE;
	return true;
}

static bool fill_any(struct arrow_schema *schema, const struct seen *seen)
{
	if (seen->is_column)
		return fill_strings(schema, &seen->column);
	if (seen->view.ndim < 2)
		return fill_numbers(schema, seen->view.dtype, "");
	return fill_tensor(schema, &seen->view);
}

static void drop_schema(PyObject *capsule)
{
	struct arrow_schema *schema = PyCapsule_GetPointer(capsule, SCHEMA);

	if (schema->release)
		schema->release(schema);
	free(schema);
}

static PyObject *schema_capsule(const struct seen *seen)
{
	struct arrow_schema *schema = calloc(1, sizeof(*schema));
	PyObject *capsule;

	if (!schema || !fill_any(schema, seen)) {
		free(schema);
		return PyErr_NoMemory();
	}
	capsule = PyCapsule_New(schema, SCHEMA, drop_schema);
	if (!capsule) {
		schema->release(schema);
		free(schema);
	}
	return capsule;
}

/* ---- arrays ---- */

/*
 * The data that an array points to, and a share of the hold of its own, because a consumer may take
 * a child alone.
 */
struct array_owner {
	struct xp_hold *hold;
	const void *buffers[3];		/* the validity, or NULL: no row is null; the numbers, or
					 * the offsets and the characters */
	struct arrow_array child, *children;
};

static void release_array(struct arrow_array *array)
{
	struct array_owner *owner = array->private_data;

	if (owner->child.release)
		owner->child.release(&owner->child);
	xp_hold_put(owner->hold);
	free(owner);
	array->release = NULL;
}

/* @hold: gets a further share. @data: NULL for a list, whose child has the numbers. */
static struct array_owner *fill_array(struct arrow_array *array, struct xp_hold *hold,
				      const void *data, int64_t length)
{
	struct array_owner *owner = calloc(1, sizeof(*owner));

	if (!owner)
		return NULL;
	owner->hold = xp_hold_get(hold);
	owner->buffers[1] = data;
	*array = (struct arrow_array){
		.length = length, .n_buffers = data ? 2 : 1, .buffers = owner->buffers,
		.release = release_array, .private_data = owner,
	};
	return owner;
}

static bool fill_column(struct arrow_array *array, const struct xmem_strings *column,
			struct xp_hold *hold)
{
	const char *data = column->data;
	struct array_owner *owner = fill_array(array, hold, data, column->rows);

	if (!owner)
		return false;
	if (column->flags & XMEM_STRINGS_VALIDITY) {
		owner->buffers[0] = data + column->validity_at;
		array->null_count = UNKNOWN;
	}
	owner->buffers[1] = data + column->offsets_at;
	owner->buffers[2] = data + column->chars_at;
	array->n_buffers = 3;
	return true;
}

static bool fill(struct arrow_array *array, const struct xp_view *view, struct xp_hold *hold)
{
	int64_t rows = view->ndim ? view->shape[0] : 1;
	struct array_owner *owner;

	owner = fill_array(array, hold, view->ndim < 2 ? view->data : NULL, rows);
	if (!owner || view->ndim < 2)
		return owner;
	if (!fill_array(&owner->child, hold, view->data, rows * inner(view))) {
		release_array(array);
		return false;
	}
	owner->children = &owner->child;
	array->n_children = 1;
	array->children = &owner->children;
	return true;
}

static void drop_array(PyObject *capsule)
{
	struct arrow_array *array = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));

	if (array->release) {		/* the last handle of a closed pool asks the host */
		Py_BEGIN_ALLOW_THREADS
		array->release(array);
		Py_END_ALLOW_THREADS
	}
	free(array);
}

/* A device array begins with the array. */
static PyObject *array_capsule(struct xp_hold *hold, const struct seen *seen, bool with_device)
{
	struct arrow_device_array *array = calloc(1, sizeof(*array));
	PyObject *capsule = NULL;
	bool filled;

	filled = array && (seen->is_column ? fill_column(&array->array, &seen->column, hold) :
					     fill(&array->array, &seen->view, hold));
	if (!filled) {
		free(array);
		return PyErr_NoMemory();
	}
	if (with_device) {
		array->device_type = seen->device.type;
		array->device_id = seen->device.type == DL_CPU ? -1 : seen->device.id;
	}
	capsule = PyCapsule_New(array, with_device ? DEVICE_ARRAY : ARRAY, drop_array);
	if (!capsule) {
		array->array.release(&array->array);
		free(array);
	}
	return capsule;
}

/* ---- the protocol ---- */

static int check(const struct xp_view *view)
{
	if (!letter(view->dtype))
		PyErr_SetString(PyExc_TypeError, "Arrow has no such type of elements: use DLPack");
	else if (!view->dense || !view->divisible)
		PyErr_SetString(PyExc_TypeError, "Arrow's elements follow each other, and begin at "
				"multiples of their size, and these do not");
	else if (inner(view) > INT32_MAX)
		PyErr_SetString(PyExc_TypeError, "a list of Arrow has at most 2^31 - 1 elements");
	else
		return 0;
	return -1;
}

static int check_column(struct xp_guard *self, const struct seen *seen)
{
	const struct xmem_strings *column = &seen->column;
	const char *data = column->data;
	const int32_t *offsets = (const int32_t *)(data + column->offsets_at);
	int32_t last;

	if (seen->device.type != DL_CPU)
		return 0;
	last = __atomic_load_n(&offsets[column->rows], __ATOMIC_RELAXED);
	if (last >= 0 && (uint64_t)last == column->chars)
		return 0;
	xp_raise_errno(self->state, EBADMSG, "the offsets of the column do not end with the "
		       "number of its characters: nobody has written them, or not as described");
	return -1;
}

/* Look at the contents. This waits for contents of a GPU, so no event is needed. */
static int look(struct xp_guard *self, struct seen *ret)
{
	int found;

	if (xp_guard_device(self, &ret->device))
		return -1;
	if (ret->device.type != DL_CPU) {
		if (xp_guard_gpu_view(self, XP_NO_STREAM, &ret->view))
			return -1;
	} else {
		if (xp_guard_view(self))
			return -1;
		ret->view = self->view;
	}
	found = xp_guard_strings(self, &ret->column);
	ret->is_column = !found;
	if (found < 0)
		return -1;
	return found ? check(&ret->view) : check_column(self, ret);
}

PyObject *xp_guard_arrow_schema(PyObject *object, PyObject *unused)
{
	struct seen seen;

	return look((struct xp_guard *)object, &seen) ? NULL : schema_capsule(&seen);
}

/* The protocol allows an exporter to ignore the requested schema. */
static PyObject *export(PyObject *object, bool with_device)
{
	struct xp_guard *self = (struct xp_guard *)object;
	PyObject *schema, *array, *both = NULL;
	struct xp_hold *hold;
	struct seen seen;

	if (look(self, &seen))
		return NULL;
	if (self->mode == XP_WRITING)
		return xp_raise_errno(self->state, EPERM, "these contents are being written, and "
				      "arrays of Arrow never change: publish(keep=True) first");
	if (seen.device.type != DL_CPU && !with_device) {
		PyErr_SetString(PyExc_TypeError, "these contents are on a GPU: use "
				"__arrow_c_device_array__, or copy_to_host()");
		return NULL;
	}
	hold = xp_guard_share(self);	/* from now on no other thread writes them or gives them
					 * up */
	if (!hold)
		return NULL;
	if (seen.device.type != DL_CPU)
		hold->on_stream = true;
	schema = schema_capsule(&seen);
	array = schema ? array_capsule(hold, &seen, with_device) : NULL;
	Py_BEGIN_ALLOW_THREADS
	xp_hold_put(hold);		/* the array's owners have shares */
	Py_END_ALLOW_THREADS
	if (array)
		both = PyTuple_Pack(2, schema, array);
	Py_XDECREF(schema);
	Py_XDECREF(array);
	return both;
}

PyObject *xp_guard_arrow_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "requested_schema", NULL };
	PyObject *requested;

	if (!xp_parse(args, kwargs, "|O:__arrow_c_array__", names, &requested))
		return NULL;
	return export(self, false);
}

/* A keyword of a later version is either None, or asks for something unknown here. */
PyObject *xp_guard_arrow_device_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *requested, *name, *value;
	Py_ssize_t at = 0;

	if (!PyArg_ParseTuple(args, "|O:__arrow_c_device_array__", &requested))
		return NULL;
	while (kwargs && PyDict_Next(kwargs, &at, &name, &value)) {
		if (value == Py_None || !PyUnicode_CompareWithASCIIString(name, "requested_schema"))
			continue;
		return PyErr_Format(PyExc_NotImplementedError, "__arrow_c_device_array__ does not "
				    "know %R", name);
	}
	return export(self, true);
}
