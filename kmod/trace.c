// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoints of trace.h are defined here. */
#include "xk.h"
#define CREATE_TRACE_POINTS
#include "trace.h"


