/* SPDX-License-Identifier: MIT */
/*
 * The docstrings of the functions of xmem._torch, as those of doc.h are. `pool` is a number that
 * join() gives; an address is that of the first byte of a storage's memory; what is found is
 * (name of the pool, token, bytes); a capsule is DLPack's, of bytes, and owns a share of a buffer.
 */
#ifndef XT_DOC_TORCH_H
#define XT_DOC_TORCH_H

#define XT_DOC_set_errors \
	"set_errors(classes, /)\n--\n\n" \
	"Say which class is raised for each errno, by a dict; None: for all others. Raises\n" \
	"TypeError."
#define XT_DOC_join \
	"join(name, existing, slots, clients, demand_bytes, cache_bytes, cache_ns, /)\n--\n\n" \
	"Join a pool for tensors, unless this process has, and return its number. It stays\n" \
	"joined until the process ends. existing: it has to be there; otherwise it is made\n" \
	"with so many slots and clients. cache_ns: nanoseconds. Raises Error, MemoryError."
#define XT_DOC_make \
	"make(pool, nbytes, contents, /)\n--\n\n" \
	"Make a buffer, and return (capsule, token, bytes). contents: an address that so many\n" \
	"bytes are copied from; 0: none, and what is in the buffer is whatever was there.\n" \
	"Raises Error, ValueError."
#define XT_DOC_get \
	"get(pool, token, /)\n--\n\n" \
	"Get the buffer of a token, for which a reference has been set aside that becomes its\n" \
	"hold, and return (capsule, token, bytes). Raises Stale, Error, ValueError."
#define XT_DOC_get_tensor \
	"get_tensor(pool, token, type, place, shape, /)\n--\n\n" \
	"Do the same, and return (capsule, whole). type: code << 8 | bits, as DLPack has them;\n" \
	"place: offset and strides. whole: the capsule is of that type and shape, as they are\n" \
	"those of the whole buffer; otherwise it is of bytes. Raises Stale, Error, ValueError,\n" \
	"TypeError, OverflowError."
#define XT_DOC_find \
	"find(address, /)\n--\n\n" \
	"Find the buffer that begins at an address; None: no storage of a pool does. Raises\n" \
	"TypeError."
#define XT_DOC_offer \
	"offer(address, /)\n--\n\n" \
	"Do the same, and set one reference aside for whoever gets the token. It lasts as\n" \
	"long as set_in_flight() says; of a buffer of another process 60 seconds at most.\n" \
	"Raises Error, Forked if the buffer was lost by a fork."
#define XT_DOC_drop \
	"drop(pool, token, /)\n--\n\n" \
	"Drop a reference that was set aside, and say whether there was one: its time may\n" \
	"have passed. Raises Error, ValueError."
#define XT_DOC_claims \
	"claims(pool, token, /)\n--\n\n" \
	"Get how many references are set aside for a token. Raises Stale, ValueError."
#define XT_DOC_set_in_flight \
	"set_in_flight(ns, /)\n--\n\n" \
	"Say how many nanoseconds references last that are set aside from now on; negative:\n" \
	"for ever. Raises TypeError, OverflowError."
#define XT_DOC_stat \
	"stat(pool, /)\n--\n\n" \
	"Get what there is in a pool, of all processes together, as a dict: clients, slots\n" \
	"that are held, holds and claims, bytes_files, and clients in limbo. Raises Error,\n" \
	"ValueError."
#define XT_DOC_set_messages \
	"set_messages(given, /)\n--\n\n" \
	"Say what of Python reduce() and rebuild() use, by a dict; torch_message.h has the\n" \
	"names. A child by fork calls it again. Raises TypeError, KeyError."
#define XT_DOC_set_weak \
	"set_weak(free, expired, storage, /)\n--\n\n" \
	"Say what torch has for weak references to storages. Raises TypeError."
#define XT_DOC_WeakRef \
	"WeakRef(storage, /)\n--\n\n" \
	"A weak reference to a storage of torch, which keeps neither it nor its memory."
#define XT_DOC_expired \
	"expired($self, /)\n--\n\n" \
	"Is the storage gone? Raises nothing."
#define XT_DOC_storage \
	"storage($self, /)\n--\n\n" \
	"Get the storage; None: it is gone. Raises nothing."
#define XT_DOC_set_known \
	"set_known(pool, known, remember, /)\n--\n\n" \
	"Say which storages of a pool are known, by a dict of weak references by token, and\n" \
	"what puts one there. Raises ValueError, TypeError."
#define XT_DOC_set_installed \
	"set_installed(name, /)\n--\n\n" \
	"Say which pool this process has installed; None: none. Raises TypeError."
#define XT_DOC_reduce \
	"reduce(tensor, /)\n--\n\n" \
	"Make a message of a tensor, for a pickler: the short way if it is one that has been\n" \
	"sent before, else as set_messages() says. Raises what that raises."
#define XT_DOC_rebuild \
	"rebuild(message, /)\n--\n\n" \
	"Make the tensor of a message: the short way if its storage is not in this process,\n" \
	"else as set_messages() says. Raises what that raises, ValueError, TypeError."
#define XT_DOC_swap \
	"swap(storage, other, /)\n--\n\n" \
	"Exchange the memory of two storages of torch 1.13, by the addresses of their objects\n" \
	"in C++. xmem.torch.versions proves that they are laid out so. Raises ValueError."
#define XT_DOC_guard_capsule \
	"guard_capsule(guard, integers, /)\n--\n\n" \
	"Make a capsule of the contents of a guard, which keeps the buffer: the contents\n" \
	"themselves while the guard is written, else memory that may be written and nobody\n" \
	"else sees. integers: elements are given as integers of their size, for types that\n" \
	"torch does not take. Raises Released, BufferError for strides that torch cannot\n" \
	"have, Error."
#define XT_DOC_cuda_share \
	"cuda_share(pool, address, nbytes, stream, kept, /)\n--\n\n" \
	"Attach memory of a GPU to the pool, complete on a stream of CUDA, set one reference\n" \
	"aside, and return the token. kept: an object that stays until the last process has\n" \
	"dropped the memory. Raises Error, ValueError."
#define XT_DOC_cuda_get \
	"cuda_get(pool, token, /)\n--\n\n" \
	"Get the buffer of a token in memory of a GPU, and return (capsule, device, bytes).\n" \
	"The contents are complete when this returns. Raises Stale, NoDevice, Error,\n" \
	"ValueError."
#define XT_DOC_cuda_drain \
	"cuda_drain()\n--\n\n" \
	"Drop the objects of cuda_share() whose memory has come back, and return how many.\n" \
	"Raises nothing."
#define XT_DOC_cuda_use \
	"cuda_use(pool, /)\n--\n\n" \
	"Say which pool the allocator of CUDA takes memory from, from now on. Raises Error,\n" \
	"ValueError."
#define XT_DOC_gone \
	"gone(pool, /)\n--\n\n" \
	"Has the host of the pool ended? Raises ValueError."
#define XT_DOC_holds \
	"holds()\n--\n\n" \
	"Get how many buffers storages of this process lie in. Raises nothing."
#define XT_DOC_fork_offer \
	"fork_offer()\n--\n\n" \
	"Before a fork: set references aside for the child, of all buffers. Raises nothing."
#define XT_DOC_fork_restore \
	"fork_restore()\n--\n\n" \
	"In the child: get all buffers, and put their pages where they were. Returns how many\n" \
	"are lost, and of how many it has a copy of its own, as it cannot join their pool.\n" \
	"Raises nothing."
#define XT_DOC_allocate_from \
	"allocate_from(pool, most, /)\n--\n\n" \
	"Say which pool the allocator of the CPU takes memory from, but so many buffers at a\n" \
	"time at most; -1: from none. Raises ValueError."
#define XT_DOC_allocator \
	"allocator()\n--\n\n" \
	"Get the addresses of the functions that allocate and free memory of the CPU, for the\n" \
	"C++ that torch calls. Raises nothing."

#endif
