// SPDX-License-Identifier: MIT
/* Handles that are dropped when a stream has written a word: passed.h. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "lib/gpu/order.h"
#include "lib/gpu/passed.h"
#include "lib/host/futex.h"

#define WORDS		512		/* they fill a page of 4 KiB */
#define FIRST_NAP_NS	50000
#define LAST_NAP_NS	1000000
#define IDLE_S		1		/* after that the thread ends */

/*
 * A word is 0 until its stream writes 1. A forked child finds this page wiped. The kernel does not
 * copy the page, so the driver and this process go on sharing one page.
 */
struct page {
	u64 word[WORDS];
	u32 in_use;		/* words whose handles wait to be dropped, or are being dropped;
				 * atomic */
	u32 asleep;		/* the thread sleeps, or is about to; atomic */
	CUdeviceptr device[XL_MAX_GPUS];	/* addresses of the words, by ordinal; 0: not
						 * asked for yet; atomic */
};

static struct {
	struct page *page;		/* made once, and kept until the process ends; atomic */
	bool refused;			/* the driver does not register a page; atomic */
	void (*drop)(struct xmem_buffer *buffer);	/* atomic */

	struct xl_lock dropping;	/* one thread at a time drops handles, so xl_passed_look
					 * returns after the drops that other threads have begun */
	struct xl_lock lock;		/* guards what follows; no other code runs under it */
	u64 used[WORDS / 64];
	struct xmem_buffer *buffer[WORDS];	/* of words in use; NULL: forgotten */
	bool watched;			/* the thread is there */
} passed;

/* ---- the page ---- */

static bool can_write(const struct xl_gpu *gpu)
{
	return gpu->can.memops && gpu->can.host_register && gpu->ordinal < XL_MAX_GPUS &&
	       !xm_load(&passed.refused);
}

/* Register a page with the driver, unless another thread was first. NULL: the page is refused. */
static struct page *make_page(void)
{
	struct page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *first = NULL;

	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, sizeof(*page), MADV_WIPEONFORK) ||
	    xl_cuda()->mem_host_register(page, xl_page_bytes(), CU_MEMHOSTREGISTER_PORTABLE |
								CU_MEMHOSTREGISTER_DEVICEMAP)) {
		xm_store(&passed.refused, true);
		munmap(page, sizeof(*page));
		return NULL;
	}
	if (__atomic_compare_exchange_n(&passed.page, &first, page, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return page;
	xl_cuda()->mem_host_unregister(page);
	munmap(page, sizeof(*page));
	return first;
}

static CUdeviceptr ask_address(const struct xl_gpu *gpu, struct page *page)
{
	CUdeviceptr at = 0;

	if (gpu->can.host_address)
		at = (CUdeviceptr)page->word;
	else if (xl_cuda()->mem_host_get_device_pointer(&at, page->word, 0))
		return 0;
	xm_store(&page->device[gpu->ordinal], at);
	return at;
}

/* Find the address of the first word on this GPU. Returns the driver's result. */
static CUresult find_address(struct xl_gpu *gpu, CUdeviceptr *ret)
{
	struct page *page = xm_load_acquire(&passed.page);
	struct xl_gpu_scope scope;
	CUresult result;

	if (!can_write(gpu))
		return CUDA_ERROR_NOT_SUPPORTED;
	*ret = page ? xm_load(&page->device[gpu->ordinal]) : 0;
	if (likely(*ret))
		return CUDA_SUCCESS;
	result = xl_order_enter(gpu, &scope);
	if (result)
		return result;
	if (!page)
		page = make_page();
	*ret = page ? ask_address(gpu, page) : 0;
	xl_gpu_leave(&scope);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- looking ---- */

/* A handle whose word is written. */
struct written {
	struct xmem_buffer *buffer;
	u32 mode;
};

#define AT_ONCE		64

/*
 * Free the words that are written, at most AT_ONCE, but let them count as in use until their
 * handles are dropped. Returns how many. The bit XL_LEAVING is cleared under the lock, because
 * after xl_passed_forget the struct may already be the handle of another buffer.
 */
static u32 take_written(struct page *page, struct written *ret)
{
	u32 i, w, n = 0;
	u64 left;

	xl_lock(&passed.lock);
	for (i = 0; i < WORDS / 64; i++) {
		for (left = passed.used[i]; left && n < AT_ONCE; left &= left - 1) {
			w = i * 64 + __builtin_ctzll(left);
			if (!passed.buffer[w] || !xm_load_acquire(&page->word[w]))
				continue;
			xm_store(&page->word[w], 0);
			passed.used[i] &= ~(1ULL << w % 64);
			ret[n].buffer = passed.buffer[w];
			ret[n].mode = xl_mode_clear(ret[n].buffer, XL_LEAVING);
			n++;
		}
	}
	xl_unlock(&passed.lock);
	return n;
}

/* true: a handle was dropped. */
static bool look(struct page *page)
{
	struct written written[AT_ONCE];
	u32 i, n, all = 0;

	xl_lock(&passed.dropping);
	do {
		n = take_written(page, written);
		for (i = 0; i < n; i++)
			if (written[i].mode & XL_LEAVING)
				xm_load(&passed.drop)(written[i].buffer);
		__atomic_fetch_sub(&page->in_use, n, __ATOMIC_SEQ_CST);
		all += n;
	} while (n == AT_ONCE);
	xl_unlock(&passed.dropping);
	return all;
}

void xl_passed_look(void)
{
	struct page *page = xm_load_acquire(&passed.page);

	if (page && xm_load(&page->in_use))
		look(page);
}

/*
 * Sleep until a word is put. false: none was put within IDLE_S. This thread stores `asleep` and
 * then loads `in_use`; a thread that puts a word stores `in_use` and then loads `asleep`. So
 * neither misses the other.
 */
static bool sleep_until_used(struct page *page)
{
	const struct timespec idle = { .tv_sec = IDLE_S };
	long slept = 0;

	__atomic_store_n(&page->asleep, 1, __ATOMIC_SEQ_CST);
	while (!slept && !__atomic_load_n(&page->in_use, __ATOMIC_SEQ_CST) &&
	       xm_load(&page->asleep))
		slept = xl_futex_wait_private_for(&page->asleep, 1, &idle) == -ETIMEDOUT;
	xm_store(&page->asleep, 0);
	return !slept;
}

/*
 * Is there nothing to look at? Then the thread ends, because a process whose main thread has ended
 * lasts as long as its other threads. The next word starts another one.
 */
static bool may_end(struct page *page)
{
	bool idle;

	xl_lock(&passed.lock);
	idle = !xm_load(&page->in_use);
	if (idle)
		passed.watched = false;
	xl_unlock(&passed.lock);
	return idle;
}

static void wake_watcher(struct page *page)
{
	if (unlikely(__atomic_load_n(&page->asleep, __ATOMIC_SEQ_CST)) &&
	    __atomic_exchange_n(&page->asleep, 0, __ATOMIC_SEQ_CST))
		xl_futex_wake_private(&page->asleep, 1);
}

/*
 * The library's thread. A GPU cannot wake a thread, so this one looks again and again while words
 * are in use, and naps in between. Each nap is longer than the last by an eighth, up to 1 ms. After
 * each drop of a handle the naps start anew.
 */
static void *watch(void *user)
{
	struct page *page = user;
	struct timespec nap = { .tv_nsec = FIRST_NAP_NS };

	prctl(PR_SET_NAME, "xmem-streams");
	prctl(PR_SET_TIMERSLACK, 1000UL);	/* ns; the usual 50 us would double a short nap */
	for (;;) {
		if (!xm_load(&page->in_use)) {
			if (!sleep_until_used(page) && may_end(page))
				return NULL;
			nap.tv_nsec = FIRST_NAP_NS;
		}
		nap.tv_nsec = look(page) ? FIRST_NAP_NS : nap.tv_nsec * 9 / 8;
		if (nap.tv_nsec > LAST_NAP_NS)
			nap.tv_nsec = LAST_NAP_NS;
		if (xm_load(&page->in_use))
			nanosleep(&nap, NULL);
	}
}

/* Under the lock. false: there is no memory for a thread. */
static bool start_watching(struct page *page)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);	/* signals are for the program's threads */
	passed.watched = !pthread_create(&thread, NULL, watch, page);
	if (passed.watched)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return passed.watched;
}

/* ---- words ---- */

/* -1: all words are in use, or no thread would look at the words. */
static int take_word(struct page *page, struct xmem_buffer *buffer)
{
	int w = -1;
	u32 i;

	xl_lock(&passed.lock);
	if (passed.watched || start_watching(page))
		for (i = 0; i < WORDS / 64 && w < 0; i++)
			if (~passed.used[i])
				w = i * 64 + __builtin_ctzll(~passed.used[i]);
	if (w >= 0) {
		passed.used[w / 64] |= 1ULL << w % 64;
		passed.buffer[w] = buffer;
		__atomic_fetch_add(&page->in_use, 1, __ATOMIC_SEQ_CST);
	}
	xl_unlock(&passed.lock);
	return w;
}

/*
 * Free a word that the stream has refused. Another thread may have found the context lost and
 * forgotten the handle. Then the word does not count any more.
 */
static void give_back(struct page *page, u32 w)
{
	XM_STEP(XM_STEP_CUDA_REFUSED);
	xl_lock(&passed.lock);
	passed.used[w / 64] &= ~(1ULL << w % 64);
	if (passed.buffer[w])
		__atomic_fetch_sub(&page->in_use, 1, __ATOMIC_SEQ_CST);
	xl_unlock(&passed.lock);
}

CUresult xl_passed_put(struct xl_gpu *gpu, CUstream stream,
		       void (*drop)(struct xmem_buffer *buffer),
		       struct xmem_buffer *buffer)
{
	struct page *page;
	CUdeviceptr at;
	CUresult result = find_address(gpu, &at);
	int w;

	if (result)
		return result;
	page = xm_load_acquire(&passed.page);
	xm_store(&passed.drop, drop);
	w = take_word(page, buffer);
	if (w < 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	XL_ON_STREAM(gpu, stream, result,
		     xl_cuda()->stream_write_value64(stream, at + w * sizeof(u64), 1,
						     CU_STREAM_WRITE_VALUE_DEFAULT));
	if (result)
		give_back(page, w);
	else
		wake_watcher(page);
	return result;
}

/*
 * The word stays in use, so that no other handle is dropped if the stream writes the word after
 * all.
 */
void xl_passed_forget(const struct xmem_buffer *buffer)
{
	struct page *page = xm_load_acquire(&passed.page);
	u32 w;

	xl_lock(&passed.lock);
	for (w = 0; page && w < WORDS; w++) {
		if (!(passed.used[w / 64] >> w % 64 & 1) || passed.buffer[w] != buffer)
			continue;
		passed.buffer[w] = NULL;
		__atomic_fetch_sub(&page->in_use, 1, __ATOMIC_SEQ_CST);
	}
	xl_unlock(&passed.lock);
}
