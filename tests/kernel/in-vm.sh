#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# One of the programs of this folder in the VM on a debug kernel: prepares that kernel,
# builds the module and the program for it.
#   tests/kernel/in-vm.sh KERNEL PROGRAM [ARGUMENT...]
# VM_APPEND: more words for the kernel's command line.
set -euo pipefail
cd "$(dirname "$0")/../.."
name=$1 program=$2; shift 2
folder=$(tests/vm/kernel.sh "$name" | tail -1)
# shellcheck disable=SC1091
. "$folder/env"
make -s kmod KDIR="$VM_KDIR" KMAKE="$VM_KMAKE" XMEM_DEBUG=y
make -s "build/release/$program"
tests/vm/vm.sh -k "$name" -t 300 -a "${VM_APPEND:-}" -o "build/test-log/$program-$name" \
	-m "build/kmod/$VM_RELEASE/xmem.ko" -- "build/release/$program" "$@"
