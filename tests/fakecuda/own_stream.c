// SPDX-License-Identifier: MIT
/*
 * The default streams that threads have of their own, one for each context. They end with the
 * thread.
 */
#include <stdlib.h>

#include "queue.h"

struct own_stream {
	struct fk_stream *stream;
	struct own_stream *next;
};

static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void end_own(void *list)
{
	struct own_stream *own = list, *next;

	for (; own; own = next) {
		next = own->next;
		if (fk_queue_find(own->stream))
			fk_queue_close(own->stream);
		free(own);
	}
}

static void make_own_key(void)
{
	if (pthread_key_create(&own_key, end_own))
		abort();
}

struct fk_stream *fk_queue_per_thread(struct fk_context *context)
{
	struct own_stream *own;

	pthread_once(&own_once, make_own_key);
	for (own = pthread_getspecific(own_key); own; own = own->next)
		if (own->stream->context == context && fk_queue_find(own->stream))
			return own->stream;
	own = malloc(sizeof(*own));
	if (!own)
		abort();
	own->stream = fk_queue_new(context, FK_STREAM_PER_THREAD);
	own->next = pthread_getspecific(own_key);
	pthread_setspecific(own_key, own);
	return own->stream;
}
