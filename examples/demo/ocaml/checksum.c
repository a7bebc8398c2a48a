/* SPDX-License-Identifier: MIT */
/* The checksum of a frame (../frame.c), for histogram.ml. */
#include <caml/alloc.h>
#include <caml/bigarray.h>
#include <caml/mlvalues.h>
#include <xxhash.h>

value demo_checksum(value bytes);

value demo_checksum(value bytes)
{
	return caml_copy_int64((int64_t)XXH3_64bits(Caml_ba_data_val(bytes),
						    (size_t)Caml_ba_array_val(bytes)->dim[0]));
}
