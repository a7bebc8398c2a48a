#!/bin/bash
# SPDX-License-Identifier: MIT
# first_time.sh demo|test|packages|install|python: in a bare tree (see tree.sh), runs the README's
# commands for the first time on this machine. Prints PASS or FAIL for each check. "test"
# leaves out long suites. Of the suites in the virtual machine it keeps the shortest, because that
# needs everything that the set-up and the builds prepare for them: headers, a kernel, the module.
# "install" puts xmem into /usr/local, and compiles and runs the README's two programs there.
# "packages" builds the Debian packages, installs and uses them, and purges them again.
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

# ---- Debian packages ----

# Names all files and folders that a package could leave. The other files are dpkg's own, logs and
# caches of programs that the installation calls, and the key by which DKMS signs all its modules.
tree_has() {
	find / -xdev \( -path /root -o -path /tmp -o -path /proc -o -path /sys -o -path /dev \
		-o -path /run -o -path /var/log -o -path /var/cache -o -path /var/lib/apt \
		-o -path /var/lib/dpkg -o -path '/var/lib/dkms/mok.*' \) \
		-prune -o -printf '%p %y\n' | sort
}

# Prints the kernel whose headers are installed; dkms itself chooses the running one.
headers_kernel() { basename "$(dirname "$(ls -d /lib/modules/*/build)")"; }

# Debian's packages on which ours depend come first, because they stay. So do the lists of modules,
# which a machine with a kernel has.
install_others() {
	apt-get install -s ../*xmem*.deb >/tmp/plan || return
	# shellcheck disable=SC2046
	apt-get install --yes "linux-headers-$(dpkg --print-architecture)" \
		$(awk '$1 == "Inst" && $2 !~ /xmem/ { print $2 }' /tmp/plan) &&
		/sbin/depmod "$(headers_kernel)"
}

dkms_builds() {
	local kernel
	kernel=$(headers_kernel)
	dkms install "xmem/$version" -k "$kernel" &&
		dkms status "xmem/$version" -k "$kernel" | grep -q ': installed' &&
		[ "$(modinfo -F name "$(find "/lib/modules/$kernel" -name 'xmem.ko*')")" = xmem ]
}

# One xmemd of the package serves, started by hand: it returns when clients can connect.
daemon_by_hand() {
	/usr/libexec/xmem/xmemd --daemon --idle-ms=-1 && xmem list && served_by_package
}

# served_by_package: prints the processes of the package's xmemd, and there is one.
served_by_package() {
	local process found=()
	for process in /proc/[0-9]*; do
		[ "$(readlink "$process/exe")" != /usr/libexec/xmem/xmemd ] ||
			found+=("${process#/proc/}")
	done
	[ ${#found[@]} = 1 ] && echo "${found[0]}"
}

python_works() {
	(cd / && python3 -c '
import xmem
with xmem.BufferPool("python", writer=True) as pool, xmem.BufferPool("python") as reader:
    guard = pool.acquire_cpu(4096)
    memoryview(guard).cast("B")[:5] = b"frame"
    with reader.get(guard.publish(keep=True)) as held:
        print(bytes(memoryview(held).cast("B")[:5]).decode(), xmem.__version__)
    guard.release()
' | grep -qx "frame $version")
}

use_packages() {
	local program
	for program in subscriber publisher; do
		compile $program
		verdict "$program compiles against libxmem-dev" $?
		readelf -d /tmp/$program | grep -q 'NEEDED.*\[libxmem\.so\.'
		verdict "$program needs the shared library" $?
	done
	daemon_by_hand
	verdict 'the packaged xmemd runs, and the packaged tool lists its pools' $?
	use_programs
	verdict 'the programs run with the packages' $?
	python_works
	verdict 'a frame goes round in the Python of the package' $?
	kill "$(served_by_package)"
	verdict 'all of them had one daemon' $?
	dkms_builds
	verdict 'DKMS builds the module of the package' $?
	[ -n "$(getent group xmem)" ]
	verdict 'there is a group for the users of the module' $?
}

# The README's commands. The group stays, as groups do in Debian, because files may belong to it.
packages() {
	local build install version packages pattern='apt-get update .*\|dpkg-buildpackage .*'
	mapfile -t build < <(sed -n "s/^    \($pattern\)/\1/p" README.md)
	install=$(sed -n 's/^    \(apt-get install .*\.deb\)$/\1/p' README.md)
	version=$(sed -n 's/^VERSION *:= *//p' Makefile)
	[ ${#build[@]} = 2 ] && [ -n "$install" ]
	verdict 'the README says how packages are built and installed' $?
	eval "${build[0]}" >/tmp/install.log 2>&1
	verdict 'what the build needs can be installed' $?
	eval "${build[1]}"
	verdict 'the packages are built' $?
	apt-get install --yes --no-install-recommends lintian >>/tmp/install.log 2>&1 &&
		lintian --allow-root --fail-on error,warning ../xmem_*.changes
	verdict 'lintian accepts the packages' $?
	install_others >>/tmp/install.log 2>&1
	verdict 'what the packages need can be installed' $?
	tree_has >/tmp/before
	eval "$install"
	verdict 'the packages are installed' $?
	use_packages
	mapfile -t packages < <(dpkg-query -W -f '${Package}\n' | grep xmem)
	[ ${#packages[@]} -ge 6 ] && apt-get purge --yes "${packages[@]}"
	verdict 'the packages are purged' $?
	tree_has | diff /tmp/before -
	verdict 'they leave no file' $?
	debian/rules clean
	verdict 'debian/rules clean ends well' $?
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
packages) packages ;;
install) install_it ;;
python) install_python ;;
*) echo "usage: $0 demo|test|packages|install|python" >&2; exit 2 ;;
esac
files | diff /tmp/files -
verdict 'nothing is written beside build/' $?
exit $failed
