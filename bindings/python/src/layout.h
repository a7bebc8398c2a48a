/* SPDX-License-Identifier: MIT */
/*
 * Structs of answers as Python objects. Each struct becomes a struct sequence with its fields as
 * attributes, documented in the words of the C headers. layouts.h, which is made from the headers,
 * lists the structs and fields.
 */
#ifndef XP_LAYOUT_H
#define XP_LAYOUT_H

#include "capi.h"

#include <stddef.h>
#include <stdint.h>

#include "layouts.h"

/* Make the types of all structs. 0; or -1 with an exception, and then no type exists. */
int xp_layout_types(PyTypeObject *ret_types[XP_LAYOUTS]);

/*
 * Make an object of a struct. Numbers are int, texts str, other bytes (a UUID) bytes, and arrays of
 * numbers tuples of int. Fields beyond the first @valid bytes, which an older library has not
 * filled in, are None. NULL with an exception.
 */
PyObject *xp_layout_object(PyTypeObject *type, enum xp_layout_id id, const void *data,
			   size_t valid);

#endif
