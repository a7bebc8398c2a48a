/* SPDX-License-Identifier: MIT */
/*
 * libxmem for C++17 and later. All of it is inline over xmem.h, whose rules for each function
 * apply.
 *
 *	xmem::pool pool("camera");
 *	xmem::subscription frames = pool.subscribe();
 *	for (xmem::buffer &frame : frames)
 *		look_at(frame.bytes());
 *
 * Handles. An xmem::pool, xmem::buffer or xmem::subscription owns one handle, or none, and drops it
 * at its end. It can be moved and not copied. A function of an empty one fails with EINVAL. raw()
 * is the C handle, for functions that this header lacks.
 *
 * Functions that every program needs are members, and so are those that make, use and order buffers
 * on GPUs. The other topics (claims, copies, memory, payloads, pipelines, tensors) are functions
 * beside the classes, with their names of C, in headers of their own.
 *
 * Errors. Each function that can fail has two forms. One throws xmem::error, a std::system_error of
 * the generic category, whose what() begins with the library's sentence. The other takes a
 * std::error_code at its end, throws nothing, and returns something empty. An argument that can be
 * omitted in one form can be omitted in the other. Where exceptions are off, the first form ends
 * the program. After both, xmem::last_message() has the library's sentence. It is unchanged when
 * as(), as_mut(), cuda_ptr(), cuda_ptr_mut() and elements() refuse a type, when wait_contents()
 * refuses a negative time, and when attach_cuda() has no memory for a callable.
 *
 * Time. Timeouts are any std::chrono::duration, and xmem::forever. A time that is longer than the
 * library can wait is forever. A fraction of a nanosecond is rounded up.
 *
 * Threads. As in xmem.h, if no other thread moves, resets or ends the object meanwhile.
 */
#ifndef XMEM_HPP
#define XMEM_HPP

#include "xmem/basics.hpp"
#include "xmem/host.hpp"
#include "xmem/options.hpp"
#include "xmem/buffer.hpp"
#include "xmem/subscription.hpp"
#include "xmem/pool.hpp"
#include "xmem/claims.hpp"
#include "xmem/copy.hpp"
#include "xmem/cuda.hpp"
#include "xmem/handles.hpp"
#include "xmem/memory.hpp"
#include "xmem/payload.hpp"
#include "xmem/pipeline.hpp"
#include "xmem/service.hpp"
#include "xmem/tensor.hpp"

#endif
