/* SPDX-License-Identifier: MIT */
/*
 * CPython's API, as far as it is used here: the limited one of 3.11, so that what is compiled with
 * it runs on each later CPython. A free-threaded one has none; what is compiled for it is for that
 * version alone. pyconfig.h says which it is, and has to be asked first.
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
