#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# address.sh [FOLDER]: checks where xmemd listens and how libxmem starts it, as root, as nobody and
# as a set-user-ID program. The programs are in FOLDER (build/release). The script works in a mount
# namespace with a /run and a /tmp of its own, and in a network namespace, which lists no xmemd of
# others. The last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
if [ "$(id -u)" != 0 ] || ! unshare -mn true 2>/dev/null; then
	echo 'SKIP address: only root can make these namespaces'
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
fi
[ -n "${XMEM_ADDRESS_INSIDE:-}" ] ||
	XMEM_ADDRESS_INSIDE=1 exec unshare -mn --propagation private \
	tests/activation/address.sh "$@"
. tests/activation/same.sh
# The tree may be below /run or /tmp. From here on the script reaches only this folder of it.
cd "${1:-build/release}" || exit 2
mount -t tmpfs tmpfs /run && mount -t tmpfs -o mode=1777 tmpfs /tmp || exit 2
mkdir -m 755 /run/bin.$$ /run/user
cp xmem xmemd activate /run/bin.$$ || exit 2	# the user nobody may have no access to the tree
cd / || exit 2
export XMEM_BACKEND=daemon PATH=/run/bin.$$:$PATH
unset XMEM_SOCKET XMEM_DAEMON XDG_RUNTIME_DIR
skipped=0

# says WHAT WORD COMMAND...: COMMAND fails, and its message has the word
says() {
	local what=$1 word=$2 said
	shift 2
	said=$("$@" 2>&1) && said="success: $said"
	case $said in
	success:*) same "$what" "$said" "an error with '$word'" ;;
	*"$word"*) passed=$((passed + 1)) ;;
	*) same "$what" "$said" "an error with '$word'" ;;
	esac
}

nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

# The daemons of this script, by the number of their user.
daemons() {
	local exe
	for exe in $(find /proc/[0-9]*/exe -maxdepth 0 -lname "/run/bin.$$/xmemd" 2>/dev/null); do
		stat -c %u:%n "${exe%/exe}"
	done | sed 's|/proc/||'
}
kill_daemons() {
	local one
	for one in $(daemons); do
		kill -9 "${one#*:}"
		while [ -e "/proc/${one#*:}" ] &&
			! grep -q '^State:.*Z' "/proc/${one#*:}/status"; do
			:
		done 2>/dev/null
	done
}
trap kill_daemons EXIT
how_many() { daemons | grep -c "^$1:"; }
modes() { stat -c %u:%a "$@" | tr '\n' ' '; }

# ---- which folder

same 'root' "$(xmem backend)" daemon
same "root's folder and socket" "$(modes /run/xmem-0 /run/xmem-0/xmemd)" \
	'0:700 0:700 '
same 'nobody' "$(nobody xmem backend)" daemon
same "nobody's folder and socket" "$(modes /tmp/xmem-65534 /tmp/xmem-65534/xmemd)" \
	'65534:700 65534:700 '
same 'of each user one' "$(how_many 0) $(how_many 65534)" '1 1'
kill_daemons

# Neither logins nor XDG_RUNTIME_DIR move the socket.
nobody xmemd --daemon --idle-ms=-1
same 'nobody, before the login' "$(nobody xmem backend)" daemon
mkdir -m 700 /run/user/65534 /run/runtime
chown 65534 /run/user/65534 /run/runtime
same 'nobody, logged in' "$(XDG_RUNTIME_DIR=/run/user/65534 nobody xmem backend)" daemon
rmdir /run/user/65534
same 'nobody, logged out' "$(XDG_RUNTIME_DIR=/run/user/65534 nobody xmem backend)" daemon
same 'another runtime folder' "$(XDG_RUNTIME_DIR=/run/runtime nobody xmem backend)" daemon
same 'one daemon all the time' "$(how_many 65534)" 1
same 'nothing in the runtime folder' "$(ls -A /run/runtime)" ''
kill_daemons

# Root has made a folder in /run. It counts even if /tmp is another file system.
mkdir -m 700 /run/xmem-65534
chown 65534 /run/xmem-65534
nobody xmemd --daemon --idle-ms=-1
same 'in /run' "$(nobody xmem backend)" daemon
same 'socket in /run' "$(modes /run/xmem-65534/xmemd)" '65534:700 '
# shellcheck disable=SC2016	# the inner shell expands it
private_tmp='mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"'
same 'with a /tmp of its own' "$(unshare -m bash -c "$private_tmp" _ setpriv --reuid=65534 \
	--regid=65534 --clear-groups xmem backend)" daemon
same 'one for both' "$(how_many 65534)" 1
kill_daemons
chmod 755 /run/xmem-65534
says 'an open folder in /run' 'chmod 700' nobody xmem backend
chown 0 /run/xmem-65534
says "root's folder in /run" 'belongs to another user' nobody xmem backend
rm -r /run/xmem-65534

same 'by a path' "$(XMEM_SOCKET=/run/path xmem backend)" daemon
same 'socket at the path' "$(modes /run/path)" '0:700 '
same 'by a name' "$(XMEM_SOCKET=other xmem backend)" daemon
same 'socket of the name' "$(modes /run/xmem-0/other)" '0:700 '
kill_daemons

# For a path in a folder of all users, the daemon serves only its own user.
same 'in the open' "$(XMEM_SOCKET=/tmp/open xmem backend)" daemon
chmod 777 /tmp/open
says 'in the open, to others' 'another user' env XMEM_SOCKET=/tmp/open setpriv --reuid=65534 \
	--regid=65534 --clear-groups xmem backend
same 'in the open, afterwards' "$(XMEM_SOCKET=/tmp/open xmem backend)" daemon
kill_daemons
rm -r /run/xmem-0 /tmp/xmem-65534 /tmp/open*

# ---- root's service manager listens for nobody, in nobody's folder

install -d -m 700 -o 65534 /run/xmem-65534
exec {lines}< <(exec activate -n 2 /run/xmem-65534/xmemd setpriv --reuid=65534 --regid=65534 \
	--clear-groups xmemd --foreground --idle-ms=50)
manager=$!
hear() { IFS= read -r -t 200 said <&"$lines" || said=nothing; }
hear; same 'root listens' "$said" listening
chmod 666 /run/xmem-65534/xmemd
for round in first second; do
	same "$round: by root's socket" "$(XMEM_DAEMON=none nobody xmem backend 2>&1)" daemon
	hear; same "$round: xmemd is started" "${said% *}" started
	hear; same "$round: xmemd has left" "$said" 'ended 0'
done
exec {lines}<&-
wait "$manager"
same "the manager's status" $? 0
rm -r /run/xmem-65534

# ---- root of a user namespace takes no place of root

if nobody unshare -Ur true 2>/dev/null; then
	same 'root of a namespace' "$(nobody unshare -Ur xmem backend)" daemon
	same 'it is in its own place' "$(modes /tmp/xmem-65534/xmemd)" '65534:700 '
	same 'root beside it' "$(xmem backend)" daemon
	same 'and its user outside' "$(nobody xmem backend)" daemon
	same 'both with one daemon' "$(how_many 65534)" 1
	kill_daemons
else
	echo 'SKIP address: user namespaces are not for nobody here'
	skipped=$((skipped + 1))
fi

# ---- one daemon for all network namespaces

same 'root' "$(xmem backend)" daemon
same 'without a network' "$(unshare -n xmem backend)" daemon
same 'one for both' "$(how_many 0)" 1

# ---- files of a killed daemon, and many starts at once

kill_daemons
same 'after a kill' "$(xmem backend)" daemon
kill_daemons
for i in {1..20}; do xmem backend & done >/run/said
wait
same 'twenty at once' "$(sort /run/said | uniq -c | tr -d ' ')" 20daemon
same 'twenty at once, one daemon' "$(how_many 0)" 1
kill_daemons
xmemd --foreground --idle-ms=1
same 'one that leaves cleans up' "$(ls -A /run/xmem-0)" ''

# ---- another world: the second daemon says so and names the first one's address

as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
note='xmemd: note:'
same 'one world: no note' "$(nobody xmemd --foreground --idle-ms=1 2>&1)" ''
nobody xmemd --daemon --idle-ms=-1
apart=$(unshare -m bash -c "$private_tmp" _ "${as_nobody[@]}" xmemd --foreground --idle-ms=1 2>&1)
same 'in another /tmp' "$(grep -c "$note.* listens at /tmp/xmem-65534/xmemd " <<<"$apart")" 1
apart=$(unshare -mn bash -c "$private_tmp" _ "${as_nobody[@]}" xmemd --foreground \
	--idle-ms=1 2>&1)
same 'without the network it is not seen' "$apart" ''
same 'another name is no other world' "$(XMEM_SOCKET=other nobody xmemd --foreground --idle-ms=1 \
	2>&1)" ''
install -d -m 700 -o 65534 /run/xmem-65534
apart=$(nobody xmemd --foreground --idle-ms=1 2>&1)
same 'in /run later' "$(grep -c "$note.* listens at /tmp/xmem-65534/xmemd " <<<"$apart")" 1
kill_daemons
rm -r /run/xmem-65534 /tmp/xmem-65534

# ---- the daemon leaves the cgroup of its starter

# in_group GROUP COMMAND...: runs it in the cgroup; $top is the root of its visible tree
# shellcheck disable=SC2016	# inner shells expand them
enter_top='echo 0 >"$0/cgroup.procs" && exec unshare -mC bash -c "$@"'
# shellcheck disable=SC2016
enter_group='umount /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup &&
	echo 0 >"/sys/fs/cgroup/$0/cgroup.procs" && exec "$@"'
in_group() { bash -c "$enter_top" "$top" "$enter_group" "$@"; }
group_of() { sed -n 's/^0:://p' "/proc/${1#*:}/cgroup"; }
first_pid_ns=4026531836
tree=/sys/fs/cgroup
if [ "$(stat -Lc %i /proc/self/ns/pid)" != $first_pid_ns ]; then
	echo 'SKIP address: in a container xmemd stays in its cgroup'
	skipped=$((skipped + 1))
elif ! mount -t cgroup2 cgroup2 $tree 2>/dev/null || ! mkdir $tree/xmem-test-$$; then
	echo 'SKIP address: no cgroup2 tree can be mounted'
	skipped=$((skipped + 1))
else
	top=$tree/xmem-test-$$
	manager=$top/user@65534.service
	mkdir $top/starter.service $manager $manager/one.service
	chown 65534 $manager $manager/{,one.service/}cgroup.procs
	same 'root in a service' "$(in_group starter.service xmemd --daemon --idle-ms=-1 2>&1)" ''
	same "root's group" "$(group_of "$(daemons)")" /xmem-test-$$/xmemd-0
	echo 1 >$top/starter.service/cgroup.kill
	same 'after the end of the service' "$(XMEM_DAEMON=none xmem backend 2>&1)" daemon
	kill_daemons
	said=$(in_group user@65534.service/one.service "${as_nobody[@]}" \
		xmemd --daemon --idle-ms=-1 2>&1)
	same "below nobody's manager" "$said" ''
	same "the manager's group" "$(group_of "$(daemons)")" \
		/xmem-test-$$/user@65534.service/xmemd-65534
	kill_daemons
	said=$(in_group starter.service "${as_nobody[@]}" xmemd --daemon --idle-ms=-1 2>&1)
	same 'nobody in a service of root' \
		"$(grep -c "$note.* ends with starter.service" <<<"$said")" 1
	same 'it stays there' "$(group_of "$(daemons)")" /xmem-test-$$/starter.service
	kill_daemons
	said=$(in_group starter.service "${as_nobody[@]}" xmemd --foreground --idle-ms=1 2>&1)
	same 'in the foreground it belongs there' "$said" ''
	limit=$((SECONDS + 100))	# a killed process may leave its group after its end is seen
	while [ -d $top ] && [ $SECONDS -lt $limit ]; do
		rmdir $manager/*/ $top/*/ $top 2>/dev/null || sleep 0.02
	done
	[ ! -d $top ]; same 'the groups are gone' $? 0
	umount $tree
fi

# ---- at the end of the container nothing keeps the daemon

# shellcheck disable=SC2016	# the inner shell expands it
said=$(unshare -pf --mount-proc bash -c 'xmemd --daemon --idle-ms=-1
	[ -S /run/xmem-0/xmemd ]' 2>&1)
same 'in a PID namespace' $? 0
same 'it says so' "$(grep -c "$note it ends with this container.* share /run/xmem-0" <<<"$said")" 1
same 'and ends' "$(how_many 0)" 0

# ---- the socket, or its folder, is removed or renamed: the daemon binds anew

# again WHAT COMMAND...: COMMAND takes the address away; afterwards there is a daemon at it. The
# script stops after the first failure, because each waits for long.
lost=
again() {
	local what=$1 limit=$((SECONDS + 100))
	shift
	[ -z "$lost" ] || return
	"$@" 2>/dev/null
	until [ -S /run/xmem-0/xmemd ] || [ $SECONDS -ge $limit ]; do sleep 0.02; done
	[ -S /run/xmem-0/xmemd ] || lost=$what
	same "$what: served" "$(XMEM_DAEMON=none xmem backend 2>&1)" daemon
}
until_state() { until [ "$(cut -d' ' -f3 "/proc/${first#*:}/stat")" = "$1" ]; do sleep 0.02; done; }
# For a while no socket can be bound in /run, and no event says when that is over.
without_inodes() {
	kill -STOP "${first#*:}"; until_state T
	rm "$1"
	mount -o remount,nr_inodes="$(df --output=iused /run | tail -1 | tr -d ' ')" /run
	touch /run/none && lost='an inode was left'
	kill -CONT "${first#*:}"; until_state S
	mount -o remount,nr_inodes=100k /run
}
xmemd --daemon --idle-ms=-1
first=$(daemons)
again 'the socket removed' rm /run/xmem-0/xmemd
same 'the socket removed: its mode' "$(modes /run/xmem-0/xmemd)" '0:700 '
again 'the socket renamed' mv /run/xmem-0/xmemd /run/xmem-0/other
again 'the socket and its lock removed' rm /run/xmem-0/xmemd.lock /run/xmem-0/xmemd
same 'a second one finds the lock' "$(xmemd --foreground 2>&1 | grep -c 'another xmemd')" 1
again 'the folder renamed' mv /run/xmem-0 /run/moved
again 'the folder removed' rm -r /run/xmem-0
again 'no inodes for a while' without_inodes /run/xmem-0/xmemd
same 'there were no inodes' "$lost" ''
same 'by the same daemon' "$(daemons)" "$first"
kill_daemons
rm -r /run/moved

# ---- a folder that is not its user's own

rm -rf /tmp/xmem-65534
mkdir -m 700 /tmp/xmem-65534 && chown 1 /tmp/xmem-65534
says "another user's folder" '/tmp/xmem-65534' nobody xmem backend
says "another user's folder: what to do" 'XMEM_SOCKET' nobody xmem backend
same 'around it' "$(XMEM_SOCKET=/run/runtime/socket nobody xmem backend)" daemon
rmdir /tmp/xmem-65534
nobody mkdir -m 700 /run/runtime/real && nobody ln -s /run/runtime/real /tmp/xmem-65534
says 'a link' 'is no folder' nobody xmem backend
says 'a link: xmemd' 'is no folder' nobody xmemd --foreground --idle-ms=1
rm /tmp/xmem-65534
nobody mkdir -m 755 /tmp/xmem-65534
says 'an open folder' 'chmod 700' nobody xmem backend
rmdir /tmp/xmem-65534
kill_daemons

# ---- no place for a socket: the message says which, and why

mkdir -m 755 /run/read-only && mount -t tmpfs -o ro tmpfs /run/read-only
says 'no such folder' '/run/none: No such file' env XMEM_SOCKET=/run/none/socket xmem backend
says 'a read-only folder' '/run/read-only: Read-only file system' \
	env XMEM_SOCKET=/run/read-only/socket xmem backend
says 'what to do' 'XMEM_SOCKET' env XMEM_SOCKET=/run/read-only/socket xmem backend
says "root's folder" "/run/bin.$$: Permission denied" env XMEM_SOCKET="/run/bin.$$/socket" \
	setpriv --reuid=65534 --regid=65534 --clear-groups xmem backend
touch /run/file
says 'a file' '/run/file is no socket' env XMEM_SOCKET=/run/file xmem backend
says 'a file as a folder' '/run/file, in which' env XMEM_SOCKET=/run/file/socket xmem backend
same 'the file stays' "$(stat -c %F /run/file)" 'regular empty file'
umount /run/read-only
rm -r /run/read-only /run/file

# ---- the starter's limits

says 'no time' 'CPU time' bash -c 'ulimit -t 100; exec xmemd --foreground --idle-ms=1'
says 'no descriptors' 'open files' bash -c 'ulimit -n 64; exec xmemd --foreground --idle-ms=1'
says 'small files' 'size of files' bash -c 'ulimit -f 4096; exec xmemd --foreground --idle-ms=1'
says 'the library says it' 'hard limits' bash -c 'ulimit -t 100; exec xmem backend'
same 'nobody serves then' "$(how_many 0)" 0
same 'soft limits do no harm' "$(ulimit -St 1 -Sf 1; xmem backend)" daemon
kill_daemons

# ---- without /proc a program does not know its own path

# shellcheck disable=SC2016	# the inner shell expands them
says 'without /proc' 'cannot be found without /proc' \
	unshare -m bash -c 'mount -t tmpfs none /proc && exec "$@"' _ "/run/bin.$$/xmem" backend

# ---- a program with more rights than its caller starts no program of its caller

mkdir -m 777 /run/trap /run/trap/sub
cat >/run/trap/xmemd <<'SH'
#!/bin/bash -p
echo "$EUID" >>/run/trap/ran
exit 1
SH
chmod 755 /run/trap/xmemd
cp /run/bin.$$/xmem /run/trap/xmem
touch /run/trap/ran
chmod 666 /run/trap/ran
chmod 4755 /run/trap/xmem
ln /run/trap/xmem /run/trap/sub/xmem
cp /run/trap/xmemd /run/trap/sub/xmemd
if [ "$(findmnt -no OPTIONS -T /run/trap | grep -cw nosuid)" = 1 ]; then
	echo 'SKIP address: no set-user-ID programs here'
	skipped=$((skipped + 1))
else
	for argv in ./xmem /run/trap/xmem sub/xmem xmem ''; do
		(cd /run/trap && XMEM_DAEMON=/run/trap/xmemd XMEM_SOCKET=/run/trap/socket \
			nobody bash -c '(exec -a "$0" ./xmem backend)
				exec -a "$0" sub/xmem backend' "$argv") >/dev/null 2>&1
	done
	same 'what a set-user-ID program has run' "$(cat /run/trap/ran)" ''
	says 'a set-user-ID program without xmemd' 'with more rights than its caller' \
		nobody /run/trap/xmem backend
	same "and not at its caller's address" "$(ls /run/trap/socket 2>&1 | grep -c cannot)" 1
	(cd /run/trap && nobody ./xmemd)
	same 'the trap works' "$(cat /run/trap/ran)" 65534
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
