# Tests. Each suite is a program or script of its own whose last line is
# "N passed, N failed, N skipped"; tests/run.sh runs them all and adds up.
#
#   make test               all that CI runs; TESTS="build unit": some groups or suites
#   make check-GROUP        one group: native python vm model mutants bare kasan tools kernels
#   make check-long         what takes hours: the debug kernels, and what reads the module
#   make check-kernel-mutants  bugs planted in kmod/, each to be found in the VM; MUTANTS="a b"
#   make fuzz               builds the fuzz targets, for tests/fuzz/run.sh

include tests/fakecuda/fakecuda.mk tests/extensions/extensions.mk tests/unit/unit.mk \
	tests/conform/conform.mk tests/kernel/kernel.mk tests/activation/activation.mk \
	tests/cli/cli.mk tests/cpp/cpp.mk tests/fuzz/fuzz.mk tests/cuda/cuda.mk

.PHONY: test check check-native check-python check-vm check-model check-mutants check-bare \
	check-kasan check-tools check-kernel-mutants check-kernels check-long
test check:
	$(Q)tests/run.sh $(TESTS)

check-native check-python check-vm check-model check-bare check-kasan check-tools check-kernels:
	$(Q)tests/run.sh $(@:check-%=%)

check-kernel-mutants:
	$(Q)scripts/needs.sh test
	$(Q)tests/check-mutants-kernel.sh $(MUTANTS)

check-long:
	$(Q)tests/run.sh kasan long

check-mutants:
	$(Q)scripts/needs.sh test
	$(Q)tests/check-mutants.sh $(MUTANTS)
