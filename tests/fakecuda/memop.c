// SPDX-License-Identifier: MIT
/*
 * Memory operations of the fake driver's streams: a stream writes a word, or waits for one. The
 * word may be device memory or registered CPU memory. Other processes write it without a message,
 * so a waiting stream's thread checks it again after a short time; nothing else here polls.
 */
#include <time.h>

#include "capture.h"
#include "stream.h"

#define WAIT_32		1
#define WRITE_32	2
#define FLUSH		3
#define WAIT_64		4
#define WRITE_64	5
#define BARRIER		6

#define HOW		3u		/* GEQ, EQ, AND, NOR */
#define FLUSH_AFTER	(1u << 30)
#define NO_BARRIER	1u		/* a write's only flag; the v2 functions refuse it */
#define MOST_IN_A_BATCH	255

/*
 * One operation of a batch: 48 bytes. Waits, writes and the other operations have equal first
 * fields.
 */
typedef struct {
	unsigned int operation;
	CUdeviceptr address;
	uint64_t value;
	unsigned int flags;
	CUdeviceptr alias;
	uint64_t reserved;
} CUstreamBatchMemOpParams;

_Static_assert(sizeof(CUstreamBatchMemOpParams) == 48, "the driver says so");

struct memop {
	struct fk_op op;
	unsigned int count;
	CUstreamBatchMemOpParams params[];
};

static bool is_wide(const CUstreamBatchMemOpParams *p)
{
	return p->operation == WAIT_64 || p->operation == WRITE_64;
}

static bool is_wait(const CUstreamBatchMemOpParams *p)
{
	return p->operation == WAIT_32 || p->operation == WAIT_64;
}

/* GEQ is cyclic: a word that has wrapped round is greater. */
static bool matches32(uint32_t word, uint32_t value, unsigned int how)
{
	switch (how) {
	case 0: return (int32_t)(word - value) >= 0;
	case 1: return word == value;
	case 2: return (word & value) != 0;
	default: return ~(word | value) != 0;
	}
}

static bool matches64(uint64_t word, uint64_t value, unsigned int how)
{
	switch (how) {
	case 0: return (int64_t)(word - value) >= 0;
	case 1: return word == value;
	case 2: return (word & value) != 0;
	default: return ~(word | value) != 0;
	}
}

static bool matches(const void *at, const CUstreamBatchMemOpParams *p)
{
	if (is_wide(p))
		return matches64(__atomic_load_n((const uint64_t *)at, __ATOMIC_SEQ_CST),
				 p->value, p->flags & HOW);
	return matches32(__atomic_load_n((const uint32_t *)at, __ATOMIC_SEQ_CST),
			 (uint32_t)p->value, p->flags & HOW);
}

static void write_word(void *at, const CUstreamBatchMemOpParams *p)
{
	if (is_wide(p))
		__atomic_store_n((uint64_t *)at, p->value, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n((uint32_t *)at, (uint32_t)p->value, __ATOMIC_SEQ_CST);
}

/* Checks the word, or writes it. false: not yet. */
static bool act(const CUstreamBatchMemOpParams *p, struct fk_device *device, int *ret_result)
{
	enum fk_access access = is_wait(p) ? FK_READ : FK_WRITE;
	struct fk_pin *pin = NULL;
	CUresult why = FK_OK;
	bool done = true;
	void *at;

	at = fk_memory_at(p->address, is_wide(p) ? 8 : 4, device, access, &pin, &why);
	if (!at) {
		*ret_result = FK_ILLEGAL_ADDRESS;
		return true;
	}
	if (is_wait(p))
		done = matches(at, p);
	else
		write_word(at, p);
	fk_memory_done(pin);
	return done;
}

static int run_memop(struct fk_op *op)
{
	const struct timespec a_moment = { .tv_nsec = 50 * 1000 };
	struct memop *memop = (struct memop *)op;
	struct fk_device *device = op->stream->context->device;
	int result = FK_OK;
	unsigned int i;

	for (i = 0; i < memop->count && !result; i++) {
		const CUstreamBatchMemOpParams *p = &memop->params[i];

		if (p->operation == FLUSH || p->operation == BARRIER)
			continue;
		while (!act(p, device, &result)) {
			if (fk_gives_up(op->stream))
				return FK_OK;
			nanosleep(&a_moment, NULL);
		}
	}
	return result;
}

static CUresult check(const CUstreamBatchMemOpParams *p, struct fk_device *device)
{
	struct fk_pin *pin = NULL;
	CUresult why;

	if (p->operation == FLUSH || p->operation == BARRIER)
		return FK_OK;
	if (p->operation < WAIT_32 || p->operation > BARRIER)
		return FK_INVALID_VALUE;
	if (p->address % (is_wide(p) ? 8 : 4) ||
	    p->flags & ~(is_wait(p) ? HOW | FLUSH_AFTER : NO_BARRIER))
		return FK_INVALID_VALUE;
	if (is_wait(p) && p->flags & FLUSH_AFTER && !fk_option_number("FLUSH", 0))
		return FK_NOT_SUPPORTED;
	if (!fk_memory_at(p->address, is_wide(p) ? 8 : 4, device,
			  is_wait(p) ? FK_READ : FK_WRITE, &pin, &why))
		return FK_INVALID_VALUE;
	fk_memory_done(pin);
	return FK_OK;
}

static CUresult batch(bool own, CUstream handle, unsigned int count,
		      const CUstreamBatchMemOpParams *params, unsigned int flags)
{
	CUresult result;
	struct fk_stream *stream = fk_stream_find(handle, own, &result);
	struct memop *memop;
	unsigned int i;
	uint64_t seq;

	if (!stream)
		return result;
	if (!params || !count || count > MOST_IN_A_BATCH || flags)
		return FK_INVALID_VALUE;
	for (i = 0; i < count; i++) {
		result = check(&params[i], stream->context->device);
		if (result)
			return result;
	}
	memop = fk_op_new(sizeof(*memop) + count * sizeof(*params), run_memop);
	memop->op.node = FK_MEMOP_NODE;
	memop->count = count;
	for (i = 0; i < count; i++)
		memop->params[i] = params[i];
	return fk_enqueue(stream, &memop->op, &seq);
}

static CUresult one(bool own, CUstream stream, unsigned int operation, CUdeviceptr address,
		    uint64_t value, unsigned int flags)
{
	CUstreamBatchMemOpParams p = { .operation = operation, .address = address,
				       .value = value, .flags = flags };

	return batch(own, stream, 1, &p, 0);
}

static CUresult wait32(bool own, CUstream stream, CUdeviceptr address, uint32_t value,
		       unsigned int flags)
{
	return one(own, stream, WAIT_32, address, value, flags);
}

static CUresult wait64(bool own, CUstream stream, CUdeviceptr address, uint64_t value,
		       unsigned int flags)
{
	return one(own, stream, WAIT_64, address, value, flags);
}

static CUresult write32(bool own, CUstream stream, CUdeviceptr address, uint32_t value,
			unsigned int flags)
{
	return one(own, stream, WRITE_32, address, value, flags);
}

static CUresult write64(bool own, CUstream stream, CUdeviceptr address, uint64_t value,
			unsigned int flags)
{
	return one(own, stream, WRITE_64, address, value, flags);
}

FK_DEFINE_BOTH(cuStreamWaitValue32, 11070, cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz,
	       FK_WORK, wait32,
	       (CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags),
	       (stream, address, value, flags))
FK_DEFINE_BOTH(cuStreamWaitValue64, 11070, cuStreamWaitValue64_v2, cuStreamWaitValue64_v2_ptsz,
	       FK_WORK, wait64,
	       (CUstream stream, CUdeviceptr address, uint64_t value, unsigned int flags),
	       (stream, address, value, flags))
FK_DEFINE_BOTH(cuStreamWriteValue32, 11070, cuStreamWriteValue32_v2, cuStreamWriteValue32_v2_ptsz,
	       FK_WORK, write32,
	       (CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags),
	       (stream, address, value, flags))
FK_DEFINE_BOTH(cuStreamWriteValue64, 11070, cuStreamWriteValue64_v2, cuStreamWriteValue64_v2_ptsz,
	       FK_WORK, write64,
	       (CUstream stream, CUdeviceptr address, uint64_t value, unsigned int flags),
	       (stream, address, value, flags))
FK_DEFINE_BOTH(cuStreamBatchMemOp, 11070, cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz,
	       FK_WORK, batch,
	       (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params,
		unsigned int flags), (stream, count, params, flags))
