/* SPDX-License-Identifier: MIT */
/*
 * Handles that streams drop. A stream writes a word after the work that uses the buffer, and the
 * library drops the handle when it sees that word. A host function would tell the library at once,
 * but on a GPU that several processes share it costs more than 100 us: the GPU changes to its
 * context and back (docs/cuda.md has the times).
 *
 * The words are in one page of this process, which only its own streams write. The library looks at
 * them whenever the program releases another buffer on a stream. A thread of the library looks too,
 * so a handle is dropped even if the program makes no call. The thread ends when no word has been
 * in use for a second.
 */
#ifndef XMEM_GPU_PASSED_H
#define XMEM_GPU_PASSED_H

#include "lib/base/handle.h"
#include "lib/cuda/device.h"

/*
 * Let the stream write a word after its present work. When the library sees the word it clears
 * XL_LEAVING of @buffer and calls @drop, unless the bit is clear already. All calls name one
 * function as @drop; it gets the mode from before, is called in any thread under no lock, and calls
 * no driver. The call may come before this function returns. Returns the driver's result.
 * CUDA_ERROR_NOT_SUPPORTED: this GPU writes no words, or all words are in use; the caller uses a
 * host function.
 */
CUresult xl_passed_put(struct xl_gpu *gpu, CUstream stream,
		       void (*drop)(struct xmem_buffer *buffer, u32 mode),
		       struct xmem_buffer *buffer);

/* The stream never writes the word of @buffer, if there is one. */
void xl_passed_forget(const struct xmem_buffer *buffer);

/* Drop the handles whose words are written. Under no lock. */
void xl_passed_look(void);

#endif
