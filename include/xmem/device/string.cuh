/* SPDX-License-Identifier: MIT */
/*
 * Strings of UTF-8 in kernels. A string_view shows characters that it does not own, such as a row
 * of a column. A managed_string is a new string, whose references are counted.
 *
 * A null string is a view without an address, or a managed string without a MemInfo. An operation
 * with a null operand returns a null string, unless its comment says otherwise. An operation that
 * gets no memory returns a null string too, and the arena counts that as failed.
 */
#ifndef XMEM_DEVICE_STRING_CUH
#define XMEM_DEVICE_STRING_CUH

#include "meminfo.cuh"
#include "utf8.cuh"

namespace xmem {
namespace device {

/* So a string has at most 2^31 - 1 places, each of which i32 can count. */
constexpr i32 MOST_BYTES = 0x7ffffffe;

struct string_view {
	const char *p;			/* NULL: a null string */
	i32 bytes;			/* at most MOST_BYTES */
	i32 char_pos;			/* character number char_pos begins at byte byte_pos; */
	i32 byte_pos;			/* 0 and 0 are always right */
};

/* The fields of a udf_string, without its destructor. */
struct string_fields {
	char *m_data;
	i32 m_bytes;
	i32 m_capacity;			/* bytes that are allocated */
};

/* A string that owns its characters. */
struct udf_string : string_fields {
	XMEM_DEVICE_MEMBER udf_string() : string_fields{ nullptr, 0, 0 } {}
	XMEM_DEVICE_MEMBER udf_string(udf_string &&from) : string_fields(from.give()) {}
	udf_string &operator=(udf_string &&) = delete;
	XMEM_DEVICE_MEMBER ~udf_string() { release(m_data); }

	/* Returns: the fields. Ownership: the caller releases m_data. */
	XMEM_DEVICE_MEMBER string_fields give()
	{
		string_fields given = *this;

		m_data = nullptr;
		m_bytes = m_capacity = 0;
		return given;
	}
};

/* A reference to a counted string. It is copied like an integer; only incref and decref count. */
struct managed_string {
	MemInfo *meminfo;		/* NULL: a null string */
	string_fields udf_string;	/* a copy of the fields of the counted one */
};

/* A MemInfo and the string that it counts, in one allocation. */
struct managed_allocation {
	MemInfo info;
	string_fields string;
};

static_assert(sizeof(string_view) == 24 && sizeof(udf_string) == 16, "the layout of cuDF");
static_assert(sizeof(managed_string) == 24 && sizeof(managed_allocation) == 56, "no holes");

/* ---- Views ---- */

XMEM_DEVICE string_view null_view()
{
	return { nullptr, 0, 0, 0 };
}

XMEM_DEVICE managed_string null_string()
{
	return { nullptr, { nullptr, 0, 0 } };
}

XMEM_DEVICE string_view view_of(const char *characters, i32 bytes)
{
	return { characters, bytes, 0, 0 };
}

/* Ownership: the string must live as long as its view is used. */
XMEM_DEVICE string_view view_of(const managed_string &string)
{
	if (!string.meminfo)
		return null_view();
	return { string.udf_string.m_data, string.udf_string.m_bytes, 0, 0 };
}

XMEM_DEVICE bool is_null(string_view view)
{
	return !view.p;
}

XMEM_DEVICE bool is_null(const managed_string &string)
{
	return !string.meminfo;
}

/* Returns: the number of characters; 0 for a null string. */
XMEM_DEVICE i32 length(string_view view)
{
	return view.p ? count_characters(view.p, view.bytes) : 0;
}

/* Returns: the byte at which that character begins; the number of bytes if there are fewer. */
XMEM_DEVICE i32 byte_of(string_view view, i32 character)
{
	bool known = view.char_pos > 0 && view.char_pos <= character && view.byte_pos > 0 &&
		view.byte_pos <= view.bytes;
	i32 at = known ? view.byte_pos : 0;

	for (i32 i = known ? view.char_pos : 0; i < character && at < view.bytes; i++)
		at = end_of_character(view.p, view.bytes, at);
	return at;
}

/* ---- Comparisons. A null string is equal to null strings only, and comes before others. ---- */

/* Returns: a number below 0, 0, or a number above 0. The order is that of the code points. */
XMEM_DEVICE i32 compare(string_view left, string_view right)
{
	if (is_null(left) || is_null(right))
		return i32(is_null(right)) - i32(is_null(left));
	for (i32 i = 0; i < left.bytes && i < right.bytes; i++)
		if (left.p[i] != right.p[i])
			return i32(u8(left.p[i])) - i32(u8(right.p[i]));
	return left.bytes - right.bytes;
}

XMEM_DEVICE bool operator==(string_view left, string_view right)
{
	return compare(left, right) == 0;
}

XMEM_DEVICE bool operator!=(string_view left, string_view right)
{
	return compare(left, right) != 0;
}

/* Is the wanted string at that byte? */
XMEM_DEVICE bool is_at(string_view view, i32 at, string_view wanted)
{
	if (wanted.bytes > view.bytes - at)
		return false;
	for (i32 i = 0; i < wanted.bytes; i++)
		if (view.p[at + i] != wanted.p[i])
			return false;
	return true;
}

/* Returns: false if one of them is null. */
XMEM_DEVICE bool startswith(string_view view, string_view wanted)
{
	return !is_null(view) && !is_null(wanted) && is_at(view, 0, wanted);
}

/* Returns: false if one of them is null. */
XMEM_DEVICE bool endswith(string_view view, string_view wanted)
{
	return !is_null(view) && !is_null(wanted) && wanted.bytes <= view.bytes &&
		is_at(view, view.bytes - wanted.bytes, wanted);
}

/* ---- Searches ---- */

/* Returns: the first byte from there on at which the wanted string is; -1: nowhere. */
XMEM_DEVICE i32 find_byte(string_view view, string_view wanted, i32 from)
{
	for (i32 at = from; at <= view.bytes - wanted.bytes; at++)
		if (is_at(view, at, wanted))
			return at;
	return -1;
}

/* Returns: the first character at which the wanted string is; -1: nowhere, or one is null. */
XMEM_DEVICE i32 find(string_view view, string_view wanted)
{
	i32 at = is_null(view) || is_null(wanted) ? -1 : find_byte(view, wanted, 0);

	return at < 0 ? -1 : count_characters(view.p, at);
}

/* Returns: the last character at which the wanted string is; -1: nowhere, or one is null. */
XMEM_DEVICE i32 rfind(string_view view, string_view wanted)
{
	i32 at = is_null(view) || is_null(wanted) ? -1 : view.bytes - wanted.bytes;

	while (at >= 0 && !is_at(view, at, wanted))
		at--;
	return at < 0 ? -1 : count_characters(view.p, at);
}

/*
 * The places of a string in another one, as str.count and str.replace find them: from the left,
 * and no two overlap. An empty string is before each character and at the end. next_place()
 * gives the first place at or after the byte @from, or -1. after_place() gives the byte from which
 * the next place is searched, or -1 after the last place.
 */
XMEM_DEVICE i32 next_place(string_view view, string_view wanted, i32 from)
{
	return from < 0 || from > view.bytes ? -1 : find_byte(view, wanted, from);
}

XMEM_DEVICE i32 after_place(string_view view, string_view wanted, i32 place)
{
	if (wanted.bytes)
		return place + wanted.bytes;
	return place < view.bytes ? end_of_character(view.p, view.bytes, place) : -1;
}

/* Returns: how often str.count finds the wanted string; 0 if one is null. */
XMEM_DEVICE i32 count(string_view view, string_view wanted)
{
	i32 found = 0;

	if (is_null(view) || is_null(wanted))
		return 0;
	for (i32 at = 0; (at = next_place(view, wanted, at)) >= 0;
	     at = after_place(view, wanted, at))
		found++;
	return found;
}

/* ---- Parts. The result is a view of the characters of the operand. ---- */

constexpr i32 TO_THE_END = 0x7fffffff;

XMEM_DEVICE string_view part(string_view view, i32 begin, i32 end)
{
	return { view.p + begin, end > begin ? end - begin : 0, 0, 0 };
}

/* The characters from @begin to before @end, as in view[begin:end]; below 0: from the end. */
XMEM_DEVICE string_view slice(string_view view, i32 begin, i32 end = TO_THE_END)
{
	i32 characters;

	if (is_null(view))
		return view;
	if (begin < 0 || end < 0) {
		characters = length(view);
		begin += begin < 0 ? characters : 0;
		end += end < 0 ? characters : 0;
	}
	begin = byte_of(view, begin);
	return part(view, begin, byte_of(view, end));
}

/* Is a character to be stripped? It is one of a set, or white space if the set is null. */
XMEM_DEVICE bool is_one_of(string_view character, string_view set)
{
	if (is_null(set))
		return is_space(code_point(character.p, character.bytes));
	return find_byte(set, character, 0) >= 0;
}

XMEM_DEVICE i32 first_kept(string_view view, string_view set)
{
	i32 at = 0, end;

	for (; at < view.bytes; at = end) {
		end = end_of_character(view.p, view.bytes, at);
		if (!is_one_of(part(view, at, end), set))
			break;
	}
	return at;
}

XMEM_DEVICE i32 end_of_kept(string_view view, string_view set, i32 from)
{
	i32 end = view.bytes, at;

	for (; end > from; end = at) {
		at = begin_of_character(view.p, end);
		if (!is_one_of(part(view, at, end), set))
			break;
	}
	return end;
}

/* Without white space at the left end, as Python defines it. */
XMEM_DEVICE string_view lstrip(string_view view)
{
	return is_null(view) ? view : part(view, first_kept(view, null_view()), view.bytes);
}

XMEM_DEVICE string_view rstrip(string_view view)
{
	return is_null(view) ? view : part(view, 0, end_of_kept(view, null_view(), 0));
}

XMEM_DEVICE string_view strip(string_view view)
{
	return rstrip(lstrip(view));
}

/* Without characters of a set at the left end. */
XMEM_DEVICE string_view lstrip(string_view view, string_view set)
{
	if (is_null(view) || is_null(set))
		return null_view();
	return part(view, first_kept(view, set), view.bytes);
}

XMEM_DEVICE string_view rstrip(string_view view, string_view set)
{
	if (is_null(view) || is_null(set))
		return null_view();
	return part(view, 0, end_of_kept(view, set, 0));
}

XMEM_DEVICE string_view strip(string_view view, string_view set)
{
	return rstrip(lstrip(view, set), set);
}

/* ---- New strings, each with one reference that the caller has ---- */

XMEM_DEVICE void string_dtor(void *data, u64, void *)
{
	release(static_cast<string_fields *>(data)->m_data);
}

XMEM_DEVICE void copy_bytes(char *to, const char *from, i32 bytes)
{
	for (i32 i = 0; i < bytes; i++)
		to[i] = from[i];
}

/* More than MOST_BYTES are refused, as if there were no memory. */
XMEM_DEVICE udf_string make_udf_string(arena *from, u64 bytes)
{
	bool fits = bytes <= u64(MOST_BYTES);
	udf_string made;

	made.m_data = static_cast<char *>(allocate(from, fits ? bytes : ~0ull));
	if (made.m_data)
		made.m_bytes = made.m_capacity = i32(bytes);
	return made;
}

/*
 * Count the references of a string from now on. Returns: a null string if there is no memory.
 * Ownership: a success takes the characters out of @string.
 */
XMEM_DEVICE managed_string manage(arena *from, udf_string &string)
{
	managed_allocation *made;

	made = static_cast<managed_allocation *>(allocate(from, sizeof(*made)));
	if (!made)
		return null_string();
	made->string = string.give();
	meminfo_init(&made->info, &made->string, sizeof(made->string), string_dtor, nullptr);
	return { &made->info, made->string };
}

/* A string of so many bytes, which the caller writes. Returns: a null string without memory. */
XMEM_DEVICE managed_string make_string(arena *from, u64 bytes)
{
	udf_string made = make_udf_string(from, bytes);

	return made.m_data ? manage(from, made) : null_string();
}

XMEM_DEVICE managed_string copy(arena *from, string_view view)
{
	managed_string made = is_null(view) ? null_string() : make_string(from, u64(view.bytes));

	if (!is_null(made))
		copy_bytes(made.udf_string.m_data, view.p, view.bytes);
	return made;
}

XMEM_DEVICE managed_string concat(arena *from, string_view left, string_view right)
{
	managed_string made;

	if (is_null(left) || is_null(right))
		return null_string();
	made = make_string(from, u64(left.bytes) + u64(right.bytes));
	if (is_null(made))
		return made;
	copy_bytes(made.udf_string.m_data, left.p, left.bytes);
	copy_bytes(made.udf_string.m_data + left.bytes, right.p, right.bytes);
	return made;
}

/* utf8.cuh says which characters change. */
XMEM_DEVICE managed_string upper(arena *from, string_view view)
{
	managed_string made = is_null(view) ? null_string() : make_string(from, u64(view.bytes));

	if (!is_null(made))
		change_case(made.udf_string.m_data, view.p, view.bytes, true);
	return made;
}

XMEM_DEVICE managed_string lower(arena *from, string_view view)
{
	managed_string made = is_null(view) ? null_string() : make_string(from, u64(view.bytes));

	if (!is_null(made))
		change_case(made.udf_string.m_data, view.p, view.bytes, false);
	return made;
}

/*
 * Replace as str.replace does: each place of a string by another string, or the first @most
 * places. With an empty @old the new string comes before each character and at the end.
 */
XMEM_DEVICE managed_string replace(arena *from, string_view view, string_view old,
				   string_view with, i32 most = TO_THE_END)
{
	i32 places, done = 0, next = 0;
	managed_string made;
	char *to;

	if (is_null(view) || is_null(old) || is_null(with))
		return null_string();
	places = count(view, old);
	if (most >= 0 && places > most)
		places = most;
	made = make_string(from, u64(view.bytes) + u64(places) * u64(with.bytes) -
				 u64(places) * u64(old.bytes));
	if (is_null(made))
		return made;
	to = made.udf_string.m_data;
	for (i32 i = 0; i < places; i++) {
		i32 place = next_place(view, old, next);

		copy_bytes(to, view.p + done, place - done);
		copy_bytes(to + (place - done), with.p, with.bytes);
		to += place - done + with.bytes;
		done = place + old.bytes;
		next = after_place(view, old, place);
	}
	copy_bytes(to, view.p + done, view.bytes - done);
	return made;
}

} // namespace device
} // namespace xmem

#endif
