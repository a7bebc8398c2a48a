#!/bin/bash
# SPDX-License-Identifier: MIT
# first_time.sh demo|test|install|python: in a bare tree (see tree.sh), runs the README's commands
# for the first time on this machine, and judges them. Prints PASS or FAIL for each check. "test"
# leaves out long suites. Of the suites in the virtual machine it keeps the shortest, because that
# needs everything that the set-up and the builds prepare for them: headers, a kernel, the module.
# "install" puts xmem into /usr/local, and compiles and runs the README's two programs there.
# "python" runs the commands of bindings/python/README.md.
set -uo pipefail

[ "${XMEM_BARE:-}" = 1 ] || { echo "$0: only for tests/bare/tree.sh" >&2; exit 2; }
failed=0

# verdict NAME STATUS
verdict() {
	if [ "$2" = 0 ]; then
		echo "PASS $1"
	else
		echo "FAIL $1"
		failed=1
	fi
}

# The steps that the README leaves to the reader; .ci/run takes them as well.
install_make() {
	! command -v make || return 1
	apt-get update -q >/tmp/update.log 2>&1 &&
		apt-get install -y -q --no-install-recommends make >/tmp/install.log 2>&1 && return
	cat /tmp/update.log /tmp/install.log
	return 1
}

# Lists the files of the clone, except built files.
files() {
	find . \( -path ./build -o -path ./.git \) -prune -o -type f -exec sha256sum {} + | sort
}

demo() {
	make demo 2>&1 | tee /tmp/demo.log
	verdict 'make demo ends well' "${PIPESTATUS[0]}"
	tail -1 /tmp/demo.log | grep -qx 'demo: backend=daemon .* corrupt=0 leaked=0'
	verdict 'make demo corrupts and leaks nothing' $?
}

# Short suites that together need all that the set-up installs: compilers, the kernel's headers,
# DKMS, valgrind, a virtual machine. The other suites need nothing more.
FIRST_TESTS='dkms pure-core layers version api readme-example environment install
	instructions unit examples random-requests'
FIRST_TESTS=${FIRST_TESTS//[$'\n\t']/ }

# The list of suites is made before the set-up, because it must not depend on installed programs.
run_tests() {
	tests/run.sh -l >/tmp/before
	make test TESTS="$FIRST_TESTS" 2>&1 | tee /tmp/test.log
	verdict 'make test ends well' "${PIPESTATUS[0]}"
	tail -1 /tmp/test.log | grep -qE '^[0-9]{3,} passed, 0 failed, [0-9]+ skipped$'
	verdict 'make test counts hundreds of passes and no failure' $?
	tests/run.sh -l | diff -u /tmp/before -
	verdict 'tests/run.sh lists the same suites before the set-up and after it' $?
	module=$(make -s kmod-path) && [ "$(modinfo -F name "$module")" = xmem ]
	verdict 'make -s kmod-path names the module' $?
}

# compile NAME: compiles it by the line that the README shows.
compile() {
	local line
	line=$(grep -oE '`cc -o subscriber [^`]*`' README.md | tr -d '`')
	cp "examples/$1.c" /tmp && (cd /tmp && eval "${line//subscriber/$1}")
}

# One frame of the README's publisher arrives at its subscriber.
use_programs() {
	local publisher arrives
	timeout 60 /tmp/publisher </dev/zero &
	publisher=$!
	timeout 60 stdbuf -oL /tmp/subscriber | grep -m 1 ' bytes at '
	arrives=${PIPESTATUS[1]}	# SIGPIPE or the timeout ends the subscriber
	kill "$publisher"
	wait "$publisher"
	return "$arrives"
}

install_it() {
	local program
	# The README does not install the packages that a user's own program needs.
	scripts/needs.sh build && apt-get install -y -q --no-install-recommends pkg-config \
		>>/tmp/install.log 2>&1
	verdict 'the compiler and pkg-config can be installed' $?
	make install
	verdict 'make install ends well' $?
	[ -s /usr/local/share/man/man3/xmem_publish.3 ] && [ -s /usr/local/share/man/man7/xmem.7 ]
	verdict 'the manual pages of functions and topics are installed' $?
	for program in subscriber publisher; do
		compile $program
		verdict "$program compiles as README.md says" $?
	done
	use_programs
	verdict 'the programs run with what is installed' $?
	[ "$(readlink -f "$(command -v xmem)")" = /usr/local/bin/xmem ] && xmem list
	verdict 'the tool runs with what is installed' $?
	make uninstall
	verdict 'make uninstall ends well' $?
	! ldconfig -p | grep libxmem
	verdict "the linker's cache forgets what is uninstalled" $?
}

# The packages that Python's README names, and its command, with another path.
install_python() {
	local page=bindings/python/README.md packages line
	packages=$(tr '\n' ' ' <$page | grep -oE 'bare Debian 12 that needs [^(]*' |
		grep -oE '`[^`]*`' | tr -d '`')
	[ "$(wc -w <<<"$packages")" -ge 3 ]
	verdict 'the README of Python says which packages it needs' $?
	# shellcheck disable=SC2086
	apt-get install -y -q --no-install-recommends $packages >>/tmp/install.log 2>&1
	verdict 'what it needs can be installed' $?
	line=$(sed -n 's/^    \(python3 -m venv env .*\)/\1/p' $page | sed 's|\benv\b|/tmp/env|g')
	[ -n "$line" ] && eval "$line"
	verdict 'pip installs the package from the clone' $?
	served=$(cd / && /tmp/env/bin/python -B \
		"$OLDPWD/bindings/python/tests/installed.py" bundled)
	verdict 'it is whole, and a frame goes round' $?
	[ "$served" = "$(echo /tmp/env/lib/python3.*/site-packages/xmem/lib/xmemd)" ]
	verdict "its own xmemd serves it: $served" $?
}

files >/tmp/files
install_make
verdict 'a bare tree has no make, and it can be installed' $?
case ${1:-} in
demo) demo ;;
test) run_tests ;;
install) install_it ;;
python) install_python ;;
*) echo "usage: $0 demo|test|install|python" >&2; exit 2 ;;
esac
files | diff /tmp/files -
verdict 'nothing is written beside build/' $?
exit $failed
