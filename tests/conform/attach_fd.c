// SPDX-License-Identifier: MIT
/*
 * xmem_attach_fd: files of other programs become buffers for one content each. The promises for
 * other buffers hold for these, a wrong file is refused with the reason, and the file is closed
 * after its last user.
 */
#include <fcntl.h>
#include <linux/memfd.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "attached.h"

#define BYTES	ATTACHED_BYTES

TEST(P1_an_attached_file_is_published_without_a_copy)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, 64), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_buffer *b = attach_stamp(writer, 7), *got;
	uint64_t token;

	SAME(xmem_size(b), BYTES);
	SAME(xmem_capacity(b), BYTES);
	SAME(info_of(b).flags, XMEM_BUFFER_ATTACHED | XMEM_BUFFER_CONSTANT);
	SAME(*(const uint64_t *)xmem_data(b), 7);
	REFUSED(xmem_data_mut(b), EPERM);
	REFUSED(xmem_clone(b), EPERM);
	xmem_metadata_mut(b)->user[0] = 5;
	WORKED(xmem_publish(b, NULL, &token));

	got = receive_one(s);
	SAME(stamp_of(got), 7);
	SAME(xmem_token(got), token);
	SAME(info_of(got).publisher, xmem_pool_client(writer));
	SAME(xmem_metadata_ptr(got)->user[0], 5);
	SAME(info_of(got).flags, XMEM_BUFFER_ATTACHED | XMEM_BUFFER_CONSTANT);
	REFUSED(xmem_data_mut(got), EPERM);
	SAME(stat_of(writer).payloads, 2);
	xmem_release(got);
	/* No client uses it. The stat finds that out and drops the file. */
	EVENTUALLY(stat_of(writer).payloads == 1);
	REFUSED(xmem_get(reader, token), ESTALE);
	SAME(stat_of(writer).attached, 1);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

/* A reader can open a memfd again for writing, and could seal it for its owner. */
TEST(P1_no_reader_seals_an_attached_file)
{
	struct xmem_payload_request ask = { .size = sizeof(ask) };
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, 64);
	int file = new_memfd(BYTES, GOOD_SEALS), again;
	struct xmem_buffer *b = xmem_attach_fd(writer, file, 0, 0, 0);
	struct raw raw;
	char path[64];

	CHECK(b);
	raw_start(&raw, name, XMEM_ROLE_READER);
	ask.payload = xm_load(&xm_slot_row(&raw.map, xmem_slot(b))->payload);
	SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &ask), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ask.fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	CHECK(again >= 0);
	CHECK(fcntl(again, F_ADD_SEALS, F_SEAL_WRITE) && errno == EPERM);
	SAME(fcntl(file, F_GET_SEALS), GOOD_SEALS | F_SEAL_SEAL);
	close(again);
	close(ask.fd);
	close(file);
	raw_close(&raw);
	xmem_release(b);
	xmem_pool_close(writer);
}

#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC	0x0020
#endif

static uint32_t traits_of(struct raw *raw, int file)
{
	struct xmem_attach_request attached;

	SAME(raw_attach(raw, file, 1, &attached), 0);
	return xm_load(&xm_slot_row(&raw->map, attached.slot[0])->traits);
}

/*
 * Some kernels from Linux 6.3 on let F_SEAL_EXEC imply F_SEAL_WRITE although the file is mapped for
 * writing. Others refuse it with EBUSY, until the mapping has gone.
 */
TEST(P1_a_file_that_is_still_written_is_not_constant)
{
	int file = memfd_create("conform", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	bool early;
	char *start;
	struct raw raw;

	kernel_only("the daemon cannot see which processes have mapped a file");
	CHECK(!ftruncate(file, BYTES) && !fchmod(file, 0700));
	start = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	CHECK(start != MAP_FAILED);
	memset(start, 1, BYTES);
	early = !fcntl(file, F_ADD_SEALS, F_SEAL_EXEC);
	if (!early && errno == EINVAL)
		skip("this kernel has no F_SEAL_EXEC");
	CHECK(early || errno == EBUSY);
	SAME(fcntl(file, F_ADD_SEALS, early ? 0 : GOOD_SEALS), 0);
	start[0] = 2;
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	CHECK(!(traits_of(&raw, file) & XMEM_TRAIT_CONSTANT));
	CHECK(!munmap(start, BYTES));
	SAME(fcntl(file, F_ADD_SEALS, F_SEAL_EXEC), 0);
	CHECK(traits_of(&raw, file) & XMEM_TRAIT_CONSTANT);
	close(file);
	raw_close(&raw);
}

/* Attach a part of a file, and publish a part of that buffer. */
TEST(P1_a_part_of_a_file_is_attached)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	int file = memfd_create("conform", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct xmem_publish_options o = {
		.size = sizeof(o), .flags = XMEM_PUBLISH_KEEP, .offset = 8, .length = 16,
	};
	struct xmem_buffer *b;
	uint64_t words[32], i;

	for (i = 0; i < 32; i++)
		words[i] = i;
	SAME(write(file, words, sizeof(words)), sizeof(words));
	CHECK(!fcntl(file, F_ADD_SEALS, GOOD_SEALS));
	b = xmem_attach_fd(writer, file, 64, 100, 0);
	CHECK(b);
	SAME(xmem_size(b), 100);
	SAME(info_of(b).flags, XMEM_BUFFER_ATTACHED);	/* its maker may still write it */
	SAME(*(const uint64_t *)xmem_data(b), 8);
	WORKED(xmem_publish(b, &o, NULL));
	SAME(*(const uint64_t *)xmem_data(b), 9);
	SAME(xmem_size(b), 16);
	xmem_release(b);
	EVENTUALLY(stat_of(writer).payloads == 0);
	close(file);
	xmem_pool_close(writer);
}

TEST(P1_attached_contents_stay_while_they_are_held)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_buffer *held;
	unsigned int i;

	WORKED(xmem_publish(attach_stamp(writer, 3), NULL, NULL));
	held = receive_one(s);
	for (i = 0; i < 200; i++)
		publish_stamp(writer, i);
	SAME(stamp_of(held), 3);
	SAME(stat_of(writer).payloads, 2);
	xmem_release(held);
	EVENTUALLY(stat_of(writer).payloads == 1);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P3_an_attached_file_stays_until_a_subscriber_has_it)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_buffer *got;
	unsigned int i;

	for (i = 0; i < 5; i++)
		WORKED(xmem_publish(attach_stamp(writer, i), NULL, NULL));
	SAME(stat_of(writer).payloads, 5);
	for (i = 0; i < 5; i++) {
		got = receive_one(s);
		SAME(stamp_of(got), i);
		xmem_release(got);
		EVENTUALLY(stat_of(writer).payloads == 4 - i);
	}
	SAME(sub_info(s).lost, 0);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* An acquire never returns such a buffer. */
TEST(P1_no_acquire_gets_an_attached_file)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_buffer *held = publish_and_get(writer, reader, 1), *b;
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct pollfd look = { .fd = xmem_pool_poll_fd(writer), .events = POLLOUT };

	WORKED(look.fd);
	for (b = NULL; !b; xmem_release(b), b = (void *)1)
		b = attach_stamp(writer, 9);
	WORKED(xmem_publish(attach_stamp(writer, 9), NULL, NULL));
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	REFUSED(xmem_acquire(writer, 0, 0), EAGAIN);
	REFUSED(xmem_acquire(writer, BYTES + 1, 0), ENOSPC);
	/* A subscriber may lose it, nobody holds it: an acquire would evict any other buffer. */
	SAME(stat_of(writer).payloads, 2);
	SAME(poll(&look, 1, 0), 0);
	xmem_unsubscribe(s);
	EVENTUALLY(stat_of(writer).payloads == 1);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	xmem_release(held);
	b = xmem_acquire(writer, BYTES, 0);
	CHECK(b && xmem_data_mut(b));
	xmem_release(b);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P1_one_that_is_not_published_is_let_go)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	unsigned int i;

	for (i = 0; i < scaled(50); i++)
		xmem_release(attach_stamp(writer, i));
	host_has_served(writer);
	SAME(stat_of(writer).payloads, 0);
	SAME(stat_of(writer).attached, 0);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

/* If no slot is free, subscribers that may lose publications lose the oldest. */
TEST(P10_attached_files_are_evicted_when_slots_run_out)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = 64, .ring = 256);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_buffer *got;
	unsigned int i;

	for (i = 0; i < 70; i++)
		WORKED(xmem_publish(attach_stamp(writer, i), NULL, NULL));
	CHECK(stat_of(writer).payloads <= 64);
	got = receive_one(s);
	CHECK(stamp_of(got) == sub_info(s).lost && sub_info(s).lost >= 6);
	xmem_release(got);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P10_held_files_are_ENOSPC_when_slots_run_out)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = 64);
	struct xmem_buffer *held[64];
	int file = stamped(BYTES, 1, FULL_SEALS);
	unsigned int i, files = open_files();

	for (i = 0; i < 64; i++)
		CHECK((held[i] = xmem_attach_fd(writer, file, 0, 0, 0)));
	REFUSED(xmem_attach_fd(writer, file, 0, 0, 0), ENOSPC);
	for (i = 0; i < 64; i++)
		xmem_release(held[i]);
	held[0] = xmem_attach_fd(writer, file, 0, 0, 0);
	CHECK(held[0]);
	xmem_release(held[0]);
	SAME(open_files(), files);
	close(file);
	xmem_pool_close(writer);
}

/* Like an acquire, an attach does not take what a subscriber is waited for. */
TEST(P3_attach_is_EAGAIN_while_the_ring_is_full)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .ring = 4,
					.wait_bound_ns = 3600 * SECOND);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer),
					     XMEM_SUBSCRIBE_WAITS);
	int file = stamped(BYTES, 1, FULL_SEALS), i;

	for (i = 0; i < 4; i++)
		WORKED(xmem_publish(attach_stamp(writer, i), NULL, NULL));
	REFUSED(xmem_attach_fd(writer, file, 0, 0, 0), EAGAIN);
	SAME(stat_of(writer).payloads, 4);
	xmem_release(receive_one(s));
	WORKED(xmem_publish(attach_stamp(writer, 4), NULL, NULL));
	for (i = 1; i < 5; i++) {
		struct xmem_buffer *b = receive_one(s);

		SAME(stamp_of(b), i);
		xmem_release(b);
	}
	close(file);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- what is wrong ---- */

/* The attach is refused with a message that has @word, and leaves nothing behind. */
static void wrong(struct xmem_pool *writer, int file, uint64_t offset, uint64_t length,
		  uint32_t flags, int error, const char *word)
{
	unsigned int files = open_files();
	const char *message;

	REFUSED(xmem_attach_fd(writer, file, offset, length, flags), error);
	message = last_message();
	if (!strstr(message, word))
		FAIL("'%s' does not contain '%s'", message, word);
	SAME(open_files(), files);
	SAME(stat_of(writer).attached, 0);
}

TEST(P6_a_wrong_file_is_refused_with_its_reason)
{
	struct xmem_pool *writer = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	int good = stamped(BYTES, 1, FULL_SEALS), unsealed = stamped(BYTES, 1, 0);
	int sparse = memfd_create("conform", MFD_CLOEXEC | MFD_ALLOW_SEALING), blind;
	char path[40];

	wrong(writer, good, 0, 0, 1, EINVAL, "flags");
	wrong(writer, good, 0, 0, ~0u, EINVAL, "flags");
	wrong(writer, good, 63, 0, 0, EINVAL, "64");
	wrong(writer, good, 0, BYTES + 1, 0, ERANGE, "end of the file");
	wrong(writer, good, 64, BYTES, 0, ERANGE, "end of the file");
	wrong(writer, good, 64, ~0ULL - 63, 0, ERANGE, "end of the file");
	wrong(writer, good, 0, ~0ULL, 0, ERANGE, "end of the file");
	wrong(writer, good, BYTES, 0, 0, ERANGE, "end of the file");
	wrong(writer, good, ~0ULL - 63, 0, 0, ERANGE, "end of the file");
	wrong(writer, unsealed, 0, 0, 0, ENOEXEC, "F_SEAL_SHRINK F_SEAL_GROW F_SEAL_WRITE");
	CHECK(!fcntl(unsealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE));
	wrong(writer, unsealed, 0, 0, 0, ENOEXEC, "not sealed F_SEAL_GROW, so");
	wrong(writer, -1, 0, 0, 0, EBADF, "-1");
	wrong(writer, 900, 0, 0, 0, EBADF, "900");
	CHECK(sparse >= 0 && !ftruncate(sparse, BYTES) &&
	      !fcntl(sparse, F_ADD_SEALS, FULL_SEALS));
	wrong(writer, sparse, 0, 0, 0, ERANGE, "holes");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", good);
	blind = open(path, O_WRONLY | O_CLOEXEC);
	if (blind >= 0) {	/* older kernels do not open a file sealed with WRITE so */
		wrong(writer, blind, 0, 0, 0, EACCES, "reading");
		close(blind);
	}
	close(sparse);
	close(unsealed);
	close(good);
	xmem_pool_close(writer);
}

/* It is refused for every length. */
static void no_memfd(struct xmem_pool *writer, int file)
{
	CHECK(file >= 0);
	wrong(writer, file, 0, 0, 0, EMEDIUMTYPE, "is not a memfd");
	wrong(writer, file, 0, 64, 0, EMEDIUMTYPE, "is not a memfd");
	wrong(writer, file, 64, 0, 0, EMEDIUMTYPE, "is not a memfd");
	close(file);
}

TEST(P6_what_is_no_memfd_is_refused_as_that)
{
	struct xmem_pool *writer = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	int pipes[2];

	CHECK(!pipe2(pipes, O_CLOEXEC));
	no_memfd(writer, pipes[0]);
	no_memfd(writer, pipes[1]);
	no_memfd(writer, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	no_memfd(writer, open("/dev/null", O_RDWR | O_CLOEXEC));
	no_memfd(writer, open("/dev/zero", O_RDONLY | O_CLOEXEC));
	no_memfd(writer, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	no_memfd(writer, eventfd(1, EFD_CLOEXEC));
	no_memfd(writer, epoll_create1(EPOLL_CLOEXEC));
	no_memfd(writer, open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	xmem_pool_close(writer);
}

/* A descriptor opened with O_PATH gives nobody the contents, whatever file it names. */
TEST(P6_a_descriptor_without_access_is_refused)
{
	struct xmem_pool *writer = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	int good = stamped(BYTES, 1, FULL_SEALS), file, i;
	char memfd[40];
	const char *const paths[] = { memfd, "/dev/null", "/", "/proc/self/exe" };

	snprintf(memfd, sizeof(memfd), "/proc/self/fd/%d", good);
	for (i = 0; i < 4; i++) {
		file = open(paths[i], O_PATH | O_CLOEXEC);
		CHECK(file >= 0);
		wrong(writer, file, 0, 0, 0, EACCES, "O_PATH");
		wrong(writer, file, 0, 64, 0, EACCES, "O_PATH");
		close(file);
	}
	close(good);
	xmem_pool_close(writer);
}

TEST(P6_an_attach_without_the_right_is_refused)
{
	const char *name = new_name();
	struct xmem_pool *reader = open_reader(name);
	int file = stamped(BYTES, 1, FULL_SEALS);

	REFUSED(xmem_attach_fd(reader, file, 0, 0, 0), EPERM);
	REFUSED(xmem_attach_fd(NULL, file, 0, 0, 0), EINVAL);
	close(file);
	xmem_pool_close(reader);
}

/* ---- huge pages ---- */

/* A sealed one of one huge page, with the word @stamp at its end. */
static int new_huge_memfd(uint64_t stamp)
{
	int file = memfd_create("conform", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	size_t bytes = huge_page_size();
	uint64_t *words;

	if (in_vm()) {		/* a machine of our own has some for us */
		int pages = open("/proc/sys/vm/nr_hugepages", O_WRONLY | O_CLOEXEC);

		CHECK(pages >= 0 && write(pages, "4", 1) == 1);
		close(pages);
	}
	if (file < 0 || ftruncate(file, bytes) || posix_fallocate(file, 0, bytes))
		skip("no huge page of %zu bytes is free", bytes);
	words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	CHECK(words != MAP_FAILED);
	words[0] = words[bytes / sizeof(*words) - 1] = stamp;
	munmap(words, bytes);
	CHECK(!fcntl(file, F_ADD_SEALS, FULL_SEALS));
	return file;
}

TEST(P1_a_memfd_in_huge_pages_is_attached)
{
	int file = new_huge_memfd(11);		/* first, because it may skip the test */
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_buffer *b;

	b = xmem_attach_fd(writer, file, 0, 0, 0);
	WORKED(b ? 0 : xmem_peek_last_error(NULL));
	close(file);
	SAME(info_of(b).flags,
	     XMEM_BUFFER_ATTACHED | XMEM_BUFFER_CONSTANT | XMEM_BUFFER_HUGE);
	WORKED(xmem_publish(b, NULL, NULL));
	b = xmem_receive(s, patience_ns());
	CHECK(b);
	SAME(xmem_size(b), huge_page_size());
	SAME(((const uint64_t *)xmem_data(b))[huge_page_size() / sizeof(uint64_t) - 1], 11);
	xmem_release(b);
	EVENTUALLY(stat_of(writer).payloads == 0);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- dma-bufs ---- */

/* As in <drm/drm.h>, which few machines have. */
struct create_dumb {
	uint32_t height, width, bpp, flags, handle, pitch;
	uint64_t size;
};
struct prime {
	uint32_t handle, flags;
	int32_t fd;
};
#define CREATE_DUMB	_IOWR('d', 0xb2, struct create_dumb)
#define HANDLE_TO_FD	_IOWR('d', 0x2d, struct prime)

#define DMABUF	(2 * page_size())	/* bytes; the exporter makes whole pages */

/* A dma-buf of DMABUF whose words all are @stamp, of the kernel's exporter without a device. */
static int new_dmabuf(uint64_t stamp)
{
	struct create_dumb dumb = { .width = DMABUF / 4, .height = 1, .bpp = 32 };
	struct prime prime = { .flags = O_RDWR | O_CLOEXEC };
	uint64_t *words;
	size_t i;
	int card;

	if (in_vm() && access("/dev/dri/card0", F_OK) && system("modprobe vgem"))
		skip("this kernel has no vgem, whose memory can be a dma-buf");
	card = open("/dev/dri/card0", O_RDWR | O_CLOEXEC);
	if (card < 0 || ioctl(card, CREATE_DUMB, &dumb))
		skip("nothing here exports dma-bufs");
	prime.handle = dumb.handle;
	CHECK(!ioctl(card, HANDLE_TO_FD, &prime));
	close(card);
	words = mmap(NULL, DMABUF, PROT_READ | PROT_WRITE, MAP_SHARED, prime.fd, 0);
	CHECK(words != MAP_FAILED);
	for (i = 0; i < DMABUF / sizeof(*words); i++)
		words[i] = stamp;
	munmap(words, DMABUF);
	return prime.fd;
}

TEST(P1_a_dma_buf_is_attached)
{
	int file = new_dmabuf(5);	/* first, because it may skip the test */
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_buffer *b, *got;
	uint64_t *private;

	if (!on_kernel()) {
		wrong(writer, file, 0, 0, 0, EMEDIUMTYPE, "dma-buf");
	} else {
		b = xmem_attach_fd(writer, file, 0, 0, 0);
		WORKED(b ? 0 : xmem_peek_last_error(NULL));
		SAME(info_of(b).flags, XMEM_BUFFER_ATTACHED | XMEM_BUFFER_DMABUF);
		xmem_metadata_mut(b)->id = 5;
		WORKED(xmem_publish(b, NULL, NULL));
		got = receive_one(s);
		SAME(xmem_size(got), DMABUF);
		SAME(stamp_of(got), 5);
		private = xmem_data_private(got);
		CHECK(private && *private == 5);
		*private = 6;
		SAME(stamp_of(got), 5);
		SAME(stat_of(writer).payloads, 1);
		xmem_release(got);
		EVENTUALLY(stat_of(writer).payloads == 0);
	}
	close(file);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* It cannot write by the descriptor that it gets, by opening that again, or by mprotect. */
TEST(P6_no_client_can_write_a_dma_buf)
{
	struct xmem_attach_request attach = {
		.size = sizeof(attach), .stride = DMABUF, .length = DMABUF, .count = 1,
	};
	struct xmem_payload_request payload = { .size = sizeof(payload) };
	struct raw raw;
	char path[40];
	void *map;

	kernel_only("the daemon takes no dma-buf");
	attach.fd = new_dmabuf(5);
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	attach.flags = XMEM_ATTACH_SHARED;
	SAME(raw_request(&raw, XMEM_IOC_ATTACH, &attach), -EMEDIUMTYPE);
	attach.flags = 0;
	attach.length = attach.stride = 2 * DMABUF;
	SAME(raw_request(&raw, XMEM_IOC_ATTACH, &attach), -ERANGE);
	attach.length = attach.stride = DMABUF;
	SAME(raw_request(&raw, XMEM_IOC_ATTACH, &attach), 0);
	close(attach.fd);
	payload.payload = attach.payload;
	payload.flags = XMEM_PAYLOAD_WRITE;
	SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &payload), -EACCES);
	payload.flags = 0;
	SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &payload), 0);
	SAME(payload.bytes, DMABUF);
	CHECK(mmap(NULL, DMABUF, PROT_READ | PROT_WRITE, MAP_SHARED, payload.fd, 0) == MAP_FAILED);
	CHECK(mmap(NULL, DMABUF, PROT_WRITE, MAP_SHARED, payload.fd, 0) == MAP_FAILED);
	CHECK(mmap(NULL, DMABUF, PROT_READ, MAP_PRIVATE, payload.fd, 0) == MAP_FAILED);
	map = mmap(NULL, DMABUF, PROT_READ, MAP_SHARED, payload.fd, 0);
	CHECK(map != MAP_FAILED);
	SAME(*(const uint64_t *)map, 5);
	CHECK(mprotect(map, DMABUF, PROT_READ | PROT_WRITE) < 0 && errno == EACCES);
	CHECK(mprotect(map, DMABUF, PROT_READ | PROT_EXEC) < 0 && errno == EACCES);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", payload.fd);
	CHECK(open(path, O_RDWR | O_CLOEXEC) < 0);
	munmap(map, DMABUF);
	/*
	 * A client can attach the file that it got, and other clients get no wider access by that.
	 */
	attach.fd = payload.fd;
	attach.payload = attach.slot[0] = 0;
	attach.flags = XMEM_ATTACH_SHARED;
	SAME(raw_request(&raw, XMEM_IOC_ATTACH, &attach), -EMEDIUMTYPE);
	attach.flags = 0;
	SAME(raw_request(&raw, XMEM_IOC_ATTACH, &attach), 0);
	close(attach.fd);
	payload.payload = attach.payload;
	payload.flags = XMEM_PAYLOAD_WRITE;
	SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &payload), -EACCES);
	payload.flags = 0;
	SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &payload), 0);
	SAME(payload.bytes, DMABUF);
	SAME(payload.traits, XMEM_TRAIT_DMABUF);
	CHECK(mmap(NULL, DMABUF, PROT_WRITE, MAP_SHARED, payload.fd, 0) == MAP_FAILED);
	map = mmap(NULL, DMABUF, PROT_READ, MAP_SHARED, payload.fd, 0);
	CHECK(map != MAP_FAILED);
	SAME(*(const uint64_t *)map, 5);
	munmap(map, DMABUF);
	close(payload.fd);
	raw_close(&raw);
}

/* ---- deaths ---- */

static void attach_and_die(void *argument)
{
	struct xmem_pool *writer = OPEN(argument, .flags = XMEM_OPEN_WRITER);

	tell_parent(xmem_pool_client(writer));
	hear_parent();
	WORKED(xmem_publish(attach_stamp(writer, 21), NULL, NULL));
	WORKED(xmem_publish(attach_stamp(writer, 22), NULL, NULL));
	attach_stamp(writer, 23);	/* in hand */
	tell_parent(1);
	hear_parent();
}

TEST(P3_attached_files_outlive_who_attached_them)
{
	const char *name = new_name();
	struct xmem_pool *reader = open_reader(name);
	struct child *child = spawn(attach_and_die, (void *)name);
	struct xmem_subscription *s = follow(reader, hear(child), 0);
	struct xmem_buffer *got;

	tell(child, 1);
	hear(child);
	got = receive_one(s);
	kill_child(child);
	SAME(stamp_of(got), 21);
	xmem_release(got);
	got = receive_one(s);
	SAME(stamp_of(got), 22);
	xmem_release(got);
	EVENTUALLY(stat_of(reader).payloads == 0);
	REFUSED(xmem_receive(s, patience_ns()), EPIPE);
	xmem_unsubscribe(s);
	check_quiet(reader, 1);
	xmem_pool_close(reader);
}

static void receive_and_die(void *argument)
{
	struct xmem_pool *reader = open_reader(argument);
	struct xmem_subscription *s = follow(reader, hear_parent(), 0);

	tell_parent(1);
	SAME(stamp_of(receive_one(s)), 31);
	tell_parent(2);
	hear_parent();
}

TEST(P2_a_dead_reader_holds_no_attached_file)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct child *child = spawn(receive_and_die, (void *)name);

	tell(child, xmem_pool_client(writer));
	hear(child);
	WORKED(xmem_publish(attach_stamp(writer, 31), NULL, NULL));
	hear(child);
	SAME(stat_of(writer).payloads, 1);
	kill_child(child);
	EVENTUALLY(stat_of(writer).payloads == 0);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

/* ---- numbers ---- */

TEST(P6_what_reaches_beyond_the_end_is_ERANGE)
{
	static const uint64_t lengths[] = {
		BYTES - 63, BYTES, UINT64_MAX / 2, UINT64_MAX - 63, UINT64_MAX - 10, UINT64_MAX,
	};
	struct xmem_pool *writer = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	int file = stamped(BYTES, 1, FULL_SEALS), zero = open("/proc/self/exe", O_RDONLY);
	const char *why;
	unsigned int i;

	CHECK(zero >= 0);
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		REFUSED(xmem_attach_fd(writer, file, 64, lengths[i], 0), ERANGE);
		why = last_message();
		CHECK(strstr(why, "beyond the end") && strstr(why, "8192"));
		/* A file that is not a memfd is refused for that reason first. */
		REFUSED(xmem_attach_fd(writer, zero, 64, lengths[i], 0), EMEDIUMTYPE);
	}
	REFUSED(xmem_attach_fd(writer, file, BYTES, 64, 0), ERANGE);
	close(zero);
	close(file);
	xmem_pool_close(writer);
}

/* A client that asks for the number of files does not count those that it has let go of. */
TEST(API_stat_counts_no_file_that_is_let_go)
{
	struct xmem_pool *writer, *reader;
	const char *name = new_name();
	struct xmem_publish_options keep = {
		.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
	};
	struct xmem_buffer *b, *got;
	uint64_t token;
	int i;

	interrupt_the_daemon();	/* the daemon serves posts while this process waits for it */
	writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	reader = open_reader(name);
	for (i = 0; i < 20; i++) {
		b = attach_stamp(writer, i);
		WORKED(xmem_publish(b, &keep, &token));
		CHECK((got = xmem_get(reader, token)));
		xmem_release(b);
		SAME(stat_of(writer).attached, 1);
		xmem_release(got);
		SAME(stat_of(writer).attached, 0);
		xmem_release(attach_stamp(writer, i));
		SAME(stat_of(writer).attached, 0);
	}
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}
