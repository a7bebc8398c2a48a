/* SPDX-License-Identifier: MIT */
/*
 * The docstrings of the functions of xmem._torch, in the form of doc.h. `pool` is a number that
 * join() gives. An address is that of the first byte of a storage's memory. find() and offer()
 * return (name of the pool, token, bytes) or None. A capsule is one of DLPack, of bytes, and owns a
 * share of a buffer.
 */
#ifndef XT_DOC_TORCH_H
#define XT_DOC_TORCH_H

#define XT_DOC_set_errors \
	"set_errors(classes, /)\n--\n\n" \
	"Set the class that is raised for each errno, by a dict; its key None is for all other\n" \
	"errnos. Raises TypeError."
#define XT_DOC_join \
	"join(name, existing, slots, clients, demand_bytes, cache_bytes, cache_ns, /)\n--\n\n" \
	"Join a pool for tensors, unless this process has joined it already, and return its\n" \
	"number. It stays joined until the process ends. existing: the pool must exist;\n" \
	"otherwise it is made with so many slots and clients. cache_ns: nanoseconds. Raises\n" \
	"Error, MemoryError."
#define XT_DOC_make \
	"make(pool, nbytes, contents, /)\n--\n\n" \
	"Make a buffer, and return (capsule, token, bytes). contents: the address of so many\n" \
	"bytes to copy; 0: none, and the contents are undefined.\n" \
	"Raises Error, ValueError."
#define XT_DOC_get \
	"get(pool, token, /)\n--\n\n" \
	"Get the buffer of a token, and return (capsule, token, bytes). The hold takes a\n" \
	"reference that was set aside. Raises Stale, Error, ValueError."
#define XT_DOC_get_tensor \
	"get_tensor(pool, token, type, place, shape, /)\n--\n\n" \
	"Get the buffer of a token as get() does, and return (capsule, whole). type: code << 8\n" \
	"| bits, as DLPack has them; place: offset and strides. whole: the capsule has that\n" \
	"type and shape, because such a tensor is the whole buffer; otherwise the capsule is of\n" \
	"bytes. Raises Stale, Error, ValueError, TypeError, OverflowError."
#define XT_DOC_find \
	"find(address, /)\n--\n\n" \
	"Find the buffer that begins at an address; None: no storage of a pool does. Raises\n" \
	"TypeError."
#define XT_DOC_offer \
	"offer(address, /)\n--\n\n" \
	"Find a buffer as find() does, and set one reference aside for the receiver of the\n" \
	"token. The reference lasts as long as set_in_flight() says, but of a buffer of another\n" \
	"process at most 60 seconds.\n" \
	"Raises Error, Forked if the buffer was lost by a fork."
#define XT_DOC_drop \
	"drop(pool, token, /)\n--\n\n" \
	"Drop a reference that was set aside. Returns whether there was one: it may have\n" \
	"expired. Raises Error, ValueError."
#define XT_DOC_claims \
	"claims(pool, token, /)\n--\n\n" \
	"Get the number of references that are set aside for a token. Raises Stale, ValueError."
#define XT_DOC_set_in_flight \
	"set_in_flight(ns, /)\n--\n\n" \
	"Set for how many nanoseconds references last that are set aside from now on; negative:\n" \
	"for ever. Raises TypeError, OverflowError."
#define XT_DOC_stat \
	"stat(pool, /)\n--\n\n" \
	"Get the use of a pool by all processes together, as a dict: clients, slots that are\n" \
	"held, holds and claims, bytes_files, and clients in limbo. Raises Error, ValueError."
#define XT_DOC_set_messages \
	"set_messages(given, /)\n--\n\n" \
	"Set the Python objects that reduce() and rebuild() use, by a dict; torch_message.h has\n" \
	"the names. A child by fork calls it again. Raises TypeError, KeyError."
#define XT_DOC_set_weak \
	"set_weak(free, expired, storage, /)\n--\n\n" \
	"Set the functions of torch for weak references to storages. Raises TypeError."
#define XT_DOC_WeakRef \
	"WeakRef(storage, /)\n--\n\n" \
	"A weak reference to a storage of torch, which keeps neither the storage nor its\n" \
	"memory."
#define XT_DOC_expired \
	"expired($self, /)\n--\n\n" \
	"Is the storage gone? Raises nothing."
#define XT_DOC_storage \
	"storage($self, /)\n--\n\n" \
	"Get the storage; None: it is gone. Raises nothing."
#define XT_DOC_set_known \
	"set_known(pool, known, remember, /)\n--\n\n" \
	"Set the known storages of a pool, by a dict of weak references by token, and the\n" \
	"function that adds one. Raises ValueError, TypeError."
#define XT_DOC_set_installed \
	"set_installed(name, /)\n--\n\n" \
	"Set the pool that this process has installed; None: none. Raises TypeError."
#define XT_DOC_reduce \
	"reduce(tensor, /)\n--\n\n" \
	"Make a message of a tensor, for a pickler: by the fast path if the tensor has been\n" \
	"sent before, otherwise by the function of set_messages(). Raises what that function\n" \
	"raises."
#define XT_DOC_rebuild \
	"rebuild(message, /)\n--\n\n" \
	"Make the tensor of a message: by the fast path if its storage is not in this process,\n" \
	"otherwise by the function of set_messages(). Raises what that function raises,\n" \
	"ValueError, TypeError."
#define XT_DOC_swap \
	"swap(memory, other, /)\n--\n\n" \
	"Exchange the memory of two storages, by the addresses of the words that describe it\n" \
	"in their C++ objects, which xmem.torch.versions finds and proves. Raises ValueError."
#define XT_DOC_guard_capsule \
	"guard_capsule(guard, integers, /)\n--\n\n" \
	"Make a capsule of the contents of a guard, which keeps the buffer: the contents\n" \
	"themselves while the guard is being written, otherwise memory that may be written and\n" \
	"nobody else sees. integers: give elements as integers of their size, for types that\n" \
	"torch does not take. Raises Released, BufferError for strides that torch cannot have,\n" \
	"Error."
#define XT_DOC_cuda_share \
	"cuda_share(pool, address, nbytes, stream, kept, storage, call, /)\n--\n\n" \
	"Attach memory of a GPU to the pool, complete on a stream of CUDA, set one reference\n" \
	"aside, and return the token. When the last process has dropped the memory, call is\n" \
	"called and kept is released. storage: the address of the storage that kept is the\n" \
	"object of, or 0. Raises Error, ValueError."
#define XT_DOC_cuda_again \
	"cuda_again(pool, token, /)\n--\n\n" \
	"Set one more reference aside for a token of cuda_share(). False: its memory has come\n" \
	"back, or is about to. Raises ValueError."
#define XT_DOC_cuda_fence \
	"cuda_fence(pool, device, stream, /)\n--\n\n" \
	"Return the token of a new buffer for cuda_wait(), which is complete when the stream\n" \
	"has done its present work. One reference is set aside. Raises Error, ValueError."
#define XT_DOC_cuda_get \
	"cuda_get(pool, token, streams, /)\n--\n\n" \
	"Get the buffer of a token in memory of a GPU, and return (capsule, device, bytes).\n" \
	"streams: a function that gives the stream of a device, which then waits for the\n" \
	"contents. Raises Stale, NoDevice, Error, ValueError, and what streams raises."
#define XT_DOC_cuda_wait \
	"cuda_wait(pool, token, stream, /)\n--\n\n" \
	"Let a stream wait for a fence, and drop the fence. Raises Stale, OwnerDead, Error,\n" \
	"ValueError."
#define XT_DOC_cuda_collect \
	"cuda_collect(pool, /)\n--\n\n" \
	"Find memory of cuda_share() that has come back, and drop its objects. Raises\n" \
	"ValueError."
#define XT_DOC_cuda_room \
	"cuda_room()\n--\n\n" \
	"Return the address of the function that makes room for torch's allocator."
#define XT_DOC_cuda_use \
	"cuda_use(pool, /)\n--\n\n" \
	"Set the pool from which the allocator of CUDA takes memory from now on. Raises Error,\n" \
	"ValueError."
#define XT_DOC_gone \
	"gone(pool, /)\n--\n\n" \
	"Has the host of the pool ended? Raises ValueError."
#define XT_DOC_holds \
	"holds()\n--\n\n" \
	"Get the number of buffers that storages of this process lie in. Raises nothing."
#define XT_DOC_fork_offer \
	"fork_offer()\n--\n\n" \
	"Before a fork: set references of all buffers aside for the child. Raises nothing."
#define XT_DOC_fork_restore \
	"fork_restore()\n--\n\n" \
	"In the child: get all buffers, and put their pages where they were. Returns how many\n" \
	"are lost, and how many are copies of this process's own, because it cannot join their\n" \
	"pool.\n" \
	"Raises nothing."
#define XT_DOC_allocate_from \
	"allocate_from(pool, most, /)\n--\n\n" \
	"Set the pool from which the allocator of the CPU takes memory, at most so many buffers\n" \
	"at a time; -1: from none. Raises ValueError."
#define XT_DOC_allocator \
	"allocator()\n--\n\n" \
	"Get the addresses of the functions that allocate and free memory of the CPU, for the\n" \
	"C++ that torch calls. Raises nothing."

#endif
