#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The programs of examples/ work as they promise when publishers are killed and started again, and
# when the host is killed: the subscribers go on.
#   XMEM_BACKEND=daemon|kernel tests/examples.sh [FOLDER [NAME...]]
# FOLDER is build/release, and the names are those of tests.
# The script waits for lines that the programs print. A line that does not come within PATIENCE
# seconds is a failure.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

programs=${1:-build/release}
backend=${XMEM_BACKEND:?is daemon or kernel}
patience=${PATIENCE:-600}
export XMEM_SOCKET=xmem-examples-$$
work=$(mktemp -d)
# Programs that use a GPU get a fake one. At the end the script looks for the violations that it has
# logged.
fake=$(realpath -m "$programs/fakecuda/libcuda.so.1")
export XMEM_DEVICE_FILES=195:255,memfd FAKECUDA_LOG=$work/violations FAKECUDA_DELAY_US=300
passed=0 failed=0 skipped=0 name=''
declare -A pid out
clean_up() {
	trap - EXIT
	[ ${#pid[@]} = 0 ] || kill -KILL "${pid[@]}" 2>/dev/null
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# ---- running programs, and their output ----

# run NAME PROGRAM ARGUMENT...: NAME means it from now on. It has this script's standard input.
run() {
	local who=$1 program=$2
	[[ $program = /* ]] || program=$programs/$program
	shift 2
	rm -f "$work/$who"
	mkfifo "$work/$who"
	: >"$work/$who.log"
	stdbuf -oL "$program" "$@" <&0 >"$work/$who" 2>"$work/$who.err" 8>&- 9>&- &
	pid[$who]=$!
	exec {out[$who]}<"$work/$who"
}

# expect NAME PATTERN [COUNT]: reads the program's output up to the COUNTth line that matches this
# extended regular expression. NAME.log keeps all of the output.
expect() {
	local who=$1 pattern=$2 left=${3:-1} line
	while [ "$left" -gt 0 ]; do
		if ! IFS= read -r -t "$patience" -u "${out[$who]}" line; then
			echo "  $who does not print '$pattern'; its errors: $(cat "$work/$who.err")"
			return 1
		fi
		echo "$line" >>"$work/$who.log"
		[[ ! $line =~ $pattern ]] || left=$((left - 1))
	done
}

# end NAME SIGNAL: kills it, and keeps its output until then.
end() {
	kill -"$2" "${pid[$1]}" 2>/dev/null
	wait "${pid[$1]}" 2>/dev/null
	unset "pid[$1]"
	cat <&"${out[$1]}" >>"$work/$1.log"
	exec {out[$1]}<&-
}

# ends NAME STATUS: waits until it ends by itself, with that status.
ends() {
	local status=0
	wait "${pid[$1]}" || status=$?
	unset "pid[$1]"
	[ $status = "$2" ] || { echo "  $1 ends with $status, not $2"; return 1; }
}

running() { kill -0 "${pid[$1]}"; }

# A publisher whose frames this script writes: feed writes to its standard input, and eof closes it.
# Descriptor 8 is that pipe. Descriptor 9 is open in both directions, so that 8 can be opened before
# there is a reader.
run_publisher() {
	rm -f "$work/frames"
	mkfifo "$work/frames"
	exec 9<>"$work/frames" 8>"$work/frames"
	run "$1" publisher <"$work/frames"
	exec 9<&-
}
feed() { head -c "$1" /dev/zero >&8; }
eof() { exec 8>&-; }

# fed NAME BYTES LINE: feeds the publisher so many bytes, and expects that line from NAME. NAME may
# subscribe later than that, because it asks for the last earlier publication.
fed() { feed "$2" && expect "$1" "$3"; }

# follows NAME: a program whose subscription does not last says so.
follows() { expect "$1" '^following (a publisher|publisher [0-9]+)$'; }

# ---- the tests ----

# Frames arrive as they are fed. One publisher ends, the next one is killed, and the subscriber
# follows a third one.
subscriber_follows_each_publisher() {
	run_publisher first
	run subscriber subscriber
	fed subscriber 1048576 '^1048576 bytes at 0x' && feed 100 || return
	eof
	expect subscriber '^100 bytes at 0x' && ends first 0 || return
	run_publisher second
	fed subscriber 1048576 '^1048576 bytes at 0x' || return
	end second KILL
	run_publisher third
	fed subscriber 1048576 '^1048576 bytes at 0x' && running subscriber
}

# pictures NAME: for each picture, the number and the sum over all pixels that NAME prints.
pictures() { grep '^picture' "$work/$1.log"; }

# all_sent FROM: FROM has sent each picture that the consumer has shown since its log was emptied,
# with equal contents and in this order; and there is at least one.
all_sent() {
	pictures consumer >"$work/seen"
	pictures "$1" >"$work/sent"
	[ "$(wc -l <"$work/seen")" -ge 5 ] || { echo "  consumer has seen too little"; return 1; }
	if grep -vxFf "$work/sent" "$work/seen"; then
		echo "  ... is nothing that $1 has sent"
		return 1
	fi
	sort -c -u -n -k 2,2 "$work/seen"
}

# The oldest server answers. When it is killed, the next one does.
service_survives_its_server() {
	run first service serve
	expect first serving || return
	run second service serve
	[ "$("$programs/service" one two)" = $'ONE\nTWO' ] || return
	end first KILL
	[ "$("$programs/service" three)" = THREE ] && expect second serving
}

# pass_pictures PRODUCER CONSUMER: one producer is killed, the next one terminated.
pass_pictures() {
	run first "$1" pictures
	run consumer "$2" pictures
	expect consumer '^picture' 5 || return
	end first KILL
	expect consumer '^publisher ended, [0-9]+ lost$' && all_sent first || return
	: >"$work/consumer.log"
	run second "$1" pictures
	expect consumer '^picture' 5 && running consumer || return
	end second TERM
	expect consumer '^publisher ended' && all_sent second || return
	! cmp -s "$work/first.log" "$work/second.log"	# so a sum shows which producer it is from
}

consumer_gets_what_producer_sent() { pass_pictures producer consumer; }

# use_fake_gpu: status 77 means that this host does not take its memory.
use_fake_gpu() {
	if [ "$backend" = kernel ] && [ -z "${FAKECUDA_DEVICE_FILE:-}" ]; then
		echo "SKIP $name: xmem.ko takes files of devices only (FAKECUDA_DEVICE_FILE)"
		return 77
	fi
	[ -e "$fake" ] || { echo "  there is no $fake: make fakecuda"; return 1; }
	export XMEM_CUDA_DRIVER=$fake
}

no_violations() { [ ! -s "$FAKECUDA_LOG" ] || { cat "$FAKECUDA_LOG"; return 1; }; }

gpu_consumer_gets_what_gpu_producer_sent() {
	use_fake_gpu || return
	pass_pictures gpu_producer gpu_consumer &&
		grep -q '^  76800 bytes at 0x[0-9a-f]* on GPU 0$' "$work/consumer.log" &&
		no_violations
}

# numbers NAME: the sums of the sequences that NAME prints.
numbers() { grep '^sequence' "$work/$1.log"; }

# Two sequences of three blocks each, and a cache of only four blocks: the decoder gives back what
# it has read, and has read what the prefill worker has computed. One decoder is killed with all of
# its blocks, and the next one gets the remaining sequences.
kv_blocks_are_read_where_they_are() {
	use_fake_gpu || return
	run decoder kv_blocks decode
	expect decoder '^decode: ready$' && run prefill kv_blocks prefill 2 &&
		expect prefill '^sequence 1 ' && expect decoder '^sequence 1 ' || return
	ends prefill 0 && numbers prefill >"$work/computed" || return
	numbers decoder | cmp "$work/computed" - || return
	run next kv_blocks prefill 1000000
	expect decoder '^sequence' 3 && end decoder KILL || return
	: >"$work/next.log"
	run other kv_blocks decode
	expect other '^sequence' 5 && end next KILL || return
	numbers next >"$work/computed"
	! numbers other | grep -vxFf "$work/computed" && no_violations
}

no_gpu_is_an_error() {
	! XMEM_CUDA_DRIVER=none.so "$programs/gpu_producer" >"$work/told" 2>"$work/err" &&
		[ ! -s "$work/told" ] && [ "$(wc -l <"$work/err")" = 1 ] &&
		grep -q '^gpu_producer: .*there is no CUDA driver: none.so' "$work/err"
}

# The demo's frames are on a GPU, and its programs are killed. The demo itself finds the fake
# driver.
demo_on_a_gpu() {
	local said
	use_fake_gpu || return
	unset XMEM_CUDA_DRIVER
	DEMO_GPU=1 DEMO_BACKEND=$backend DEMO_PROGRAMS=$programs DEMO_FOLDER=$work/demo \
		examples/demo.sh run >"$work/told" 2>&1
	said=$(tail -n 1 "$work/told")
	[[ $said =~ ^"demo: backend=$backend frames="[0-9]+" stages=1 consumers=3 killed=2 "\
"corrupt=0 leaked=0 gpu_leaked_bytes=0"$ ]] || { echo "  it says: $said"; return 1; }
	grep -q '^demo: GPU: ' "$work/told" ||
		grep -q "^demo: tests/fakecuda stands in for one" "$work/told" || return
	no_violations
}

# contain SERVICE: runs it as compose.yaml says, in namespaces of its own. Only the folder is
# shared.
contain() {
	local line folder
	line=$(/usr/bin/python3 tests/compose.py examples/containers/compose.yaml) || return
	IFS=$'\t' read -r -a line < <(grep "^$1"$'\t' <<<"$line")
	folder=${line[1]}
	line=("${line[@]:2}")
	# shellcheck disable=SC2016
	run "$1" "$(command -v unshare)" --map-root-user --mount --net --ipc --pid --fork \
		--mount-proc --kill-child bash -c 'mount -t tmpfs none /run && mkdir "$2" &&
		mount --bind "$1" "$2" && PATH=$3:$PATH && shift 3 && exec env "$@"' bash \
		"$work/volume" "$folder" "$(realpath "$programs")" "${line[@]}"
}

# xmemd, the producer and the consumer are in three containers. A producer is killed there.
containers_share_a_pool() {
	if [ "$backend" = kernel ]; then
		echo "SKIP $name: containers need no xmemd there"
		return 77
	fi
	if ! unshare --map-root-user --mount true 2>"$work/err"; then
		echo "SKIP $name: $(cat "$work/err")"
		return 77
	fi
	mkdir -m 700 "$work/volume"
	contain xmemd || return
	until [ -S "$work/volume/socket" ]; do
		running xmemd || { cat "$work/xmemd.err"; return 1; }
	done
	contain producer && contain consumer && expect consumer '^picture' 5 || return
	same_namespace pid || same_namespace mnt || same_namespace ipc || same_namespace net || {
		end producer KILL
		expect consumer '^publisher ended, [0-9]+ lost$' && all_sent producer
		return
	}
	echo '  two containers share a namespace'
	return 1
}

# same_namespace KIND: do two of these programs share it, or one share it with this script?
same_namespace() {
	local member seen=''
	for member in xmemd producer consumer; do
		seen+=$(readlink "/proc/$(pgrep -P "${pid[$member]}")/ns/$1")$'\n'
	done
	seen+=$(readlink "/proc/$$/ns/$1")
	[ "$(sort -u <<<"$seen" | wc -l)" != 4 ]
}

token_passes_through_a_pipe() {
	local texts=(hello 'two words' '' "$(printf '%4000s' long)")
	"$programs/token_pipe" "${texts[@]}" >"$work/told" || return
	printf '%s\n' "${texts[@]}" | cmp - "$work/told"
}

# The sender says why and fails. The receiver ends as well, because it has nothing to read any more.
token_of_a_text_too_long() {
	! "$programs/token_pipe" hi "$(printf '%5000s' long)" >"$work/told" 2>"$work/err" || return
	[ "$(cat "$work/told")" = hi ] && grep -q '^token_pipe: sender: .*no buffer' "$work/err"
}

reconnecting_survives_its_publisher() {
	run_publisher first
	run reconnecting reconnecting camera
	expect reconnecting "^pool camera is open on the $backend host$" &&
		fed reconnecting 1048576 '^0: 1048576 bytes$' || return
	end first KILL
	run_publisher second
	fed reconnecting 1048576 '^0: 1048576 bytes$' && running reconnecting
}

# The daemon that serves this script's address; empty if there is none.
daemon() {
	local environ comm
	for environ in $(grep -lsazxF "XMEM_SOCKET=$XMEM_SOCKET" /proc/[0-9]*/environ); do
		read -r comm 2>/dev/null <"${environ%environ}comm" || continue
		[ "$comm" != xmemd ] || basename "${environ%/environ}"
	done
}

reconnecting_survives_its_host() {
	local host
	if [ "$backend" = kernel ]; then
		echo "SKIP $name: the module stays loaded as long as a pool is open"
		return 77
	fi
	run_publisher first
	run reconnecting reconnecting camera
	fed reconnecting 1048576 '^0: 1048576 bytes$' || return
	host=$(daemon)
	[[ $host =~ ^[0-9]+$ ]] || { echo "  not one daemon: $host"; return 1; }
	kill -KILL "$host"
	expect reconnecting '^pool camera is open on the daemon host$' &&
		grep -q 'the host has gone' "$work/reconnecting.err" || return
	end first KILL
	run_publisher second
	fed reconnecting 1048576 '^0: 1048576 bytes$' && [ "$(daemon)" != "$host" ]
}

# asked PATH: connects to that Unix socket, and prints the answer of the program that listens there.
asked() {
	perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0) &&
		connect(S, pack_sockaddr_un($ARGV[0])) or die "$ARGV[0]: $!\n"; print <S>' "$1"
}

# Frames and questions come in turn; the loop waits for both at once.
event_loop_serves_frames_and_a_socket() {
	local n
	run_publisher first
	run loop event_loop "$work/socket"
	follows loop || return
	for n in 1 2 3; do
		feed 1048576 && expect loop "^frame $n: 1048576 bytes$" || return
		[ "$(asked "$work/socket")" = "$n frames so far" ] || return
	done
	eof
	expect loop '^the publisher has ended$' && ends loop 0 && ends first 0
}

# in_loop PROGRAM: frames arrive between the program's own events. Then the publisher is killed.
in_loop() {
	if [ ! -x "$programs/$1" ]; then
		echo "SKIP $name: $2 is not installed"
		return 77
	fi
	run_publisher first
	run loop "$1"
	follows loop && fed loop 1048576 '^1048576 bytes$' && expect loop '^tick$' 2 &&
		feed 1048576 && expect loop '^1048576 bytes$' || return
	end first KILL
	expect loop '^the publisher has ended$' && ends loop 0
}

frames_in_a_glib_loop() { in_loop glib_loop libglib2.0-dev; }
frames_in_a_libuv_loop() { in_loop uv_loop libuv1-dev; }

# says_no_host ENVIRONMENT...: every program says why in one line, and fails.
says_no_host() {
	local program
	for program in subscriber publisher producer consumer token_pipe reconnecting \
		gpu_producer gpu_consumer; do
		if env "$@" "$programs/$program" >"$work/told" 2>"$work/err" </dev/null; then
			echo "  $program: no error"
			return 1
		fi
		if [ "$(wc -l <"$work/err")" != 1 ] || [ -s "$work/told" ] ||
			! grep -q "^$program: .*open.* pool.*: .*xmem" "$work/err"; then
			echo "  $program says: $(cat "$work/told" "$work/err")"
			return 1
		fi
	done
}

no_daemon_is_an_error() {
	says_no_host XMEM_BACKEND=daemon XMEM_DAEMON=none XMEM_SOCKET="$XMEM_SOCKET-none"
}

no_device_is_an_error() {
	if [ -e /dev/xmem ]; then
		echo "SKIP $name: this machine has /dev/xmem"
		return 77
	fi
	says_no_host XMEM_BACKEND=kernel
}

buffers_are_handed_over_by_count() {
	"$programs/claims" 10 >"$work/told" || return
	[ "$(wc -l <"$work/told")" = 5 ] &&
		grep -q '^10 buffers handed over' "$work/told" &&
		[ "$(tail -n 1 "$work/told")" = \
			'nothing is left: no buffer, no reference, no hold' ]
}

publisher_that_cannot_read() {
	! "$programs/publisher" </ 2>"$work/err" &&
		[ "$(cat "$work/err")" = 'publisher: standard input: Is a directory' ]
}

wanted=${2:+" ${*:2} "}
for name in subscriber_follows_each_publisher consumer_gets_what_producer_sent \
	service_survives_its_server token_passes_through_a_pipe token_of_a_text_too_long \
	reconnecting_survives_its_publisher \
	event_loop_serves_frames_and_a_socket frames_in_a_glib_loop frames_in_a_libuv_loop \
	reconnecting_survives_its_host no_daemon_is_an_error no_device_is_an_error \
	gpu_consumer_gets_what_gpu_producer_sent kv_blocks_are_read_where_they_are \
	no_gpu_is_an_error demo_on_a_gpu \
	publisher_that_cannot_read containers_share_a_pool buffers_are_handed_over_by_count; do
	[ -z "$wanted" ] || [[ $wanted = *" $name "* ]] || continue
	result=0
	"$name" || result=$?
	case $result in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) ;;
	*) failed=$((failed + 1)); echo "FAIL $name" ;;
	esac
	for program in "${!pid[@]}"; do
		end "$program" KILL
	done
	unset XMEM_CUDA_DRIVER
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
