# Tests of xmem.ko alone, without the library: allocations that fail, garbage, GPU memory, its
# tracepoints, and attacks by other users. suites.sh runs them in the VM.

KERNEL_SHARED := tests/kernel/raw.c tests/kernel/gpu.c $(CORE_SRC)
ATTACKS       := $(B)/strangers $(B)/exhaust $(B)/hoards $(B)/reaped $(B)/ends $(B)/meanwhile \
	$(B)/watched $(B)/cheap $(B)/folders
KERNEL_TESTS  := $(B)/alloc-failures $(B)/random-requests $(B)/gpu-payloads $(B)/traces \
	$(B)/kernel-fuzz $(ATTACKS)

.PHONY: kernel-tests
kernel-tests: $(KERNEL_TESTS)

$(B)/alloc-failures: $(addprefix $(B)/obj/tests/kernel/,alloc_failures.o failing.o)
$(B)/random-requests: $(addprefix $(B)/obj/tests/kernel/,random_requests.o fields.o)
$(B)/kernel-fuzz: $(addprefix $(B)/obj/tests/kernel/,fields.o failing.o \
	$(addprefix fuzz/,program.o cover.o memory.o acts.o run.o main.o))
$(B)/traces: $(B)/obj/tests/kernel/traces.o
$(B)/gpu-payloads: $(addprefix $(B)/obj/tests/kernel/,gpu_payloads.o gpu_ends.o gpu_dmabufs.o)
$(ATTACKS): $(B)/%: $(B)/obj/tests/kernel/%.o $(B)/obj/tests/kernel/attack.o
$(B)/ends: $(addprefix $(B)/obj/tests/kernel/,ends_wakes.o sides.o)
$(B)/watched: $(B)/libxmem.a
$(KERNEL_TESTS): $(KERNEL_SHARED:%.c=$(B)/obj/%.o)
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) -o $@
