// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands for the driver of a GPU in tests of xmem.ko: its open files are memory, and their
 * release is slow. xmem_test_gpu.h is its interface. It is never part of xmem.
 *
 * The memory consists of plain pages, which the first access makes and faults map. So processes
 * share it as they share GPU memory that each of them has imported.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/dma-buf.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "xmem_test_gpu.h"

#define NAME	"xmem-test-gpu"

struct memory {
	struct mutex lock;
	u64 count;		/* of pages; 0: no memory yet. lock; immutable once set */
	struct page **page;	/* [count]; lock */
	struct page *pinned;	/* of another's memory, or NULL. lock, as the next */
	struct xmem_test_gpu_late late;
	struct step *step;	/* or NULL. lock */
};

/* ---- parameters ---- */

static unsigned int major = XMEM_TEST_GPU_MAJOR;
module_param(major, uint, 0444);
MODULE_PARM_DESC(major, "the device's major number");

static unsigned int release_ms = 20;
module_param(release_ms, uint, 0644);
MODULE_PARM_DESC(release_ms, "how long the release of a file takes, in milliseconds");

static unsigned int gate;
static DECLARE_WAIT_QUEUE_HEAD(gate_queue);

static int gate_set(const char *value, const struct kernel_param *param)
{
	int err = param_set_uint(value, param);

	wake_up_all(&gate_queue);
	return err;
}

static const struct kernel_param_ops gate_ops = { .set = gate_set, .get = param_get_uint };
module_param_cb(gate, &gate_ops, &gate, 0644);
MODULE_PARM_DESC(gate, "releases wait while this is 1; while it is 2, those of one device");

/* Counters, which can only be read. */

static int counter_get(char *text, const struct kernel_param *param)
{
	return sprintf(text, "%ld\n", atomic_long_read(param->arg));
}

static int counter_set(const char *value, const struct kernel_param *param)
{
	return -EPERM;
}

static const struct kernel_param_ops counter_ops = { .set = counter_set, .get = counter_get };

#define COUNTER(name, what)						\
	static atomic_long_t name;					\
	module_param_cb(name, &counter_ops, &name, 0444);		\
	MODULE_PARM_DESC(name, what)

COUNTER(files, "how many files are open");
COUNTER(pages, "how many pages of memory they have");
COUNTER(releasing, "how many files are being released");
COUNTER(released, "how many files have been released");

/* ---- memory ---- */

static int memory_set_bytes(struct memory *memory, u64 bytes)
{
	struct page **page;
	int err = 0;

	if (!bytes || bytes % PAGE_SIZE || bytes > XMEM_TEST_GPU_MOST)
		return -EINVAL;
	page = kvcalloc(bytes / PAGE_SIZE, sizeof(*page), GFP_KERNEL_ACCOUNT);
	if (!page)
		return -ENOMEM;
	mutex_lock(&memory->lock);
	if (memory->count) {
		err = -EBUSY;
	} else {
		memory->page = page;
		memory->count = bytes / PAGE_SIZE;
	}
	mutex_unlock(&memory->lock);
	if (err)
		kvfree(page);
	return err;
}

/* Returns the page with a reference. */
static vm_fault_t memory_fault(struct vm_fault *vmf)
{
	struct memory *memory = vmf->vma->vm_file->private_data;
	vm_fault_t result = VM_FAULT_SIGBUS;

	mutex_lock(&memory->lock);
	if (vmf->pgoff >= memory->count)
		goto out;
	if (!memory->page[vmf->pgoff]) {
		result = VM_FAULT_OOM;
		memory->page[vmf->pgoff] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!memory->page[vmf->pgoff])
			goto out;
		atomic_long_inc(&pages);
	}
	vmf->page = memory->page[vmf->pgoff];
	get_page(vmf->page);
	result = 0;
out:
	mutex_unlock(&memory->lock);
	return result;
}

static const struct vm_operations_struct memory_vm_ops = { .fault = memory_fault };

/* ---- words in pages of others ---- */

static int late_pin(struct memory *memory, const struct xmem_test_gpu_late *late)
{
	struct page *page;
	int n;

	if (late->address % sizeof(u64))
		return -EINVAL;
	n = pin_user_pages_fast(late->address & PAGE_MASK, 1, FOLL_WRITE | FOLL_LONGTERM, &page);
	if (n != 1)
		return n < 0 ? n : -EFAULT;
	mutex_lock(&memory->lock);
	if (memory->pinned) {
		n = -EBUSY;
	} else {
		memory->pinned = page;
		memory->late = *late;
		n = 0;
	}
	mutex_unlock(&memory->lock);
	if (n)
		unpin_user_page(page);
	return n;
}

static void late_write(struct memory *memory)
{
	u64 *word;

	if (!memory->pinned)
		return;
	word = page_address(memory->pinned) + offset_in_page(memory->late.address);
	WRITE_ONCE(*word, memory->late.value);
	unpin_user_page(memory->pinned);
}

/* ---- steps of a request ---- */

struct step {
	struct kprobe probe;
	struct xmem_test_gpu_step is;	/* only its process changes it, in the probe */
	pid_t process;
};

static int step_taken(struct kprobe *probe, struct pt_regs *registers)
{
	struct step *step = container_of(probe, struct step, probe);
	u64 __user *word = u64_to_user_ptr(step->is.address);
	u64 now = step->is.value, ms;

	if (current->tgid != step->process || !step->is.times)
		return 0;
	if (word)
		copy_to_user_nofault(word, &step->is.value, sizeof(*word));
	for (ms = 0; ms < step->is.busy_ms && now == step->is.value; ms++) {
		mdelay(1);
		if (word)
			copy_from_user_nofault(&now, word, sizeof(*word));
	}
	step->is.value += step->is.add;
	step->is.times--;
	return 0;
}

static int step_begin(struct memory *memory, const void __user *from)
{
	struct step *step = kzalloc(sizeof(*step), GFP_KERNEL_ACCOUNT);
	int err = -EFAULT;

	if (!step)
		return -ENOMEM;
	if (copy_from_user(&step->is, from, sizeof(step->is)))
		goto err_free;
	step->is.function[sizeof(step->is.function) - 1] = 0;
	step->process = current->tgid;
	step->probe.symbol_name = step->is.function;
	step->probe.pre_handler = step_taken;
	mutex_lock(&memory->lock);
	err = memory->step ? -EBUSY : register_kprobe(&step->probe);
	if (!err)
		memory->step = step;
	mutex_unlock(&memory->lock);
	if (!err)
		return 0;
err_free:
	kfree(step);
	return err;
}

static void step_end(struct memory *memory)
{
	if (!memory->step)
		return;
	unregister_kprobe(&memory->step->probe);
	kfree(memory->step);
	memory->step = NULL;
}

/* ---- the end ---- */

static void memory_free(struct memory *memory)
{
	u64 i;

	late_write(memory);
	for (i = 0; i < memory->count; i++) {
		if (!memory->page[i])
			continue;
		put_page(memory->page[i]);
		atomic_long_dec(&pages);
	}
	kvfree(memory->page);
	mutex_destroy(&memory->lock);
	kfree(memory);
}

/* ---- files ---- */

static struct memory *memory_new(void)
{
	struct memory *memory = kzalloc(sizeof(*memory), GFP_KERNEL_ACCOUNT);

	if (memory) {
		mutex_init(&memory->lock);
		atomic_long_inc(&files);
	}
	return memory;
}

static int gpu_open(struct inode *inode, struct file *file)
{
	file->private_data = memory_new();
	return file->private_data ? nonseekable_open(inode, file) : -ENOMEM;
}

static bool gpu_may_release(unsigned int minor)
{
	unsigned int closed = READ_ONCE(gate);

	return !closed || (closed == 2 && minor != XMEM_TEST_GPU_MINOR);
}

static void memory_release(struct memory *memory, unsigned int minor)
{
	atomic_long_inc(&releasing);
	wait_event(gate_queue, gpu_may_release(minor));
	msleep(release_ms);
	memory_free(memory);
	atomic_long_dec(&files);
	atomic_long_inc(&released);
	atomic_long_dec(&releasing);
}

static int gpu_release(struct inode *inode, struct file *file)
{
	step_end(file->private_data);
	memory_release(file->private_data, iminor(inode));
	return 0;
}

static int gpu_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct memory *memory = file->private_data;
	u64 count;

	mutex_lock(&memory->lock);
	count = memory->count;
	mutex_unlock(&memory->lock);
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_pgoff > count ||
	    vma_pages(vma) > count - vma->vm_pgoff)
		return -EINVAL;
	vma->vm_ops = &memory_vm_ops;
	return 0;
}

/* ---- dma-bufs ---- */

#ifdef CONFIG_DMA_SHARED_BUFFER
#ifdef IMPORT_NS_STRING
MODULE_IMPORT_NS("DMA_BUF");
#else
MODULE_IMPORT_NS(DMA_BUF);
#endif

static struct sg_table *buffer_map(struct dma_buf_attachment *attachment,
				   enum dma_data_direction direction)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static void buffer_unmap(struct dma_buf_attachment *attachment, struct sg_table *table,
			 enum dma_data_direction direction)
{
}

static void buffer_release(struct dma_buf *buffer)
{
	memory_release(buffer->priv, XMEM_TEST_GPU_MINOR);
}

static const struct dma_buf_ops buffer_ops = {
	.map_dma_buf = buffer_map, .unmap_dma_buf = buffer_unmap, .release = buffer_release,
};

static long gpu_export(void)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct memory *memory = memory_new();
	struct dma_buf *buffer;
	int fd;

	if (!memory)
		return -ENOMEM;
	info.ops = &buffer_ops;
	info.size = PAGE_SIZE;
	info.priv = memory;
	buffer = dma_buf_export(&info);
	if (IS_ERR(buffer)) {
		memory_free(memory);
		atomic_long_dec(&files);
		return PTR_ERR(buffer);
	}
	fd = dma_buf_fd(buffer, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(buffer);
	return fd;
}
#else
static long gpu_export(void)
{
	return -ENOTTY;
}
#endif

/* ---- requests ---- */

static long gpu_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct memory *memory = file->private_data;
	struct xmem_test_gpu_late late;
	u64 __user *place = (u64 __user *)argument;
	u64 bytes;

	switch (command) {
	case XMEM_TEST_GPU_SET_BYTES:
		if (get_user(bytes, place))
			return -EFAULT;
		return memory_set_bytes(memory, bytes);
	case XMEM_TEST_GPU_GET_BYTES:
		mutex_lock(&memory->lock);
		bytes = memory->count * PAGE_SIZE;
		mutex_unlock(&memory->lock);
		return put_user(bytes, place);
	case XMEM_TEST_GPU_WRITE_LATE:
		if (copy_from_user(&late, (void __user *)argument, sizeof(late)))
			return -EFAULT;
		return late_pin(memory, &late);
	case XMEM_TEST_GPU_EXPORT:
		return gpu_export();
	case XMEM_TEST_GPU_STEP:
		return step_begin(memory, (const void __user *)argument);
	}
	return -ENOTTY;
}

static const struct file_operations gpu_fops = {
	.owner = THIS_MODULE,
	.open = gpu_open,
	.release = gpu_release,
	.mmap = gpu_mmap,
	.unlocked_ioctl = gpu_ioctl,
	.llseek = noop_llseek,
};

/* ---- the devices ---- */

static char *gpu_devnode(DEVNODE_CONST struct device *device, umode_t *mode)
{
	if (mode)
		*mode = 0666;
	return NULL;
}

static struct class gpu_class = { .name = NAME, .devnode = gpu_devnode };

static int __init gpu_init(void)
{
	struct device *device;
	int err = __register_chrdev(major, 0, XMEM_TEST_GPU_MINOR + 1, NAME, &gpu_fops);

	if (err)
		return err;
	err = class_register(&gpu_class);
	if (err)
		goto err_number;
	device = device_create(&gpu_class, NULL, MKDEV(major, XMEM_TEST_GPU_MINOR), NULL, NAME);
	err = PTR_ERR_OR_ZERO(device);
	if (err)
		goto err_class;
	device = device_create(&gpu_class, NULL, MKDEV(major, 0), NULL, NAME "0");
	err = PTR_ERR_OR_ZERO(device);
	if (!err)
		return 0;
	device_destroy(&gpu_class, MKDEV(major, XMEM_TEST_GPU_MINOR));
err_class:
	class_unregister(&gpu_class);
err_number:
	__unregister_chrdev(major, 0, XMEM_TEST_GPU_MINOR + 1, NAME);
	return err;
}

static void __exit gpu_exit(void)
{
	device_destroy(&gpu_class, MKDEV(major, 0));
	device_destroy(&gpu_class, MKDEV(major, XMEM_TEST_GPU_MINOR));
	class_unregister(&gpu_class);
	__unregister_chrdev(major, 0, XMEM_TEST_GPU_MINOR + 1, NAME);
}

module_init(gpu_init);
module_exit(gpu_exit);
MODULE_DESCRIPTION("Stands for the driver of a GPU where xmem is tested");
MODULE_LICENSE("GPL");
