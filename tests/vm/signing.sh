#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks the section on signing in docs/module.md, in the VM, on a kernel that loads only signed
# modules. The kernel's own modules load. xmem.ko does not load without a signature, nor with that
# of a key which the kernel does not know, and the kernel says why. The load with an enrolled key
# cannot be tested here, because the VM has no firmware with a list of keys.
#   tests/vm/signing.sh                 prepares, and runs itself in the VM
#   tests/vm/signing.sh inside MODULE   the tests
set -uo pipefail
# shellcheck source=tests/vm/common.sh
. "$(dirname "$0")/common.sh"
cd "$repo_dir" || exit 2
passed=0 failed=0

# refused NAME MODULE: insmod says that its key was rejected, and does not load it
refused() {
	local says
	says=$(insmod "$2" 2>&1)
	if grep -q 'Key was rejected by service\|Required key not available' <<<"$says" &&
			! grep -q '^xmem ' /proc/modules; then
		echo "PASS $1: ${says##*: }"; passed=$((passed + 1))
	else
		echo "FAIL $1: insmod says '$says'"; failed=$((failed + 1))
	fi
}

inside() {
	local work
	work=$(mktemp -d)
	if modprobe loop && grep -q '^loop ' /proc/modules; then
		echo "PASS the kernel's own module loads"; passed=$((passed + 1))
	else
		echo "FAIL the kernel's own module does not load"; failed=$((failed + 1))
	fi
	refused unsigned "$1"
	openssl req -new -x509 -newkey rsa:2048 -nodes -subj /CN=nobody/ -days 2 -outform DER \
		-keyout "$work/key" -out "$work/certificate" 2>/dev/null
	cp "$1" "$work/xmem.ko"
	/usr/lib/linux-kbuild-6.1/scripts/sign-file sha256 "$work/key" "$work/certificate" \
		"$work/xmem.ko"
	if [ "$(modinfo -F signer "$work/xmem.ko")" = nobody ]; then
		echo "PASS sign-file signs"; passed=$((passed + 1))
	else
		echo "FAIL sign-file signs nothing"; failed=$((failed + 1))
	fi
	refused signed-by-a-stranger "$work/xmem.ko"
	echo "$passed passed, $failed failed, 0 skipped"
	[ $failed = 0 ]
}

[ "${1:-}" != inside ] || { inside "$2"; exit; }
need qemu-system-x86_64:qemu-system-x86 openssl:openssl
module=$(tests/vm/module.sh debian-6.1) || exit
exec "$vm_dir/vm.sh" -k debian-6.1 -t 120 -a module.sig_enforce=1 -o build/test-log/signing -- \
	tests/vm/signing.sh inside "$repo_dir/$module"
