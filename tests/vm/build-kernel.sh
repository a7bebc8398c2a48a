#!/bin/bash
# SPDX-License-Identifier: MIT
# build-kernel.sh NAME: builds one of our debug kernels from Debian's 6.1 source, in the version of
# the installed headers. Its configuration is tinyconfig, then configs/base.config, then
# configs/NAME.config. In NAME.config a line "# make: A=B" is for make, and "# source: 6.12" asks
# for that source, from bookworm-backports. A build takes 10 to 20 minutes, once; build/vm/NAME
# keeps the result. kernel.sh makes it bootable.
set -euo pipefail
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/debian.sh"

name=${1:-}
fragments=("$vm_dir/configs/base.config" "$vm_dir/configs/$name.config")
if [ -z "$name" ] || [ ! -r "${fragments[1]}" ]; then
	die "usage: $me NAME, with configs/NAME.config"
fi

need make:make flex:flex bison:bison bc:bc xz:xz-utils flock:util-linux perl:perl
need_file /usr/include/libelf.h:libelf-dev
cc=$(kernel_cc)
command -v "$cc" >/dev/null || die "missing tools, try: apt-get install gcc-12"

# asked WORD: prints the text of the line "# WORD: ..." in NAME.config
asked() { sed -n "s/^# $1: //p" "${fragments[1]}"; }
series=$(asked source)
out=$cache_dir/$name
tree=$out/tree
log=$out/build.log
mkdir -p "$out" "$src_dir"

exec 9>"$out/lock"
flock 9

# The version of the source. Of backports it is chosen once; remove build/vm/NAME to get a newer
# one.
if [ -z "$series" ]; then
	version=$(stock_version "$(stock_release)")
elif [ ! -s "$out/version" ]; then
	private_apt "$(dpkg --print-architecture)" bookworm-backports
	version=$(field_of Version "linux-source-$series")
	[ -n "$version" ] || die "bookworm-backports has no linux-source-$series any more"
	echo "$version" >"$out/version"
else
	version=$(cat "$out/version")
	export APT_CONFIG=$out/apt/apt.conf
fi
source_dir=$src_dir/linux-$version

wanted=$(cat "${fragments[@]}" <(echo "$version"; "$cc" --version) | sha256sum)
if [ "$wanted" = "$(cat "$out/stamp" 2>/dev/null)" ]; then
	say "$out is up to date"
	exit 0
fi
rm -f "$out/stamp" "$out/recipe"

unpack_source() {
	[ -e "$source_dir/.unpacked" ] && return
	local pkg=$src_dir/pkg-$version
	fetch_deb "linux-source-${series:-6.1}=$version" "$pkg"
	say "unpacking the source"
	rm -rf "$source_dir"
	mkdir -p "$source_dir"
	tar -C "$source_dir" --strip-components=1 \
		-xf "$pkg/usr/src/linux-source-${series:-6.1}.tar.xz"
	touch "$source_dir/.unpacked"
	rm -rf "$pkg"
}

# Every symbol that a fragment sets must have survived olddefconfig. If two fragments name a symbol,
# the later one counts.
last_words() {
	cat "${fragments[@]}" | awk '
		/^# CONFIG_[^ ]* is not set$/ { said[$2] = $0 }
		/^CONFIG_/ { symbol = $0; sub(/=.*/, "", symbol); said[symbol] = $0 }
		END { for (symbol in said) print said[symbol] }'
}

check_taken() {
	local line symbol lost=""
	while read -r line; do
		case $line in
		CONFIG_*=n)
			symbol=${line%%=*}
			! grep -q "^$symbol=" "$tree/.config" || lost+=" $line"
			;;
		CONFIG_*) grep -qxF "$line" "$tree/.config" || lost+=" $line" ;;
		"# CONFIG_"*" is not set")
			symbol=${line#\# }; symbol=${symbol%% *}
			! grep -q "^$symbol=" "$tree/.config" || lost+=" $symbol=n" ;;
		esac
	done < <(last_words)
	[ -z "$lost" ] || die "not taken by the kernel's configuration:$lost"
}

unpack_source
mkdir -p "$tree"
make=(make -C "$source_dir" O="$tree" CC="$cc" HOSTCC="$cc"
	KBUILD_BUILD_USER=xmem KBUILD_BUILD_HOST=xmem)
read -r -a asked_of_make < <(asked make) || true
make+=("${asked_of_make[@]}")
"${make[@]}" -s tinyconfig >"$log" 2>&1 ||
	{ tail -5 "$log" >&2; die "tinyconfig failed, see $log"; }
"$source_dir/scripts/kconfig/merge_config.sh" -m -O "$tree" "$tree/.config" \
	"${fragments[@]}" >>"$log" 2>&1
"${make[@]}" -s olddefconfig >>"$log" 2>&1
check_taken
[ "${2:-}" != --config-only ] || exit 0

say "building $name $version, log in $log"
if ! nice -n 10 "${make[@]}" -j"${VM_JOBS:-$(nproc)}" bzImage modules >>"$log" 2>&1; then
	tail -20 "$log" >&2
	die "the build failed"
fi
cp "$tree/arch/x86/boot/bzImage" "$tree/.config" "$tree/Module.symvers" "$tree/System.map" "$out/"
echo "$cc" >"$out/cc"
cat "$tree/include/config/kernel.release" >"$out/release"
echo "$wanted" >"$out/stamp"
say "$out is ready"
