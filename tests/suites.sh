# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154
# The list of test suites; run.sh sources this. docs/testing.md says which faults only one of the
# suites finds. A row is a call:
#
#   suite|check LEVEL GROUP NAME SECONDS NEEDS COMMAND
#
# The last line that a suite prints gives its counts: "N passed, N failed, N skipped". A check has
# only an exit status, and counts as one test. Both print "SKIP name: why" for each test that they
# leave out.
#
# LEVEL    both:  `make test` and `make test-all` run this suite.
#          long:  only `make test-all` runs it.
#          short: only `make test` runs it. A long suite contains all of its tests.
#          name:  neither runs it, because a larger suite contains its tests. Name it to run it.
# GROUP    a word that names several suites together; it leaves out the levels short and name
# SECONDS  how long the suite usually takes on two processors while others run. run.sh ends a suite
#          after ten times that, but not before SUITE_LIMIT.
# NEEDS    targets of make, which run.sh builds first. FLAVOUR is release, test, asan or tsan.
#          FLAVOUR/PROGRAM means the file build/FLAVOUR/PROGRAM. FLAVOUR:TARGET means a target of
#          make. kmod:kmod-check is the module, built with W=1 and sparse. apt:PURPOSE asks
#          for Debian packages that not all suites need (scripts/needs.sh).
#
# run.sh reads this list before it installs packages, so a row must not look for a program. A
# command that looks for one is in single quotes, and looks when the suite runs.

daemon='XMEM_BACKEND=daemon'

# ---- files in git, and files that the builds make ----

check both build planting 5 '' 'tests/check-planting.sh && tests/check-planting.sh --selftest'
suite both build versions 1 '' 'tests/check-kernels.sh --static'
check both build pure-core 1 'release:all' tests/check-pure.sh
check both build layers 15 'kmod:kmod-check' tests/check-layers.sh
check both build fakecuda-readme 1 '' tests/fakecuda/check-readme.sh
check both build cuda-example 1 '' tests/cuda/check-example.sh
check both build width 1 '' tests/check-width.sh
check both build prose 1 '' tests/check-prose.sh
check both build version 1 '' tests/check-version.sh
check both build api 1 'release:all' tests/check-api.sh
check both build abi 5 '' 'tests/check-abi.sh && tests/check-abi.sh --plants'
check both build bindings-api 10 '' tests/check-bindings.sh
check both build bindings-reach 1 '' \
	'bindings/reach.py bindings/python && bindings/reach.py bindings/ocaml'
check short build headers 20 '' 'tests/check-headers.sh c11 c++17'
check long build headers-all 100 '' tests/check-headers.sh
suite both build docs 40 'release:all release:python release/cli-scene apt:docs' tests/docs/run.sh
check both build readme-example 5 'release:all' tests/check-readme.sh
check both build environment 2 'release:all' tests/check-environment.sh
check long build dkms 30 '' tests/check-dkms.sh
check both build packages 60 apt:packages tests/check-packages.sh
check long build install 30 'release:all' tests/check-install.sh
check long build instructions 30 'release:all release/count-instructions release:fakecuda' \
	'make bench-instructions'

# ---- programs on this machine, with the daemon ----

for name in unit unit-wide; do
	wide=
	[ $name = unit ] || wide='UNIT_WIDE=1 '
	suite both native $name 30 test/unit "${wide}build/test/unit"
done
suite both native unit-asan 60 asan/unit build/asan/unit
suite long native unit-tsan 60 tsan/unit build/tsan/unit

# The tests of conform wait most of the time, so they are split into four suites.
for i in 1 2 3 4; do
	suite both native conform-$i 35 test/conform "$daemon build/test/conform --shard $i/4"
	suite both native conform-asan-$i 60 asan/conform "$daemon build/asan/conform --shard $i/4"
	suite long native conform-wide-$i 35 test/conform \
		"XMEMD_WIDE=1 $daemon build/test/conform --shard $i/4"
	suite long native conform-tsan-$i 120 tsan/conform "$daemon build/tsan/conform --shard $i/4"
done
suite both native cuda-asan 60 asan/cuda "$daemon build/asan/cuda"
suite long native cuda 30 test/cuda "$daemon build/test/cuda"
suite long native cuda-tsan 60 tsan/cuda "XMEM_TEST_SCALE=25 $daemon build/tsan/cuda"
suite long native cuda-as-real 30 test/cuda tests/cuda/as-real.sh
suite both native cuda-hip 20 'test/cuda test/xmem' tests/cuda/hip.sh
suite long native cuda-settings 30 test/cuda tests/cuda/settings.sh
suite long native cuda-toolkit 5 'test:all test:fakecuda' tests/cuda/toolkit.sh
suite both native cpp-17 15 test/cpp-17 "$daemon build/test/cpp-17"
suite long native cpp-20 15 test/cpp-20 "$daemon build/test/cpp-20"
suite long native cpp-asan 30 asan/cpp-17 "$daemon build/asan/cpp-17"
suite both native fakecuda 15 test/fakecuda-test build/test/fakecuda-test
suite long native fakecuda-asan 30 asan/fakecuda-test build/asan/fakecuda-test
suite both native fakecuda-streams 5 test/fakecuda-streams build/test/fakecuda-streams
suite long native fakecuda-streams-asan 10 asan/fakecuda-streams build/asan/fakecuda-streams
suite long native fakecuda-streams-tsan 20 tsan/fakecuda-streams build/tsan/fakecuda-streams
suite short native fuzz-corpus 5 release:fuzz 'tests/fuzz/run.sh -r'
suite long native fuzz 25 release:fuzz tests/fuzz/run.sh
suite both native activation 5 'release:all release/activate' 'make -s check-activation'
suite both native address 5 'release:all release/activate' 'make -s check-address'
suite both native extensions 2 release/extensions 'make -s check-extensions'
suite both native examples 30 'release:examples release:demo-programs release:fakecuda' \
	"$daemon tests/examples.sh"
suite both native cli 20 release:cli-tests "$daemon tests/cli/run.sh"
suite both native cli-flow 30 'release:cli-tests release:demo-programs' \
	"$daemon tests/cli/flow.sh"
suite both native cli-recordings 10 asan/cli-recordings build/asan/cli-recordings
suite both native completion 5 'release:cli-tests apt:packages' tests/cli/completion.sh
suite long native cuda-core 60 test:fakecuda 'tests/judges/run.sh cuda-core'
suite long native numba-cuda 60 test:fakecuda 'tests/judges/run.sh numba-cuda'

# ---- counts and strings in kernels, on the CPU: gcc, and clang with a 2 in the name ----

for name in device device-2-tsan device-asan device-2 device-tsan device-2-asan; do
	scale=
	[[ $name != *san ]] || scale='XMEM_TEST_SCALE=2 '
	level=both
	[[ $name != device-2 && $name != device-tsan && $name != device-2-asan ]] || level=long
	suite $level device $name 10 test/$name "${scale}build/test/$name"
done
check both device device-doc 10 '' tests/device/check-doc.sh
suite both device device-ptx 10 '' tests/device/ptx.py
suite long device device-registers 30 '' 'tests/device/ptx.py registers'
suite both device device-gpu 5 test/device-gpu build/test/device-gpu
suite long device device-document 10 '' tests/device/document.sh

check both demo demo-daemon 15 'release:demo-programs' 'make demo BACKEND=daemon'
check both demo demo-gpu 15 'release:demo-programs release:fakecuda' 'make demo GPU=1'
check long demo demo-ocaml 30 'release:demo-programs release:fakecuda apt:ocaml' \
	'make demo OCAML=1 BACKEND=daemon && make demo OCAML=1 GPU=1'
check long demo demo-kernel 40 'release:demo-programs' 'make demo BACKEND=kernel'
suite both demo demo-bad-input 15 'release:demo-programs' tests/demo-bad-input.sh

# ---- Python ----

python='release:python test:fakecuda apt:python-tests'
suite both python python 150 "$python" \
	'bindings/python/tests/run.sh debian --ignore test_strings.py'
suite both device device-strings 40 "$python test:strings" \
	'bindings/python/tests/run.sh debian test_strings.py'
# numpy 2, and the libraries that read contents through it. The other tests use numpy 1.
suite long python python-numpy2 60 "$python" 'bindings/python/tests/run.sh numpy2 test_numpy.py \
	test_arrow.py test_dlpack.py test_dlpack_cuda.py test_cuda.py test_cuda_dlpack.py \
	test_cuda_numba.py test_numba_strings.py test_onnx.py test_docs.py'
suite long python python-asan 200 "$python" bindings/python/tests/asan.sh
suite long python python-free 10 "$python" bindings/python/tests/freethreaded.sh
check long python python-types 60 "$python" bindings/python/tests/types.sh
suite long python python-wheel 60 "$python" bindings/python/tests/wheel.sh

# ---- strings in kernels ----

# It needs numba-cuda and compilers for GPUs from PyPI, 820 MB, which the judges use as well.
suite long device device-numba 150 '' tests/device/numba.sh

# ---- OCaml ----

ocaml='test/ocaml-tests test:fakecuda apt:ocaml'
suite both ocaml ocaml 15 "$ocaml" 'bindings/ocaml/test/run.sh build/test/ocaml-tests'
# Ten times as many hand-overs; and OCaml 5 of Debian 13.
suite long ocaml ocaml-long 60 "$ocaml" \
	'XMEM_TEST_SCALE=1000 bindings/ocaml/test/run.sh build/test/ocaml-tests slots'
check long ocaml ocaml-install 30 "$ocaml" bindings/ocaml/test/install.sh
suite long ocaml ocaml-valgrind 60 "$ocaml" \
	"bindings/ocaml/test/run.sh -v build/test/ocaml-tests 'handles|views|calls'"
suite long ocaml ocaml-5 300 "$ocaml" 'bindings/ocaml/test/run.sh -5'

# ---- GStreamer ----

gstreamer='test/gstreamer-tests test:gstreamer apt:gstreamer-tests'
suite both gstreamer gstreamer 30 "$gstreamer" \
	'bindings/gstreamer/tests/run.sh build/test/gstreamer-tests'
suite long gstreamer gstreamer-asan 30 'asan/gstreamer-tests apt:gstreamer-tests' \
	'ASAN_OPTIONS=detect_leaks=0 bindings/gstreamer/tests/run.sh -p build/asan/gstreamer-tests'

# ---- models, and planted bugs ----

guests='release:kernel-tests test/conform test/cuda'

suite short model model-changed 30 '' 'tests/model/run.sh --changed'
suite long model model 200 '' tests/model/run.sh
suite short mutants mutants-changed 100 'apt:ocaml apt:packages apt:gstreamer-tests test/conform \
	test/cuda test/unit' 'tests/check-mutants.sh --changed'
suite long mutants mutants 400 'apt:ocaml apt:packages apt:gstreamer-tests test/conform test/cuda \
	test/unit' \
	tests/check-mutants.sh
suite long kernel-mutants kernel-mutants 7200 "$guests" tests/check-mutants-kernel.sh

# ---- the module, in a virtual machine ----

# guest LEVEL NAME SECONDS NEEDS SUITE...: suites of the table in tests/kernel/suites.sh, which
# boots once for each type of machine that they need
guest() {
	local words scale=''
	words=$(printf " '%s'" "${@:5}")
	[ "$1" != short ] || scale='XMEM_TEST_SCALE=4 '	# percent of the loops, instead of 15
	suite "$1" vm "$2" "$3" "$4" "${scale}tests/kernel/suites.sh$words"
}
gate=(conform-kernel cuda-kernel strangers exhaust hoards reaped gpu-payloads)
others=(cpp-kernel random-requests traces examples-kernel cli-kernel flow-kernel meanwhile watched
	cheap ends
	folders)
guest short vm-6.1 200 'kmod:kmod-check release:kernel-tests test/conform test/cuda' "${gate[@]}"
guest long vm-6.1-all 900 "kmod:kmod-check release:kernel-tests release:examples \
	release:demo-programs release:cli-tests test/conform test/cuda test/cpp-17" \
	"${gate[@]}" "${others[@]}"
for name in "${gate[@]}" "${others[@]}"; do
	guest name "$name" 100 'kmod:kmod-check release:kernel-tests' "$name"
done
suite long vm vm-6.12 400 "$guests" "tests/kernel/suites.sh --boot debian-6.12 --on plain \
	conform-kernel gpu-payloads 'strangers P9_a_stop_finds_all_threads' \
	'cheap M5_collects_meet_an_end'"
suite long vm vm-harness 60 '' 'tests/vm/selftest.sh debian-6.1'
suite long vm kernel-fuzz 90 'release:kernel-tests' 'tests/kernel/fuzz.sh debian-6.1 60'

suite long kasan conform-kasan 1500 'test/conform' 'tests/vm/conform-other.sh kasan'
suite long kasan alloc-failures 300 release:kernel-tests \
	'VM_APPEND=kmemleak=on tests/kernel/suites.sh --boot kasan alloc-failures'
suite long kasan vm-kasan 600 release:kernel-tests \
	"tests/kernel/suites.sh --boot kasan --on plain random-requests gpu-payloads \
	'reaped P9_polls_while_clients_end'"
suite long kasan kernel-fuzz-kasan 120 release:kernel-tests 'tests/kernel/fuzz.sh kasan 60'

suite long tools suites-selftest 60 'kmod:kmod-check release:kernel-tests' \
	'tests/kernel/suites.sh --selftest'
suite long tools kernel-mutants-selftest 300 "$guests" \
	'tests/check-mutants-kernel.sh --selftest'
check long tools mutants-selftest 60 '' 'tests/check-mutants.sh --selftest'
suite long tools trace-tools 100 'release:kernel-tests' tests/kernel/trace-tools.sh
suite long tools udev 60 '' tests/vm/udev.sh
suite long tools signing 60 '' tests/vm/signing.sh
suite long tools dkms-vm 200 'release:kernel-tests' tests/vm/dkms.sh
suite long kernels kernels 7200 apt:arm64 tests/check-kernels.sh

suite long long kernel-fuzz-long 2000 'apt:long release:kernel-tests' \
	'tests/kernel/fuzz.sh kasan 1800'
# With two processors a waiter for a lock may spin. No clock counts the instructions of two
# processors, so this suite, unlike the others, compares times.
suite long long meanwhile-smp 300 'kmod:kmod-check release:kernel-tests' \
	'tests/kernel/suites.sh --on full meanwhile'
suite long long finds 300 apt:long 'tests/vm/build-kernel.sh kcsan &&
	tests/vm/build-kernel.sh rt && tests/vm/selftest.sh kasan kcsan rt'
suite long long coverage 3000 'apt:long test/conform test/cuda' tests/kernel/cov.sh
for name in debian-6.1-arm64 debian-6.12-arm64-16k debian-6.1-rt kcsan rt; do
	suite long long "conform-$name" 1500 'apt:long test/conform' \
		"tests/vm/conform-other.sh $name"
done
suite long long static 200 apt:long tests/check-static.sh
suite long long static-plants 200 apt:long 'tests/check-static.sh --plants'

# ---- a machine on which nothing is installed ----

suite long bare bare 700 '' tests/bare/run.sh
