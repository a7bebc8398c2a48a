# SPDX-License-Identifier: MIT
# Handles that are shared, for Cython that is compiled as C++: see include/xmem/handles.hpp, and
# "Cython" in docs/python.md.
from libc.stdint cimport int64_t, intptr_t, uint64_t
from libcpp cimport bool

from xmem.capi cimport (xmem_api, xmem_as_py, xmem_buffer, xmem_pool, xmem_pool_options,
                        xmem_publish_options, xmem_subscribe_options, xmem_subscription,
                        xmem_table)

cdef extern from "xmem/handles.hpp" namespace "xmem" nogil:
    # Each is a std::shared_ptr; of a failed function it is empty: "if not handle:".
    cdef cppclass pool_handle:
        bool operator bool()
        bool operator!()
        void reset()
    cdef cppclass buffer_handle:
        bool operator bool()
        bool operator!()
        void reset()
    cdef cppclass subscription_handle:
        bool operator bool()
        bool operator!()
        void reset()
    cdef cppclass device_ptr_handle:
        bool operator bool()
        bool operator!()
        void reset()

    xmem_pool *as_cu(const pool_handle &)
    xmem_buffer *as_cu(const buffer_handle &)
    xmem_subscription *as_cu(const subscription_handle &)
    unsigned long long as_cu(const device_ptr_handle &)

    intptr_t as_intptr(const pool_handle &)
    intptr_t as_intptr(const buffer_handle &)
    intptr_t as_intptr(const subscription_handle &)
    intptr_t as_intptr(const device_ptr_handle &)

    pool_handle adopt(const xmem_api *, xmem_pool *)
    buffer_handle adopt(const pool_handle &, xmem_buffer *)
    subscription_handle adopt(const pool_handle &, xmem_subscription *)

    pool_handle open_pool(const xmem_api *, const char *name)
    pool_handle open_pool(const xmem_api *, const char *name, const xmem_pool_options *)
    subscription_handle subscribe(const pool_handle &)
    subscription_handle subscribe(const pool_handle &, const xmem_subscribe_options *)
    buffer_handle receive(const subscription_handle &, int64_t timeout_ns)
    buffer_handle get(const pool_handle &, uint64_t token)
    buffer_handle acquire(const pool_handle &, size_t bytes, int64_t timeout_ns)
    buffer_handle acquire_cuda(const pool_handle &, size_t bytes, int device, int64_t timeout_ns)
    device_ptr_handle device_ptr(const buffer_handle &)
    device_ptr_handle device_ptr_mut(const buffer_handle &)
    int publish(const buffer_handle &)
    int publish(const buffer_handle &, const xmem_publish_options &, uint64_t *ret_token)

# A guard of its own for contents that are held for reading: the handle stays as it is. Raises the
# error of xmem_clone, or the thread's last one if the handle is empty.
cdef inline object as_py(const buffer_handle &handle):
    cdef xmem_buffer *buffer = as_cu(handle)
    return xmem_as_py(xmem_table.clone(buffer) if buffer else NULL)
