#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The commit since which "make test" looks for changes: XMEM_BASE, else where this branch leaves its
# upstream, else the last commit that is a working day (8 hours) older than HEAD. The empty tree
# where there is none. Status 1 without git: then everything counts as changed.
#   tests/changed-base.sh           its name
#   tests/changed-base.sh --files   the files that differ from it, also those not committed yet
set -euo pipefail
cd "$(dirname "$0")/.."

head=$(git rev-parse --verify --quiet 'HEAD^{commit}' 2>/dev/null) || exit 1
if [ -n "${XMEM_BASE:-}" ]; then
	base=$(git rev-parse --verify "$XMEM_BASE^{commit}")
else
	base=$(git merge-base HEAD '@{upstream}' 2>/dev/null || true)
	[ -n "$base" ] && [ "$base" != "$head" ] || base=$(git rev-list -1 \
		--before="$(($(git log -1 --format=%ct) - 8 * 3600))" HEAD)
	[ -n "$base" ] || base=$(git hash-object -t tree /dev/null)
fi
if [ "${1:-}" = --files ]; then
	{ git diff --no-renames --name-only "$base"; git ls-files -o --exclude-standard; } | sort -u
else
	echo "$base"
fi
