#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# One of the programs of this folder in the VM: prepares that kernel, builds the module and
# the program for it, and the module that stands for a GPU's driver.
#   tests/kernel/in-vm.sh KERNEL PROGRAM [ARGUMENT...]
# VM_APPEND: more words for the kernel's command line.
set -euo pipefail
cd "$(dirname "$0")/../.."
name=$1 program=$2; shift 2
module=$(tests/vm/module.sh "$name" XMEM_DEBUG=y)
gpu=$(tests/kernel/gpu/module.sh "$name")
make -s "build/release/$program"
tests/vm/vm.sh -k "$name" -t 300 -a "${VM_APPEND:-}" -o "build/test-log/$program-$name" \
	-m "$gpu" -m "$module" -p "device_files=195:255,240:255" -- "build/release/$program" "$@"
