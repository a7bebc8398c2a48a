#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests record, replay, cat and put: what goes through a recording comes back bit by bit; losses are
# marked; a recording that ends badly is read as far as it goes.
#   tests/cli/flow.sh [FOLDER [NAME...]]     with the daemon, or XMEM_BACKEND=kernel
# FOLDER is build/release, and the names are those of tests. The only programs are xmem and xmemd;
# the_demo_is_replayed also needs those of the demo.
#
# A test begins with put, which makes the pool and waits for a subscriber (--wait-for) before it
# publishes. Where nothing may be lost, all wait for each other (--wait, --wait-bound).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

programs=$(realpath "${1:-build/release}")
wanted=${2:+" ${*:2} "}
export XMEM_BACKEND=${XMEM_BACKEND:-daemon}
export XMEM_SOCKET=xmem-flow-$$ XMEM_DAEMON=$programs/xmemd
work=$(mktemp -d)
passed=0 failed=0 skipped=0 name='' jobs_of_test=()
bound=(--wait-bound 600)
clean_up() {
	trap - EXIT
	end_jobs
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# ---- tools ----

xmem() { "$programs/xmem" "$@"; }

says() { echo "  $*"; return 1; }

# same WANTED GOT
same() { [ "$1" = "$2" ] || says "wanted $1" $'\n'"  got    $2"; }

# begin NAME COMMAND...: runs it in the background, with its output in NAME.out and NAME.err.
begin() {
	local job=$1
	shift
	[ "$1" != xmem ] || set -- "$programs/xmem" "${@:2}"	# no shell between
	"$@" <&0 >"$work/$job.out" 2>"$work/$job.err" &
	jobs_of_test+=($!)
	is=$!
}

# ends PROCESS [STATUS]
ends() {
	local status=0
	wait "$1" || status=$?
	[ $status = "${2:-0}" ] || says "process $1: status $status; $(cat "$work"/*.err)"
}

end_jobs() {		# bash tells of killed processes
	local job
	exec {errors}>&2 2>/dev/null
	for job in ${jobs_of_test[@]+"${jobs_of_test[@]}"}; do
		kill -KILL "$job" 2>/dev/null
		wait "$job"
	done
	jobs_of_test=()
	exec 2>&$errors {errors}>&-
}

# until_it COMMAND...: waits until it succeeds.
until_it() {
	local tries
	for ((tries = 0; tries < 6000; tries++)); do
		! "$@" || return 0
		read -r -t 0.01 <> <(:) || true
	done
	says "this never comes: $*"
}

has_pool() { xmem list --json | jq -e --arg pool "$1" 'any(.name == $pool)' >/dev/null; }
has_readers() {
	[ "$(xmem clients "$1" --json | jq '[.clients[] | select(.role == "writer") |
		.followers] | max')" = "$2" ]
}
has_bytes() { [ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -ge "$2" ]; }

# frames COUNT BYTES: prints frames that differ.
frames() {
	local i
	for ((i = 0; i < $1; i++)); do
		head -c "$2" <(yes "frame $i of $name")
	done
}

# put_frames POOL FILE OPTION...: publishes the file when one subscriber is there.
put_frames() {
	local pool=$1 file=$2
	shift 2
	begin put xmem put "$pool" --wait-for 1 "${bound[@]}" "$@" <"$file"
	until_it has_pool "$pool"
}

# make_recording POOL FILE OPTION...: all that put publishes, in FILE.mcap.
make_recording() {
	put_frames "$@" && xmem record "$1" --wait --force -o "$2.mcap" 2>"$work/record.err" ||
		says "$(cat "$work/record.err")"
}

# replay_into OUTPUT POOL FILE OPTION...: what cat gets from a replay. The status is replay's.
replay_into() {
	local output=$1 pool=$2 file=$3 replay
	shift 3
	begin replay xmem replay "$file" --wait-for 1 "${bound[@]}" --fast "$@"
	replay=$is
	until_it has_pool "$pool" && xmem cat "$pool" --wait ${y4m:+--y4m} >"$output" || return
	wait "$replay"
}

# ---- there and back ----

# Small contents are gathered in chunks, large ones have a chunk each.
contents_come_back() {
	local bytes result=0
	for bytes in 1 1000 65536 1000001; do
		frames 20 $bytes >"$work/in"
		make_recording cam "$work/in" --size $bytes &&
			replay_into "$work/out" cam "$work/in.mcap" &&
			cmp "$work/in" "$work/out" || result=1
		grep -q '^xmem: 20 publications in .*, 0 lost$' "$work/record.err" ||
			{ says "$(cat "$work/record.err")"; result=1; }
	done
	return $result
}

# make_y4m FRAMES: a small video with odd sides.
make_y4m() {
	local i
	printf 'YUV4MPEG2 W101 H67 F25000:1000 Ip C420jpeg\n'
	for ((i = 0; i < $1; i++)); do
		printf 'FRAME\n'
		frames 1 $((101 * 67 + 2 * 51 * 34)) | tr f "$i"
	done
}

images_come_back() {
	local y4m=1
	make_y4m 5 >"$work/in"
	make_recording video "$work/in" --y4m &&
		replay_into "$work/out" video "$work/in.mcap" && cmp "$work/in" "$work/out" &&
		grep -aq '"content_type":"video/x-raw,I420"\|"image":9' "$work/in.mcap"
}

# A recording of a replay describes its contents as the first recording does.
metadata_come_back() {
	local filter='s/"published_ns":"[0-9]*",*//; s/"publisher":"[^"]*",*//'
	frames 3 96 >"$work/in"
	make_recording points "$work/in" --shape 2,3,4 --dtype float32 || return
	begin replay xmem replay "$work/in.mcap" --wait-for 1 "${bound[@]}" --fast
	until_it has_pool points &&
		xmem record points --wait -o "$work/again.mcap" 2>"$work/record.err" &&
		same 3 "$(grep -ao '{"sequence.*}' "$work/again.mcap" | wc -l)" &&
		same "$(grep -ao '{"sequence[^}]*}' "$work/in.mcap" | sed "$filter")" \
			"$(grep -ao '{"sequence[^}]*}' "$work/again.mcap" | sed "$filter")" &&
		grep -ao '{"sequence[^}]*}' "$work/again.mcap" | head -n 1 |
		jq -e '.typestr == "<f4" and .shape == [2,3,4] and .strides == [48,16,4]' \
			>"$work/out"
}

# Two pools in one recording, one of them renamed by replay.
pools_come_back_by_name() {
	local a replay
	frames 4 70000 >"$work/a"
	frames 3 80000 >"$work/b"
	begin a xmem put a --size 70000 --wait-for 1 "${bound[@]}" <"$work/a"
	begin b xmem put b --size 80000 --wait-for 1 "${bound[@]}" <"$work/b"
	until_it has_pool a && until_it has_pool b &&
		xmem record a b --wait -o "$work/two.mcap" 2>"$work/record.err" || return
	begin replay xmem replay "$work/two.mcap" --wait-for 1 "${bound[@]}" --fast \
		--pool a=c
	replay=$is
	until_it has_pool c && until_it has_pool b || return
	begin cat xmem cat c --wait
	a=$is
	xmem cat b --wait >"$work/b.out" && ends "$a" && ends "$replay" &&
		cmp "$work/a" "$work/cat.out" && cmp "$work/b" "$work/b.out"
}

limits_end_a_recording() {
	local option
	frames 9 70000 >"$work/in"
	for option in '--count 4' '--bytes 280000' '--bytes 240K'; do
		put_frames cam "$work/in" --size 70000 || return
		# shellcheck disable=SC2086
		xmem record cam --wait $option --force -o "$work/in.mcap" 2>"$work/record.err" ||
			return
		grep -q '^xmem: 4 publications in' "$work/record.err" ||
			says "$option: $(cat "$work/record.err")" || return
		end_jobs
	done
}

# With a limit of time the recording ends although publishers may come.
seconds_end_a_recording() {
	local before
	frames 3 70000 >"$work/in"
	put_frames cam "$work/in" --size 70000 && before=$(date +%s%N) || return
	xmem record cam --wait --lasts --seconds 0.3 -o "$work/in.mcap" 2>"$work/record.err" &&
		[ $(($(date +%s%N) - before)) -ge 300000000 ] &&
		xmem replay "$work/in.mcap" --fast 2>"$work/replay.err" ||
		says "$(cat "$work"/*.err)"
}

# Nobody publishes any more, but the pool is there: SIGINT ends the recording, which is whole.
signals_end_a_recording() {
	local signal record
	frames 3 70000 >"$work/in"
	for signal in INT TERM; do
		rm -f "$work/in.mcap"
		put_frames cam "$work/in" --size 70000 || return
		begin record xmem record cam --wait --lasts -o "$work/in.mcap"
		record=$is
		until_it has_bytes "$work/in.mcap" 210000 && kill -$signal "$record" &&
			ends "$record" && replay_into "$work/out" cam "$work/in.mcap" &&
			cmp "$work/in" "$work/out" || return
	done
}

# read_times FILE: when the publications of a recording were published
read_times() { mapfile -t times < <(grep -ao '"published_ns":"[0-9]*' "$1" | cut -d'"' -f4); }

# A recording of three frames goes round until nobody reads; the first frames can be left out.
replay_loops_and_starts_later() {
	local times start
	frames 3 70000 >"$work/in"
	make_recording cam "$work/in" --size 70000 --rate 10 || return
	begin replay xmem replay "$work/in.mcap" --wait-for 1 "${bound[@]}" --fast --loop
	until_it has_pool cam && xmem cat cam --wait --count 7 >"$work/out" &&
		cat "$work/in" "$work/in" <(head -c 70000 "$work/in") | cmp - "$work/out" || return
	end_jobs
	read_times "$work/in.mcap"
	start=$(((times[1] + times[2]) / 2 - times[0]))		# between the last two
	replay_into "$work/out" cam "$work/in.mcap" \
		--start "$((start / 1000000000)).$(printf %09d $((start % 1000000000)))" &&
		tail -c 70000 "$work/in" | cmp - "$work/out"
}

# A replay takes no less time than the recording, or its part.
replay_keeps_the_pace() {
	local rate before after times
	frames 5 100 >"$work/in"
	make_recording cam "$work/in" --size 100 --rate 10 || return
	read_times "$work/in.mcap"
	for rate in 1 2; do
		begin replay xmem replay "$work/in.mcap" --wait-for 1 --rate $rate "${bound[@]}"
		until_it has_pool cam && before=$(date +%s%N) || return
		xmem cat cam --wait >"$work/out" && after=$(date +%s%N) &&
			cmp "$work/in" "$work/out" || return
		[ $((after - before)) -ge $(((times[4] - times[0]) / rate)) ] ||
			says "rate $rate: $((after - before)) ns" || return
	done
}

# ---- losses ----

# The recorder stands still while 200 frames are published: it cannot have them all. The file and
# both commands say how many it has lost, and where.
losses_are_marked() {
	local put record kept lost told sequence previous=-1 result=0
	frames 200 100 >"$work/in"
	mkfifo "$work/pipe"
	begin put xmem put cam --size 100 --count 200 <>"$work/pipe"
	put=$is
	until_it has_pool cam || return
	begin record xmem record cam -o "$work/in.mcap"
	record=$is
	until_it has_readers cam 1 && kill -STOP "$record" && cat "$work/in" >"$work/pipe" &&
		ends "$put" || return
	kill -CONT "$record"
	ends "$record" || result=1
	rm "$work/pipe"
	read -r _ kept _ < <(tail -n 1 "$work/record.err")
	lost=$(sed -n 's/.*, \([0-9]*\) lost$/\1/p' "$work/record.err")
	[ "$lost" -gt 0 ] && same 200 $((kept + lost)) || result=1
	told=0
	while read -r lost sequence; do
		told=$((told + lost))
		same $((previous + 1 + lost)) "$sequence" || result=1
		previous=$sequence
	done < <(grep -ao '{[^{}]*"sequence[^{}]*}' "$work/in.mcap" |
		jq -r '"\(.lost // 0) \(.sequence)"')
	same 200 $((kept + told)) || result=1
	xmem replay "$work/in.mcap" --fast 2>"$work/replay.err"
	grep -q ", $told lost when" "$work/replay.err" ||
		says "$(cat "$work/replay.err")" || result=1
	return $result
}

# ---- recordings that end badly ----

# All that was written before SIGKILL is read, and replay says that there is no more.
killed_recorder_leaves_frames() {
	local record
	frames 5 100000 >"$work/in"
	put_frames cam "$work/in" --size 100000 || return
	begin record xmem record cam --wait --lasts -o "$work/in.mcap"
	record=$is
	until_it has_bytes "$work/in.mcap" 500000 && kill -KILL "$record" || return
	wait "$record" 2>/dev/null
	replay_into "$work/out" cam "$work/in.mcap"
	same 1 $? && cmp "$work/in" "$work/out" &&
		grep -q 'in.mcap: byte [0-9]*: the file ends here.*cut off$' "$work/replay.err" ||
		says "$(cat "$work/replay.err")" || return
	truncate -s -1000 "$work/in.mcap"
	replay_into "$work/out" cam "$work/in.mcap"
	same 1 $? && head -c 400000 "$work/in" | cmp - "$work/out" &&
		grep -q 'in.mcap: byte [0-9]*: a record of .*cut off$' "$work/replay.err" ||
		says "$(cat "$work/replay.err")"
}

# The disk is full: what fits is there, and the file is whole.
full_disk_keeps_what_fits() {
	local status=0 kept
	frames 30 100000 >"$work/in"
	put_frames cam "$work/in" --size 100000 || return
	(ulimit -f 1000 && exec "$programs/xmem" record cam -o "$work/in.mcap") \
		2>"$work/record.err" || status=$?
	same 1 $status && grep -q 'in.mcap: File too large$' "$work/record.err" &&
		kept=$(sed -n 's/^xmem: \([0-9]*\) publications in .*/\1/p' "$work/record.err") &&
		[ "$kept" -ge 8 ] || says "$(cat "$work/record.err")" || return
	end_jobs
	replay_into "$work/out" cam "$work/in.mcap" &&
		head -c $((kept * 100000)) "$work/in" | cmp - "$work/out"
}

# A file that is changed, or none at all: one line says where, and nothing else happens.
hostile_files_are_refused() {
	local result=0 said
	frames 3 70000 >"$work/in"
	make_recording cam "$work/in" --size 70000 || return
	printf 'x' | dd of="$work/in.mcap" bs=1 seek=100000 conv=notrunc 2>/dev/null
	echo nothing >"$work/text"
	for said in "in.mcap: byte [0-9]*: the chunk is damaged: its CRC is wrong" \
		"text: byte 0: it is no MCAP file" "none: No such file or directory" \
		"null: it is no regular file"; do
		case $said in null*) file=/dev/null ;; *) file=$work/${said%%:*} ;; esac
		xmem replay "$file" --fast 2>"$work/err" && { says "$file is replayed"; result=1; }
		grep -q "^xmem: .*$said$" "$work/err" || { says "$(cat "$work/err")"; result=1; }
	done
	return $result
}

# ---- pipes ----

# A reader that ends early ends cat quietly, and an input that ends within a frame is an error.
pipes_end() {
	local result=0 put
	frames 20 100000 >"$work/in"
	put_frames cam "$work/in" --size 100000 --slots 4
	put=$is
	xmem cat cam --wait 2>"$work/cat.err" | head -c 250000 >"$work/out"
	same '0 0' "${PIPESTATUS[*]}" && same '' "$(cat "$work/cat.err")" || result=1
	head -c 250000 "$work/in" | cmp - "$work/out" && ends $put || result=1
	head -c 250000 "$work/in" | xmem put cam --size 100000 2>"$work/err" && result=1
	grep -q 'it ends after 50000 of the 100000 bytes of frame 2$' "$work/err" || result=1
	make_y4m 2 | head -c 9000 | xmem put cam --y4m 2>"$work/err" && result=1
	grep -q 'standard input: it ends after' "$work/err" || result=1
	echo none | xmem put cam --y4m 2>"$work/err" && result=1
	grep -q 'it does not begin as YUV4MPEG2$' "$work/err" || result=1
	return $result
}

# ---- the demo ----

# The video of the demo is recorded while its consumers work, and replayed into the same consumers.
# Each frame has a checksum, which they verify. The first frame comes when all are there: the
# producer finds an ffmpeg that waits for that.
the_demo_is_replayed() {
	local video=/usr/share/forensics-samples/original-files/movie2/movie-hello.mpeg which
	local producer record replay watchers
	[ -e "$programs/demo-producer" ] || { says 'make demo-programs'; return; }
	cat >"$work/ffmpeg" <<-'END'
		#!/bin/bash
		"$FFMPEG" "$@" | {
			IFS= read -r line && printf '%s\n' "$line"
			until [ -e "$GATE" ]; do read -r -t 0.01 <> <(:); done
			exec cat
		}
		exit "${PIPESTATUS[0]}"
	END
	chmod +x "$work/ffmpeg"
	begin producer env PATH="$work:$PATH" GATE="$work/gate" FFMPEG="$(command -v ffmpeg)" \
		"$programs/demo-producer" demo "$video" 600000
	producer=$is
	until_it has_pool demo || return
	watch_demo live
	begin record xmem record demo --wait -o "$work/demo.mcap"
	record=$is
	until_it has_readers demo 4 && touch "$work/gate" &&
		ends_watching && ends "$record" && ends "$producer" || return
	begin replay xmem replay "$work/demo.mcap" --fast "${bound[@]}" --wait-for 3
	replay=$is
	until_it has_pool demo || return
	watch_demo again
	ends_watching && ends "$replay" || return
	for which in histogram motion cat; do
		cmp "$work/live-$which.out" "$work/again-$which.out" || return
	done
	grep -q '^histogram: [0-9]* frames, 0 lost, 0 corrupt' "$work/again-histogram.out"
}
watch_demo() {
	begin "$1-histogram" "$programs/demo-histogram" demo
	watchers=("$is")
	begin "$1-motion" "$programs/demo-motion" demo
	watchers+=("$is")
	begin "$1-cat" bash -c '"$1" cat demo --wait | sha256sum' cat "$programs/xmem"
	watchers+=("$is")
}
ends_watching() {
	local watcher
	for watcher in "${watchers[@]}"; do
		ends "$watcher" || return
	done
}

# ---- wrong arguments ----

# refuses STATUS WORDS ARGUMENT...
refuses() {
	local wanted=$1 words=$2 status=0
	shift 2
	xmem "$@" </dev/null >"$work/out" 2>"$work/err" || status=$?
	same "$wanted" $status && same '' "$(cat "$work/out")" &&
		same 1 "$(wc -l <"$work/err")" && grep -q "^xmem: .*$words" "$work/err" ||
		says "xmem $*: $(cat "$work/err")"
}

wrong_arguments() {
	touch "$work/there"
	refuses 2 'record: which file? -o FILE' record cam &&
		refuses 2 'record: --output needs a value' record cam -o &&
		refuses 2 "record: the arguments are" record -o "$work/none" &&
		refuses 2 "count is a number from 1 to [0-9]*, not '0'" record cam -o x --count 0 &&
		refuses 2 "bytes is a number" record cam -o x --bytes K &&
		refuses 2 "seconds is a number of seconds, not '-1'" record cam -o x --seconds -1 &&
		refuses 2 'replay: --rate or --fast' replay x --rate 2 --fast &&
		refuses 2 "rate is a number from 0.001 to 1000000, not 'nan'" \
			replay x --rate nan &&
		refuses 2 "pool is OLD=NEW, not 'cam'" replay x --pool cam &&
		refuses 2 'cat: there is no option --size' cat cam --size 1 &&
		refuses 2 'put: what is a frame' put cam &&
		refuses 2 'put: what is a frame' put cam --size 1 --y4m &&
		refuses 2 'put: --shape is up to 8 numbers' put cam --shape 1,0 &&
		refuses 2 "dtype is a type such as .*, not 'float'" \
			put cam --shape 1 --dtype float &&
		refuses 1 'nosuch' cat nosuch && refuses 1 'nosuch' record nosuch -o "$work/none" &&
		[ ! -e "$work/none" ] || says 'it has made a file' || return
	frames 1 100 >"$work/in"
	put_frames cam "$work/in" --size 100 || return
	refuses 1 'there: File exists$' record cam -o "$work/there" &&
		same 0 "$(stat -c %s "$work/there")"
}

for name in contents_come_back images_come_back metadata_come_back \
	pools_come_back_by_name limits_end_a_recording seconds_end_a_recording \
	signals_end_a_recording replay_loops_and_starts_later replay_keeps_the_pace \
	losses_are_marked killed_recorder_leaves_frames full_disk_keeps_what_fits \
	hostile_files_are_refused pipes_end the_demo_is_replayed wrong_arguments; do
	[ -z "$wanted" ] || [[ $wanted = *" $name "* ]] || continue
	if [ $name = the_demo_is_replayed ] && [ "$XMEM_BACKEND" = kernel ]; then
		echo "SKIP $name: it does not depend on the host"
		skipped=$((skipped + 1))
		continue
	fi
	result=0
	"$name" || result=$?
	end_jobs
	rm -rf "${work:?}"/*
	case $result in
	0) passed=$((passed + 1)) ;;
	*) failed=$((failed + 1)); echo "FAIL $name" ;;
	esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
