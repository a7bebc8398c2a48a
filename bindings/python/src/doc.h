/* SPDX-License-Identifier: MIT */
/*
 * The docstrings of the extension's functions and of the methods and attributes of Pool and
 * Subscription: what each does, units, what is raised and whose the result is. The first lines of
 * functions and methods are signatures that inspect.signature() reads. Those of Guard are in
 * doc_guard.h.
 */
#ifndef XP_DOC_H
#define XP_DOC_H

/* ---- module ---- */

#define XP_DOC_host \
	"host()\n--\n\n" \
	"Get what the host is, as a HostInfo. A daemon is not started for this.\n" \
	"Raises NotFound if none is running."
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
	"          limbo_bytes, /)\n--\n\n" \
	"Open a pool, as a cls, which is a subclass of Pool: by its name, None for an\n" \
	"anonymous one, or by a descriptor, -1 for none. flags: XMEM_OPEN_*; memory:\n" \
	"XMEM_MEMORY_*; times: seconds. The caller owns it. Raises Error, TypeError."
#define XP_DOC_narrow_fd \
	"narrow_fd(fd, roles, /)\n--\n\n" \
	"Make from a descriptor of a pool another one for fewer roles, XMEM_MAY_*.\n" \
	"The caller closes it. Raises NotPermitted, Released (EBADF), NoDevice, Error (EINVAL)."
#define XP_DOC_image_bytes \
	"image_bytes($module, format, width, height, stride=0)\n--\n\n" \
	"Get how many bytes an image takes, all planes, to acquire so many. The arguments are\n" \
	"those of describe_image. Raises Error: EINVAL if there is no such image."
#define XP_DOC_lost_guard \
	"lost_guard(pool, errno, text, /)\n--\n\n" \
	"Make a guard that is gone from the start, of which each use raises that error.\n" \
	"pool: that of the message; None: it is not known. The caller owns it. Raises TypeError."
#define XP_DOC_lost_pool \
	"lost_pool(cls, errno, text, /)\n--\n\n" \
	"Make a pool that is closed from the start, of which each use raises that error.\n" \
	"cls: a subclass of Pool. The caller owns it. Raises TypeError."
#define XP_DOC_lost \
	"(errno, text) of what each use raises, if its message came too late; None: it did not."
#define XP_DOC_set_types \
	"set_types(guard, subscription, /)\n--\n\n" \
	"Say of which subclasses of Guard and Subscription calls make instances.\n" \
	"Raises TypeError."
#define XP_DOC_set_errors \
	"set_errors(classes, words, /)\n--\n\n" \
	"Say which class is raised for each errno, by a dict; None: for all others. words: a\n" \
	"function that says a message of the library in Python's words.\n" \
	"Raises TypeError."
#define XP_DOC_cuda_query \
	"cuda_query()\n--\n\n" \
	"Find the driver, and say what it is, as a CudaInfo. Raises NoDevice, Forked."
#define XP_DOC_cuda_device_query \
	"cuda_device_query(device_id, /)\n--\n\n" \
	"Get what is known of a GPU, by its number in this process, as a CudaDeviceInfo.\n" \
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
	"Look into a capsule of DLPack, which stays the caller's: (address, type of device,\n" \
	"device, number of the type, shape, strides). Strides are elements; None: dense.\n" \
	"Raises TypeError, BufferError."
#define XP_DOC_end_later \
	"end_later()\n--\n\n" \
	"The interpreter ends: run what is to be run by a thread that has the GIL, such as\n" \
	"done() of attach_cuda, and nothing more after that. Raises nothing."

/* ---- pool ---- */

#define XP_DOC_pool_stat \
	"stat($self)\n--\n\n" \
	"Get what is in the pool now, as a PoolInfo. Files that others have let go of are\n" \
	"given back. Raises Released, Forked."
#define XP_DOC_pool_client_info \
	"client_info($self, client, /)\n--\n\n" \
	"Get what is known of a client, as a ClientInfo.\n" \
	"Raises NotFound if there is none of that number, Released."
#define XP_DOC_pool_subscribers \
	"_subscribers($self)\n--\n\nWhat subscribers() is made of."
#define XP_DOC_pool_wait_for_subscribers \
	"_wait_for_subscribers($self, count=1, timeout=None)\n--\n\n" \
	"What wait_for_subscribers() is made of."
#define XP_DOC_pool_subscribers_fileno \
	"subscribers_fileno($self)\n--\n\n" \
	"Get the library's descriptor that is readable as long as clients have begun or ceased\n" \
	"to follow this writer since the last look, by subscribers() or with timeout 0 by\n" \
	"wait_for_subscribers(). Nobody else closes it. Raises NotPermitted of a reader."
#define XP_DOC_pool_limits \
	"limits($self)\n--\n\n" \
	"Get the list of limits, of LimitInfo: those of the host, of this pool and of its client."
#define XP_DOC_pool_slot_info \
	"slot_info($self, meta_index, /)\n--\n\n" \
	"Get what is known of a slot, as a SlotInfo; a token stands for its slot.\n" \
	"Raises Error (EINVAL), Released."
#define XP_DOC_pool_device_info \
	"device_info($self, device, /)\n--\n\n" \
	"Get what the pool has on a GPU, as a DeviceInfo. device: its number in the pool,\n" \
	"from 1 on. Raises NotFound, Released."
#define XP_DOC_pool_holds \
	"holds($self, client, meta_index, /)\n--\n\n" \
	"Get how many holds a client has of a slot; a token stands for its slot.\n" \
	"Raises NotFound, Error (EINVAL), Released."

#define XP_DOC_pool_reopen \
	"reopen($self)\n--\n\n" \
	"Join anew the pool that this handle stands for: in a forked child, after its\n" \
	"host has gone, or as a second client. Buffers and subscriptions do not come along.\n" \
	"Returns a Pool of the same class. Raises Error (EOPNOTSUPP) for an anonymous pool\n" \
	"that was opened without inherit, Released, and what opening raises."
#define XP_DOC_pool_close \
	"close($self)\n--\n\n" \
	"Drop the handle; buffers, views and subscriptions stay. What waits in it, in\n" \
	"other threads, raises Canceled. A second close does nothing.\n" \
	"Raises Error (EDEADLK) in a limbo hook of this pool."
#define XP_DOC_pool_preallocate \
	"_preallocate($self, size, count, flags, device_id=0)\n--\n\n" \
	"Make count buffers of size bytes each, and return the list of their slots. flags:\n" \
	"XMEM_MEMORY_*. With XMEM_MEMORY_CUDA they are on the GPU device_id, and cuda has\n" \
	"XMEM_CUDA_*.\n" \
	"Raises NotPermitted of a reader, NoSpace, Limit, NoDevice, Error (ENOMEM, EFBIG,\n" \
	"EINVAL, EOPNOTSUPP, EMEDIUMTYPE), Released."
#define XP_DOC_pool_acquire \
	"_acquire($self, size=0, timeout=None)\n--\n\n" \
	"Acquire a buffer of size bytes to write into; 0: any, the whole of it.\n" \
	"timeout: seconds; None: for ever, 0: not at all. The caller owns the Guard.\n" \
	"Raises WouldBlock, TimedOut, NoSpace, Canceled, NotPermitted of a reader, Released."
#define XP_DOC_pool_attach_fd \
	"attach_fd($self, fd, offset=0, length=0)\n--\n\n" \
	"Make a buffer of a sealed memfd or a dma-buf, without copying it.\n" \
	"fd stays the caller's. offset: bytes, a multiple of 64. length: bytes; 0: to the end.\n" \
	"Raises Error (ENOEXEC names the seals that lack, EMEDIUMTYPE, ERANGE, EINVAL),\n" \
	"NotPermitted, Released (EBADF: also if fd is not open), NoSpace, Limit, WouldBlock."
#define XP_DOC_pool_get \
	"get($self, meta_index, /)\n--\n\n" \
	"Get the contents that are in a slot now, or that a token names, and hold them, for\n" \
	"reading. A number below 65536 is a slot's. If a reference to the contents was set\n" \
	"aside, the new guard takes it. Does not wait.\n" \
	"Raises Stale if there are no such contents, WouldBlock, Error (EINVAL: no such slot,\n" \
	"EOVERFLOW), NotPermitted: they are another user's, Released."
#define XP_DOC_pool_claims \
	"claims($self, meta_index, /)\n--\n\n" \
	"Get how many references to the contents of a slot or token are set aside. The\n" \
	"reference of a guard that set_ref_count() has counted in is one of them.\n" \
	"Raises Stale if they are gone, Error (EINVAL: no such slot), Released."
#define XP_DOC_pool_add_ref \
	"add_ref($self, meta_index, /)\n--\n\n" \
	"Set one more reference to the contents of a slot or token aside, for 10 seconds at\n" \
	"least. A get() of these contents takes it, or release() drops it.\n" \
	"Raises Stale, WouldBlock, NotPermitted, Error (ERANGE: there are 65535; EINVAL),\n" \
	"Released."
#define XP_DOC_pool_release \
	"release($self, meta_index, /)\n--\n\n" \
	"Drop one reference to the contents of a slot or token that add_ref(),\n" \
	"set_ref_count() or forget() has set aside. The reference that a guard holds is\n" \
	"dropped by release() of that guard.\n" \
	"Raises Stale, WouldBlock, NotPermitted, Error (ERANGE: there is none; EINVAL), Released."
#define XP_DOC_pool_void_claims \
	"void_claims($self, meta_index, /)\n--\n\n" \
	"Drop all references that are set aside; holders keep the buffer.\n" \
	"Raises NotFound if there are none, Stale, NotPermitted, Released."
#define XP_DOC_pool_numbered \
	"By slot a weak reference to the guard that was asked last for its number."
#define XP_DOC_pool_keep \
	"_keep($self)\n--\n\n" \
	"Let close() keep the handle for a parcel until _give_back() is called.\n" \
	"Raises Released, Forked."
#define XP_DOC_pool_give_back \
	"_give_back($self, token, /)\n--\n\n" \
	"A parcel needs the handle no more. token: of the reference that is given back; 0:\n" \
	"there is none. In a child of fork, whose parent has it, it is not. Raises ValueError."
#define XP_DOC_pool_retract \
	"retract($self, meta_index, /)\n--\n\n" \
	"Take a publication back, so that nobody receives it any more.\n" \
	"Raises Error (EBUSY: somebody has it), Stale, NotPermitted, Released."
#define XP_DOC_pool_collect \
	"collect($self)\n--\n\n" \
	"Find buffers that nobody uses any more, now. Returns how many of this writer.\n" \
	"Raises Released."
#define XP_DOC_pool_trim \
	"trim($self, keep=0)\n--\n\n" \
	"Give unused memory back to the system, but for keep bytes of it.\n" \
	"Returns how many bytes went: of a reader none. Raises Released."
#define XP_DOC_pool_limbo_hook \
	"limbo_hook($self, call, *, nbytes=None, count=None)\n--\n\n" \
	"Be told when more than nbytes, or more than count buffers, are in limbo:\n" \
	"held though their owner has ended, or has found no buffer.\n" \
	"call(limbo) runs in acquire, collect and trim of this handle, in their thread,\n" \
	"each time that it becomes too much; limbo is a Limbo. What it raises goes to\n" \
	"sys.unraisablehook. It may not close this pool. None: nothing is called any more.\n" \
	"Raises TypeError, Released."
#define XP_DOC_pool_cancel \
	"cancel($self)\n--\n\n" \
	"End all waiting in the handle and its subscriptions, now and for ever: what\n" \
	"waits raises Canceled. Raises Released."
#define XP_DOC_pool_fileno \
	"fileno($self)\n--\n\n" \
	"A descriptor to poll: readable when a subscription has something or has ended,\n" \
	"writable when acquire(timeout=0) finds a buffer. It is the library's: do not close it.\n" \
	"Raises Limit, Error (EMFILE), Released."
#define XP_DOC_pool_fd \
	"fd($self)\n--\n\n" \
	"Make a descriptor with which a process can join the pool (BufferPool.from_fd).\n" \
	"The caller closes it. Raises Error (EMFILE), Released."
#define XP_DOC_pool_set_mode \
	"_set_mode($self, mode, gid, /)\n--\n\n" \
	"Change who may join from now on; 0 and GID_SAME: as it is.\n" \
	"Raises NotPermitted, Error (EINVAL, EOPNOTSUPP), Released."
#define XP_DOC_pool_evict \
	"_evict($self, client, incarnation, /)\n--\n\n" \
	"End another client.\n" \
	"Raises NotPermitted, Stale, Error (EINVAL, EOPNOTSUPP), Released."
#define XP_DOC_pool_grant \
	"_grant($self, client, incarnation, /)\n--\n\n" \
	"Let another client hold this one's buffers.\n" \
	"Raises NotPermitted, Stale, Error (EINVAL), Released."
#define XP_DOC_pool_drain \
	"_drain($self, flags, /)\n--\n\n" \
	"Let nobody join any more; flags: XMEM_DRAIN_*. How many clients that has ended.\n" \
	"Raises NotPermitted, Error (EOPNOTSUPP), Released."
#define XP_DOC_pool_subscribe \
	"_subscribe($self, flags=0, publisher=0, timeout=None, history=0, depth=0, label=None)\n" \
	"--\n\n" \
	"Follow publishers; flags: XMEM_SUBSCRIBE_*. timeout: seconds until one is there.\n" \
	"Raises NotFound, TimedOut, Exists, Stale, Canceled, Error (EOPNOTSUPP), Released."
#define XP_DOC_pool_receive \
	"receive($self, timeout=None)\n--\n\n" \
	"Receive the next publication of any subscription; they take turns.\n" \
	"timeout: seconds; None: for ever, 0: not at all. The caller owns the Guard.\n" \
	"Raises WouldBlock, TimedOut, NotFound if there is no subscription, Ended if one is\n" \
	"over (close it), Canceled, Released."
#define XP_DOC_pool_copy_of \
	"_copy_of($self, guard, device_id, timeout, /)\n--\n\n" \
	"Copy contents and their description into a new Guard on a GPU, or by -1 on the CPU,\n" \
	"which is being written. Raises as _acquire and _cuda_acquire, and as _copy_from."
#define XP_DOC_pool_cuda_acquire \
	"_cuda_acquire($self, size=0, device_id=0, timeout=None)\n--\n\n" \
	"Acquire a buffer of size bytes on a GPU to write into; 0: any, the whole of it.\n" \
	"timeout: seconds; None: for ever, 0: not at all. The caller owns the Guard.\n" \
	"Raises as acquire, and NoDevice."
#define XP_DOC_pool_cuda_attach \
	"_cuda_attach($self, ptr, nbytes, flags=0, done=None, kept=None, stream=None)\n--\n\n" \
	"Make a buffer of nbytes at the device address ptr, without copying them.\n" \
	"flags: XMEM_MEMORY_READERS. done() is called, and kept let go, when it is all over.\n" \
	"stream: what has yet to write them; None: nothing.\n" \
	"Raises Error (EMEDIUMTYPE, ERANGE, EINVAL), NoDevice, NotPermitted, NoSpace, Released."
#define XP_DOC_pool_client \
	"The number of this client in the pool. Raises Released, Forked."
#define XP_DOC_pool_backend \
	"What hosts the pool: \"kernel\" or \"daemon\". Raises Released, Forked."
#define XP_DOC_pool_closed \
	"Has the handle been dropped? Raises nothing."
#define XP_DOC_pool_forked \
	"Is it the parent's, and inherited by fork? Then reopen() is what is left. Raises nothing."

/* ---- subscription ---- */

#define XP_DOC_subscription_receive \
	"receive($self, timeout=None)\n--\n\n" \
	"Receive the next publication: hold it, for reading.\n" \
	"timeout: seconds; None: for ever, 0: not at all. The caller owns the Guard.\n" \
	"Raises WouldBlock, TimedOut, Ended if the publishers have ended and all is received,\n" \
	"Canceled, Released."
#define XP_DOC_subscription_close \
	"close($self)\n--\n\n" \
	"Follow no longer. What waits in it raises Canceled; what was received stays.\n" \
	"A second close does nothing."
#define XP_DOC_subscription_fileno \
	"fileno($self)\n--\n\n" \
	"A descriptor that is readable when receive(timeout=0) does not raise WouldBlock.\n" \
	"It is the library's: do not close it. Raises Limit, Error (EMFILE), Released."
#define XP_DOC_subscription_lost \
	"How many publications it has not received, because it was slow. Those of a writer\n" \
	"from before it was followed do not count: subscribe() says more. Raises Released."
#define XP_DOC_subscription_publisher \
	"The client that published what was received last, or that is followed. Raises Released."
#define XP_DOC_subscription_pool \
	"The pool that it was made of. Raises nothing."
#define XP_DOC_subscription_closed \
	"Has it been closed? Raises nothing."

#endif
