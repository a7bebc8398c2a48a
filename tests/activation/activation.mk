# activation: a service manager starts xmemd; activate.c plays the manager.

$(B)/activate: $(B)/obj/tests/activation/activate.o
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@

.PHONY: check-activation
check-activation: all $(B)/activate
	$(Q)tests/activation/check.sh $(B)

.PHONY: check-address
check-address: all $(B)/activate
	$(Q)tests/activation/address.sh $(B)
