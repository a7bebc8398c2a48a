// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kinds of payload. objects.h says what a kind does (struct xk_kind); each kind has its own
 * file. To add one: its file, its row here, and its place in Kbuild and in the table of xk.h.
 */
#include "xk.h"

/* No file has two kinds, so the order does not matter. */
static const struct xk_kind *const kinds[] = {
	&xk_kind_memfd,
	&xk_kind_hugetlb,
#ifdef CONFIG_DMA_SHARED_BUFFER
	&xk_kind_dmabuf,
#endif
	&xk_kind_cuda,
};

/*
 * Find the kind of an attach by its flag and by the caller's file. @offer: as for check; after an
 * error its file is still the caller's.
 */
const struct xk_kind *xk_kind_of(const struct xmem_attach_request *request,
				 struct xk_offer *offer)
{
	bool device = request->flags & XMEM_ATTACH_CUDA;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		int err;

		if (kinds[i]->device != device)
			continue;
		err = kinds[i]->check(request, offer);
		if (err != -EMEDIUMTYPE)
			return err ? ERR_PTR(err) : kinds[i];
	}
	return ERR_PTR(-EMEDIUMTYPE);
}
