// SPDX-License-Identifier: MIT
/*
 * xmemd serves all programs of its user, so it must not end with the program that happened to start
 * it. It leaves its starter's cgroup where it may, and prints a note if it cannot. It also prints
 * where another xmemd of the user listens, because the programs of that xmemd do not reach this
 * one.
 *
 * The new cgroup is xmemd-UID in the outermost group in which this process may make one: for root
 * the root of the tree, and below a user's service manager the manager's own group. The cgroup
 * stays, empty, for the next xmemd.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/host/address.h"
#include "daemon.h"

#define CGROUPS		"/sys/fs/cgroup"
#define FIRST_PID_NS	0xEFFFFFFCu	/* the kernel's PROC_PID_INIT_INO */

/* ---- whom it ends with ---- */

/* A PID namespace ends with its first process, whatever the cgroup is. */
static bool in_container(void)
{
	struct stat info;

	return !stat("/proc/self/ns/pid", &info) && info.st_ino != FIRST_PID_NS;
}

/*
 * The group of this process, as a path below CGROUPS. False: it has none, or none that is visible.
 */
static bool find_cgroup(char *ret, size_t bytes)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	bool found = false;

	if (!file)
		return false;
	while (!found && fgets(ret, bytes, file))
		found = !strncmp(ret, "0::/", 4) && strchr(ret, '\n') && !strstr(ret, "/..");
	fclose(file);
	if (found) {
		*strchr(ret, '\n') = '\0';
		memmove(ret, ret + 3, strlen(ret + 3) + 1);
	}
	return found;
}

/* Move into the group xmemd-UID below this group. */
static bool enter_child_of(const char *group, int length)
{
	char child[PATH_MAX], procs[PATH_MAX + 16];
	bool made, entered;
	int fd;

	snprintf(child, sizeof(child), CGROUPS "%.*s/xmemd-%u", length, group, geteuid());
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", child);
	made = !mkdir(child, 0755);
	fd = open(procs, O_WRONLY | O_CLOEXEC);
	entered = fd >= 0 && write(fd, "0", 1) == 1;
	if (fd >= 0)
		close(fd);
	if (made && !entered)
		rmdir(child);
	return entered;
}

static void leave_cgroup(const char *group)
{
	const char *end = group;
	struct statfs fs;

	if (!group[1] || statfs(CGROUPS, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC)
		return;
	while (end && !enter_child_of(group, end - group))
		end = strchr(end + 1, '/');
}

/*
 * The innermost service in a group's path. A user's service manager is not a service. It cuts
 * @group.
 */
static const char *find_service(char *group)
{
	const char *service = NULL;
	char *word, *rest = group;

	while ((word = strsep(&rest, "/"))) {
		const char *dot = strrchr(word, '.');

		if (dot && !strcmp(dot, ".service") && strncmp(word, "user@", 5))
			service = word;
	}
	return service;
}

static bool is_from_elsewhere(const char *folder)
{
	struct stat root, info;

	return !stat("/", &root) && !stat(folder, &info) && root.st_dev != info.st_dev;
}

void xd_place_leave(void)
{
	struct xm_address address;
	char group[PATH_MAX];
	const char *service = NULL;

	if (in_container()) {
		if (!xm_address_find(&address) && is_from_elsewhere(address.folder))
			fprintf(stderr, XD_NOTE "it ends with this container, also for programs "
				"outside of it that share %s; see xmemd(8)\n", address.folder);
		return;
	}
	if (find_cgroup(group, sizeof(group)))
		leave_cgroup(group);
	if (find_cgroup(group, sizeof(group)))
		service = find_service(group);
	if (service)
		fprintf(stderr, XD_NOTE "it ends with %s, which has started it, and has its "
			"limits; root can avoid that by 'systemctl enable --now "
			"xmemd@%u.socket'\n", service, geteuid());
}

/* ---- another one ---- */

/* The path of another listening socket in a line of /proc/net/unix, or NULL. */
static char *other_listener(char *line, unsigned long own)
{
	unsigned int flags, type;
	unsigned long inode;
	int at = 0;

	if (sscanf(line, "%*s %*x %*x %x %x %*x %lu %n", &flags, &type, &inode, &at) != 3 ||
	    !(flags & 1 << 16) || type != SOCK_SEQPACKET || inode == own)
		return NULL;	/* the flag is __SO_ACCEPTCON of the kernel */
	line[strcspn(line, "\n")] = '\0';
	return line + at;
}

/*
 * The kernel lists the sockets of all mount namespaces here. So a service with a /tmp of its own
 * also sees the socket in the common /tmp.
 */
void xd_place_other(int listener)
{
	char *line = NULL, *path, folders[2][XM_ADDRESS_BYTES], paths[2][2 * XM_ADDRESS_BYTES];
	struct xm_address address;
	struct stat own;
	size_t bytes = 0;
	unsigned int uid;
	FILE *file;

	/* With a path in XMEM_SOCKET, the user has chosen another address. */
	if (xm_address_find(&address) || !address.own_folder || fstat(listener, &own))
		return;
	uid = strtoul(strrchr(address.folder, '-') + 1, NULL, 10);
	snprintf(folders[0], sizeof(folders[0]), XM_FOLDER_RUN, uid);
	snprintf(folders[1], sizeof(folders[1]), XM_FOLDER_TMP, uid);
	snprintf(paths[0], sizeof(paths[0]), "%s/%s", folders[0], address.name);
	snprintf(paths[1], sizeof(paths[1]), "%s/%s", folders[1], address.name);
	file = fopen("/proc/net/unix", "re");
	while (file && getline(&line, &bytes, file) > 0) {
		path = other_listener(line, own.st_ino);
		if (path && (!strcmp(path, paths[0]) || !strcmp(path, paths[1])))
			fprintf(stderr, XD_NOTE "another xmemd of this user listens at %s and "
				"serves other programs; they share no pools with the programs "
				"of this one; see xmemd(8)\n", path);
	}
	free(line);
	if (file)
		fclose(file);
}
