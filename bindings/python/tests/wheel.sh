#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the distribution that users get. pip installs it from the repository, from a source
# distribution far from any repository, and against the libxmem of a system. It does so each time
# into an empty environment; installed.py judges the result, and pip removes it without a trace.
# The script also checks that PyPI would take the distribution, and the messages when something is
# missing.
# Last line: "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 2

top=$PWD work=$PWD/build/python/wheel-check dist=$PWD/build/python/wheel-check/dist
tools=$PWD/build/python/debian/bin
passed=0 failed=0
rm -rf "$work"
mkdir -p "$work"
unset "${!XMEM_@}" PYTHONPATH PKG_CONFIG_PATH LD_LIBRARY_PATH
export XMEM_BACKEND=daemon PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_RETRIES=5

try() {	# NAME COMMAND...: in a subshell that ends with the first command that fails
	local name=$1
	shift
	# Not as the condition of an if, in which set -e means nothing.
	(set -eE; trap 'echo "line $LINENO: $BASH_COMMAND"' ERR; "$@") >"$work/$name.log" 2>&1
	if [ $? = 0 ]; then
		echo "PASS $name"
		passed=$((passed + 1))
	else
		tail -25 "$work/$name.log" | sed 's/^/    /'
		echo "FAIL $name"
		failed=$((failed + 1))
	fi
}

# empty NAME [OPTION]: an environment, and what is in it.
empty() {
	/usr/bin/python3 -m venv "${@:2}" "$work/$1"
	contents "$1" >"$work/$1.before"
}
contents() { (cd "$work/$1" && find . ! -name '__pycache__' ! -name '*.pyc' | sort); }

# judged NAME KIND XMEMD: installed.py finds it good, served by that program; and it goes again.
judged() {
	local by
	by=$(cd / && XMEM_SOCKET=xmem-wheel-$$-${1// /-} "$work/$1/bin/python" -P -B \
		"$top/bindings/python/tests/installed.py" "$2")
	[ "$by" = "$3" ] || { echo "served by '$by', not '$3'"; return 1; }
	"$work/$1/bin/python" -m pip uninstall -q -y xmem-buffers
	diff "$work/$1.before" <(contents "$1")
}
inside() { echo "$work/$1/lib/python3.11/site-packages/xmem/lib/xmemd"; }

# As the README says it, with setuptools from PyPI, and from a folder with a blank in its name. The
# sources stay as they were.
repository() {
	local before name='a repository'
	before=$(flock build git status --porcelain --ignored -- bindings)
	empty "$name"
	flock build "$work/$name/bin/python" -m pip install -q ./bindings/python
	judged "$name" bundled "$(inside "$name")"
	[ "$before" = "$(flock build git status --porcelain --ignored -- bindings)" ]
}

# With Debian's setuptools and no network, from where no repository is.
sources() {
	local far
	empty sources --system-site-packages
	far=$(mktemp -d)
	cp "$dist"/*.tar.gz "$far"
	(cd "$far" && "$work/sources/bin/pip" install -q --no-index --no-build-isolation ./*.tar.gz)
	rm -r "$far"
	judged sources bundled "$(inside sources)"
}

# A source distribution of a source distribution is equal to it.
sources_again() {
	mkdir "$work/unpacked"
	tar -xzf "$dist"/*.tar.gz -C "$work/unpacked" --strip-components=1
	"$tools/python" -m build --no-isolation --sdist -o "$work/again" "$work/unpacked"
	diff <(tar -tzf "$dist"/*.tar.gz | sort) <(tar -tzf "$work"/again/*.tar.gz | sort)
}

system() {
	# Another PREFIX relinks programs, and other tests may be running those in build/release.
	make -s -j"$(nproc)" B="$work/build" install PREFIX="$work/prefix" CLI=no
	empty system
	PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig XMEM_PYTHON_SYSTEM=1 \
		flock build "$work/system/bin/pip" install -q ./bindings/python
	export LD_LIBRARY_PATH=$work/prefix/lib
	judged system system "$work/prefix/libexec/xmem/xmemd"
}

# refuses WORDS COMMAND...: it fails, and says so.
refuses() {
	local words=$1
	shift
	! "$@" >"$work/said" 2>&1 || { echo "accepted: $*"; return 1; }
	grep -qF -e "$words" "$work/said" || { cat "$work/said"; return 1; }
}

# No make, no compiler, no wheel.
missing() {
	local build=("$tools/python" bindings/python/setup.py build_ext)
	mkdir -p "$work/bin"
	refuses "no 'make': on Debian, apt-get install make" env PATH="$work/bin" "${build[@]}"
	ln -sf "$(command -v make)" "$work/bin/make"
	refuses "no 'cc': on Debian, apt-get install gcc" env PATH="$work/bin" "${build[@]}"
	refuses "no 'no-cc'" env CC=no-cc "${build[@]}"
	empty no-wheel
	refuses 'needs the package wheel' \
		"$work/no-wheel/bin/python" bindings/python/setup.py bdist_wheel
}

# Another ABI of the library, none at all, no headers, a word that means nothing.
refusals() {
	local make=(make XMEM_PYTHON_SYSTEM=1 B="$work/refused" python)
	mkdir -p "$work/pc"
	for version in 0.4.9 0.99.0; do
		printf 'Name: xmem\nDescription: x\nVersion: %s\n' $version >"$work/pc/xmem.pc"
		refuses "has version '$version'" env PKG_CONFIG_LIBDIR="$work/pc" "${make[@]}"
	done
	refuses 'Package xmem was not found' env PKG_CONFIG_LIBDIR="$work" "${make[@]}"
	printf '#!/bin/sh\necho /nowhere\n' >"$work/python"
	chmod +x "$work/python"
	refuses 'apt-get install python3-dev' make PYTHON="$work/python" B="$work/refused" python
	missing
	refuses "XMEM_PYTHON_SYSTEM is 1 or 0, not 'yes'" env XMEM_PYTHON_SYSTEM=yes \
		"$tools/python" bindings/python/setup.py --version
}

# PyPI takes wheels of a named age of the C library. Debian 12 has 2.36, of which the wheel needs
# no function that is newer than 2.34. auditwheel writes that into the name; then pip takes it.
platform() {
	local wheel tag repaired=$work/repaired
	wheel=$(echo "$dist"/*.whl)
	[[ $wheel == */xmem_buffers-*-cp311-abi3-linux_x86_64.whl ]]
	"$tools/auditwheel" show "$wheel"
	tag=$("$tools/auditwheel" show "$wheel" | grep -oE 'manylinux_2_[0-9]+_x86_64' | head -1)
	[ -n "$tag" ] && [ "$(cut -d_ -f3 <<<"$tag")" -le 34 ]
	PATH=$tools:$PATH "$tools/auditwheel" repair -w "$repaired" "$wheel"
	[[ $(echo "$repaired"/*) == */xmem_buffers-*-cp311-abi3-*"$tag"*.whl ]]
	empty platform
	"$work/platform/bin/pip" install -q --no-index "$repaired"/*.whl
	judged platform bundled "$(inside platform)"
}

# Other suites build it, too, and setuptools does so in a folder beside the sources.
flock build make -s python-wheel PYTHON_DIST="$dist" || exit 1
try repository repository
try sources sources
try sources-again sources_again
try system system
try refusals refusals
try platform platform
rm -rf "$work"/*/
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
