/* SPDX-License-Identifier: MIT */
/* Functions that OCaml 4.13 lacks, for the programs of this folder. */
#include <caml/alloc.h>
#include <caml/bigarray.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <caml/unixsupport.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

value demo_checksum(value bytes, value length);
value demo_read(value file, value bytes, value offset, value length);
value demo_now_ns(value unit);

/* The checksum of a frame (../frame.c). */
value demo_checksum(value bytes, value length)
{
	return caml_copy_int64((int64_t)XXH3_64bits(Caml_ba_data_val(bytes),
						    (size_t)Long_val(length)));
}

/* The program has one thread, so the runtime lock may stay with it. */
value demo_read(value file, value bytes, value offset, value length)
{
	char *at = (char *)Caml_ba_data_val(bytes) + Long_val(offset);
	ssize_t got;

	do
		got = read(Int_val(file), at, (size_t)Long_val(length));
	while (got < 0 && errno == EINTR);
	if (got < 0)
		uerror("read", Nothing);
	return Val_long(got);
}

value demo_now_ns(value unit)
{
	struct timespec now;

	(void)unit;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return caml_copy_int64((int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
}
