// SPDX-License-Identifier: MIT
/* The public functions that get or clear the calling thread's last error. */
#include "lib/base/structs.h"
#include "lib/cuda/error.h"
#include "lib/private.h"

XMEM_API void xmem_clear_last_error(void)
{
	xl_error_clear();
}

static int answer(struct xmem_error *ret, bool forget)
{
	struct xmem_error now = { .error = xl_last_error(), .cuda_result = xl_cuda_result };

	if (ret) {
		if (xl_answer_check("xmem_error", ret))
			return -EINVAL;
		now.message = xl_last_message();
		now.cuda_name = xl_cuda_name(now.cuda_result);
		xl_answer_give(ret, &now, sizeof(now));
	}
	if (forget)
		xl_error_clear();
	return now.error;
}

XMEM_API int xmem_peek_last_error(struct xmem_error *ret_error)
{
	XL_CALL;

	return answer(ret_error, false);
}

XMEM_API int xmem_get_last_error(struct xmem_error *ret_error)
{
	XL_CALL;

	return answer(ret_error, true);
}
