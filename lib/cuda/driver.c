// SPDX-License-Identifier: MIT
/*
 * Finds and starts the driver: driver.h.
 *
 * Each call is found by dlsym, and never by cuGetProcAddress. A symbol with its suffix stands for
 * one form of the call for ever, and every driver exports all forms that it has. cuGetProcAddress
 * takes the name without the suffix and chooses a form by a version and flags, so it could return
 * another form than the one that is declared here; and it would have to be found by dlsym itself.
 * Tools that put themselves in front of the driver replace its symbols too.
 *
 * The first thread that writes `opener` makes its process the one that uses the driver. A child has
 * another number, or none. So it sees in `opener` that an ancestor has looked for the driver. It
 * then makes no call, and takes no lock, which another thread of its parent may have held. If the
 * ancestor has found no driver, the child gives the ancestor's reason.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/uncancelled.h"
#include "lib/cuda/driver.h"
#include "lib/cuda/hip.h"

#define NVIDIAS_FILE	"libcuda.so.1"
#define NOBODY		(~0ULL)

/* ---- the functions in place of missing calls ---- */

#define MISSING(field, symbol, hip, version, group, parameters) \
	static CUresult no_##field parameters \
	{ \
		return CUDA_ERROR_NOT_INITIALIZED; \
	}
XL_CUDA_ENTRIES(MISSING)

#define MISSING_FIELD(field, ...)	.field = no_##field,
static const struct xl_cuda missing = { XL_CUDA_ENTRIES(MISSING_FIELD) };

/* ---- the list ---- */

static const struct entry {
	const char *symbol;	/* of NVIDIA's driver */
	const char *hip;	/* of HIP */
	int version;
	enum xl_cuda_group group;
	size_t field;
} entries[] = {
#define ENTRY(field, symbol, hip, version, group, parameters) \
	{ symbol, hip, version, XL_CUDA_##group, offsetof(struct xl_cuda, field) },
	XL_CUDA_ENTRIES(ENTRY)
};
#define ENTRIES	(sizeof(entries) / sizeof(*entries))

#define GROUP_NAME(name, what)	[XL_CUDA_##name] = what,
static const char *const group_names[] = { XL_CUDA_GROUPS(GROUP_NAME) };

/* ---- the result ---- */

enum { UNTRIED, FOUND, NONE };

/*
 * The result. The process `opener` writes it once, under the lock. It is constant when settled is
 * set.
 */
static struct xl_cuda table;
static const struct entry *lacks[XL_CUDA_GROUP_COUNT];	/* for each group, its first missing
							 * call; NULL: none */
static struct outcome {
	int error;
	CUresult result;
	char file[PATH_MAX], why[XL_ERROR_BYTES];
} now;

/* Guards the search for the driver. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static u64 opener;		/* the process that has begun to look; 0: none; atomic */
static u32 settled;		/* the result of the search: FOUND or NONE; atomic */
static u64 caller = NOBODY;	/* the process that may call the driver; atomic */

static void none(int number, CUresult said, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void none(int number, CUresult said, const char *format, ...)
{
	va_list args;

	now.error = -number;
	now.result = said;
	va_start(args, format);
	vsnprintf(now.why, sizeof(now.why), format, args);
	va_end(args);
}

static const char *symbol_of(const struct entry *entry)
{
	return xl_hip ? entry->hip : entry->symbol;
}

/* Every call that the library has goes into the table; the missing ones go into lacks. */
static void fill_table(void *library)
{
	const struct entry *entry;
	void *call;

	table = missing;
	table.groups = (1u << XL_CUDA_GROUP_COUNT) - 1;
	memset(lacks, 0, sizeof(lacks));
	for (entry = entries; entry < entries + ENTRIES; entry++) {
		call = dlsym(library, symbol_of(entry));
		if (call) {
			memcpy((char *)&table + entry->field, &call, sizeof(call));
			continue;
		}
		table.groups &= ~(1u << entry->group);
		if (!lacks[entry->group])
			lacks[entry->group] = entry;
	}
	if (xl_hip)
		xl_hip_adapt(&table, library);
}

/* Record from which file the library was loaded, for messages. */
static void save_file(void *library, const char *asked)
{
	struct link_map *map = NULL;

	if (!dlinfo(library, RTLD_DI_LINKMAP, &map) && map && *map->l_name)
		asked = map->l_name;
	snprintf(now.file, sizeof(now.file), "%s", asked);
}

/*
 * The errno for programs. It stays for the life of the process, so it must not be that of one call
 * only.
 */
static int start_error(CUresult said)
{
	int number = -xl_cuda_errno(said);

	return number == ENODEV || number == ENOMEM || number == ESHUTDOWN ? number : EIO;
}

/* The driver's first call, cuInit or hipInit, has failed. */
static void none_started(CUresult said)
{
	const char *name = xl_cuda_name(said), *file = now.file;
	int number = start_error(said);

	switch (said) {
	case CUDA_ERROR_NO_DEVICE:
		none(number, said, "the driver %s finds no GPU (%s, %d): there is none, or "
		     "%s hides it", file, name, said, xl_hip ?
		     "HIP_VISIBLE_DEVICES, the container or a lack of rights to /dev/kfd" :
		     "CUDA_VISIBLE_DEVICES or the container");
		break;
	case CUDA_ERROR_STUB_LIBRARY:
		none(number, said, "%s is the CUDA toolkit's library for linking and no driver "
		     "(%s, %d): install the driver, and take the toolkit's folder of stubs out "
		     "of LD_LIBRARY_PATH", file, name, said);
		break;
	case CUDA_ERROR_NOT_INITIALIZED:
		none(ECHILD, said, "the driver %s does not start here (%s, %d): this process was "
		     "most likely forked from one that had used %s; start it by exec", file,
		     name, said, XL_API);
		break;
	default:
		none(number, said, "the driver %s does not start: %s (%d)%s%s", file, name, said,
		     *xl_cuda_advice(said) ? ": " : "", xl_cuda_advice(said));
	}
}

/* Start the driver, and check that it has a device. */
static void start_driver(void)
{
	CUresult said = table.init(0);
	int count = 0;

	if (said == CUDA_SUCCESS)
		said = table.driver_get_version(&table.version);
	if (said == CUDA_SUCCESS)
		said = table.device_get_count(&count);
	if (said == CUDA_SUCCESS && !count)
		said = CUDA_ERROR_NO_DEVICE;
	if (said != CUDA_SUCCESS)
		none_started(said);
}

#define CAME_WITH_BYTES	64

/* ", which came with CUDA 10.2". The oldest HIP that works has all functions. */
static const char *came_with(const struct entry *entry, char ret[CAME_WITH_BYTES])
{
	snprintf(ret, CAME_WITH_BYTES, xl_hip ? "" : ", which came with CUDA %d.%d",
		 entry->version / 1000, entry->version % 1000 / 10);
	return ret;
}

/* The driver is older than all that have the call. */
static void none_new_enough(const struct entry *lacking)
{
	char came[CAME_WITH_BYTES];

	if (table.driver_get_version(&table.version) != CUDA_SUCCESS)
		table.version = 0;
	none(ENODEV, CUDA_ERROR_NOT_INITIALIZED, "the driver %s is too old: it lacks %s%s; the "
	     "oldest that works is %s", now.file, symbol_of(lacking), came_with(lacking, came),
	     xl_hip ? "ROCm 5.6" : "CUDA 11.4");
}

/* Try a driver's library. */
static void try_library(void *library, const char *asked)
{
	now = (struct outcome){ .error = 0 };
	xl_hip = xl_hip_is(library);
	save_file(library, asked);
	fill_table(library);
	if (table.init == missing.init) {
		none(ENODEV, CUDA_ERROR_NOT_INITIALIZED, "%s is no CUDA driver: it lacks cuInit "
		     "and hipInit", now.file);
		return;
	}
	if (lacks[XL_CUDA_CORE])
		none_new_enough(lacks[XL_CUDA_CORE]);
	else
		start_driver();
}

/* Load HIP. The one that the program has loaded already is preferred to others. */
static void *load_hip(const char **ret_name)
{
	static const char *const names[] = {
		"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so",
	};
	void *library;
	size_t i;

	for (i = 0; i < 2 * sizeof(names) / sizeof(*names); i++) {
		*ret_name = names[i % (sizeof(names) / sizeof(*names))];
		library = dlopen(*ret_name, RTLD_NOW | RTLD_LOCAL |
				 (i < sizeof(names) / sizeof(*names) ? RTLD_NOLOAD : 0));
		if (library)
			return library;
	}
	return NULL;
}

/*
 * NVIDIA's driver is not there, or has no GPU. If HIP does not work either, the message is about
 * the one that is there; if both are, about NVIDIA's.
 */
static void try_hip(bool nvidias)
{
	static struct outcome before;
	const char *name;
	void *library = load_hip(&name);

	if (!library)
		return;
	before = now;
	try_library(library, name);
	if (now.error && nvidias) {
		now = before;
		xl_hip = false;
	}
}

static void open_driver(void)
{
	const char *asked = secure_getenv("XMEM_CUDA_DRIVER");
	bool given = asked && *asked;
	void *library;

	if (!given)
		asked = NVIDIAS_FILE;
	library = dlopen(asked, RTLD_NOW | RTLD_LOCAL);
	if (library)
		try_library(library, asked);
	else
		none(ENODEV, CUDA_ERROR_NOT_INITIALIZED, "there is no CUDA driver: %s; install "
		     "NVIDIA's driver or AMD's ROCm, or let XMEM_CUDA_DRIVER name the library",
		     dlerror());
	if (now.error && !given)
		try_hip(library);
}

/* ---- the search ---- */

/* pre: XL_UNCANCELLED, and this process is the opener. */
static void search(u64 me)
{
	pthread_mutex_lock(&lock);
	if (!settled) {
		open_driver();
		if (!now.error)
			xm_store_release(&caller, me);
		xm_store_release(&settled, now.error ? NONE : FOUND);
	}
	pthread_mutex_unlock(&lock);
}

static inline bool is_caller(void)
{
	u64 process = xm_load_acquire(&caller);

	/* xl_process does not change after that. */
	return likely(process != NOBODY && process == *xl_process);
}

/* Is this process the one that looks for the driver, or has looked? 1, 0, or -ENOMEM. */
static int is_opener(void)
{
	u64 process = xm_load_acquire(&opener), me;

	if (process)
		return process == *xl_process;
	me = xl_process_number();
	if (!me)
		return -ENOMEM;
	return __atomic_compare_exchange_n(&opener, &process, me, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE) || process == me;
}

static int no_call(struct xl_cuda_found *ret, int number, const char *sentence)
{
	ret->result = CUDA_ERROR_NOT_INITIALIZED;
	ret->why = sentence;
	return ret->error = -number;
}

/* Look for the driver, and fill in why this process may not call it. 0: it may. */
static int find(struct xl_cuda_found *ret)
{
	XL_UNCANCELLED;
	int mine = is_opener();

	*ret = (struct xl_cuda_found){ .file = "" };
	if (mine < 0)
		return no_call(ret, ENOMEM, "no memory for one page");
	if (mine)
		search(*xl_process);
	else if (xm_load_acquire(&settled) != NONE)
		return no_call(ret, ECHILD, "this process was forked from one that had used CUDA "
			       "or HIP, and the driver does not serve such a child: start it by "
			       "exec, or fork before the first use");
	ret->error = now.error;
	ret->result = now.result;
	ret->version = table.version;
	ret->file = now.file;
	ret->why = now.why;
	return now.error;
}

static XL_COLD const struct xl_cuda *find_table(void)
{
	struct xl_cuda_found found;

	return find(&found) ? &missing : &table;
}

const struct xl_cuda *xl_cuda(void)
{
	xl_check_no_lock();
	return is_caller() ? &table : find_table();
}

const struct xl_cuda *xl_cuda_if_found(void)
{
	return is_caller() ? &table : &missing;
}

struct xl_cuda_found xl_cuda_find(void)
{
	struct xl_cuda_found found;

	find(&found);
	return found;
}

int xl_cuda_need(const char *what)
{
	struct xl_cuda_found found;

	if (is_caller() || !find(&found))
		return 0;
	xl_cuda_result = found.result;
	return xl_fail(-found.error, "%s needs %s: %s", what, XL_API, found.why);
}

int xl_cuda_need_group(enum xl_cuda_group group, const char *what)
{
	int err = xl_cuda_need(what);
	char came[CAME_WITH_BYTES];

	if (err || !lacks[group])
		return err;
	return xl_fail(EOPNOTSUPP, "%s needs %s: the driver %s of %s %d.%d lacks %s%s", what,
		       group_names[group], now.file, XL_API, table.version / 1000,
		       table.version % 1000 / 10, symbol_of(lacks[group]),
		       came_with(lacks[group], came));
}

const char *xl_cuda_name(CUresult result)
{
	const char *name = xl_hip ? xl_hip_error_name(result) : xl_cuda_known_name(result);

	if (name)
		return name;
	if (xl_cuda_if_found()->get_error_name(result, &name) != CUDA_SUCCESS || !name)
		return "an unknown CUresult";
	return name;
}

int xl_cuda_fail(CUresult result, const char *format, ...)
{
	const char *advice = xl_cuda_advice(result);
	struct xl_cuda_found found = { .why = "" };
	int err = xl_cuda_errno(result);
	char tried[XL_ERROR_BYTES / 2];
	va_list args;

	va_start(args, format);
	vsnprintf(tried, sizeof(tried), format, args);
	va_end(args);
	if (result == CUDA_ERROR_NOT_INITIALIZED)
		found = xl_cuda_find();
	if (found.error) {
		err = found.error;
		advice = found.why;
	}
	xl_cuda_result = result;
	if (xl_hip && is_caller())
		xl_hip_forget_error();
	return xl_fail(-err, "%s: %s (%d)%s%s", tried, xl_cuda_name(result), result,
		       *advice ? ": " : "", advice);
}
