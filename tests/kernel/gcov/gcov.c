// SPDX-License-Identifier: GPL-2.0-only
/*
 * The run-time part of the compiler's counters (-fprofile-arcs), for kernels that lack it, as
 * Debian's do. It collects the counters of each file of the module. When the module is unloaded, it
 * writes them into the folder in the parameter gcov, as files that gcov reads. It is only for
 * cov.sh, in the VM, and never part of xmem. It works with the compilers that kmod/Kbuild takes
 * here: gcc 12 to 14.
 */
#include <linux/fs.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/types.h>

#include "gcov.h"

#if __GNUC__ < 12
#error "older compilers write another format"
#endif

#define MAGIC		0x67636461	/* "gcda" */
#define TAG_FUNCTION	0x01000000
#define TAG_COUNTER(i)	(0x01a10000 + ((i) << 17))
#if __GNUC__ >= 14
#define COUNTERS	9
#else
#define COUNTERS	8
#endif

/* The compiler's layout. */
struct gcov_counters {
	u32 count;
	s64 *values;
};

struct gcov_function {
	const struct gcov_info *file;
	u32 ident, lines, graph;	/* all but the first are checksums */
	struct gcov_counters counters[];	/* one for each kind in the file */
};

struct gcov_info {
	u32 version;
	struct gcov_info *next;
	u32 stamp, checksum;
	const char *path;
	void (*merge[COUNTERS])(s64 *counters, u32 count);	/* of its kinds */
	u32 count;
	const struct gcov_function *const *function;
};

static char *folder = "";
module_param_named(gcov, folder, charp, 0444);
MODULE_PARM_DESC(gcov, "where the counters are written when the module is unloaded");

static struct gcov_info *files;

void __gcov_init(struct gcov_info *file);
void __gcov_exit(void);
void __gcov_merge_add(s64 *counters, u32 count);

/* Each file's constructor calls it: from here, and also from a kernel with constructors. */
void __gcov_init(struct gcov_info *file)
{
	const struct gcov_info *other;

	for (other = files; other; other = other->next)
		if (other == file)
			return;
	file->next = files;
	files = file;
}

void __gcov_exit(void)
{
}

/* Each file names it; it is never called. */
void __gcov_merge_add(s64 *counters, u32 count)
{
}

/* A kernel that runs constructors also runs the functions that mark their ends. */
static void nothing(void)
{
}

/* The linker sorts constructors by the names of their sections; gcc's are between these. */
static void (*const first)(void) __used __section(".init_array.00000") = nothing;
static void (*const last)(void) __used __section(".init_array") = nothing;

void __init xk_gcov_begin(void)
{
	void (*const *constructor)(void) = &first;

	/* else the compiler takes these for two objects of one element */
	OPTIMIZER_HIDE_VAR(constructor);
	for (constructor++; constructor < &last; constructor++)
		(*constructor)();
}

/* ---- writing ---- */

struct out {
	struct file *file;
	loff_t at;
	int err;
};

static void put(struct out *out, const void *data, size_t bytes)
{
	ssize_t n = out->err ? 0 : kernel_write(out->file, data, bytes, &out->at);

	if (!out->err && n != bytes)
		out->err = n < 0 ? n : -EIO;
}

static void put_u32(struct out *out, u32 value)
{
	put(out, &value, sizeof(value));
}

static void put_function(struct out *out, const struct gcov_info *file,
			 const struct gcov_function *function)
{
	const struct gcov_counters *counters = function->counters;
	u32 i;

	put_u32(out, TAG_FUNCTION);
	put_u32(out, 3 * sizeof(u32));
	put_u32(out, function->ident);
	put_u32(out, function->lines);
	put_u32(out, function->graph);
	for (i = 0; i < COUNTERS; i++) {
		if (!file->merge[i])
			continue;
		put_u32(out, TAG_COUNTER(i));
		put_u32(out, counters->count * sizeof(u64));
		put(out, counters->values, counters->count * sizeof(u64));
		counters++;
	}
}

/* PATH/NAME.gcda becomes FOLDER/PATH#NAME.gcda, with # for each slash. */
static int write_file(const struct gcov_info *file)
{
	struct out out = {};
	char *path = kasprintf(GFP_KERNEL, "%s/%s", folder, file->path);
	u32 i;

	if (!path)
		return -ENOMEM;
	strreplace(path + strlen(folder) + 1, '/', '#');
	out.file = filp_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	kfree(path);
	if (IS_ERR(out.file))
		return PTR_ERR(out.file);
	put_u32(&out, MAGIC);
	put_u32(&out, file->version);
	put_u32(&out, file->stamp);
	put_u32(&out, file->checksum);
	for (i = 0; i < file->count; i++)
		put_function(&out, file, file->function[i]);
	filp_close(out.file, NULL);
	return out.err;
}

void xk_gcov_end(void)
{
	const struct gcov_info *file;
	int err;

	for (file = files; *folder && file; file = file->next) {
		err = write_file(file);
		if (err)
			pr_err("gcov: %s is not written: %d\n", file->path, err);
	}
}
