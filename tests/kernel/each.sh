#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# each.sh FILE: in the VM, for each line "NAME|MODULE|SECONDS|COMMAND" of FILE loads that xmem.ko,
# runs the command, unloads the module, and says one of
#
#   GREEN NAME          it ended in time with status 0, and its last line counts at least one
#                       test that passed, and none that failed or was skipped
#   RED NAME STATUS     else; 124: it did not end in time. What it said last stands before that
#   STUCK NAME          then the module does not go. Nothing more is run
#
# For check-mutants-kernel.sh, which wants to know of many commands with one boot.
set -uo pipefail
said=$(mktemp)
trap 'rm -f "$said"' EXIT

# What a command has left may be in use a little longer, and nothing tells when it is not.
unload() {
	local name tries
	for name in xmem xmem_test_gpu; do
		for ((tries = 0; tries < 200; tries++)); do
			rmmod "$name" 2>"$said" && continue 2
			sleep 0.1
		done
		cat "$said"
		return 1
	done
}

load() { insmod /run/vm/module.0.ko && insmod "$1" device_files=240:255; }

is_green() {
	tail -n 1 "$said" | grep -qE '^[1-9][0-9]* passed, 0 failed, 0 skipped'
}

unload
while IFS='|' read -r name module seconds command; do
	load "$module" || { echo "RED $name not loaded"; break; }
	timeout -k 5 "$seconds" bash -fc "$command" </dev/null >"$said" 2>&1
	rc=$?
	if [ $rc = 0 ] && is_green; then
		echo "GREEN $name"
	else
		grep -aE '^FAIL' "$said" | head -n 3
		tail -n 3 "$said" | sed 's/^/    /'
		echo "RED $name $rc"
	fi
	unload || { echo "STUCK $name"; break; }
done <"$1"
# as they were, for who unloads them
load /run/vm/module.1.ko || true
