// SPDX-License-Identifier: MIT
/* Allocates what the end of a pool with memory of GPUs needs: remnant.h. */
#include <stdlib.h>

#include "lib/host/request.h"
#include "lib/payload/remnant.h"

void (*xl_remnants_due)(void);

int xl_cuda_bury_prepare(struct xmem_pool *pool)
{
	struct xmem_pool_fd_request request = { .size = sizeof(request) };
	struct xl_remnant *remnant;
	int err;

	if (pool->gpus.remnant)
		return 0;
	remnant = calloc(1, sizeof(*remnant));
	if (!remnant)
		return xl_fail_fast(ENOMEM, "no memory to record memory of a GPU");
	err = xl_request(pool, XMEM_IOC_POOL_FD, &request);
	if (err) {
		free(remnant);
		return xl_fail(-err, "a descriptor of the pool, needed to free memory of a GPU "
			       "after the pool is closed: %s",
			       xl_request_error(err));
	}
	remnant->fd = request.fd;
	remnant->process = *xl_process;
	remnant->client = pool->me;
	remnant->incarnation = pool->link.join.incarnation;
	pool->gpus.remnant = remnant;
	return 0;
}
