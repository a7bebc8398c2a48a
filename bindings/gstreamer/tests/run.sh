#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run.sh [-p] PROGRAM [NAME]: the tests of the plugin of GStreamer, which are those of the program
# build/FLAVOUR/gstreamer-tests, and the checks below, which need the plugin beside the program and
# GStreamer's tools. NAME is one of either. -p: only those of the program, as with a sanitizer.
#
# A warning of GLib or GStreamer ends a program (G_DEBUG). The last line is "N passed, N failed,
# N skipped".
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 2
checks=(elements_are_inspected files_are_equal clips_are_equal nothing_leaks)
[ "${1:-}" != -p ] || { checks=(); shift; }
program=$(realpath "${1:?usage: run.sh [-p] PROGRAM [NAME]}") name=${2:-}

# This run shares no pool and no registry with another program.
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
unset XMEM_DAEMON
export XMEM_SOCKET=$work/socket XMEM_BACKEND=daemon XMEM_QUIET=1 TMPDIR=$work G_DEBUG=fatal-warnings
export GST_REGISTRY_1_0=$work/registry GST_PLUGIN_PATH_1_0=${program%/*}/gstreamer

# both PROCESS: has the last command succeeded, and that process too? It has ended then.
both() {
	local status=$?
	wait "$1" && [ $status = 0 ]
}

launch() { timeout 600 gst-launch-1.0 -q "$@"; }

elements_are_inspected() {
	gst-inspect-1.0 xmem | grep -F '2 features' && gst-inspect-1.0 xmemsink | grep max-wait &&
		gst-inspect-1.0 xmemsrc | grep reconnect
}

# Two processes write the file that one would write.
files_are_equal() {
	local video=(videotestsrc num-buffers=60 !
		video/x-raw,format=I420,width=640,height=480,framerate=30/1)
	launch xmemsrc pool=camera leaky=false ! filesink location="$work/two" &
	launch "${video[@]}" ! xmemsink pool=camera subscribers=1 sync=false
	both $! && launch "${video[@]}" ! filesink location="$work/one" &&
		[ -s "$work/one" ] && cmp "$work/one" "$work/two"
}

# The page's clip: a decoder writes into the pool.
clips_are_equal() {
	local clip=/usr/share/forensics-samples/original-files/movie2/movie-hello.ogg
	local video=(filesrc location=$clip ! oggdemux ! theoradec)
	launch xmemsrc pool=clip leaky=false ! filesink location="$work/two" &
	GST_DEBUG=GST_PERFORMANCE:3 launch "${video[@]}" ! xmemsink pool=clip subscribers=1 \
		sync=false 2>"$work/copies"
	both $! && launch "${video[@]}" ! filesink location="$work/one" &&
		[ -s "$work/one" ] && cmp "$work/one" "$work/two" && ! grep . "$work/copies"
}

# valgrind: no memory is used after its end, and none is lost.
leaks() {
	G_SLICE=always-malloc timeout 600 valgrind -q --leak-check=full \
		--show-leak-kinds=definite --errors-for-leak-kinds=definite --error-exitcode=9 \
		"$program" launch "$1"
}
nothing_leaks() {
	local small='video/x-raw,format=NV12,width=35,height=17'
	leaks 'xmemsrc pool=t leaky=false ! queue ! videoconvert ! fakesink' &
	leaks "videotestsrc num-buffers=20 ! $small ! queue !
		xmemsink pool=t subscribers=1 sync=false"
	both $!
}

passed=0 failed=0
check() {
	[ -z "$name" ] || [ "$name" = "$1" ] || return
	if "$1" >"$work/log" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $1"
		sed 's/^/    /' "$work/log"
	fi
}

for each in "${checks[@]}"; do check "$each"; done
if [ $((passed + failed)) = 0 ] || [ -z "$name" ]; then
	${name:+env CK_RUN_CASE="$name"} "$program" | tee "$work/log"
	sed -nE 's/^[^ ]+:[FES]:([a-z_]+):[a-z_]+:[0-9]+: /FAIL \1: /p' "$work/log"
	read -r p _ f _ <<<"$(tail -1 "$work/log")"
	[[ $p$f =~ ^[0-9]+$ ]] || { p=0 f=1; echo 'FAIL the program'; }
	passed=$((passed + p)) failed=$((failed + f))
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
