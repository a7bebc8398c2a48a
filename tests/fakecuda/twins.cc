// SPDX-License-Identifier: MIT
/*
 * The table of host twins: the parameters of a kernel are taken from its type. At run time this
 * needs nothing of the C++ library.
 */
#include <type_traits>
#include <utility>

#include "tests/cuda/kernels.cu"
#include "tests/device/kernels.cu"
#undef KERNEL
#include "examples/strings/kernels.cu"
#include "twin.h"

namespace {

template <typename T> constexpr fk_parameter parameter()
{
	if (!std::is_pointer_v<T>)
		return { sizeof(T), 0 };
	return { sizeof(T), std::is_const_v<std::remove_pointer_t<T>> ? 1u : 3u };
}

void for_each_thread(const fk_grid &g, void (*call)(void **), void **values)
{
	gridDim = { g.grid[0], g.grid[1], g.grid[2] };
	blockDim = { g.block[0], g.block[1], g.block[2] };
	for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
	for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
	for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
	for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)
	for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
	for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) {
		xmem::device::set_thread(FIRST, STEP);
		call(values);
	}
}

template <auto kernel> struct twin;

template <typename... Types, void (*kernel)(Types...)> struct twin<kernel> {
	static constexpr fk_parameter parameters[] = { parameter<Types>()... };

	template <std::size_t... i> static void call(void **values, std::index_sequence<i...>)
	{
		kernel(*static_cast<Types *>(values[i])...);
	}

	static void call_all(void **values)
	{
		call(values, std::index_sequence_for<Types...>());
	}

	static void run(const fk_grid *grid, void **values)
	{
		for_each_thread(*grid, call_all, values);
	}

	static constexpr fk_twin named(const char *name)
	{
		return { name, sizeof...(Types), parameters, run };
	}
};

} // namespace

#define TWIN(kernel) twin<&kernel>::named(#kernel)

extern "C" const fk_twin fk_twins[] = {
	TWIN(xm_fill),
	TWIN(xm_add),
	TWIN(xm_copy),
	TWIN(xm_checksum),
	TWIN(xd_begin),
	TWIN(xd_count),
	TWIN(xd_udf),
	TWIN(xd_free),
	TWIN(xd_hash),
	TWIN(xd_operations),
	TWIN(xd_objects),
	TWIN(xd_drop),
	TWIN(xd_churn),
	TWIN(strings_arena),
	TWIN(strings_make),
	TWIN(strings_measure),
	TWIN(strings_scan),
	TWIN(strings_offsets),
	TWIN(strings_gather),
	TWIN(strings_free),
	{ nullptr, 0, nullptr, nullptr },
};
