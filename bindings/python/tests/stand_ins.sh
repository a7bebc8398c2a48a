#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# stand_ins.sh VENV: make PyPI's PyTorch in VENV importable without NVIDIA's libraries (4 GB), which
# only a GPU needs. Its folder lib gets a library of each missing name, with all functions that
# PyTorch's own libraries want and do not define. Calling one prints its name and aborts. The CUDA
# runtime is the real one (4 MB), because PyTorch calls it when it is imported.
#
# A stamp beside them tells a complete set. They stay valid as long as VENV is what it is.
set -euo pipefail

venv=$(realpath "${1:?usage: stand_ins.sh VENV}")
site=$(echo "$venv"/lib/python3*/site-packages)
lib=$site/torch/lib
stamp=$lib/stand-ins
[ ! -e "$stamp" ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The libraries of NVIDIA that PyTorch is linked with and does not bring, one per line, without the
# driver: PyTorch looks for that when it first looks for a GPU.
lacking() {
	local name
	while read -r name; do
		[ -e "$lib/$name" ] || echo "$name"
	done < <(find "$lib" -maxdepth 1 -name '*.so*' -exec readelf -d {} + |
		sed -n 's/.*(NEEDED).*\[\(lib\(cu\|nccl\|nv\).*\)\]$/\1/p' | sort -u |
		grep -vx 'libcuda\.so\.1')
}

# symbols defined|undefined FILE...: names without their versions.
symbols() {
	nm -D "--$1-only" "${@:2}" 2>/dev/null | awk 'NF > 1 { print $NF }' |
		sed 's/@.*//' | sort -u
}

runtime=$(lacking | grep '^libcudart\.so\.' || true)
if [ -n "$runtime" ]; then
	major=$(sed 's/^libcudart\.so\.\([0-9]*\).*/\1/' <<<"$runtime")
	package=nvidia-cuda-runtime
	[ "$major" -ge 13 ] || package+=-cu$major
	"$venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --no-cache-dir \
		"$package==$major.*"
	ln -sf "$(find "$site/nvidia" -name "$runtime")" "$lib/$runtime"
fi

# shellcheck disable=SC2046 # the names have no blanks
symbols defined $(find "$lib" -maxdepth 1 -name '*.so*') >"$work/has"
# shellcheck disable=SC2046
symbols undefined $(find "$lib" -maxdepth 1 -name '*.so*') |
	grep -E '^(cu|nccl|nv|Nv|magma)[A-Za-z0-9_]*$' | comm -23 - "$work/has" >"$work/wanted"
{
	echo '#include <stdio.h>'
	echo '#include <stdlib.h>'
	echo '#define STAND_IN(f) void f(void) { puts(#f ": not on this machine"); abort(); }'
	sed 's/.*/STAND_IN(&)/' "$work/wanted"
} >"$work/stand-ins.c"
gcc -w -fno-builtin -fPIC -c -o "$work/stand-ins.o" "$work/stand-ins.c"
lacking | while read -r name; do
	gcc -shared -Wl,-soname,"$name" -o "$lib/$name" "$work/stand-ins.o"
done
cp "$work/wanted" "$stamp"
