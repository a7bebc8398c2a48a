/* SPDX-License-Identifier: MIT */
/*
 * The limited API of CPython 3.11, so that the compiled extension runs on every later CPython. A
 * free-threaded CPython has no limited API; an extension for it is for that version alone.
 * pyconfig.h says whether CPython is free-threaded, so it is included first.
 */
#ifndef XP_CAPI_H
#define XP_CAPI_H

#define PY_SSIZE_T_CLEAN
#include <pyconfig.h>
#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#endif
