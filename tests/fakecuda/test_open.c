// SPDX-License-Identifier: MIT
/* Legacy memory that an importer has open: counts, contexts, devices, deaths. Rules 18 to 28. */
#include "test.h"

struct offer {
	CUipcMemHandle handle[2];
	CUdeviceptr ptr[2];
};

/*
 * The exporter of these tests has two neighbours. It writes 11 and 22 into them, and then obeys:
 * 'f' frees the first one, 'r' reads it back, 'x' ends.
 */
static void serve(int fd)
{
	struct offer offer;
	char what;

	begin();
	for (int i = 0; i < 2; i++) {
		offer.ptr[i] = allocate(4096);
		OK(cuIpcGetMemHandle(&offer.handle[i], offer.ptr[i]));
		OK(cuMemsetD8_v2(offer.ptr[i], 11 * (i + 1), 4096));
	}
	give(fd, &offer, sizeof(offer));
	for (take(fd, &what, 1); what != 'x'; take(fd, &what, 1)) {
		if (what == 'f')
			OK(cuMemFree_v2(offer.ptr[0]));
		else
			what = byte_at(offer.ptr[0]);
		give(fd, &what, 1);
	}
}

static struct other server(struct offer *offer)
{
	struct other other = other_start(serve);

	begin();
	take(other.fd, offer, sizeof(*offer));
	return other;
}

static int tell(struct other *other, char what)
{
	unsigned char answer;

	give(other->fd, &what, 1);
	take(other->fd, &answer, 1);
	return answer;
}

static void end(struct other *other)
{
	give(other->fd, "x", 1);
	other_end(other);
}

static CUdeviceptr open_one(const struct offer *offer, int i)
{
	CUdeviceptr ptr = 0;

	OK(cuIpcOpenMemHandle_v2(&ptr, offer->handle[i], 1));
	return ptr;
}

START_TEST(both_see_the_same_block)
{
	struct offer offer;
	struct other other = server(&offer);
	CUdeviceptr a = open_one(&offer, 0), b = open_one(&offer, 1), base;
	size_t offset = offer.ptr[1] - offer.ptr[0];

	/* The importer gets the block, and must be told where in it its memory is. */
	ck_assert_uint_eq(a, b);
	ck_assert(a != offer.ptr[0]);
	OK(cuMemGetAddressRange_v2(&base, NULL, a + offset));
	ck_assert_uint_eq(base, a);
	ck_assert_int_eq(byte_at(a), 11);
	ck_assert_int_eq(byte_at(a + offset), 22);
	OK(cuMemsetD8_v2(a, 33, 1));
	ck_assert_int_eq(tell(&other, 'r'), 33);
	OK(cuIpcCloseMemHandle(a));
	OK(cuIpcCloseMemHandle(a));
	end(&other);
}
END_TEST

START_TEST(both_may_speak_of_the_allocation)
{
	struct offer offer;
	struct other other = server(&offer);
	CUdeviceptr ptr;

	option("RANGE", "allocation");
	ptr = open_one(&offer, 1);
	ck_assert_int_eq(byte_at(ptr), 22);
	GIVES(FK_INVALID_VALUE, cuIpcCloseMemHandle(ptr - 4096));
	OK(cuIpcCloseMemHandle(ptr));
	end(&other);
}
END_TEST

START_TEST(opens_are_counted)
{
	struct offer offer;
	struct other other = server(&offer);
	CUdeviceptr ptr = open_one(&offer, 0);

	ck_assert_uint_eq(open_one(&offer, 0), ptr);
	GIVES(FK_INVALID_VALUE, cuIpcCloseMemHandle(ptr + 1));
	OK(cuIpcCloseMemHandle(ptr));
	ck_assert_int_eq(byte_at(ptr), 11);
	OK(cuIpcCloseMemHandle(ptr));
	GIVES(FK_INVALID_VALUE, cuIpcCloseMemHandle(ptr));
	GIVES(FK_INVALID_VALUE, cuMemsetD8_v2(ptr, 0, 1));
	GIVES(FK_INVALID_VALUE, cuIpcCloseMemHandle(allocate(1)));
	end(&other);
}
END_TEST

START_TEST(an_old_driver_opens_once)
{
	struct offer offer;
	struct other other = server(&offer);
	CUdeviceptr ptr = open_one(&offer, 0);

	option("REOPEN", "208");
	GIVES(FK_ALREADY_MAPPED, cuIpcOpenMemHandle_v2(&ptr, offer.handle[0], 1));
	OK(cuIpcCloseMemHandle(ptr));
	OK(cuIpcCloseMemHandle(open_one(&offer, 0)));
	end(&other);
}
END_TEST

START_TEST(one_context_of_a_device_opens)
{
	struct offer offer;
	struct other other = server(&offer);
	CUdeviceptr ptr = open_one(&offer, 0);
	CUcontext context;

	OK(cuCtxCreate_v2(&context, 0, 0));
	GIVES(FK_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&ptr, offer.handle[1], 1));
	OK(cuCtxDestroy_v2(context));
	OK(cuIpcCloseMemHandle(ptr));
	end(&other);
}
END_TEST

START_TEST(imported_memory_is_not_freed)
{
	struct offer offer;
	struct other other = server(&offer);
	CUdeviceptr ptr = open_one(&offer, 0);

	GIVES(FK_INVALID_VALUE, cuMemFree_v2(ptr));
	ck_assert_int_eq(take_violations("which cuIpcOpenMemHandle gave"), 1);
	OK(cuIpcCloseMemHandle(ptr));
	end(&other);
}
END_TEST

START_TEST(freeing_what_is_open_is_a_violation)
{
	struct offer offer;
	struct other other = server(&offer);
	CUdeviceptr ptr = open_one(&offer, 0);

	tell(&other, 'f');
	ck_assert_int_eq(take_violations("1 process(es) have open"), 1);
	ck_assert_int_eq(byte_at(ptr), 11);
	OK(cuIpcCloseMemHandle(ptr));
	end(&other);
}
END_TEST

START_TEST(freed_memory_may_be_poisoned)
{
	struct offer offer;
	struct other other;
	CUdeviceptr ptr;

	option("FREE_OPEN", "poison");
	other = server(&offer);
	ptr = open_one(&offer, 0);
	tell(&other, 'f');
	ck_assert_int_eq(take_violations("have open"), 1);
	ck_assert_int_eq(byte_at(ptr), 0xdb);
	end(&other);
}
END_TEST

START_TEST(freeing_after_the_close_is_none)
{
	struct offer offer;
	struct other other = server(&offer);
	CUdeviceptr ptr = open_one(&offer, 0);

	open_one(&offer, 1);
	OK(cuIpcCloseMemHandle(ptr));	/* the first or the second: this is undecided */
	tell(&other, 'f');
	ck_assert_int_eq(byte_at(ptr + 4096), 22);
	OK(cuIpcCloseMemHandle(ptr));
	end(&other);
}
END_TEST

static struct offer of_server;

static void open_and_wait(int fd)
{
	begin();
	open_one(&of_server, 0);
	go(fd);
	await(fd);
}

START_TEST(an_importer_may_die)
{
	struct other exporter = other_start(serve), importer;

	take(exporter.fd, &of_server, sizeof(of_server));
	importer = other_start(open_and_wait);
	await(importer.fd);
	other_kill(&importer);
	tell(&exporter, 'f');
	ck_assert_int_eq(take_violations(""), 0);
	end(&exporter);
}
END_TEST

START_TEST(the_exporter_may_die)
{
	struct offer offer;
	struct other other = server(&offer);
	CUdeviceptr ptr = open_one(&offer, 0);

	other_kill(&other);
	ck_assert_int_eq(byte_at(ptr), 11);
	option("EXPORTER_DEATH", "fault");
	GIVES(FK_ILLEGAL_ADDRESS, cuMemsetD8_v2(ptr, 0, 1));
	OK(cuIpcCloseMemHandle(ptr));
}
END_TEST

START_TEST(a_hidden_device_can_be_opened)
{
	struct offer offer;
	struct other other;

	option("DEVICES", "2");
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	other = other_start(serve);
	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	begin();
	take(other.fd, &offer, sizeof(offer));
	ck_assert_int_eq(byte_at(open_one(&offer, 0)), 11);
	end(&other);
}
END_TEST

START_TEST(a_device_that_is_no_peer_cannot_open)
{
	struct offer offer;
	struct other other;
	CUdeviceptr ptr;

	option("DEVICES", "2");
	option("PEERS", "none");
	other = server(&offer);
	use_device(1);
	GIVES(FK_PEER_ACCESS_UNSUPPORTED, cuIpcOpenMemHandle_v2(&ptr, offer.handle[0], 1));
	option("NO_PEER", "1");
	GIVES(FK_INVALID_VALUE, cuIpcOpenMemHandle_v2(&ptr, offer.handle[0], 1));
	option("PEERS", "0-1");
	option("MAX_PEERS", "0");
	GIVES(FK_TOO_MANY_PEERS, cuIpcOpenMemHandle_v2(&ptr, offer.handle[0], 1));
	end(&other);
}
END_TEST

TCase *open_tests(void)
{
	TCase *tcase = tcase_create("open");

	tcase_add_test(tcase, both_see_the_same_block);
	tcase_add_test(tcase, both_may_speak_of_the_allocation);
	tcase_add_test(tcase, opens_are_counted);
	tcase_add_test(tcase, an_old_driver_opens_once);
	tcase_add_test(tcase, one_context_of_a_device_opens);
	tcase_add_test(tcase, imported_memory_is_not_freed);
	tcase_add_test(tcase, freeing_what_is_open_is_a_violation);
	tcase_add_test(tcase, freed_memory_may_be_poisoned);
	tcase_add_test(tcase, freeing_after_the_close_is_none);
	tcase_add_test(tcase, an_importer_may_die);
	tcase_add_test(tcase, the_exporter_may_die);
	tcase_add_test(tcase, a_hidden_device_can_be_opened);
	tcase_add_test(tcase, a_device_that_is_no_peer_cannot_open);
	return tcase;
}
