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
	const char *call;	/* the name of the call, which is put before the message when it is
				 * read; NULL: none, or it is there */
	const char *named;	/* the message that this name is for */
	struct xl_later later;	/* if message is unmade */
	char text[XL_ERROR_BYTES];
} last __attribute__((tls_model("initial-exec")));
__thread int xl_cuda_result;
__thread const char *xl_call;

int xl_fail_polling(int error, const char *message)
{
	last.error = -error;
	last.message = message;
	errno = error;
	return -error;
}

int xl_fail_fast(int error, const char *message)
{
	last.call = xl_call;
	last.named = message;
	return xl_fail_polling(error, message);
}

static const char unmade[] = "the pool has been closed since, so its state is not known";

int xl_fail_later(int error, const struct xl_later *later)
{
	last.later = *later;
	return xl_fail_fast(error, unmade);
}

void xl_fail_as(const char *call)
{
	if (last.call && last.named == last.message)
		return;
	last.call = call;
	last.named = last.message;
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
	ret->call = last.named == last.message ? last.call : NULL;
	if (last.message == unmade)
		ret->later = last.later;
	if (last.message == last.text)
		memcpy(ret->text, last.text, sizeof(last.text));
}

void xl_error_restore(const struct xl_error *saved)
{
	errno = saved->number;
	xl_cuda_result = saved->cuda;
	last.error = saved->error;
	last.message = last.named = saved->message;
	last.call = saved->call;
	if (last.message == unmade)
		last.later = saved->later;
	if (last.message == last.text)
		memcpy(last.text, saved->text, sizeof(last.text));
}

int xl_last_error(void)
{
	return last.error;
}

/* Put the name of the call before the message. */
static void name_call(void)
{
	size_t name = strlen(last.call), bytes = strnlen(last.message, XL_ERROR_BYTES - name - 3);

	if (!strncmp(last.message, last.call, name) && last.message[name] == ':')
		return;
	memmove(last.text + name + 2, last.message, bytes);
	last.text[name + 2 + bytes] = 0;
	memcpy(last.text, last.call, name);
	memcpy(last.text + name, ": ", 2);
	last.message = last.text;
}

const char *xl_last_message(void)
{
	if (!last.error)
		return "";
	if (last.message == unmade && last.later.make(&last.later, last.text, XL_ERROR_BYTES)) {
		make_printable(last.text);
		last.message = last.named = last.text;
	}
	if (last.call && last.named == last.message)
		name_call();
	last.call = NULL;
	return last.message;
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
