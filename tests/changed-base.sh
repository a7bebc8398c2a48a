#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Prints the base commit. `make test` treats the files that differ from it as changed. It is
#   1. XMEM_BASE, if that is set;
#   2. else the newest commit that this branch shares with its upstream branch, if it is not HEAD;
#   3. else the newest commit that is at least 8 hours, a working day, older than HEAD;
#   4. else the empty tree, so that all files differ.
# Without git or a repository the status is 1. Then model/run.sh checks all models, and
# check-mutants.sh tries only bugs that it draws at random. It is 2 if XMEM_BASE is no commit.
#   tests/changed-base.sh           prints the commit's hash
#   tests/changed-base.sh --files   prints the files that differ from it, with uncommitted changes
#                                   and new files that git does not ignore
set -euo pipefail
unset CDPATH
cd "$(dirname "$0")/.."

head=$(git rev-parse --verify --quiet 'HEAD^{commit}' 2>/dev/null) || exit 1
if [ -n "${XMEM_BASE:-}" ]; then
	base=$(git rev-parse --verify --quiet "$XMEM_BASE^{commit}") ||
		{ echo "changed-base.sh: XMEM_BASE=$XMEM_BASE is no commit" >&2; exit 2; }
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
