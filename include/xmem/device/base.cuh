/* SPDX-License-Identifier: MIT */
/*
 * The base of the other headers of this folder: the qualifier of functions, integer types, atomic
 * operations, and the place of the calling thread. It includes no header of CUDA, and none of the C
 * library.
 *
 * All functions of this folder can be called in kernels and on the CPU. In a kernel an atomic
 * operation is inline PTX at the scope of the GPU, so threads of one GPU synchronise by it, and
 * threads of two GPUs or of a GPU and the CPU do not. The PTX needs compute capability 7.0.
 */
#ifndef XMEM_DEVICE_BASE_CUH
#define XMEM_DEVICE_BASE_CUH

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define XMEM_DEVICE __host__ __device__ inline
#define XMEM_DEVICE_MEMBER __host__ __device__
#elif defined(__CUDA__)			/* clang without a header of CUDA */
#define XMEM_DEVICE __attribute__((host, device)) inline
#define XMEM_DEVICE_MEMBER __attribute__((host, device))
#else
#define XMEM_DEVICE inline
#define XMEM_DEVICE_MEMBER
#endif

/* A kernel calls this function, and does not inline it: it is long and used in many places. */
#if defined(__CUDA_ARCH__)
#define XMEM_DEVICE_CALLED __attribute__((noinline)) XMEM_DEVICE
#else
#define XMEM_DEVICE_CALLED XMEM_DEVICE
#endif

/* The heap, for blocks that belong to no arena. */
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define XMEM_DEVICE_MALLOC(bytes) malloc(bytes)
#define XMEM_DEVICE_FREE(memory) free(memory)
#else
#if defined(__CUDA__)
extern "C" __attribute__((device)) void *malloc(decltype(sizeof(0)));
extern "C" __attribute__((device)) void free(void *);
#endif
#define XMEM_DEVICE_MALLOC(bytes) __builtin_malloc(bytes)
#define XMEM_DEVICE_FREE(memory) __builtin_free(memory)
#endif

/*
 * The places at which a test can stop a thread, between two operations on shared words. They are
 * empty unless the program defines XMEM_DEVICE_STEPS, and they are for the CPU.
 */
#if defined(XMEM_DEVICE_STEPS) && !defined(__CUDA_ARCH__)
void xmem_device_step(int step);
#define XMEM_DEVICE_STEP(step) xmem_device_step(::xmem::device::step)
#else
#define XMEM_DEVICE_STEP(step) ((void)0)
#endif

namespace xmem {
namespace device {

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = decltype(sizeof(0));	/* size_t, as in numba's MemInfo */
using i32 = int;

static_assert(sizeof(u32) == 4 && sizeof(u64) == 8, "a platform with 64 bits");

enum step {
	STEP_POP_NEXT,			/* arena: the next one read, the list not changed */
	STEP_PUSH_NEXT,			/* arena: the next one written, the list not changed */
	STEP_BUMP,			/* arena: the mark read, not moved */
	STEP_DECREF_DROPPED,		/* decref: the count is lower, nothing destroyed */
	STEPS
};

/* ---- Atomic operations ---- */

#ifdef __CUDA_ARCH__

XMEM_DEVICE u64 fetch_add_relaxed(u64 *word, u64 value)
{
	u64 old;

	asm volatile("atom.relaxed.gpu.add.u64 %0, [%1], %2;"
		     : "=l"(old) : "l"(word), "l"(value) : "memory");
	return old;
}

XMEM_DEVICE void add_relaxed(u64 *word, u64 value)
{
	asm volatile("red.relaxed.gpu.add.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}

/* PTX has no atomic subtraction. */
XMEM_DEVICE u64 fetch_sub_acq_rel(u64 *word, u64 value)
{
	u64 old;

	asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], %2;"
		     : "=l"(old) : "l"(word), "l"(0 - value) : "memory");
	return old;
}

/* Returns the old value, which is the expected one if the word has changed. */
XMEM_DEVICE u64 compare_swap_acq_rel(u64 *word, u64 expected, u64 desired)
{
	u64 old;

	asm volatile("atom.acq_rel.gpu.cas.b64 %0, [%1], %2, %3;"
		     : "=l"(old) : "l"(word), "l"(expected), "l"(desired) : "memory");
	return old;
}

XMEM_DEVICE u64 load_acquire(const u64 *word)
{
	u64 value;

	asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
	return value;
}

XMEM_DEVICE u32 load_relaxed(const u32 *word)
{
	u32 value;

	asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
	return value;
}

XMEM_DEVICE u64 load_relaxed(const u64 *word)
{
	u64 value;

	asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
	return value;
}

XMEM_DEVICE void store_relaxed(u32 *word, u32 value)
{
	asm volatile("st.relaxed.gpu.u32 [%0], %1;" : : "l"(word), "r"(value) : "memory");
}

#else

XMEM_DEVICE u64 fetch_add_relaxed(u64 *word, u64 value)
{
	return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

XMEM_DEVICE void add_relaxed(u64 *word, u64 value)
{
	__atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

XMEM_DEVICE u64 fetch_sub_acq_rel(u64 *word, u64 value)
{
	return __atomic_fetch_sub(word, value, __ATOMIC_ACQ_REL);
}

/* Returns the old value, which is the expected one if the word has changed. */
XMEM_DEVICE u64 compare_swap_acq_rel(u64 *word, u64 expected, u64 desired)
{
	__atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
	return expected;
}

XMEM_DEVICE u64 load_acquire(const u64 *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

XMEM_DEVICE u32 load_relaxed(const u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

XMEM_DEVICE u64 load_relaxed(const u64 *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

XMEM_DEVICE void store_relaxed(u32 *word, u32 value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

#endif

/* ---- The highest bit of a number that is not 0 ---- */

XMEM_DEVICE u32 highest_bit(u64 number)
{
#ifdef __CUDA_ARCH__
	u32 zeros;

	asm("clz.b64 %0, %1;" : "=r"(zeros) : "l"(number));
	return 63 - zeros;
#else
	return 63 - u32(__builtin_clzll(number));
#endif
}

/* ---- The calling thread ---- */

/*
 * A kernel divides its rows among all threads of a grid of one dimension:
 *
 *   for (u64 row = thread_index(); row < rows; row += thread_count())
 *
 * On the CPU a program gives each of its threads a place by set_thread(). Without that a thread is
 * number 0 of 1. In a kernel set_thread() does nothing.
 */
#ifdef __CUDA_ARCH__

XMEM_DEVICE u64 thread_index()
{
	u32 thread, block, threads;

	asm("mov.u32 %0, %%tid.x;" : "=r"(thread));
	asm("mov.u32 %0, %%ctaid.x;" : "=r"(block));
	asm("mov.u32 %0, %%ntid.x;" : "=r"(threads));
	return u64(block) * threads + thread;
}

XMEM_DEVICE u64 thread_count()
{
	u32 blocks, threads;

	asm("mov.u32 %0, %%nctaid.x;" : "=r"(blocks));
	asm("mov.u32 %0, %%ntid.x;" : "=r"(threads));
	return u64(blocks) * threads;
}

XMEM_DEVICE void set_thread(u64, u64)
{
}

#else

struct thread_place {
	u64 index, count;
};

XMEM_DEVICE thread_place &this_thread()
{
	static thread_local thread_place place = { 0, 1 };

	return place;
}

XMEM_DEVICE void set_thread(u64 index, u64 count)
{
	this_thread() = { index, count };
}

XMEM_DEVICE u64 thread_index()
{
	return this_thread().index;
}

XMEM_DEVICE u64 thread_count()
{
	return this_thread().count;
}

#endif

} // namespace device
} // namespace xmem

#endif
