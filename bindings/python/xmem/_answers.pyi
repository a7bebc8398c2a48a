# SPDX-License-Identifier: MIT
"""Types of the answers that src/layout.c makes: struct sequences, one for each C struct.

Made by bindings/generate.py from the public headers.
"""

import builtins
from typing import Any, Final, final


@final
class Metadata(tuple[Any, ...]):
    """All fields but size, offset and order_* are the publisher's to use as it likes. The
    functions of tensor.h read the fields that xmem_describe_tensor and others like it have set.
    """

    id: Final[int]
    #: enum xmem_storage
    storage: Final[int]
    #: 0 for the CPU, else the device's number in the pool
    device: Final[int]
    #: of an element: XMEM_DTYPE; 0: not described
    dtype: Final[int]
    #: valid places of shape and strides, at most 8
    ndim: Final[int]
    #: elements
    shape: Final[tuple[int, ...]]
    #: bytes; DLPack counts elements: see xmem_tensor_view
    strides: Final[tuple[int, ...]]
    #: bytes of contents; xmem_publish sets it
    size: Final[int]
    #: bytes before them in the buffer; xmem_publish sets it
    offset: Final[int]
    #: NUL-terminated, for example "video/x-raw,GRAY8"
    content_type: Final[str]
    #: NUL-terminated
    producer: Final[str]
    user: Final[tuple[int, ...]]
    #: of the contents, by `clock`; 0: none
    timestamp_ns: Final[int]
    #: NUL-terminated: its name, such as "CLOCK_TAI"
    clock: Final[str]
    #: enum xmem_image_format
    image: Final[int]
    #: enum xmem_order; xmem_publish sets these two
    order_kind: Final[int]
    #: for the library; 0: the contents are complete
    order_value: Final[int]
    #: pixels
    image_width: Final[int]
    image_height: Final[int]
    #: bytes from one row of the first plane to the next
    image_stride: Final[int]
    #: enum xmem_column
    column: Final[int]
    #: XMEM_STRINGS_*
    column_flags: Final[int]
    column_rows: Final[int]
    #: bytes of all strings
    column_chars: Final[int]


@final
class SubscriptionInfo(tuple[Any, ...]):
    """The state of a subscription."""

    #: of the last received buffer; XMEM_NOBODY: none yet
    publisher: Final[int]
    #: number of its publishers, ended ones too
    follows: Final[int]
    #: publications that it has lost by being slow
    lost: Final[int]
    #: publications that it has yet to receive
    behind: Final[int]


@final
class BufferInfo(tuple[Any, ...]):
    """The properties of a buffer. While it is being written, this client is the publisher."""

    #: XMEM_BUFFER_*, also bits that later versions define
    flags: Final[int]
    #: xmem_slot
    slot: Final[int]
    #: xmem_token: 0 while it is being written
    token: Final[int]
    #: per publisher, from 0; 0: unpublished or from xmem_get
    sequence: Final[int]
    #: CLOCK_MONOTONIC; 0: none, unpublished or from xmem_get
    timestamp_ns: Final[int]
    #: xmem_size
    bytes: Final[int]
    #: xmem_capacity
    capacity: Final[int]
    #: client id; XMEM_NOBODY: it has ended long ago
    publisher: Final[int]
    #: of the publisher, NUL-terminated; empty: not known
    label: Final[str]


@final
class Limbo(tuple[Any, ...]):
    """Limbo: used buffers whose *owner*, the client that made them, has ended; and *overdue*
    buffers, which all subscribers have received, which some client still holds, and which the
    owner needs.
    """

    #: buffers whose owner has ended
    ended: Final[int]
    #: buffers that their owner wants back
    overdue: Final[int]
    bytes_ended: Final[int]
    bytes_overdue: Final[int]
    #: since the first of these owners ended
    ended_age_ns: Final[int]
    #: since an owner first needed one of them
    overdue_age_ns: Final[int]


@final
class CudaInfo(tuple[Any, ...]):
    """The driver, as this process finds it."""

    #: of CUDA or HIP: 1000 * major + 10 * minor
    version: Final[int]
    #: that this process sees; at least 1
    devices: Final[int]
    #: the library, as it was found; cut if it is longer
    file: Final[str]
    #: 1: the driver is AMD's HIP; 0: it is NVIDIA's
    hip: Final[int]


@final
class CudaDeviceInfo(tuple[Any, ...]):
    """One device, as this process sees it."""

    #: its ordinal in this process
    device_id: Final[int]
    #: XMEM_CUDA_CAN_*
    can: Final[int]
    #: of its memory
    bytes: Final[int]
    #: of exported memory; 0: it cannot be exported
    granularity: Final[int]
    #: compute capability: 10 * major + minor
    capability: Final[int]
    #: equal in all processes
    uuid: Final[builtins.bytes]
    #: NUL-terminated
    name: Final[str]


@final
class PoolInfo(tuple[Any, ...]):
    """The numbers of a pool now. Other clients continue meanwhile, so the numbers need not add up."""

    #: capacity
    slots: Final[int]
    #: slots with a buffer
    attached: Final[int]
    #: of those: without contents
    free: Final[int]
    #: being written, or kept by their owner to write next
    writing: Final[int]
    #: with contents
    live: Final[int]
    #: slots that at least one client holds
    held: Final[int]
    #: attached slots whose owner has ended
    limbo: Final[int]
    #: living clients
    clients: Final[int]
    #: ended clients with publications yet to be received
    zombies: Final[int]
    #: capacity
    clients_max: Final[int]
    #: capacity of each writer's ring
    ring_entries: Final[int]
    #: references of all clients together
    holds: Final[int]
    #: of all attached slots
    bytes: Final[int]
    #: of their files
    bytes_files: Final[int]
    #: of the files whose owner has ended
    bytes_kept: Final[int]
    #: of the files that this handle has mapped
    bytes_mapped: Final[int]
    #: files and allocations of GPUs
    payloads: Final[int]
    #: uses of dropped buffers by this process in any pool
    stale_handles: Final[int]
    #: of hugetlb files
    bytes_huge: Final[int]
    #: of this handle's files with MADV_HUGEPAGE
    bytes_advised: Final[int]
    #: of all slots
    claims: Final[int]
    #: slots with claims
    claimed: Final[int]
    #: slots that are overdue: struct xmem_limbo
    overdue: Final[int]
    #: of the slots in limbo
    bytes_limbo: Final[int]
    #: since the first of their owners ended
    limbo_age_ns: Final[int]
    #: of the overdue slots
    bytes_overdue: Final[int]
    #: since an owner first needed one of them
    overdue_age_ns: Final[int]
    #: of memory of GPUs
    bytes_cuda: Final[int]
    #: of that: without buffers, but still open in processes
    bytes_closing: Final[int]


@final
class ClientInfo(tuple[Any, ...]):
    """One client of a pool. It reports bytes_mapped and awaits_writer itself, so they may be
    wrong.
    """

    id: Final[int]
    #: enum xmem_client_role
    role: Final[int]
    #: 1; 0: ended, with publications yet to be received
    alive: Final[int]
    #: in this process's namespace, or xmemd's; 0: not in it
    pid: Final[int]
    #: in this process's user namespace, or xmemd's
    uid: Final[int]
    #: attached slots that it owns
    slots: Final[int]
    #: number of this use of the id, never reused
    incarnation: Final[int]
    #: of its options
    wait_bound_ns: Final[int]
    #: references to all slots together
    holds: Final[int]
    #: NUL-terminated
    label: Final[str]
    #: publishers, also ended ones
    follows: Final[int]
    #: clients that subscribe to it
    followers: Final[int]
    #: publications that it has yet to receive
    behind: Final[int]
    #: of files that it has mapped
    bytes_mapped: Final[int]
    #: of ended owners' files that it uses
    bytes_kept: Final[int]
    #: slots that it holds, in limbo or overdue
    limbo: Final[int]
    #: threads that wait until a writer joins
    awaits_writer: Final[int]
    #: of the slots that `limbo` counts
    bytes_limbo: Final[int]
    #: part of them: those of ended owners
    bytes_ended: Final[int]


@final
class SubscriberInfo(tuple[Any, ...]):
    """One client that subscribes to a writer."""

    #: its id, for xmem_pool_client_info
    client: Final[int]
    #: 1: the writer waits for it (XMEM_SUBSCRIBE_WAITS)
    waits: Final[int]
    #: number of this use of the id, never reused
    incarnation: Final[int]
    #: publications of this writer that it has yet to receive
    behind: Final[int]
    #: 1: too slow, so not waited for until it receives again
    demoted: Final[int]
    #: NUL-terminated
    label: Final[str]


@final
class SlotInfo(tuple[Any, ...]):
    """One slot of a pool."""

    slot: Final[int]
    #: enum xmem_slot_use
    state: Final[int]
    #: client id, or XMEM_NOBODY
    owner: Final[int]
    #: number of the GPU in the pool; 0: the CPU
    device: Final[int]
    #: of the contents; 0: there are none
    token: Final[int]
    #: of the whole buffer
    bytes: Final[int]
    #: references of all clients together
    holds: Final[int]
    #: 1 + sequence number of its last publication; 0: none
    position: Final[int]
    #: number of the file; 0: none
    payload: Final[int]
    #: of the file
    payload_bytes: Final[int]
    #: set aside (claims.h)
    claims: Final[int]
    #: client that writes it in place, or XMEM_NOBODY
    upgrader: Final[int]
    #: 1: it is overdue: struct xmem_limbo
    overdue: Final[int]


@final
class DeviceInfo(tuple[Any, ...]):
    """A GPU in whose memory a pool has, or has had, buffers."""

    #: its number in the pool, as in metadata and slots
    device: Final[int]
    #: as in struct xmem_cuda_device_info
    uuid: Final[builtins.bytes]
    #: of the pool's memory there: whole allocations
    bytes: Final[int]
    #: of that: as in struct xmem_pool_info
    bytes_closing: Final[int]


@final
class HostInfo(tuple[Any, ...]):
    """A description of the host."""

    #: version of its protocol
    abi: Final[int]
    #: the oldest that it still serves
    abi_oldest: Final[int]
    #: bits: features that clients of its pools must know
    features: Final[int]
    #: of a pool
    max_slots: Final[int]
    #: of a pool
    max_clients: Final[int]
    #: of a pool
    max_ring_entries: Final[int]
    #: a writer gets slots in groups of so many
    group_slots: Final[int]
    max_pools: Final[int]
    #: files with contents, of a pool; kernel: of a user
    max_payloads: Final[int]
    #: now
    pools: Final[int]
    #: "kernel" or "daemon"
    backend: Final[str]
    #: of the host's program; NUL-terminated
    version: Final[str]


@final
class LimitInfo(tuple[Any, ...]):
    """One limit of the host, and how much of it is in use."""

    #: of the limit, never changes
    number: Final[int]
    #: enum xmem_limit_scope
    scope: Final[int]
    #: of a user; else 0xffffffff
    uid: Final[int]
    #: 1: the next two are bytes; 0: numbers of things
    in_bytes: Final[int]
    used: Final[int]
    #: UINT64_MAX: there is no limit
    most: Final[int]
    #: NUL-terminated; kernel: the module's parameter, if any
    name: Final[str]
    #: the limited thing, in English
    what: Final[str]


@final
class PoolEntry(tuple[Any, ...]):
    """One of the host's pools."""

    #: of the pool, never reused while the host runs
    number: Final[int]
    #: up to 128 characters and NUL; empty: anonymous
    name: Final[str]
    #: of its maker; UINT32_MAX: none in this user namespace
    owner_uid: Final[int]
    #: capacity
    slots: Final[int]
    #: capacity
    clients_max: Final[int]
    #: that live
    clients: Final[int]
    #: capacity of each writer's ring
    ring_entries: Final[int]
    #: of all attached slots
    bytes: Final[int]
    #: of their files
    bytes_files: Final[int]
    #: of the files whose owner has ended
    bytes_kept: Final[int]
    #: files
    payloads: Final[int]
    #: as in pool options
    mode: Final[int]
    #: its group; UINT32_MAX as owner_uid
    gid: Final[int]
    #: XMEM_MAY_* that the mode gives this process
    roles: Final[int]


@final
class Response(tuple[Any, ...]):
    """A response."""

    #: the number of its call
    call: Final[int]
    #: 1: further responses to this call follow
    more: Final[int]
    #: 1: the error is from the server (xmem_refuse)
    refused: Final[int]
