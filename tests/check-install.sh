#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# make install into a fresh DESTDIR: what is there, and does a program build against it and run?
set -euo pipefail
cd "$(dirname "$0")/.."
dest=$PWD/build/install-check
rm -rf "$dest"
before=$(git status --porcelain)
make install DESTDIR="$dest" PREFIX=/usr >/dev/null
for file in lib/libxmem.so.0 lib/libxmem.a include/xmem.h include/xmem/uapi.h \
	lib/pkgconfig/xmem.pc libexec/xmem/xmemd bin/xmem; do
	[ -e "$dest/usr/$file" ] || { echo "FAIL $file is not installed"; exit 1; }
done
export PKG_CONFIG_PATH=$dest/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dest
cat > "$dest/try.c" <<'C'
#include <xmem.h>
int main(void)
{
	struct xmem_pool_options writer = { .size = sizeof(writer), .flags = XMEM_OPEN_WRITER };
	struct xmem_pool *pool = xmem_pool_open(NULL, &writer);
	struct xmem_buffer *buffer;
	int bad = !pool || xmem_preallocate(pool, 2, 100) ||
		  !(buffer = xmem_acquire(pool, 100, 0)) || xmem_publish(buffer, NULL, NULL);
	xmem_pool_close(pool);
	return bad;
}
C
# shellcheck disable=SC2046
gcc "$dest/try.c" -o "$dest/try" $(pkg-config --cflags --libs xmem)
LD_LIBRARY_PATH=$dest/usr/lib XMEM_DAEMON=$dest/usr/libexec/xmem/xmemd \
	XMEM_SOCKET=xmem-install-check "$dest/try"
[ "$before" = "$(git status --porcelain)" ] ||
	{ echo 'FAIL make install changed the tree:'; git status --porcelain; exit 1; }
