/* SPDX-License-Identifier: MIT */
/* Pages of memory, which a child by fork moves to where its parent had them. */
#ifndef XT_TORCH_PAGES_H
#define XT_TORCH_PAGES_H

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MREMAP_MAYMOVE
#define MREMAP_MAYMOVE	1
#define MREMAP_FIXED	2
#endif
/* The limited API of Python is compiled with _GNU_SOURCE or without. */
void *mremap(void *old, size_t old_bytes, size_t new_bytes, int flags, ...);

static inline uintptr_t xt_page_bytes(void)
{
	return sysconf(_SC_PAGESIZE);
}

static inline uintptr_t xt_page_down(uintptr_t at)
{
	return at & -xt_page_bytes();
}

static inline uintptr_t xt_page_up(uintptr_t at)
{
	return (at + xt_page_bytes() - 1) & -xt_page_bytes();
}

#endif
