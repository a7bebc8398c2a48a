/* SPDX-License-Identifier: MIT */
/*
 * The docstrings of Guard, as those of doc.h are. An attribute of a guard that is gone raises
 * Released, where nothing else is said.
 */
#ifndef XP_DOC_GUARD_H
#define XP_DOC_GUARD_H

/* ---- the handle, and what is said of contents ---- */

#define XP_DOC_guard_release \
	"release($self, *, stream=None)\n--\n\n" \
	"Drop the handle. Views of the contents keep the buffer until they go.\n" \
	"What is being written is thrown away. stream: the buffer is held until that has done\n" \
	"what is in it. Raises Released, Error (EBUSY: another thread is publishing it);\n" \
	"with a stream NotPermitted of what is being written."
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
	"follow this one, WouldBlock, TimedOut, Canceled, NotPermitted, Error (ERANGE), Released."
#define XP_DOC_guard_forward \
	"forward($self, *, keep=False, timestamp_ns=0, offset=0, length=0, timeout=None)\n--\n\n" \
	"Publish received contents once more, to this client's subscribers, uncopied.\n" \
	"The token, which is the same, is returned. timeout: seconds to wait for room.\n" \
	"Raises NotPermitted of a reader, or while it is written, WouldBlock, TimedOut,\n" \
	"Canceled, Error (ERANGE), Released."
#define XP_DOC_guard_get_mut \
	"get_mut($self)\n--\n\n" \
	"Write received contents of shared memory in place: the only holder becomes\n" \
	"their writer. Returns the guard itself.\n" \
	"Raises Error (EBUSY: somebody else has them, or views are alive; EOPNOTSUPP: they are\n" \
	"not shared), NotPermitted, WouldBlock, Released."
#define XP_DOC_guard_forget \
	"forget($self)\n--\n\n" \
	"Drop the handle and leave its reference for the next get() of the buffer. If the\n" \
	"contents are being written, this completes them. Raises Error (ERANGE), Released."
#define XP_DOC_guard_set_ref_count \
	"set_ref_count($self, count, lasts=10.0)\n--\n\n" \
	"Complete the contents, and say how many references they have: this guard's\n" \
	"and count - 1 that are set aside. lasts: seconds that these stay so; None: for ever;\n" \
	"more than 60 is for the owner. Raises Error (ERANGE, EBUSY), NotPermitted, ValueError,\n" \
	"Released."
#define XP_DOC_guard_offer \
	"offer($self, more=1, lasts=10.0)\n--\n\n" \
	"Set further references of a held buffer aside. lasts: as in set_ref_count. All\n" \
	"that is set aside of a buffer has one time, the longest that was asked for: also by\n" \
	"pickling, which asks for in_flight of the pool.\n" \
	"Raises NotPermitted while it is written, or if the time is too long; Error (ERANGE),\n" \
	"Released."
#define XP_DOC_guard_describe_tensor \
	"describe_tensor($self, dtype, shape, strides=None)\n--\n\n" \
	"Say that the contents are a tensor, from their first byte on, in place of all that was\n" \
	"said before. dtype: the number of the elements' type (describe takes a name); shape:\n" \
	"elements in each dimension; strides: bytes to the next one in each, None: dense.\n" \
	"Raises Error (EINVAL, ERANGE), NotPermitted, BufferError if there are views, Released."
#define XP_DOC_guard_describe_image \
	"describe_image($self, format, width, height, stride=0)\n--\n\n" \
	"Say that the contents are an image, from their first byte on, in place of all that was\n" \
	"said before. format: of xmem.ImageFormat; width, height: pixels; stride: bytes from\n" \
	"one row to the next in the first plane; 0: no gap. Raises as describe_tensor."
#define XP_DOC_guard_describe_content \
	"describe_content($self, content_type=None, producer=None)\n--\n\n" \
	"Say what the contents are and who made them, at most 31 bytes each.\n" \
	"Raises Error (EINVAL, ERANGE), NotPermitted, Released."
#define XP_DOC_guard_describe_time \
	"describe_time($self, timestamp_ns, clock=None)\n--\n\n" \
	"Say when the contents were made, by which clock (at most 23 bytes): readers find it in\n" \
	"metadata. The guard's timestamp_ns is another: that of publish().\n" \
	"Raises Error (EINVAL, ERANGE), NotPermitted, Released."

#define XP_DOC_guard_describe_user \
	"describe_user($self, *, id=None, user=None)\n--\n\n" \
	"Set the id of the contents and the words of the program's own: at most 8\n" \
	"integers of 64 bits; those that are not given become 0. None: as it is.\n" \
	"Raises NotPermitted of contents that are not being written, Released, ValueError."
#define XP_DOC_guard_image_view \
	"_image_view($self)\n--\n\n" \
	"What image() makes an Image of."
#define XP_DOC_plane \
	"One plane of an image: a buffer of rows, columns and, if any, channels.\n\n" \
	"memoryview() and numpy.asarray() view it without a copy, read-only where its guard is\n" \
	"for reading; such views keep the contents as views of the guard do. bytes() copies its\n" \
	"elements without the gaps between rows. In another process it is got from the guard there."

/* ---- on GPUs ---- */

#define XP_DOC_guard_copy_from_host \
	"copy_from_host($self, source, offset=0, *, stream=None)\n--\n\n" \
	"Copy the bytes of a buffer of the CPU into this buffer on a GPU, from byte offset on.\n" \
	"source: has to lie in one row. With a stream it is there when that has got so far,\n" \
	"and the caller keeps source until then.\n" \
	"Raises Error (ERANGE, EMEDIUMTYPE), NotPermitted of what is not written, Released."
#define XP_DOC_guard_copy_to_host \
	"copy_to_host($self, out=None, offset=0, nbytes=None, *, stream=None)\n--\n\n" \
	"Copy contents from a GPU into out, a writable buffer, and return it; nbytes: as\n" \
	"many as out has. Without out: a new memoryview with the contents' shape and type, or\n" \
	"of bytes, if they are a part or Python has no such type. stream: as copy_from_host.\n" \
	"Raises Error (ERANGE, EMEDIUMTYPE), OwnerDead, NotPermitted, Released."
#define XP_DOC_guard_copy_to \
	"copy_to($self, to, to_offset=0, offset=0, nbytes=None, *, stream=None)\n--\n\n" \
	"Copy contents from a GPU, from byte offset on, into the guard to, on this GPU or\n" \
	"another. nbytes: all that follow. stream: as copy_from_host. Raises as copy_to_host."
#define XP_DOC_guard_wait \
	"wait($self, timeout=None)\n--\n\n" \
	"Wait in this thread until contents on a GPU are complete.\n" \
	"timeout: seconds; None: for ever, 0: only look.\n" \
	"Raises WouldBlock, TimedOut, OwnerDead, Canceled, HostGone, Error (EIO, EMEDIUMTYPE)."
#define XP_DOC_guard_wait_on \
	"wait_on($self, stream)\n--\n\n" \
	"Let a stream wait until contents are complete; 0: the default stream.\n" \
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
	"Copy what an array, buffer, tensor of DLPack or guard has into this guard, which is\n" \
	"being written, from its byte offset on; the elements lie dense there. Returns bytes.\n" \
	"dtype: the number of their type, if a buffer lends them under another one.\n" \
	"Raises Error (ERANGE: beyond nbytes), TypeError (elements of another type), ValueError\n" \
	"(another shape), BufferError (on a GPU), NotPermitted of a guard for reading, Released."
#define XP_DOC_guard_tobytes \
	"_tobytes($self)\n--\n\n" \
	"Get a copy of all elements, dense, the last index varying fastest.\n" \
	"Raises BufferError on a GPU, Released."
#define XP_DOC_guard_span \
	"_span($self)\n--\n\n" \
	"Get an object whose buffer is the bytes from the first element on, and which keeps\n" \
	"them. Raises Error (EMEDIUMTYPE: on a GPU), Released."
#define XP_DOC_guard_dlpack \
	"__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n" \
	"Make a capsule of DLPack that holds the contents, uncopied unless copy is true or\n" \
	"dl_device says the CPU of contents on a GPU. max_version: (major, minor) that the\n" \
	"consumer knows. stream: where it will use contents of a GPU, as DLPack counts.\n" \
	"Contents on the CPU that are for reading are private memory of the capsule: it is\n" \
	"said to be read-only, and what is stored there nevertheless is seen by nobody else.\n" \
	"The consumer owns it. Raises BufferError of what cannot be said so, OwnerDead, Released."
#define XP_DOC_guard_dlpack_device \
	"__dlpack_device__($self)\n--\n\n" \
	"Get where the contents are: DLPack's type of device, and its number. Raises Released."
#define XP_DOC_guard_arrow_schema \
	"__arrow_c_schema__($self)\n--\n\n" \
	"Make a capsule with Arrow's type of the contents, which the consumer owns.\n" \
	"Raises TypeError if Arrow has none, Released."
#define XP_DOC_guard_arrow_array \
	"__arrow_c_array__($self, requested_schema=None)\n--\n\n" \
	"Make two capsules of Arrow, type and array, that hold the contents, uncopied. The\n" \
	"consumer owns them. requested_schema is not looked at.\n" \
	"Raises TypeError if Arrow has no such type, or of contents on a GPU, NotPermitted of\n" \
	"what is being written, Released."
#define XP_DOC_guard_arrow_device_array \
	"__arrow_c_device_array__($self, requested_schema=None, **kwargs)\n--\n\n" \
	"The same, with the device that the contents are on; those of a GPU are waited for.\n" \
	"Raises NotImplementedError of keywords that it does not know."
#define XP_DOC_guard_array_interface \
	"numpy's array interface, version 3, of contents on the CPU; its data keeps them.\n" \
	"Raises AttributeError of types that numpy has not; Error (EMEDIUMTYPE: on a GPU), and\n" \
	"as shape."
#define XP_DOC_guard_cuda_array_interface \
	"numba's and CuPy's interface, version 3, of contents on a GPU. Who has it keeps this\n" \
	"object, and with it the buffer, also when the guard is released meanwhile. Raises\n" \
	"AttributeError of contents on the CPU and of types that it has not; as cuda_ptr."

/* ---- attributes ---- */

#define XP_DOC_guard_token \
	"The number that names these contents for ever, in any process: 65536 or more. 0 while\n" \
	"they are being written."
#define XP_DOC_guard_meta_index \
	"The number of the slot in the pool, from 0 to 65535, also while it is being written."
#define XP_DOC_guard_nbytes \
	"Bytes of contents: while it is being written as many as were acquired; 0 if they are\n" \
	"a tensor without elements."
#define XP_DOC_guard_capacity \
	"Bytes of the whole buffer."
#define XP_DOC_guard_sequence \
	"Its publisher's number of the publication."
#define XP_DOC_guard_timestamp_ns \
	"What publish() was told: nanoseconds of CLOCK_MONOTONIC; 0: not said. What\n" \
	"describe_time() says of the contents is another: metadata.timestamp_ns."
#define XP_DOC_guard_flags \
	"What the memory is like, as a number: of xmem.BufferFlags."
#define XP_DOC_guard_publisher \
	"The client that published the contents, or has them to write into. Raises NotFound if\n" \
	"they were not received, and it has ended long ago."
#define XP_DOC_guard_publisher_label \
	"What that client calls itself. Raises NotFound if it has ended, and nobody knows it."
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
	"Elements in each dimension; bytes, if nobody has said what the contents are.\n" \
	"Raises Error (EBADMSG, ERANGE) if what is said is impossible."
#define XP_DOC_guard_strides \
	"Bytes from one element to the next, in each dimension. Raises as shape."
#define XP_DOC_guard_dtype_number \
	"The number of the elements' type (xmem.dtypes); 0: nobody has said it. Raises as shape."
#define XP_DOC_guard_metadata \
	"What the publisher says of the contents, as a Metadata, which is a copy.\n" \
	"Raises Error (ENODATA, ERANGE) if that lies outside of the buffer."
#define XP_DOC_guard_is_cuda \
	"Is it on a GPU?"
#define XP_DOC_guard_cuda_ptr \
	"The device address of the contents, for reading. The first look opens the memory, and\n" \
	"waits until the contents are complete unless wait_on() has ordered that.\n" \
	"Raises OwnerDead, NotPermitted where only writers get them, NoDevice,\n" \
	"Error (EMEDIUMTYPE: they are on the CPU)."
#define XP_DOC_guard_cuda_ptr_mut \
	"The same, for writing. Raises also NotPermitted of a guard for reading."
#define XP_DOC_guard_device_id \
	"The number of its GPU in this process. Raises Error (EMEDIUMTYPE: it is on the CPU),\n" \
	"NoDevice if this process does not see it."

#endif
