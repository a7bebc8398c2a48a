/* SPDX-License-Identifier: MIT */
/*
 * Strings of UTF-8 in kernels. A string_view looks at characters that belong to somebody else, such
 * as a row of a column. A managed_string is a new string, whose references are counted.
 *
 * A null string is a view without an address, or a managed string without a MemInfo. An operation
 * with a null operand returns a null string, unless its comment says otherwise. An operation that
 * gets no memory returns a null string too, and the arena counts that as failed.
 */
#ifndef XMEM_DEVICE_STRING_CUH
#define XMEM_DEVICE_STRING_CUH

#include "meminfo.cuh"

namespace xmem {
namespace device {

struct string_view {
	const char *p;			/* NULL: a null string */
	i32 bytes;
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
	XMEM_DEVICE_MEMBER udf_string(udf_string &&from) : string_fields(from)
	{
		from.m_data = nullptr;
		from.m_bytes = from.m_capacity = 0;
	}
	udf_string &operator=(udf_string &&) = delete;
	XMEM_DEVICE_MEMBER ~udf_string() { release(m_data); }
};

/* A reference to a counted string. It is copied like an integer; only incref and decref count. */
struct managed_string {
	MemInfo *meminfo;		/* NULL: a null string */
	string_fields udf_string;	/* a copy of the fields of the counted one */
};

/* A MemInfo and the string that it counts, in one allocation. */
struct managed_allocation {
	MemInfo info;
	udf_string string;
};

static_assert(sizeof(string_view) == 24 && sizeof(udf_string) == 16, "the layout of cuDF");
static_assert(sizeof(managed_string) == 24 && sizeof(managed_allocation) == 56, "no holes");

/* ---- Views ---- */

XMEM_DEVICE string_view view_of(const char *characters, i32 bytes)
{
	return { characters, bytes, 0, 0 };
}

XMEM_DEVICE string_view view_of(const managed_string &string)
{
	if (!string.meminfo)
		return { nullptr, 0, 0, 0 };
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

/* Does this byte begin a character? */
XMEM_DEVICE bool begins_character(char byte)
{
	return (u8(byte) & 0xc0) != 0x80;
}

/* The number of characters: of the bytes that do not continue one. Returns: 0 for a null string. */
XMEM_DEVICE i32 length(string_view view)
{
	i32 count = 0;

	for (i32 i = 0; view.p && i < view.bytes; i++)
		count += begins_character(view.p[i]);
	return count;
}

/* ---- New strings ---- */

XMEM_DEVICE void string_dtor(void *data, u64, void *)
{
	static_cast<udf_string *>(data)->~udf_string();
}

XMEM_DEVICE void copy_bytes(char *to, const char *from, i32 bytes)
{
	for (i32 i = 0; i < bytes; i++)
		to[i] = from[i];
}

/*
 * Make a string with one reference, whose characters the caller writes. More bytes than 2^31 - 1
 * are refused like any allocation that gets no memory. Returns: a null string without memory.
 */
XMEM_DEVICE managed_string make_string(arena *from, u64 bytes)
{
	bool fits = bytes <= 0x7fffffff;
	managed_allocation *made = nullptr;
	char *data = static_cast<char *>(allocate(from, fits ? bytes : ~0ull));

	if (data)
		made = static_cast<managed_allocation *>(allocate(from, sizeof(*made)));
	if (!made) {
		release(data);
		return { nullptr, { nullptr, 0, 0 } };
	}
	made->string.m_data = data;
	made->string.m_bytes = made->string.m_capacity = i32(bytes);
	meminfo_init(&made->info, &made->string, sizeof(made->string), string_dtor, nullptr);
	return { &made->info, made->string };
}

XMEM_DEVICE managed_string concat(arena *from, string_view left, string_view right)
{
	managed_string made;

	if (is_null(left) || is_null(right))
		return { nullptr, { nullptr, 0, 0 } };
	made = make_string(from, u64(left.bytes) + u64(right.bytes));
	if (is_null(made))
		return made;
	copy_bytes(made.udf_string.m_data, left.p, left.bytes);
	copy_bytes(made.udf_string.m_data + left.bytes, right.p, right.bytes);
	return made;
}

XMEM_DEVICE managed_string upper(arena *from, string_view view)
{
	managed_string made;

	if (is_null(view))
		return { nullptr, { nullptr, 0, 0 } };
	made = make_string(from, u64(view.bytes));
	for (i32 i = 0; made.meminfo && i < view.bytes; i++) {
		char c = view.p[i];

		made.udf_string.m_data[i] = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
	}
	return made;
}

} // namespace device
} // namespace xmem

#endif
