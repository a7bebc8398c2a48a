// SPDX-License-Identifier: MIT
/*
 * cuGetProcAddress (rule 50): the newest variant of a function that is no newer than the caller's
 * version and this driver.
 */
#include <string.h>

#include "fake.h"

enum { FOUND = 0, NO_SUCH_SYMBOL = 1, TOO_OLD_A_VERSION = 2 };
enum { LEGACY_STREAM = 1, PER_THREAD_STREAM = 2 };

static struct fk_function *find(const char *name, int version, unsigned long flags, int *ret_status)
{
	int driver = fk_option_number("VERSION", 13000);
	struct fk_function *best = NULL;

	*ret_status = NO_SUCH_SYMBOL;
	for (struct fk_function *f = fk_functions(); f; f = f->next) {
		bool per_thread = f->needs & FK_PER_THREAD;

		if (strcmp(f->base, name) || f->missing || f->version > driver)
			continue;
		if (per_thread && !(flags & PER_THREAD_STREAM))
			continue;
		if (f->version > version) {
			if (!best)
				*ret_status = TOO_OLD_A_VERSION;
			continue;
		}
		/* With per-thread streams such a variant is preferred to the plain one. */
		if (best && (best->needs & FK_PER_THREAD) && !per_thread)
			continue;
		if (!best || f->version > best->version ||
		    (per_thread && !(best->needs & FK_PER_THREAD)))
			best = f;
	}
	if (best)
		*ret_status = FOUND;
	return best;
}

FK_DEFINE(cuGetProcAddress, 12000, cuGetProcAddress_v2, FK_ANYTIME, const char *symbol,
	  void **ret_function, int version, uint64_t flags, int *ret_status)
{
	struct fk_function *function;
	int status;

	FK_ENTER(cuGetProcAddress_v2);
	if (!symbol || !ret_function || flags > (LEGACY_STREAM | PER_THREAD_STREAM))
		return FK_INVALID_VALUE;
	*ret_function = NULL;
	if (version > fk_option_number("VERSION", 13000)) {
		if (fk_option_is("NEWER", "invalid", "invalid"))
			return FK_INVALID_VALUE;
		if (ret_status)
			*ret_status = TOO_OLD_A_VERSION;
		return FK_OK;
	}
	function = find(symbol, version, flags, &status);
	if (function)
		*ret_function = function->pointer;
	if (ret_status)
		*ret_status = status;
	return FK_OK;
}

/* The variant of CUDA 11.3, which returns no status. */
FK_DEFINE(cuGetProcAddress, 11030, cuGetProcAddress, FK_ANYTIME, const char *symbol,
	  void **ret_function, int version, uint64_t flags)
{
	CUresult err;
	int status;

	FK_ENTER(cuGetProcAddress);
	err = cuGetProcAddress_v2(symbol, ret_function, version, flags, &status);
	return !err && status != FOUND ? FK_NOT_FOUND : err;
}
