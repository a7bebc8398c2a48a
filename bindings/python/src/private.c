// SPDX-License-Identifier: MIT
/*
 * Guard: private memory. Contents that are held for reading must not be written, but some consumers
 * write them anyway: PyTorch ignores the read-only flag of DLPack and of buffers, and a capsule
 * from before DLPack 1.0 has no such flag. A store into the contents would end a reader by SIGSEGV,
 * and all readers would see a store by the writer.
 *
 * So such a consumer gets memory of xmem_data_private: the pages of the contents, of which the
 * kernel copies each page that is written. This memory belongs to a handle. The guard's handle may
 * go before the memory is given up (forget), so the memory has a handle of its own, a clone.
 */
#include "core.h"

struct xp_hold *xp_guard_private(struct xp_guard *self, void **ret_memory)
{
	struct xmem_buffer *buffer, *clone;
	struct xp_hold *hold;

	if (self->mode == XP_WRITING) {
		PyErr_SetString(PyExc_BufferError, "this file is attached, so nobody may write it, "
				"and it is not published yet: call publish(keep=True) before, or "
				"use numpy.asarray(guard)");
		return NULL;
	}
	for (buffer = xp_guard_begin(self); buffer; buffer = xp_guard_again(self)) {
		Py_BEGIN_ALLOW_THREADS
		clone = xmem_clone(buffer);
		*ret_memory = clone ? xmem_data_private(clone) : NULL;
		if (clone && !*ret_memory)
			xmem_release(clone);
		Py_END_ALLOW_THREADS
		xp_guard_end(self);
		if (!*ret_memory)
			continue;
		hold = xp_hold_new(clone);
		if (!hold) {
			xmem_release(clone);
			PyErr_NoMemory();
		}
		return hold;
	}
	return NULL;
}

/*
 * A consumer of the buffer protocol may ask for writable memory, be refused, and then ask for bytes
 * without a format: torch.frombuffer() does. It writes these bytes, and keeps the owner that the
 * buffer names (Py_buffer.obj), but no buffer. So after a refusal, such bytes are private memory,
 * and their owner is a capsule of their own. If the guard were the owner, a program that keeps the
 * guard object after release() would also keep the memory.
 */
static void drop_capsule(PyObject *capsule)
{
	struct xp_hold *hold = PyCapsule_GetPointer(capsule, NULL);

	Py_BEGIN_ALLOW_THREADS		/* the last handle of a closed pool asks the host */
	xp_hold_put(hold);
	Py_END_ALLOW_THREADS
}

PyObject *xp_guard_private_capsule(struct xp_guard *self, void **ret_memory)
{
	struct xp_hold *hold = xp_guard_private(self, ret_memory);
	PyObject *capsule = hold ? PyCapsule_New(hold, NULL, drop_capsule) : NULL;

	if (hold && !capsule)
		xp_hold_put(hold);
	return capsule;
}
