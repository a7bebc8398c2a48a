/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All differences between kernels that the module knows of are in this file. Kbuild probes the
 * kernel's headers for them (XK_HAVE_*). tests/check-kernels.sh lists the kernels that are tested,
 * and checks that each probe differs between some of them.
 */
#ifndef XK_COMPAT_H
#define XK_COMPAT_H

#include <linux/fcntl.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/hugetlb.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>

/*
 * Tokens and offsets are 64 bits wide. Where caches alias, the kernel and a process would see
 * different contents of one page.
 */
#if !defined(CONFIG_X86_64) && !defined(CONFIG_ARM64)
#error "xmem is for x86-64 and arm64"
#endif

/* The name of a namespace is a string since Linux 6.13. */
#ifdef XK_HAVE_IMPORT_NS_STRING
#define XK_IMPORT_NS_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#else
#define XK_IMPORT_NS_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#endif

#ifndef XK_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/*
 * Map @file at @vma instead of the file that was mapped, as if the caller had asked for @file.
 * Before Linux 5.11 modules cannot call vma_set_file; in these kernels mmap itself drops the old
 * file if this fails.
 */
static inline int xk_mmap_instead(struct file *file, struct vm_area_struct *vma)
{
#ifdef XK_HAVE_VFS_MMAP
	vma_set_file(vma, file);
	return vfs_mmap(file, vma);
#elif defined(XK_HAVE_VMA_SET_FILE)
	vma_set_file(vma, file);
	return call_mmap(file, vma);
#else
	struct file *old = vma->vm_file;
	int err;

	vma->vm_file = get_file(file);
	err = call_mmap(file, vma);
	fput(err ? file : old);
	if (err)
		vma->vm_file = old;
	return err;
#endif
}

#ifndef XK_HAVE_FOLIO_WAIT_LOCKED
#define page_folio(page) (page)
#define folio_wait_locked(page) wait_on_page_locked(page)
#define folio_wait_locked_killable(page) wait_on_page_locked_killable(page)
#endif

/* Called before a mapping is split: .split before Linux 5.11. */
#ifdef XK_HAVE_MAY_SPLIT
#define XK_MAY_SPLIT may_split
#else
#define XK_MAY_SPLIT split
#endif

/*
 * Install a new close-on-exec descriptor of @file, which other processes have, too, and write its
 * number to @number before that. The caller keeps its own reference. receive_fd asks the security
 * modules first; modules cannot call security_file_receive, and get_unused_fd_flags with fd_install
 * would bypass it.
 *
 * Before Linux 6.7 the descriptor is installed before its number is written, and is closed again if
 * the write fails. If another thread of the caller closes this number in between, although nobody
 * has told it, and opens a file of its own under it, that file is closed.
 *
 * Before Linux 5.12 modules cannot call receive_fd, so no security module is asked whether the
 * process may receive the file; even there they are asked when a payload is opened.
 */
#if defined(XK_HAVE_RECEIVE_FD_UFD)
static inline int xk_receive_fd(struct file *file, int __user *number)
{
	int fd = receive_fd(file, number, O_CLOEXEC);

	return fd < 0 ? fd : 0;
}
#elif defined(XK_HAVE_RECEIVE_FD)
static inline int xk_receive_fd(struct file *file, int __user *number)
{
	int fd = receive_fd(file, O_CLOEXEC);

	if (fd < 0)
		return fd;
	if (!put_user(fd, number))
		return 0;
	close_fd(fd);
	return -EFAULT;
}
#else
static inline int xk_receive_fd(struct file *file, int __user *number)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd < 0)
		return fd;
	if (put_user(fd, number)) {
		put_unused_fd(fd);
		return -EFAULT;
	}
	fd_install(fd, get_file(file));
	return 0;
}
#endif

#ifdef XK_HAVE_CONST_CLASS
#define XK_CLASS_CONST const
#else
#define XK_CLASS_CONST
#endif

/* Binary files of sysfs are constant since Linux 6.16. */
#ifdef XK_HAVE_CONST_BIN_ATTRIBUTE
#define XK_BIN_CONST const
#else
#define XK_BIN_CONST
#endif

/* The seals of a memfd in huge pages. Modules cannot call memfd_get_seals. */
static inline bool xk_hugetlb_seals(struct inode *inode, unsigned int *seals)
{
#ifdef CONFIG_HUGETLBFS
	if (inode->i_sb->s_magic == HUGETLBFS_MAGIC) {
		*seals = READ_ONCE(HUGETLBFS_I(inode)->seals);
		return true;
	}
#endif
	return false;
}

/*
 * The index in i_pages of page @n, counted in pages of the file's own size. Since Linux 6.7 all
 * files are indexed by small pages.
 */
static inline pgoff_t xk_page_index(struct inode *inode, pgoff_t n)
{
#if defined(CONFIG_HUGETLBFS) && defined(XK_HAVE_HUGETLB_BASE_INDEX)
	if (inode->i_sb->s_magic == HUGETLBFS_MAGIC)
		return n << huge_page_order(hstate_inode(inode));
#endif
	return n;
}

static inline unsigned int xk_page_shift(struct inode *inode)
{
#ifdef CONFIG_HUGETLBFS
	if (inode->i_sb->s_magic == HUGETLBFS_MAGIC)
		return huge_page_shift(hstate_inode(inode));
#endif
	return PAGE_SHIFT;
}

/* 0 if every page of a memfd exists, in memory or in swap. -ERANGE; -EINTR: a fatal signal. */
static inline int xk_has_all_pages(struct inode *inode)
{
	pgoff_t n, pages = DIV_ROUND_UP_ULL(i_size_read(inode), 1ULL << xk_page_shift(inode));

	for (n = 0; n < pages; n++) {
		if (!xa_load(&inode->i_mapping->i_pages, xk_page_index(inode, n)))
			return -ERANGE;
		if (n % 1024)
			continue;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* Prepares a timer of CLOCK_MONOTONIC that is set to absolute times. */
static inline void xk_timer_setup(struct hrtimer *timer,
				  enum hrtimer_restart (*function)(struct hrtimer *timer))
{
#ifdef XK_HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	timer->function = function;
#endif
}

/* CLOCK_MONOTONIC of the caller's time namespace less that of the initial one. */
static inline ktime_t xk_clock_offset(void)
{
#ifdef CONFIG_TIME_NS
	return timespec64_to_ktime(current->nsproxy->time_ns->offsets.monotonic);
#else
	return 0;
#endif
}

/*
 * The host's time at which a clock with this offset shows @time, for timers. A timer takes a
 * negative time for the end of time, so a time before the initial namespace's clock began becomes
 * 0.
 */
static inline ktime_t xk_host_time(u64 time, ktime_t offset)
{
	ktime_t at = min_t(u64, time, KTIME_MAX);

	if (offset < 0)
		return at > KTIME_MAX + offset ? KTIME_MAX : ktime_sub(at, offset);
	return at < offset ? 0 : ktime_sub(at, offset);
}

/* An empty file of the kernel's own tmpfs, as a memfd is. Returns an ERR_PTR. */
static inline struct file *xk_shmem_file(const char *name)
{
#ifdef XK_HAVE_SHMEM_VMA_FLAGS
	return shmem_file_setup(name, 0, EMPTY_VMA_FLAGS);
#else
	return shmem_file_setup(name, 0, 0);
#endif
}

/* The seals of a memfd in ordinary pages. */
static inline unsigned int xk_shmem_seals(struct inode *inode)
{
	return READ_ONCE(SHMEM_I(inode)->seals);
}

#endif
