/* SPDX-License-Identifier: MIT */
/*
 * The docstrings of Guard, in the form of doc.h. An attribute of a guard that is gone raises
 * Released, unless its docstring says otherwise.
 */
#ifndef XP_DOC_GUARD_H
#define XP_DOC_GUARD_H

/* ---- the handle, and what is said of contents ---- */

#define XP_DOC_guard_release \
	"release($self, *, stream=None)\n--\n\n" \
	"Drop the handle. Views of the contents keep the buffer until they go.\n" \
	"Contents that are being written are thrown away. stream: the buffer is held until the\n" \
	"stream has done the work that is in it. Raises Released, Error (EBUSY: another thread\n" \
	"is publishing it); with a stream NotPermitted while the contents are being written."
#define XP_DOC_guard_enter \
	"__enter__($self)\n--\n\n" \
	"The guard itself. Raises Released."
#define XP_DOC_guard_exit \
	"__exit__($self, kind, error, trace, /)\n--\n\n" \
	"Release the guard, unless it is gone already."
#define XP_DOC_guard_clone_ref \
	"clone_ref($self)\n--\n\n" \
	"Make another handle of the buffer, for reading.\n" \
	"Raises NotPermitted while it is written, Error (EOVERFLOW), Released."
#define XP_DOC_guard_publish \
	"publish($self, *, keep=False, timestamp_ns=0, offset=0, length=0, stream=None)\n--\n\n" \
	"Publish the contents to the subscribers, and return their token.\n" \
	"keep: the guard stays, for reading; otherwise it is gone. timestamp_ns: nanoseconds of\n" \
	"CLOCK_MONOTONIC. offset, length: bytes; length 0: up to the end. stream: of CUDA.\n" \
	"Raises NotPermitted if it is for reading, Error (ERANGE: the part does not hold the\n" \
	"tensor or image that is described; EBUSY), Released."
#define XP_DOC_guard_send \
	"send($self, client, *, keep=False, timestamp_ns=0, offset=0, length=0, timeout=None)\n" \
	"--\n\n" \
	"Publish to one subscriber alone, by its client id, and return the token.\n" \
	"timeout: seconds to wait for room in the ring. Raises NotFound if that client does not\n" \
	"follow this one, WouldBlock, TimedOut, Canceled, NotPermitted, Error (ERANGE),\n" \
	"Released."
#define XP_DOC_guard_forward \
	"forward($self, *, keep=False, timestamp_ns=0, offset=0, length=0, timeout=None)\n--\n\n" \
	"Publish received contents once more, to this client's subscribers, uncopied.\n" \
	"Returns the token, which does not change. timeout: seconds to wait for room.\n" \
	"Raises NotPermitted of a reader, or while the contents are being written, WouldBlock,\n" \
	"TimedOut, Canceled, Error (ERANGE), Released."
#define XP_DOC_guard_get_mut \
	"get_mut($self)\n--\n\n" \
	"Write received contents of shared memory in place: their only holder becomes their\n" \
	"writer. Returns the guard itself.\n" \
	"Raises Error (EBUSY: another client holds them, or views are alive; EOPNOTSUPP: they\n" \
	"are not shared), NotPermitted, WouldBlock, Released."
#define XP_DOC_guard_forget \
	"forget($self)\n--\n\n" \
	"Drop the handle and leave its reference for the next get() of the buffer. If the\n" \
	"contents are being written, this completes them. Raises Error (ERANGE), Released."
#define XP_DOC_guard_set_ref_count \
	"set_ref_count($self, count, lasts=10.0)\n--\n\n" \
	"Complete the contents, and set the number of their references: this guard's and count\n" \
	"- 1 that are set aside. lasts: seconds for which these stay set aside; None: for ever;\n" \
	"only the owner may give more than 60. Raises Error (ERANGE), NotPermitted,\n" \
	"ValueError, Released."
#define XP_DOC_guard_offer \
	"offer($self, more=1, lasts=10.0)\n--\n\n" \
	"Set further references of a held buffer aside. lasts: as in set_ref_count. All\n" \
	"references of a buffer that are set aside have one common time: the longest that was\n" \
	"asked for, also by pickling, which asks for in_flight of the pool.\n" \
	"Raises NotPermitted while the contents are being written, or if the time is too long;\n" \
	"Error (ERANGE), Released."
#define XP_DOC_guard_describe_tensor \
	"describe_tensor($self, dtype, shape, strides=None)\n--\n\n" \
	"Describe the contents as a tensor, from their first byte on. This replaces any earlier\n" \
	"description. dtype: the number of the elements' type (describe takes a name); shape:\n" \
	"elements in each dimension; strides: bytes to the next element in each dimension,\n" \
	"None: dense.\n" \
	"Raises Error (EINVAL, ERANGE), NotPermitted, BufferError if there are views, Released."
#define XP_DOC_guard_describe_image \
	"describe_image($self, format, width, height, stride=0)\n--\n\n" \
	"Describe the contents as an image, from their first byte on. This replaces any earlier\n" \
	"description. format: of xmem.ImageFormat; width, height: pixels; stride: bytes from\n" \
	"one row to the next in the first plane; 0: no gap. Raises as describe_tensor."
#define XP_DOC_guard_describe_strings \
	"describe_strings($self, rows, chars, validity=False)\n--\n\n" \
	"Describe the contents as a column of strings, whose parts lie where\n" \
	"xmem.strings_plan says for these arguments. This replaces any earlier description.\n" \
	"Raises as describe_tensor."
#define XP_DOC_guard_strings_view \
	"_strings_view($self)\n--\n\n" \
	"For strings()."
#define XP_DOC_guard_describe_content \
	"describe_content($self, content_type=None, producer=None)\n--\n\n" \
	"Set the type of the contents and the name of their producer, at most 31 bytes each.\n" \
	"Raises Error (EINVAL, ERANGE), NotPermitted, Released."
#define XP_DOC_guard_describe_time \
	"describe_time($self, timestamp_ns, clock=None)\n--\n\n" \
	"Set when the contents were made, and the clock (at most 23 bytes): readers find both\n" \
	"in metadata. The guard's timestamp_ns is another time, that of publish().\n" \
	"Raises Error (EINVAL, ERANGE), NotPermitted, Released."

#define XP_DOC_guard_describe_user \
	"describe_user($self, *, id=None, user=None)\n--\n\n" \
	"Set the id of the contents, and the program's own words: at most 8 integers of 64\n" \
	"bits; words that are not given become 0. None: no change.\n" \
	"Raises NotPermitted of contents that are not being written, Released, ValueError."
#define XP_DOC_guard_image_view \
	"_image_view($self)\n--\n\n" \
	"For image()."
#define XP_DOC_plane \
	"One plane of an image: a buffer of rows, columns and, if any, channels.\n\n" \
	"memoryview() and numpy.asarray() view it without a copy, read-only if its guard is for\n" \
	"reading; such views keep the contents, as views of the guard do. bytes() copies its\n" \
	"elements without the gaps between rows. Another process gets its planes from its own\n" \
	"guard."

/* ---- on GPUs ---- */

#define XP_DOC_guard_copy_from_host \
	"copy_from_host($self, source, offset=0, *, stream=None)\n--\n\n" \
	"Copy the bytes of a buffer of the CPU into this buffer on a GPU, from byte offset on.\n" \
	"source: must be contiguous. With a stream, the bytes are copied once the stream has\n" \
	"done its work so far, and the caller keeps source until then.\n" \
	"Raises Error (ERANGE, EMEDIUMTYPE), NotPermitted of contents that are not being\n" \
	"written, Released."
#define XP_DOC_guard_copy_to_host \
	"copy_to_host($self, out=None, offset=0, nbytes=None, *, stream=None)\n--\n\n" \
	"Copy contents from a GPU into out, a writable buffer, and return it; nbytes: by\n" \
	"default as many as out has. Without out: a new memoryview with the contents' shape and\n" \
	"type, or of bytes, if only a part is copied or Python has no such type. stream: as\n" \
	"copy_from_host.\n" \
	"Raises Error (ERANGE, EMEDIUMTYPE), OwnerDead, NotPermitted, Released."
#define XP_DOC_guard_copy_to \
	"copy_to($self, to, to_offset=0, offset=0, nbytes=None, *, stream=None)\n--\n\n" \
	"Copy contents from a GPU, from byte offset on, into the guard to, on this GPU or\n" \
	"another. nbytes: by default all bytes from offset on. stream: as copy_from_host.\n" \
	"Raises as copy_to_host."
#define XP_DOC_guard_wait \
	"wait($self, timeout=None)\n--\n\n" \
	"Wait in this thread until contents on a GPU are complete.\n" \
	"timeout: seconds; None: for ever, 0: only look.\n" \
	"Raises WouldBlock, TimedOut, OwnerDead, Canceled, HostGone, Error (EIO, EMEDIUMTYPE)."
#define XP_DOC_guard_wait_on \
	"wait_on($self, stream)\n--\n\n" \
	"Let a stream wait until the contents are complete; 0: the default stream.\n" \
	"Raises OwnerDead, NoDevice, Error (EIO, EMEDIUMTYPE), Released."
#define XP_DOC_guard_cuda_tensor_view \
	"_cuda_tensor_view($self)\n--\n\n" \
	"Get (address, number of the type, shape, strides in bytes) of a tensor on a GPU.\n" \
	"Raises Error (ENODATA, EBADMSG, ERANGE), and as cuda_ptr."
#define XP_DOC_guard_cuda_image_view \
	"_cuda_image_view($self)\n--\n\n" \
	"Get (format, width, height, planes) of an image on a GPU; a plane is (address,\n" \
	"bytes from row to row, bytes of a row, rows). Raises as cuda_tensor_view."

/* ---- interfaces of others ---- */

#define XP_DOC_guard_copy_from \
	"_copy_from($self, source, offset=0, dtype=0)\n--\n\n" \
	"Copy the elements of an array, buffer, tensor of DLPack or guard into this guard,\n" \
	"which is being written, from byte offset on; the elements lie dense there. Returns the\n" \
	"number of bytes. dtype: the number of the elements' type, if a buffer lends them under\n" \
	"another type.\n" \
	"Raises Error (ERANGE: beyond nbytes), TypeError (elements of another type), ValueError\n" \
	"(another shape), BufferError (on a GPU), NotPermitted of a guard for reading,\n" \
	"Released."
#define XP_DOC_guard_tobytes \
	"_tobytes($self)\n--\n\n" \
	"Get a copy of all elements, dense, the last index varying fastest.\n" \
	"Raises BufferError on a GPU, Released."
#define XP_DOC_guard_span \
	"_span($self)\n--\n\n" \
	"Get an object whose buffer is the bytes from the first element on. The object keeps\n" \
	"the contents. Raises Error (EMEDIUMTYPE: on a GPU), Released."
#define XP_DOC_guard_dlpack \
	"__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n" \
	"Make a capsule of DLPack that holds the contents, uncopied unless copy is true, or\n" \
	"unless dl_device asks for the CPU and the contents are on a GPU. max_version: (major,\n" \
	"minor) that the consumer knows. stream: the stream that will use contents on a GPU, as\n" \
	"DLPack counts.\n" \
	"Contents on the CPU that are for reading are private memory of the capsule: it is\n" \
	"marked as read-only, and if the consumer writes there anyway, nobody else sees it.\n" \
	"The consumer owns the capsule. Raises BufferError if DLPack cannot describe the\n" \
	"contents, OwnerDead, Released."
#define XP_DOC_guard_dlpack_device \
	"__dlpack_device__($self)\n--\n\n" \
	"Get the device of the contents: DLPack's type of device, and its number. Raises\n" \
	"Released."
#define XP_DOC_guard_arrow_schema \
	"__arrow_c_schema__($self)\n--\n\n" \
	"Make a capsule with Arrow's type of the contents, which the consumer owns.\n" \
	"Raises TypeError if Arrow has none, Released."
#define XP_DOC_guard_arrow_array \
	"__arrow_c_array__($self, requested_schema=None)\n--\n\n" \
	"Make two capsules of Arrow, type and array, that hold the contents, uncopied. The\n" \
	"consumer owns them. requested_schema is ignored.\n" \
	"Raises TypeError if Arrow has no such type, or of contents on a GPU, NotPermitted of\n" \
	"contents that are being written, Released."
#define XP_DOC_guard_arrow_device_array \
	"__arrow_c_device_array__($self, requested_schema=None, **kwargs)\n--\n\n" \
	"Make two capsules of Arrow as __arrow_c_array__ does, with the device of the contents.\n" \
	"This waits for contents on a GPU.\n" \
	"Raises NotImplementedError of unknown keywords."
#define XP_DOC_guard_array_interface \
	"numpy's array interface, version 3, of contents on the CPU; its data keeps them.\n" \
	"Raises AttributeError of types that numpy does not have; Error (EMEDIUMTYPE: on a\n" \
	"GPU), and as shape."
#define XP_DOC_guard_cuda_array_interface \
	"numba's and CuPy's interface, version 3, of contents on a GPU. Its consumer keeps this\n" \
	"object, and so the buffer, also if the guard is released meanwhile. Raises\n" \
	"AttributeError of contents on the CPU and of types that the interface does not have;\n" \
	"as cuda_ptr."

/* ---- attributes ---- */

#define XP_DOC_guard_token \
	"The number that names these contents for ever, in any process: 65536 or more. 0 while\n" \
	"they are being written."
#define XP_DOC_guard_meta_index \
	"The number of the slot in the pool, from 0 to 65535, also while the contents are being\n" \
	"written."
#define XP_DOC_guard_nbytes \
	"Bytes of the contents. While they are being written, as many as were acquired; 0 if\n" \
	"they are a tensor without elements."
#define XP_DOC_guard_capacity \
	"Bytes of the whole buffer."
#define XP_DOC_guard_sequence \
	"The publisher's number of this publication."
#define XP_DOC_guard_timestamp_ns \
	"The time given to publish(), in nanoseconds of CLOCK_MONOTONIC; 0: none was given. The\n" \
	"time of describe_time() is another one: metadata.timestamp_ns."
#define XP_DOC_guard_flags \
	"Properties of the memory, as a number: flags of xmem.BufferFlags."
#define XP_DOC_guard_publisher \
	"The client that published the contents, or is writing them. Raises NotFound if they\n" \
	"were not received by a subscription, and it has ended long ago."
#define XP_DOC_guard_publisher_label \
	"The label of that client. Raises NotFound if it has ended, and the label is not known\n" \
	"any more."
#define XP_DOC_guard_readonly \
	"Is it for reading, and not being written?"
#define XP_DOC_guard_gone \
	"Has it been released, published without keep, or forgotten? Raises nothing."
#define XP_DOC_guard_pool \
	"The pool that it came from. Raises nothing."
#define XP_DOC_guard_cpu_ptr \
	"The address of the contents in this process, as long as the guard holds them.\n" \
	"Raises Error (EMEDIUMTYPE: they are on a GPU)."
#define XP_DOC_guard_shape \
	"Elements in each dimension; bytes, if the contents are not described.\n" \
	"Raises Error (EBADMSG, ERANGE) if the description is impossible."
#define XP_DOC_guard_strides \
	"Bytes from one element to the next, in each dimension. Raises as shape."
#define XP_DOC_guard_dtype_number \
	"The number of the elements' type (xmem.dtypes); 0: it is not described. Raises as\n" \
	"shape."
#define XP_DOC_guard_metadata \
	"The publisher's description of the contents, as a Metadata, which is a copy.\n" \
	"Raises Error (ENODATA, ERANGE) if it lies outside the buffer."
#define XP_DOC_guard_is_cuda \
	"Is it on a GPU?"
#define XP_DOC_guard_cuda_ptr \
	"The device address of the contents, for reading. The first look opens the memory, and\n" \
	"waits until the contents are complete, unless wait_on() has ordered that.\n" \
	"Raises OwnerDead, NotPermitted where only writers get the memory, NoDevice, Error\n" \
	"(EMEDIUMTYPE: they are on the CPU)."
#define XP_DOC_guard_cuda_ptr_mut \
	"The device address of the contents, for writing. Raises as cuda_ptr, and NotPermitted\n" \
	"of a guard for reading."
#define XP_DOC_guard_device_id \
	"The number of its GPU in this process. Raises Error (EMEDIUMTYPE: it is on the CPU),\n" \
	"NoDevice if this process does not see the GPU."

#endif
