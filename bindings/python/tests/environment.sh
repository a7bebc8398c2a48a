#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# environment.sh debian|numpy2|torch2|torch-RELEASE: see that this environment of ../requirements is
# there, with the wheel of these sources installed. Its folder is printed, and nothing else on that
# output.
#
#   debian   Debian's Python with its PyTorch 1.13 and numpy 1.24
#   numpy2   numpy 2 and no PyTorch; also numba-cuda and cuda.core, which are those of tests/judges
#   torch2   PyTorch 2 and numpy 2 as PyPI has them, 5.5 GB; in XMEM_TORCH_VENV, see
#            docs/environment.md
#   torch-2.5  the newest PyTorch 2.5 of PyPI, 2 GB: stand_ins.sh stands in for NVIDIA's libraries
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec 3>&1 1>&2

name=${1:-}
options=()
venv=build/python/$name
wanted=bindings/python/requirements/$name.txt
case $name in
debian) options=(--system-site-packages) ;;
numpy2) ;;
torch2)
	venv=${XMEM_TORCH_VENV:-$venv}
	[ -e "$venv/bin/python" ] ||
		echo "environment.sh: PyTorch 2 comes from PyPI into $venv, where it takes 5.5 GB"
	;;
torch-[1-9]*.[0-9]*)
	release=${name#torch-}
	numpy=numpy2
	case $release in 2.[012] | 2.[012].*) numpy=numpy1 ;; esac
	case $release in *.*.*) ;; *) release+='.*' ;; esac
	wanted=$venv.txt
	mkdir -p build/python
	printf -- '-r ../../bindings/python/requirements/%s.txt\n' $numpy torch >"$wanted"
	echo "torch==$release" >>"$wanted"
	;;
*)
	echo "environment.sh: no environment is called '$name': debian, numpy2, torch2, torch-2.5"
	exit 2
	;;
esac
scripts/venv.sh "$venv" "$wanted" ${options[@]+"${options[@]}"}
case $name in torch-*) bindings/python/tests/stand_ins.sh "$venv" ;; esac

# The judges have 800 MB that nobody wants twice, with the same numpy. Its own packages go first.
if [ "$name" = numpy2 ]; then
	scripts/venv.sh build/judges tests/judges/requirements.txt
	for site in "$PWD"/build/judges/lib/python3*/site-packages; do
		echo "import site; site.addsitedir('$site')"
	done >"$(echo "$venv"/lib/python3*/site-packages)/judges.pth"
fi

# Another suite may want it just now, and setuptools builds in a folder beside the sources.
# shellcheck disable=SC2016
flock build bash -c 'make -s python-wheel && "$1/bin/python" -m pip install -q --no-index \
	--no-deps --disable-pip-version-check --force-reinstall build/python/dist/*.whl' _ "$venv"
realpath "$venv" >&3
