#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Prose that a reader has to read twice: a clause with "who" or "what" as a noun ("Who holds too
# much is found", "the end of who waits"), "the same" and "likewise" in place of the thing that is
# meant. tests/prose.txt has a number for each folder, which may only fall.
#
#   tests/check-prose.sh            status 1 if a folder has more, or fewer, than its number
#   tests/check-prose.sh --write    writes the numbers that there are
#   tests/check-prose.sh --show FOLDER    the places
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

folders=(README.md CHANGELOG.md CONTRIBUTING.md docs man include core lib daemon kmod cli examples
	bench bindings scripts tests)
pattern='(^|[.:;(] |\* |// |# |"|\| |- )(Who|Whoever|Whom|What) [a-z][^?]*$'
pattern+='|\b(of|by|for|to|from|than|with|and|or|if|because) (who|whoever|whom) '
pattern+='|\b[Tt]he same( (of|for|with|in|by|when|where|on|to|at|without|again)\b|[,.;:)]|$)'
pattern+='|\b[Ll]ikewise\b'

# Generated files and planted bugs repeat what others say.
files() {
	git ls-files -- "$1" |
		grep -vE '\.(patch|png|json|xz)$|^(docs|tests|bindings|LICENSES)/.*\.txt$' |
		grep -vxE 'include/xmem/api\.h|tests/check-prose\.sh'
}
places() { files "$1" | xargs -r grep -nIE "$pattern" || true; }
counts() { for f in "${folders[@]}"; do printf '%-16s %d\n' "$f" "$(places "$f" | wc -l)"; done; }

case ${1:-} in
--show) places "$2" ;;
--write) counts >tests/prose.txt ;;
'')
	counts | diff tests/prose.txt - && exit 0
	echo 'FAIL the lines with ">" are the numbers now. A number that is higher: say it in'
	echo "other words (tests/check-prose.sh --show FOLDER). A lower one: --write, commit it."
	exit 1
	;;
*) sed -n '/^#   /s/^# *//p' "$0" >&2; exit 2 ;;
esac
