#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# install.sh install|uninstall ENTRY...: puts files in place below DESTDIR, or removes the
# files again. An entry is MODE:FILE:TARGET, or link:TEXT:TARGET for a symbolic link.
#
# The folders that install makes are listed in build/installed-folders, so that uninstall can
# remove exactly these once they are empty. Without that list ("make clean" removes it)
# uninstall removes only folders with the name xmem, and xmem/uapi.
set -euo pipefail

folders=build/installed-folders
now=start
trap 'echo "install.sh: stopped at $now; make uninstall removes what is there already" >&2' ERR

make_folder() {
	[ ! -d "$1" ] || return 0
	make_folder "$(dirname "$1")"
	mkdir -m 755 "$1"
	echo "$1" >>"$folders"
}

put() {	# mode, file, target
	make_folder "$(dirname "$3")"
	if [ "$1" = link ]; then
		ln -sfn "$2" "$3"
	else
		install -m "$1" "$2" "$3"
	fi
}

# remove_folders TARGET...: removes the folders that install made for these files, the deepest
# first; if the list has none of them, the folders with the name xmem.
remove_folders() {
	local folder target made kept=() known=''
	mapfile -t made < <(sort -ru "$folders" 2>/dev/null || true)
	for folder in ${made[@]+"${made[@]}"}; do
		for target; do
			[[ $target = "$folder"/* ]] || continue
			known=1
			rmdir "$folder" 2>/dev/null || true
			break
		done
		[ ! -d "$folder" ] || kept+=("$folder")
	done
	for target; do
		folder=$(dirname "$target")
		[ -z "$known" ] && [[ $folder = */xmem?(/uapi) ]] || continue
		rmdir "$folder" "${folder%/uapi}" 2>/dev/null || true
	done
	rm -f "$folders"
	[ ${#kept[@]} = 0 ] || printf '%s\n' "${kept[@]}" >"$folders"
}

# Update the linker's cache, if the library is in one of the linker's folders. The list of these
# is read to the end, because ldconfig would otherwise fail by SIGPIPE.
refresh_linker() {
	local folders PATH=$PATH:/usr/sbin:/sbin
	[ -z "${DESTDIR:-}" ] && [ "$(id -u)" = 0 ] || return 0
	now="the linker's cache"
	folders=$(ldconfig -vNX 2>/dev/null || true)
	if [[ $'\n'$folders == *$'\n'"$LIBDIR:"* ]]; then ldconfig; fi
}

verb=$1
shift
targets=()
for entry; do
	IFS=: read -r mode file target <<<"$entry"
	now=$(realpath -ms "${DESTDIR:-}$target")
	targets+=("$now")
	case $verb in
	install) put "$mode" "$file" "$now" ;;
	uninstall) rm -f "$now" ;;
	esac
done
[ "$verb" != uninstall ] || remove_folders "${targets[@]}"
refresh_linker
