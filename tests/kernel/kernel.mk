# What is asked of xmem.ko alone, past the library: allocations that fail, and
# garbage, of memory of GPUs, and of its tracepoints. Run in the VM by tests/run.sh;
# in-vm.sh does one by hand.

KERNEL_SHARED := tests/kernel/raw.c tests/kernel/gpu.c $(CORE_SRC)
KERNEL_TESTS  := $(B)/alloc-failures $(B)/random-requests $(B)/gpu-payloads $(B)/traces

.PHONY: kernel-tests
kernel-tests: $(KERNEL_TESTS)

$(B)/alloc-failures: $(B)/obj/tests/kernel/alloc_failures.o
$(B)/random-requests: $(addprefix $(B)/obj/tests/kernel/,random_requests.o fields.o)
$(B)/traces: $(B)/obj/tests/kernel/traces.o
$(B)/gpu-payloads: $(addprefix $(B)/obj/tests/kernel/,gpu_payloads.o gpu_ends.o)
$(KERNEL_TESTS): $(KERNEL_SHARED:%.c=$(B)/obj/%.o)
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@
