// SPDX-License-Identifier: GPL-2.0-only
/* The definitions of the tracepoints that trace.h declares. */
#include "xk.h"
#define CREATE_TRACE_POINTS
#include "trace.h"
