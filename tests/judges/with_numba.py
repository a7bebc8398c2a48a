# SPDX-License-Identifier: MIT
"""The modules of numba-cuda's own tests that need a driver, but no compiler for GPUs."""

import importlib
import sys
import unittest

import lines

MODULES = [
    "cudapy.test_ipc",
    "cudapy.test_multigpu",
    "cudapy.test_stream_api",
    "cudadrv.test_array_attr",
    "cudadrv.test_context_stack",
    "cudadrv.test_cuda_auto_context",
    "cudadrv.test_cuda_devicerecord",
    "cudadrv.test_cuda_ndarray",
    "cudadrv.test_detect",
    "cudadrv.test_reset_device",
    "cudadrv.test_runtime",
    "cudadrv.test_events",
    "cudadrv.test_cuda_memory",
    "cudadrv.test_deallocations",
    "cudadrv.test_emm_plugins",
    "cudadrv.test_host_alloc",
    "cudadrv.test_pinned",
    "cudadrv.test_init",
    "cudadrv.test_select_device",
]

# Tests that may fail on the fake driver, with reasons.
COMPILES = "it launches a kernel of its own, which has no twin here"
KNOWN = {
    "cudapy.test_multigpu.TestMultiGPUContext.test_multigpu_context": COMPILES,
    "cudapy.test_multigpu.TestMultiGPUContext.test_with_context": COMPILES,
    "cudadrv.test_context_stack.Test3rdPartyContext.test_cudajit_in_attached_primary_context":
        COMPILES,
    "cudadrv.test_cuda_devicerecord.TestRecordDtypeWithStructArrays.test_structured_array2":
        COMPILES,
    "cudadrv.test_cuda_devicerecord.TestRecordDtypeWithStructArrays.test_structured_array3":
        COMPILES,
    "cudadrv.test_cuda_devicerecord.TestRecordDtypeWithStructArrays.test_structured_array4":
        COMPILES,
    "cudadrv.test_cuda_ndarray.TestCoreContiguous.test_device_array_like_2d_f_transpose": COMPILES,
    "cudadrv.test_cuda_ndarray.TestCoreContiguous.test_device_array_like_2d_transpose": COMPILES,
    "cudadrv.test_cuda_ndarray.TestCudaNDArray.test_devicearray_transpose_T": COMPILES,
    "cudadrv.test_cuda_ndarray.TestCudaNDArray.test_devicearray_transpose_ok": COMPILES,
    "cudadrv.test_cuda_ndarray.TestRecarray.test_recarray": COMPILES,
}


def main():
    suite = unittest.TestSuite()
    for name in MODULES:
        if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
            continue
        module = importlib.import_module("numba.cuda.tests." + name)
        suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(module))
    return lines.run(suite, KNOWN)


if __name__ == "__main__":
    sys.exit(main())
