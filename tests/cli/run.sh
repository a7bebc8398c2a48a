#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the xmem tool: every command as table and as JSON, beside a scene (scene.c) whose holders
# are known; then its messages for wrong arguments, without a host, and when its output cannot be
# written.
#   tests/cli/run.sh [FOLDER [NAME...]]     with the daemon, or XMEM_BACKEND=kernel
# FOLDER is build/release, and the names are those of tests; they run in the order below.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

programs=$(realpath "${1:-build/release}")
wanted=${2:+" ${*:2} "}
export XMEM_BACKEND=${XMEM_BACKEND:-daemon}
backend=$XMEM_BACKEND
export XMEM_SOCKET=xmem-cli-$$ XMEM_DAEMON=$programs/xmemd
export XMEM_CUDA_DRIVER=$programs/fakecuda/libcuda.so.1
nowhere="env XMEM_BACKEND=daemon XMEM_SOCKET=$XMEM_SOCKET-none"
work=$(mktemp -d)
passed=0 failed=0 skipped=0 name='' scene='' other='' screens=0
declare -A is			# processes and tokens, as the scene prints them
clean_up() {
	trap - EXIT
	[ -z "$scene$other" ] || kill ${scene:+"$scene"} ${other:+"$other"} 2>/dev/null
	[ $screens = 0 ] || end_screen 2>/dev/null
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# ---- tools ----

xmem() { "$programs/xmem" "$@"; }

says() { echo "  $*"; return 1; }

# json FILTER COMMAND...: prints the tool's JSON through jq, one value a line.
json() {
	local filter=$1
	shift
	xmem "$@" --json | jq -c "${known[@]}" "$filter"
}

# same WANTED GOT
same() { [ "$1" = "$2" ] || says "wanted $1" $'\n'"  got    $2"; }

# cells COMMAND...: prints the table without its titles, with one space between cells.
cells() { xmem "$@" | tail -n +2 | sed 's/^ *//; s/  */ /g'; }

# refuses STATUS WORDS ARGUMENT...: the tool ends with that status, and prints one line with these
# words.
refuses() {
	local wanted=$1 words=$2 status=0
	shift 2
	"$@" >"$work/out" 2>"$work/err" || status=$?
	[ $status = "$wanted" ] || { says "$*: status $status, not $wanted"; return; }
	[ ! -s "$work/out" ] || { says "$*: it also prints $(cat "$work/out")"; return; }
	[ "$(wc -l <"$work/err")" = 1 ] && grep -q "^xmem: .*$words" "$work/err" ||
		says "$*: it says $(cat "$work/err")"
}

# Reads the scene's output up to this line.
hear_scene() {
	local key value
	while read -r -t 600 -u "${scene_out}" key value; do
		[ "$key" != "$1" ] || return 0
		is[$key]=$value
	done
	says "the scene does not say $1"
}

set_scene() {
	mkfifo "$work/to" "$work/from"
	"$programs/cli-scene" scene <"$work/to" >"$work/from" &
	scene=$!
	exec {scene_in}>"$work/to" {scene_out}<"$work/from"
	hear_scene ready || return
	known=(--arg A "${is[A]}" --arg B "${is[B]}" --arg C "${is[C]}" --argjson uid "$(id -u)"
		--argjson cam "${is[cam]}" --argjson viewer "${is[viewer]}"
		--argjson logger "${is[logger]}" --arg backend "$backend")
}

# Prints the process of the daemon.
find_daemon() {
	local file
	for file in $(grep -lsazxF "XMEM_SOCKET=$XMEM_SOCKET" /proc/[0-9]*/environ); do
		file=${file%/environ}
		[ "$(readlink "$file/exe")" != "$programs/xmemd" ] || break
		file=''
	done
	[ -n "$file" ] && echo "${file#/proc/}"
}

# set_other [-n POOL] [CLIENTS | --gpus], other_says LINE, end_other: these control another scene,
# in the pool "other".
set_other() {
	local pool=other
	[ "${1:-}" != -n ] || { pool=$2; shift 2; }
	mkfifo "$work/other-to" "$work/other-from"
	"$programs/cli-scene" "$pool" "$@" <"$work/other-to" >"$work/other-from" &
	other=$!
	exec {other_in}>"$work/other-to" {other_out}<"$work/other-from"
	other_says ready
}

other_says() {
	local line
	while read -r -t 600 -u "$other_out" line; do
		[ "$line" != "$1" ] || return 0
	done
	says "the other scene does not say $1"
}

end_other() {
	exec {other_in}>&- {other_out}<&-
	wait "$other" || says 'the other scene ends with an error'
	other=''
	rm "$work/other-to" "$work/other-from"
}

# ---- the tool's view of the scene ----

list_has_named_and_anonymous() {
	same '["scene",3,8,128,8,16384,16384,0,1]
[null,1,64,1024,64,0,0,0,0]' "$(json 'sort_by(.name == null)[] |
		[.name, .clients, .clients_max, .slots, .ring_entries, .bytes, .bytes_files,
		.bytes_kept, .payloads]' list)" &&
		same true "$(json 'all(.uid == $uid and .mode == 384 and
			.roles == ["reader", "writer"])' list)" &&
		same "$(id -g)" "$(json 'map(.gid) | unique[]' list)" &&
		same true "$(json 'map(.number) | . == unique and length == 2' list)"
}

list_as_a_table() {
	same 'NUMBER OWNER MODE CLIENTS SLOTS RING BYTES FILES KEPT POOL' \
		"$(xmem list | head -n 1 | sed 's/  */ /g')" &&
		same "$(xmem list --json | jq -r --arg me "$(id -un)" '.[] | [.number,
			$me, "0600", "\(.clients)/\(.clients_max)", .slots, .ring_entries,
			.bytes, .bytes_files, .bytes_kept, .name // "@\(.number)"] |
			map(tostring) | join(" ")')" "$(cells list)"
}

# A pool without a name is shown by its number, and the number selects it.
anonymous_is_looked_at() {
	local tag
	tag=$(xmem list | awk 'NR > 1 { print $NF }' | grep ^@)
	same "$(json '.[] | select(.name == null).number' list)" "${tag#@}" &&
		same '"cli-scene"' "$(json '.clients[].label' clients "$tag")" &&
		same 1 "$(json .clients stat "$(id -un):$tag")" &&
		refuses 1 "there is no pool '@999999' on the $backend host" xmem stat @999999 &&
		refuses 1 "open pool '@1x': behind a '@' stands the number.*" xmem stat @1x
}

# A name of 128 characters is listed in full, moves no other column, and is accepted as listed.
long_name_with_slashes() {
	local name bad=0
	name=/camera/front/$(printf 'n%.0s' {1..114})
	xmem list >"$work/table"
	set_other -n "$name" || return
	same "$(head -n 1 "$work/table")" "$(xmem list | head -n 1)" &&
		same "$name" "$(xmem list | cut -c "$(head -n 1 "$work/table" |
			awk '{ print index($0, "POOL") }')"- | grep ^/)" &&
		same "\"$name\"" "$(json .pool clients "$name")" &&
		same 128 "$(json '.pool | length' stat "$name")" &&
		same "\"$(id -un):$name\"" "$(json .pool holders "$(id -un):$name")" &&
		refuses 1 "open pool '/camera/': no part of a name.*" xmem stat /camera/ || bad=1
	end_other
	return $bad
}

# Titles, numbers and texts begin or end in one column; no line ends with a space.
table_is_aligned() {
	xmem clients scene >"$work/table"
	! grep -n ' $' "$work/table" || return
	awk 'NR == 1 { label = index($0, "LABEL"); pid = index($0, "PID") + 3 }
		substr($0, label - 1, 1) != " " || substr($0, label, 1) == " " ||
		substr($0, pid, 1) != " " || substr($0, pid - 1, 1) == " " { bad = 1 }
		END { exit bad || NR != 4 }' "$work/table" || says "$(cat "$work/table")"
}

# No count includes the tool itself.
clients_are_who_they_are() {
	local pids='{cam: $cam, viewer: $viewer, logger: $logger}'
	local expression="(.pool == \"scene\" and .backend == \$backend),
		(.clients | sort_by(.label)[] | [.label, .pid == ${pids}[.label], .role, .state,
		.slots, .holds, .follows, .behind, .followers, .uid == \$uid, .bytes_mapped,
		.bytes_kept])"
	same 'true
["cam",true,"writer","alive",4,1,0,0,1,true,16384,0]
["logger",true,"reader","alive",0,1,0,0,0,true,16384,0]
["viewer",true,"reader","alive",0,3,1,3,0,true,16384,0]' "$(json "$expression" clients scene)" &&
		same true "$(json '.clients | map(.client) | . == unique' clients scene)"
}

# A program of this tree that subscribes to a pool without a writer.
client_waits_for_a_writer() {
	local waits='.clients[0].awaits // "nobody"' said=''
	"$programs/cli-scene" waiting --waits >/dev/null &
	other=$!
	until [ "$said" = '"writer"' ] || ! kill -0 $other; do
		said=$(json "$waits" clients waiting 2>/dev/null)
	done
	kill $other && wait $other
	other=''
	same '"writer"' "$said" && same '"nobody"' "$(json "[$waits][0]" clients scene)"
}

clients_as_a_table() {
	same "$(xmem clients scene --json | jq -r '.clients[] | [.client, .label, .pid, .uid, .role,
		.state, .slots, .holds, .follows, .behind, .followers,
		.awaits // "-", .wait_bound_ns, .bytes_mapped, .bytes_kept, .limbo,
		.bytes_limbo] | map(tostring) | join(" ")')" \
		"$(cells clients scene)"
}

# Prints the holders of the slot with that token.
holders='def holders: .holders | map("\(.label) \(.holds)") | sort | join(", ");
	def which: {($A): "A", ($B): "B", ($C): "C"}[.token // ""];'

holders_are_who_they_are() {
	same '"scene"
["A","live",4096,16384,"cam","cam 1, logger 1, viewer 2"]
["B","live",4096,16384,"cam","viewer 1"]' "$(json "$holders .pool, (.slots[] | [which, .state,
		.bytes, .bytes_file, .owner.label, holders])" holders scene)" &&
		same 1 "$(json '.slots | map(.payload) | unique | length' holders scene)" &&
		same true "$(json '[.slots[] | .owner, .holders[]] |
			all(.pid == {cam: $cam, viewer: $viewer, logger: $logger}[.label])' \
			holders scene)"
}

holders_as_a_table() {
	same "$(xmem holders scene --json | jq -r 'def who: "\(.label) \(.pid)"; .slots[] |
		[.slot, .state, .bytes, .uuid // "cpu", .bytes_file, (.owner | who),
		(.holders | map("\(who): \(.holds)") | join(", "))] | map(tostring) | join(" ")')" \
		"$(cells holders scene)" &&
		same 3 "$(xmem holders scene | wc -l)" &&
		same '[]' "$(json .keepers holders scene)"
}

# A requested slot is shown even if no client holds it, or if it has no buffer.
holders_of_one_slot() {
	local slots='.slots | map([.slot, .state, .token == $C, .owner.label, .holders])'
	local slot
	slot=$(json "$holders .slots[] | select(which == \"A\").slot" holders scene)
	same "[$slot]" "$(json '.slots | map(.slot)' holders scene "$slot")" &&
		same '[[127,"none",false,null,[]]]' "$(json "$slots" holders scene 127)" &&
		same '127 none 0 - 0 - -' "$(cells holders scene 127)" || return
	for slot in 0 1 2 3; do json "$slots | .[]" holders scene $slot; done >"$work/slots"
	grep -qx '\[[0-3],"live",true,"cam",\[\]\]' "$work/slots" &&	# C: in flight, not held
		grep -qx '\[[0-3],"writing",false,"cam",\[\]\]' "$work/slots" ||
		says "$(cat "$work/slots")"
}

claims_are_set_aside() {
	local slots='.slots | map([.token == $B, .state, .owner.label, .holds, .claims, .voided])'
	local slot
	same '[[true,"live","cam",1,2,0]]' "$(json "$slots" claims scene)" &&
		same "$(xmem claims scene --json | jq -r '.slots[] | [.slot, .state, .bytes, "cpu",
			"\(.owner.label) \(.owner.pid)", .holds, .claims, .voided] |
			map(tostring) | join(" ")')" "$(cells claims scene)" || return
	slot=$(json '.slots[0].slot' claims scene)
	same '[[true,"live","cam",1,2,0]]' "$(json "$slots" claims scene "$slot")" &&
		same '[[false,"none",null,0,0,0]]' "$(json "$slots" claims scene 127)" &&
		same '[[false,"none",null,0,0,0]]' "$(json "$slots" claims scene 127 --void)"
}

limits_are_listed() {
	local of='map(select(.number == $n) | [.scope, .what, .used, .most])'
	same '[["user","pools"]]' "$(json "${of/\$n/0} | map(.[:2])" limits)" &&
		same '[]' "$(json 'map(select(.scope == "pool"))' limits)" &&
		same '[["pool","slots with buffers",4,128]]' \
			"$(json "${of/\$n/65}" limits scene)" &&
		same "$(xmem limits scene --json | jq -r '.[] | [.scope, .what, .used, .most // "-",
			.name] | map(tostring) | join(" ")')" "$(cells limits scene)" &&
		refuses 1 "there is no pool 'none'" xmem limits none
}

claims_are_voided() {
	local slots='.slots | map([.token == $B, .holds, .claims, .voided])'
	same '[[true,1,0,2]]' "$(json "$slots" claims scene --void)" &&
		same '[]' "$(json "$slots" claims scene)" &&
		same '[]' "$(json "$slots" claims --void scene)" &&
		same '[0,0]' "$(json '[.claims, .claimed]' stat scene)"
}

# The lines of stat before its table of GPUs.
lines='del(.devices) | to_entries[] | "\(.key) \(.value)"'

stat_counts_without_the_tool() {
	same '["scene",128,4,0,1,3,2,0,5,2,1,3,0,16384,1,16384,0,49152]' "$(json '[.pool, .slots,
		.attached, .free, .writing, .live, .held, .limbo, .holds, .claims, .claimed,
		.clients, .zombies, .bytes, .payloads, .bytes_files, .bytes_kept,
		.bytes_mapped]' stat scene)" &&
		same "$backend" "$(json .backend stat scene | tr -d '"')" &&
		same '[0,0,[]]' "$(json '[.bytes_cuda, .bytes_closing, .devices]' stat scene)" &&
		same "$(xmem stat scene --json | jq -r "$lines")" \
			"$(xmem stat scene | awk '{ print $1, $2 }')"
}

# When cam is killed, its holds go at once; its buffers stay as long as others use them.
killed_owner_is_seen() {
	echo kill >&"$scene_in"
	hear_scene killed || return
	same '["cam","zombie",0]
["logger","alive",1]
["viewer","alive",3]' "$(json '.clients | sort_by(.label)[] | [.label, .state, .holds]' \
		clients scene)" &&
		same '["A","limbo","logger 1, viewer 2"]
["B","limbo","viewer 1"]' "$(json "$holders .slots[] | [which, .state, holders]" holders scene)" &&
		same '["logger",4096]
["viewer",8192]' "$(json '.keepers | sort_by(.client.label)[] | [.client.label, .bytes_ended]' \
			holders scene)" &&
		same 'logger 4096
viewer 8192' "$(xmem holders scene | sed '1,/^$/d' | awk 'NR > 1 { print $1, $NF }' | sort)" &&
		same '[3,1,1,16384,16384]' "$(json '[.limbo, .zombies, .payloads, .bytes_files,
			.bytes_kept]' stat scene)" &&
		same '[0,12288,0,true]' "$(json '[.overdue, .bytes_limbo, .bytes_overdue,
			.limbo_ms >= 0]' stat scene)" &&
		same '["logger",16384,1,4096]
["viewer",16384,2,8192]' "$(json '.clients | sort_by(.label)[] | select(.state == "alive") |
		[.label, .bytes_kept, .limbo, .bytes_limbo]' clients scene)" &&
		same 16384 "$(json '.[] | select(.name == "scene").bytes_kept' list)"
}

# ---- top ----

# pauses PROCESS: waits until it is in the ppoll of its interval, which has no descriptors.
pauses() {
	local tries call
	for ((tries = 0; tries < 6000; tries++)); do
		read -r call </proc/"$1"/syscall || return
		[[ ! $call =~ ^(271|73)\ 0x0\ 0x0\  ]] || return 0
		read -r -t 0.01 -u "$other_out" || true		# it prints nothing now
	done
	says "process $1 does not pause: $call"
}

# counts N M: lets the stream publish N and receive M while top waits for its second look, and
# prints what top has counted.
counts() {
	local tool
	"$programs/xmem" top --json --interval 3600 other \
		>"$work/top" {other_in}>&- {other_out}<&- &
	tool=$!
	pauses $tool || return
	echo "$1 $2" >&"$other_in"
	other_says 'done' || return
	kill -INT $tool
	wait $tool || { says "top: status $?"; return; }
	jq -c '.pools[0].clients[] | [.label, .published, .frames_published, .bytes_published,
		.frames_received, .bytes_received, .behind, .lost]' "$work/top"
}

# Two looks count what lies between them, also if the ring has less room than that.
top_counts_hand_overs() {
	local result=0
	set_other --stream || return
	if [ "$backend" = daemon ]; then
		same '["cam",5,5,20480,0,0,0,0]
["viewer",null,null,null,3,12288,2,0]' "$(counts 5 3)" || result=1
		same '["cam",25,20,81920,0,0,0,0]
["viewer",null,null,null,0,0,8,14]' "$(counts 20 0)" || result=1
	else
		same '["cam",null,5,20480,null,null,null,null]
["viewer",null,null,null,null,null,null,null]' "$(counts 5 3)" || result=1
	fi
	end_other && return $result
}

# Of a pool that is full, other commands cannot tell anything, because they join.
top_joins_nothing() {
	local result=0
	set_other 3 || return
	same 'cam 1
viewer 2
logger 3' "$(json '.pools[0].clients[] | "\(.label) \(.incarnation)"' top other --interval 0.1 |
		tr -d '"')" || result=1
	refuses 1 'it is full' xmem clients other || result=1
	end_other && return $result
}

# top, list, clients and holders agree. Of the holds on A the module tells only how many there are.
top_says_what_the_others_say() {
	local keys='client label pid uid role state slots holds limbo bytes_limbo incarnation'
	local untold='.clients[]'
	keys=$(sed 's/[a-z_]*/.&/g; s/ /, /g' <<<"$keys")
	[ "$backend" = daemon ] || untold+=' | .holds = null'
	same "$(json "$untold | [$keys]" clients scene)" \
		"$(json ".pools[0].clients[] | [$keys]" top scene --interval 0.1)" &&
		same "$(json '.slots[] | [.slot, .state, .bytes, .device, .owner.client,
			[.holders[].client]]' holders scene)" \
			"$(json '.pools[0].slots[] | select(.holds > 0) | [.slot, .state, .bytes,
			.device, .owner, .holders]' top scene --interval 0.1)" &&
		same "$(json 'map([.number, .name, .uid, .clients, .bytes_files])' list)" \
			"$(json '.pools | map([.number, .name, .uid, .alive, .bytes_files])' \
			top --interval 0.1)"
}

# The files of a pool as the module shows them, in a /sys/class of its own. Of the lines of slots
# one is cut, one has a wrong owner, one is of another slot, and one ends in "!". Another pool
# differs in a number that changes.
top_reads_sysfs() {
	local folder=$work/class/xmem/pool3 fact line='%5s %5s %-8s %12s 1 4096 %s 0 %6s %-20s%s\n'
	if ! unshare -rm true 2>"$work/err"; then
		echo "SKIP $name: $(cat "$work/err")"
		return 77
	fi
	mkdir -p "$folder"
	for fact in name=audio owner_uid=7 gid=8 slots_max=6 clients_max=40 ring_entries=8 \
		payload_bytes=4096 kept_bytes=0; do
		echo "${fact#*=}" >"$folder/${fact%=*}"
	done
	{
		printf "$line" slot owner state generation 00000000 holds 'holders' ' '
		printf "$line" 0 39 upgraded 70 02000000 3 '80,00000001' ' '
		printf "$line" 1 0 live 71 00000000 3 04 ' ' | cut -c 3-
		printf "$line" 2 999 live 72 00000000 3 04 ' '
		printf "$line" 9 0 live 73 00000000 3 04 ' '
		printf "$line" 4 0 scanning 74 00000000 2 02 '!'
		printf "$line" 5 host live 75 00000000 3 04 ' '
	} >"$folder/buffers"
	line='%6s %-10s %-6s %8s %10s %11s %-15s%20s\n'
	{
		printf "$line" client state role pid uid incarnation label ''
		printf "$line" 0 alive writer 50 4294967295 60 'a mic ' ''
		printf "$line" 1 alive either 51 7 61 ear ''
		printf "$line" 2 quarantine reader 0 7 62 '' ''
		printf "$line" 3 alive reader 53 7 63 cut '' | cut -c 2-
		printf "$line" 4 - '' '' '' '' '' ''
	} >"$folder/clients"
	cp -r "$folder" "$folder"4
	echo 5 >"$folder"4/kept_bytes
	echo '{"name": "audio", "uid": 7, "gid": 8, "slots_max": 6, "clients_max": 40,
		"ring_entries": 8, "bytes_files": 4096, "bytes_kept": 0}' >"$work/pool"
	# shellcheck disable=SC2016
	unshare -rm bash -c 'mount --bind "$1" /sys/class && exec "$2" --sysfs "$3"' bash \
		"$work/class" "$programs/cli-view" "$work/pool" >"$work/told" || return
	same '[0,"writing",2,39,70,3,[0,39]]
[4,"live",0,0,74,null,[1]]
[5,"limbo",0,null,75,3,[2]]' "$(jq -c '.slots[] | [.slot, .state, .device, .owner, .generation,
		.holds, .holders]' "$work/told")" &&
		same '[0,"a mic","writer","alive",4294967295,1,null,0]
[1,"ear","reader","alive",7,0,null,0]
[2,"","reader","zombie",7,0,3,4096]' "$(jq -c '.clients[] | [.client, .label, .role, .state,
			.uid, .slots, .holds, .bytes_limbo]' "$work/told")" &&
		same '[[2,4096]]' "$(jq -c '.devices | map([.device, .bytes])' "$work/told")"
}

# ---- xmem trace ----

# trace_begins OPTION...: traces the other pool until the first pause, in which the file is read.
trace_begins() {
	"$programs/xmem" trace --output "$work/trace" other "$@" 2>"$work/err" \
		{other_in}>&- {other_out}<&- {scene_in}>&- {scene_out}<&- &
	tool=$!
	pauses "$tool" && read_trace >/dev/null
}

# The facts of the file, which is complete at any time between two looks.
read_trace() { python3 tests/cli/trace.py "$work/trace"; }

trace_ends() {
	kill -INT "$tool"
	wait "$tool" || says "trace: status $?: $(cat "$work/err")"
}

# traces LINE: traces what that line to the stream does, between the first look and the last.
traces() {
	local tool
	trace_begins --interval 3600 && echo "$1" >&"$other_in" && other_says 'done'
	trace_ends && read_trace
}

# In the module's pools, a look sees the holders of a slot, and no publication without a holder.
trace_follows_buffers() {
	local result=0 told='viewer receive 0
viewer release 0
cam acquire 1
cam publish 1
viewer receive 1
arrows 2 open 3'
	[ "$backend" = daemon ] || told='cam acquire 1
cam publish 1
viewer hold 1
arrows 1 open 3'
	set_other --stream || return
	same "cam acquire 0
cam publish 0
$told lost 0 names ['cam', 'viewer']" "$(traces '2 2 1')" || result=1
	grep -q '^xmem: 2 lives of buffers and . hand-overs; 0 publications ' "$work/err" ||
		says "$(cat "$work/err")" || result=1
	end_other && return $result
}

# trace_has WORDS: waits until the file has them.
trace_has() {
	local tries
	for ((tries = 0; tries < 6000; tries++)); do
		! grep -q "$1" "$work/trace" || return 0
		read -r -t 0.01 -u "$other_out" || true		# it prints nothing now
	done
	says "no $1 in the trace: $(tail -5 "$work/trace")"
}

# A hold begins at one look and ends at another one. Then the pool ends, and so does the tool.
trace_follows_holds() {
	local tool result=0
	set_other --stream || return
	trace_begins --interval 0.1 && echo '1 1 1' >&"$other_in" && other_says 'done' &&
		trace_has '"b".*"hold"' && echo '0 0' >&"$other_in" && other_says 'done' &&
		trace_has '"name": "release"' || result=1
	end_other || result=1
	wait "$tool" || { says "trace: status $?: $(cat "$work/err")"; return; }
	[ $result = 0 ] || return
	[ "$backend" = daemon ] || { read_trace | grep -qx 'viewer hold 0'; return; }
	same "cam acquire 0
cam publish 0
viewer receive 0
viewer release 0
arrows 1 open 0 lost 0 names ['cam', 'viewer']" "$(read_trace)"
}

# The ring has room for 8 publications: the other 12 are lost to a tool that has not looked. The
# module shows slots. The owner has 16, and keeps four of them to write next.
trace_counts_what_is_lost() {
	local result=0 lost=12
	[ "$backend" = daemon ] || lost=8		# the contents of 12 slots are still there
	set_other --stream || return
	same "lost $lost" "$(traces '20 0' | grep -o 'lost [0-9]*$\|lost [0-9]* ' | xargs)" ||
		result=1
	grep -q " $lost publications were .*: give a shorter --interval" "$work/err" ||
		says "$(cat "$work/err")" || result=1
	end_other && return $result
}

# Programs choose labels. The file is JSON in spite of that.
trace_escapes_labels() {
	local result=0
	set_other --stream 'a "b" \' || return
	same "names ['a \"b\" \\\\', 'cam']" "$(traces '1 0' | grep -o 'names.*')" ||
		result=1
	end_other && return $result
}

# There is no room for the last look. The file is as complete as after the look before.
trace_survives_a_full_disk() {
	local tool result=0
	set_other --stream || return
	(
		trap '' XFSZ
		ulimit -f 1		# KiB
		exec "$programs/xmem" trace other --interval 3600 --output "$work/trace" \
			2>"$work/said" {other_in}>&- {other_out}<&- {scene_in}>&- {scene_out}<&-
	) &
	tool=$!
	pauses $tool || return
	echo '8 8' >&"$other_in"
	other_says 'done' || return
	kill -INT $tool
	! wait $tool || says 'it ends well' || result=1
	same "xmem: $work/trace: File too large" "$(cat "$work/said")" &&
		same "arrows 0 open 0 lost 0 names ['cam', 'viewer']" "$(read_trace)" || result=1
	refuses 1 '/dev/full: No space left' xmem trace --output /dev/full other || result=1
	end_other && return $result
}

# ---- xmem metrics ----

# The samples of this pool, after a strict reader.
metrics() {
	xmem metrics | /usr/bin/python3 tests/cli/metrics.py | sed -n "s/ $1 / /p"
}

# The label has everything that Prometheus' format escapes.
prometheus_reads_metrics() {
	local result=0 told
	set_other --stream 'a "b" \' || return
	echo '5 3 2' >&"$other_in"
	other_says 'done' && told=$(metrics other) || result=1
	same 'xmem_pool_clients - 2
xmem_pool_clients_max - 8
xmem_pool_slots - 16
xmem_pool_slots_max - 128
xmem_pool_holds - 2
xmem_client_slots cam 16
xmem_client_slots a "b" \ 0
xmem_client_holds cam 0
xmem_client_holds a "b" \ 2' "$(grep -E '(pool|client)_(clients|slots|holds)(_max)? ' \
		<<<"$told")" || result=1
	[ "$backend" = kernel ] || same 'xmem_frames_published_total cam 5
xmem_frames_passed_total a "b" \ 3
xmem_frames_lag a "b" \ 2
xmem_frames_lost a "b" \ 0' "$(grep xmem_frames <<<"$told")" || result=1
	end_other && return $result
}

# The new file is another one, and readers of the old one still have it. If there is no host, or
# the folder is not to be written, the file stays.
metrics_replace_a_file() {
	local file=$work/xmem.prom
	echo old >"$file"
	exec {reader}<"$file"
	xmem metrics --output "$file" && same old "$(cat <&$reader)" &&
		same "$(xmem metrics)" "$(cat "$file")" && same 644 "$(stat -c %a "$file")" &&
		refuses 1 'no host is running' $nowhere "$programs/xmem" metrics --output "$file" &&
		same "$(xmem metrics)" "$(cat "$file")" &&
		refuses 1 '/nowhere/a' xmem metrics --output /nowhere/a &&
		mkdir "$file.d" && refuses 1 'Is a directory' xmem metrics --output "$file.d" &&
		same "$file"$'\n'"$file.d" "$(printf '%s\n' "$file"*)"
	local result=$?
	exec {reader}<&-
	return $result
}

# A device or a pipe stays what it is, and a link still leads to its file.
metrics_are_written_in_place() {
	local to=$work/metrics.to
	mkfifo "$to.pipe" && ln -s "$to.file" "$to.link" || return
	exec {reader}<>"$to.pipe"
	xmem metrics --output "$to.pipe" && [ -p "$to.pipe" ] && read -r -u "$reader" line &&
		[[ $line == '# HELP '* ]] && xmem metrics --output "$to.link" &&
		[ -L "$to.link" ] && same "$(xmem metrics)" "$(cat "$to.file")" &&
		refuses 1 'No space left' xmem metrics --output /dev/full && [ -c /dev/full ]
	local result=$?
	exec {reader}<&-
	return $result
}

# Again and again there is more to count.
metrics_count_bytes() {
	local tool result=0 wanted='{[^}]*"cam"[^}]*} 20480$'
	set_other --stream || return
	"$programs/xmem" metrics --watch --interval 0.1 --output "$work/trace" \
		{other_in}>&- {other_out}<&- {scene_in}>&- {scene_out}<&- >"$work/out" &
	tool=$!
	pauses $tool && echo '2 2' >&"$other_in" && other_says 'done' &&
		trace_has 'bytes_published_total{[^}]*"cam"[^}]*} 8192$' &&
		echo '3 0' >&"$other_in" && other_says 'done' &&
		trace_has "bytes_published_total$wanted" || result=1
	kill -INT $tool
	wait $tool || { says "metrics: status $?"; result=1; }
	same '' "$(cat "$work/out")" || result=1
	end_other && return $result
}

# A pool has as much memory as before: a look at an unused page would get some for it.
top_uses_no_memory() {
	local process file before=''
	if [ "$backend" = kernel ]; then
		echo "SKIP $name: the module has no file for its pages"
		return 77
	fi
	process=$(find_daemon) || return
	for file in /proc/"$process"/fd/*; do
		[[ $(readlink "$file") != /memfd:xmem-pool[@:]* ]] ||
			before+="$file $(stat -Lc %b "$file")"$'\n'
	done
	xmem top --once --interval 0.1 >/dev/null
	same 2 "$(grep -c . <<<"$before")" || return
	while read -r file blocks; do
		[ -z "$file" ] || same "$blocks" "$(stat -Lc %b "$file")" || return
	done <<<"$before"
}

# Only the daemon's pages say that.
top_says_who_waits() {
	local wanted='cam viewer
viewer -' result=0
	[ "$backend" = daemon ] || wanted='cam -
viewer -'
	set_other --stuck || return
	same "$wanted" "$(cells top --once --interval 0.1 other | awk '{ print $2, $NF }')" ||
		result=1
	end_other && return $result
}

# A pool without a name is looked at, too.
top_shows_anonymous_pools() {
	same '["cli-scene"]' "$(json '.pools[] | select(.name == null).clients | map(.label)' \
		top --interval 0.1)" &&
		same 1 "$(xmem top --once --interval 0.1 "$(xmem list | awk '{ print $NF }' |
			grep ^@)" | grep -c cli-scene)" &&
		refuses 1 "there is no pool 'none'" xmem top --once --interval 0.1 none &&
		refuses 2 "top: --interval is 0.1 to 86400 seconds, not 'x'" \
			xmem top --interval x &&
		refuses 2 'top: --interval needs a value' xmem top --interval &&
		refuses 2 'stat: there is no option --watch' xmem stat scene --watch &&
		refuses 1 'no host is running' $nowhere "$programs/xmem" top --once --interval 0.1
}

top_as_a_table() {
	local lag=3
	[ "$backend" = daemon ] || lag=-
	same 'CLIENTS FRAMES/s BYTES/s LAG LOST HOLDS LIMBO CPU GPU POOL' \
		"$(xmem top --once --interval 0.1 | head -n 1 | sed 's/^ *//; s/  */ /g')" &&
		same "3 0 0 $lag ${lag/3/0} 5 0 16k 0 scene" \
			"$(cells top --once --interval 0.1 | grep scene)" &&
		same "cam ${is[cam]}
viewer ${is[viewer]}
logger ${is[logger]}" "$(cells top --once scene --interval 0.1 | cut -d ' ' -f 2,3)"
}

top_view_shows() { tests/cli/view.sh "$programs/cli-view"; }

# ---- top on a terminal ----

on_screen() { env -u TMUX tmux -L "xmem-cli-$$-$screens" "$@"; }

# set_screen COLUMNS ROWS COMMAND: runs it on a terminal of that size, then says how it ended.
set_screen() {
	screens=$((screens + 1))
	on_screen -f /dev/null new-session -d -x "$1" -y "$2" \
		"$3; s=\$?; echo; echo status \$s; cat" \; set-option -g status off \; \
		resize-window -x "$1" -y "$2" \
		{scene_in}>&- {scene_out}<&- {other_in}>&- {other_out}<&-
}

# shows PATTERN: waits until a line of the screen fits it.
shows() {
	local tries
	for ((tries = 0; tries < 2000; tries++)); do
		on_screen capture-pane -p >"$work/screen" || return
		! grep -q -- "$1" "$work/screen" || return 0
		read -r -t 0.01 -u "$scene_out" || true		# it prints nothing now
	done
	says "the screen does not show $1, but $(cat "$work/screen")"
}

end_screen() { on_screen kill-server; }

top_on_a_terminal() {
	local result=0 process keys='Enter in  Esc back  Tab slots  < > sort  / filter'
	set_other --stream || return
	set_screen 80 24 "NO_COLOR=1 '$programs/xmem' top --interval 0.1"
	shows ' other$' && shows "^$keys  e evict  h help  q quit\$" &&
		same 24 "$(wc -l <"$work/screen")" &&
		on_screen send-keys / other Enter Enter && shows '^ *0 cam ' &&
		shows 'other: clients, by ID' &&
		on_screen send-keys Tab && shows 'other: slots' && shows ' free .* cam ' &&
		on_screen send-keys Escape && shows '^xmem top  [a-z]*  pools' &&
		on_screen resize-window -x 40 -y 6 &&
		shows '^Enter in  Esc back  Tab slots  < > sort$' &&
		same 6 "$(wc -l <"$work/screen")" &&
		on_screen resize-window -x 10 -y 2 && shows '^Enter in$' &&
		on_screen resize-window -x 90 -y 30 && shows ' other$' &&
		on_screen send-keys q && shows '^status 0$' || result=1
	end_screen
	end_other && return $result
}

# A terminal that has neither colours nor a way to hide its cursor.
top_on_a_poor_terminal() {
	local result=0 term
	set_other --stream || return
	set_screen 80 24 "TERM=vt100 '$programs/xmem' top --interval 0.1 other"
	shows '^ *1 viewer ' && on_screen send-keys q && shows '^status 0$' ||
		result=1
	end_screen
	for term in dumb none-such; do
		set_screen 80 24 "TERM=$term '$programs/xmem' top"
		shows '^xmem: top: this terminal is not known' && shows '^status 1$' || result=1
		end_screen
	done
	refuses 1 'top: there is no terminal: use --once or --json' xmem top || result=1
	end_other && return $result
}

# The view tells a refusal of the host, and the end of a pool; then it shows the next pool.
top_outlives_what_it_shows() {
	local result=0 words='Client 1 has been evicted'
	[ "$backend" = kernel ] || words='live process'
	set_other --stream || return
	set_screen 80 24 "'$programs/xmem' top --interval 0.1 other"
	shows '^ *1 viewer ' && on_screen send-keys Down e && shows '^Evict client 1 (viewer' &&
		on_screen send-keys y && shows "$words" || result=1
	end_other || result=1
	shows '^Pool other has ended.$' && set_other --stream && shows ' other$' || result=1
	end_screen
	end_other && return $result
}

# The host goes while the view is shown, and another one comes.
top_outlives_its_host() {
	local result=0 host
	if [ "$backend" = kernel ]; then
		echo "SKIP $name: the module cannot be ended"
		return 77
	fi
	local -x XMEM_SOCKET=$XMEM_SOCKET-other
	set_other --stream || return
	host=$(find_daemon) || result=1
	set_screen 80 24 "'$programs/xmem' top --interval 0.1"
	shows ' other$' || result=1
	kill -KILL "$host"
	shows 'no host is running' || result=1
	end_other || result=1
	set_other --stream && shows ' other$' && on_screen send-keys q && shows '^status 0$' ||
		result=1
	end_screen
	end_other && return $result
}

# ---- again and again ----

# Each interval the table is printed below an empty line; SIGINT ends it after a whole table.
watch_prints_again() {
	local command tool result=0 lines
	for command in list 'clients scene' 'holders scene' 'list --json'; do
		mkfifo "$work/watched"
		# shellcheck disable=SC2086
		env --default-signal=PIPE "$programs/xmem" $command --watch --interval 0.1 \
			>"$work/watched" &
		tool=$!
		lines=$(xmem $command | wc -l)
		head -n $((3 * (lines + 1))) <"$work/watched" >"$work/tables"
		rm "$work/watched"
		wait $tool
		[ $? = 141 ] || { says "$command: it outlives its reader"; result=1; }
		same "$(xmem $command)" "$(head -n "$lines" "$work/tables")" || result=1
	done
	return $result
}

watch_ends_at_sigint() {
	local tool json result=0
	set_other --stream || return
	for json in '' --json; do
		# shellcheck disable=SC2086
		"$programs/xmem" clients other --watch --interval 3600 $json \
			>"$work/watched" {other_in}>&- {other_out}<&- &
		tool=$!
		pauses $tool && kill -INT $tool
		wait $tool || { says "status $?"; result=1; }
		# shellcheck disable=SC2086
		same "$(xmem clients other $json)" "$(cat "$work/watched")" || result=1
	done
	end_other && return $result
}

# ---- the tool is a client only while it looks ----

# writes PROCESS: waits until it is in write(2) to standard output, and stays there.
writes() {
	local tries call
	for ((tries = 0; tries < 6000; tries++)); do
		read -r call </proc/"$1"/syscall || return
		[[ $call != '1 0x1 '* ]] || return 0
		read -r -t 0.01 -u "$other_out" || true		# it prints nothing now
	done
	says "process $1 does not write: $call"
}

# A user who stops in a pager must not keep alive a pool that all others have left. stdbuf makes the
# tool write as soon as it prints, as it does when it has much to print.
output_that_nobody_reads_keeps_no_pool() {
	local command tool result=0 full
	for command in 'stat other' 'clients other' 'holders other --json'; do
		set_other || return
		mkfifo "$work/full"
		exec {full}<>"$work/full"
		dd if=/dev/zero of="$work/full" bs=4096 oflag=nonblock 2>/dev/null
		# shellcheck disable=SC2086
		stdbuf -o0 "$programs/xmem" $command \
			>&"$full" {full}>&- {other_in}>&- {other_out}<&- &
		tool=$!
		writes $tool || result=1
		end_other || result=1
		same false "$(json 'any(.name == "other")' list)" ||
			{ says "xmem $command keeps the pool"; result=1; }
		kill $tool
		wait $tool 2>/dev/null
		exec {full}>&-
		rm "$work/full"
	done
	return $result
}

# If the tool cannot look, it names the process to end.
full_pool() {
	local command places='the tool needs one of its 3 places' result=0
	set_other 3 || return
	for command in stat clients holders claims; do
		refuses 1 "'other'.*: 3 clients are alive, and 0 have ended.*; $places" \
			xmem $command other || result=1
	done
	echo kill >&"$other_in"
	other_says killed &&
		refuses 1 "'other'.*: 2 clients are alive, and 1 has ended.*; $places" \
			xmem stat other || result=1
	end_other && return $result
}

# ---- wrong arguments ----

# Each fails with status 2, and one line that says where to read on.
bad_usage() {
	local end='; see xmem --help$' slot
	refuses 2 "which command?$end" xmem &&
		refuses 2 "there is no command 'lists'$end" xmem lists &&
		refuses 2 "list: there is no option --jsonx$end" xmem list --jsonx &&
		refuses 2 "list: there is no option -j$end" xmem list -j &&
		refuses 2 "list: there is no option -x$end" xmem list -xj &&
		refuses 2 "list: there is no option --json=yes$end" xmem list --json=yes &&
		refuses 2 "backend: there is no option --json$end" xmem backend --json &&
		refuses 2 "list: the arguments are '\[--json\] \[--watch\]'$end" xmem list scene &&
		refuses 2 "gpu: the arguments are '\[--json\]'$end" xmem gpu 0 &&
		refuses 2 "gpu: there is no option --void$end" xmem gpu --void &&
		refuses 2 "list: there is no option --output$end" xmem list -o scene &&
		refuses 2 "version: it takes no arguments$end" xmem version scene &&
		refuses 2 "backend: it takes no arguments$end" xmem backend scene &&
		refuses 2 "help: the arguments are '\[COMMAND\]'$end" xmem help stat list &&
		refuses 2 "there is no command 'lists'$end" xmem help lists &&
		refuses 2 "there is no command ''$end" xmem help '' &&
		refuses 2 "stat: the arguments are .*POOL'$end" xmem stat &&
		refuses 2 "clients: the arguments are .*POOL'$end" xmem clients scene 1 &&
		refuses 2 "holders: the arguments are .*$end" xmem holders scene 1 2 &&
		refuses 2 "holders: there is no option --void$end" xmem holders scene --void &&
		refuses 2 "claims: there is no option --void=1$end" xmem claims scene --void=1 &&
		refuses 2 "claims: SLOT is a number, not 'x'$end" xmem claims scene x &&
		refuses 2 "clients: the name of the pool is empty$end" xmem clients '' || return
	for slot in x '' -- -1 +1 1x 4294967295 99999999999999999999; do
		refuses 2 "SLOT is a number, not '$slot'$end" xmem holders -- scene "$slot" ||
			return
	done
}

no_such_pool() {
	local command
	for command in stat clients holders claims; do
		refuses 1 "there is no pool 'nosuch' on the $backend host" xmem $command nosuch &&
			refuses 1 "open pool 'no//such'.*name" xmem $command no//such || return
	done
	refuses 1 "pool 'scene': it has no slot 128, only 0 to 127" xmem holders scene 128 &&
		refuses 1 "pool 'scene': it has no slot 128, only 0 to 127" xmem claims scene 128
}

# A host that is stopped does not stop the tool.
host_that_does_not_answer() {
	local process
	if [ "$backend" = kernel ]; then
		echo "SKIP $name: the module cannot be stopped"
		return 77
	fi
	process=$(find_daemon) || { says 'xmemd is not found'; return; }
	kill -STOP "$process"
	refuses 1 'the host does not answer' timeout 600 "$programs/xmem" stat scene
	local result=$?
	kill -CONT "$process"
	return $result
}

# Help that cannot be printed is a failure.
daemon_help_that_cannot_be_written() {
	local option status
	for option in --help --version; do
		status=0
		"$programs/xmemd" $option >/dev/full 2>"$work/err" || status=$?
		[ $status = 1 ] && grep -q '^xmemd: standard output: ' "$work/err" ||
			{ says "xmemd $option: status $status, $(cat "$work/err")"; return; }
	done
}

# Without /proc the daemon could not give payload files to readers, so it does not begin to serve.
daemon_without_proc() {
	local status=0
	if ! unshare -m true 2>"$work/err"; then
		echo "SKIP $name: $(cat "$work/err")"
		return 77
	fi
	$nowhere unshare -m bash -c 'mount -t tmpfs none /proc && exec "$@"' bash \
		"$programs/xmemd" --foreground --idle-ms=1 2>"$work/err" || status=$?
	[ $status = 1 ] && grep -q '^xmemd: .*/proc.*mount' "$work/err" ||
		says "status $status, $(cat "$work/err")"
}

# Both forms ask for the help of one command.
help_of_each_command() {
	local command commands
	commands=$(xmem help | sed -n 's/^  \([a-z]*\) .*/\1/p')
	same "top trace metrics list stat clients holders claims limits evict drain gpu \
record replay cat put backend version help" "$(xargs <<<"$commands")" || return
	for command in $commands; do
		[[ $(xmem help "$command") == "Usage: xmem $command"* ]] &&
			same "$(xmem help "$command")" "$(xmem "$command" --help)" || return
	done
	same 'Usage: xmem holders [--json] [--watch] POOL [SLOT]' \
		"$(xmem help holders | head -n 1)" &&
		same 'Usage: xmem version' "$(xmem version --help | head -n 1)"
}

# The manual page has the tool's commands and arguments.
manual_has_what_help_has() {
	local page
	page=$(sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/ { /^\.SH/d; s/^\.[RBI]* //; s/\\-/-/g
		s/\[ \(.*\) \]/[\1]/; p }' man/xmem.1 |
		awk '/^\.br$/ { print line; line = ""; next }
			{ line = line (line ? " " : "") $0 } END { print line }' |
		sed 's/\[ /[/g; s/ \]/]/g')
	same "$(xmem help | sed -n '/^  [a-z]* /p' | cut -c 3-41 |
		sed 's/  */ /g; s/ $//; s/^/xmem /')" "$page"
}

help_and_version() {
	local first='Usage: xmem COMMAND [ARGUMENT]...'
	same "$first" "$(xmem --help | head -n 1)" && same "$first" "$(xmem -h | head -n 1)" &&
		same "$first" "$(xmem help | head -n 1)" &&
		same 19 "$(xmem help | grep -cE '^  [a-z]+ ')" &&
		same "$(xmem version)" "$(xmem --version)" && same "$(xmem version)" "$(xmem -V)" &&
		[[ $(xmem version) =~ ^xmem\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
}

# ---- GPUs: those of the fake driver ----

gpus_of_the_fake_driver() {
	export FAKECUDA_DEVICES=2 FAKECUDA_MEMORY_MIB=100 FAKECUDA_ATTRIBUTES=103=0,86=1
	same "[\"$XMEM_CUDA_DRIVER\",\"13.0\",2]" \
		"$(json '[.driver, .cuda, (.gpus | length)]' gpu)" &&
		same '[0,"9.0",104857600,0,36,"GPU-"]
[1,"9.0",104857600,0,36,"GPU-"]' "$(json '.gpus[] | [.gpu, .capability, .bytes, .granularity,
			(.uuid | length - 4), .uuid[:4]]' gpu)" &&
		same 2 "$(json '.gpus | map(.uuid) | unique | length' gpu)" &&
		same '["descriptors","mps"]' "$(json '.gpus[1].works | to_entries |
			map(select(.value | not).key)' gpu)"
	local result=$?
	unset FAKECUDA_DEVICES FAKECUDA_MEMORY_MIB FAKECUDA_ATTRIBUTES
	return $result
}

gpus_as_a_table() {
	same "$(xmem gpu --json | jq -r '"driver \(.driver)", "cuda \(.cuda)", "",
		"GPU UUID NAME CAPABILITY BYTES GRANULARITY WORKS", (.gpus[] | [.gpu, .uuid, .name,
			.capability, .bytes, .granularity, (.works | to_entries |
			map(select(.value).key) | join(", "))] | map(tostring) | join(" "))')" \
		"$(xmem gpu | sed 's/^ *//; s/  */ /g')"
}

# This needs no host.
no_gpu_and_why() {
	refuses 1 'there is no CUDA driver: /nowhere/lib: .*XMEM_CUDA_DRIVER' \
		env XMEM_CUDA_DRIVER=/nowhere/lib "$programs/xmem" gpu &&
		refuses 1 'CUDA_ERROR_NO_DEVICE, 100.*CUDA_VISIBLE_DEVICES' \
			env CUDA_VISIBLE_DEVICES= "$programs/xmem" gpu --json &&
		refuses 1 'CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)' \
			env FAKECUDA_INIT=803 "$programs/xmem" gpu &&
		same 1 "$($nowhere XMEM_DAEMON=none "$programs/xmem" gpu --json |
			jq '.gpus | length')"
}

# Text from elsewhere need not be UTF-8, as JSON is.
text_that_is_no_utf8() {
	local driver=$work/$'\xff'.so
	ln -s "$(realpath "$XMEM_CUDA_DRIVER")" "$driver"
	same "\"$work/?.so\"" "$(XMEM_CUDA_DRIVER=$driver json .driver gpu)"
}

message_that_is_no_utf8() {
	refuses 1 '/nowhere/' env XMEM_BACKEND=kernel XMEM_DEVICE=$'/nowhere/\xff' \
		"$programs/xmem" top --once
}

# The pool has no room for viewer, which ends at once; so does the scene.
scene_ends_with_its_members() {
	local status=0
	timeout 60 "$programs/cli-scene" narrow 1 </dev/null >"$work/out" 2>"$work/err" || status=$?
	same 1 $status && grep -q 'a process of the scene has ended' "$work/err"
}

# A pool's memory on two GPUs; the pool's first GPU is the machine's second one.
stat_says_what_is_on_which_gpu() {
	same '[104096,2,4096,4194304,2097152]' "$(json '[.bytes, .payloads, .bytes_files,
		.bytes_cuda, .bytes_closing]' stat other)" &&
		same '[1,1,2097152,2097152]
[2,0,2097152,0]' "$(json '.devices[] | [.device, (.uuid as $uuid | $gpus | index($uuid)),
			.bytes, .bytes_closing]' stat other)" &&
		same "$(xmem stat other --json | jq -r "($lines), \"\",
			\"DEVICE UUID BYTES CLOSING\", (.devices[] |
			\"\(.device) \(.uuid) \(.bytes) \(.bytes_closing)\")")" \
			"$(xmem stat other | awk '/^ *[0-9]|DEVICE/ { print $1, $2, $3, $4; next }
				NF { print $1, $2; next } { print }')"
}

# buffers_are_on_their_gpus STATE
buffers_are_on_their_gpus() {
	same "[4096,\"$1\",0,null,4096]
[100000,\"$1\",2,0,2097152]" "$(json '.slots[] | [.bytes, .state, .device, (.uuid as $uuid |
			$gpus | index($uuid)), .bytes_file]' holders other)" &&
		same "$(xmem holders other --json | jq -r '.slots[] | .uuid // "cpu"')" \
			"$(cells holders other | cut -d ' ' -f 4)" &&
		same "[100000,\"$1\",2,0]" "$(json '.slots[] | [.bytes, .state, .device, (.uuid as
			$uuid | $gpus | index($uuid))]' claims other)" &&
		same "$(xmem claims other --json | jq -r '.slots[].uuid')" \
			"$(cells claims other | cut -d ' ' -f 4)"
}

gpus_of_a_pool() {
	local -x FAKECUDA_DEVICES=2
	local result=0 told=4194304,[1,2]
	known+=(--argjson gpus "$(xmem gpu --json | jq -c '.gpus | map(.uuid)')")
	set_other --gpus || return
	stat_says_what_is_on_which_gpu && buffers_are_on_their_gpus live || result=1
	same '[104096,4096]' "$(json '.[] | select(.name == "other") | [.bytes, .bytes_files]' \
		list)" || result=1
	[ "$backend" = daemon ] || told=100000,[2]	# of the buffers, not of allocations
	same "[$told,$(json '.clients | map(.holds)' clients other)]" "$(json '.pools[0] |
		[.bytes_cuda, (.devices | map(.device)), (.clients | map(.holds))]' \
		top other --interval 0.1)" || result=1
	echo kill >&"$other_in"
	other_says killed && buffers_are_on_their_gpus limbo || result=1
	end_other && return $result
}

# It uses another scene, because all processes of the scene end.
clients_are_evicted_and_pools_drained() {
	local result=0 first left
	set_other || return
	first=$(json '.clients[0].client' clients other)
	left=$(json '.clients | length' clients other)
	refuses 2 "evict: CLIENT is a number, not 'x'" xmem evict other x || result=1
	refuses 2 "evict: the arguments are '\[--json\] POOL CLIENT'" xmem evict other || result=1
	refuses 2 "evict: there is no option --evict" xmem evict other 0 --evict || result=1
	refuses 1 "no pool 'no-such'" xmem evict no-such 0 || result=1
	if [ "$backend" = kernel ]; then
		same "[\"kernel\",$first]" "$(json '[.backend, .evicted[0].client]' \
			evict other "$first")" || result=1
		# Others have yet to receive its publications.
		same '"zombie"' "$(json ".clients[] | select(.client == $first) | .state" \
			clients other)" || result=1
		same "0 $((left - 1))" "$(cells drain other --evict)" || result=1
		refuses 1 "there is no pool 'other'" xmem clients other || result=1
	else
		refuses 1 "live process" xmem evict other "$first" || result=1
		refuses 1 "live process" xmem drain --evict other || result=1
		same "[$left,0]" "$(json '.drained[0] | [.clients, .evicted]' drain other)" ||
			result=1
		refuses 1 "drained" xmem clients other || result=1
	fi
	end_other && return $result
}

backend_is_told() { same "$backend" "$(xmem backend)"; }

# A command that cannot print has failed. stdbuf lets it write while the pool is open, and other
# writes follow the one that fails.
output_that_cannot_be_written() {
	local words='standard output: ' command
	for command in list 'list --json' 'clients scene' 'holders scene --json' 'stat scene' help \
		backend version 'claims scene' 'claims scene --json' 'stat --help' gpu \
		'gpu --json'; do
		# shellcheck disable=SC2086
		refuses 1 "$words" bash -c '"$0" "$@" >/dev/full' "$programs/xmem" $command &&
			refuses 1 "$words" bash -c 'stdbuf -o0 "$0" "$@" >/dev/full' \
				"$programs/xmem" $command &&
			refuses 1 "$words" bash -c '"$0" "$@" >&-' "$programs/xmem" $command &&
			refuses 1 "$words" bash -c 'stdbuf -o0 "$0" "$@" >&-' \
				"$programs/xmem" $command || return
	done
	# No output has gone into the pool's files, which could have got the number of stdout.
	same 3 "$(json '.clients | length' clients scene)"
}

# A reader that closes the pipe ends the tool, as it ends every program. If SIGPIPE is ignored, the
# tool fails with an error.
output_into_a_pipe_without_a_reader() {
	local words='standard output: Broken pipe' command status both closed result=0
	mkfifo "$work/closed"
	exec {both}<>"$work/closed" {closed}>"$work/closed"
	exec {both}>&-
	for command in list 'list --json' 'stat scene' 'stat scene --json' 'clients scene' \
		'clients scene --json' 'holders scene' 'holders scene --json' 'claims scene' \
		'claims scene --json' help 'help claims' 'stat --help' backend version gpu \
		'gpu --json'; do
		status=0
		# shellcheck disable=SC2086
		env --default-signal=PIPE "$programs/xmem" $command >&"$closed" 2>"$work/err" ||
			status=$?
		[ $status = 141 ] && [ ! -s "$work/err" ] ||
			{ says "xmem $command: status $status, $(cat "$work/err")"; result=1; }
		status=0
		# shellcheck disable=SC2086
		env --ignore-signal=PIPE "$programs/xmem" $command >&"$closed" 2>"$work/err" ||
			status=$?
		[ $status = 1 ] && grep -q "^xmem: $words$" "$work/err" ||
			{ says "xmem $command: status $status, $(cat "$work/err")"; result=1; }
	done
	exec {closed}>&-
	rm "$work/closed"
	return $result
}

# ---- without a host ----

daemon_runs() { grep -qsazxF "XMEM_SOCKET=$XMEM_SOCKET-none" /proc/[0-9]*/environ; }

no_host_and_none_is_started() {
	local command
	same '[]' "$($nowhere "$programs/xmem" list --json)" &&
		same 'NUMBER OWNER MODE CLIENTS SLOTS RING BYTES FILES KEPT POOL' \
			"$($nowhere "$programs/xmem" list | sed 's/  */ /g')" || return
	for command in stat clients holders claims; do
		refuses 1 "there is no pool 'scene': no host is running" \
			$nowhere "$programs/xmem" $command scene || return
	done
	refuses 1 'xmemd' $nowhere XMEM_DAEMON=none "$programs/xmem" backend || return
	! daemon_runs || says 'a daemon was started'
}

no_device() {
	if [ -e /dev/xmem ]; then
		echo "SKIP $name: this machine has /dev/xmem"
		return 77
	fi
	refuses 1 "there is no pool 'scene': no host is running" \
		env XMEM_BACKEND=kernel "$programs/xmem" clients scene &&
		refuses 1 '/dev/xmem' env XMEM_BACKEND=kernel "$programs/xmem" backend
}

wrong_backend_is_said() {
	local command
	for command in list 'clients scene' backend; do
		# shellcheck disable=SC2086
		refuses 1 'XMEM_BACKEND' env XMEM_BACKEND=none "$programs/xmem" $command || return
	done
}

# Without ncurses the tool has no view, and says which package it lacks.
build_without_ncurses() {
	if [ "$backend" = kernel ]; then
		echo "SKIP $name: it does not depend on the host"
		return 77
	fi
	local object=$work/none/obj/cli/top_screen.o
	mkdir "$work/hidden"
	echo '#error it is hidden' >"$work/hidden/curses.h"
	make -s B="$work/none" CFLAGS="-isystem $work/hidden" "$object" >/dev/null &&
		! make -n B="$work/none" CFLAGS="-isystem $work/hidden" "$work/none/xmem" |
			grep curses || { says 'it needs ncurses'; return; }
	find "$programs/obj/cli" -name '*.o' ! -name top_screen.o -print0 |
		xargs -0 cc -pthread -o "$work/none/xmem" "$object" >"$work/err" 2>&1 \
			-Wl,--start-group "$programs/libxmem.a" -ljansson -ldl ||
		{ says "$(cat "$work/err")"; return; }
	refuses 1 'only --once and --json: install libncurses-dev' "$work/none/xmem" top &&
		[[ $("$work/none/xmem" top --once --interval 0.1) == *' scene'* ]]
}

# If there is no JSON library, the build says what to do, instead of the compiler's error.
build_without_json_library() {
	if [ "$backend" = kernel ]; then
		echo "SKIP $name: it does not depend on the host"
		return 77
	fi
	! make -s B="$work/none" CFLAGS=-nostdinc "$work/none/obj/cli/jansson" 2>"$work/err" ||
		return
	grep -q '^cli: jansson.h is missing: install libjansson-dev, or .* CLI=no$' "$work/err" &&
		! make -n B="$work/none" CLI=no all | grep -E 'cli/|jansson' &&
		make -n B="$work/none" all | grep 'cli/xmem.c' >/dev/null
}

set_scene || { echo '0 passed, 1 failed, 0 skipped'; exit 1; }
for name in list_has_named_and_anonymous list_as_a_table table_is_aligned \
	long_name_with_slashes anonymous_is_looked_at \
	clients_are_who_they_are client_waits_for_a_writer \
	top_counts_hand_overs top_joins_nothing top_says_what_the_others_say top_as_a_table \
	trace_follows_buffers trace_follows_holds trace_counts_what_is_lost \
	trace_escapes_labels trace_survives_a_full_disk \
	prometheus_reads_metrics metrics_replace_a_file metrics_are_written_in_place \
	metrics_count_bytes \
	top_reads_sysfs top_uses_no_memory top_says_who_waits top_shows_anonymous_pools \
	top_view_shows top_on_a_terminal top_on_a_poor_terminal top_outlives_what_it_shows \
	top_outlives_its_host watch_prints_again watch_ends_at_sigint \
	clients_as_a_table holders_are_who_they_are holders_as_a_table \
	holders_of_one_slot claims_are_set_aside limits_are_listed stat_counts_without_the_tool \
	output_that_nobody_reads_keeps_no_pool full_pool bad_usage no_such_pool \
	host_that_does_not_answer daemon_help_that_cannot_be_written daemon_without_proc \
	help_of_each_command manual_has_what_help_has \
	help_and_version \
	gpus_of_the_fake_driver gpus_as_a_table no_gpu_and_why gpus_of_a_pool \
	text_that_is_no_utf8 message_that_is_no_utf8 scene_ends_with_its_members \
	clients_are_evicted_and_pools_drained \
	backend_is_told output_that_cannot_be_written output_into_a_pipe_without_a_reader \
	no_host_and_none_is_started no_device \
	wrong_backend_is_said build_without_json_library build_without_ncurses \
	claims_are_voided killed_owner_is_seen; do
	[ -z "$wanted" ] || [[ $wanted = *" $name "* ]] || continue
	result=0
	"$name" || result=$?
	case $result in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) ;;
	*) failed=$((failed + 1)); echo "FAIL $name" ;;
	esac
done
exec {scene_in}>&-
wait "$scene" || { failed=$((failed + 1)); echo "FAIL the scene ends with an error"; }
scene=''
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
