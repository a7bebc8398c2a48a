// SPDX-License-Identifier: MIT
/*
 * The way into every function of the driver: calls are counted, errors injected, and the state of
 * the process is checked (rules 1-5, 46, 47, 52). cuInit and the driver's end are here too.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"
#include "tests.h"

static struct fk_function *functions;

static struct {
	atomic_bool initialized, ended;
	atomic_int pid;		/* which called cuInit */
	atomic_int sticky;
} state;

__thread bool fk_in_host_function;

/* Constructors run one after another, so this needs no lock. */
void fk_register(struct fk_function *function)
{
	function->next = functions;
	functions = function;
}

struct fk_function *fk_functions(void)
{
	return functions;
}

bool fk_alive(void)
{
	return state.initialized && !state.ended && state.pid == getpid();
}

void fk_sticky_set(CUresult error)
{
	state.sticky = error;
}

CUresult fk_sticky(void)
{
	return state.sticky;
}

static CUresult check_process(const struct fk_function *function)
{
	if (fk_option_is("MODE", "stub", "driver"))
		return FK_STUB_LIBRARY;
	if (state.initialized && state.pid != getpid())
		return FK_NOT_INITIALIZED;
	if (state.ended)
		return FK_DEINITIALIZED;
	if (fk_in_host_function && function->needs != FK_ANYTIME) {
		fk_violation("%s in a host function", function->name);
		return FK_NOT_PERMITTED;
	}
	if (function->needs != FK_ANYTIME && !state.initialized)
		return FK_NOT_INITIALIZED;
	return FK_OK;
}

static CUresult check_context(void)
{
	struct fk_context *context = fk_context_current();

	if (!context)
		return FK_INVALID_CONTEXT;
	return fk_context_valid(context) ? FK_OK : FK_CONTEXT_IS_DESTROYED;
}

CUresult fk_enter(struct fk_function *function)
{
	CUresult err;

	atomic_fetch_add(&function->calls, 1);
	err = check_process(function);
	if (!err && function->missing)
		err = FK_NOT_SUPPORTED;
	if (!err)
		err = fk_inject(function);
	if (!err && (function->needs & (FK_WORK | FK_CONTEXT)))
		err = state.sticky;
	if (!err && (function->needs & FK_CONTEXT))
		err = check_context();
	if (!err && (function->needs & FK_UNSAFE))
		err = fk_capture_check_unsafe();
	return err;
}

/* At the process's end, before the atexit() handlers that were registered earlier than cuInit. */
static void end(void)
{
	if (!fk_alive())
		return;
	fk_stream_stop();
	fk_memory_stop();
	state.ended = true;
	fk_calls_write();
}

FK_DEFINE(cuInit, 2000, cuInit, FK_ANYTIME, unsigned int flags)
{
	static atomic_flag registered = ATOMIC_FLAG_INIT;

	FK_ENTER(cuInit);
	if (flags)
		return FK_INVALID_VALUE;
	if (state.initialized)
		return FK_OK;
	if (fk_option_number("INIT", FK_OK))
		return fk_option_number("INIT", FK_OK);
	fk_devices_init();
	if (!fk_device_count())
		return FK_NO_DEVICE;
	state.pid = getpid();
	state.initialized = true;
	if (!atomic_flag_test_and_set(&registered))
		atexit(end);
	return FK_OK;
}

FK_DEFINE(cuDriverGetVersion, 2020, cuDriverGetVersion, FK_ANYTIME, int *ret_version)
{
	FK_ENTER(cuDriverGetVersion);
	if (!ret_version)
		return FK_INVALID_VALUE;
	*ret_version = fk_option_number("VERSION", 13000);
	return FK_OK;
}

/* ---- For tests, see tests.h ---- */

void cuFakeEnd(void)
{
	end();
}

void cuFakeSticky(CUresult error)
{
	fk_sticky_set(error);
}

unsigned long cuFakeCalls(const char *name)
{
	unsigned long calls = 0;

	for (struct fk_function *function = functions; function; function = function->next)
		if (!name || !strcmp(name, function->name) || !strcmp(name, function->base))
			calls += atomic_load(&function->calls);
	return calls;
}
