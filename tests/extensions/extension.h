/* SPDX-License-Identifier: MIT */
/*
 * Two extensions, like plug-ins of one program: shared objects that are not linked with libxmem.
 * They reach it only through the table that the program gives them. main.c is such a program, and
 * the conformance suite is another (tests/conform/api.c).
 */
#ifndef XMEM_EXTENSION_H
#define XMEM_EXTENSION_H

#include <xmem.h>

#define EXTENSION	__attribute__((visibility("default")))
#define EXTENSION_BYTES	4096

/* extension-writer.so: its functions use the pool @name. Each returns 0 or a negative errno. */
struct writer_extension {
	int (*start)(const struct xmem_api *api, const char *name);
	int (*publish)(unsigned char stamp);
	int (*drop)(struct xmem_buffer *buffer);	/* a handle that the reader made */
	void (*stop)(void);
	/* Finds the table without help, in the library of that name. */
	const struct xmem_api *(*find)(const char *library);
};

/* extension-reader.so */
struct reader_extension {
	int (*start)(const struct xmem_api *api, const char *name);
	struct xmem_buffer *(*receive)(void);
	int (*stamp)(struct xmem_buffer *buffer);
	void (*stop)(void);
	const struct xmem_api *(*find)(const char *library);
};

/* The only symbol of each. */
#define WRITER_SYMBOL	"xmem_test_writer"
#define READER_SYMBOL	"xmem_test_reader"

#endif
