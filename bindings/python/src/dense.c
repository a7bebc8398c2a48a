// SPDX-License-Identifier: MIT
/*
 * Dense copies of tensors that may have gaps, negative strides or repeated elements. Nothing here
 * needs the GIL.
 *
 * Adjacent dimensions are merged into one, and dense rows into one element. The inner loops then go
 * along two dimensions, in tiles that fit into the first-level cache: the dimension in which the
 * copy is dense, and the dimension in which the elements of the source are closest. The innermost
 * loop is compiled for each usual size of elements, including pixels of three bytes.
 */
#include "core.h"
#include "dlpack.h"

#include <stdlib.h>
#include <string.h>

#define MOST	64		/* dimensions that a Py_buffer can have */

void *xp_memory(size_t bytes)
{
	void *memory;

	return posix_memalign(&memory, 256, bytes ? bytes : 1) ? NULL : memory;
}

/*
 * One loop: @count elements, and the bytes from one element to the next in the copy and in the
 * source.
 */
struct loop {
	Py_ssize_t count, to, from;
};

struct plan {
	int ndim;
	Py_ssize_t bytes;		/* of one element */
	struct loop loops[MOST];	/* the last is the densest in the copy */
};

/* ---- one dimension ---- */

/*
 * If the elements of the source are so far apart, four at once are slower than one after the other:
 * with 16 bytes by a third.
 */
#define FAR	2048

/* The steps of a dense copy are constants for the compiler, which makes it faster. */
#define COPY_LOOP(name, size)								\
static inline __attribute__((always_inline))						\
void name ## _by(char *to, const char *from, Py_ssize_t count, Py_ssize_t to_step,	\
		 Py_ssize_t from_step)							\
{											\
	for (; count >= 4; count -= 4, to += 4 * to_step, from += 4 * from_step) {	\
		memcpy(to, from, size);							\
		memcpy(to + to_step, from + from_step, size);				\
		memcpy(to + 2 * to_step, from + 2 * from_step, size);			\
		memcpy(to + 3 * to_step, from + 3 * from_step, size);			\
	}										\
	for (; count > 0; count--, to += to_step, from += from_step)			\
		memcpy(to, from, size);							\
}											\
static void name(char *to, const char *from, Py_ssize_t count, Py_ssize_t to_step,	\
		 Py_ssize_t from_step)							\
{											\
	if (to_step != size)								\
		name ## _by(to, from, count, to_step, from_step);			\
	else if (size == 16 && labs(from_step) >= FAR)					\
		for (; count > 0; count--, to += size, from += from_step)		\
			memcpy(to, from, size);						\
	else if (from_step == -size)							\
		name ## _by(to, from, count, size, -size);				\
	else if (from_step == 2 * size)							\
		name ## _by(to, from, count, size, 2 * size);				\
	else										\
		name ## _by(to, from, count, size, from_step);				\
}

COPY_LOOP(copy_1, 1)
COPY_LOOP(copy_2, 2)
COPY_LOOP(copy_3, 3)
COPY_LOOP(copy_4, 4)
COPY_LOOP(copy_8, 8)
COPY_LOOP(copy_16, 16)

static void copy_any(char *to, const char *from, const struct loop *loop, Py_ssize_t count,
		     Py_ssize_t bytes)
{
	for (; count > 0; count--, to += loop->to, from += loop->from)
		memcpy(to, from, bytes);
}

/* Every second byte: eight of these bytes make one word, which is stored at once. */
static void copy_second_bytes(char *to, const char *from, Py_ssize_t count)
{
	const uint64_t pairs = 0x0000ffff0000ffff, bytes = 0x00ff00ff00ff00ff;
	uint64_t words[2];

	/* The neighbour of the last element may lie outside the source. */
	for (; count > 8; count -= 8, to += 8, from += 16) {
		int i;

		memcpy(words, from, 16);
		for (i = 0; i < 2; i++) {
			words[i] &= bytes;
			words[i] = (words[i] | words[i] >> 8) & pairs;
			words[i] = (words[i] | words[i] >> 16) & 0xffffffff;
		}
		words[0] |= words[1] << 32;
		memcpy(to, words, 8);
	}
	copy_1(to, from, count, 1, 2);
}

/* Bytes in reverse order: eight bytes are one word, byte-swapped. */
static void copy_reversed_bytes(char *to, const char *from, Py_ssize_t count)
{
	uint64_t word;

	for (; count >= 8; count -= 8, to += 8, from -= 8) {
		memcpy(&word, from - 7, 8);
		word = __builtin_bswap64(word);
		memcpy(to, &word, 8);
	}
	copy_1(to, from, count, 1, -1);
}

#define FILL	16384	/* bytes that stay in the first-level cache */

/*
 * Repeat one element of at most FILL bytes: the part that is already filled is copied behind
 * itself.
 */
static void fill(char *to, const char *from, size_t count, size_t bytes)
{
	size_t done = bytes, n;

	memcpy(to, from, bytes);
	for (count *= bytes; done < count; done += n) {
		n = done < FILL ? done : FILL / bytes * bytes;
		if (n > count - done)
			n = count - done;
		memcpy(to + done, to, n);
	}
}

static void copy_along(char *to, const char *from, const struct loop *loop, Py_ssize_t count,
		       Py_ssize_t bytes)
{
	if (!loop->from && loop->to == bytes && count > 1 && bytes <= FILL)
		return fill(to, from, count, bytes);
	switch (bytes) {
	case 1:
		if (loop->to == 1 && loop->from == 2 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
			return copy_second_bytes(to, from, count);
		if (loop->to == 1 && loop->from == -1)
			return copy_reversed_bytes(to, from, count);
		return copy_1(to, from, count, loop->to, loop->from);
	case 2: return copy_2(to, from, count, loop->to, loop->from);
	case 3: return copy_3(to, from, count, loop->to, loop->from);
	case 4: return copy_4(to, from, count, loop->to, loop->from);
	case 8: return copy_8(to, from, count, loop->to, loop->from);
	case 16: return copy_16(to, from, count, loop->to, loop->from);
	default: return copy_any(to, from, loop, count, bytes);
	}
}

/* Copy pixels of three bytes in another order, or from three planes. */
static void copy_triples(char *to, const char *from, const struct loop *pixels, Py_ssize_t count,
			 Py_ssize_t plane)
{
	Py_ssize_t to_step = pixels->to, from_step = pixels->from;

	for (; count > 0; count--, to += to_step, from += from_step) {
		to[0] = from[0];
		to[1] = from[plane];
		to[2] = from[2 * plane];
	}
}

/* ---- two dimensions ---- */

/* Copy a tile, line by line along its longer side. */
static void copy_tile(char *to, const char *from, const struct loop *a, Py_ssize_t a_count,
		      const struct loop *b, Py_ssize_t b_count, Py_ssize_t bytes)
{
	if (bytes == 1 && b->count == 3 && b->to == 1) {
		copy_triples(to, from, a, a_count, b->from);
	} else if (b_count >= 16 || b_count >= a_count) {
		for (; a_count > 0; a_count--, to += a->to, from += a->from)
			copy_along(to, from, b, b_count, bytes);
	} else {
		for (; b_count > 0; b_count--, to += b->to, from += b->from)
			copy_along(to, from, a, a_count, bytes);
	}
}

static Py_ssize_t least(Py_ssize_t one, Py_ssize_t other)
{
	return one < other ? one : other;
}

/*
 * The size of a tile along the copy's densest dimension, and along the other. With elements of up
 * to 4 bytes, both are equal. With larger elements, few rows are written at once, but far, so that
 * the processor's prefetches are used. This does not hold if the source's lines are a multiple of a
 * large power of two apart, because they then share a few sets of the cache. With rows of less than
 * 16 elements, many adjacent rows are as good as one, but distant rows are each a line of their
 * own.
 */
static Py_ssize_t tile_width(const struct loop *a, const struct loop *b, Py_ssize_t bytes)
{
	if (labs(b->from) <= labs(a->from) && b->count >= 16)
		return b->count;
	if (bytes <= 4)
		return least(b->count, 64);
	return least(b->count, b->from % 512 ? 128 : 32);
}

static Py_ssize_t tile_height(const struct loop *a, Py_ssize_t width, Py_ssize_t bytes)
{
	if (width < 16)
		return bytes <= 4 || a->to <= 256 ? 1024 : 16;
	if (bytes <= 4)
		return 64;
	return width > 32 ? 16 : 32;
}

static void copy_plane(char *to, const char *from, const struct loop *a, const struct loop *b,
		       Py_ssize_t bytes)
{
	Py_ssize_t wide = tile_width(a, b, bytes), tall = tile_height(a, wide, bytes), i, j;

	for (i = 0; i < a->count; i += tall)
		for (j = 0; j < b->count; j += wide)
			copy_tile(to + i * a->to + j * b->to, from + i * a->from + j * b->from,
				  a, least(tall, a->count - i), b, least(wide, b->count - j),
				  bytes);
}

/* ---- all of them ---- */

/* Remove dimensions of one element, and merge adjacent dimensions. */
static void make_plan(struct plan *plan, int ndim, const Py_ssize_t *shape,
		      const Py_ssize_t *strides, Py_ssize_t item_bytes)
{
	struct loop *loops = plan->loops;
	Py_ssize_t step = item_bytes;
	int i, n = 0, first;

	plan->bytes = item_bytes;
	/* The loops begin with the last dimension; they are reversed below. */
	for (i = ndim; i--; step *= shape[i]) {
		struct loop loop = { shape[i], step, strides[i] };

		if (shape[i] == 1)
			continue;
		if (!n && strides[i] == plan->bytes && step == plan->bytes)
			plan->bytes *= shape[i];
		else if (n && strides[i] == loops[n - 1].from * loops[n - 1].count)
			loops[n - 1].count *= shape[i];
		else
			loops[n++] = loop;
	}
	for (first = 0, i = n - 1; first < i; first++, i--) {
		struct loop other = loops[first];

		loops[first] = loops[i];
		loops[i] = other;
	}
	plan->ndim = n;
}

/* Make the dimension in which the source's elements are closest the one before the last. */
static void choose(struct plan *plan)
{
	int last = plan->ndim - 1, best = last - 1, i;
	struct loop chosen;

	if (last < 1 || labs(plan->loops[last].from) <= labs(plan->loops[best].from))
		return;
	for (i = best; i--;)
		if (labs(plan->loops[i].from) < labs(plan->loops[best].from))
			best = i;
	chosen = plan->loops[best];
	memmove(&plan->loops[best], &plan->loops[best + 1],
		(last - 1 - best) * sizeof(chosen));
	plan->loops[last - 1] = chosen;
}

void xp_copy_dense(char *to, const char *from, int ndim, const Py_ssize_t *shape,
		   const Py_ssize_t *strides, Py_ssize_t item_bytes)
{
	static const struct loop once = { 1, 0, 0 };
	Py_ssize_t at[MOST] = { 0 };
	const struct loop *a, *b;
	struct plan plan;
	int outer, i;

	for (i = 0; i < ndim; i++)
		if (!shape[i])
			return;
	make_plan(&plan, ndim, shape, strides, item_bytes);
	choose(&plan);
	outer = plan.ndim > 2 ? plan.ndim - 2 : 0;
	a = plan.ndim > 1 ? &plan.loops[outer] : &once;
	b = plan.ndim ? &plan.loops[plan.ndim - 1] : &once;
	for (;;) {
		copy_plane(to, from, a, b, plan.bytes);
		for (i = outer - 1; i >= 0; i--) {
			to += plan.loops[i].to;
			from += plan.loops[i].from;
			if (++at[i] < plan.loops[i].count)
				break;
			to -= plan.loops[i].to * plan.loops[i].count;
			from -= plan.loops[i].from * plan.loops[i].count;
			at[i] = 0;
		}
		if (i < 0)
			return;
	}
}

void xp_view_densify(struct xp_view *view)
{
	int64_t step = 1;
	int i;

	for (i = view->ndim; i--; step *= view->shape[i] ? view->shape[i] : 1) {
		view->steps[i] = step;
		view->strides[i] = step * view->item_bytes;
	}
	view->dense = view->divisible = true;
}
