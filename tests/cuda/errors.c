// SPDX-License-Identifier: MIT
/*
 * From the driver's results to errors: errno, message, and the thread's last result.
 */
#include <pthread.h>

#include "gpus.h"
#include "xmem/cuda.h"

static const struct {
	CUresult result;
	int error;
	const char *says;
} results[] = {
	{ CUDA_ERROR_INVALID_VALUE, EINVAL, "trying 7: CUDA_ERROR_INVALID_VALUE (1)" },
	{ CUDA_ERROR_OUT_OF_MEMORY, ENOMEM, "trying 7: CUDA_ERROR_OUT_OF_MEMORY (2)" },
	{ CUDA_ERROR_DEINITIALIZED, ESHUTDOWN, "CUDA_ERROR_DEINITIALIZED (4): the driver has" },
	{ CUDA_ERROR_NO_DEVICE, ENODEV, "CUDA_ERROR_NO_DEVICE (100)" },
	{ CUDA_ERROR_INVALID_DEVICE, ENODEV, "CUDA_ERROR_INVALID_DEVICE (101)" },
	{ CUDA_ERROR_INVALID_CONTEXT, EINVAL, "CUDA_ERROR_INVALID_CONTEXT (201)" },
	{ CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, EOPNOTSUPP, "(217)" },
	{ CUDA_ERROR_INVALID_HANDLE, EINVAL, "CUDA_ERROR_INVALID_HANDLE (400)" },
	{ CUDA_ERROR_NOT_READY, EAGAIN, "CUDA_ERROR_NOT_READY (600)" },
	{ CUDA_ERROR_ILLEGAL_ADDRESS, EIO, "(700): the context is lost, so every call" },
	{ CUDA_ERROR_LAUNCH_FAILED, EIO, "(719): the context is lost, so every call" },
	{ CUDA_ERROR_TOO_MANY_PEERS, EUSERS, "(711)" },
	{ CUDA_ERROR_NOT_PERMITTED, EPERM, "CUDA_ERROR_NOT_PERMITTED (800): no call" },
	{ CUDA_ERROR_NOT_SUPPORTED, EOPNOTSUPP, "CUDA_ERROR_NOT_SUPPORTED (801)" },
	{ CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, EPERM, "(906): a stream is being captured" },
	{ CUDA_ERROR_UNKNOWN, EIO, "CUDA_ERROR_UNKNOWN (999)" },
	{ (CUresult)12345, EIO, "trying 7: CUDA_ERROR_OF_THE_FUTURE (12345)" },
	{ (CUresult)54321, EIO, "trying 7: an unknown CUresult (54321)" },
};

TEST(CUDA_each_result_has_its_errno_and_name)
{
	size_t i;

	use_small("whole");
	SAME(xl_cuda_need("a test"), 0);
	for (i = 0; i < sizeof(results) / sizeof(*results); i++) {
		SAME(xl_cuda_fail(results[i].result, "trying %d", 7), -results[i].error);
		SAYS(results[i].error, results[i].says);
		SAME(last_result(), results[i].result);
	}
}

/* A message that is too long loses words about the attempts, and never the result. */
TEST(CUDA_the_result_is_in_every_message)
{
	char much[2 * XL_ERROR_BYTES];

	memset(much, 'm', sizeof(much) - 1);
	much[sizeof(much) - 1] = '\0';
	use_small("whole");
	SAME(xl_cuda_need("a test"), 0);
	SAME(xl_cuda_fail(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "%s", much), -ENODEV);
	SAYS(ENODEV, "mmm: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): libcuda.so.1 and");
}

static void *other_thread(void *argument)
{
	SAME(last_result(), 0);
	xl_cuda_fail(CUDA_ERROR_NOT_READY, "the other thread");
	SAME(last_result(), CUDA_ERROR_NOT_READY);
	xmem_clear_last_error();
	return NULL;
}

TEST(CUDA_each_thread_has_its_last_result)
{
	struct xmem_error error = XMEM_INIT(error);
	pthread_t thread;

	SAME(xmem_get_last_error(&error), 0);
	SAME(error.error + error.cuda_result, 0);
	CHECK(!*error.message && !strcmp(error.cuda_name, "CUDA_SUCCESS"));
	xl_cuda_fail(CUDA_ERROR_OUT_OF_MEMORY, "this thread");
	SAME(pthread_create(&thread, NULL, other_thread, NULL), 0);
	SAME(pthread_join(thread, NULL), 0);
	SAME(xmem_peek_last_error(&error), -ENOMEM);
	SAME(error.cuda_result, CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(!strcmp(error.cuda_name, "CUDA_ERROR_OUT_OF_MEMORY"));
	SAYS(ENOMEM, "this thread");
	/* An error of another kind keeps the result. Forgetting that error forgets both. */
	REFUSED(xmem_get(NULL, 1), EINVAL);
	SAME(xmem_get_last_error(&error), -EINVAL);
	SAME(error.cuda_result, CUDA_ERROR_OUT_OF_MEMORY);
	SAME(xmem_get_last_error(&error), 0);
	SAME(error.cuda_result, 0);
	xl_cuda_fail(CUDA_ERROR_OUT_OF_MEMORY, "this thread");
	xmem_clear_last_error();
	SAME(xmem_peek_last_error(&error), 0);
	SAME(error.cuda_result, 0);
}

/* An error in a program's function that the call runs does not change the call's error. */
TEST(CUDA_the_result_is_saved_with_the_error)
{
	struct xl_error saved;

	xl_cuda_fail(CUDA_ERROR_OUT_OF_MEMORY, "the call");
	xl_error_save(&saved);
	xl_cuda_fail(CUDA_ERROR_INVALID_VALUE, "the function");
	xl_error_restore(&saved);
	SAYS(ENOMEM, "the call: CUDA_ERROR_OUT_OF_MEMORY");
	SAME(last_result(), CUDA_ERROR_OUT_OF_MEMORY);
}

/* ---- the structs that grow ---- */

TEST(CUDA_answers_are_cut_to_the_callers_size)
{
	struct { struct xmem_cuda_device_info info; char behind[16]; } longer;
	struct xmem_cuda_info driver;
	size_t none = 1;

	use_small("whole");
	memset(&longer, 0x5a, sizeof(longer));
	longer.info.size = sizeof(longer);
	SAME(xmem_cuda_device_query(0, &longer.info), 0);
	SAME(longer.info.size, sizeof(longer.info));
	SAME(longer.info.uuid[15], 0xa0);
	SAME(strlen(longer.info.name), sizeof(longer.info.name) - 1);
	SAME(longer.behind[0], 0x5a);
	memset(&driver, 0x5a, sizeof(driver));
	driver.size = offsetof(struct xmem_cuda_info, devices);
	SAME(xmem_cuda_query(&driver), 0);
	SAME(driver.version, 12040);
	SAME(driver.devices, 0x5a5a5a5a);
	SAME(driver.size, offsetof(struct xmem_cuda_info, devices));
	SAME(xmem_cuda_query(NULL), -EINVAL);
	SAME(xmem_cuda_device_query(0, NULL), -EINVAL);
	SAME(xmem_cuda_query((struct xmem_cuda_info *)&none), -EINVAL);
	driver.size = sizeof(driver);
	SAME(xmem_cuda_query(&driver), 0);
	SAME(driver.devices, 1);
	CHECK(strstr(driver.file, "/cuda-drivers/whole.so"));
}

TEST(CUDA_a_device_that_is_not_there_is_refused)
{
	struct xmem_cuda_device_info info = { .size = sizeof(info) };
	static const u8 nobody[XL_GPU_UUID_BYTES] = { 1, 2, 3 };

	use_small("whole")->devices = 2;
	SAME(xmem_cuda_device_query(2, &info), -ENODEV);
	SAYS(ENODEV, "there is no GPU 2", "it has 0 to 1");
	SAME(xmem_cuda_device_query(-1, &info), -ENODEV);
	SAME(xmem_cuda_device_query(1, &info), 0);
	SAME(info.device_id, 1);
	REFUSED(xl_gpu_by_uuid(nobody), ENODEV);
	SAYS(ENODEV, "GPU-01020300-0000-0000-0000-000000000000", "CUDA_VISIBLE_DEVICES");
	CHECK(xl_gpu_by_uuid(info.uuid) == xl_gpu(1));
}
