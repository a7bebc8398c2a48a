/* SPDX-License-Identifier: MIT */
/*
 * The docstrings of the extension's functions and of the methods and attributes of Pool and
 * Subscription: purpose, units, exceptions and the owner of the result. The first lines of
 * functions and methods are signatures that inspect.signature() reads. doc_guard.h has the
 * docstrings of Guard.
 */
#ifndef XP_DOC_H
#define XP_DOC_H

/* ---- module ---- */

#define XP_DOC_host \
	"host()\n--\n\n" \
	"Get the host, as a HostInfo. This does not start a daemon.\n" \
	"Raises NotFound if no host is running."
#define XP_DOC_pools \
	"pools()\n--\n\n" \
	"Get the list of the host's pools, of PoolEntry; empty if no host is running."
#define XP_DOC_limits \
	"limits()\n--\n\n" \
	"Get the list of the host's limits and how much of each is in use, of LimitInfo; empty\n" \
	"if no host is running. A Limit error says which of them was reached."
#define XP_DOC_pool_open \
	"pool_open(cls, name, fd, flags, slots, clients, ring_entries, wait_bound, label,\n" \
	"          demand_bytes, cache_bytes, cache_time, memory, keep, mode, group,\n" \
	"          /)\n--\n\n" \
	"Open a pool as an instance of cls, a subclass of Pool: by its name, with None for an\n" \
	"anonymous pool, or by a descriptor, with -1 for none. flags: XMEM_OPEN_*; memory:\n" \
	"XMEM_MEMORY_*; times: seconds. The caller owns the pool. Raises Error, TypeError."
#define XP_DOC_narrow_fd \
	"narrow_fd(fd, roles, /)\n--\n\n" \
	"Make from a descriptor of a pool another descriptor for fewer roles, XMEM_MAY_*.\n" \
	"The caller closes it. Raises NotPermitted, Released (EBADF), NoDevice, Error (EINVAL)."
#define XP_DOC_image_bytes \
	"image_bytes($module, format, width, height, stride=0)\n--\n\n" \
	"Get the number of bytes that all planes of an image take, to acquire so many. The\n" \
	"arguments are those of describe_image. Raises Error: EINVAL if there is no such image."
#define XP_DOC_strings_plan \
	"strings_plan(rows, chars, validity, /)\n--\n\n" \
	"Get where the parts of a column lie, as a tuple for xmem.strings_plan.\n" \
	"Raises Error: EINVAL if a number is too large."
#define XP_DOC_lost_guard \
	"lost_guard(pool, errno, text, /)\n--\n\n" \
	"Make a guard that is gone from the start. Each use of it raises the error of errno.\n" \
	"pool: the pool of the message; None: it is not known. The caller owns the guard.\n" \
	"Raises TypeError."
#define XP_DOC_lost_pool \
	"lost_pool(cls, errno, text, /)\n--\n\n" \
	"Make a pool that is closed from the start. Each use of it raises the error of errno.\n" \
	"cls: a subclass of Pool. The caller owns the pool. Raises TypeError."
#define XP_DOC_lost \
	"(errno, text) of the error that each use raises if the message came too late; None: it\n" \
	"did not."
#define XP_DOC_set_types \
	"set_types(guard, subscription, /)\n--\n\n" \
	"Set the subclasses of Guard and Subscription of which calls make instances.\n" \
	"Raises TypeError."
#define XP_DOC_set_errors \
	"set_errors(classes, words, /)\n--\n\n" \
	"Set the class that is raised for each errno, by a dict; its key None is for all other\n" \
	"errnos. words: a function that puts a message of the library into Python's words.\n" \
	"Raises TypeError."
#define XP_DOC_cuda_query \
	"cuda_query()\n--\n\n" \
	"Find the driver and describe it, as a CudaInfo. Raises NoDevice, Forked."
#define XP_DOC_cuda_device_query \
	"cuda_device_query(device_id, /)\n--\n\n" \
	"Get information about a GPU, by its number in this process, as a CudaDeviceInfo.\n" \
	"Raises NoDevice, Forked."
#define XP_DOC_cuda_last_result \
	"cuda_last_result()\n--\n\n" \
	"Get (number, name) of this thread's last failed call of the driver; None: none has\n" \
	"failed. Raises nothing."
#define XP_DOC_clear_last_error \
	"clear_last_error()\n--\n\n" \
	"Forget this thread's last error and last failed call of the driver. Raises nothing."
#define XP_DOC_dlpack_look \
	"dlpack_look(capsule, /)\n--\n\n" \
	"Read a capsule of DLPack, which still belongs to the caller: (address, type of device,\n" \
	"device, number of the type, shape, strides). Strides are elements; None: dense.\n" \
	"Raises TypeError, BufferError."
#define XP_DOC_end_later \
	"end_later()\n--\n\n" \
	"The interpreter ends: make the noted calls, such as done() of attach_cuda, and no more\n" \
	"after that. Raises nothing."

/* ---- pool ---- */

#define XP_DOC_pool_stat \
	"stat($self)\n--\n\n" \
	"Get the state of the pool, as a PoolInfo. Files that other clients have let go are\n" \
	"given back. Raises Released, Forked."
#define XP_DOC_pool_client_info \
	"client_info($self, client, /)\n--\n\n" \
	"Get information about a client, as a ClientInfo.\n" \
	"Raises NotFound if there is none of that number, Released."
#define XP_DOC_pool_subscribers \
	"_subscribers($self)\n--\n\n" \
	"For subscribers()."
#define XP_DOC_pool_wait_for_subscribers \
	"_wait_for_subscribers($self, count=1, timeout=None)\n--\n\n" \
	"For wait_for_subscribers()."
#define XP_DOC_pool_subscribers_fileno \
	"subscribers_fileno($self)\n--\n\n" \
	"Get the descriptor that is readable while clients have begun or ceased to follow this\n" \
	"writer since the last look, by subscribers() or by wait_for_subscribers() with timeout\n" \
	"0. It belongs to the library: do not close it. Raises NotPermitted of a reader."
#define XP_DOC_pool_limits \
	"limits($self)\n--\n\n" \
	"Get the list of limits, of LimitInfo: those of the host, of this pool and of its\n" \
	"client."
#define XP_DOC_pool_slot_info \
	"slot_info($self, meta_index, /)\n--\n\n" \
	"Get information about a slot, as a SlotInfo; a token stands for its slot.\n" \
	"Raises Error (EINVAL), Released."
#define XP_DOC_pool_device_info \
	"device_info($self, device, /)\n--\n\n" \
	"Get what the pool has on a GPU, as a DeviceInfo. device: its number in the pool, from\n" \
	"1 on. Raises NotFound, Released."
#define XP_DOC_pool_holds \
	"holds($self, client, meta_index, /)\n--\n\n" \
	"Get the number of holds that a client has of a slot; a token stands for its slot.\n" \
	"Raises NotFound, Error (EINVAL), Released."

#define XP_DOC_pool_reopen \
	"reopen($self)\n--\n\n" \
	"Join this handle's pool again: in a forked child, after its host has ended, or as a\n" \
	"second client. Buffers and subscriptions do not come along.\n" \
	"Returns a Pool of the class of this one. Raises Error (EOPNOTSUPP) for an anonymous\n" \
	"pool that was opened without inherit, Released, and what opening raises."
#define XP_DOC_pool_close \
	"close($self)\n--\n\n" \
	"Drop the handle; buffers, views and subscriptions stay. Waits of other threads in the\n" \
	"pool raise Canceled. A second close does nothing.\n" \
	"Raises Error (EDEADLK) in a limbo hook of this pool."
#define XP_DOC_pool_preallocate \
	"_preallocate($self, size, count, flags, device_id=0)\n--\n\n" \
	"Make count buffers of size bytes each, and return the list of their slots. flags:\n" \
	"XMEM_MEMORY_*. With XMEM_MEMORY_CUDA the buffers are on the GPU device_id.\n" \
	"Raises NotPermitted of a reader, NoSpace, Limit, NoDevice, Error (ENOMEM, EFBIG,\n" \
	"EINVAL, EOPNOTSUPP, EMEDIUMTYPE), Released."
#define XP_DOC_pool_acquire \
	"_acquire($self, size=0, timeout=None)\n--\n\n" \
	"Acquire a buffer of size bytes to write into; 0: any buffer, all of it.\n" \
	"timeout: seconds; None: for ever, 0: not at all. The caller owns the Guard.\n" \
	"Raises WouldBlock, TimedOut, NoSpace, Canceled, NotPermitted of a reader, Released."
#define XP_DOC_pool_attach_fd \
	"attach_fd($self, fd, offset=0, length=0)\n--\n\n" \
	"Make a buffer of a sealed memfd or a dma-buf, without copying it.\n" \
	"fd still belongs to the caller. offset: bytes, a multiple of 64. length: bytes; 0: to\n" \
	"the end.\n" \
	"Raises Error (ENOEXEC names the missing seals, EMEDIUMTYPE, ERANGE, EINVAL),\n" \
	"NotPermitted, Released (EBADF: also if fd is not open), NoSpace, Limit, WouldBlock."
#define XP_DOC_pool_get \
	"get($self, meta_index, /)\n--\n\n" \
	"Get and hold, for reading, the contents that are in a slot now or that a token names.\n" \
	"A number below 65536 is a slot. If a reference to the contents was set aside, the new\n" \
	"guard takes it. Does not wait.\n" \
	"Raises Stale if there are no such contents, WouldBlock, Error (EINVAL: no such slot,\n" \
	"EOVERFLOW), NotPermitted: they are another user's, Released."
#define XP_DOC_pool_claims \
	"claims($self, meta_index, /)\n--\n\n" \
	"Get the number of references to the contents of a slot or token that are set aside.\n" \
	"Raises Stale if the contents are gone, Error (EINVAL: no such slot), Released."
#define XP_DOC_pool_add_ref \
	"add_ref($self, meta_index, /)\n--\n\n" \
	"Set one more reference to the contents of a slot or token aside, for at least 10\n" \
	"seconds. A get() of these contents takes it, or release() drops it.\n" \
	"Raises Stale, WouldBlock, NotPermitted, Error (ERANGE: there are 65535; EINVAL),\n" \
	"Released."
#define XP_DOC_pool_release \
	"release($self, meta_index, /)\n--\n\n" \
	"Drop one reference to the contents of a slot or token that add_ref(), set_ref_count()\n" \
	"or forget() has set aside. The reference that a guard holds is dropped by release() of\n" \
	"that guard.\n" \
	"Raises Stale, WouldBlock, NotPermitted, Error (ERANGE: there is none; EINVAL),\n" \
	"Released."
#define XP_DOC_pool_void_claims \
	"void_claims($self, meta_index, /)\n--\n\n" \
	"Drop all references to the contents of a slot or token that are set aside; holders\n" \
	"keep the buffer.\n" \
	"Raises NotFound if there are none, Stale, NotPermitted, Released."
#define XP_DOC_pool_numbered \
	"By slot a weak reference to the last guard whose number was read."
#define XP_DOC_pool_keep \
	"_keep($self)\n--\n\n" \
	"Let close() keep the handle for a parcel until _give_back() is called.\n" \
	"Raises Released, Forked."
#define XP_DOC_pool_give_back \
	"_give_back($self, token, /)\n--\n\n" \
	"A parcel no longer needs the handle. token: of the reference to give back; 0: none. In\n" \
	"a child of fork it is not given back, because it belongs to the parent. Raises\n" \
	"ValueError."
#define XP_DOC_pool_retract \
	"retract($self, meta_index, /)\n--\n\n" \
	"Take a publication back, so that no subscriber receives it any more.\n" \
	"Raises Error (EBUSY: a client holds it), Stale, NotPermitted, Released."
#define XP_DOC_pool_collect \
	"collect($self)\n--\n\n" \
	"Find buffers that no client uses any more, now. Returns the number of them that belong\n" \
	"to this writer.\n" \
	"Raises Released."
#define XP_DOC_pool_trim \
	"trim($self, keep=0)\n--\n\n" \
	"Give unused memory back to the system, except keep bytes of it.\n" \
	"Returns the number of bytes given back: 0 of a reader. Raises Released."
#define XP_DOC_pool_limbo_hook \
	"limbo_hook($self, call, *, nbytes=None, count=None)\n--\n\n" \
	"Set a function to call when more than nbytes bytes, or more than count buffers, are in\n" \
	"limbo: their owner has ended, or needs them back because it has found no buffer, and\n" \
	"other clients hold them.\n" \
	"call(limbo) runs in acquire, collect and trim of this handle, in the calling thread,\n" \
	"each time that a limit is exceeded anew; limbo is a Limbo. An exception of it goes to\n" \
	"sys.unraisablehook. It may not close this pool. None: call no function.\n" \
	"Raises TypeError, Released."
#define XP_DOC_pool_cancel \
	"cancel($self)\n--\n\n" \
	"End all waits in the handle and its subscriptions, now and for ever: they raise\n" \
	"Canceled. Raises Released."
#define XP_DOC_pool_fileno \
	"fileno($self)\n--\n\n" \
	"A descriptor to poll: readable when a subscription has a publication or has ended,\n" \
	"writable when something has changed since the last acquire that found no buffer. It\n" \
	"belongs to the library: do not close it.\n" \
	"Raises Limit, Error (EMFILE), Released."
#define XP_DOC_pool_fd \
	"fd($self)\n--\n\n" \
	"Make a descriptor with which a process can join the pool (BufferPool.from_fd).\n" \
	"The caller closes it. Raises Error (EMFILE), Released."
#define XP_DOC_pool_set_mode \
	"_set_mode($self, mode, gid, /)\n--\n\n" \
	"Change the right to join from now on; 0 and GID_SAME: no change.\n" \
	"Raises NotPermitted, Error (EINVAL, EOPNOTSUPP), Released."
#define XP_DOC_pool_evict \
	"_evict($self, client, incarnation, /)\n--\n\n" \
	"End another client.\n" \
	"Raises NotPermitted, Stale, Error (EINVAL, EOPNOTSUPP), Released."
#define XP_DOC_pool_grant \
	"_grant($self, client, incarnation, /)\n--\n\n" \
	"Let another client hold the buffers of this client.\n" \
	"Raises NotPermitted, Stale, Error (EINVAL), Released."
#define XP_DOC_pool_drain \
	"_drain($self, flags, /)\n--\n\n" \
	"Let no client join any more; flags: XMEM_DRAIN_*. Returns the number of clients that\n" \
	"this has ended.\n" \
	"Raises NotPermitted, Error (EOPNOTSUPP), Released."
#define XP_DOC_pool_subscribe \
	"_subscribe($self, flags=0, publisher=0, timeout=None, history=0, depth=0, label=None)\n" \
	"--\n\n" \
	"Follow publishers; flags: XMEM_SUBSCRIBE_*. timeout: seconds to wait for a publisher.\n" \
	"Raises NotFound, TimedOut, Exists, Stale, Canceled, Error (EOPNOTSUPP), Released."
#define XP_DOC_pool_receive \
	"receive($self, timeout=None)\n--\n\n" \
	"Receive the next publication of any subscription; subscriptions take turns.\n" \
	"timeout: seconds; None: for ever, 0: not at all. The caller owns the Guard.\n" \
	"Raises WouldBlock, TimedOut, NotFound if there is no subscription, Ended if a\n" \
	"subscription is over (close it), Canceled, Released."
#define XP_DOC_pool_copy_of \
	"_copy_of($self, guard, device_id, timeout, /)\n--\n\n" \
	"Copy contents and their description into a new Guard on a GPU, or with device_id -1 on\n" \
	"the CPU. The new guard is being written. Raises as _acquire, _cuda_acquire and\n" \
	"_copy_from."
#define XP_DOC_pool_cuda_acquire \
	"_cuda_acquire($self, size=0, device_id=0, timeout=None)\n--\n\n" \
	"Acquire a buffer of size bytes on a GPU to write into; 0: any buffer, all of it.\n" \
	"timeout: seconds; None: for ever, 0: not at all. The caller owns the Guard.\n" \
	"Raises as acquire, and NoDevice."
#define XP_DOC_pool_cuda_attach \
	"_cuda_attach($self, ptr, nbytes, flags=0, done=None, kept=None, stream=None)\n--\n\n" \
	"Make a buffer of nbytes at the device address ptr, without copying them.\n" \
	"flags: XMEM_MEMORY_READERS. When no process uses the memory any more, done() is called\n" \
	"and kept is released. stream: it has yet to write the contents; None: they are\n" \
	"complete.\n" \
	"Raises Error (EMEDIUMTYPE, ERANGE, EINVAL), NoDevice, NotPermitted, NoSpace, Released."
#define XP_DOC_pool_client \
	"The number of this client in the pool. Raises Released, Forked."
#define XP_DOC_pool_backend \
	"The host of the pool: \"kernel\" or \"daemon\". Raises Released, Forked."
#define XP_DOC_pool_closed \
	"Has the handle been dropped? Raises nothing."
#define XP_DOC_pool_forked \
	"Does it belong to the parent, and was it inherited by fork? Then only reopen() can be\n" \
	"called. Raises nothing."

/* ---- subscription ---- */

#define XP_DOC_subscription_receive \
	"receive($self, timeout=None)\n--\n\n" \
	"Receive the next publication and hold it, for reading.\n" \
	"timeout: seconds; None: for ever, 0: not at all. The caller owns the Guard.\n" \
	"Raises WouldBlock, TimedOut, Ended if the publishers have ended and everything is\n" \
	"received, Canceled, Released."
#define XP_DOC_subscription_close \
	"close($self)\n--\n\n" \
	"Stop following. Waits in the subscription raise Canceled; guards that were received\n" \
	"stay.\n" \
	"A second close does nothing."
#define XP_DOC_subscription_fileno \
	"fileno($self)\n--\n\n" \
	"A descriptor that is readable when receive(timeout=0) does not raise WouldBlock.\n" \
	"It belongs to the library: do not close it. Raises Limit, Error (EMFILE), Released."
#define XP_DOC_subscription_lost \
	"The number of publications that it has not received because it was slow. Publications\n" \
	"of a writer from before it was followed do not count: see subscribe(). Raises\n" \
	"Released."
#define XP_DOC_subscription_publisher \
	"The client that published what was received last, or that is followed. Raises\n" \
	"Released."
#define XP_DOC_subscription_pool \
	"The pool whose subscription this is. Raises nothing."
#define XP_DOC_subscription_closed \
	"Has it been closed? Raises nothing."

#endif
