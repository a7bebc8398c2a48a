// SPDX-License-Identifier: MIT
/*
 * Code with the names of numba-cuda and cuDF, as design document 003 uses them, compiles with thin
 * wrappers. tests/device/document.sh builds this file with the document's own code, word for word,
 * in BLOCKS and DECREF; without it the code below stands for it.
 */
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "test.hpp"

#define __device__

/* ---- Wrappers ---- */

static arena *heap;

namespace cudf {

using size_type = i32;
using xmem::device::string_view;

namespace strings {
namespace udf {

static udf_string concat(const string_view &left, const string_view &right)
{
	udf_string made = make_udf_string(heap, static_cast<u64>(left.bytes + right.bytes));

	copy_bytes(made.m_data, left.p, left.bytes);
	copy_bytes(made.m_data + left.bytes, right.p, right.bytes);
	return made;
}

} // namespace udf
} // namespace strings
} // namespace cudf

using NRT_MemInfo = MemInfo;

static void *NRT_Allocate(size_t bytes)
{
	return allocate(heap, bytes);
}

static void NRT_MemInfo_init(NRT_MemInfo *info, void *data, size_t size, dtor_function dtor,
			     void *dtor_info)
{
	meminfo_init(info, data, size, dtor, dtor_info);
}

static void NRT_incref(NRT_MemInfo *info)
{
	incref(info);
}

static void NRT_decref(NRT_MemInfo *info)
{
	decref(info);
}

/* ---- The code of the document, or its likes ---- */

#ifdef BLOCKS

#include BLOCKS

#else

static void udf_str_dtor(void *data, size_t, void *)
{
	static_cast<udf_string *>(data)->~udf_string();
}

struct mi_str_allocation {
	NRT_MemInfo mi;
	udf_string st;
};

/* Unlike the document's, it returns NULL without memory, and the caller has the string then. */
static NRT_MemInfo *make_meminfo_for_new_udf_string(udf_string *from)
{
	mi_str_allocation *made;

	made = static_cast<mi_str_allocation *>(NRT_Allocate(sizeof(mi_str_allocation)));
	if (!made)
		return nullptr;
	NRT_MemInfo_init(&made->mi, new (&made->st) udf_string(std::move(*from)), 0, udf_str_dtor,
			 nullptr);
	return &made->mi;
}

/* It leaves the fields of the string in the caller's struct, as the document does. */
extern "C" int concat_shim(void **out_meminfo, void *output_udf_str, void *const *lhs,
			   void *const *rhs)
{
	udf_string made = cudf::strings::udf::concat(
		*reinterpret_cast<const cudf::string_view *>(lhs),
		*reinterpret_cast<const cudf::string_view *>(rhs));
	string_fields fields = made;

	*out_meminfo = make_meminfo_for_new_udf_string(&made);
	std::memcpy(output_udf_str, &fields, sizeof(fields));
	return 0;
}

#endif

/* ---- Tests ---- */

TEST(DEVICE_code_with_the_names_of_numba_and_cudf_runs)
{
	const std::string left = "str", right = "\xc3\xa9";
	string_view views[] = { view(left), view(right) };
	own_arena memory(1 << 20);
	managed_string managed;
	void *info = nullptr;

	heap = memory;
	SAME(concat_shim(&info, &managed.udf_string, reinterpret_cast<void *const *>(&views[0]),
			 reinterpret_cast<void *const *>(&views[1])), 0);
	managed.meminfo = static_cast<MemInfo *>(info);		/* 3.1 */
	SAME(text(view_of(managed)), left + right);
	SAME(length(view_of(managed)), 4);
	SAME(managed.meminfo->refct, 1);
	NRT_incref(managed.meminfo);				/* 4.1 */
	SAME(managed.meminfo->refct, 2);
	NRT_decref(managed.meminfo);
	SAME(managed.meminfo->refct, 1);
	NRT_incref(managed.meminfo);				/* 4.2 */
	SAME(managed.meminfo->refct, 2);
	NRT_decref(managed.meminfo);				/* 5.1 */
	SAME(managed.meminfo->refct, 1);
	SAME(arena_count(memory).made, 2);
	NRT_decref(managed.meminfo);				/* 5.2 */
	NOTHING_LEFT(memory);
}

#ifdef DECREF

/* ---- The document's own count: the layout is right, and its decref destroys twice ---- */

namespace cuda {

enum thread_scope { thread_scope_device };

template <typename T, thread_scope> struct atomic {
	T value;

	operator T() const { return __atomic_load_n(&value, __ATOMIC_SEQ_CST); }
	T operator--(int)
	{
		T before = __atomic_fetch_sub(&value, T(1), __ATOMIC_SEQ_CST);

		xmem_device_step(STEP_DECREF_DROPPED);
		return before;
	}
};

} // namespace cuda

namespace document {

using cudf::size_type;
using NRT_dtor_function = dtor_function;
struct MemInfo;
static unsigned int ends;
template <typename T> static void NRT_MemInfo_call_dtor(T *)
{
	ends++;
}

#include DECREF

static_assert(sizeof(string_view) == sizeof(xmem::device::string_view), "the document's layout");
static_assert(sizeof(udf_string) == sizeof(xmem::device::udf_string), "the document's layout");
static_assert(sizeof(MemInfo) == sizeof(xmem::device::MemInfo) &&
	      offsetof(MemInfo, dtor) == offsetof(xmem::device::MemInfo, dtor) &&
	      offsetof(MemInfo, dtor_info) == offsetof(xmem::device::MemInfo, dtor_info) &&
	      offsetof(MemInfo, data) == offsetof(xmem::device::MemInfo, data) &&
	      offsetof(MemInfo, size) == offsetof(xmem::device::MemInfo, size),
	      "the document's layout");

} // namespace document

TEST(DEVICE_the_decref_of_the_document_destroys_twice)
{
	document::MemInfo info = { { 2 }, nullptr, nullptr, nullptr, 0 };

	{
		stopped_thread other(STEP_DECREF_DROPPED, 1, [&] { document::NRT_decref(&info); });

		document::NRT_decref(&info);
		SAME(document::ends, 1);
	}
	SAME(document::ends, 2);
}

#endif
