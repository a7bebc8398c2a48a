/* SPDX-License-Identifier: MIT */
/*
 * Characters of UTF-8: where they begin, how many there are, white space, upper and lower case.
 * Bytes that are no UTF-8 do no harm: no function reads beyond the end of the bytes it is given.
 */
#ifndef XMEM_DEVICE_UTF8_CUH
#define XMEM_DEVICE_UTF8_CUH

#include "base.cuh"

namespace xmem {
namespace device {

/* Does this byte begin a character? The other ones continue it. */
XMEM_DEVICE bool begins_character(char byte)
{
	return (u8(byte) & 0xc0) != 0x80;
}

/* Returns: the number of characters that begin in these bytes. */
XMEM_DEVICE i32 count_characters(const char *bytes, i32 size)
{
	i32 count = 0;

	for (i32 i = 0; i < size; i++)
		count += begins_character(bytes[i]);
	return count;
}

/* Returns: where the character ends that begins, or goes on, at that byte. */
XMEM_DEVICE i32 end_of_character(const char *bytes, i32 size, i32 at)
{
	for (at++; at < size && !begins_character(bytes[at]); at++)
		;
	return at;
}

/* Returns: where the character begins that ends before that byte. */
XMEM_DEVICE i32 begin_of_character(const char *bytes, i32 end)
{
	for (end--; end > 0 && !begins_character(bytes[end]); end--)
		;
	return end;
}

/* Returns: the code point of a character; beyond the last one of Unicode if it is malformed. */
XMEM_DEVICE u32 code_point(const char *bytes, i32 size)
{
	u32 first = u8(bytes[0]), code;

	if (size == 1)
		return first < 0x80 ? first : 0x110000;
	/* After as many ones as there are bytes, the first byte has a zero. */
	if (size > 4 || first >> (7 - size) != (2u << size) - 2)
		return 0x110000;
	code = first & (0x7fu >> size);
	for (i32 i = 1; i < size; i++)
		code = code << 6 | (u8(bytes[i]) & 0x3f);
	return code;
}

/* Is it white space for Python's str.strip()? */
XMEM_DEVICE bool is_space(u32 code)
{
	return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
		code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
		code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
		code == 0x3000;
}

/*
 * Upper and lower case are those of ASCII, Latin-1, Latin Extended-A, Greek (U+0386 to U+03CE) and
 * Cyrillic (U+0400 to U+052F). All other characters stay as they are. A character also stays if
 * its other case takes another number of bytes. These are the dotted capital I, the dotless small
 * i, the long s, the small n after an apostrophe, and the Greek letters with two accents. The small
 * sharp s becomes SS. A capital sigma becomes a sigma, also at the end of a word.
 */

/* In these ranges each capital letter is followed by its small letter. */
XMEM_DEVICE bool is_even_pair(u32 code)
{
	return (code >= 0x100 && code <= 0x137 && code >> 1 != 0x130 >> 1) ||
		(code >= 0x14a && code <= 0x177) || (code >= 0x460 && code <= 0x481) ||
		(code >= 0x48a && code <= 0x4bf) || (code >= 0x4d0 && code <= 0x52f);
}

XMEM_DEVICE bool is_odd_pair(u32 code)
{
	return (code >= 0x139 && code <= 0x148) || (code >= 0x179 && code <= 0x17e) ||
		(code >= 0x4c1 && code <= 0x4ce);
}

/* For all code points but that of the small sharp s. */
XMEM_DEVICE u32 upper_of(u32 code)
{
	if (code < 0x80)
		return code >= 'a' && code <= 'z' ? code - 32 : code;
	if (is_even_pair(code))
		return code & ~1u;
	if (is_odd_pair(code))
		return code - (code % 2 == 0);
	if ((code >= 0xe0 && code <= 0xfe && code != 0xf7) || (code >= 0x430 && code <= 0x44f) ||
	    (code >= 0x3b1 && code <= 0x3cb && code != 0x3c2))
		return code - 32;
	if (code >= 0x450 && code <= 0x45f)
		return code - 80;
	if (code >= 0x3ad && code <= 0x3af)
		return code - 37;
	switch (code) {
	case 0xb5: return 0x39c;	/* the micro sign */
	case 0xff: return 0x178;
	case 0x3ac: return 0x386;
	case 0x3c2: return 0x3a3;	/* sigma at the end of a word */
	case 0x3cc: return 0x38c;
	case 0x3cd: return 0x38e;
	case 0x3ce: return 0x38f;
	case 0x4cf: return 0x4c0;
	default: return code;
	}
}

XMEM_DEVICE u32 lower_of(u32 code)
{
	if (code < 0x80)
		return code >= 'A' && code <= 'Z' ? code + 32 : code;
	if (is_even_pair(code))
		return code | 1;
	if (is_odd_pair(code))
		return code + code % 2;
	if ((code >= 0xc0 && code <= 0xde && code != 0xd7) || (code >= 0x410 && code <= 0x42f) ||
	    (code >= 0x391 && code <= 0x3ab && code != 0x3a2))
		return code + 32;
	if (code >= 0x400 && code <= 0x40f)
		return code + 80;
	if (code >= 0x388 && code <= 0x38a)
		return code + 37;
	switch (code) {
	case 0x178: return 0xff;
	case 0x386: return 0x3ac;
	case 0x38c: return 0x3cc;
	case 0x38e: return 0x3cd;
	case 0x38f: return 0x3ce;
	case 0x4c0: return 0x4cf;
	default: return code;
	}
}

/* Write the bytes in upper or lower case. Their number does not change. */
XMEM_DEVICE void change_case(char *to, const char *from, i32 size, bool to_upper)
{
	for (i32 i = 0, end; i < size; i = end) {
		u32 code;

		end = end_of_character(from, size, i);
		code = code_point(from + i, end - i);
		for (i32 k = i; k < end; k++)
			to[k] = from[k];
		if (end - i > 2 || code >= 0x800)
			continue;
		if (code == 0xdf && to_upper) {
			to[i] = to[i + 1] = 'S';
			continue;
		}
		code = to_upper ? upper_of(code) : lower_of(code);
		if (end - i == 1) {
			to[i] = char(code);
		} else {
			to[i] = char(0xc0 | code >> 6);
			to[i + 1] = char(0x80 | (code & 0x3f));
		}
	}
}

} // namespace device
} // namespace xmem

#endif
