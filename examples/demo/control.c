/* SPDX-License-Identifier: MIT */
/*
 * The processes' end of the control sockets. The director's end is in crew.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "xmem.h"

int control_open(const char *argument)
{
	int control = argument ? atoi(argument) : -1;

	if (control >= 0)
		fcntl(control, F_SETFD, FD_CLOEXEC);	/* ffmpeg must not keep it */
	return control;
}

void control_say(int control, const struct message *message)
{
	ssize_t sent;

	if (control < 0)
		return;
	do
		sent = send(control, message, sizeof(*message), MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent != sizeof(*message))
		exit(1);
}

static uint32_t control_next(int control, int flags)
{
	struct message message;
	ssize_t got;

	do
		got = recv(control, &message, sizeof(message), flags);
	while (got < 0 && errno == EINTR);
	if (got == sizeof(message))
		return message.kind;
	if (got < 0 && errno == EAGAIN)
		return 0;
	exit(1);
}

uint32_t control_told(int control)
{
	return control < 0 ? 0 : control_next(control, MSG_DONTWAIT);
}

uint32_t control_wait(int control)
{
	return control < 0 ? 0 : control_next(control, 0);
}

void control_fail(int control, const char *format, ...)
{
	struct message message = { .kind = SAY_ERROR };
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message.text, sizeof(message.text), format, arguments);
	va_end(arguments);
	if (control < 0)
		fprintf(stderr, "demo: %s\n", message.text);
	control_say(control, &message);
	exit(1);
}

void control_fail_xmem(int control, const char *what)
{
	struct xmem_error why = XMEM_INIT(why);
	int err = xmem_get_last_error(&why);

	control_fail(control, "%s: %s (%s)", what, err ? why.message : "no reason given",
		     strerror(-err));
}
