# Tests. Each suite is a program or script of its own whose last line is "N passed, N failed,
# N skipped"; tests/run.sh runs them beside each other, and tests/suites.sh lists them.
#
#   make test           every change must pass it; TESTS="build unit": some groups or suites
#   make test-all       all tests, which takes hours; docs/testing.md
#   make check-GROUP    one group: build native device demo python ocaml gstreamer model mutants vm
#                       bare kasan tools kernels long
#   make check-kernel-mutants  bugs planted in kmod/, each to be found in the VM; MUTANTS="a b"
#   make fuzz           builds the fuzz targets, for tests/fuzz/run.sh

include tests/fakecuda/fakecuda.mk tests/extensions/extensions.mk tests/unit/unit.mk \
	tests/conform/conform.mk tests/kernel/kernel.mk tests/activation/activation.mk \
	tests/cli/cli.mk tests/cpp/cpp.mk tests/fuzz/fuzz.mk tests/cuda/cuda.mk \
	tests/device/device.mk

GROUPS_OF_TESTS := build native device demo python model vm bare kasan tools kernels long

.PHONY: test test-all check check-mutants check-kernel-mutants $(GROUPS_OF_TESTS:%=check-%)
test check:
	$(Q)tests/run.sh $(TESTS)

test-all:
	$(Q)tests/run.sh all

$(GROUPS_OF_TESTS:%=check-%):
	$(Q)tests/run.sh $(@:check-%=%)

check-kernel-mutants:
	$(Q)scripts/needs.sh test
	$(Q)tests/check-mutants-kernel.sh $(MUTANTS)

check-mutants:
	$(Q)scripts/needs.sh test
	$(Q)tests/check-mutants.sh $(MUTANTS)
