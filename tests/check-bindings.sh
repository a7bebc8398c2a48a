#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks the description of the C API and the files made from it. bindings/api.json matches the
# headers, the files made from it match it, the manual pages have no warnings, and structs become
# Python objects with the right values. The extraction also runs on headers that it has not seen,
# and on broken ones, about which it must complain with file and name.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
bad=0
complain() { echo "FAIL $*"; bad=1; }

# Another Python may precede the one that Debian's python3-pycparser belongs to.
for python in python3 /usr/bin/python3; do
	"$python" -c 'import pycparser' 2>/dev/null && break
done

# ---- nothing has drifted

"$python" bindings/extract.py --check || bad=1
"$python" bindings/generate.py --check || bad=1
wide=$(awk 'length > 100' bindings/api.json | wc -l)
[ "$wide" = 0 ] || complain "bindings/api.json has $wide long lines"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/lib" "$work/bindings"
cp -r include "$work"
cp bindings/*.py bindings/api.h.in "$work/bindings"
cp include/xmem.h "$work/xmem.h"

# try TEXT: extracts from a further header with that text. $said has the messages.
try() {
	printf '%s\n' "$1" >"$work/include/xmem/zz_more.h"
	sed 's|^#include "xmem/api.h"|#include "xmem/zz_more.h"\n&|' "$work/xmem.h" \
		>"$work/include/xmem.h"
	rm -f "$work/bindings/api.json"
	said=$({ "$python" "$work/bindings/extract.py" &&
		"$python" "$work/bindings/generate.py"; } 2>&1)
}
ask() { jq -r "$1" "$work/bindings/api.json"; }
is() { [ "$(ask "$1")" = "$2" ] || complain "$1 is '$(ask "$1")', not '$2'"; }

# ---- a header that it has not seen

try '/* SPDX-License-Identifier: MIT */
/*
 * More.
 * And more.
 */
struct xmem_zz { int32_t member[3];	/* what it is; since 0.4 */ };	/* xmem_zz_no(1);
						 * Since: 0.1 */
typedef void xmem_zz_function(void *user);
#define XMEM_ZZ_ONE	(1u << 0)	/* the first */
#define XMEM_ZZ_TEXT	"a text"
enum xmem_zz_kind { XMEM_KIND_A = 7, XMEM_KIND_B };
/*
 * Do it. At once.
 * @user: for XMEM_ZZ_*.
 * Returns: 0; -ENOENT: there is none (at all); EPERM (no), -EBADF; or as xmem_get.
 * Since: 0.5; before: no.
 */
int xmem_zz_hook(struct xmem_pool *pool, void (*fn)(void *user, uint64_t bytes), void *user)
	__attribute__((warn_unused_result));
/*
 * Do it earlier.
 * Returns: it, or NULL:
 *	EAGAIN, EIO  never
 *	EINTR	so that it is
 *		made again
 * Ownership: the caller calls xmem_release. Threads: as xmem_get. Since: 0.1.
 */
struct xmem_zz *xmem_zz_early(uint64_t first_of_many, uint64_t second_of_many, uint64_t third,
			      int fourth);
static inline int xmem_zz_inline(void) { return 0; }' || complain "a good header: $said"
is '.table[-1]' xmem_zz_hook
is '[.functions[].name | select(test("zz_(no|inline|fn)"))] | length' 0
hook='.functions[] | select(.name == "xmem_zz_hook")'
is "$hook | .purpose" 'Do it.'
is "$hook | .text" 'At once.'
is "$hook | .threads" any
is "$hook | .since + .later" '0.5before: no'
is "$hook | .parameters[1].type" 'void (*)(void *user, uint64_t bytes)'
is "$hook | .parameters[2].text" 'for XMEM_ZZ_*.'
is "$hook | [.errors[] | .names[0] + \" \" + .text] | join(\";\")" \
	'ENOENT there is none (at all);EPERM no;EBADF '
is "$hook | .raises | join(\" \")" 'EACCES EAGAIN EBADF EINVAL ENOENT EOVERFLOW EPERM ESTALE'
early='.functions[] | select(.name == "xmem_zz_early")'
is "$early | .ended_by[0]" xmem_release
is "$early | [.errors[] | (.names | join(\"+\")) + \" \" + .text] | join(\";\")" \
	'EAGAIN+EIO never;EINTR so that it is made again'
field='.structs[] | select(.name == "xmem_zz") | .fields[0]'
is "$field | [.type, .bytes, .count, .kind, .since, .text] | join(\"|\")" \
	'int32_t [3]|12|3|signed|0.4|what it is'
is '.flags[] | select(.prefix == "XMEM_ZZ_") | .constants[0] | .name + .text' \
	'XMEM_ZZ_ONEthe first'
is '.constants[] | select(.name == "XMEM_ZZ_TEXT") | .value' 'a text'
is '.enums[] | select(.name == "xmem_zz_kind") | .constants[1].value' 8
is '.callbacks[] | select(.name == "xmem_zz_function") | .parameters[0].name' user
[ "$(tail -3 "$work/lib/api_list.h" | head -1)" = $'\tX(zz_hook)' ] ||
	complain 'the newest function is not the last of lib/api_list.h'
grep -qx $'\t\txmem_zz_early;' "$work/lib/libxmem.map" || complain 'the map lacks xmem_zz_early'
[ -z "$(expand -t 8 "$work/include/xmem/api.h" | awk 'length > 100')" ] ||
	complain 'api.h has long lines'
echo '#include <xmem.h>' | gcc -Werror -fsyntax-only -x c -I"$work/include" - 2>"$work/log" ||
	complain "the table that is made does not compile: $(head -3 "$work/log")"

# A table from before the renaming of a type is no obstacle.
echo 'syntax error' >"$work/include/xmem/api.h"
"$python" "$work/bindings/extract.py" 2>"$work/log" || complain "a stale api.h: $(<"$work/log")"
"$python" "$work/bindings/generate.py" --check >"$work/log" && complain '--check takes any api.h'
grep -q '^FAIL include/xmem/api.h is not' "$work/log" || complain "drift: $(<"$work/log")"
sed -i 's/"version"/"version_"/' "$work/bindings/api.json"
"$python" "$work/bindings/extract.py" --check >"$work/log" && complain '--check takes any api.json'
grep -q '^FAIL bindings/api.json is not' "$work/log" || complain "drift: $(<"$work/log")"

# From 0.9 on, nothing may go that a program relies on: a field, value, parameter or position.
pushd "$work" >/dev/null || exit 2
mkdir -p docs/abi
cp "$OLDPWD/bindings/api.json" bindings/api.json
sed -i 's/^ "version": "[^"]*"/ "version": "0.9.0"/' bindings/api.json
rm -f docs/abi/api.txt
"$python" bindings/generate.py && "$python" bindings/generate.py --check ||
	complain 'a C API that is frozen and stays is refused'
for change in 's/"value": 8,/"value": 16,/' 's/"offset": 16,/"offset": 24,/' \
	's/"type": "int64_t"/"type": "int32_t"/' \
	's/^  "xmem_acquire", "xmem_clear_last_error",/  "xmem_clear_last_error", "xmem_acquire",/'
do
	cp bindings/api.json before.json
	sed -i "$change" bindings/api.json
	said=$("$python" bindings/generate.py) && complain "frozen, and taken: $change"
	[[ $said == *'is frozen, and this fact'* ]] || complain "frozen, $change: $said"
	mv before.json bindings/api.json
done
popd >/dev/null || exit 2

# ---- broken headers

# refused TEXT WORDS...: the extraction fails with all these words, and writes nothing.
refused() {
	local text=$1 words
	! try "$text" || complain "accepted: $text"
	shift
	for words; do
		grep -q "zz_more.h.*$words" <<<"$said" || complain "'$words' is not said: $said"
	done
	[ ! -e "$work/bindings/api.json" ] || complain "api.json is written: $text"
}
end='Threads: any. Since: 0.1. */'
refused "/* Do it. Threads: any. */
void xmem_zz_a(void);
/* Do it. $end
int xmem_zz_c(void);
/* Do it. Returns: it. $end
void *xmem_zz_d(void);
/* $end
void xmem_zz_e(void);
/* Do it. $end

void xmem_zz_f(void);
/*
 * Do it.
 * @that: what.
 * $end
void xmem_zz_g(int what);
/* Do it. Returns: 0, or -EFOO. $end
int xmem_zz_h(void);
/* Do it. Returns: as xmem_zz_z. $end
int xmem_zz_i(void);
/* Do it. Returns: as those. $end
int xmem_zz_j(void);
/* Do it. Threads: any. Since: soon. */
void xmem_zz_k(void);
/* Do it. Threads: one. $end
void xmem_zz_m(void);" \
	"xmem_zz_a lacks 'Since:'" "xmem_zz_c lacks 'Returns:'" \
	"xmem_zz_d lacks 'Ownership:'" 'xmem_zz_e does not say what it is for' \
	"xmem_zz_f lacks 'Since:'" 'xmem_zz_g has no parameter @that' \
	'xmem_zz_h: EFOO is no error' 'xmem_zz_i: there is no function xmem_zz_z' \
	"xmem_zz_j: 'Returns:' refers to functions that it does not name" \
	"xmem_zz_k: 'Since: soon.' names no release" "xmem_zz_m: .*two sections 'Threads'"
[ "$(wc -l <<<"$said")" -le 18 ] || complain "more is said than is wrong: $said"
refused "/* Do it. $end
void xmem_zz_l(int);" 'a parameter of xmem_zz_l has no name'
refused 'int xmem_zz_n;' "'int xmem_zz_n'"
refused '#error no' 'error: #error no'
! try "/* Do it. Threads: any. Since: 9.9. */
void xmem_zz_o(void);" || complain 'a release that is to come is accepted'
[[ $said == *xmem_zz_o*'later release'* ]] || complain "it is not said that 9.9 is later: $said"
cp "$work/xmem.h" "$work/include/xmem.h"
said=$("$python" "$work/bindings/extract.py" 2>&1) && complain 'a header apart is accepted'
[[ $said == *'zz_more.h: xmem.h does not include it'* ]] || complain "a header apart: $said"

# ---- the manual pages

"$python" bindings/generate.py --man "$work/man" || complain 'no manual pages are made'
grep -L '^\.so ' "$work"/man/man?/* | xargs mandoc -Tlint -Wwarning 2>&1 |
	grep -v 'missing date' | sed 's|^|FAIL |' >"$work/log"
[ ! -s "$work/log" ] || { cat "$work/log"; bad=1; }
while read -r _ target; do
	[ -f "$work/man/$target" ] || complain "a manual page refers to $target"
done < <(cat "$work"/man/man3/*.3 | grep '^\.so ')
[ "$(grep -l '^\.SH NOTES' "$work"/man/man?/* | wc -l)" = "$(git ls-files 'man/api/*' | wc -l)" ] ||
	complain 'the notes of man/api are not all in the manual pages'
mkdir -p "$work/notes/man/api"
cp -r "$work/bindings" "$work/notes"
cp bindings/api.json "$work/notes/bindings"
for page in xmem_gone.3 xmem_peek_last_error.3; do
	echo 'Text.' >"$work/notes/man/api/$page.txt"
	said=$("$python" "$work/notes/bindings/generate.py" --man "$work/notes/man" 2>&1) &&
		complain "notes for $page are accepted"
	[[ $said == "FAIL man/api/$page.txt:"* ]] || complain "notes for $page: $said"
	rm "$work/notes/man/api/$page.txt"
done
pages=$(cd "$work/man" && ls man?/*)
[ "$(make -sn uninstall MANDIR=/m | grep -o 'build/man/[^:]*' | sed 's|build/man/||' | sort)" = \
	"$pages" ] || complain 'bindings.mk does not know all manual pages'

# ---- structs as Python objects

read -r -a flags < <("$python" -c 'import sysconfig; print("-I" + sysconfig.get_path("include"))')
if gcc -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror -shared -fPIC -I. -Iinclude \
	"${flags[@]}" tests/bindings/try_layout.c bindings/python/src/layout.c \
	-o "$work/try_layout.so" 2>"$work/log"
then
	"$python" tests/bindings/try_layout.py "$work" || complain 'structs as objects'
else
	complain "layout.c does not compile: $(head -5 "$work/log")"
fi
[ $bad != 0 ] || echo "$(wc -w <<<"$pages") manual pages, all as the headers say"
exit $bad
