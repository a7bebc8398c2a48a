// SPDX-License-Identifier: MIT
/*
 * Memory of the CPU that devices may access: registered ranges, which must be whole pages that a
 * real driver could pin (rule 48). /proc/self/smaps shows the kind of memory: mappings of I/O
 * memory or of bare page frames (VmFlags io, pf) cannot be pinned.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"
#include "queue.h"

enum { PORTABLE = 1, DEVICEMAP = 2, IOMEMORY = 4, READ_ONLY = 8 };

struct fk_host {
	struct fk_pin pin;		/* first */
	struct fk_host *next;
	CUdeviceptr base;
	size_t bytes;
	unsigned int flags;
	bool ours;			/* cuMemHostAlloc made it */
	struct fk_kept *kept;		/* the registered page; NULL: whatever is there */
};

static struct fk_host *hosts;		/* memory_lock */

static struct fk_host *find_locked(CUdeviceptr base, size_t bytes)
{
	for (struct fk_host *host = hosts; host; host = host->next)
		if (base < host->base + host->bytes && host->base < base + bytes)
			return host;
	return NULL;
}

bool fk_host_registered_locked(CUdeviceptr ptr, CUdeviceptr *ret_base, size_t *ret_bytes)
{
	struct fk_host *host = find_locked(ptr, 1);

	if (host) {
		*ret_base = host->base;
		*ret_bytes = host->bytes;
	}
	return host;
}

static bool is_mapped(CUdeviceptr base, size_t bytes)
{
	size_t page = sysconf(_SC_PAGESIZE);
	CUdeviceptr first = base & ~(CUdeviceptr)(page - 1);
	size_t pages = (base + bytes - first + page - 1) / page;
	unsigned char *present = malloc(pages);
	bool mapped = present && !mincore((void *)(uintptr_t)first, pages * page, present);

	free(present);
	return mapped;
}

/* A device continues with the page that was registered, whatever page the address has now. */
static void *at_locked(const struct fk_host *host, CUdeviceptr ptr, enum fk_access access)
{
	if (!host->kept || !fk_kept_is_replaced(host->kept))
		return (void *)(uintptr_t)ptr;
	/*
	 * Work that a stream was given before sees the memory as it was then. Giving it more now is
	 * a mistake.
	 */
	if (!fk_stream_of_thread())
		fk_violation("%#llx: the registered page is not the one that is mapped now", ptr);
	return (char *)fk_kept_old(host->kept, access) + (ptr - host->base);
}

void *fk_host_at_locked(CUdeviceptr ptr, size_t bytes, enum fk_access access,
			struct fk_pin **ret_pin, CUresult *ret_why)
{
	struct fk_host *host = find_locked(ptr, 1);

	*ret_why = FK_INVALID_VALUE;
	if (!host || ptr + bytes > host->base + host->bytes)
		return NULL;
	*ret_why = FK_ILLEGAL_ADDRESS;
	if ((host->flags & READ_ONLY) && (access & FK_WRITE))
		return NULL;
	if (!is_mapped(ptr, bytes ? bytes : 1)) {
		fk_violation("%#llx was unmapped while it is registered", ptr);
		return NULL;
	}
	host->pin.users++;
	*ret_pin = &host->pin;
	return at_locked(host, ptr, access);
}

/* ---- Memory that can be pinned ---- */

struct vma {
	unsigned long start, end;
	char prot[5];
	bool unpinnable;
};

/* The next mapping of smaps; false: there is none. */
static bool next_vma(FILE *smaps, struct vma *ret_vma)
{
	char line[1024];
	bool found = false;

	while (fgets(line, sizeof(line), smaps)) {
		struct vma vma = { 0 };

		if (sscanf(line, "%lx-%lx %4s", &vma.start, &vma.end, vma.prot) == 3) {
			*ret_vma = vma;
			found = true;
		} else if (found && !strncmp(line, "VmFlags:", 8)) {
			ret_vma->unpinnable = strstr(line, " io") || strstr(line, " pf");
			return true;
		}
	}
	return found;
}

static bool can_pin(unsigned long base, size_t bytes, bool read_only)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	unsigned long at = base;
	struct vma vma;

	if (!smaps)
		return is_mapped(base, bytes);
	while (at < base + bytes && next_vma(smaps, &vma)) {
		if (vma.end <= at)
			continue;
		if (vma.start > at || vma.unpinnable || vma.prot[0] != 'r' ||
		    (!read_only && vma.prot[1] != 'w'))
			break;
		at = vma.end;
	}
	fclose(smaps);
	return at >= base + bytes;
}

static CUresult add_locked(CUdeviceptr base, size_t bytes, unsigned int flags, bool ours)
{
	struct fk_host *host;

	if (find_locked(base, bytes))
		return FK_HOST_ALREADY_REGISTERED;
	host = calloc(1, sizeof(*host));
	if (!host)
		return FK_OUT_OF_MEMORY;
	host->base = base;
	host->bytes = bytes;
	host->flags = flags;
	host->ours = ours;
	host->kept = ours ? NULL : fk_kept_new(base, bytes);
	host->next = hosts;
	hosts = host;
	return FK_OK;
}

static CUresult check(CUdeviceptr base, size_t bytes, unsigned int flags)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct fk_device *device = fk_device_current();

	if (!base || !bytes || base + bytes < base ||
	    (flags & ~(PORTABLE | DEVICEMAP | IOMEMORY | READ_ONLY)))
		return FK_INVALID_VALUE;
	if (fk_option_is("HOST_ALIGN", "page", "page") && (base % page || bytes % page))
		return FK_INVALID_VALUE;
	if (!fk_device_attribute(device, 99) || (flags & IOMEMORY) ||
	    ((flags & READ_ONLY) && !fk_device_attribute(device, 113)))
		return FK_NOT_SUPPORTED;
	if (fk_memory_is_device(base) || !can_pin(base, bytes, flags & READ_ONLY))
		return FK_INVALID_VALUE;
	return FK_OK;
}

FK_DEFINE(cuMemHostRegister, 6050, cuMemHostRegister_v2, FK_CONTEXT | FK_UNSAFE,
	  void *ptr, size_t bytes, unsigned int flags)
{
	CUresult err;

	FK_ENTER(cuMemHostRegister_v2);
	err = check((uintptr_t)ptr, bytes, flags);
	if (err)
		return err;
	pthread_mutex_lock(&memory_lock);
	err = add_locked((uintptr_t)ptr, bytes, flags, false);
	pthread_mutex_unlock(&memory_lock);
	return err;
}

/* Each of the two ways to register memory has its own end. */
static CUresult remove_locked(CUdeviceptr base, bool ours, CUresult otherwise)
{
	struct fk_host **at, *host;

	do {
		for (at = &hosts; *at && (*at)->base != base; at = &(*at)->next)
			;
		host = *at;
		if (!host || host->ours != ours)
			return otherwise;
	} while (fk_pin_waited_locked(&host->pin));
	if (!is_mapped(host->base, host->bytes))
		fk_violation("%#llx was unmapped before it was unregistered", base);
	else if (ours)
		munmap((void *)(uintptr_t)base, host->bytes);
	*at = host->next;
	fk_kept_put(host->kept);
	free(host);
	return FK_OK;
}

static CUresult remove_host(void *ptr, bool ours, CUresult otherwise)
{
	CUresult err;

	fk_stream_drain_all();
	pthread_mutex_lock(&memory_lock);
	err = remove_locked((uintptr_t)ptr, ours, otherwise);
	pthread_mutex_unlock(&memory_lock);
	return err;
}

/* The driver ends, and its streams do nothing more. */
void fk_host_stop_locked(void)
{
	for (struct fk_host *host = hosts; host; host = host->next) {
		if (host->pin.users)
			continue;
		fk_kept_put(host->kept);
		host->kept = NULL;
	}
}

FK_DEFINE(cuMemHostUnregister, 4000, cuMemHostUnregister, FK_CONTEXT | FK_UNSAFE,
	  void *ptr)
{
	FK_ENTER(cuMemHostUnregister);
	return ptr ? remove_host(ptr, false, FK_HOST_NOT_REGISTERED) : FK_INVALID_VALUE;
}

FK_DEFINE(cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2, FK_CONTEXT,
	  CUdeviceptr *ret_ptr, void *ptr, unsigned int flags)
{
	struct fk_host *host;

	FK_ENTER(cuMemHostGetDevicePointer_v2);
	if (!ret_ptr || flags)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	host = find_locked((uintptr_t)ptr, 1);
	pthread_mutex_unlock(&memory_lock);
	if (!host)
		return FK_INVALID_VALUE;
	*ret_ptr = (uintptr_t)ptr;
	return FK_OK;
}

FK_DEFINE(cuMemHostGetFlags, 2030, cuMemHostGetFlags, FK_CONTEXT, unsigned int *ret_flags,
	  void *ptr)
{
	struct fk_host *host;

	FK_ENTER(cuMemHostGetFlags);
	pthread_mutex_lock(&memory_lock);
	host = find_locked((uintptr_t)ptr, 1);
	if (host && ret_flags)
		*ret_flags = host->flags | DEVICEMAP;
	pthread_mutex_unlock(&memory_lock);
	return host && ret_flags ? FK_OK : FK_INVALID_VALUE;
}

/* ---- Memory that the driver makes ---- */

static CUresult host_alloc(void **ret_ptr, size_t bytes, unsigned int flags)
{
	size_t page = sysconf(_SC_PAGESIZE);
	CUresult err;
	void *ptr;

	if (!ret_ptr || !bytes)
		return FK_INVALID_VALUE;
	bytes = (bytes + page - 1) / page * page;
	ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ptr == MAP_FAILED)
		return FK_OUT_OF_MEMORY;
	pthread_mutex_lock(&memory_lock);
	err = add_locked((uintptr_t)ptr, bytes, flags, true);
	pthread_mutex_unlock(&memory_lock);
	if (err)
		munmap(ptr, bytes);
	else
		*ret_ptr = ptr;
	return err;
}

FK_DEFINE(cuMemHostAlloc, 2020, cuMemHostAlloc, FK_CONTEXT | FK_UNSAFE,
	  void **ret_ptr, size_t bytes, unsigned int flags)
{
	FK_ENTER(cuMemHostAlloc);
	return flags > 7 ? FK_INVALID_VALUE : host_alloc(ret_ptr, bytes, flags & 3);
}

FK_DEFINE(cuMemAllocHost, 3020, cuMemAllocHost_v2, FK_CONTEXT | FK_UNSAFE,
	  void **ret_ptr, size_t bytes)
{
	FK_ENTER(cuMemAllocHost_v2);
	return host_alloc(ret_ptr, bytes, 0);
}

FK_DEFINE(cuMemFreeHost, 2000, cuMemFreeHost, FK_CONTEXT | FK_UNSAFE,
	  void *ptr)
{
	FK_ENTER(cuMemFreeHost);
	return ptr ? remove_host(ptr, true, FK_INVALID_VALUE) : FK_INVALID_VALUE;
}
