#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What "make demo" does with bad videos (one line, an error, nothing left behind),
# with good ones that have strange names and sizes, and when it is interrupted.
set -uo pipefail
cd "$(dirname "$0")/.."

clip=/usr/share/forensics-samples/original-files/movie2/movie-hello.mpeg
sound=/usr/share/forensics-samples/original-files/audio1/debian.mp3
picture=/usr/share/forensics-samples/original-files/pic1/debian.png
folder=build/demo
passed=0 failed=0

good() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $name: $*"; }

mkdir -p build
work=$(realpath "$(mktemp -d build/bad-input.XXXXXX)")
trap 'rm -rf "$work"' EXIT
# All processes of this script have this variable, by which /proc shows that they are its own.
export BAD_INPUT_MARK=$work

# The processes that still run, except this script and the daemon, which stays for the next demo.
left_running() {
	local environ pid
	for environ in $(grep -lsF "BAD_INPUT_MARK=$work" /proc/[0-9]*/environ); do
		pid=${environ#/proc/}
		pid=${pid%/environ}
		case $(cat "/proc/$pid/comm" 2>/dev/null) in
		'' | xmemd | demo-bad-input* | bash | grep) ;;
		*) tr '\0' ' ' <"/proc/$pid/cmdline" ;;
		esac
	done
}

nothing_left() {
	local running
	running=$(left_running)
	[ -z "$running" ] || { bad "still running: $running"; return 1; }
	[ ! -e "$folder" ] || { bad "left behind: $(ls -A "$folder")"; return 1; }
}

# refuses NAME VIDEO WORDS: make demo fails with one line, which has these words.
refuses() {
	local status=0 lines
	name=$1
	rm -rf "$folder"
	make --no-print-directory demo VIDEO="$2" >"$work/out" 2>"$work/err" || status=$?
	[ $status != 0 ] || { bad "no error"; return; }
	lines=$(grep -v '^make' "$work/err")
	[ "$(wc -l <<<"$lines")" = 1 ] || { bad "not one line: $lines"; return; }
	[[ $lines == "demo: "*"$3"* ]] || { bad "says: $lines"; return; }
	nothing_left && good
}

# takes NAME VIDEO: make demo runs well. With GPU=1 it leaves nothing on the GPU.
takes() {
	local status=0 last end='leaked=0'
	name=$1
	[ -z "${GPU:-}" ] || end+=' gpu_leaked_bytes=0'
	make --no-print-directory demo VIDEO="$2" >"$work/out" 2>&1 || status=$?
	last=$(tail -n 1 "$work/out")
	if [ $status != 0 ] ||
	   [[ $last != "demo: backend="*" consumers=3 killed=2 corrupt=0 $end" ]]; then
		bad "status $status, $last"
	else
		good
	fi
}

# is_stopped NAME SIGNAL: the signal comes in the middle of the demo, as by Ctrl-C.
is_stopped() {
	local job
	name=$1
	rm -rf "$folder"
	: >"$work/out"
	set -m			# a process group of its own, and no signals ignored
	make --no-print-directory demo VIDEO="$work/large.mkv" >"$work/out" 2>&1 &
	job=$!
	set +m
	until grep -q '^demo: frame' "$work/out" || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
	kill -"$2" -- -$job
	wait $job && { bad "no error"; return; }
	grep -q '^demo: stopped: ' "$work/out" || { bad "says: $(tail -n 2 "$work/out")"; return; }
	nothing_left && good
}

# A script with these lines runs instead of PROGRAM of ffmpeg; $real is the program itself.
replace() {
	mkdir -p "$work/bin"
	printf '#!/bin/sh\nreal=%s\n%s\n' "$(command -v "$1")" "$2" >"$work/bin/$1"
	chmod +x "$work/bin/$1"
}

# eventually COMMAND...: COMMAND succeeds within a minute. Nothing announces the end of a process.
eventually() {
	local tries
	for ((tries = 0; tries < 1200; tries++)); do
		"$@" && return 0
		sleep 0.05
	done
	return 1
}

nothing_runs() { [ -z "$(left_running)" ]; }

# Only the director gets a signal, while it looks whether the file is a video.
director_is_stopped_while_probing() {
	local director
	name=probing_terminated
	rm -rf "$folder" "$work/probing"
	# shellcheck disable=SC2016
	replace ffprobe ': >"${0%/bin/*}/probing"; exec sleep 1000'
	PATH=$work/bin:$PATH build/release/demo-director -o "$folder" -- "$clip" >"$work/out" 2>&1 &
	director=$!
	eventually [ -e "$work/probing" ] || bad "it does not start ffprobe"
	kill -TERM $director
	wait $director && { bad "no error"; return; }
	eventually nothing_runs || { bad "still running: $(left_running)"; return; }
	nothing_left && good
	rm "$work/bin/ffprobe"
}

# The demo fails if its output cannot be written.
output_is_not_written() {
	local status=0
	name=$1
	"${@:2}" build/release/demo-director -p -o "$folder" -- "$work/odd.mkv" 2>"$work/err" ||
		status=$?
	[ $status = 1 ] && grep -q '^demo: standard output: ' "$work/err" ||
		{ bad "status $status, $(cat "$work/err")"; return; }
	good
}

# Each further start of ffmpeg makes one frame take longer.
one_frame_starts_few_processes() {
	local starts
	name=one_frame
	# shellcheck disable=SC2016
	replace ffmpeg 'echo start >>"${0%/bin/*}/starts"; exec "$real" "$@"'
	rm -f "$work/starts"
	PATH=$work/bin:$PATH takes one_frame "$work/one.mkv"
	starts=$(wc -l <"$work/starts")
	[ "$starts" -le 6 ] || bad "ffmpeg was started $starts times"
	rm "$work/bin/ffmpeg"
}

# make_video SIZE SECONDS FILE [CODEC]
make_video() {
	ffmpeg -nostdin -v error -f lavfi -i "testsrc=size=$1:rate=10:duration=$2" \
		-c:v "${4:-mpeg4}" "$work/$3"
}

if ! make --no-print-directory demo-programs >"$work/out" 2>&1; then
	cat "$work/out"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
fi
: >"$work/empty.mp4"
# ffprobe takes one file in sixty of /dev/urandom for a video or for lyrics. So these bytes are the
# output of a compressor, and never others.
seq 100000 | gzip -n | tail -c +64 | head -c 100000 >"$work/noise.mp4"
echo "no video" >"$work/text.mp4"
head -c 400000 "$clip" >"$work/cut.mpeg"
{ head -c 500000 "$clip"; head -c 3000 /dev/zero | tr '\0' x; tail -c +503001 "$clip"; } \
	>"$work/damaged.mpeg"
ffmpeg -nostdin -v error -i "$sound" -i "$picture" -map 0 -map 1 -c:v png \
	-disposition:v attached_pic "$work/cover.mp3"
cp "$clip" "$work/with space \$x'\".mpeg"
make_video 321x181 1 odd.mkv
make_video 2x2 1 tiny.mkv ffv1
make_video 320x180 0.1 one.mkv
make_video 3840x2160 3 large.mkv
# Videos that ffmpeg plays: one with a hole, and one with two streams of different sizes in turn.
overwrite() {	# FILE FROM BYTES COPY
	{ head -c "$2" "$work/$1"; head -c "$3" /dev/zero | tr '\0' x
	  tail -c +$(($2 + $3 + 1)) "$work/$1"; } >"$work/$4"
}
make_video 320x180 3 whole.mkv
overwrite whole.mkv 20000 3000 damaged.mkv
head -c 1000 "$work/whole.mkv" >"$work/headless.mkv"
make_video 320x180 1 first.ts mpeg2video
make_video 640x360 1 second.ts mpeg2video
cat "$work/first.ts" "$work/second.ts" >"$work/spliced.ts"

refuses missing "$work/none.mp4" 'No such file'
refuses folder "$work" 'not a regular file'
refuses device /dev/zero 'not a regular file'
refuses empty "$work/empty.mp4" 'empty'
refuses noise "$work/noise.mp4" 'not a video'
refuses text "$work/text.mp4" 'not a video'
refuses picture "$picture" 'not a video'
refuses sound "$sound" 'no video in it'
refuses sound_with_cover "$work/cover.mp3" 'no video in it'
refuses no_frame "$work/headless.mkv" 'cannot be decoded'
BACKEND=none refuses backend_unknown "$clip" 'BACKEND is kernel or daemon'
GPU=2 refuses gpu_unknown "$clip" 'GPU is 1 or nothing'
GPU=1 MODE=claims refuses gpu_claims "$clip" 'MODE=claims'
GPU=1 XMEM_CUDA_DRIVER=none.so refuses gpu_not_there "$clip" 'SKIP: no GPU'
GPU=1 takes gpu_odd_size "$work/odd.mkv"
GPU=1 takes gpu_two_by_two "$work/tiny.mkv"
GPU=1 takes gpu_one_frame "$work/one.mkv"
GPU=1 takes gpu_large "$work/large.mkv"
takes strange_name "$work/with space \$x'\".mpeg"
takes odd_size "$work/odd.mkv"
takes two_by_two "$work/tiny.mkv"
takes cut "$work/cut.mpeg"
takes damaged "$work/damaged.mpeg"
takes damaged_mkv "$work/damaged.mkv"
takes spliced "$work/spliced.ts"
is_stopped interrupted INT
is_stopped terminated TERM
director_is_stopped_while_probing
output_is_not_written stdout_full bash -c '"$@" >/dev/full' bash
output_is_not_written stdout_closed bash -c '"$@" >&-' bash
one_frame_starts_few_processes

echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
