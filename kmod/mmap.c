// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mapping the pool's pages. Errors of mmap():
 *
 *   ENOTCONN  the file's client has ended
 *   EPERM     the caller is not the mm that joined; or PROT_EXEC
 *   EINVAL    the range is outside the layout; or not MAP_SHARED
 *   EACCES    PROT_WRITE, and the range is neither within the client's area nor within
 *             groups that it owns
 *   EDQUOT    the client has as many mappings as it may have; there is a limit because every
 *             join and every end looks at all mappings. A split of a mapping beyond this limit
 *             fails with ENOMEM, as a split beyond the kernel's own limit does
 *
 * Pages are mapped by faults, because clients join and end after the mmap. The mm that joined gets
 * no SIGBUS: it reads zeros where there is no client, and zeros everywhere after its own end
 * (pages.c). A mapping that was made with PROT_WRITE shows only pages that its client may write.
 * Other mms, which can have a mapping only because of MADV_DOFORK, get SIGBUS.
 *
 * A client lives as long as its area is mapped writable. When munmap, exec or exit removes the last
 * such mapping, the client ends, even if copies of the descriptor exist.
 */
#include <linux/fs.h>
#include <linux/pagemap.h>
#include <linux/wait.h>

#include "compat.h"
#include "xk.h"
#include "trace.h"

static struct xk_client *xk_vma_client(const struct vm_area_struct *vma)
{
	return vma->vm_file->private_data;
}

/* Was the mapping made with PROT_WRITE? */
static bool xk_vma_writes(const struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_MAYWRITE;
}

/*
 * Is this a writable mapping of the client's area, or a part of one? The client lives as long as it
 * has any. A mapping that was made with PROT_WRITE shows the area or groups, never both.
 */
static bool xk_vma_keeps(const struct vm_area_struct *vma)
{
	const struct xk_client *client = xk_vma_client(vma);

	return xk_vma_writes(vma) && vma->vm_mm == client->mm &&
	       (u64)vma->vm_pgoff << PAGE_SHIFT >= xk_header(client->pool)->areas_offset;
}

/* ---- faults ---- */

/*
 * Drivers of GPUs and others pin these pages for as long as they like (FOLL_LONGTERM), for reading
 * and for writing: streams of a GPU write words here. So the pages are ordinary unmovable pages,
 * there is neither VM_IO nor VM_PFNMAP, the file's mapping cannot be written back, and none of the
 * vm_ops has page_mkwrite or pfn_mkwrite: with any of these the kernel refuses to pin for writing.
 */

/*
 * Wait for one of two things. If @page is an error, the client is being evicted: wait until this is
 * over. Otherwise another fault has locked @page: wait until it releases the page. Another process
 * can make the wait long. So this function releases mmap_lock for the wait if the caller allows it;
 * a reference to the file keeps the client meanwhile. (A fault always has mmap_lock: without
 * ->map_pages the kernel does not call ->fault under the lock of a VMA alone.)
 * Returns 0: look for the page again; or the result of the fault.
 */
static vm_fault_t xk_fault_wait(const struct vm_fault *vmf, struct page *page)
{
	bool retry = vmf->flags & FAULT_FLAG_ALLOW_RETRY;
	struct file *file = get_file(vmf->vma->vm_file);
	struct xk_client *client = file->private_data;
	int err = 0;

	if (!retry || !(vmf->flags & FAULT_FLAG_RETRY_NOWAIT)) {
		if (retry)
			mmap_read_unlock(vmf->vma->vm_mm);
		err = IS_ERR(page) ?
			wait_event_killable(client->pool->end_waiters,
					    !READ_ONCE(client->evicting)) :
			folio_wait_locked_killable(page_folio(page));
	}
	if (!IS_ERR(page))
		put_page(page);
	fput(file);
	if (retry)
		return VM_FAULT_RETRY;
	return err ? VM_FAULT_SIGBUS : 0;	/* it is being killed */
}

/*
 * Returns the page locked: see pages.c, step 2. In a mapping that was made with PROT_WRITE a read
 * counts as a store: mprotect could make it writable again, without asking us.
 */
static vm_fault_t xk_fault(struct vm_fault *vmf)
{
	const struct xk_client *client = xk_vma_client(vmf->vma);
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	bool write = xk_vma_writes(vmf->vma);
	struct page *page;
	vm_fault_t ret;
	bool locked;

	if (vmf->flags & FAULT_FLAG_WRITE && !write)
		return VM_FAULT_SIGBUS;
	/* After MADV_DOFORK a child has the mapping, too. */
	if (vmf->vma->vm_mm != client->mm)
		return VM_FAULT_SIGBUS;
	while ((page = xk_page_get(client, write, offset, &locked)) && !locked) {
		ret = xk_fault_wait(vmf, page);
		if (ret)
			return ret;
	}
	if (!page)
		return VM_FAULT_SIGBUS;
	if (unlikely(PageHWPoison(page))) {
		unlock_page(page);
		put_page(page);
		return VM_FAULT_HWPOISON;
	}
	vmf->page = page;
	return VM_FAULT_LOCKED;
}

/* ---- counting ---- */

/*
 * One more mapping, in any mm. Neither a fork nor a move can be refused. A move may exceed the
 * limit for a while, but a client whose mappings exceed twice the limit, by forks, ends. Its
 * process goes on running with all mappings, so they are removed as if another client had evicted
 * this one.
 */
static void xk_vma_open(struct vm_area_struct *vma)
{
	struct xk_client *client = xk_vma_client(vma);
	bool excess;

	spin_lock(&client->pool->pages_lock);
	client->maps++;
	client->area_maps += xk_vma_keeps(vma);
	excess = client->maps > 2 * xk_most_maps(client->pool);
	spin_unlock(&client->pool->pages_lock);
	if (excess)
		xk_client_evict(client, 0, XMEM_REASON_NONE);
}

static void xk_vma_close(struct vm_area_struct *vma)
{
	struct xk_client *client = xk_vma_client(vma);

	xk_client_unmapped(client, xk_vma_keeps(vma));
}

/* A split, by munmap or mprotect of a part, adds a mapping, which xk_vma_open counts. */
static int xk_vma_may_split(struct vm_area_struct *vma, unsigned long at)
{
	const struct xk_client *client = xk_vma_client(vma);
	u32 maps, most = xk_most_maps(client->pool);

	spin_lock(&client->pool->pages_lock);
	maps = client->maps;
	spin_unlock(&client->pool->pages_lock);
	if (maps < most)
		return 0;
	trace_xmem_limit(client->pool->number, xk_quota_name(XMEM_QUOTA_CLIENT_MAPPINGS),
			 maps + 1ULL, most);
	return -ENOMEM;
}

static const struct vm_operations_struct xk_vm_ops = {
	.open = xk_vma_open,
	.close = xk_vma_close,
	.XK_MAY_SPLIT = xk_vma_may_split,
	.fault = xk_fault,
};

/* ---- mmap ---- */

/* Under pages_lock: count the mapping, or return an errno. */
static int xk_mmap_count(struct xk_client *client, const struct vm_area_struct *vma, u64 from,
			 u64 to)
{
	struct xk_pool *pool = client->pool;

	if (client->ended)
		return -ENOTCONN;
	if (client->maps >= xk_most_maps(pool))
		return -EDQUOT;
	if (xk_vma_writes(vma) && !xk_may_write(pool, client, from, to))
		return -EACCES;
	client->area_maps += xk_vma_keeps(vma);
	client->maps++;
	return 0;
}

int xk_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct xk_client *client = filp->private_data;
	u64 from = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 to = from + (vma->vm_end - vma->vm_start), total;
	int err;

	if (READ_ONCE(client->ended))
		return -ENOTCONN;
	if (vma->vm_mm != client->mm)
		return -EPERM;
	total = xk_header(client->pool)->total_bytes;
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_pgoff > total >> PAGE_SHIFT || to > total)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	vm_flags_clear(vma, vma->vm_flags & VM_WRITE ? VM_MAYEXEC : VM_MAYEXEC | VM_MAYWRITE);
	spin_lock(&client->pool->pages_lock);
	err = xk_mmap_count(client, vma, from, to);
	spin_unlock(&client->pool->pages_lock);
	if (err == -EDQUOT)
		xk_refuse(client->payer, client->pool, XMEM_QUOTA_CLIENT_MAPPINGS,
			  READ_ONCE(client->maps), READ_ONCE(client->maps) + 1ULL,
			  xk_most_maps(client->pool));
	if (err)
		return err;
	vma->vm_ops = &xk_vm_ops;
	vm_flags_set(vma, VM_DONTCOPY | VM_DONTDUMP | VM_DONTEXPAND);
	return 0;
}
