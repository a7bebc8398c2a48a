/* SPDX-License-Identifier: MIT */
/* The state of brief requests to a host that may be stopped: request.h. */
#ifndef XMEM_HOST_STATE_H
#define XMEM_HOST_STATE_H

#include "core/env.h"

struct xl_asking {			/* atomic */
	u64 again_ns;			/* after a timeout: brief requests are put off until
					 * then; 0: not put off */
	u64 answers;			/* how many answers had come before the timeout */
};

#endif
