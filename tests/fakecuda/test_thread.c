// SPDX-License-Identifier: MIT
/* Many threads, and importers that are killed at any moment. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "test.h"

#define THREADS 4
#define ROUNDS 200

static CUcontext shared_context;

/* The memory that one thread writes does not change, whatever the others map and unmap. */
static void *churn(void *arg)
{
	unsigned char mine = (uintptr_t)arg;
	CUhandle handle;
	CUdeviceptr a, b;

	OK(cuCtxSetCurrent(shared_context));
	for (int i = 0; i < ROUNDS; i++) {
		a = allocate(1 + 4096 * (i % 7));
		handle = create(BLOCK);
		b = map(handle, BLOCK);
		OK(cuMemsetD8_v2(a, mine, 1));
		OK(cuMemcpyDtoD_v2(b + BLOCK - 1, a, 1));
		ck_assert_int_eq(byte_at(b + BLOCK - 1), mine);
		ck_assert_int_eq(byte_at(a), mine);
		OK(cuMemFree_v2(a));
		OK(cuMemRelease(handle));
		unmap(b, BLOCK);
	}
	return NULL;
}

START_TEST(threads_do_not_meet)
{
	pthread_t thread[THREADS];

	begin();
	OK(cuCtxGetCurrent(&shared_context));
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, churn, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	ck_assert_uint_eq(cuFakeUsed(0), 0);
}
END_TEST

static CUipcMemHandle offered;

static void open_for_ever(int fd)
{
	CUdeviceptr ptr;

	begin();
	go(fd);
	for (;;) {
		OK(cuIpcOpenMemHandle_v2(&ptr, offered, 1));
		OK(cuIpcCloseMemHandle(ptr));
	}
}

static void export_and_wait(int fd)
{
	CUipcMemHandle handle;
	CUdeviceptr ptr;

	begin();
	ptr = allocate(BLOCK);
	OK(cuIpcGetMemHandle(&handle, ptr));
	give(fd, &handle, sizeof(handle));
	await(fd);
	OK(cuMemFree_v2(ptr));
}

/*
 * Wherever an importer is killed, the exporter may free its memory: a dead importer does not have
 * it open.
 */
START_TEST(importers_may_be_killed_anywhere)
{
	struct other exporter = other_start(export_and_wait), importer;

	take(exporter.fd, &offered, sizeof(offered));
	for (int i = 0; i < 40; i++) {
		importer = other_start(open_for_ever);
		await(importer.fd);
		/* This waits for nothing: the kill hits another place each time. */
		usleep(rand() % 3000);
		other_kill(&importer);
	}
	go(exporter.fd);
	other_end(&exporter);
	ck_assert_int_eq(take_violations(""), 0);
}
END_TEST

TCase *thread_tests(void)
{
	TCase *tcase = tcase_create("thread");

	tcase_add_test(tcase, threads_do_not_meet);
	tcase_add_test(tcase, importers_may_be_killed_anywhere);
	return tcase;
}
