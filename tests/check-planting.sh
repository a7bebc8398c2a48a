#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that each patch in tests/mutants and tests/kernel/mutants still applies to this tree, and
# in its place. A run of all planted bugs takes hours (check-mutants.sh, check-mutants-kernel.sh).
# This check takes seconds, and finds the patches that no longer fit. The runs apply patches with
# patch(1), so this check asks patch(1), too: git apply takes hunks that patch(1) refuses.
#
# patch(1) looks for other places if the lines of a hunk have moved, and may find them in another
# function. So the lines of a hunk must be in the file once. If no line above the change begins a
# function, the function must be the one that stands behind the second @@, as git diff writes it.
#
#   tests/check-planting.sh [FOLDER...]     checks these folders of patches instead
#   tests/check-planting.sh --selftest      tries patches that do not apply; it must find each
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

if [ "${1:-}" = --selftest ]; then
	[ $# = 1 ] || { sed -n '12,13s/^# \?//p' "$0" >&2; exit 2; }
	work=$(mktemp -d) || exit 2
	trap 'rm -rf "$work"' EXIT
	good=$(ls tests/mutants/*.patch | head -1)
	missed=0
	# found WHAT: does the check refuse the patch in $work?
	found() {
		said=$(tests/check-planting.sh "$work" 2>&1)
		[ $? = 1 ] && grep -q '^FAIL .*a.patch' <<<"$said" && return
		echo "not found: $1"
		missed=$((missed + 1))
	}
	# taken WHAT: does the check take it?
	taken() {
		tests/check-planting.sh "$work" >/dev/null && return
		echo "refused: $1"
		missed=$((missed + 1))
	}
	# planted WHAT SED-COMMAND: a good patch that the sed command has made bad
	planted() {
		sed "$2" "$good" >"$work/a.patch"
		found "$1"
	}
	# made LINE...: a patch of this script, with a hunk for each of these lines
	made() {
		local line file=tests/check-planting.sh
		printf '# red: %s\n--- a/%s\n+++ b/%s\n' $file $file $file
		for line; do
			sed "${line}s/$/ #/" $file | diff -up $file - | tail -n +3
		done
	}
	planted "other lines around it" 's/^ \(.*[a-z]\)/ \1 once/'
	planted "another line to take away" 's/^-\([^-].*\)/-\1 once/'
	planted "a file that is no more" 's#^\(--- a\|+++ b\)/[a-z]*/#\1/gone/#'
	planted "nothing to plant" '/^@@/,$d'
	planted "no word of what turns red" '/^# red:/d'
	planted "a test that is not there" 's/^\(# red: .*\)/\1 P1_no_such_test/'
	made 30 20 >"$work/a.patch"
	found "hunks in the wrong order, which git apply takes"
	made 20 30 | sed '4s/,7 @@/,6 @@/; 4s/,7 +/,6 +/' >"$work/a.patch"
	found "a hunk that is longer than it says, which patch(1) takes without the next one"
	made 20 30 | sed '5s/$/ once/' >"$work/a.patch"
	found "another line far from the change, which patch(1) takes as fuzz"
	made 40 | sed '4s/^\(@@ [^@]*@@\).*/\1 another()/' >"$work/a.patch"
	found "a hunk that was in another function"
	made 40 | sed '4s/^\(@@ [^@]*@@\).*/\1/' >"$work/a.patch"
	found "a hunk that names no function"
	made 40 | sed '4s/.*/@@ -1,1 +1,1 @@/; 5,7d; 10,$d' | sed '5s/.*/-\t}/; 6s/.*/+\t} #/' \
		>"$work/a.patch"
	found "lines that are there more than once"
	made 40 | sed '4s/-37,7 +37,7/-7,7 +7,7/' >"$work/a.patch"
	taken "a hunk that has moved"
	cp "$good" "$work/a.patch"
	taken "a good one"
	[ "$missed" = 0 ] && echo "14 patches, each judged rightly"
	exit $((missed != 0))
fi

[ $# -gt 0 ] || set -- tests/mutants tests/kernel/mutants
# unknown PATCH: prints the names of tests after "# red:" that no source has
unknown() {
	local name
	for name in $(sed -n 's/^# red: //p' "$1" | tr "'\" " '\n' | sed 's/^CK_RUN_CASE=//' |
		grep -E '^([A-Z]+[0-9]*|[a-z0-9*]+)_[A-Za-z0-9_*]+$'); do
		case $name in
		[A-Z]*)	# a macro makes the end of some names
			grep -qxE "${name//\*/.*}|${name%_*}_" "$words" ;;
		*)	# a part of a name is enough
			grep -q "${name//\*/.*}" "$words" ;;
		esac || echo "$name"
	done
}

# misplaced PATCH...: prints "PATCH: WHY" for each hunk whose place in its file is not certain
misplaced() {
	awk '
	# The name in a line that begins a function, or in a macro that makes one.
	function name(line) {
		if (!match(line, /[A-Za-z0-9_:~]+ ?\(/))
			return substr(line, 1, 40)
		if (substr(line, RSTART, RLENGTH) !~ /[a-z]/)
			return match(line, /[,)]/) ? substr(line, 1, RSTART - 1) : line
		return substr(line, RSTART, RLENGTH - 1)
	}
	function load(file, line) {
		for (lines[file] = 0; (getline line <file) > 0; )
			text[file, ++lines[file]] = line
		close(file)
	}
	function is_at(first, i) {
		for (i = 1; i <= old && text[file, first + i - 1] == hunk[i]; i++)
			;
		return i > old
	}
	function judge(i, found, times, above) {
		for (i = 1; i + old <= lines[file] + 1; i++)
			if (is_at(i)) {
				found = i
				times++
			}
		if (times != 1) {
			print FILENAME ": its lines are in " file " " times + 0 " times"
			return
		}
		for (i = found - 1; i && text[file, i] !~ /^[A-Za-z_$]/; i--)
			;
		above = i ? text[file, i] : ""
		if (begins || (within != "" && index(above, within) == 1))
			return
		if (name(above) != name(within))
			print FILENAME ": it is in \"" name(above) "\" of " file \
				", and the hunk says \"" name(within) "\""
	}
	FNR == 1 { left = added = 0 }
	left > 0 || added > 0 {
		kind = substr($0, 1, 1)
		if (kind != "+") {
			hunk[++old] = substr($0, 2)
			left--
			if (!changed && hunk[old] ~ /^[A-Za-z_$]/ && hunk[old] !~ /:$/)
				begins = 1
		}
		added -= kind != "-"
		changed = changed || kind == "-" || kind == "+"
		if (left <= 0 && added <= 0)
			judge()
		next
	}
	/^\+\+\+ b\// {
		file = substr($1 " " $2, 7)
		if (!(file in lines))
			load(file)
	}
	/^@@ / {
		left = $2 ~ /,/ ? substr($2, index($2, ",") + 1) + 0 : 1
		added = $3 ~ /,/ ? substr($3, index($3, ",") + 1) + 0 : 1
		within = $0
		sub(/^@@ [^@]*@@ ?/, "", within)
		old = begins = changed = 0
	}' "$@"
}

words=$(mktemp) || exit 2
trap 'rm -f "$words"' EXIT
find tests bindings/gstreamer/tests -name '*.[ch]' -o -name '*.[ch]pp' -o -name '*.py' -o \
	-path 'tests/cli/*.sh' | xargs cat |
	grep -oE '[A-Za-z0-9_]+_[A-Za-z0-9_]*' | sort -u >"$words"
count=0 bad=0
mapfile -t patches < <(for folder; do ls "$folder"/*.patch; done)
[ "${#patches[@]}" -gt 0 ] || exit 1
wrong=$(misplaced "${patches[@]}")
for patch in "${patches[@]}"; do
	count=$((count + 1))
	if ! grep -q '^# red: ' "$patch"; then
		echo "FAIL $patch: no line '# red: ' says which test finds it"
	elif why=$(unknown "$patch") && [ -n "$why" ]; then
		echo "FAIL $patch: no test is called ${why//$'\n'/, }"
	elif ! why=$(git apply --numstat "$patch" 2>&1); then	# patch(1) passes over such a hunk
		echo "FAIL $patch: ${why//$'\n'/; }"
	elif ! why=$(patch -p1 -f -F0 --dry-run <"$patch" 2>&1); then	# as check-mutants.sh
		echo "FAIL $patch: ${why//$'\n'/; }"
	elif why=$(grep -F "$patch: " <<<"$wrong"); then
		echo "FAIL ${why//$'\n'/; }"
	else
		continue
	fi
	bad=$((bad + 1))
done
if [ "$bad" -gt 0 ]; then
	cat <<-'TEXT'
		To refit one: make its change in the file as it is now, and put what git diff
		FILE says from '---' on below the lines of the patch that begin with '#'. Undo
		the change.
		Where the code that it broke has gone, break what does the same now, or remove it.
	TEXT
	exit 1
fi
echo "$count planted bugs, each in its place"
