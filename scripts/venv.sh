#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# venv.sh FOLDER REQUIREMENTS [OPTION...]: see that FOLDER is a virtual environment of Python with
# exactly the packages that the file REQUIREMENTS pins (one that it begins with, -r OTHER, counts
# too). OPTION: what "python3 -m venv" shall be told, such as --system-site-packages.
#
# Nothing to do: says nothing, and takes no time. It is made anew when a requirement changes, but
# a folder that venv.sh has not made itself is kept, and what it lacks is added. Several may want
# the same one at the same time, and one that was stopped leaves no half.
set -euo pipefail

folder=$(realpath -m "${1:?usage: venv.sh FOLDER REQUIREMENTS [OPTION...]}")
wanted=${2:?usage: venv.sh FOLDER REQUIREMENTS [OPTION...]}
shift 2
python=/usr/bin/python3		# Debian's, whose own packages --system-site-packages shows
stamp=$folder/made-by-venv.sh

# All that decides what will be in it.
contents() {
	local file=$1 other
	echo "# in $folder, by $("$python" --version): ${*:2}"
	while read -r other; do
		contents "$(dirname "$file")/$other" | tail -n +2
	done < <(sed -n 's/^-r //p' "$file")
	grep -E '^[A-Za-z]' "$file"
}

make_it() {
	local known=no
	[ ! -e "$folder/pyvenv.cfg" ] || [ -e "$stamp" ] || known=others
	[ $known = others ] || {
		echo "venv.sh: making $folder"
		rm -rf "$folder"
		mkdir -p "$folder"
		echo unfinished >"$stamp"
		"$python" -m venv "$@" "$folder"
	}
	"$folder/bin/python" -m pip install -q --disable-pip-version-check --retries 5 \
		--no-deps -r "$wanted"
	[ $known = others ] || contents "$wanted" "$@" >"$stamp"
}

is_made() { cmp -s "$stamp" <(contents "$wanted" "$@"); }

is_made "$@" && exit 0
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9
is_made "$@" || make_it "$@" 9>&-
