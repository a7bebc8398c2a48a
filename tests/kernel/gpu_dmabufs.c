// SPDX-License-Identifier: MIT
/*
 * Payloads that are dma-bufs whose release does not end: which processes wait for it, and which do
 * not. gpu_payloads.c runs these tests.
 */
#include <sys/ioctl.h>

#include "core/policy.h"
#include "gpu.h"

#define BUFFERS	300	/* more than one work queue runs at a time */
#define CLAIM_NS	50000000ULL

/* A pool with many such buffers, and other pools. */
static struct raw many = RAW_NONE, one = RAW_NONE, claimed = RAW_NONE;

void gpu_dmabufs_clean_up(void)
{
	raw_end(&many);
	raw_end(&one);
	raw_end(&claimed);
}

/* Attaches one more buffer, which goes with its owner. */
static const char *attach_buffer(const struct raw *raw, int gpu)
{
	struct xmem_attach_request request = raw_attaching(ioctl(gpu, XMEM_TEST_GPU_EXPORT), 1);

	WANT(request.fd >= 0 && !raw_request(raw, XMEM_IOC_ATTACH, &request));
	close(request.fd);
	return NULL;
}

static const char *make_pools(int gpu)
{
	struct xmem_join_request join = raw_joining("dmabufs-many", XMEM_ROLE_WRITER);
	const char *wrong = NULL;
	u32 i;

	join.slots = 1024;
	WANT(!raw_start(&many, &join));
	for (i = 0; i < BUFFERS && !wrong; i++)
		wrong = attach_buffer(&many, gpu);
	if (wrong)
		return wrong;
	join = raw_joining("dmabufs-one", XMEM_ROLE_WRITER);
	WANT(!raw_start(&one, &join));
	join = raw_joining("dmabufs-claimed", XMEM_ROLE_WRITER);
	WANT(!raw_start(&claimed, &join));
	return attach_buffer(&one, gpu);
}

/* A claim with a deadline, on contents of the caller's own. */
static const char *claim_ends(void)
{
	struct xmem_attach_request attach = raw_attaching(raw_memfd(1, 1), 1);
	struct xmem_claim_request claim = {
		.size = sizeof(claim), .op = XMEM_CLAIM_ADD, .count = 1, .timeout_ns = CLAIM_NS,
	};
	struct xm_own own;

	WANT(!raw_request(&claimed, XMEM_IOC_ATTACH, &attach));
	close(attach.fd);
	WANT(!raw_map_group(&claimed, attach.slot[0] / XMEM_GROUP_SLOTS));
	own = xm_own(&claimed.map, attach.slot[0]);
	WANT(!xm_take(&claimed.map, attach.slot[0]));
	xm_make_live(&own);
	claim.slot = attach.slot[0];
	claim.generation = xm_generation(xm_load(&xm_slot(&claimed.map, claim.slot)->state));
	WANT(!raw_request(&claimed, XMEM_IOC_CLAIM, &claim));
	WANT(EVENTUALLY(!xm_claims_of(&claimed.map, claim.slot)));
	return NULL;
}

static const char *backlog_of_buffers(int gpu)
{
	const char *wrong = make_pools(gpu);

	if (wrong)
		return wrong;
	WANT(gpu_set("gate", "1"));
	raw_end(&many);
	WANT(EVENTUALLY(gpu_number("releasing") > 0));
	WANT(EVENTUALLY(!raw_pool_exists("dmabufs-many")));
	wrong = claim_ends();
	if (wrong)
		return wrong;
	/* The other pool's buffer is being released as well; each pool releases one at a time. */
	raw_end(&one);
	WANT(EVENTUALLY(gpu_number("releasing") == 2));
	raw_end(&claimed);
	WANT(!raw_pools_shown(0));
	WANT(gpu_number("releasing") == 2 && gpu_number("files") == BUFFERS + 2);
	WANT(gpu_set("release_ms", "0") && gpu_set("gate", "0"));
	WANT(EVENTUALLY(gpu_number("files") == 1) && gpu_set("release_ms", "20"));
	return NULL;
}

static const char *backlog_of_dma_bufs_delays_no_other_pool(void)
{
	int gpu = open(XMEM_TEST_GPU_DEVICE, O_RDWR | O_CLOEXEC);
	const char *wrong = NULL;
	int first = ioctl(gpu, XMEM_TEST_GPU_EXPORT);

	WANT(gpu >= 0);
	if (first < 0 && errno == ENOTTY)
		skip("backlog of dma-bufs", "this kernel has none");
	else
		wrong = close(first) ? "no dma-buf" : backlog_of_buffers(gpu);
	gpu_set("gate", "0");
	close(gpu);
	return wrong;
}

const struct gpu_test gpu_dmabufs_tests[] = {
	{ "backlog of dma-bufs delays no other pool", backlog_of_dma_bufs_delays_no_other_pool },
	{ NULL },
};
