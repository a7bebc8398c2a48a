// SPDX-License-Identifier: MIT
/*
 * Looking at the pools of xmem.ko: the lines in /sys/class/xmem/poolN (docs/abi/sysfs.txt), which
 * the module shows to users whom a pool lets in. They have no rings and no cursors. So a
 * publisher's frames are counted by the generations of its slots, and what subscribers have
 * received is not known. A line that does not look as that page says is left out.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/look.h"
#include "xmem/uapi.h"

#define CLASS	"/sys/class/xmem"

/* ---- the folder of a pool ---- */

static FILE *open_in(int folder, const char *name)
{
	int file = openat(folder, name, O_RDONLY | O_CLOEXEC);

	return file < 0 ? NULL : fdopen(file, "r");
}

/* How many facts of the pool the folder has. 0: one of the five that never change differs. */
static int fits(int folder, const json_t *pool)
{
	static const char *const facts[][2] = {
		{ "slots_max", "slots_max" }, { "clients_max", "clients_max" },
		{ "ring_entries", "ring_entries" }, { "owner_uid", "uid" }, { "name", "name" },
		{ "gid", "gid" }, { "payload_bytes", "bytes_files" },
		{ "kept_bytes", "bytes_kept" },
	};
	int count = sizeof(facts) / sizeof(*facts), i;
	bool equal = true;

	for (i = 0; i < count && equal; i++) {
		const json_t *value = json_object_get(pool, facts[i][1]);
		const char *text = json_string_value(value);
		FILE *file = open_in(folder, facts[i][0]);
		char line[256] = "";

		if (file && fgets(line, sizeof(line), file))
			line[strcspn(line, "\n")] = '\0';
		equal = json_is_integer(value) ? atoll(line) == json_integer_value(value) :
						 !strcmp(line, text ? text : "");
		if (file)
			fclose(file);
	}
	i -= !equal;
	return i < 5 ? 0 : i;
}

/*
 * The descriptor of the folder, or -1. It is numbered otherwise than the pool, and pools of two
 * network namespaces may have one name. If several fit, it is the only one that fits best.
 */
static int find_folder(const json_t *pool)
{
	int found = -1, best = 0, folder, fit;
	DIR *all = opendir(CLASS);
	struct dirent *entry;

	while (all && (entry = readdir(all))) {
		if (strncmp(entry->d_name, "pool", 4))
			continue;
		folder = openat(dirfd(all), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fit = fits(folder, pool);
		if (fit >= best) {
			if (found >= 0)
				close(found);
			found = fit > best ? folder : -1;
			best = fit;
		}
		if (folder >= 0 && found != folder)
			close(folder);
	}
	if (all)
		closedir(all);
	return found;
}

/* ---- lines ---- */

typedef unsigned long long number;	/* as sscanf and json_pack take it */

struct look_lines {
	struct look_tally tally[XMEM_MAX_CLIENTS];
	bool unsure[XMEM_MAX_CLIENTS];		/* the client's holds are not known */
	number device[256];			/* bytes of buffers on each GPU */
	json_t *slots, *clients;
	const json_t *before;			/* the slots of the sample before, or NULL */
	size_t next;				/* of those */
};

/*
 * Take each whole line of a file, without its end. @changed: it is of several moments. false: the
 * pool has just ended, or this user may not read it.
 */
static bool read_lines(struct look_lines *look, int folder, const char *name,
		       void (*take)(struct look_lines *look, number i, const char *line,
				    bool changed))
{
	FILE *file = open_in(folder, name);
	ssize_t width = 0, length;
	char *line = NULL;
	size_t room = 0;
	number i;
	bool good;

	for (i = 0; file && (length = getline(&line, &room, file)) > 0; i++) {
		width = i ? width : length;
		if (!i || length != width || length < 3)
			continue;
		good = line[length - 2] != '!';
		line[length - 2] = '\0';
		take(look, i - 1, line, !good);
	}
	good = file && i && !ferror(file);
	free(line);
	if (file)
		fclose(file);
	return good;
}

/*
 * The holders in a bitmap, whose last digit has client 0. @holds are those of all of them. How many
 * each has is known if only one has any, or if each has one.
 */
static json_t *count_holds(struct look_lines *look, const char *bitmap, number holds, bool changed,
			   number limbo_bytes)
{
	size_t length = strlen(bitmap), at, count, i;
	json_t *holders = cli_array(), *id;
	json_int_t c;

	for (c = 0; c < XMEM_MAX_CLIENTS; c++) {
		char digit[2] = "";

		at = c / 4 + c / 32 + 1;		/* from the end: each eighth has a comma */
		*digit = at <= length ? bitmap[length - at] : '0';
		if (strtoul(digit, NULL, 16) >> c % 4 & 1)
			cli_append(holders, json_integer(c));
	}
	count = json_array_size(holders);
	json_array_foreach(holders, i, id) {
		c = json_integer_value(id);
		look->tally[c].holds += holds / count;
		look->unsure[c] |= changed || (count > 1 && holds != count);
		look->tally[c].limbo += limbo_bytes > 0;
		look->tally[c].bytes_limbo += limbo_bytes;
	}
	return holders;
}

/*
 * Each acquire raises the generation of a slot by one, and nearly every acquire is published. Slots
 * that have another owner than before do not count: an attach chooses a new generation.
 */
static void count_frames(struct look_lines *look, const json_t *slot)
{
	const json_t *old, *owner = json_object_get(slot, "owner");
	json_int_t more;

	while ((old = json_array_get(look->before, look->next)) &&
	       look_number(old, "slot") < look_number(slot, "slot"))
		look->next++;
	more = look_number(slot, "generation") - look_number(old, "generation");
	if (!json_is_integer(owner) || !json_equal(json_object_get(old, "owner"), owner) ||
	    look_number(old, "slot") != look_number(slot, "slot") ||
	    more < 0 || more >> XMEM_TENANCY_SHIFT)
		return;
	look->tally[json_integer_value(owner)].frames += more;
	look->tally[json_integer_value(owner)].bytes += more * look_number(slot, "bytes");
}

static const char *state_of(const char *shown)
{
	return !strcmp(shown, "free") ? "free" :
	       !strcmp(shown, "live") || !strcmp(shown, "scanning") ? "live" :
	       !strcmp(shown, "writing") || !strcmp(shown, "upgraded") ? "writing" : "none";
}

static void take_slot(struct look_lines *look, number i, const char *line, bool changed)
{
	char name[8], state[9], bitmap[XMEM_MAX_CLIENTS / 32 * 9 + 1];
	number slot, generation, length, claims, holds;
	unsigned int owner, traits;
	json_t *row;
	bool limbo;

	if (sscanf(line, "%llu %7s %8s %llu %*u %llu %x %llu %llu %72s", &slot, name, state,
		   &generation, &length, &traits, &claims, &holds, bitmap) != 9 || slot != i)
		return;			/* it has no payload, or the line is none */
	limbo = !strcmp(name, "host");
	owner = cli_slot_number(name);
	if (!limbo && owner >= XMEM_MAX_CLIENTS)
		return;
	traits >>= XMEM_TRAIT_DEVICE_SHIFT;
	look->device[traits] += length;
	if (!limbo)
		look->tally[owner].slots++;
	row = json_pack("{sI ss sI si so sI so sI so}", "slot", slot,
			"state", limbo ? "limbo" : state_of(state), "bytes", length,
			"device", traits, "owner", look_known(!limbo, owner),
			"generation", generation, "holds", look_known(!changed, holds),
			"claims", claims, "holders",
			count_holds(look, bitmap, holds, changed, limbo ? length : 0));
	cli_append(look->slots, row);
	count_frames(look, row);
}

static void take_client(struct look_lines *look, number i, const char *line, bool changed)
{
	number id, pid, uid, incarnation;
	const struct look_tally *tally;
	char state[11], role[7];
	int at = 0, length;
	bool known;

	if (sscanf(line, "%llu %10s %6s %llu %llu %llu%n", &id, state, role, &pid, &uid,
		   &incarnation, &at) != 6 || id != i || id >= XMEM_MAX_CLIENTS || line[at] != ' ')
		return;			/* the id is free, or the line is none */
	for (length = strlen(line + ++at); length && line[at + length - 1] == ' '; length--)
		;
	tally = &look->tally[id];
	known = look->before && !strcmp(role, "writer");
	cli_append(look->clients, json_pack(
		"{sI sI so sI sI ss ss sI so sI sI so so sn sn sn sn sn sn sn sn sn}",
		"client", id, "incarnation", incarnation, "label", cli_text(line + at, length),
		"pid", pid, "uid", uid, "role", strcmp(role, "writer") ? "reader" : role,
		"state", strcmp(state, "alive") ? "zombie" : state, "slots", tally->slots,
		"holds", look_known(!changed && !look->unsure[id], tally->holds),
		"limbo", tally->limbo, "bytes_limbo", tally->bytes_limbo,
		"frames_published", look_known(known, tally->frames),
		"bytes_published", look_known(known, tally->bytes), "published", "bytes_mapped",
		"frames_received", "bytes_received", "behind", "lost", "subscriptions", "awaits",
		"waits_for"));
}

void look_sysfs(json_t *pool, const json_t *before)
{
	struct look_lines look = {
		.slots = cli_array(), .clients = cli_array(),
		.before = json_object_get(before, "slots"),
	};
	int folder = find_folder(pool), i;
	json_t *devices = cli_array();

	if (read_lines(&look, folder, "buffers", take_slot) &&
	    read_lines(&look, folder, "clients", take_client)) {
		for (i = 1; i < 256; i++)
			if (look.device[i])
				cli_append(devices, json_pack("{si sn sI sn}", "device", i, "uuid",
							      "bytes", look.device[i],
							      "bytes_closing"));
		cli_set(pool, "clients", json_incref(look.clients));
		cli_set(pool, "slots", json_incref(look.slots));
		cli_set(pool, "devices", json_incref(devices));
	}
	json_decref(devices);
	json_decref(look.clients);
	json_decref(look.slots);
	if (folder >= 0)
		close(folder);
}
