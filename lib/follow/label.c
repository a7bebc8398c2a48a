// SPDX-License-Identifier: MIT
/*
 * Labels as topics: which publishers a subscription wants. core/label.h compares labels;
 * hold/publisher.c remembers those of publishers.
 */
#include <string.h>

#include "lib/base/handle.h"
#include "lib/follow/subscription.h"

int xl_label_take(const char *wanted, struct xm_label *ret)
{
	size_t length = wanted ? strlen(wanted) : 0, i;

	*ret = (struct xm_label){ .words = { 0, 0 } };
	if (!wanted)
		return 0;
	if (!length)
		return xl_fail(EINVAL, "xmem_subscribe_options: label is empty; NULL stands for "
				       "all publishers");
	if (length >= XMEM_LABEL_BYTES)
		return xl_fail(EINVAL, "xmem_subscribe_options: label '%.40s' has more than 15 "
				       "characters%s", wanted, wanted[length - 1] == '*' ?
				       ", the star included" : "");
	for (i = 0; i < length; i++)
		if (wanted[i] < ' ' || wanted[i] > '~')
			return xl_fail(EINVAL, "xmem_subscribe_options: label has a character that "
					       "is not printable ASCII, at %zu", i);
	memcpy(ret->bytes, wanted, length);
	return 0;
}

/*
 * The incarnation is read before the label, and the request to follow the writer names it. If the
 * id has another client by then, the host refuses.
 */
u64 xl_wanted_writer(const struct xmem_subscription *subscription, u32 client)
{
	const struct xmem_pool *pool = subscription->pool;
	struct xm_label label;
	u64 incarnation;

	if (!xl_is_unfollowed_writer(pool, client))
		return 0;
	incarnation = xm_load_acquire(&xm_client_row(&pool->map, client)->incarnation);
	label = xm_label_of(&pool->map, client);
	return xm_label_fits(&subscription->label, &label) ? incarnation : 0;
}

