/* SPDX-License-Identifier: MIT */
#include <cstdio>
#include <xmem.hpp>

int main()
{
	xmem::pool pool("camera");
	auto frames = pool.subscribe(XMEM_SUBSCRIBE_LASTS);

	for (const auto &frame : frames)
		std::printf("%zu bytes, the first is %#x\n", frame.size(),
			    frame.size() ? std::to_integer<int>(frame.bytes()[0]) : 0);
}
