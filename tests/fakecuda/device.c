// SPDX-License-Identifier: MIT
/*
 * The devices: FAKECUDA_DEVICES is how many are in the machine (1), CUDA_VISIBLE_DEVICES which of
 * them this process sees and in what order, and FAKECUDA_PEERS which can access each other's memory
 * ("0-1,1-2"; "none"; not set: all). Rules 26 and 27.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "tests.h"

static struct fk_device devices[FK_MAX_DEVICES];
static int count;

int fk_device_count(void)
{
	return count;
}

struct fk_device *fk_device(int ordinal)
{
	return ordinal >= 0 && ordinal < count ? &devices[ordinal] : NULL;
}

struct fk_device *fk_device_by_index(int index)
{
	for (int i = 0; i < count; i++)
		if (devices[i].index == index)
			return &devices[i];
	return NULL;
}

/* All processes get equal UUIDs, so that they find each other's devices. */
CUuuid fk_device_uuid(int index)
{
	CUuuid uuid = { { 'f', 'a', 'k', 'e', 'c', 'u', 'd', 'a', 0x40, 0, 0x80, 0, 0, 0, 0 } };

	uuid.bytes[14] = fk_option_number("MACHINE", 1);
	uuid.bytes[15] = index;
	return uuid;
}

bool fk_device_peers(int index, int peer_index)
{
	const char *pairs = fk_option("PEERS", NULL);
	char one[16], other[16];

	if (index == peer_index || !pairs)
		return true;
	snprintf(one, sizeof(one), "%d-%d", index, peer_index);
	snprintf(other, sizeof(other), "%d-%d", peer_index, index);
	return strstr(pairs, one) || strstr(pairs, other);
}

static void uuid_text(int index, char *text, size_t bytes)
{
	const unsigned char *b = (unsigned char *)fk_device_uuid(index).bytes;
	char copy[33];

	for (int i = 0; i < 16; i++)
		sprintf(copy + 2 * i, "%02x", b[i]);
	snprintf(text, bytes, "GPU-%.8s-%.4s-%.4s-%.4s-%s", copy, copy + 8, copy + 12,
		 copy + 16, copy + 20);
}

/* One word of CUDA_VISIBLE_DEVICES: a number, or the beginning of a UUID. -1: no such device. */
static int visible(const char *word, int machine)
{
	char text[64], *end;
	long index;

	if (!strncmp(word, "GPU-", 4)) {
		for (int i = 0; i < machine; i++) {
			uuid_text(i, text, sizeof(text));
			if (!strncmp(text, word, strlen(word)))
				return i;
		}
		return -1;
	}
	index = strtol(word, &end, 10);
	return end == word || *end || index < 0 || index >= machine ? -1 : (int)index;
}

static void add(int index)
{
	struct fk_device *device = &devices[count];

	*device = (struct fk_device) {
		.ordinal = count, .index = index, .uuid = fk_device_uuid(index),
		.bytes = (size_t)fk_option_number("MEMORY_MIB", 4096) << 20,
	};
	device->primary.device = device;
	device->primary.primary = true;
	count++;
}

void fk_devices_init(void)
{
	int machine = fk_option_number("DEVICES", 1);
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	char copy[1024], *save, *word;

	count = 0;
	machine = machine > FK_MAX_DEVICES ? FK_MAX_DEVICES : machine;
	if (!list) {
		while (count < machine)
			add(count);
		return;
	}
	snprintf(copy, sizeof(copy), "%s", list);
	/* The first word without a device hides all later ones, and so does a repeated one. */
	for (word = strtok_r(copy, ", ", &save); word; word = strtok_r(NULL, ", ", &save)) {
		int index = visible(word, machine);

		if (index < 0 || fk_device_by_index(index))
			return;
		add(index);
	}
}

FK_DEFINE(cuDeviceGetCount, 2000, cuDeviceGetCount, FK_INIT, int *ret_count)
{
	FK_ENTER(cuDeviceGetCount);
	if (!ret_count)
		return FK_INVALID_VALUE;
	*ret_count = count;
	return FK_OK;
}

FK_DEFINE(cuDeviceGet, 2000, cuDeviceGet, FK_INIT, CUdevice *ret_device, int ordinal)
{
	FK_ENTER(cuDeviceGet);
	if (!ret_device)
		return FK_INVALID_VALUE;
	if (!fk_device(ordinal))
		return FK_INVALID_DEVICE;
	*ret_device = ordinal;
	return FK_OK;
}

FK_DEFINE(cuDeviceGetName, 2000, cuDeviceGetName, FK_INIT, char *name, int bytes, CUdevice device)
{
	FK_ENTER(cuDeviceGetName);
	if (!name || bytes <= 0)
		return FK_INVALID_VALUE;
	if (!fk_device(device))
		return FK_INVALID_DEVICE;
	snprintf(name, bytes, "Fake GPU %d", fk_device(device)->index);
	return FK_OK;
}

static CUresult get_uuid(CUuuid *ret_uuid, CUdevice device)
{
	if (!ret_uuid)
		return FK_INVALID_VALUE;
	if (!fk_device(device))
		return FK_INVALID_DEVICE;
	*ret_uuid = fk_device(device)->uuid;
	return FK_OK;
}

FK_DEFINE(cuDeviceGetUuid, 9020, cuDeviceGetUuid, FK_INIT, CUuuid *ret_uuid, CUdevice device)
{
	FK_ENTER(cuDeviceGetUuid);
	return get_uuid(ret_uuid, device);
}

FK_DEFINE(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2, FK_INIT, CUuuid *ret_uuid, CUdevice device)
{
	FK_ENTER(cuDeviceGetUuid_v2);
	return get_uuid(ret_uuid, device);
}

FK_DEFINE(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2, FK_INIT, size_t *ret_bytes,
	  CUdevice device)
{
	FK_ENTER(cuDeviceTotalMem_v2);
	if (!ret_bytes)
		return FK_INVALID_VALUE;
	if (!fk_device(device))
		return FK_INVALID_DEVICE;
	*ret_bytes = fk_device(device)->bytes;
	return FK_OK;
}

FK_DEFINE(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId, FK_INIT, char *text, int bytes,
	  CUdevice device)
{
	FK_ENTER(cuDeviceGetPCIBusId);
	if (!text || bytes < 13)
		return FK_INVALID_VALUE;
	if (!fk_device(device))
		return FK_INVALID_DEVICE;
	snprintf(text, bytes, "0000:%02X:00.0", fk_device(device)->index + 1);
	return FK_OK;
}

FK_DEFINE(cuDeviceCanAccessPeer, 4000, cuDeviceCanAccessPeer, FK_INIT, int *ret_can,
	  CUdevice device, CUdevice peer)
{
	FK_ENTER(cuDeviceCanAccessPeer);
	if (!ret_can)
		return FK_INVALID_VALUE;
	if (!fk_device(device) || !fk_device(peer))
		return FK_INVALID_DEVICE;
	*ret_can = device != peer &&
		fk_device_peers(fk_device(device)->index, fk_device(peer)->index);
	return FK_OK;
}

FK_DEFINE(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute, FK_INIT, int *ret_value,
	  int attribute, CUdevice device)
{
	int value;

	FK_ENTER(cuDeviceGetAttribute);
	if (!ret_value)
		return FK_INVALID_VALUE;
	if (!fk_device(device))
		return FK_INVALID_DEVICE;
	value = fk_device_attribute(fk_device(device), attribute);
	if (value < 0)
		return FK_INVALID_VALUE;
	*ret_value = value;
	return FK_OK;
}
