/* SPDX-License-Identifier: MIT */
/*
 * Structs of the public API that grow at their end. The caller may have been compiled with an older
 * or a newer xmem.h. The rule is that of copy_struct_from_user().
 */
#ifndef XMEM_STRUCTS_H
#define XMEM_STRUCTS_H

#include "lib/private.h"

/*
 * Copy the caller's options @given, which may be NULL, into @known, which has @bytes bytes and is
 * zero. A shorter struct is extended with zeros. In a longer one, all bytes after @bytes must be
 * zero. 0, or -EINVAL or -E2BIG, noted; then @known is unchanged. @what: the struct's name.
 */
int xl_options_take(const char *what, const void *given, void *known, size_t bytes);

/* Is the caller's answer struct long enough to have its size field? 0, or -EINVAL, noted. */
int xl_answer_check(const char *what, const void *ret);

/* Copy the answer, which has @bytes bytes, cut to the caller's size. pre: checked as above. */
void xl_answer_give(void *ret, const void *answer, size_t bytes);

#endif
