// SPDX-License-Identifier: MIT
/*
 * Information about the driver and its devices, and the last result of the driver that was an
 * error.
 */
#include "core.h"

PyObject *xp_cuda_query(PyObject *module, PyObject *unused)
{
	struct xp_state *state = PyModule_GetState(module);
	struct xmem_cuda_info info = { .size = sizeof(info) };
	int err;

	do {
		XP_BEGIN_CUDA
		err = xmem_cuda_query(&info);
		XP_END_CUDA
	} while (err && xp_again(state, XMEM_FOREVER, NULL));
	return err ? NULL : xp_layout_object(state->layouts[XP_CUDA_INFO], XP_CUDA_INFO, &info,
					     info.size);
}

PyObject *xp_cuda_device_query(PyObject *module, PyObject *number)
{
	struct xp_state *state = PyModule_GetState(module);
	struct xmem_cuda_device_info info = { .size = sizeof(info) };
	long device = PyLong_AsLong(number);
	int err;

	if (device == -1 && PyErr_Occurred())
		return NULL;
	if (device != (int)device)
		device = -1;		/* the library says that there is none of that number */
	do {
		XP_BEGIN_CUDA
		err = xmem_cuda_device_query(device, &info);
		XP_END_CUDA
	} while (err && xp_again(state, XMEM_FOREVER, NULL));
	return err ? NULL : xp_layout_object(state->layouts[XP_CUDA_DEVICE_INFO],
					     XP_CUDA_DEVICE_INFO, &info, info.size);
}

/* The driver's last result, or None. */
PyObject *xp_cuda_last_result(PyObject *module, PyObject *unused)
{
	struct xmem_error last = XMEM_INIT(last);

	xmem_peek_last_error(&last);
	return last.cuda_result ? Py_BuildValue("is", last.cuda_result, last.cuda_name) :
				  Py_NewRef(Py_None);
}

PyObject *xp_clear_last_error(PyObject *module, PyObject *unused)
{
	xmem_clear_last_error();
	Py_RETURN_NONE;
}

/* The package calls it when the interpreter begins to end. */
PyObject *xp_end_later(PyObject *module, PyObject *unused)
{
	struct xp_state *state = PyModule_GetState(module);

	xp_later_end(state->later);
	Py_RETURN_NONE;
}
