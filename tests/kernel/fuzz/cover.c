// SPDX-License-Identifier: MIT
/*
 * The coverage of the module, by kcov: an edge is a pair of places in the module that a thread has
 * reached one after the other. Work items of the module are not seen. Also the corpus: the programs
 * that were the first to reach an edge or to get an answer.
 */
#include <linux/kcov.h>
#include <sys/ioctl.h>

#include "fuzz.h"

#define TRACE	(1u << 16)		/* places of one op; further ones are lost */

void cover_open(struct fuzz_cover *c)
{
	*c = (struct fuzz_cover){ .file = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC) };
	if (c->file < 0)
		return;
	if (!ioctl(c->file, KCOV_INIT_TRACE, (unsigned long)TRACE)) {
		c->trace = mmap(NULL, TRACE * sizeof(u64), PROT_READ | PROT_WRITE, MAP_SHARED,
				c->file, 0);
		if (c->trace != MAP_FAILED && !ioctl(c->file, KCOV_ENABLE, KCOV_TRACE_PC))
			return;
	}
	close(c->file);
	c->file = -1;
}

void cover_begin(struct fuzz_cover *c)
{
	if (c->file >= 0)
		__atomic_store_n(&c->trace[0], 0, __ATOMIC_RELAXED);
}

/* Returns whether the bit was not set before. */
static bool set_bit(u64 *bits, u32 at)
{
	u64 bit = 1ULL << at % 64;

	if (__atomic_load_n(&bits[at / 64], __ATOMIC_RELAXED) & bit)
		return false;
	return !(__atomic_fetch_or(&bits[at / 64], bit, __ATOMIC_RELAXED) & bit);
}

u32 cover_end(struct fuzz_cover *c, struct fuzz_shared *s, u64 *edge)
{
	u64 n, i, last = 0;
	u32 found = 0, at;

	if (c->file < 0)
		return 0;
	n = __atomic_load_n(&c->trace[0], __ATOMIC_RELAXED);
	for (i = 1; i <= n && i < TRACE; i++) {
		at = ((c->trace[i] * 0x9e3779b97f4a7c15ULL) >> 40 ^ last) % FUZZ_EDGES;
		last = (c->trace[i] * 0x9e3779b97f4a7c15ULL) >> 41;
		found += set_bit(s->edge, at);
		if (edge)
			set_bit(edge, at);
	}
	__atomic_fetch_add(&s->edges, found, __ATOMIC_RELAXED);
	return found;
}

u32 cover_answer(struct fuzz_shared *s, unsigned int number, int err)
{
	u32 at = number % FIELDS_REQUESTS * 256 + -err % 256;

	if (!set_bit(s->answer, at))
		return 0;
	__atomic_fetch_add(&s->answers, 1, __ATOMIC_RELAXED);
	return 1;
}

/*
 * If another process is adding, this program is not added. main.c repairs the state if that
 * process is killed here.
 */
void corpus_add(struct fuzz_shared *s, const struct fuzz_program *p)
{
	pid_t nobody = 0;

	if (!__atomic_compare_exchange_n(&s->adding, &nobody, getpid(), false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	if (s->corpus < FUZZ_CORPUS) {
		s->program[s->corpus] = *p;
		__atomic_store_n(&s->corpus, s->corpus + 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&s->adding, 0, __ATOMIC_RELEASE);
}
