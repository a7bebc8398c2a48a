#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs test suites at the same time and adds up their counts. Before that it installs the packages
# that they need; for a user other than root it prints the command and stops.
#
#   tests/run.sh               the suites of `make test`, which each change must pass
#   tests/run.sh all           the suites of `make test-all`; it takes hours
#   tests/run.sh native dkms   groups and suites by name; NAME also means NAME-1, NAME-2, ...
#   tests/run.sh -l            lists the suites: level, group, name, usual seconds, command
#
# The run builds what the suites need, which suites.sh says: the module at once, and the flavours
# one after the other. A suite starts when its flavours are built, the longest first, and JOBS
# suites run at once. A suite's output goes to build/test-log/NAME.log, and the table of all results
# to build/test-log/summary.txt. The time of each suite that passed goes to build/test-times, for
# the estimates of the next run. If this tree cannot be built in place, place.sh makes a copy, and
# the tests run there.
set -uo pipefail
# Variables that a shell, a make or a git hook has set for itself are not meant for the suites. With
# those of "make -C DIR", each make would print the folder in which it works.
# shellcheck disable=SC2046
unset CDPATH MAKEFLAGS MFLAGS MAKELEVEL FLAVOUR "${!CK_@}" "${!LISTEN_@}" "${!XMEMD_@}" \
	XMEM_BACKEND XMEM_DAEMON XMEM_DEVICE XMEM_DEVICE_FILES XMEM_SOCKET XMEM_CUDA_DRIVER \
	$(git rev-parse --local-env-vars 2>/dev/null)
# A socket's path has at most 107 characters.
[ -d "${TMPDIR:-}" ] && [ -w "$TMPDIR" ] && [ ${#TMPDIR} -le 60 ] || unset TMPDIR
cd "$(dirname "$0")/.." || exit 2
# git reads no tree of another user unless it is told to.
[ ! -e .git ] || [ -O .git ] || export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory \
	GIT_CONFIG_VALUE_0='*'

declare -a names
declare -A level group kind seconds needs command
row() {	# KIND LEVEL GROUP NAME SECONDS NEEDS COMMAND
	names+=("$4")
	kind[$4]=$1 level[$4]=$2 group[$4]=$3 seconds[$4]=$5 needs[$4]=$6 command[$4]=$7
}
suite() { row suite "$@"; }
check() { row check "$@"; }
# shellcheck source=tests/suites.sh
. tests/suites.sh

if [ "${1:-}" = -l ]; then
	for name in "${names[@]}"; do
		printf '%s\t' "${level[$name]}" "${group[$name]}" "$name" "${seconds[$name]}"
		printf '%s\n' "${command[$name]}"
	done
	exit 0
fi

# ---- which suites ----

# wants NAME WORD...: does one of the words mean this suite?
wants() {
	local name=$1 word
	shift
	for word; do
		case $word in
		test) [[ ${level[$name]} = @(both|short) ]] && return ;;
		all) [[ ${level[$name]} = @(both|long) ]] && return ;;
		"$name") return 0 ;;
		"${group[$name]}") [[ ${level[$name]} = @(both|long) ]] && return ;;
		*) [[ $name =~ ^"$word"-[0-9]+$ ]] && return ;;
		esac
	done
	return 1
}

[ $# -gt 0 ] || set -- test
wanted=()
for word; do
	found=no
	for name in "${names[@]}"; do
		wants "$name" "$word" && { found=yes; break; }
	done
	[ $found = yes ] || {
		echo "run.sh: no group or suite is called '$word', see tests/run.sh -l" >&2
		exit 2
	}
done
for name in "${names[@]}"; do
	wants "$name" "$@" && wanted+=("$name")
done

place=$(tests/place.sh) || exit 2
if [ "$place" != "$(pwd -P)" ]; then
	# The kernels of the virtual machines are large, and are not copied.
	[ ! -w build/vm ] || export VM_CACHE=${VM_CACHE:-$PWD/build/vm}
	exec "$place/tests/run.sh" "$@"
fi

# ---- set-up ----

log=build/test-log
times=build/test-times
mkdir -p "$log"
exec 9>"$log/lock"
flock -n 9 || { echo "run.sh: another run works in $PWD/build" >&2; exit 2; }
rm -f "$log"/*.log "$log"/*.cpu
all_needs=$(for name in "${wanted[@]}"; do printf '%s\n' ${needs[$name]}; done | sort -u)
# shellcheck disable=SC2046
scripts/needs.sh test $(sed -n 's/^apt://p' <<<"$all_needs") || exit 2

# Debian's ccache has compilers of the usual names there. Its cache serves every checkout. A user
# without a home has no folder for the cache.
if [ -d /usr/lib/ccache ] && cache=$(ccache -k cache_dir 2>/dev/null) &&
	mkdir -p "$cache/tmp" 2>/dev/null && [ -w "$cache/tmp" ]; then
	export PATH=/usr/lib/ccache:$PATH CCACHE_NOHASHDIR=1
fi
# So that no suite again compiles the module that kmod-check has compiled.
export KBUILD_EXTRA_WARN=1
# Without this, each process with more than one thread waits for a second at its end.
export TSAN_OPTIONS=atexit_sleep_ms=0${TSAN_OPTIONS:+:$TSAN_OPTIONS}

processors=$(nproc)
# Many suites wait most of the time.
JOBS=${JOBS:-$((processors + 2))}
[[ $JOBS =~ ^[1-9][0-9]{0,3}$ ]] ||
	{ echo "run.sh: JOBS=$JOBS is no number of suites" >&2; exit 2; }
# This limit is against suites that hang; no test is judged by it.
SUITE_LIMIT=${SUITE_LIMIT:-3600}

declare -A usual
for name in "${names[@]}"; do usual[$name]=${seconds[$name]}; done
if [ -f $times ]; then
	while read -r name took; do
		[[ ! $took =~ ^[0-9]{1,6}$ ]] || usual[$name]=$((10#$took))
	done <$times
fi

passed=0 failed=0 skipped=0 bad=() reasons=() table=()

# left NAME...: the estimated time of these suites
left() {
	local sum=0 longest=0 name one
	for name; do
		one=${usual[$name]:-10}
		sum=$((sum + one))
		((one > longest)) && longest=$one
	done
	sum=$((sum / JOBS))
	((sum > longest)) || sum=$longest
	((sum < 90)) && echo "about $sum s" || echo "about $(((sum + 30) / 60)) min"
}

# report NAME STATUS SECONDS: one line, and the end of the log if the suite has failed
report() {
	local name=$1 rc=$2 took=$3 line p f s why cpu running_now waiting
	line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$log/$name.log" | tail -1)
	if [ "${kind[$name]:-check}" = check ]; then
		s=$(grep -acE '^SKIP[ :]' "$log/$name.log")
		line="0 passed, 1 failed, $s skipped"
		[ "$rc" != 0 ] || line="1 passed, 0 failed, $s skipped"
	fi
	read -r p _ f _ s _ <<<"${line:-0 passed, 1 failed, 0 skipped}"
	p=$((10#$p)) f=$((10#$f)) s=$((10#$s))
	# A suite has also failed if its status says so, or if it has run no test.
	[ "$f" = 0 ] && { [ "$rc" != 0 ] || [ $((p + s)) = 0 ]; } && f=1
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	cpu=$(tail -1 "$log/$name.cpu" 2>/dev/null)
	line=$(printf '%4d passed %3d failed %3d skipped %4d s %4d s of CPU  %s' "$p" "$f" "$s" \
		"$took" "${cpu:-0}" "$name")
	table+=("$line")
	printf '%s' "$line"
	running_now=$(for why in "${running[@]}"; do printf ' %s' "$why"; done)
	waiting=("${running[@]}" "${queue[@]}")
	[ ${#waiting[@]} = 0 ] ||
		printf '   (%d left, %s; now:%s)' ${#waiting[@]} "$(left "${waiting[@]}")" \
			"$running_now"
	echo
	while IFS= read -r why; do
		reasons+=("$name: $why")
	done < <(grep -aE '^SKIP[ :]' "$log/$name.log")
	if [ "$f" = 0 ]; then
		echo "$name $took" >>$times
		return
	fi
	bad+=("$name")
	echo "    FAILED; the whole log is $PWD/$log/$name.log"
	[ "$rc" != 124 ] || echo "    it did not end in $took s"
	grep -aE '^(FAIL|[^ ]+:[0-9]+:[FE]:)' "$log/$name.log" | tail -20 | sed 's/^/    /'
	tail -15 "$log/$name.log" | sed 's/^/    | /'
}

declare -A running=() begun=()
queue=()

# start NAME COMMAND: runs it in a session of its own, because the kernel shares the processors out
# among sessions, and other programs have their own. A shell makes its background commands ignore
# interrupts, which some tests send.
start() {
	local limit=$((10 * ${seconds[$1]:-0}))
	((limit > SUITE_LIMIT)) || limit=$SUITE_LIMIT
	# shellcheck disable=SC2016
	env --default-signal=INT,QUIT setsid timeout -k 10 $limit bash -c 'TIMEFORMAT="%U %S"
		{ time bash -c "$1" >"$2.log" 2>&1 </dev/null; } 2>"$2.time"
		rc=$?
		awk "{ print int(\$1 + \$2 + 0.5) }" "$2.time" >"$2.cpu"
		rm -f "$2.time"
		exit $rc' run.sh "$2" "$log/$1" 9>&- &
	running[$!]=$1
	begun[$1]=$SECONDS
}

# finish: waits for the end of one suite, reports it, and leaves its name in $name
finish() {
	local pid rc
	wait -n -p pid "${!running[@]}"
	rc=$?
	name=${running[$pid]}
	unset "running[$pid]"
	[ $rc != 124 ] || pkill -KILL -s "$pid"	# processes that have not ended with their parent
	report "$name" $rc $((SECONDS - begun[$name]))
}

# shellcheck disable=SC2317
stop() {
	local sessions i
	trap '' HUP INT TERM PIPE
	trap - EXIT
	sessions=$(IFS=,; echo "${!running[*]}")
	[ -n "$sessions" ] || exit 130
	pkill -TERM -s "$sessions"
	for ((i = 0; i < 30; i++)); do
		pgrep -s "$sessions" >/dev/null || break
		sleep 0.1
	done
	pkill -KILL -s "$sessions"
	exit 130
}
trap stop HUP INT TERM PIPE EXIT

# ---- the builds: one flavour after the other, so that no two of them build one file. The module
# has files of its own, so it is built beside the flavours ----

builds=()
for flavour in kmod test release asan tsan; do
	targets=$(sed -n -e "s|^$flavour:||p" -e "s|^$flavour/|build/$flavour/|p" <<<"$all_needs")
	[ -n "$targets" ] || continue
	builds+=("$flavour")
	command[make-$flavour]="make -k -j$JOBS FLAVOUR=${flavour/kmod/release} \
		${targets//$'\n'/ }"
done

# is_built NAME: is every flavour built that this suite needs?
is_built() {
	local flavour
	for flavour in "${builds[@]}" $building $module; do
		[[ " ${needs[$1]}" != *" $flavour"[:/]* ]] || return 1
	done
}

# next: puts the longest suite that can start into $name
next() {
	local i
	for i in "${!queue[@]}"; do
		name=${queue[i]}
		is_built "$name" || continue
		queue=("${queue[@]:0:i}" "${queue[@]:i+1}")
		return 0
	done
	return 1
}

# ---- the suites ----

begin=$SECONDS building='' module=''
echo "Suites: ${#wanted[@]}, $(left "${wanted[@]}") and the builds. Logs: $PWD/$log/NAME.log"
mapfile -t queue < <(for name in "${wanted[@]}"; do
	echo "${usual[$name]} $name"
done | sort -s -k1,1nr | cut -d' ' -f2)
if [ "${builds[0]:-}" = kmod ]; then
	module=kmod builds=("${builds[@]:1}")
	start make-kmod "${command[make-kmod]}"
fi
while [ ${#queue[@]} != 0 ] || [ ${#running[@]} != 0 ]; do
	if [ -z "$building" ] && [ ${#builds[@]} != 0 ]; then
		building=${builds[0]}
		builds=("${builds[@]:1}")
		start "make-$building" "${command[make-$building]}"
	fi
	while [ ${#running[@]} -lt "$JOBS" ] && next; do
		start "$name" "${command[$name]}"
	done
	finish
	[ "$name" != "make-$building" ] || building=''
	[ "$name" != make-kmod ] || module=''
done

trap - HUP INT TERM PIPE EXIT

# ---- the summary ----

# The latest time of each suite.
awk '{ took[$1] = $2 } END { for (name in took) print name, took[name] }' $times 2>/dev/null |
	sort >$times.new && mv $times.new $times
{
	echo "$* on $(date -u +%F), $processors processors, in $((SECONDS - begin)) s:" \
		"$(git describe --always --dirty 2>/dev/null)"
	printf '%s\n' "${table[@]}"
	[ ${#reasons[@]} = 0 ] || printf 'skipped: %s\n' "${reasons[@]}"
	echo "$passed passed, $failed failed, $skipped skipped"
} >$log/summary.txt
[ ${#reasons[@]} = 0 ] || { echo; echo 'Skipped:'; printf '  %s\n' "${reasons[@]}"; }
took=$((SECONDS - begin))
echo "It took $((took / 60)) min $((took % 60)) s; $log/summary.txt has the table."
[ ${#bad[@]} = 0 ] || echo "Failed: ${bad[*]}   (logs in $PWD/$log/)"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
