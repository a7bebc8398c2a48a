/* SPDX-License-Identifier: MIT */
/*
 * libxmem for C++17 and later. All of it is inline over xmem.h, whose words on each function hold
 * here too.
 *
 *	xmem::pool pool("camera");
 *	xmem::subscription frames = pool.subscribe();
 *	for (xmem::buffer &frame : frames)
 *		look_at(frame.bytes());
 *
 * Handles. xmem::pool, xmem::buffer and xmem::subscription own one handle each, or none, can be
 * moved and not copied, and drop it at their end. A function of an empty one fails with EINVAL.
 * raw() is the C handle, for functions that this header lacks.
 *
 * Functions that every program needs are members, and so are those that make, use and order buffers
 * on GPUs. The topics (claims, copies, memory, payloads, pipelines, tensors) are functions beside
 * the classes, with the names that they have in C, in headers of their own.
 *
 * Errors. Each function that can fail has two forms: one throws xmem::error, a std::system_error
 * of the generic category, whose what() begins with the library's sentence; the other takes a
 * std::error_code at its end, throws nothing, and returns something empty. The arguments that
 * can be left out of one can be left out of the other. After both,
 * xmem::last_message() has the sentence; but as(), as_mut(), cuda_ptr(), cuda_ptr_mut() and
 * elements() refuse a type by themselves, wait_contents() a negative time, and attach_cuda() a
 * callable for which there is no memory, and leave it alone. Where exceptions are off, the first
 * form ends the program.
 *
 * Time. Timeouts are any std::chrono::duration, and xmem::forever. A time that is longer than the
 * library can wait is forever, and a fraction of a nanosecond is a whole one.
 *
 * Threads. As in xmem.h, if no other thread moves, resets or ends the object meanwhile.
 */
#ifndef XMEM_HPP
#define XMEM_HPP

#include "xmem/basics.hpp"
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
#include "xmem/tensor.hpp"

#endif
