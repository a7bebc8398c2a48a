#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes include/xmem/api.h and lib/api_list.h, the table of all public functions, from the headers
# themselves: include/xmem.h and include/xmem/*.h. The build runs it; both files are also checked
# in, and are written only when they change.
#
#   scripts/api.sh           writes them
#   scripts/api.sh --check   status 1 if they are not what the headers say
#   scripts/api.sh --list    one line for each function: name, header, since, rule for threads
#
# A public function is a declaration xmem_NAME(...) below a comment, which says "Since: X.Y". They
# are sorted by that, and then by name, so that a later release adds its own at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

headers=(include/xmem.h)
for header in include/xmem/*.h; do
	case $header in
	*/api.h | */uapi.h) ;;
	*) headers+=("$header") ;;
	esac
done

# functions: a line for each, with tabs between the order of its release, its name, its header,
# its release, its rule for threads, and its declaration.
functions() {
	awk '
	function complain(text) {
		printf "api.sh: %s: %s\n", FILENAME, text >"/dev/stderr"
		bad = 1
	}
	# What a comment says behind WORD.
	function says(comment, word,	at) {
		at = index(comment, word ": ")
		return at ? substr(comment, at + length(word) + 2) : ""
	}
	function declared(text,		name, since, part, rule) {
		gsub(/[ \t]+/, " ", text)
		sub(/^ /, "", text)
		sub(/ ?__attribute__.*$/, "", text)
		if (text ~ /^(static|typedef) / || !match(text, /xmem_[a-z0-9_]+\(/))
			return
		name = substr(text, RSTART, RLENGTH - 1)
		gsub(/[ \t]+/, " ", comment)
		since = says(comment, "Since")
		if (!match(since, /^[0-9]+\.[0-9]+/)) {
			complain(name " has no comment above it that says \"Since: X.Y.\"")
			return
		}
		since = substr(since, 1, RLENGTH)
		split(since, part, ".")
		rule = says(comment, "Threads")
		if (!rule && match(comment, /, Threads: as /))
			rule = substr(comment, RSTART + 11)
		sub(/ (Ownership|Since): .*/, "", rule)
		printf "%d\t%s\t%s\t%s\t%s\t%s\n", part[1] * 10000 + part[2], name, FILENAME,
			since, rule ? rule : "-", text
	}
	FNR == 1 { comment = text = ""; depth = inside = tail = 0 }
	{ line = $0 }
	# The rest of a comment that stands behind a declaration.
	tail {
		end = index(line, "*/")
		if (!end)
			next
		tail = 0
		line = substr(line, end + 2)
	}
	# A comment that begins a line is kept.
	!inside && !text && line ~ /^\/\*/ { comment = ""; inside = 1 }
	inside {
		end = index(line, "*/")
		if (end) {
			inside = 0
			line = substr(line, 1, end - 1)
		}
		sub(/^ *\/?\*+/, "", line)
		comment = comment " " line
		next
	}
	{
		gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
		tail = index(line, "/*")
		if (tail)
			line = substr(line, 1, tail - 1)
	}
	# Directives, with the lines that continue them.
	continued || line ~ /^[ \t]*#/ { continued = line ~ /\\$/; next }
	line ~ /^[ \t]*$/ { if (!text) comment = ""; next }
	line ~ /^extern "C" \{$/ || (line ~ /^\}$/ && !depth) { next }
	{
		text = text " " line
		depth += gsub(/\{/, "{", line) - gsub(/\}/, "}", line)
		if (!depth && line ~ /[;}][ \t]*$/) {
			if (text !~ /\{/ && text ~ /;[ \t]*$/)
				declared(substr(text, 1, index(text, ";") - 1))
			text = comment = ""
		}
	}
	END { exit bad }' "${headers[@]}" | sort -t "$(printf '\t')" -k 1,1n -k 2,2
}

# members: the declarations of the struct, each in lines of at most 100 columns.
members() {
	awk -F '\t' '
	# A tab is 8 columns, and the lines that continue one begin with three.
	function put(text,	room, at) {
		room = 100 - 8
		printf "\t"
		while (length(text) > room) {
			for (at = room; at && substr(text, at, 2) != ", "; at--)
				;
			if (!at)
				break
			print substr(text, 1, at)
			text = substr(text, at + 2)
			printf "\t\t\t"
			room = 100 - 24
		}
		print text
	}
	$4 != since { since = $4; printf "\n\t/* since %s */\n", since }
	{
		at = index($6, $2 "(")
		put(substr($6, 1, at - 1) "(*" substr($2, 6) ")" \
			substr($6, at + length($2)) ";")
	}'
}

make_header() {
	cat <<'C'
/* SPDX-License-Identifier: MIT */
/*
 * The table of all public functions, through which plug-ins and bindings reach the one copy of
 * the library in a process. A part of xmem.h. Made by scripts/api.sh from the other headers: edit
 * those. Each member is the function xmem_NAME, with the same rules.
 *
 *	const struct xmem_api *xmem = xmem_get_api(XMEM_API_VERSION);
 *	struct xmem_pool *pool = xmem->pool_open("camera", NULL);
 *
 * A plug-in gets the table from the program that loads it, or finds xmem_get_api by dlsym. It
 * need not be linked with libxmem then, and handles of one plug-in are valid in another.
 */
#ifndef XMEM_API_H
#define XMEM_API_H

#include "../xmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table that this header describes, for xmem_get_api. */
#define XMEM_API_VERSION	(XMEM_VERSION_MAJOR << 16 | XMEM_VERSION_MINOR)

/* Has the table the function xmem_NAME? Ask for those that a later release has added. */
#define XMEM_API_HAS(api, name) \
	((api)->struct_size >= offsetof(struct xmem_api, name) + sizeof((api)->name))

struct xmem_api {
	uint32_t abi_version;		/* XMEM_API_VERSION of the library */
	uint32_t struct_size;		/* bytes of the library's table */
C
	members
	cat <<'C'
};

/*
 * Get the table of the library's functions.
 * @version: XMEM_API_VERSION, as the caller was compiled.
 *
 * While the major version is 0 the versions must be equal. From 1.0 on tables only grow, so one
 * of the same major version and a lower or equal minor one is served too.
 *
 * Returns: the table, or NULL: ENOTSUP (the library's table is another version's; the message
 * says which).
 * Ownership: the library's, valid as long as the library is loaded, which is for ever.
 * Threads: any. Since: 0.4.
 */
const struct xmem_api *xmem_get_api(uint32_t version);

#ifdef __cplusplus
}
#endif
#endif
C
}

make_list() {
	cat <<'C'
/* SPDX-License-Identifier: MIT */
/*
 * The names of all public functions but xmem_get_api, in the order of struct xmem_api, for api.c
 * and the tests. Made by scripts/api.sh.
 */
#ifndef XMEM_API_LIST_H
#define XMEM_API_LIST_H

C
	awk -F '\t' 'BEGIN { printf "#define XL_API(X)" }
		{ printf " \\\n\tX(%s)", substr($2, 6) }
		END { print "\n\n#endif" }'
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
functions >"$work/functions"
[ -s "$work/functions" ] || { echo "api.sh: the headers declare no function" >&2; exit 1; }

if [ "${1:-}" = --list ]; then
	cut -f 2-5 "$work/functions"
	exit
fi
make_header <"$work/functions" >"$work/api.h"
make_list <"$work/functions" >"$work/api_list.h"
bad=0
for file in include/xmem/api.h lib/api_list.h; do
	cmp -s "$work/${file##*/}" "$file" && continue
	if [ "${1:-}" = --check ]; then
		echo "FAIL $file is not what the headers say: run scripts/api.sh, and commit it"
		bad=1
	else
		# Another make may read it just now: it sees the old file, or the new one.
		cp "$work/${file##*/}" "$file.$$"
		mv "$file.$$" "$file"
	fi
done
exit $bad
