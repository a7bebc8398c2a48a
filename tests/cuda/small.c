// SPDX-License-Identifier: MIT
/*
 * A small driver (small.h): all functions of the library's list, which count themselves and return
 * 0. The few that return answers are in small_answers.c: those are strong symbols, and these are
 * weak. The linker hides the functions that a variant must lack (cuda.mk).
 */
#include "lib/cuda/types.h"
#include "lib/cuda/entries.h"
#include "small_answers.h"

#define WEAK(field, symbol, hip, version, group, parameters) \
	EXPORT CUresult weak_##field parameters __asm__(symbol) __attribute__((weak)); \
	CUresult weak_##field parameters \
	{ \
		return small_called(&small->calls); \
	}
XL_CUDA_ENTRIES(WEAK)
