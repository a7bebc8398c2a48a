(* SPDX-License-Identifier: MIT *)
(** The C API, function by function, on managed handles. A function that fails raises
    [Error.Error]. Times are in nanoseconds.

    Made by bindings/generate.py from the public headers. *)

val limbo :
  (Xmem_descriptions.Descriptions.xmem_limbo, [ `Struct ]) Ctypes.structured -> Answers.Limbo.t
(** The argument of the function that [Pool.limbo_hook] sets. *)

val clear_last_error : unit -> unit
(** Forget the calling thread's last error and the driver's result.

    The page xmem_clear_last_error(3) of the manual says more. Since 0.1. *)

val pool_open : ?flags:int -> ?slots:int -> ?clients:int -> ?ring_entries:int ->
  ?wait_bound_ns:int64 -> ?label:string -> ?demand_bytes:int64 -> ?cache_bytes:int ->
  ?cache_ns:int64 -> ?memory:int -> ?keep:int -> ?mode:int -> ?gid:int -> ?fd:int -> string option
  -> Managed.pool
(** Join a pool, or make it if there is none of that name.

    A client joins as a reader. Its first call for writers, such as xmem_acquire, makes it a
    writer, or fails with EACCES if it may not write.
    - name: up to 128 characters A-Z a-z 0-9 . _ - in parts that '/' divides; 'USER:NAME': a pool
    of another user; '\@17': the pool that xmem_pool_next lists with that number; NULL or '': an
    anonymous pool, or that of XMEM_OPEN_FD.

    Errors:
    - EINVAL: a name, number, label or flag is wrong, or for writers only; the message says which
    - EBADF: `fd` is not a pool's descriptor
    - ENOENT: XMEM_OPEN_EXISTING or USER:NAME, and there is no such pool for this user
    - EEXIST: XMEM_OPEN_EXCLUSIVE, and the pool exists
    - ERANGE: the pool exists, and is smaller or admits more users than the options say
    - EPERM: `gid` is no group of this user; or the folder of xmemd's socket is not this user's
    - EACCES: this user may not write in the pool, or not open /dev/xmem or xmemd's socket
    - EOPNOTSUPP: another user's pool, or a mode or group for other users, and xmemd is the host
    - EUSERS: the pool has as many clients as it can have
    - ESHUTDOWN: the pool is drained (xmem_pool_drain): no client joins it any more
    - ENODEV: there is no host, or its daemon does not start; the message says why
    - ENAMETOOLONG: XMEM_SOCKET (docs/environment.md) is too long for an address
    - EPROTONOSUPPORT: the host speaks another version of the protocol

    In C: the caller calls xmem_pool_close

    The page xmem_pool_open(3) of the manual says more. Since 0.1. *)

val cancel : Managed.pool -> unit
(** End all waiting in a pool handle and its subscriptions, now and for ever.

    Waiting calls, and later calls whose timeout is not 0, fail with ECANCELED even if a buffer is
    available.

    Errors:

    The page xmem_cancel(3) of the manual says more. Since 0.3. *)

val pool_poll_fd : Managed.pool -> int
(** Get the descriptor of a pool for poll, select and epoll.

    It is level-triggered:

            readable        a subscription has something to receive, or has ended

            writable        xmem_acquire may find a buffer: something has changed since it last
    failed

            hung up         the host or this client has ended: close the pool and open it again

    It can be ready for no reason: use timeout 0, and return to the loop after EAGAIN.

    Errors:
    - ETIMEDOUT: the daemon does not answer

    In C: the library's, valid until the handles that keep the pool alive are dropped; the program
    neither reads, writes nor closes it

    The page xmem_pool_poll_fd(3) of the manual says more. Since 0.3. *)

val pool_reopen : Managed.pool -> Managed.pool
(** Join the pool of a handle anew: in a child that inherited the handle by fork, after the host
    has gone, or as a second client.

    The name, user and options are those of the handle, without XMEM_OPEN_EXCLUSIVE. The handle
    itself does not change.

    Errors:
    - EOPNOTSUPP: also: the pool has no name, and was opened without XMEM_OPEN_INHERIT
    - EBADF: the handle is closed, or the pool of its descriptor has ended

    In C: the caller calls xmem_pool_close

    The page xmem_pool_reopen(3) of the manual says more. Since 0.4. *)

val pool_fd : Managed.pool -> int
(** Make a descriptor with which a process of any user can join this pool (XMEM_OPEN_FD), in the
    roles that this client has a right to.

    It cannot be revoked.

    Errors:
    - EACCES: this client joined another user's pool by name, and the mode no longer admits it

    In C: the caller closes it

    The page xmem_pool_fd(3) of the manual says more. Since 0.2. *)

val pool_fd_narrow : int -> int -> int
(** Make a descriptor like \@fd that gives only \@roles (XMEM_MAY_* ).
    \@fd is from xmem_pool_fd or from this function; it stays the caller's, and does not change.

    Errors:
    - EACCES: \@fd lacks one of these roles
    - EBADF: it is not a pool's descriptor
    - ESHUTDOWN: the pool is drained or has ended (kernel)
    - ENODEV: there is no host

    In C: the caller closes it

    The page xmem_pool_fd_narrow(3) of the manual says more. Since 0.5. *)

val pool_backend : Managed.pool -> string
(** Get the name of the host: 'kernel' or 'daemon'.

    In C: valid as long as the pool

    The page xmem_pool_backend(3) of the manual says more. Since 0.1. *)

val pool_client : Managed.pool -> int
(** Get the id of this client in the pool.

    Errors:

    The page xmem_pool_client(3) of the manual says more. Since 0.1. *)

val subscribe : ?flags:int -> ?publisher:int -> ?timeout_ns:int64 -> ?history:int -> ?depth:int ->
  ?label:string -> Managed.pool -> Managed.subscription
(** Follow the publishers of a pool, each from its next publication on: one client with
    XMEM_SUBSCRIBE_PUBLISHER, and otherwise all other writers with a fitting label, including
    those that join later.

    A pool handle can have one subscription to all writers.

    Errors:
    - EINVAL: a field or flag is out of its range
    - ENOENT: there is no publisher, or `publisher` is a reader
    - ETIMEDOUT: none came in time, or the host did not answer
    - EEXIST: this client follows that publisher already, or this handle follows all writers
    - EOPNOTSUPP: XMEM_SUBSCRIBE_WAITS, and wait_bound_ns of the publishers is 0
    - ESTALE: the publisher ended during this call
    - EMFILE: a file cannot be mapped

    In C: the caller calls xmem_unsubscribe

    The page xmem_subscribe(3) of the manual says more. Since 0.1. *)

val receive : Managed.subscription -> timeout:int64 -> Managed.buffer
(** Receive the next publication and hold it for reading.

    Each publisher's publications come in order, and publishers take turns.

    Errors:
    - EAGAIN: there is none yet, and the timeout is 0
    - ETIMEDOUT: none came in time
    - EPIPE: all followed publishers have ended, and the subscription is over: subscribe again
    - ECANCELED: also: xmem_unsubscribe, while this call waits
    - EMFILE, EIO: the contents cannot be mapped; the publication is still the next one

    In C: the caller calls xmem_release

    The page xmem_receive(3) of the manual says more. Since 0.1. *)

val subscription_poll_fd : Managed.subscription -> int
(** Get the descriptor of one subscription.

    It is readable and hung up as a pool's is.

    In C: the library's, valid until xmem_unsubscribe

    The page xmem_subscription_poll_fd(3) of the manual says more. Since 0.3. *)

val subscription_stat : Managed.subscription -> Answers.Subscription_info.t
(** Get the state of a subscription.

    Errors:

    The page xmem_subscription_stat(3) of the manual says more. Since 0.5. *)

val data : Managed.buffer -> nativeint
(** Get the contents, xmem_size() bytes, which do not change while the buffer is held.

    Errors:
    - EMEDIUMTYPE: they are on a GPU: xmem_cuda_ptr
    - EIO: the publisher gave a wrong offset, or they cannot be mapped

    In C: valid until the handle of the buffer is dropped

    The page xmem_data(3) of the manual says more. Since 0.1. *)

val size : Managed.buffer -> int
(** Get the number of bytes of contents.

    The page xmem_size(3) of the manual says more. Since 0.1. *)

val token : Managed.buffer -> int64
(** Get the token of a buffer.

    The page xmem_token(3) of the manual says more. Since 0.1. *)

val get : Managed.pool -> int64 -> Managed.buffer
(** Get the buffer that a token names, and hold it for reading.

    If the buffer has claims (claims.h), the call takes one.

    Errors:
    - ESTALE: those contents are gone, or the token is of another pool
    - EINVAL: there is no such slot
    - EAGAIN: its owner is checking if it is used, so retry
    - EACCES: the owner is another user's client, and has not let this one in (xmem_pool_grant)

    In C: the caller calls xmem_release

    The page xmem_get(3) of the manual says more. Since 0.1. *)

val clone : Managed.buffer -> Managed.buffer
(** Make another handle of a buffer, for reading.

    Errors:
    - EPERM: the buffer is being written

    In C: the caller calls xmem_release

    The page xmem_clone(3) of the manual says more. Since 0.1. *)

val slot : Managed.buffer -> int
(** Get the number of a buffer's slot, the lower 16 bits of its token, even before it has a token.

    Errors:

    The page xmem_slot(3) of the manual says more. Since 0.5. *)

val capacity : Managed.buffer -> int
(** Get the number of bytes of the whole buffer.

    The page xmem_capacity(3) of the manual says more. Since 0.2. *)

val buffer_stat : Managed.buffer -> Answers.Buffer_info.t
(** Get the properties of a buffer that is held or being written.

    The call does not ask the host, and maps nothing.

    Errors:

    The page xmem_buffer_stat(3) of the manual says more. Since 0.5. *)

val acquire : Managed.pool -> int -> timeout:int64 -> Managed.buffer
(** Acquire a buffer to write into: the smallest free one that is large enough, or a new one
    (demand_bytes of struct xmem_pool_options), or that of the oldest publication that no client
    holds.

    Subscribers that have yet to receive that publication lose it. For those with
    XMEM_SUBSCRIBE_WAITS the writer waits first, up to wait_bound_ns.
    - bytes: bytes that the contents will have; 0: any buffer will do, and all of it is contents.

    Errors:
    - EAGAIN: none is free, and the timeout is 0; or all slots of the pool are in use
    - ETIMEDOUT: none became free in time; the message names the clients that hold them
    - ENOSPC: none is that large, and none may be made; or this writer cannot get a slot
    - ENOMEM, EDQUOT, EFBIG, EMFILE: none that large can be made: as xmem_preallocate

    In C: ends in xmem_publish or xmem_release

    The page xmem_acquire(3) of the manual says more. Since 0.1. *)

val data_mut : Managed.buffer -> nativeint
(** Get the memory of a buffer that is being written, xmem_capacity() bytes, which still has
    earlier contents.

    Errors:
    - EPERM: the buffer is held for reading, or its memory was attached
    - EMEDIUMTYPE: it is on a GPU: xmem_cuda_ptr_mut

    In C: valid until the buffer is published or released

    The page xmem_data_mut(3) of the manual says more. Since 0.1. *)

val retract : Managed.pool -> int64 -> unit
(** Take a publication of this client back: no subscriber receives it any more, and none counts it
    as lost.

    A buffer that this client owns must have no handle in any client and no claim, and no
    subscriber may have yet to receive it from a client that forwarded it.
    - token: the token from xmem_publish, or XMEM_SLOT.

    Errors:
    - EBUSY: a client has it
    - ESTALE: it is gone already, or the token belongs to another pool
    - EINVAL: there is no such slot
    - EPERM: also: it is another client's

    The page xmem_retract(3) of the manual says more. Since 0.4. *)

val preallocate : ?flags:int -> ?device_id:int -> Managed.pool -> int -> int -> unit
(** Make \@count buffers of \@bytes bytes: allocate all of their memory now, and attach them to
    the pool.

    After that, xmem_acquire (or xmem_acquire_cuda on that GPU) makes no buffers on demand if
    demand_bytes of struct xmem_pool_options is 0. Every writer can write contents in place once
    it alone holds them (xmem_get_mut), unless the memory is XMEM_MEMORY_SEALED.

    Errors:
    - EINVAL: a number is 0 or too large, or a flag does not fit the others
    - ENOSPC: the pool has too few free slots for so many buffers of this writer
    - EDQUOT: also: the pool has memory of 16 other GPUs
    - EFBIG: a buffer is larger than the files that this process may make (RLIMIT_FSIZE)
    - ENOMEM: a cgroup, the machine or the GPU has too little memory left; the message names it
    - ENODEV, EOPNOTSUPP, ECHILD, EIO: with XMEM_MEMORY_CUDA: as all functions of cuda.h
    - EMEDIUMTYPE: the host does not take descriptors of this driver

    The page xmem_preallocate(3) of the manual says more. Since 0.1. *)

val collect : Managed.pool -> int -> int * int
(** Find buffers that are no longer used, and give memory back to the system, now.
    - pool: NULL: each open pool of this process. Preallocated buffers go only with a pool.
    - keep: bytes of unused files that may stay, the most recently used first; XMEM_KEEP_ALL: all.
    - ret_bytes: how many bytes have been given back; or NULL.

    Errors:
    - EINTR: a signal handler ran while another thread made buffers (not with XMEM_KEEP_ALL)

    The page xmem_collect(3) of the manual says more. Since 0.4. *)

val pool_set_mode : Managed.pool -> int -> int -> unit
(** Change who may join a pool from now on.

    Clients that have joined stay.
    - mode: as in struct xmem_pool_options; 0: unchanged.
    - gid: the pool's group, one of this user's; XMEM_GID_SAME: unchanged.

    Errors:
    - EPERM: the pool is another user's, or this user is not in that group
    - EOPNOTSUPP: xmemd is the host
    - EINVAL: there is no such mode

    The page xmem_pool_set_mode(3) of the manual says more. Since 0.5. *)

val pool_evict : Managed.pool -> int -> int64 -> unit
(** End the client with this id and incarnation (xmem_pool_client_info), even one that hangs, as
    if its process had been killed.

    The process gets no signal. Its calls in this pool fail with ENOTCONN and say why.

    Errors:
    - EPERM: the pool is another user's
    - ESTALE: that client has ended
    - EINVAL: it is this client, or there is no such number
    - EOPNOTSUPP: xmemd is the host

    The page xmem_pool_evict(3) of the manual says more. Since 0.5. *)

val pool_drain : Managed.pool -> int -> int
(** From now on no client can join the pool (ESHUTDOWN).

    Clients that have joined stay.
    - flags: XMEM_DRAIN_EVICTS, or 0.

    Errors:

    The page xmem_pool_drain(3) of the manual says more. Since 0.5. *)

val pool_grant : Managed.pool -> int -> int64 -> unit
(** Let the client with this id and incarnation (xmem_pool_client_info) hold this client's
    buffers, although it is another user's and does not subscribe to this one.

    This lasts until either ends.

    Errors:
    - ESTALE: that client has ended
    - EINVAL: there is no such number

    The page xmem_pool_grant(3) of the manual says more. Since 0.5. *)

val set_ref_count : Managed.buffer -> int -> timeout:int64 -> unit
(** Set how many references a buffer has.

    One is this handle's, which xmem_release drops, and which xmem_forget leaves to the next
    client. The others become claims, for clients that will take them.
    - buffer: held for reading; or being written and complete, and then held from this call on.
    - count: this handle's reference and all claims, earlier ones too, together: 1 to 65535.
    - timeout_ns: the least time that all claims of the buffer last; they end at most a second
    later. 0: 10 seconds; XMEM_FOREVER: as long as the owner lives. Only the owner may set more
    than 60 seconds. A further call can only extend the time.

    Errors:
    - ERANGE: a wrong count
    - EPERM: only the owner may set this timeout

    The page xmem_set_ref_count(3) of the manual says more. Since 0.4. *)

val offer : Managed.buffer -> int -> timeout:int64 -> unit
(** Make \@more claims of a held buffer, at least 1, beside those that it has.
    \@timeout_ns is as in xmem_set_ref_count.

    Errors:
    - ERANGE: \@more is 0, or there would be more than 65535
    - EPERM: the buffer is being written, or is another client's and the timeout is too long

    The page xmem_offer(3) of the manual says more. Since 0.4. *)

val forget : Managed.buffer -> unit
(** Drop the handle of a buffer and leave its reference to the next client that gets the buffer.

    The reference becomes a claim, which lasts for the timeout of xmem_set_ref_count, or without
    that for 10 seconds. Send the token after this call (xmem_claims(7)).

    Errors:
    - EPERM: the buffer is being written
    - ERANGE: there are 65535 claims

    The page xmem_forget(3) of the manual says more. Since 0.4. *)

val add_ref : Managed.pool -> int64 -> unit
(** Make one more claim of contents that are held or have claims.

    It lasts at least 10 seconds.

    Errors:
    - ERANGE: there are 65535
    - ESTALE, EINVAL, EAGAIN, EACCES: as xmem_get

    The page xmem_add_ref(3) of the manual says more. Since 0.4. *)

val drop_ref : Managed.pool -> int64 -> unit
(** Drop one claim, for a consumer that does not want the buffer.

    Errors:
    - ERANGE: there is no claim
    - ESTALE, EINVAL, EAGAIN, EOVERFLOW: as xmem_get

    The page xmem_drop_ref(3) of the manual says more. Since 0.4. *)

val claims : Managed.pool -> int64 -> int
(** Count the claims of contents.

    Other clients can change the number at any time.

    Errors:
    - ESTALE, EINVAL, EBADF, ECHILD, ENOTCONN: as xmem_add_ref

    The page xmem_claims(3) of the manual says more. Since 0.5. *)

val void_claims : Managed.pool -> int64 -> unit
(** End all claims of a buffer before their time.

    Clients that hold the buffer keep it.

    Errors:
    - ENOENT: the buffer has no claims
    - EPERM: the claims are other clients'
    - ESTALE, EINVAL: as xmem_get
    - EINTR: the claims may end even so

    The page xmem_void_claims(3) of the manual says more. Since 0.4. *)

val copy : Managed.buffer -> Managed.buffer -> stream:nativeint -> unit
(** Copy the contents and the metadata of one buffer to another one, which may be of another pool.

    Then the contents of \@to begin at xmem_data_mut and are as long as those of \@from.

    Errors:
    - ERANGE: the contents are longer than xmem_capacity() of \@to
    - EPERM: \@to is not being written or is of attached memory, or a graph captures the stream
    - EINVAL: also: both are one handle
    - EIO, ENOMEM, EMFILE, ENOTCONN, EINTR: as xmem_data

    The page xmem_copy(3) of the manual says more. Since 0.4. *)

val copy_range : Managed.buffer -> int -> Managed.buffer -> int -> int -> stream:nativeint -> unit
(** Copy a part of one buffer to another one.

    The rest of \@to, the length of its contents, and its metadata stay. \@to_offset counts bytes
    from xmem_data_mut or xmem_cuda_ptr_mut on, and \@from_offset from the beginning of the
    contents.

    Errors:
    - ERANGE: the part reaches beyond xmem_capacity() of \@to, or beyond the contents of \@from

    The page xmem_copy_range(3) of the manual says more. Since 0.5. *)

val copy_from_host : Managed.buffer -> int -> nativeint -> int -> stream:nativeint -> unit
(** Copy memory of this process, which may lie in \@to itself, into a buffer.

    The rest of \@to stays. \@from may be NULL if \@bytes is 0.

    The page xmem_copy_from_host(3) of the manual says more. Since 0.5. *)

val copy_to_host : nativeint -> Managed.buffer -> int -> int -> stream:nativeint -> unit
(** Copy contents of a buffer to memory of this process.
    \@to may be NULL if \@bytes is 0.

    The page xmem_copy_to_host(3) of the manual says more. Since 0.5. *)

val copy_to : Managed.buffer -> int -> timeout:int64 -> Managed.buffer
(** Acquire a buffer of the same pool, on the GPU \@device_id or XMEM_CPU, and copy the contents
    and metadata into it.

    It is then being written, and the copy is complete when the call returns.

    In C: ends in xmem_publish or xmem_release

    The page xmem_copy_to(3) of the manual says more. Since 0.5. *)

val data_private : Managed.buffer -> nativeint
(** Get a private view of the contents of a held buffer, xmem_size() bytes.

    The caller may write to it: only this view shows the stores, and the contents do not change.
    Do not change the protection of its memory.

    Errors:
    - EPERM: the buffer is being written
    - EMEDIUMTYPE, EIO: as xmem_data
    - ENOMEM: also: the limit of locked memory is reached

    In C: the library's, until the handle is dropped or xmem_get_mut makes the buffer writable;
    then the stores are lost

    The page xmem_data_private(3) of the manual says more. Since 0.5. *)

val cuda_query : unit -> Answers.Cuda_info.t
(** Find the driver, and get its properties.

    The first call of a process starts the driver.

    Errors:
    - ENODEV: also: the driver is too old, is the toolkit's stub library, or does not match the
    kernel's
    - EIO, ENOMEM: the driver does not start, or does not describe its devices

    The page xmem_cuda_query(3) of the manual says more. Since 0.5. *)

val cuda_device_query : int -> Answers.Cuda_device_info.t
(** Get the properties of \@device, 0 to devices - 1 of struct xmem_cuda_info.

    It makes no context.

    Errors:
    - ENODEV: also if there is no such device

    The page xmem_cuda_device_query(3) of the manual says more. Since 0.5. *)

val acquire_cuda : Managed.pool -> int -> int -> timeout:int64 -> Managed.buffer
(** Acquire a buffer on the GPU \@device to write into, as xmem_acquire does in memory of the CPU.

    Readers get its memory only if `memory` of struct xmem_pool_options has XMEM_MEMORY_READERS.

    Errors:
    - ENOSPC: also: this writer has no buffers on that GPU, and makes none
    - ENOMEM, ENODEV, EOPNOTSUPP, EMEDIUMTYPE, ECHILD, EIO: as xmem_preallocate

    In C: ends in xmem_publish or xmem_release

    The page xmem_acquire_cuda(3) of the manual says more. Since 0.5. *)

val cuda_ptr : Managed.buffer -> nativeint
(** Get the contents of a buffer, xmem_size() bytes, for use on its GPU.

    Errors:
    - EMEDIUMTYPE: the contents are in memory of the CPU (xmem_data)
    - EACCES: this client is a reader, and the memory is not XMEM_MEMORY_READERS
    - EOWNERDEAD: also: the memory has gone with its owner
    - EINVAL: the driver refuses the owner's handle

    In C: valid until the handle of the buffer is dropped

    The page xmem_cuda_ptr(3) of the manual says more. Since 0.5. *)

val cuda_ptr_mut : Managed.buffer -> nativeint
(** Get the memory of a buffer on a GPU that is being written, xmem_capacity() bytes.

    Errors:
    - EPERM: the buffer is not being written, or is from xmem_attach_cuda

    In C: valid until the buffer is published or released

    The page xmem_cuda_ptr_mut(3) of the manual says more. Since 0.5. *)

val cuda_peer : Managed.buffer -> int -> unit
(** Let the GPU \@device, too, use the address of a buffer (xmem_cuda_ptr, xmem_cuda_ptr_mut).

    Without access, a kernel on that GPU that uses the address makes its context unusable.

    Errors:
    - EXDEV: \@device cannot use it (xmem_copy_to needs no access)
    - EUSERS: the driver has as many peers of \@device as it can have

    The page xmem_cuda_peer(3) of the manual says more. Since 0.5. *)

val cuda_device : Managed.buffer -> int
(** Get the number of the GPU that a buffer is on.

    Errors:
    - EMEDIUMTYPE: the contents are in memory of the CPU

    The page xmem_cuda_device(3) of the manual says more. Since 0.5. *)

val pool_stat : Managed.pool -> Answers.Pool_info.t
(** Get the numbers of a pool, from shared memory.

    Errors:

    The page xmem_pool_stat(3) of the manual says more. Since 0.1. *)

val pool_client_info : Managed.pool -> int -> Answers.Client_info.t
(** Get the properties of the client with the id \@client, from 0 to clients_max - 1.

    Errors:
    - ENOENT: no client has that id
    - EINVAL: no client can have it

    The page xmem_pool_client_info(3) of the manual says more. Since 0.2. *)

val subscriber_next : Managed.pool -> int -> Answers.Subscriber_info.t
(** Get the next client that subscribes to this writer: the one with the id \@first, or with the
    next higher id.

    It can receive everything that the writer publishes from now on, unless it ends.

    Errors:
    - ENOENT: there are no more

    The page xmem_subscriber_next(3) of the manual says more. Since 0.5. *)

val wait_subscribers : Managed.pool -> int -> timeout:int64 -> int
(** Wait until \@count clients subscribe to this writer.

    They can receive everything that it publishes after that.

    Errors:
    - EAGAIN: there are fewer, and the timeout is 0
    - ETIMEDOUT: too few have come in time
    - EINVAL: \@count is more than the pool's clients_max

    The page xmem_wait_subscribers(3) of the manual says more. Since 0.5. *)

val subscribers_poll_fd : Managed.pool -> int
(** Get a descriptor for poll, select and epoll.

    It is readable when a client has subscribed to this writer or unsubscribed since the last
    look: a call of xmem_subscriber_next with id 0, or of xmem_wait_subscribers with timeout 0.

    Errors:

    In C: the library's, valid as long as that of xmem_pool_poll_fd

    The page xmem_subscribers_poll_fd(3) of the manual says more. Since 0.5. *)

val pool_slot_info : Managed.pool -> int -> Answers.Slot_info.t
(** Get the properties of slot \@slot.

    Errors:
    - EINVAL: no such slot

    The page xmem_pool_slot_info(3) of the manual says more. Since 0.2. *)

val pool_device_info : Managed.pool -> int -> Answers.Device_info.t
(** Get the numbers of a pool's memory on the GPU that has the number \@device in the pool, from 1
    on.

    Errors:
    - ENOENT: the pool has no such GPU
    - EINVAL: no pool can have it

    The page xmem_pool_device_info(3) of the manual says more. Since 0.5. *)

val pool_holds : Managed.pool -> int -> int -> int
(** Count the references that one client has of one slot.

    Errors:
    - ENOENT: no client has that id
    - EINVAL: no client can have it, or there is no such slot

    The page xmem_pool_holds(3) of the manual says more. Since 0.2. *)

val host_query : unit -> Answers.Host_info.t
(** Get the properties of the host, without joining a pool or starting a daemon.

    Errors:
    - ENODEV: no host is running
    - EACCES, EPERM, ENAMETOOLONG: as xmem_pool_open
    - EINVAL: also: XMEM_BACKEND (docs/environment.md) is wrong

    The page xmem_host_query(3) of the manual says more. Since 0.2. *)

val limit_next : Managed.pool -> int -> Answers.Limit_info.t
(** Get one of the host's limits, and its use, without starting a daemon: the limit with the
    number \@number, or with the next higher one.
    - pool: NULL: ask without joining; then limits of pools and clients are left out.

    Errors:
    - ENOENT: there are no more, or no host is running
    - EACCES, EPERM, ENAMETOOLONG: as xmem_pool_open
    - EDQUOT, EINVAL: as xmem_host_query

    The page xmem_limit_next(3) of the manual says more. Since 0.5. *)

val pool_next : int -> Answers.Pool_entry.t
(** Get the next pool of the host that this process may join by name, or that this user owns,
    without joining it or starting a daemon.
    \@after: the number from the last answer; 0: get the first one.

    Errors:
    - ENOENT: there are no more, or no host is running
    - EACCES, EPERM, ENAMETOOLONG: as xmem_pool_open
    - EDQUOT, EINVAL: as xmem_host_query

    The page xmem_pool_next(3) of the manual says more. Since 0.2. *)

val attach_fd : Managed.pool -> int -> int -> int -> int -> Managed.buffer
(** Make a buffer of a file with existing contents, without copying them.

    It is published or released like one from xmem_acquire, but xmem_data_mut fails with EPERM.
    The pool gives the file up when no client holds the contents or can receive them.
    - fd: a memfd without holes that is sealed with F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_WRITE or
    F_SEAL_FUTURE_WRITE; or, where the kernel is the host, a dma-buf. It stays the caller's.
    - offset: bytes of the file before the contents; a multiple of 64.
    - length: bytes of contents; 0: up to the end of the file.
    - flags: must be 0.

    Errors:
    - EINVAL: also: offset is not a multiple of 64
    - EBADF: the descriptor is not open
    - EMEDIUMTYPE: the file is neither a memfd nor, where the kernel is the host, a dma-buf
    - ENOEXEC: the memfd lacks seals; the message names them
    - EACCES: the descriptor is not open for reading, or only names the file (O_PATH)
    - ERANGE: the contents reach beyond the end of the file, or the file has holes
    - EBUSY: a process has a write lease of the file (F_SETLEASE), or runs it as a program
    - ENOSPC: the pool has no slot left
    - EAGAIN: the ring is full of publications that subscribers have yet to receive
    - EIO: the file cannot be mapped

    In C: ends in xmem_publish or xmem_release

    The page xmem_attach_fd(3) of the manual says more. Since 0.4. *)

val get_mut : Managed.buffer -> unit
(** Write received contents in place: their only holder becomes their writer.

    Then the buffer is like one from xmem_acquire with contents and metadata. xmem_publish
    publishes the next contents under a new token; the old token is stale at once. xmem_release
    discards the contents.
    - buffer: held for reading; made by xmem_preallocate or on demand, without XMEM_MEMORY_SEALED.

    Errors:
    - EBUSY: not the only holder, or the contents have claims, or a client has yet to receive them
    - EOPNOTSUPP: the buffer is sealed, attached, or memory of a GPU with XMEM_MEMORY_LEGACY
    - EPERM: also: the buffer is being written
    - EAGAIN: the ring is full, as in xmem_attach_fd, or the buffer's owner is checking if it is
    used
    - ENOSPC: the buffer has no token left until its owner acquires it

    In C: ends in xmem_publish or xmem_release

    The page xmem_get_mut(3) of the manual says more. Since 0.4. *)

val wait_on : Managed.buffer -> stream:nativeint -> unit
(** Let a stream wait until the contents of a buffer are complete: work that is put into the
    stream after this call begins only then.

    Keep the handle until all work that reads the contents is in the stream, and then drop the
    handle by xmem_release_on.

    Errors:
    - EOWNERDEAD: the writer's process ended before its GPU had finished the contents
    - EMEDIUMTYPE, ENODEV, ENOMEM, EINVAL, EIO: as xmem_publish with a stream
    - EPERM: the stream is captured
    - EINTR, ECANCELED, ENOTCONN: a wait in this call ended early

    The page xmem_wait_on(3) of the manual says more. Since 0.5. *)

val wait_contents : Managed.buffer -> timeout:int64 -> unit
(** Wait in this thread until the contents of a buffer are complete.

    With timeout 0 the call only looks, even after xmem_cancel.

    Errors:
    - EAGAIN: they are not complete, and timeout_ns is 0
    - ETIMEDOUT: not in time
    - EOWNERDEAD: they will never be complete, because the writer's process has ended
    - EIO, ESHUTDOWN: this process writes them, and its GPU or the driver has failed
    - EMEDIUMTYPE: the buffer is in memory of the CPU

    The page xmem_wait_contents(3) of the manual says more. Since 0.5. *)

val release_on : Managed.buffer -> stream:nativeint -> unit
(** Drop a handle for reading when a stream has done the work that is in it at the call.

    The buffer may be on the CPU or a GPU. The caller cannot use the handle any more from the call
    on.
    - stream: XMEM_ALL_STREAMS if the streams are unknown, or one may have been destroyed. The
    handle then waits for the work of the whole GPU (xmem_release_on(3)).

    Errors:
    - EPERM: the buffer is being written, or the stream is captured

    In C: ends here

    The page xmem_release_on(3) of the manual says more. Since 0.5. *)

val describe_tensor : ?strides:int array -> Managed.buffer -> int -> int -> int array -> unit
(** Describe the contents as a tensor.

    The label of this client becomes the producer.
    - dtype: XMEM_DTYPE_*. Its bits times its lanes must be whole bytes.
    - ndim: number of dimensions, 0 (one element) to 8, and elements in each.
    - shape: number of dimensions, 0 (one element) to 8, and elements in each.
    - strides: bytes from one element to the next in each dimension, 0 to repeat it; NULL: dense.

    Errors:

    The page xmem_describe_tensor(3) of the manual says more. Since 0.4. *)

val describe_image : Managed.buffer -> int -> int -> int -> int -> unit
(** Describe the contents as an image of \@format XMEM_IMAGE_*, and set the content type.
    - width: pixels, 1 to XMEM_IMAGE_MAX_SIDE.
    - height: pixels, 1 to XMEM_IMAGE_MAX_SIDE.
    - stride: bytes from one row to the next in the first plane; 0: no padding.

    Errors:

    The page xmem_describe_image(3) of the manual says more. Since 0.4. *)

val image_bytes : int -> int -> int -> int -> int
(** Get the number of bytes of an image.

    Errors:

    The page xmem_image_bytes(3) of the manual says more. Since 0.5. *)

val strings_plan : int -> int -> int -> Answers.Strings.t
(** Compute the size and the layout of a column of \@rows strings with \@chars bytes in all, each
    at most XMEM_STRINGS_MAX.

    Acquire that size, then write.

    Errors:

    The page xmem_strings_plan(3) of the manual says more. Since 0.5. *)

val describe_strings : Managed.buffer -> int -> int -> int -> unit
(** Describe the contents as a column of strings that xmem_strings_plan has planned.

    Errors:

    The page xmem_describe_strings(3) of the manual says more. Since 0.5. *)

val describe_source : ?flags:int -> ?content_type:string -> ?producer:string ->
  ?timestamp_ns:int64 -> ?clock:string -> Managed.buffer -> unit
(** Set the kind of the contents, their maker and their time, and no other metadata.

    Errors:

    The page xmem_describe_source(3) of the manual says more. Since 0.5. *)

val metadata_view : Managed.buffer -> Answers.Metadata.t
(** Get a copy of the metadata that does not change.

    Its strings are printable. Its size and offset are right, and on a GPU its storage and device;
    other fields may be wrong.

    Errors:

    In C: the copy is the caller's

    The page xmem_metadata_view(3) of the manual says more. Since 0.4. *)

val tensor_view : Managed.buffer -> int -> Answers.Tensor.t
(** Get the tensor that the publisher describes, checked.
    \@flags is 0 or XMEM_VIEW_CUDA.

    Errors:
    - ENODATA: the publisher has not described the contents
    - EBADMSG: the description is impossible
    - ERANGE: the tensor reaches beyond the contents
    - EMEDIUMTYPE: the contents are on a GPU, and XMEM_VIEW_CUDA is not set
    - EIO, ENOMEM, EMFILE, EINTR: as xmem_data

    In C: data is valid until the handle is dropped

    The page xmem_tensor_view(3) of the manual says more. Since 0.4. *)

val image_view : Managed.buffer -> int -> Answers.Image.t
(** Get the image that the publisher describes, checked.

    In C: as xmem_tensor_view

    The page xmem_image_view(3) of the manual says more. Since 0.4. *)

val strings_view : Managed.buffer -> int -> int * Answers.Strings.t
(** Get the column of strings that the publisher describes.

    Its parts lie within the contents. The offsets are not checked: call xmem_strings_get for a
    row.

    Errors:
    - EBADMSG: also: the contents' address is no multiple of 64

    In C: as xmem_tensor_view

    The page xmem_strings_view(3) of the manual says more. Since 0.5. *)
