#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# each.sh SECONDS FILE: runs each line of FILE as a command, in the VM, and says after each
# "GREEN COMMAND" or "NOT GREEN COMMAND". Green: it ended in time with status 0, and its last
# line counts at least one test that passed, and none that failed or was skipped. For
# check-mutants-kernel.sh, which wants to know of many commands with one boot. Each finds modules
# that have just been loaded: of some settings and files of the command before it much would stay.
set -uo pipefail
seconds=$1 said=$(mktemp)
trap 'rm -f "$said"' EXIT
# What the last command has left may be in use a little longer, and nothing tells when it is not.
fresh_modules() {
	local name tries
	for name in xmem xmem_test_gpu; do
		for ((tries = 0; tries < 200; tries++)); do
			rmmod "$name" 2>"$said" && break
			sleep 0.1
		done
	done
	insmod /run/vm/module.0.ko && insmod /run/vm/module.1.ko device_files=240:255
}

while IFS= read -r command; do
	fresh_modules || cat "$said"
	timeout -k 5 "$seconds" bash -fc "$command" </dev/null >"$said" 2>&1
	rc=$?
	if [ $rc = 0 ] && tail -n 1 "$said" |
		grep -qE '^[1-9][0-9]* passed, 0 failed, 0 skipped'; then
		echo "GREEN $command"
	else
		tail -n 5 "$said" | sed 's/^/    /'
		echo "NOT GREEN $command"
	fi
done <"$2"
