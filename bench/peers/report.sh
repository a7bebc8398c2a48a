#!/bin/bash
# SPDX-License-Identifier: MIT
# report.sh RESULTS FOLDER: makes peers.md (tables) and the pictures of what run.sh has measured.
set -euo pipefail
cd "$(dirname "$0")/../.."
results=$1 folder=$2

if ! command -v jq >/dev/null; then
	echo "SKIP peers.md and pictures: jq is not installed"
	exit 0
fi

# A row for each measure and a column for each peer: of its rounds the one with the least median,
# and in brackets how long a raw line took in that very round. Then the table of kills.
jq -rs '
	def digits: if . >= 100 then round elif . >= 10 then (. * 10 | round) / 10
		else (. * 100 | round) / 100 end | tostring;
	def time: if . == null then "-" elif . < 1000 then "\(digits) ns"
		elif . < 1e6 then "\(. / 1000 | digits) us"
		elif . < 1e9 then "\(. / 1e6 | digits) ms"
		else "\(. / 1e9 | digits) s" end;
	def size: if . >= 1048576 then "\(. / 1048576) MiB" else "\(. / 1024) KiB" end;
	def title: if .measure == "cycle" then "cycle, one process"
		elif .measure == "fan-out" then "to \(.subscribers) sleeping subscribers"
		else "one way, \(.measure), \(.bytes | size)" end;
	def in_order: reduce .[] as $x ([]; if index([$x]) then . else . + [$x] end);
	def row: "| " + join(" | ") + " |";
	. as $all | ([.[].peer] | in_order) as $peers |
	[.[] | select(.measure != "kill")] as $timed | ([$timed[] | title] | in_order) as $titles |
	(["median"] + $peers | row), ([["---"], [$peers[] | "---:"]] | add | row),
	($titles[] as $t | [$t] + [$peers[] as $p |
		([$timed[] | select(.peer == $p and title == $t)] | min_by(.median_ns) |
		 (.median_ns | time) + if .raw_line_ns and .measure == "polling" then
			" (\(.raw_line_ns | round))" else "" end)] | row),
	"",
	(["SIGKILL of a consumer that holds a buffer", "kills", "buffers that came back",
	  "after (median)", "buffers lost", "bytes lost", "files left"] | row),
	(["---", "---:", "---:", "---:", "---:", "---:", "---:"] | row),
	($all[] | select(.measure == "kill") | if .shares then
		[.peer, .kills, .returned, (.median_ns | time), .leaked_buffers, .leaked_bytes,
		 .files_of_kills | tostring]
		else [.peer, "it shares none", "-", "-", "0", "0", "0"] end | row)
' "$results" >"$folder/peers.md"
cat "$folder/peers.md"

# Columns of the pictures: x, then a column for each peer.
columns() {
	jq -rs --arg measure "$1" --arg key "$2" '
		def in_order: reduce .[] as $x ([]; if index([$x]) then . else . + [$x] end);
		([.[].peer] | in_order) as $peers | [.[] | select(.measure == $measure)] as $of |
		([$key] + $peers | join("\t")),
		([$of[] | .[$key]] | unique[] as $x | [$x] + [$peers[] as $p |
			([$of[] | select(.peer == $p and .[$key] == $x)] | min_by(.median_ns)
			| .median_ns) // "-"] | join("\t"))' "$results"
}
columns polling bytes >"$folder/peers-polling.tsv"
columns fan-out subscribers >"$folder/peers-fan-out.tsv"
bench/plot.sh bench/peers/polling.gp "$folder/peers-polling.tsv" "$folder/peers-polling.svg"
bench/plot.sh bench/peers/fan-out.gp "$folder/peers-fan-out.tsv" "$folder/peers-fan-out.svg"
