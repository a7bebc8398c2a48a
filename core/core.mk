# core: the pure protocol and bookkeeping; one list of files for all who compile them.

CORE_SRC := $(wildcard core/*.c)
