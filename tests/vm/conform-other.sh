#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The conformance suite in the VM on another kernel than the usual one: prepares that
# kernel, builds the module for it, and the one that stands for a GPU's driver, runs the
# tests named.
#   tests/vm/conform-other.sh KERNEL [PATTERN...]
# VM_LIMIT: seconds, 600 unless told.
set -euo pipefail
cd "$(dirname "$0")/../.."
name=$1; shift
make -s FLAVOUR=test build/test/conform
module=$(tests/vm/module.sh "$name" XMEM_DEBUG=y)
gpu=$(tests/kernel/gpu/module.sh "$name")
tests/vm/vm.sh -k "$name" -t "${VM_LIMIT:-600}" -o "build/test-log/vm-$name" -m "$gpu" \
	-m "$module" -p "device_files=240:255" -- \
	env XMEM_BACKEND=kernel FAKECUDA_DEVICE_FILE=/dev/xmem-test-gpu build/test/conform "$@"
