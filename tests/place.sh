#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Prints the folder in which the tests run. Usually that is this tree. If this tree cannot be
# written, or make, kbuild or cmake cannot handle its path (a blank, for example), then this script
# copies the tree, says why on standard error, and prints the folder of the copy. The copy is in a
# subfolder of $XMEM_TEST_PLACE. If that is not set, it is below $TMPDIR, and without that below
# /var/tmp. The next run updates the copy and keeps its build/, so it builds only what has changed.
set -euo pipefail
unset CDPATH
cd "$(dirname "$0")/.."
here=$(pwd -P)
plain='^[A-Za-z0-9_./+,@=-]*$'

if ! [[ $here =~ $plain ]]; then
	why='the path of this tree has characters that make and kbuild do not take'
elif ! mkdir -p build 2>/dev/null || [ -n "$(find build -maxdepth 1 ! -writable 2>&1)" ]; then
	why='in this tree, or in its build/, nothing can be written'
else
	echo "$here"
	exit
fi

# Other users may write to /var/tmp, so the folder must belong to this user.
folder=${XMEM_TEST_PLACE:-${TMPDIR:-/var/tmp}}/xmem-test-$(id -u)
[[ $folder =~ $plain ]] || { echo "place.sh: $folder has such characters, too" >&2; exit 2; }
mkdir -p "$folder" && chmod 700 "$folder" && [ -O "$folder" ] && [ ! -L "$folder" ] ||
	{ echo "place.sh: $folder is no folder of this user" >&2; exit 2; }
place=$folder/$(cksum <<<"$here" | cut -d' ' -f1)
mkdir -p "$place"

# In a worktree .git is a file, so the copy gets a repository of its own.
skip=''
[ ! -f .git ] || skip=./.git

# files FOLDER: for each file its name, then values that change when the file changes
files() {
	(cd "$1" && find . '(' -path ./build -o -path "$skip" ')' -prune -o \
		'(' -type f -o -type l ')' \
		-printf '%p\t%s %T@ %l' '(' -perm -u+x -printf 'x\n' -o -printf '\n' ')') |
		LC_ALL=C sort
}

# update FROM TO: removes files that have gone, copies files that differ, and leaves all others,
# which keep their times.
update() {
	local work
	mkdir -p "$2"
	work=$(mktemp -d)
	files "$1" >"$work/from"
	files "$2" >"$work/to"
	LC_ALL=C comm -13 <(cut -f1 "$work/from") <(cut -f1 "$work/to") | tr '\n' '\0' |
		(cd "$2" && xargs -0r rm -f)
	LC_ALL=C comm -23 "$work/from" "$work/to" | cut -f1 |
		tar -C "$1" -c --ignore-failed-read --format=posix --mode=u+rwX -T - |
		tar -C "$2" -x --no-same-owner
	rm -r "$work"
}

update . "$place"
if [ -n "$skip" ]; then
	update "$(git rev-parse --git-common-dir)" "$place/.git"
	cp "$(git rev-parse --git-dir)"/{HEAD,index} "$place/.git/"
fi
echo "The tests run in a copy, $place, where their logs are, too: $why." >&2
echo "$place"
