#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the Spin models. The right form of a model must pass. Each broken form, which leaves out one
# rule, must fail; else the model would not notice that fault. The head of each .pml states its
# invariant and its broken forms.
#
#   tests/model/run.sh             bounds for about two minutes on two cores
#   tests/model/run.sh holds.pml   this model
#   tests/model/run.sh --changed   the models whose .pml has changed since tests/changed-base.sh,
#                                  or all if this script has changed. No other file matters.
#   MODEL=full tests/model/run.sh  larger bounds, many minutes and 8 GB
#
# The last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

# Each line: the file, the flags of the right form, then flags that each break the right form.
models() {
	cat <<END
entry_ring.pml NPUB=3           NORECHECK NOVOID VOIDLATE HOLDSFIRST OFF1 NOFLIGHT \
				NOREPAIR NORELOOK DEADLAP TAILFLIGHT ROB
holds.pml      -                NOSCAN LOOKFIRST NOGEN KEEPDEAD
policy.pml     S=1              NOCURSOR DEPTH
policy.pml     S=2              NOINC NOCURSOR QUIET DEPTH
policy.pml     S=3              NOINC NOCURSOR STALEROOM QUIET NOHAND NOBARRIER DEPTH
forward.pml    -                FORWARDSFIRST NOFORWARDS NOGET LOOKFIRST NOTELATE NOTEGONE \
				PASSLATE ENDQUIET
collects.pml   -                LOOKFIRST ONEONLY ASKFIRST NOTSENT
resolve.pml    -                FORCED
resolve.pml    TWOSCANNERS       NONUMBER ENTERPLAIN
subscribe.pml  -                TAILFIRST NOPIN NOWAKE BITCOUNTS
history.pml    -                NOLOOK LOOKFIRST NORECHECK NOSCAN PINNED
upgrade.pml    -                PLAIN HOLDSFIRST FORCED NONUMBER ENDFREES GENSTAYS SKIPMARK
upgrade_ring.pml -              BEYOND CURSORS HOLDSFIRST NOHOLDS
wait.pml       -                LOOKFIRST WAKEFIRST NOCOUNT CLEARLATE
waking.pml     -                CLEARFIRST CLEARLATE ARMQUIET NOMARK MARKISENOUGH
watch.pml      -                NOKICK KICKFIRST LOOKFIRST
watch.pml      DROP             KICKFIRST FOLLOWED LOOKFIRST
watch.pml      OWN              NOKICK KICKFIRST LOOKFIRST
watch.pml      DROP,OWN         KICKFIRST LOOKFIRST
poll.pml       -                NORELOOK DRAINLATE NOTELL NOREARM NOLOOK ONLYWAKE WAKEFIRST
chain.pml      -                LOOKFIRST TURNFIRST ENDSQUIET TAKEN NOTURN
late.pml       -                QUEUEFIRST NOTERELIES CLEARLAST NOSECOND
ends.pml       -                OWELATE PAIDFIRST DROPLATE NOWAIT
ends.pml       POOLS=1          NUMBERFIRST DROPLATE TAKELATE OVERSLEEP NOWAIT
look.pml       -                NOLOCK FREEFIRST TWOLOOKS LOOKFIRST WAKEFIRST
poll_out.pml   -                LOOKFIRST NOCOUNT OWNQUIET WAKEFIRST NORELOOK FILLLATE NOTELL \
				UNTOLD
poll_out.pml   KERNEL           LOOKFIRST NOCOUNT OWNQUIET WAKEFIRST NOTIME TIMELATE KEEPS
cancel.pml     -                LOOKFIRST WAKEFIRST
cancel.pml     SEVERAL          LOOKFIRST WAKEFIRST
cancel.pml     OWN              LOOKFIRST WAKEFIRST KICKLATE
cancel.pml     DROP,OWN         NOWAKE NOWAIT UNCOUNTED KICKLATE
cancel.pml     DROP             NOWAKE NOWAIT UNCOUNTED
cancel.pml     DROP,SEVERAL     NOWAKE NOWAIT UNCOUNTED
claims.pml     -                LOOKFIRST NOUNDO RAISELATE TAKEFIRST NOHOLD
alone.pml      -                KEEPFIRST NOCOMPARE TAKEOLD TWICE OVER NOHOLD CLAIMSFIRST QUIET \
				NOBOUND BLIND
puts.pml       -                STALEQUIET ENDQUIET PUTFIRST
adopt.pml      -                REAPFIRST PUTFIRST UNTOLD
end_steps.pml  -                DIRECT TAKEN FORCED NOMARK
let_go.pml     -                HOLDSFIRST RINGFIRST QUIET WAKEFIRST
threads.pml    CURSOR           NOMUTEX
threads.pml    PUBLISH          NOMUTEX
threads.pml    WAITS            NOWAKE
bias.pml       -                NOBARRIER NOLOOK NOWAKE STEPQUIET NOWAIT
close.pml      -                NOBARRIER NOLOOK NOCLONE MARKFIRST NOMARK
ready.pml      -                NOEND ATONCE NOCHECK SAME NOWAIT EARLY PLAIN UNCOUNTED \
				UNTOLD
close_calls.pml -               LOOKFIRST WAITFIRST NOWAIT NOKICK KICKFIRST NOWAKE SHORTSTAYS \
				COUNTFIRST UNCOUNTED
opened.pml     -               NOTELATE CLOSEFIRST LATEOPEN ENDCLOSES UNDOALL FREEFIRST NOWAKE \
				LOOKFIRST
strangers.pml  -                NOCHECK LOOKFIRST NOTENANCY
holders.pml    -                FORGET LATE AFTER NOHOLD NORING
holders.pml    SILENT           NOCHECK
evict.pml      -               COPYFIRST NODRAIN
truncate.pml   -               FIRSTSLOT ATEND LASTREF UNDONE
blind.pml      -               BLINDFIRST NOWAIT
quarantine.pml -               BITLATE ENDDROPS NEVER
quarantine.pml UPGRADE         BITLATE NEVER ENDFREES
END
	[ "${MODEL:-}" = full ] || return 0
	cat <<'END'
holds.pml      NC=3,GMAX=3
entry_ring.pml NPUB=4
entry_ring.pml NPUB=3,B=3
subscribe.pml  NPUB=8
wait.pml       N=3
END
}

# Two runs at a time need at most 2 * MEMORY megabytes. The largest run of the short bounds takes
# 0.8 GB.
MEMORY=2000
[ "${MODEL:-}" = full ] && MEMORY=8000
jobs=$(nproc)
[ "${MODEL:-}" = full ] && jobs=1
work=$PWD/build/model

check() {	# file, comma-separated flags or -, pass or fail
	local file=$1 flags=() f dir out how=-O2
	[ "$3" = fail ] && how='-O0 -DT_REVERSE'	# it finds the fault sooner
	[ "$2" != - ] && for f in ${2//,/ }; do flags+=("-D$f"); done
	dir=$work/${file%.pml}.$2
	mkdir -p "$dir" && cp "tests/model/$file" "$dir/m.pml" && cd "$dir" || return
	if ! spin -a "${flags[@]}" m.pml >spin.log 2>&1 ||
	   ! gcc $how -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM="$MEMORY" \
		-o pan pan.c >gcc.log 2>&1; then
		echo "FAIL $file $2: does not build, see $dir"
		return
	fi
	./pan -m1000000 >out 2>&1
	out=$(grep -E 'errors:' out)
	if [ -z "$out" ] ||
	   grep -qE 'max search depth too small|out of memory|reached -DMEMLIM' out; then
		echo "FAIL $file $2: the search was not finished, see $dir/out"
	elif [ "$3" = pass ] && [[ $out == *'errors: 0'* ]]; then
		echo "PASS $file $2: $(awk '/states, stored/ { print $1 }' out) states"
	elif [ "$3" = fail ] && [[ $out != *'errors: 0'* ]]; then
		echo "PASS $file $2 is noticed: $(
			grep -oE 'assertion violated.*\(at|invalid end state' out | head -1 |
			sed 's/ (at$//')"
	elif [ "$3" = pass ]; then
		why=$(grep -E 'assertion violated|invalid end state' out | head -1)
		echo "FAIL $file $2: $why, see $dir"
	else
		echo "FAIL $file $2: the rule is left out and nothing is noticed, see $dir"
	fi
	rm -f pan pan.*
}

list() {
	local file flags broken b
	while read -r file flags broken; do
		[ $# = 0 ] || [[ " $* " == *" $file "* ]] || continue
		echo "$file $flags pass"
		for b in $broken; do
			[ "$flags" = - ] && echo "$file $b fail" || echo "$file $flags,$b fail"
		done
	done < <(models)
}

if [ "${1:-}" = --changed ]; then
	shift
	files=$(tests/changed-base.sh --files)
	rc=$?
	[ $rc -le 1 ] || exit $rc
	if [ $rc = 0 ] && ! grep -qx tests/model/run.sh <<<"$files"; then
		set -- none.pml $(sed -n 's,^tests/model/\(.*\.pml\)$,\1,p' <<<"$files")
	fi
fi
all=$(list "$@" | wc -l)
if [ "$all" = 0 ]; then
	echo 'SKIP model: no model has changed'
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
fi
[ $# = 0 ] || echo "$all of $(list | wc -l) forms"
for tool in spin gcc; do
	if ! command -v $tool >/dev/null; then
		echo "SKIP model: $tool is not installed (apt-get install $tool)"
		echo "0 passed, 0 failed, $all skipped"
		exit 0
	fi
done

rm -rf "$work"
mkdir -p "$work"
export -f check
export work MEMORY
list "$@" | xargs -r -P "$jobs" -L1 bash -c 'check "$@"' _ | tee "$work/said"
passed=$(grep -c '^PASS' "$work/said")
echo "$passed passed, $((all - passed)) failed, 0 skipped"
[ "$passed" = "$all" ]
