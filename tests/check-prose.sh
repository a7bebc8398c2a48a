#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Finds prose that a reader has to read twice: a clause with "who" or "what" as a noun ("Who holds
# too much is found", "the end of who waits"), and "the same" or "likewise" in place of the thing
# that is meant. It prints the places, and its status is 1 if there are any.
#
#   tests/check-prose.sh [FILE OR FOLDER...]
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

pattern='(^|[.:;(] |\* |// |# |"|\| |- )(Who|Whoever|Whom|What) [a-z][^?]*$'
pattern+='|\b(of|by|for|to|from|than|with|and|or|if|because) (who|whoever|whom) '
pattern+='|\b[Tt]he same( (of|for|with|in|by|when|where|on|to|at|without|again)\b|[,.;:)]|$)'
pattern+='|\b[Ll]ikewise\b'

# Planted bugs repeat the code, generated files repeat their source, and licences are not ours.
files() {
	git ls-files -- "$@" |
		grep -vE '\.(patch|png|svg|json|xz)$|^(docs|tests|bindings)/.*\.txt$|(^|/)LICENSE' |
		grep -vxE 'debian/copyright|include/xmem/api\.h|tests/check-prose\.sh'
}

# grep's status is 1 if it finds nothing; xargs says 123 then.
if files "$@" | xargs grep -nIE "$pattern" | sed 's/^/FAIL /' | grep .; then
	echo 'FAIL say it in other words: a noun is the subject (CONTRIBUTING.md, Style)'
	exit 1
fi
