/* SPDX-License-Identifier: MIT */
/*
 * Structs of the public API that grow at their end: the caller may have been compiled
 * against an older or a newer xmem.h. The rule is that of copy_struct_from_user().
 */
#ifndef XMEM_STRUCTS_H
#define XMEM_STRUCTS_H

#include "lib/private.h"

/*
 * Take the caller's options, of which @given may be NULL, into @known, which is @bytes
 * long and zero. A shorter struct is extended with zeros; what is behind @bytes has to be
 * zero. 0, or -EINVAL or -E2BIG, noted; then @known is unchanged.
 * @what: the struct's name.
 */
int xl_options_take(const char *what, const void *given, void *known, size_t bytes);

/* Is the caller's struct for an answer long enough to say its length? 0, or -EINVAL, noted. */
int xl_answer_check(const char *what, const void *ret);

/* Give the answer, @bytes long, cut to the caller's size. pre: checked as above. */
void xl_answer_give(void *ret, const void *answer, size_t bytes);

#endif
