#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A public function is in all places where it has to be: the generated table, the symbols of the
# library, the rules for threads, and C++. What is missing is said with what to add. The
# generator itself is tried on headers that it has not seen.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
export LC_ALL=C
bad=0
complain() { echo "FAIL $*"; bad=1; }

scripts/api.sh --check || bad=1
list=$(scripts/api.sh --list) || exit 1
names=$(cut -f 1 <<<"$list"; echo xmem_get_api)
names=$(sort <<<"$names")
[ "$(wc -l <<<"$names")" -ge 41 ] || complain "scripts/api.sh finds too few functions"

# Lines of one list that the other lacks.
only() { comm "$1" <(echo "$2") <(echo "$3"); }

exported=$(sed -n 's/^\t\t\(xmem_[a-z0-9_]*\);$/\1/p' lib/libxmem.map)
[ "$exported" = "$(sort <<<"$exported")" ] || complain "lib/libxmem.map is not sorted"
exported=$(sort <<<"$exported")
for name in $(only -23 "$names" "$exported"); do
	complain "$name is in a header: add it to lib/libxmem.map"
done
for name in $(only -13 "$names" "$exported"); do
	complain "$name is in lib/libxmem.map, and no header declares it"
done
symbols=$(nm -D --defined-only build/release/libxmem.so | sed -n 's/.* T \(xmem_[^@]*\).*/\1/p' |
	sort)
for name in $(only -23 "$names" "$symbols"); do
	complain "$name is not a symbol of build/release/libxmem.so: define it with XMEM_API"
done
for name in $(only -13 "$names" "$symbols"); do
	complain "$name is a symbol of build/release/libxmem.so, and no header declares it"
done
# Each function says what threads may do, and has its row in the test that does it.
while IFS=$'\t' read -r name header _ rule; do
	[ "$rule" != - ] || complain "$header: the comment of $name lacks its rule 'Threads: ...'"
done <<<"$list"

# C++ has all of it, too, in xmem.hpp or a header that it includes.
for name in $names; do
	[ "$name" = xmem_get_api ] || grep -qw "$name" include/xmem.hpp include/xmem/*.hpp ||
		complain "$name is in no header of C++: add it to include/xmem/*.hpp, and a test" \
			"of it to tests/cpp"
done

# ---- the generator, on headers that it has not seen

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/lib"
cp -r include scripts "$work"

# try TEXT: a further header with that text. What the generator says is in $said.
try() {
	printf '%s\n' "$1" >"$work/include/xmem/zz_more.h"
	said=$("$work/scripts/api.sh" 2>&1)
}

try '/* A comment. */
struct xmem_zz { int (*member)(void); };	/* xmem_zz_no(1);
						 * Since: 0.1 */
typedef void (*xmem_zz_fn)(void *user);
/*
 * Do it. Threads: any. Since:
 * 7.10.
 */
int xmem_zz_hook(struct xmem_pool *pool, void (*fn)(void *user, uint64_t bytes), void *user)
	__attribute__((warn_unused_result));
/* Do it earlier. Since: 7.9; else later. */
struct xmem_zz *xmem_zz_early(uint64_t first_of_many, uint64_t second_of_many, uint64_t third,
			      int fourth);
static inline int xmem_zz_inline(void) { return 0; }' ||
	complain "the generator fails: $said"
tail=$(tail -3 "$work/lib/api_list.h" | head -1)
[ "$tail" = $'\tX(zz_hook)' ] || complain "the newest function is not the last: $tail"
grep -q '^	X(zz_early) \\$' "$work/lib/api_list.h" || complain "xmem_zz_early is not found"
! grep -qE 'zz_(no|inline|fn)' "$work/lib/api_list.h" || complain "more than functions is found"
[ -z "$(expand -t 8 "$work/include/xmem/api.h" | awk 'length > 100')" ] ||
	complain "api.h has long lines"
echo '#include <xmem.h>' >"$work/try.c"
sed 's|^#include "../xmem.h"|&\n#include "zz_more.h"|' "$work/include/xmem/api.h" >"$work/api.h"
mv "$work/api.h" "$work/include/xmem/api.h"
gcc -Werror -fsyntax-only -I"$work/include" "$work/try.c" 2>"$work/log" ||
	complain "the table that is made does not compile: $(head -3 "$work/log")"

! try '/* No release is named. Threads: any. */
int xmem_zz_bare(void);' || complain "a function without 'Since' is accepted"
[[ $said == *zz_more.h*xmem_zz_bare* ]] || complain "it is not said what lacks 'Since': $said"
! "$work/scripts/api.sh" --check >/dev/null 2>&1 || complain "--check accepts it"

[ $bad != 0 ] || echo "$(wc -l <<<"$names") public functions, each in all its places"
exit $bad
