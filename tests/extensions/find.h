/* SPDX-License-Identifier: MIT */
/* How an extension finds the table without help. All extensions share one loaded libxmem. */
#ifndef XMEM_EXTENSION_FIND_H
#define XMEM_EXTENSION_FIND_H

#include <dlfcn.h>
#include <string.h>

#include "extension.h"

static const struct xmem_api *find_table(const char *library)
{
	const struct xmem_api *(*get_api)(uint32_t version);
	void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL), *symbol;

	symbol = loaded ? dlsym(loaded, "xmem_get_api") : NULL;
	if (!symbol)
		return NULL;
	memcpy(&get_api, &symbol, sizeof(get_api));
	return get_api(XMEM_API_VERSION);
}

#endif
