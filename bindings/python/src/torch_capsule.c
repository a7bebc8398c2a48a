// SPDX-License-Identifier: MIT
/*
 * Capsules of DLPack, from which torch takes memory.
 */
#include "torch.h"

/* A consumer that has taken the contents has renamed the capsule. */
static void drop_capsule(PyObject *capsule)
{
	struct xt_dlpack *dlpack;

	if (!PyCapsule_IsValid(capsule, "dltensor"))
		return;
	dlpack = PyCapsule_GetPointer(capsule, "dltensor");
	dlpack->deleter(dlpack);
}

PyObject *xt_capsule(struct xt_dlpack *dlpack)
{
	PyObject *capsule = PyCapsule_New(dlpack, "dltensor", drop_capsule);

	if (!capsule)
		dlpack->deleter(dlpack);
	return capsule;
}
