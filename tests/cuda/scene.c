// SPDX-License-Identifier: MIT
/* A writer on streams in a process of its own: scene.h. */
#include <stdlib.h>

#include "scene.h"

static void write_what_is_told(void *argument)
{
	struct scene *scene = argument;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	struct work work;
	uint64_t what;

	hear_parent();
	pool = cuda_writer(scene->name, scene->buffers, WORK_BYTES, scene->flags);
	begin_work(&work);
	tell_parent(xmem_pool_client(pool));
	while ((what = hear_parent()) != LEAVE) {
		switch (what & 0xff) {
		case FILL:
			buffer = xmem_acquire_cuda(pool, WORK_BYTES, 0, patience_ns());
			CHECK(buffer);
			WORKED(xmem_wait_on(buffer, work.stream));
			close_gate(&work);
			fill_on(buffer, what >> 8, &work);
			WORKED(publish_on(buffer, work.stream));
			break;
		case OPEN_GATE:
			open_gate(&work);
			break;
		case ACQUIRE:
			buffer = xmem_acquire_cuda(pool, WORK_BYTES, 0, 0);
			tell_parent(buffer ? 1 : 2);
			xmem_release(buffer);
			continue;
		case CLOSE_POOL:
			xmem_pool_close(pool);
			break;
		}
		tell_parent(what);
	}
	no_violations();
}

void spawn_writer(struct scene *scene, const char *name, unsigned int buffers, uint32_t flags)
{
	*scene = (struct scene){ .buffers = buffers, .flags = flags };
	snprintf(scene->name, sizeof(scene->name), "%s", name);
	scene->writer = spawn(write_what_is_told, scene);
}

void start_writer(struct scene *scene, struct xmem_pool *pool)
{
	uint64_t publisher;

	tell(scene->writer, 1);
	publisher = hear(scene->writer);
	scene->pool = pool ? pool : OPEN(scene->name, .flags = XMEM_OPEN_WRITER);
	scene->sub = follow(scene->pool, publisher, 0);
}

void begin_scene(struct scene *scene, unsigned int buffers)
{
	spawn_writer(scene, new_name(), buffers, 0);
	start_writer(scene, NULL);
}

void order_writer(struct scene *scene, uint64_t what)
{
	tell(scene->writer, what);
	SAME(hear(scene->writer), what);
}

void *open_later(void *scene)
{
	order_writer(scene, OPEN_GATE);
	return NULL;
}

bool writer_finds_one(struct scene *scene)
{
	tell(scene->writer, ACQUIRE);
	return hear(scene->writer) == 1;
}

struct xmem_buffer *receive_next(struct scene *scene)
{
	struct xmem_buffer *buffer = xmem_receive(scene->sub, patience_ns());

	CHECK(buffer);
	return buffer;
}

void let_streams_end(void)
{
	CUresult result = xl_cuda()->ctx_synchronize();

	if (result != CUDA_ERROR_INVALID_CONTEXT)	/* a test without streams has no context */
		must(result);
}

void end_writer(struct scene *scene)
{
	tell(scene->writer, LEAVE);
	finish_child(scene->writer);
	let_streams_end();
	xmem_unsubscribe(scene->sub);
}

void end_scene(struct scene *scene)
{
	end_writer(scene);
	xmem_pool_close(scene->pool);
	no_violations();
}
