# cython: language_level=3, freethreading_compatible=True
# SPDX-License-Identifier: MIT
"""A stage of a pipeline in Cython: it receives frames of bytes, and publishes their negatives.

    inverter = Inverter("camera", "negatives")
    while True:
        show(numpy.asarray(inverter.step()))

All its work is done without the GIL, by the functions of the one libxmem that the package xmem has
loaded: this module is not linked with it. setup.py says how it is built.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from xmem.capi cimport (XMEM_FOREVER, XMEM_SUBSCRIBE_LASTS, import_xmem, xmem_buffer,
                        xmem_raise_last_error, xmem_subscribe_options, xmem_table)
from xmem.handles cimport (acquire, as_cu, as_py, buffer_handle, open_pool, pool_handle, publish,
                           receive, subscribe, subscription_handle)

import_xmem()


cdef bint invert(xmem_buffer *source, xmem_buffer *target) noexcept nogil:
    """False: the thread's last error says why."""
    cdef const unsigned char *read = <const unsigned char *>xmem_table.data(source)
    cdef unsigned char *written = <unsigned char *>xmem_table.data_mut(target)
    cdef size_t i
    if not read or not written:
        return False
    for i in range(xmem_table.size(source)):
        written[i] = 255 - read[i]
    return True


cdef class Inverter:
    # C++ needs no close(): the handles go with this object, and each keeps its pool.
    cdef subscription_handle frames
    cdef pool_handle negatives

    def __cinit__(self, str source, str target):
        cdef bytes source_name = source.encode(), target_name = target.encode()
        cdef const char *of = source_name
        cdef const char *to = target_name
        cdef xmem_subscribe_options options
        memset(&options, 0, sizeof(options))
        options.size = sizeof(options)
        options.flags = XMEM_SUBSCRIBE_LASTS
        with nogil:
            self.frames = subscribe(open_pool(xmem_table, of), &options)
            if self.frames:
                self.negatives = open_pool(xmem_table, to)
        if not self.negatives:
            xmem_raise_last_error()

    def step(self, timeout=None):
        """Wait for a frame, publish its negative, and return that as an xmem.BufferGuard."""
        cdef int64_t timeout_ns = XMEM_FOREVER if timeout is None else int(timeout * 1e9)
        cdef buffer_handle frame, negative
        cdef bint done
        with nogil:
            # After an error, each of these functions returns nothing, and the error is the last
            # error.
            frame = receive(self.frames, timeout_ns)
            if frame:
                negative = acquire(self.negatives, xmem_table.size(as_cu(frame)), XMEM_FOREVER)
            done = (negative and invert(as_cu(frame), as_cu(negative)) and
                    not publish(negative))
        if not done:
            xmem_raise_last_error()
        return as_py(negative)
