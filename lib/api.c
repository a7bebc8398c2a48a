// SPDX-License-Identifier: MIT
/*
 * The table of all public functions, for plug-ins and bindings that share this copy of the library.
 * "make api" makes its list, in order, from the headers.
 */
#include "lib/api_list.h"
#include "lib/private.h"

#define MEMBER(name)	.name = xmem_##name,

static const struct xmem_api api = {
	.abi_version = XMEM_API_VERSION,
	.struct_size = sizeof(struct xmem_api),
	XL_API(MEMBER)
};

/* Does the table have all members that a caller of version @asked knows, in their places? */
static bool serves(u32 asked)
{
	if (asked >> 16 != XMEM_VERSION_MAJOR)
		return false;
	return XMEM_VERSION_MAJOR ? asked <= XMEM_API_VERSION : asked == XMEM_API_VERSION;
}

XMEM_API const struct xmem_api *xmem_get_api(uint32_t version)
{
	if (serves(version))
		return &api;
	xl_fail(ENOTSUP, "get_api: the caller was compiled for the functions of libxmem "
			 "%u.%u, and this is libxmem " XMEM_VERSION "; compile it anew",
		version >> 16, version & 0xffff);
	return NULL;
}
