// SPDX-License-Identifier: MIT
/*
 * Functions that the fake driver does not have. Clients look many up and call few. So each name of
 * names.h is there, but returns "not supported" and reports that once. A file that defines such a
 * function takes its place, because the ones here are weak.
 */
#include <stdio.h>

#include "fake.h"
#include "lack.h"

void fk_lack(const char *what, const char *name)
{
	const char *path = fk_option("LACKS", NULL);
	FILE *file = path ? fopen(path, "ae") : stderr;

	if (!file)
		return;
	fprintf(file, "fakecuda: there is no %s %s\n", what, name);
	if (path)
		fclose(file);
}

static CUresult lack(struct fk_function *function)
{
	CUresult err = fk_enter(function);

	if (err)
		return err;
	if (atomic_load(&function->calls) == 1)
		fk_lack("function", function->name);
	return FK_NOT_SUPPORTED;
}

/* Only those are registered whose place is not taken. */
#define STUB(base_name, since, symbol, what_it_needs)					\
	static struct fk_function fk_of_##symbol;					\
	static CUresult stub_##symbol(void)						\
	{										\
		return lack(&fk_of_##symbol);						\
	}										\
	FK_API CUresult symbol(void) __attribute__((weak, alias("stub_" #symbol)));	\
	static struct fk_function fk_of_##symbol = {					\
		.name = #symbol, .base = #base_name, .version = since,			\
		.needs = what_it_needs, .pointer = (void *)stub_##symbol,		\
	};										\
	__attribute__((constructor)) static void register_##symbol(void)		\
	{										\
		if ((void *)symbol == (void *)stub_##symbol)				\
			fk_register(&fk_of_##symbol);					\
	}

#define NAME(base_name, since, symbol) STUB(base_name, since, symbol, FK_WORK)
#define OWN(base_name, since, symbol)						\
	STUB(base_name, since, symbol, FK_WORK | FK_PER_THREAD)

#include "names.h"
