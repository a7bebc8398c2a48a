// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests: copying the caller's struct in, finding the client, copying the answer out. The table
 * names the function of each request; that function is in the file of the request's object.
 * core/request.c has the structs, uapi.h the errors.
 */
#include <linux/file.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "xk.h"

/* ---- dispatch ---- */

/*
 * Each serves a request, or returns an errno and has changed nothing. If the caller makes its
 * struct unwritable meanwhile, the answer is lost, and the effect stays: it belongs to the client,
 * and goes with its file. Only a descriptor that the caller does not get is closed, and memory of
 * a GPU for which it gets none is not open.
 */
#define XK_OP(name, begin)							\
	[_IOC_NR(XMEM_IOC_##name)] = (begin)

/* Indexed by the number of the request; core/request.c describes its struct. */
static int (*const xk_ops[])(struct xk_call *call) = {
	XK_OP(JOIN, xk_join_begin),
	XK_OP(POOL_FD, xk_pool_fd_begin),
	XK_OP(ATTACH, xk_attach_begin),
	XK_OP(PAYLOAD, xk_payload_begin),
	XK_OP(SUBSCRIBE, xk_subscribe_begin),
	XK_OP(UNSUBSCRIBE, xk_unsubscribe_begin),
	XK_OP(WAIT, xk_wait_begin),
	XK_OP(SLOT, xk_slot_begin),
	XK_OP(QUERY, xk_query_begin),
	XK_OP(POOLS, xk_pools_begin),
	XK_OP(POLL_FD, xk_poll_fd_begin),
	XK_OP(CLAIM, xk_claim_begin),
	XK_OP(UPGRADE, xk_upgrade_begin),
	XK_OP(ACCESS, xk_access_begin),
	XK_OP(QUOTA, xk_quota_begin),
	XK_OP(CLIENT, xk_client_begin),
	XK_OP(EVICT, xk_evict_begin),
	XK_OP(GRANT, xk_grant_begin),
};

/* Copy the caller's struct, of the size that it gives, into ours, of the size that we know. */
static int xk_take_in(const struct xm_request_kind *kind, void __user *argument,
		      union xm_request *u, u32 *size)
{
	int err;

	memset(u, 0, kind->bytes);
	if (get_user(*size, (u32 __user *)argument))
		return -EFAULT;
	err = xm_request_size(kind, *size);
	if (err)
		return err;
	err = copy_struct_from_user(u, kind->bytes, argument, *size);
	if (err)
		return err;
	u->size = *size;	/* it may have changed meanwhile */
	err = xm_request_check(kind, u);
	if (err)
		return err;
	/* Find a fault now rather than when the request has had its effect. */
	if (xm_request_answers(kind, u) &&
	    copy_to_user(argument, u, min_t(u32, *size, kind->bytes)))
		return -EFAULT;
	return 0;
}

/* The place of the descriptor in the answer; every caller's struct is long enough (XMEM_*_MIN). */
static int __user *xk_fd_place(const struct xm_request_kind *kind, void __user *argument)
{
	switch (kind->request) {
	case XMEM_IOC_JOIN:
		return argument + offsetof(struct xmem_join_request, fd);
	case XMEM_IOC_POOL_FD:
		return argument + offsetof(struct xmem_pool_fd_request, fd);
	case XMEM_IOC_POLL_FD:
		return argument + offsetof(struct xmem_poll_fd_request, fd);
	}
	return argument + offsetof(struct xmem_payload_request, fd);
}

/*
 * Install a descriptor of the file that the caller gets, after its number has been written. A new
 * file belongs to the caller, as if it had opened it, so no security module is asked whether it may
 * receive it.
 */
static int xk_give_fd(struct xk_call *call, int __user *number)
{
	if (call->passed)
		return xk_receive_fd(call->give, number);
	if (call->fd < 0)
		call->fd = get_unused_fd_flags(O_CLOEXEC);
	if (call->fd < 0)
		return call->fd;
	if (put_user(call->fd, number))
		return -EFAULT;
	fd_install(call->fd, get_file(call->give));
	call->fd = -1;
	return 0;
}

/*
 * Copy as much of the answer as the caller knows. The descriptor comes last, because nothing can
 * take it back.
 */
static int xk_give_back(const struct xm_request_kind *kind, struct xk_call *call,
			void __user *argument, u32 size)
{
	if (xm_request_answers(kind, &call->u) &&
	    copy_to_user(argument, &call->u, min_t(u32, size, kind->bytes)))
		return -EFAULT;
	return call->give ? xk_give_fd(call, xk_fd_place(kind, argument)) : 0;
}

/* Serve one request. @call: the file, and its client. */
long xk_ioctl(struct xk_call *call, unsigned int cmd, void __user *argument)
{
	const struct xm_request_kind *kind = xm_request_find(cmd);
	u32 number, size;
	int err;

	if (!kind || _IOC_NR(cmd) >= ARRAY_SIZE(xk_ops))
		return -ENOTTY;
	number = array_index_nospec(_IOC_NR(cmd), ARRAY_SIZE(xk_ops));
	err = xk_take_in(kind, argument, &call->u, &size);
	if (err)
		return err;
	if (!kind->unjoined) {
		err = xk_client_check(call->client);
		if (err)
			return err;
	}
	call->fd = -1;
	err = xk_ops[number](call);
	if (!err) {
		err = xk_give_back(kind, call, argument, size);
		if (call->keep || call->opening)
			xk_payload_finish(call, err);
		if (call->give)
			fput(call->give);
	}
	if (call->fd >= 0)
		put_unused_fd(call->fd);
	return err;
}
