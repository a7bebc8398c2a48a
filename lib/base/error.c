// SPDX-License-Identifier: MIT
/*
 * The calling thread's last error: a number and a sentence. Errors that are part of normal work,
 * such as "nothing published yet", have constant sentences, because formatting is slow.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/private.h"

static __thread struct {
	int error;		/* negative errno; 0: none */
	const char *message;
	char text[XL_ERROR_BYTES];
} last __attribute__((tls_model("initial-exec")));
__thread int xl_cuda_result;

int xl_fail_fast(int error, const char *message)
{
	last.error = -error;
	last.message = message;
	errno = error;
	return -error;
}

/*
 * A message may quote a name, a label or a path that any user has made. So control characters do
 * not reach the terminal, and neither do those of C1 (0xc2 0x80 to 0xc2 0x9f).
 */
static void make_printable(char *text)
{
	unsigned char *c;

	for (c = (unsigned char *)text; *c; c++)
		if (*c < ' ' || *c == 0x7f || (*c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f))
			*c = '?';
}

int xl_fail(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last.text, sizeof(last.text), format, args);
	va_end(args);
	make_printable(last.text);
	return xl_fail_fast(error, last.text);
}

void xl_error_save(struct xl_error *ret)
{
	ret->number = errno;
	ret->cuda = xl_cuda_result;
	ret->error = last.error;
	ret->message = last.message;
	if (last.message == last.text)
		memcpy(ret->text, last.text, sizeof(last.text));
}

void xl_error_restore(const struct xl_error *saved)
{
	errno = saved->number;
	xl_cuda_result = saved->cuda;
	last.error = saved->error;
	last.message = saved->message;
	if (last.message == last.text)
		memcpy(last.text, saved->text, sizeof(last.text));
}

int xl_last_error(void)
{
	return last.error;
}

const char *xl_last_message(void)
{
	return last.error ? last.message : "";
}

void xl_error_clear(void)
{
	last.error = 0;
	xl_cuda_result = 0;
}

/* A word in the pages has an impossible value. End the process before it acts on this value. */
void xm_check_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "xmem: %s:%d: impossible: not %s\n", file, line, what);
	abort();
}

#ifdef XMEM_STEPS
/* Tests replace this one. */
__attribute__((weak)) void xm_step(int step)
{
}
#endif
