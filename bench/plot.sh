#!/bin/bash
# SPDX-License-Identifier: MIT
# plot.sh SCRIPT DATA PICTURE: draws DATA by gnuplot, if gnuplot is installed.
set -euo pipefail
if ! command -v gnuplot >/dev/null; then
	echo "SKIP ${3##*/}: gnuplot is not installed (Debian: gnuplot-nox)"
	exit 0
fi
[ -s "$2" ] || { echo "SKIP ${3##*/}: there is nothing to draw in $2"; exit 0; }
gnuplot -e "data='$2'; picture='$3'" "$1"
echo "plot: $3"
