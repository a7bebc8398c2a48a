#!/bin/sh
# SPDX-License-Identifier: MIT
# Writes the flags for C and for the linker as lists that dune reads.
set -eu
cflags=${LIBXMEM_CFLAGS:-$(pkg-config --cflags xmem)}
libs=${LIBXMEM_LIBS:-$(pkg-config --libs xmem)}
{
	printf '('
	for each in $cflags; do printf '"%s" ' "$each"; done
	printf ')\n'
} >cflags.sexp
{
	printf '('
	for each in $libs; do
		case $each in
		-l*) printf -- '-cclib %s ' "$each" ;;
		*) printf -- '-ccopt %s ' "$each" ;;
		esac
	done
	printf ')\n'
} >libs.sexp
