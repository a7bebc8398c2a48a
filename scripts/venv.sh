#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# venv.sh FOLDER REQUIREMENTS [OPTION...]: see that FOLDER is a virtual environment of Python with
# exactly the packages that the file REQUIREMENTS pins (including those of a file that its first
# line names, -r OTHER). OPTION: an option of "python3 -m venv", such as --system-site-packages.
#
# If there is nothing to do, it prints nothing and takes no time. The environment is made again when
# a requirement changes. But a folder that venv.sh has not made itself is kept, and missing packages
# are added. Several calls may make one environment at one time, and a call that is stopped leaves
# no half-made one.
set -euo pipefail

folder=$(realpath -m "${1:?usage: venv.sh FOLDER REQUIREMENTS [OPTION...]}")
wanted=${2:?usage: venv.sh FOLDER REQUIREMENTS [OPTION...]}
shift 2
python=/usr/bin/python3		# Debian's, whose own packages --system-site-packages shows
stamp=$folder/made-by-venv.sh

# Everything that decides the contents of the environment.
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
