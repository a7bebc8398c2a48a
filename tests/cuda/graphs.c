// SPDX-License-Identifier: MIT
/*
 * A pipeline that both sides have captured, and that they launch again and again with other
 * buffers: the example of docs/cuda.md.
 */
#include <stdlib.h>

#include "graph_turn.h"
#include "sums.h"

#define BUFFERS		5
#define STAMPS		61	/* different contents; no multiple of BUFFERS */
#define IN_FLIGHT	4	/* turns of the reader between two looks at what it has read */

static void begin_pipeline(struct pipeline *p, struct work *work)
{
	begin_work(work);
	p->stream = work->stream;
	p->context = xl_gpu(0)->context;
	p->bytes = WORK_BYTES;
}

static void end_pipeline(struct pipeline *p)
{
	must(xl_cuda()->stream_synchronize(p->stream));
	must(cuGraphExecDestroy(p->exec));
	must(cuGraphDestroy(p->graph));
}

/* Memory of the writer's GPU, with all contents one behind the other. */
static CUdeviceptr make_sources(void)
{
	static uint64_t word[STAMPS][WORK_BYTES / 8];
	CUdeviceptr at;
	size_t i, j;

	for (i = 0; i < STAMPS; i++)
		for (j = 0; j < WORK_BYTES / 8; j++)
			word[i][j] = stamp_word(i, j);
	must(xl_cuda()->mem_alloc(&at, sizeof(word)));
	must(xl_cuda()->memcpy_htod(at, word, sizeof(word)));
	return at;
}

static void write_by_graph(void *name)
{
	unsigned int i, turns = scaled(1000);
	struct pipeline p = { 0 };
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	CUdeviceptr sources;
	struct work work;

	hear_parent();
	pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .wait_bound_ns = patience_ns());
	WORKED(make_on_gpu(pool, WORK_BYTES, BUFFERS, 0, 0));
	begin_pipeline(&p, &work);
	sources = make_sources();
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	for (i = 0; i < turns; i++) {
		buffer = xmem_acquire_cuda(pool, WORK_BYTES, 0, patience_ns());
		CHECK(buffer);
		WORKED(write_turn(&p, buffer, sources + i % STAMPS * WORK_BYTES));
	}
	hear_parent();
	end_pipeline(&p);
	must(xl_cuda()->mem_free(sources));
	xmem_pool_close(pool);
	no_violations();
}

/* The reader's graph copies to here, and the stream from here to the CPU. */
struct target {
	CUdeviceptr at;
	uint64_t *got;			/* IN_FLIGHT * WORK_BYTES, registered */
};

static struct target make_target(void)
{
	struct target target = { .got = keep(IN_FLIGHT * WORK_BYTES) };

	must(xl_cuda()->mem_alloc(&target.at, IN_FLIGHT * WORK_BYTES));
	if (xl_gpu(0)->can.host_register)
		must(xl_cuda()->mem_host_register(target.got, IN_FLIGHT * WORK_BYTES, 0));
	return target;
}

/* The contents of turns from @first on have been read. */
static void check_contents(const struct target *target, unsigned int first)
{
	unsigned int i;
	size_t j;

	for (i = 0; i < IN_FLIGHT; i++)
		for (j = 0; j < WORK_BYTES / 8; j++)
			SAME(target->got[i * (WORK_BYTES / 8) + j],
			     stamp_word((first + i) % STAMPS, j));
}

/* Neither side waits for its own stream before it hands a buffer on. */
TEST(CUDA_a_captured_pipeline_runs_1000_times_with_other_buffers)
{
	unsigned int i, k, turns = scaled(1000) / IN_FLIGHT * IN_FLIGHT;
	const char *name = new_name();
	struct pipeline p = { 0 };
	struct xmem_subscription *sub;
	struct xmem_buffer *buffer;
	struct target target;
	struct xmem_pool *pool;
	struct child *writer;
	struct work work;

	not_with_hip("its graphs have other structs");
	setenv("FAKECUDA_DELAY_US", "100", 1);
	writer = spawn(write_by_graph, (void *)name);
	tell(writer, 1);
	i = hear(writer);
	pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	sub = follow(pool, i, XMEM_SUBSCRIBE_WAITS);
	begin_pipeline(&p, &work);
	target = make_target();
	tell(writer, 2);
	for (i = 0; i < turns; i++) {
		k = i % IN_FLIGHT;
		buffer = xmem_receive(sub, patience_ns());
		CHECK(buffer);
		WORKED(read_turn(&p, buffer, target.at + k * WORK_BYTES));
		must(xl_cuda()->memcpy_dtoh_async((char *)target.got + k * WORK_BYTES,
						  target.at + k * WORK_BYTES, WORK_BYTES,
						  p.stream));
		if (k + 1 < IN_FLIGHT)
			continue;
		must(xl_cuda()->stream_synchronize(p.stream));
		check_contents(&target, i - k);
	}
	end_pipeline(&p);
	must(xl_cuda()->mem_free(target.at));
	xmem_unsubscribe(sub);
	xmem_pool_close(pool);
	tell(writer, 3);
	finish_child(writer);
	no_violations();
}

/* ---- kernels ---- */

#define WORDS	(WORK_BYTES / 4)

/* Capture the kernel that fills a buffer. */
static void capture_fill(struct pipeline *p, struct sums *sums, struct xmem_buffer *buffer)
{
	size_t nodes = 1;

	p->stream = sums->stream;
	CHECK(xmem_cuda_ptr_mut(buffer));
	must(cuStreamBeginCapture(p->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	fill_by_kernel(sums, buffer, 1);
	must(cuStreamEndCapture(p->stream, &p->graph));
	must(cuGraphGetNodes(p->graph, &p->copy, &nodes));
	SAME(nodes, 1);
	must(cuGraphInstantiate(&p->exec, p->graph, 0));
}

static void fill_by_graph(struct pipeline *p, struct sums *sums, void *at, uint32_t stamp)
{
	unsigned long long words = WORDS;
	const CUDA_KERNEL_NODE_PARAMS params = {
		.func = sums->fill, .gridDimX = 4, .gridDimY = 1, .gridDimZ = 1,
		.blockDimX = 64, .blockDimY = 1, .blockDimZ = 1,
		.kernelParams = (void *[]){ &at, &stamp, &words },
	};

	must(cuGraphExecKernelNodeSetParams(p->exec, p->copy, &params));
	must(cuGraphLaunch(p->exec, p->stream));
}

TEST(CUDA_a_captured_kernel_gets_other_buffers)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 2, WORK_BYTES, 0);
	struct xmem_buffer *buffer[2];
	struct pipeline p = { 0 };
	struct sums sums;
	uint32_t turn;
	int i;

	not_with_hip("its graphs have other structs");
	begin_sums(&sums);
	for (turn = 1; turn <= 32; turn += 2) {
		for (i = 0; i < 2; i++) {
			buffer[i] = cuda_acquire(pool, WORK_BYTES);
			WORKED(xmem_wait_on(buffer[i], sums.stream));
			if (!p.exec)
				capture_fill(&p, &sums, buffer[i]);
			fill_by_graph(&p, &sums, xmem_cuda_ptr_mut(buffer[i]), turn + i);
			WORKED(publish_kept_on(buffer[i], sums.stream));
		}
		for (i = 0; i < 2; i++) {
			SAME(sum_by_kernel(&sums, xmem_cuda_ptr(buffer[i]), WORK_BYTES),
			     right_sum(turn + i, WORK_BYTES));
			WORKED(xmem_release_on(buffer[i], sums.stream));
		}
		must(xl_cuda()->stream_synchronize(sums.stream));
	}
	end_pipeline(&p);
	must(xl_cuda()->mem_free(sums.sum));
	xmem_pool_close(pool);
	no_violations();
}
