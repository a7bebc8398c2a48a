#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks make install, as a distribution and as a user of PREFIX run it. Are the files in their
# places? Do programs build against them by pkg-config and CMake, and run from anywhere with the
# xmemd of their installation? Does a changed PREFIX rebuild the files that depend on it? Does
# uninstall leave nothing?
set -Eeuo pipefail
cd "$(dirname "$0")/.."

top=$PWD/build/install-check
one=$top/one two=$top/two staged=$top/staged
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)
major=${version%%.*} soversion=${version%.*}	# 0.MINOR; from 1.0 on MAJOR
[ "$major" = 0 ] || soversion=$major
soname=libxmem.so.$soversion
unset "${!XMEM_@}" PREFIX BINDIR LIBDIR INCLUDEDIR LIBEXECDIR DATADIR DOCDIR MANDIR \
	ZSHDIR SYSTEMDUNITDIR UDEVDIR DESTDIR PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR LD_LIBRARY_PATH
export XMEM_BACKEND=daemon
fail() { echo "FAIL $*"; exit 1; }
trap 'echo "FAIL line $LINENO: $BASH_COMMAND" >&2' ERR
# Another PREFIX relinks programs, and other tests may be running the programs in build/release.
make() { command make B=build/install-check/build "$@"; }
quiet() { "$@" >"$top/log" 2>&1 || { tail -20 "$top/log"; fail "$*"; }; }

# tree FOLDER: lists all that is in it, for a comparison.
tree() { [ ! -d "$1" ] || (cd "$1" && find . -printf '%P %y %m %l\n' | sort); }

# ---- programs: each opens a pool, publishes, and runs a command while the daemon serves it

write_sources() {
	cat >"$top/try.c" <<-'C'
	#include <stdlib.h>
	#include <stdio.h>
	#include <xmem.h>

	int main(int argc, char **argv)
	{
		struct xmem_pool_options writer = {
			.size = sizeof(writer), .flags = XMEM_OPEN_WRITER,
		};
		struct xmem_pool *pool = xmem_pool_open(NULL, &writer);
		struct xmem_buffer *buffer = NULL;
		struct xmem_error why = XMEM_INIT(why);
		int bad = !pool || xmem_preallocate(pool, 100, 2, NULL) ||
			  !(buffer = xmem_acquire(pool, 100, 0)) ||
			  xmem_publish(buffer, NULL, NULL);

		if (bad)
			xmem_peek_last_error(&why);
		if (why.error)
			fprintf(stderr, "%s\n", why.message);
		if (!bad)
			bad = system(argv[1]);
		xmem_pool_close(pool);
		return bad != 0;
	}
	C
	cat >"$top/try.cpp" <<-'CPP'
	#include <cstdlib>
	#include <xmem.hpp>

	int main(int argc, char **argv)
	{
		xmem::pool pool("", XMEM_OPEN_WRITER);
		pool.preallocate(100, 2);
		pool.acquire(100).publish();
		return std::system(argv[1]) != 0;
	}
	CPP
	cat >"$top/served-by" <<-'SH'
	#!/bin/bash
	for process in /proc/[0-9]*; do
		[ "$(readlink "$process/exe")" = "$1" ] || continue
		grep -qzx "XMEM_SOCKET=$XMEM_SOCKET" "$process/environ" && exit 0
	done 2>/dev/null
	exit 1
	SH
	chmod +x "$top/served-by"
}

# runs WHAT XMEMD COMMAND...: runs it in another folder, without XMEM_DAEMON, served by that xmemd.
runs() {
	local what=$1 xmemd=$2
	shift 2
	(cd / && env -u XMEM_DAEMON "XMEM_SOCKET=xmem-install-$$-${what// /-}" "$@" \
		"$top/served-by $xmemd") || fail "$what: does not run, or not with $xmemd"
}

# build NAME ROOT LIBDIR: builds it shared, static and wholly static, with pkg-config's flags.
build() {
	local name=$1 shared static
	export PKG_CONFIG_PATH=$2$3/pkgconfig
	shared=$(pkg-config --cflags --libs xmem)
	static=$(pkg-config --static --cflags --libs xmem)
	for word in -pthread -ldl; do
		[[ " $static " = *" $word "* ]] || fail "pkg-config --static lacks $word: $static"
		[[ " $shared " != *" $word "* ]] || fail "pkg-config has $word: $shared"
	done
	[ "$(pkg-config --modversion xmem)" = "$version" ] || fail "xmem.pc is not $version"
	# shellcheck disable=SC2086
	{
		gcc "$top/try.c" -o "$top/$name-shared" $shared
		g++ -std=c++17 "$top/try.cpp" -o "$top/$name-cpp" $shared
		gcc "$top/try.c" -o "$top/$name-static" ${static/-lxmem/-l:libxmem.a}
		gcc -static "$top/try.c" -o "$top/$name-whole" $static 2>"$top/log"
	}
	readelf -d "$top/$name-shared" | grep -q "NEEDED.*\[$soname\]" || fail "$name: not $soname"
	! readelf -d "$top/$name-static" | grep -q 'NEEDED.*xmem' || fail "$name-static is shared"
}

# ---- the installed files

expected() {	# FOLDER that stands for /usr, LIBDIR below it
	(cd include && find . -type f -printf 'include/%P\n')
	(cd build/man && printf 'share/man/%s\n' man3/*.3 man7/*.7)
	printf '%s\n' bin/xmem "libexec/xmem/xmemd" share/doc/xmem/environment.md \
		share/doc/xmem/cuda.md share/doc/xmem/device.md \
		share/man/man1/xmem.1 share/man/man8/xmemd.8 \
		share/bash-completion/completions/xmem share/zsh/site-functions/_xmem \
		share/fish/vendor_completions.d/xmem.fish \
		lib/systemd/system/xmemd@.{socket,service} \
		"$1"/{libxmem.a,libxmem.so,"$soname","libxmem.so.$version",pkgconfig/xmem.pc} \
		"$1"/cmake/xmem/xmem-config{,-version}.cmake
}

check_files() {	# ROOT LIBDIR
	diff <(expected "$2" | sort) <(cd "$1" && find . ! -type d -printf '%P\n' | sort) ||
		fail "$1: these files differ from what is expected"
	[ -x "$1/bin/xmem" ] && [ -x "$1/libexec/xmem/xmemd" ] || fail "$1: not to be run"
	! grep -rn '@[A-Z_]*@' "$1/lib/systemd" "$1/$2/pkgconfig" "$1/$2/cmake" ||
		fail "$1: a value is missing"
}

check_prefixes() {
	quiet make "-j$(nproc)" all
	quiet make install PREFIX="$one"
	check_files "$one" lib
	build one '' "$one/lib"
	runs 'one shared' "$one/libexec/xmem/xmemd" LD_LIBRARY_PATH="$one/lib" "$top/one-shared"
	runs 'one C++' "$one/libexec/xmem/xmemd" LD_LIBRARY_PATH="$one/lib" "$top/one-cpp"
	runs 'one static' "$one/libexec/xmem/xmemd" "$top/one-static"
	runs 'one whole' "$one/libexec/xmem/xmemd" "$top/one-whole"

	# In /tmp/folder it must not run a file that another user has put in /tmp/libexec.
	mkdir -p "$top/folder" "$top/libexec/xmem"
	cp "$top/one-static" "$top/folder/"
	printf '#!/bin/sh\ntouch "%s"\n' "$top/trapped" >"$top/libexec/xmem/xmemd"
	chmod +x "$top/libexec/xmem/xmemd"
	runs 'one in a folder' "$one/libexec/xmem/xmemd" "$top/folder/one-static"
	[ ! -e "$top/trapped" ] || fail "a program runs the folder above's libexec/xmem/xmemd"

	# From one build tree: a single object knows the folders, and only that one is compiled.
	quiet make PREFIX="$two"
	[ "$(awk '$1 == "CC"' "$top/log")" = '  CC      lib/host/start.c' ] ||
		fail "another PREFIX compiles: $(cat "$top/log")"
	make -q PREFIX="$two" || fail 'the same PREFIX again is not up to date'
	quiet make install PREFIX="$two"
	build two '' "$two/lib"
	runs 'two shared' "$two/libexec/xmem/xmemd" LD_LIBRARY_PATH="$two/lib" "$top/two-shared"
	runs 'two static' "$two/libexec/xmem/xmemd" "$top/two-static"
	runs 'two whole' "$two/libexec/xmem/xmemd" "$top/two-whole"
	grep -qx "ExecStart=$two/libexec/xmem/xmemd --foreground" \
		"$two/lib/systemd/system/xmemd@.service" ||
		fail 'xmemd@.service starts another xmemd'
}

check_staged() {
	local lib=lib multiarch
	multiarch=$(gcc -print-multiarch)
	[ -z "$multiarch" ] || lib=lib/$multiarch
	quiet make install DESTDIR="$staged" PREFIX=/usr
	check_files "$staged/usr" "$lib"
	! grep -rl "$staged" "$staged" || fail 'these files remember DESTDIR'
	export PKG_CONFIG_SYSROOT_DIR=$staged
	build staged "$staged" "/usr/$lib"
	unset PKG_CONFIG_SYSROOT_DIR
	runs 'staged shared' "$staged/usr/libexec/xmem/xmemd" \
		LD_LIBRARY_PATH="$staged/usr/$lib" "$top/staged-shared"
	quiet make uninstall DESTDIR="$staged" PREFIX=/usr
	[ ! -e "$staged" ] || fail "uninstall leaves in DESTDIR: $(tree "$staged")"
}

# refused ASSIGNMENT WORDS: make install fails with these words, and installs nothing.
refused() {
	! make -n install "$1" >"$top/log" 2>&1 || fail "$1 is accepted"
	grep -qF "$2" "$top/log" || fail "$1: $(cat "$top/log")"
}

# Each folder is set by itself, and none is below PREFIX.
check_folders() {
	local folders=(PREFIX="$top/p" BINDIR="$top/b" LIBDIR="$top/l/64" INCLUDEDIR="$top/i"
		LIBEXECDIR="$top/x" DATADIR="$top/d" DOCDIR="$top/doc" MANDIR="$top/m"
		SYSTEMDUNITDIR="$top/u" ZSHDIR="$top/z")
	quiet make install "${folders[@]}"
	[ -x "$top/b/xmem" ] && [ -f "$top/doc/environment.md" ] && [ -f "$top/doc/cuda.md" ] &&
		[ -f "$top/m/man8/xmemd.8" ] && [ -f "$top/u/xmemd@.socket" ] &&
		[ -f "$top/z/_xmem" ] &&
		[ ! -e "$top/p" ] ||
		fail 'a folder is not heeded'
	build folders '' "$top/l/64"
	runs 'folders shared' "$top/x/xmem/xmemd" LD_LIBRARY_PATH="$top/l/64" "$top/folders-shared"
	runs 'folders static' "$top/x/xmem/xmemd" "$top/folders-static"
	cmake_project folders "$top/l/64"
	quiet make uninstall "${folders[@]}"
	for folder in p b l i x d doc m u z; do
		[ ! -e "$top/$folder" ] || fail "uninstall leaves $top/$folder"
	done
	! make -n install PREFIX=/usr LIBDIR=lib >"$top/log" 2>&1 || fail 'LIBDIR=lib is accepted'
	grep -q 'LIBDIR is an absolute path' "$top/log" || fail "LIBDIR=lib: $(cat "$top/log")"
	refused LIBDIR= 'LIBDIR is an absolute path'
	refused PREFIX= 'PREFIX is an absolute path'
	refused "DESTDIR=/tmp/it's" "DESTDIR may not have the character '"
	refused "BINDIR=/tmp/it's" "BINDIR may not have the character '"
	refused 'PREFIX=/tmp/a|b' 'PREFIX may not have the character |'
	refused 'DATADIR=/tmp/a&b' 'DATADIR may not have the character &'
}

# make install updates the linker's cache if and only if the cache covers LIBDIR, however long
# ldconfig's list is. tests/bare checks this with the machine's own cache.
check_linker() {
	local fake=$top/fake
	mkdir -p "$fake"
	printf '#!/bin/sh\necho 0\n' >"$fake/id"
	cat >"$fake/ldconfig" <<-SH
	#!/bin/bash
	[ \$# = 0 ] && exec touch "$top/refreshed"
	echo /lib:
	echo "/cache/lib: (from /etc/ld.so.conf.d/libc.conf:2)"
	seq 200000
	echo /usr/lib:
	SH
	chmod +x "$fake/id" "$fake/ldconfig"
	linked() {	# LIBDIR DESTDIR
		rm -f "$top/refreshed"
		PATH=$fake:$PATH LIBDIR=$1 DESTDIR=$2 quiet scripts/install.sh "${3:-install}"
		[ -e "$top/refreshed" ]
	}
	linked /cache/lib '' || fail "install leaves the linker's cache as it was"
	linked /usr/lib '' uninstall || fail "uninstall leaves the linker's cache as it was"
	! linked /cache '' || fail "the linker's cache does not cover /cache"
	! linked /cache/lib "$staged" || fail "a staged install touches the linker's cache"
}

# ---- CMake

# cmake_project NAME LIBDIR [VERSION]: configures and builds; CMake finds the package only there.
cmake_project() {
	local folder=$top/cmake-$1
	rm -rf "$folder"
	mkdir "$folder"
	cat >"$folder/CMakeLists.txt" <<-CMAKE
	cmake_minimum_required(VERSION 3.13)
	project(try C)
	find_package(xmem ${3:-} REQUIRED CONFIG)
	add_executable(shared $top/try.c)
	target_link_libraries(shared PRIVATE xmem::xmem)
	add_executable(static $top/try.c)
	target_link_libraries(static PRIVATE xmem::xmem_static)
	message(STATUS "version \${xmem_VERSION}")
	CMAKE
	cmake -S "$folder" -B "$folder/build" -Dxmem_DIR="$2/cmake/xmem" >"$top/log" 2>&1 ||
		return 1
	grep -q "version $version\$" "$top/log" || fail "CMake does not find version $version"
	quiet cmake --build "$folder/build"
}

check_cmake() {
	local wrong
	cmake_project two "$two/lib" "${version%.*}" || fail "CMake: $(cat "$top/log")"
	runs 'cmake shared' "$two/libexec/xmem/xmemd" "$top/cmake-two/build/shared"
	runs 'cmake static' "$two/libexec/xmem/xmemd" "$top/cmake-two/build/static"
	! readelf -d "$top/cmake-two/build/static" | grep -q 'NEEDED.*xmem' ||
		fail 'CMake: not static'
	cmake_project exact "$two/lib" "$version EXACT" || fail "CMake: $(cat "$top/log")"
	for wrong in 99 "$version.1" "${version%.*} EXACT" 0.0; do
		! cmake_project wrong "$two/lib" "$wrong" || fail "CMake takes $version for $wrong"
		grep -q 'considered but not accepted' "$top/log" || fail "$(cat "$top/log")"
	done
}

# The whole tree is moved. Programs with the shared library still work; pkg-config does not.
check_moved() {
	mv "$two" "$top/moved"
	runs 'moved shared' "$top/moved/libexec/xmem/xmemd" LD_LIBRARY_PATH="$top/moved/lib" \
		"$top/two-shared"
	cmake_project moved "$top/moved/lib" || fail "CMake, moved: $(cat "$top/log")"
	runs 'cmake moved' "$top/moved/libexec/xmem/xmemd" "$top/cmake-moved/build/shared"
	rm "$top/moved/lib/libxmem.a"
	! cmake_project broken "$top/moved/lib" || fail 'CMake does not miss libxmem.a'
	grep -q 'libxmem.a is missing' "$top/log" || fail "no libxmem.a: $(cat "$top/log")"
	rm -r "$top/moved"
}

# ---- units

# tests/activation/address.sh checks that libxmem connects to this socket.
check_units() {
	local units=$one/lib/systemd/system unit
	grep -qx 'ListenSequentialPacket=/run/xmem-%i/xmemd' "$units/xmemd@.socket" ||
		fail "xmemd@.socket does not listen where libxmem connects"
	if ! command -v systemd-analyze >/dev/null; then
		echo 'SKIP units: systemd-analyze is not there'
		return
	fi
	mkdir "$top/instance"
	for unit in socket service; do
		cp "$units/xmemd@.$unit" "$top/instance/xmemd@0.$unit"
	done
	systemd-analyze --man=no verify "$top"/instance/* >"$top/log" 2>&1 ||
		fail "units: $(cat "$top/log")"
	[ ! -s "$top/log" ] || fail "units: $(cat "$top/log")"
	systemd-analyze security --offline=true --threshold=20 "$top/instance/xmemd@0.service" \
		>"$top/log" 2>&1 || fail "xmemd@.service is open: $(cat "$top/log")"
}

# ---- uninstall leaves earlier files, also empty folders and files of others

check_uninstall() {
	local before
	quiet make uninstall PREFIX="$one"
	[ ! -e "$one" ] || fail "uninstall leaves in PREFIX: $(tree "$one")"
	mkdir -p "$one"/{bin,lib/pkgconfig,share/man/man{1,8},include/xmem,libexec/xmem}
	touch "$one"/{bin/other,lib/libother.so,include/xmem/other.h}
	before=$(tree "$one")
	quiet make install PREFIX="$one"
	quiet make install PREFIX="$one"
	quiet make uninstall PREFIX="$one"
	diff <(echo "$before") <(tree "$one") || fail 'uninstall leaves another tree than there was'
	quiet make uninstall PREFIX="$one"
}

# ---- one version, and help

check_version() {
	quiet make install VERSION=9.8.7 PREFIX="$one"
	for line in "$("$one/bin/xmem" --version)" "$("$one/libexec/xmem/xmemd" --version)" \
		"x $(PKG_CONFIG_PATH=$one/lib/pkgconfig pkg-config --modversion xmem)"; do
		[ "${line#* }" = 9.8.7 ] || fail "VERSION=9.8.7 gives '$line'"
	done
	[ "$(readlink "$one/lib/libxmem.so.9")" = libxmem.so.9.8.7 ] || fail 'no libxmem.so.9'
	readelf -d "$one/lib/libxmem.so" | grep -q 'SONAME.*\[libxmem.so.9\]' || fail 'no soname .9'
	grep -q '"9.8.7"' "$one/lib/cmake/xmem/xmem-config-version.cmake" || fail 'CMake: not 9.8.7'
	quiet make uninstall VERSION=9.8.7 PREFIX="$one"
	# Before 1.0 each minor version breaks the ABI: a program of one does not load another.
	make -n install VERSION=0.98.7 PREFIX="$one" >"$top/log"
	grep -q -e '-soname,libxmem.so.0.98 ' "$top/log" || fail 'the soname of 0.98.7'
	grep -q ":$one/lib/libxmem.so.0.98'" "$top/log" || fail 'the link of 0.98.7'
}

check_help() {
	local word words=(DESTDIR FLAVOUR KDIR V CC CFLAGS CLI)
	make help >"$top/help"
	mapfile -t -O 7 words < <(sed -n 's/^\([A-Z]*\) *?=.*/\1/p' scripts/install.mk)
	for word in "${words[@]}"; do
		grep -qw "$word" "$top/help" || fail "make help lacks the variable $word"
	done
	mapfile -t words < <(sed -n 's/^\.PHONY: \([a-z -]*\)$/\1/p' Makefile scripts/install.mk \
		kmod/kmod.mk bench/bench.mk bindings/bindings.mk examples/examples.mk |
		tr ' ' '\n' | grep -vxE 'all|kmod-(tree|headers)|demo-programs')
	[ ${#words[@]} -ge 10 ] || fail "these are all verbs: ${words[*]}"
	for word in "${words[@]}"; do
		grep -q "make $word\b" "$top/help" || fail "make help lacks $word"
	done
}

rm -rf "$top"
mkdir -p "$top"
# This must not run while setuptools builds a wheel for another suite, beside the sources.
before=$(flock build git status --porcelain)
write_sources
check_prefixes
check_staged
check_linker
check_cmake
check_folders
check_moved
check_units
check_uninstall
check_version
check_help
after=$(flock build git status --porcelain)
[ "$before" = "$after" ] || { echo "$after"; fail 'the tree changed'; }
