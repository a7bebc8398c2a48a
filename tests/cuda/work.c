// SPDX-License-Identifier: MIT
/* Streams of a test, and gates in them: work.h. */
#include <stdlib.h>

#include "work.h"

void must(CUresult result)
{
	if (result)
		FAIL("the driver returned %d", result);
}

void *keep(size_t bytes)
{
	static void *kept[64];
	static unsigned int count;

	CHECK(count < sizeof(kept) / sizeof(*kept));
	kept[count] = aligned_alloc(4096, bytes);
	CHECK(kept[count]);
	return kept[count++];
}

void begin_work_on(struct work *work, int gpu)
{
	struct xl_gpu_scope scope;

	work->got = keep(WORK_BYTES);
	SAME(sem_init(&work->gate, 0, 0), 0);
	WORKED(xl_gpu_enter(xl_gpu(gpu), &scope));
	xl_capture_restore(scope.mode);		/* only the context stays */
	must(xl_cuda()->stream_create(&work->stream, CU_STREAM_NON_BLOCKING));
	if (xl_gpu(gpu)->can.host_register)
		must(xl_cuda()->mem_host_register(work->got, WORK_BYTES, 0));
}

void begin_work(struct work *work)
{
	begin_work_on(work, 0);
}

static void pass(void *gate)
{
	while (sem_wait(gate))
		;
}

void close_gate(struct work *work)
{
	must(xl_cuda()->launch_host_func(work->stream, pass, &work->gate));
}

void open_gate(struct work *work)
{
	sem_post(&work->gate);
}

void *open_soon(void *work)
{
	open_gate(work);
	return NULL;
}

uint64_t stamp_word(uint64_t stamp, size_t i)
{
	return stamp * 0x9e3779b97f4a7c15ULL + i;	/* like those of cuda_fill */
}

void fill_on(struct xmem_buffer *buffer, uint64_t stamp, struct work *work)
{
	uint64_t *word = keep(WORK_BYTES);
	size_t i;

	for (i = 0; i < WORK_BYTES / 8; i++)
		word[i] = stamp_word(stamp, i);
	must(xl_cuda()->memcpy_htod_async((CUdeviceptr)xmem_cuda_ptr_mut(buffer), word, WORK_BYTES,
					  work->stream));
}
