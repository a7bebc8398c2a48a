#!/bin/bash
# SPDX-License-Identifier: MIT
# Puts the last measurements (make bench, bench-instructions, bench-peers) into
# docs/performance.md: each table stands between two comments that name it. bench/before.tsv has
# the column "before". Tables without a measurement stay as they are.
set -euo pipefail
cd "$(dirname "$0")/.."
document=docs/performance.md folder=build/bench
command -v jq >/dev/null || { echo "docs.sh: jq is needed (Debian: jq)" >&2; exit 2; }

# put NAME: standard input becomes the text between <!-- NAME --> and <!-- end NAME -->.
put() {
	local text
	text=$(cat)
	TEXT=$text awk -v begin="<!-- $1 -->" -v end="<!-- end $1 -->" '
		$0 == end { inside = 0 }
		!inside
		$0 == begin { print ENVIRON["TEXT"]; inside = 1 }' "$document" >"$document.new"
	mv "$document.new" "$document"
}

before=$(jq -Rs 'split("\n") | map(select(. != "") | split("\t") | {(.[0]): .[1]}) | add' \
	bench/before.tsv)

part() { jq -r -f bench/docs.jq --argjson before "$before" --arg part "$1" $folder/results.json; }

if [ -e $folder/results.json ]; then
	part machine | fold -s -w 99 | sed 's/ *$//' | put machine
	part ratios | put ratios
fi
if [ -e $folder/instructions.tsv ]; then
	{
		echo '| instructions | before | now | aim |'
		echo '|---|---:|---:|---:|'
		while IFS=$'\t' read -r row found aim; do
			echo "| $row | $(jq -r --arg row "$row" '.[$row] // ""' <<<"$before") |" \
				"$found | ${aim/#-/} |"
		done <$folder/instructions.tsv
	} | put instructions
fi
[ ! -e $folder/peers.md ] || put peers <$folder/peers.md
mkdir -p docs/performance
for picture in ratios peers-polling peers-fan-out; do
	[ ! -e $folder/$picture.svg ] || cp $folder/$picture.svg docs/performance/
done
echo "docs.sh: $document"
