#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The README is true: its example is examples/ten_lines.c word for word and compiles as
# shown, it names no file that is not there, and it is short enough to be read.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build/readme
lines=$(wc -l < README.md)
[ "$lines" -le 120 ] || { echo "FAIL README.md has $lines lines, more than 120"; exit 1; }
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' README.md > build/readme/example.c
diff -u examples/ten_lines.c build/readme/example.c ||
	{ echo 'FAIL the example differs from examples/ten_lines.c'; exit 1; }
gcc -Wall -Wextra -Werror -Iinclude build/readme/example.c build/release/libxmem.a -pthread \
	-o build/readme/example
folders='docs|core|kmod|lib|daemon|cli|include|tests|scripts|bench|examples|udev'
grep -oE "\`($folders)/[A-Za-z0-9_./-]*\`" README.md | tr -d '`' | sort -u |
while read -r path; do
	[ -e "$path" ] || { echo "FAIL README.md names $path, which is not there"; exit 1; }
done
