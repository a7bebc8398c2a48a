/* SPDX-License-Identifier: MIT */
/* Asking a host that may be stopped: request.h. */
#ifndef XMEM_HOST_STATE_H
#define XMEM_HOST_STATE_H

#include "core/env.h"

struct xl_asking {			/* atomic */
	u64 again_ns;			/* the host has not answered: it is not asked briefly until
					 * then; 0: it has */
	u64 answers;			/* how many answers had come before */
};

#endif
