/* SPDX-License-Identifier: MIT */
/*
 * xmem for other extensions of Python, in C, C++ or Cython (xmem/capi.pxd). They reach the one copy
 * of libxmem that the package xmem has loaded, and are not linked with it.
 *
 *	static int execute(PyObject *module)	(when the module is imported, with the GIL)
 *	{
 *		return import_xmem();
 *	}
 *	...
 *	pool = xmem_table->pool_open("camera", NULL);	(as in xmem/api.h, with the GIL or without)
 *
 * xmem.get_include() is the folder of this header and of xmem.h. Each source file that includes it
 * has a table of its own, and calls import_xmem().
 *
 * Call import_xmem() when your module is imported, and not in the initialiser of a static variable
 * of C++: other threads wait for such an initialiser, even a thread that has the GIL.
 */
#ifndef XMEM_PYTHON_H
#define XMEM_PYTHON_H

#include <Python.h>
#include <xmem.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define XMEM_PYTHON_MAYBE	__attribute__((unused))
#else
#define XMEM_PYTHON_MAYBE
#endif

/* The capsule, whose pointer is a const struct xmem_python *, for as long as the process lives. */
#define XMEM_PYTHON_CAPSULE	"xmem._core.capi"

struct xmem_python {
	size_t size;			/* size of the package's struct; it only grows */
	/* The library's table, as xmem_get_api; NULL with ImportError. With the GIL. */
	const struct xmem_api *(*get_api)(uint32_t version);
	PyObject *(*as_py)(struct xmem_buffer *buffer);		/* xmem_as_py */
	PyObject *(*raise_last_error)(void);			/* xmem_raise_last_error */
};

static const struct xmem_python *xmem_python XMEM_PYTHON_MAYBE;
/* The functions of libxmem, after import_xmem(). */
static const struct xmem_api *xmem_table XMEM_PYTHON_MAYBE;

/*
 * Import the package xmem, and set the table. With the GIL. Returns 0, or -1 with ImportError: the
 * package is not there, or is older than this header.
 */
XMEM_PYTHON_MAYBE static int import_xmem(void)
{
	const struct xmem_python *found;

	found = (const struct xmem_python *)PyCapsule_Import(XMEM_PYTHON_CAPSULE, 0);
	if (!found)
		return -1;
	if (found->size < sizeof(*found)) {
		PyErr_SetString(PyExc_ImportError, "this module has been compiled for a later "
				"version of the package xmem");
		return -1;
	}
	xmem_python = found;
	xmem_table = found->get_api(XMEM_API_VERSION);
	return xmem_table ? 0 : -1;
}

/*
 * Make an xmem.BufferGuard of a handle of a buffer, for writing if the buffer is being written. The
 * guard owns the handle and drops it: C code must not use it any more. If C code also needs the
 * handle, give xmem_table->clone() of it. With the GIL. NULL with an exception, and then the handle
 * has been dropped.
 */
XMEM_PYTHON_MAYBE static PyObject *xmem_as_py(struct xmem_buffer *buffer)
{
	return xmem_python->as_py(buffer);
}

/*
 * Raise the thread's last error of libxmem as an exception of the package, such as xmem.Stale, and
 * forget it. With the GIL. Always NULL.
 */
XMEM_PYTHON_MAYBE static PyObject *xmem_raise_last_error(void)
{
	return xmem_python->raise_last_error();
}

#ifdef __cplusplus
}
#endif
#endif
