/* SPDX-License-Identifier: MIT */
/*
 * Handles that streams drop. A stream writes a word after the work that uses the buffer, and the
 * library drops the handle when it sees that word. A host function would tell the library at once,
 * but costs 50 to 190 us on a GPU that several processes share (docs/cuda.md): without MPS, the GPU
 * changes to the stream's context and back.
 *
 * The words are in one page of this process, which only its own streams write. The library looks at
 * the words whenever the program releases another buffer on a stream. A thread of the library looks
 * at them too, so a handle is dropped even if the program makes no call. The thread ends when no
 * word has been in use for a second.
 */
#ifndef XMEM_GPU_PASSED_H
#define XMEM_GPU_PASSED_H

#include "lib/base/handle.h"
#include "lib/cuda/device.h"

/*
 * Let the stream write a word after all work that is in the stream at the call. When the library
 * sees the word, it clears XL_LEAVING of @buffer and calls @drop, unless the bit is clear already.
 * All callers must give one function as @drop. It is called
 * in any thread, under no lock but one of passed.c, perhaps before this function returns, and must
 * not call the driver. Returns the driver's result. After CUDA_ERROR_NOT_SUPPORTED (this GPU writes
 * no words, or all words are in use), use a host function.
 */
CUresult xl_passed_put(struct xl_gpu *gpu, CUstream stream,
		       void (*drop)(struct xmem_buffer *buffer),
		       struct xmem_buffer *buffer);

/* Forget the word of @buffer, if any: its stream will never write the word. */
void xl_passed_forget(const struct xmem_buffer *buffer);

/*
 * Drop the handles whose words are written. When this function returns, drops that other threads
 * have begun before are done, too. Call it under no lock.
 */
void xl_passed_look(void);

#endif
