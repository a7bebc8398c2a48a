#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes screenshots of xmem top, 80 columns by 24 rows, as HTML, for the documentation site.
#   tests/docs/screens.sh PROGRAMS FOLDER
# PROGRAMS is build/release. They show two scenes of tests/cli: in the pool "camera", frames are
# handed over as long as this script looks at the screen, and in "depth" buffers are held.
set -euo pipefail
cd "$(dirname "$0")/../.."
programs=$(realpath "$1") folder=$2
export XMEM_BACKEND=daemon XMEM_SOCKET=xmem-screens-$$ XMEM_DAEMON=$programs/xmemd
mkdir -p "$folder"
work=$(mktemp -d)
on_screen() { env -u TMUX tmux -L "xmem-screens-$$" "$@"; }
clean_up() {
	on_screen kill-server 2>/dev/null || true
	exec {to}>&- {from}<&- {hall}>&- || true
	wait
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# hand_over: one frame
hand_over() {
	local line
	echo '1 1' >&"$to"
	while read -r -t 60 -u "$from" line && [ "$line" != "done" ]; do :; done
	[ "$line" = "done" ] || { echo "screens.sh: the scene does not say done" >&2; exit 1; }
}

# shoot NAME PATTERN KEY...: types the keys, and keeps the screen once a line of it fits the pattern
shoot() {
	local name=$1 pattern=$2 tries
	shift 2
	[ $# = 0 ] || on_screen send-keys "$@"
	for ((tries = 0; tries < 1000; tries++)); do
		hand_over
		on_screen capture-pane -p >"$work/screen"
		! grep -qE -- "$pattern" "$work/screen" || break
	done
	if [ $tries = 1000 ]; then
		echo "screens.sh: $name is not shown, but:" && cat "$work/screen"
		exit 1
	fi >&2
	{
		echo '<pre class="screen">'
		# aha takes the return to usual colours for the end of reverse video.
		on_screen capture-pane -e -p | sed 's/\x1b\[39m\x1b\[49m//g' | aha --no-header
		echo '</pre>'
	} >"$folder/$name.html"
}

mkfifo "$work/to" "$work/from" "$work/hall"
"$programs/cli-scene" depth <"$work/hall" >"$work/depth" &
exec {hall}>"$work/hall"
"$programs/cli-scene" camera --stream <"$work/to" >"$work/from" &
exec {to}>"$work/to" {from}<"$work/from"
read -r -t 60 -u "$from" line
[ "$line" = ready ] || { echo "screens.sh: the scene is not ready" >&2; exit 1; }
on_screen -f /dev/null new-session -d -x 80 -y 24 \
	"'$programs/xmem' top --interval 1" \; set-option -g status off \; \
	set-option -g default-terminal screen-256color {to}>&- {from}<&-
until grep -qx ready "$work/depth"; do hand_over; done
shoot pools '^ *[0-9]+ +[1-9][0-9.k]* .* camera$'
shoot clients '^ *[0-9] cam .* [1-9]' / camera Enter Enter
on_screen send-keys Escape / \; send-keys -N 6 BSpace
shoot slots '^ *0 ' depth Enter Enter Tab
on_screen send-keys q
