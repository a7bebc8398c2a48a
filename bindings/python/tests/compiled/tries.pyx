# cython: language_level=3, freethreading_compatible=True
# SPDX-License-Identifier: MIT
"""Functions of test_capi.py in Cython: handles in threads, at the end of Python, and under the GIL.

Functions keep the GIL, unless they say that they do not.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset
from libcpp cimport bool

from xmem.capi cimport *
from xmem.handles cimport *

cdef extern from *:
    """
    #include <cstring>
    #include <thread>
    #include <unistd.h>

    /* In a thread that Python knows nothing of. The caller waits, with the GIL or without. */
    template <class H> void drop_in_thread(H &handle)
    {
        std::thread([last = std::move(handle)]() mutable { last.reset(); }).join();
    }

    static void say(const char *text)
    {
        if (write(1, text, std::strlen(text)) < 0)
            _exit(1);
    }

    /* Handles that are dropped when there is no Python any more. */
    static xmem::buffer_handle until_python_ends;

    static void python_has_ended()
    {
        drop_in_thread(until_python_ends);
        say(Py_IsInitialized() ? "there is Python\\n" : "Python has ended\\n");
    }

    static struct until_exit {
        ~until_exit()
        {
            if (!buffer)
                return;
            buffer.reset();
            say("the process ends\\n");
        }
        xmem::buffer_handle buffer;
    } until_exit;

    static void keep_until_exit(const xmem::buffer_handle &first, const xmem::buffer_handle &second)
    {
        until_python_ends = first;
        until_exit.buffer = second;
        Py_AtExit(python_has_ended);
    }
    """
    void drop_in_thread[H](H &handle) noexcept nogil
    void _keep "keep_until_exit"(const buffer_handle &, const buffer_handle &) nogil

cdef extern from "xmem_python.h":
    struct xmem_python:
        const xmem_api *(*get_api)(uint32_t version) except NULL
    const xmem_python *xmem_python_ "xmem_python"

import_xmem()


def import_again():
    import_xmem()


def get_table(uint32_t version):
    """The address of the table of that version."""
    return <size_t>xmem_python_.get_api(version)


def version():
    return xmem_table.abi_version


def last_error():
    return xmem_table.peek_last_error(NULL)


def clear_last_error():
    xmem_table.clear_last_error()


def raise_last_error():
    xmem_raise_last_error()


def empty_guard():
    cdef buffer_handle empty
    return as_py(empty)


def fail():
    """Leave an error of the library, without an exception."""
    xmem_table.pool_open(b"//", NULL)


cdef class Pool:
    cdef pool_handle pool
    cdef object call

    def __cinit__(self, str name, uint64_t demand_bytes=0):
        cdef xmem_pool_options options
        memset(&options, 0, sizeof(options))
        options.size = sizeof(options)
        options.demand_bytes = demand_bytes
        self.pool = open_pool(xmem_table, name.encode(), &options)
        if not self.pool:
            xmem_raise_last_error()

    def acquire(self, size_t nbytes):
        """A buffer that is being written, without the GIL."""
        cdef Buffer made = Buffer()
        with nogil:
            made.buffer = acquire(self.pool, nbytes, 0)
        if not made.buffer:
            xmem_raise_last_error()
        return made

    def writing_guard(self, size_t nbytes):
        """The handle becomes the guard's."""
        return xmem_as_py(xmem_table.acquire(as_cu(self.pool), nbytes, 0))

    def hook(self, call):
        """Have Python called when more than no buffer is overdue."""
        self.call = call
        xmem_table.limbo_hook(as_cu(self.pool), <uint64_t>-1, 0, hook, <void *>call)

    def use_all(self, str name):
        """Use this pool, and open and leave another, and never let go of the GIL."""
        cdef pool_handle other = open_pool(xmem_table, name.encode())
        cdef buffer_handle written = acquire(other, 4096, 0)
        cdef subscription_handle frames = subscribe(open_pool(xmem_table, name.encode()))
        cdef xmem_pool_info info
        assert frames and written and not publish(written)
        cdef buffer_handle frame = receive(frames, 0)
        assert frame and as_intptr(frame) != as_intptr(written)
        assert get(other, xmem_table.token(as_cu(frame)))
        assert not acquire(self.pool, 4096, 0) and xmem_table.peek_last_error(NULL) == -11
        info.size = sizeof(info)
        assert not xmem_table.pool_stat(as_cu(self.pool), &info)
        assert bytes(as_py(frame)) == bytes(4096)
        drop_in_thread(frame)
        drop_in_thread(frames)
        drop_in_thread(written)
        drop_in_thread(other)


cdef void hook(xmem_pool *pool, const xmem_limbo *limbo, void *call) noexcept nogil:
    with gil:
        (<object>call)()


cdef class Buffer:
    cdef buffer_handle buffer

    def publish(self):
        cdef uint64_t token = 0
        cdef xmem_publish_options options
        memset(&options, 0, sizeof(options))
        options.size = sizeof(options)
        if publish(self.buffer, options, &token):
            xmem_raise_last_error()
        return token

    def guard(self):
        return as_py(self.buffer)

    def drop_in_thread(self):
        drop_in_thread(self.buffer)

    def drop_in_thread_without_the_gil(self):
        with nogil:
            drop_in_thread(self.buffer)


def keep_until_exit(Buffer first, Buffer second):
    _keep(first.buffer, second.buffer)
