#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that the README is true. Its C programs equal those of examples/ word for word, except for
# the licence line. They compile by the line that it shows, against the files that make install
# installs, and so do the programs that it names in examples/. All files that it names exist, and it
# is short. bindings/python/tests/test_docs.py runs its Python.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/build/readme
rm -rf "$work"
mkdir -p "$work"
die() { echo "FAIL $*"; exit 1; }

lines=$(wc -l <README.md)
[ "$lines" -le 128 ] || die "README.md has $lines lines, more than 128"

# program NUMBER [LANGUAGE]: prints the README's block of C with that number, from 1 on.
program() {
	awk -v wanted="$1" -v language="${2:-c}" '
		$0 == "```" language { on = ++block == wanted; next }
		/^```$/ { on = 0 }
		on' README.md
}

programs=(subscriber)
named=(publisher)
[ "$(grep -c '^```c$' README.md)" = ${#programs[@]} ] ||
	die "README.md does not have ${#programs[@]} programs in C"
for i in "${!programs[@]}"; do
	name=${programs[i]}
	{ echo '/* SPDX-License-Identifier: MIT */'; program $((i + 1)); } >"$work/$name.c"
	diff -u "examples/$name.c" "$work/$name.c" ||
		die "program $((i + 1)) of README.md differs from examples/$name.c"
done

{ echo '/* SPDX-License-Identifier: MIT */'; program 1 cpp; } >"$work/subscriber.cpp"
diff -u examples/subscriber.cpp "$work/subscriber.cpp" ||
	die "the program in C++ of README.md differs from examples/subscriber.cpp"

# With another PREFIX, programs would be linked again while other suites run them.
make install DESTDIR="$work/root" >/dev/null
pc=$(find "$work/root" -name xmem.pc)
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$work/root
line=$(grep -oE '`cc -o subscriber [^`]*`' README.md | tr -d '`')
[ -n "$line" ] || die "README.md does not say how to compile its programs"
cc() { command cc -Wall -Wextra -Werror "$@"; }
for name in "${named[@]}"; do
	grep -qF "\`examples/$name.c\`" README.md || die "README.md does not name examples/$name.c"
	cp "examples/$name.c" "$work"
done
for name in "${programs[@]}" "${named[@]}"; do
	(cd "$work" && eval "${line//subscriber/$name}") ||
		die "$name does not compile as README.md says"
	[ -x "$work/$name" ] || die "README.md's line does not make $name"
done

(cd "$work" && eval "${line//cc -o subscriber subscriber.c/c++ -std=c++17 -Wall -Wextra -Werror \
	-o subscriber++ subscriber.cpp}") || die "subscriber.cpp does not compile"

folders='docs|core|kmod|lib|daemon|cli|include|tests|scripts|bench|bindings|examples|udev'
grep -oE "\`($folders)/[A-Za-z0-9_./-]*\`" README.md | tr -d '`' | sort -u | while read -r path; do
	[ -e "$path" ] || die "README.md names $path, which is not there"
done
