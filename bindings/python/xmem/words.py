# SPDX-License-Identifier: MIT
"""Messages of the library in Python's words.

libxmem tells a C program what to do about an error: which function to call, which flag to set. The
extension gives each message that mentions C to ``python`` before it raises it. Other words, such
as the names of environment variables, stay.
"""
from __future__ import annotations

import re

#: Names of C and of Python. If several begin at one place, the longest counts.
WORDS = {
    "NULL stands for": "None stands for",
    "but flags has XMEM_OPEN_READER": "but writer=False was said",
    "flags has both XMEM_OPEN_READER and XMEM_OPEN_WRITER": "writer is True, False or None",
    "but flags has XMEM_OPEN_EXISTING": "but existing=True was said",
    "flags has both XMEM_OPEN_EXISTING and XMEM_OPEN_EXCLUSIVE":
        "existing=True and exclusive=True exclude each other",
    "flags has XMEM_OPEN_EXCLUSIVE, but": "exclusive=True was said, but",
    "but flags lack XMEM_SUBSCRIBE_PUBLISHER": "but not as publisher=",
    "but flags have XMEM_SUBSCRIBE_PUBLISHER": "and publisher= was said, too",
    "but flags have XMEM_SUBSCRIBE_WAITS, with which": "but waits=True was said, with which",
    "but flags have XMEM_SUBSCRIBE_NOWAIT": "but it shall not wait",
    "cache_ns and memory are": "cache_time, huge and sealed are",
    "with XMEM_MEMORY_SEALED": "with sealed=True",
    "device_id, XMEM_MEMORY_READERS and XMEM_MEMORY_LEGACY are for XMEM_MEMORY_CUDA, which flags "
    "lack": "the number of a GPU is for preallocate_cuda()",
    "XMEM_MEMORY_CUDA": "preallocate_cuda()",
    "only a buffer from xmem_acquire is writable": "acquire another buffer to write into",
    "only a buffer from xmem_acquire_cuda is writable": "acquire another buffer to write into",
    "XMEM_OPEN_WRITER": "writer=True",
    "XMEM_OPEN_READER": "writer=False",
    "XMEM_OPEN_SHARES": "sharing memory",
    "XMEM_OPEN_FD": "from_fd()",
    "XMEM_OPEN_EXISTING": "existing=True",
    "XMEM_OPEN_EXCLUSIVE": "exclusive=True",
    "flags lack XMEM_OPEN_GROUP": "no group= was said",
    "XMEM_OPEN_GROUP": "group=",
    "it is XMEM_MAY_READ, XMEM_MAY_WRITE, or both": "say reader=True, writer=True, or both",
    "xmem_pool_fd_narrow": "narrow_fd",
    "xmem_pool_set_mode": "set_mode",
    "xmem_pool_evict": "evict",
    "xmem_pool_grant": "grant",
    "xmem_pool_drain": "drain",
    "XMEM_OPEN_INHERIT": "inherit=True",
    "XMEM_SUBSCRIBE_PUBLISHER": "publisher=",
    "XMEM_SUBSCRIBE_WAITS": "waits=True",
    "XMEM_SUBSCRIBE_NOWAIT": "timeout=0",
    "XMEM_SUBSCRIBE_LASTS": "lasts=True",
    "but flags has XMEM_SUBSCRIBE_LASTS": "with lasts=True",
    "flags has XMEM_SUBSCRIBE_LASTS and XMEM_SUBSCRIBE_PUBLISHER":
        "lasts=True and publisher= exclude each other",
    "XMEM_MEMORY_HUGE": "huge=True",
    "XMEM_MEMORY_SEALED": "sealed=True",
    "XMEM_MEMORY_READERS": "readers=True",
    "XMEM_MEMORY_LEGACY": "legacy=True",
    "wait_bound_ns": "wait_bound",
    "cache_ns": "cache_time",
    "timeout_ns": "timeout",
    "xmem_pool_options": "BufferPool",
    "xmem_service_options": "the options of a service",
    "xmem_subscribe_options": "subscribe",
    "xmem_preallocate_options": "preallocate_cpu",
    "xmem_publish_options": "publish",
    "pool_open: xmem_pool_options": "BufferPool",
    "pool_open": "BufferPool",
    "subscribe: xmem_subscribe_options": "subscribe",
    "preallocate: xmem_preallocate_options": "preallocate_cpu",
    "publish: xmem_publish_options": "publish",
    "xmem_cancel, xmem_unsubscribe or xmem_pool_close":
        "cancel() or close() of the pool, or close() of the subscription,",
    "xmem_acquire": "acquire_cpu()",
    "xmem_acquire_cuda": "acquire_cuda()",
    "xmem_attach_fd": "attach_fd()",
    "xmem_cancel": "cancel()",
    "xmem_copy": "copy_from()",
    "xmem_copy_to": "copy_to_cuda()",
    "xmem_copy_to_host": "copy_to_host()",
    "xmem_cuda_ptr": "cuda_ptr",
    "xmem_data": "memoryview(guard) or cpu_ptr",
    "xmem_data_mut": "memoryview(guard)",
    "xmem_describe_image": "describe_image()",
    "xmem_describe_strings": "describe_strings()",
    "xmem_describe_tensor": "describe()",
    "xmem_forget": "forget()",
    "xmem_limbo_hook": "limbo_hook",
    "xmem_offer": "offer()",
    "xmem_pool_client": "client",
    "xmem_pool_client_info": "client_info",
    "xmem_pool_close": "close()",
    "xmem_pool_device_info": "device_info",
    "xmem_pool_fd": "fd()",
    "xmem_pool_holds": "holds",
    "xmem_pool_poll_fd": "fileno",
    "xmem_pool_reopen": "reopen",
    "xmem_pool_slot_info": "slot_info",
    "xmem_pool_stat": "stat",
    "xmem_preallocate": "preallocate_cpu()",
    "xmem_preallocate with XMEM_MEMORY_CUDA": "preallocate_cuda()",
    "xmem_publish": "publish()",
    "publish: client": "send: client",
    "xmem_release": "release()",
    "xmem_release_on": "release(stream=)",
    "xmem_subscription_stat": "lost",
    "xmem_unsubscribe": "close()",
    "XMEM_STRINGS_VALIDITY": "validity",
    "enum xmem_image_format": "xmem.ImageFormat",
    "enum xmem_dtype": "xmem.dtypes",
    "wait_contents": "wait",
}

#: A message begins with the name of the call, without "xmem_".
WORDS.update({name.removeprefix("xmem_"): word for name, word in WORDS.items()
              if name.startswith("xmem_pool_") and not name.endswith("_options")})

_words = re.compile(r"\b(?:" + "|".join(sorted(WORDS, key=len, reverse=True)) + r")\b")


def python(message: str) -> str:
    """Replace the C names in a message of the library by those of Python."""
    return _words.sub(lambda found: WORDS[found[0]], message)
