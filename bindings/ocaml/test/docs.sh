#!/bin/sh
# SPDX-License-Identifier: MIT
# docs.sh PAGE: makes a module of the blocks of OCaml in a page. Each section is a functor, so that
# it runs when its test does. Without a page there are no tests.
set -eu
[ -f "$1" ] || { echo 'let tests = []'; exit 0; }
awk -v page="docs/${1##*/}" '
/^## /  { title = substr($0, 4); sections++; open_ = 0 }
/^```$/ { if (inside) { inside = 0; next } }
inside  { print; next }
/^```ocaml$/ {
	if (!open_) {
		if (count) print "end"
		count++
		titles[count] = title
		open_ = 1
		print "module Section_" count " () = struct"
	}
	print "# " NR + 1 " \"" page "\""
	inside = 1
}
END {
	if (count) print "end"
	print "let tests = ["
	call = "Common.test \"%s\" (fun () -> let module M = Section_%d () in ());\n"
	for (i = 1; i <= count; i++)
		printf call, titles[i], i
	print "]"
}' "$1"
