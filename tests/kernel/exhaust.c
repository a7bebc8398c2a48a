// SPDX-License-Identifier: MIT
/*
 * exhaust [NAME...]: one user takes as much as it can get of each limited resource, and keeps it.
 * Then another user does its usual work, and must succeed.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "attack.h"
#include "core/policy.h"

/* The attacker, the victim and their parent exchange these values. */
struct scene {
	int pool_fd;			/* of the victim's pool, in this process */
	u64 slots;			/* capacity of that pool; 0: the default */
	bool follows;			/* the attacker follows the other writer of the pool */
	struct told {
		int pool_fd;		/* its number in the victim */
		atomic_uint taken;	/* by the attacker */
		u32 publisher;		/* its id, in that pool */
	} *told;
	struct kid victim, attacker;
};

static const char *start_scene(struct scene *scene)
{
	*scene = (struct scene){ .pool_fd = -1 };
	scene->told = shared_memory(sizeof(*scene->told));
	return scene->told ? NULL : "no shared memory";
}

/* ---- the victim's pool ---- */

static struct raw its;			/* in the victim */

static const char *keeps(void *argument)
{
	struct scene *scene = argument;
	struct xmem_join_request join = raw_joining("exhausted", XMEM_ROLE_WRITER);

	join.slots = scene->slots;
	SAME(become(VICTIM), 0);
	SAME(raw_start(&its, &join), 0);
	scene->told->pool_fd = pool_descriptor(&its);
	WANT(scene->told->pool_fd >= 0);
	return NULL;
}

static const char *start_victim(struct scene *scene, const char *(*live)(void *))
{
	GOES_WELL(kid_start(&scene->victim, live, scene));
	scene->pool_fd = take_descriptor(&scene->victim, scene->told->pool_fd);
	return scene->pool_fd < 0 ? "the pool's descriptor" : NULL;
}

/* ---- holds that no owner has allowed ---- */

#define SLOTS	4u

static struct xmem_attach_request attached;

static const char *publishes(void *argument)
{
	struct xm_publication publication = { .length = RAW_PAGE };
	struct scene *scene = argument;
	struct xmem_join_request join;
	u32 i;

	if (scene->pool_fd < 0) {
		GOES_WELL(keeps(scene));
	} else {
		join = joining_by_file(scene->pool_fd, XMEM_ROLE_WRITER);
		SAME(become(VICTIM), 0);
		SAME(raw_start(&its, &join), 0);
	}
	attached = raw_attaching(raw_memfd(SLOTS, 1), SLOTS);
	SAME(raw_request(&its, XMEM_IOC_ATTACH, &attached), 0);
	SAME(raw_map_group(&its, attached.slot[0] / XMEM_GROUP_SLOTS), 0);
	for (i = 0; i < SLOTS; i++) {
		SAME(xm_take(&its.map, attached.slot[i]), 0);
		xm_publish(&its.map, its.join.client, attached.slot[i], &publication);
	}
	scene->told->publisher = its.join.client;
	return NULL;
}

/* Which of its slots does the owner get back? */
static const char *publishes_and_reclaims(void *argument)
{
	struct xm_scan_rules rules = { 0 };
	struct xm_waited waited;
	u32 i, culprit, free = 0;

	GOES_WELL(publishes(argument));
	kid_pause();
	rules.owner = its.join.client;
	rules.passed = xm_passed(&its.map, rules.owner, &culprit);
	xm_read_waited(&its.map, rules.owner, &waited);
	rules.tail = waited.tail;
	rules.evictable = waited.evictable;
	for (i = 0; i < SLOTS; i++)
		free += xm_scan_one(&its.map, &rules, attached.slot[i]);
	if (free < SLOTS)
		return wrong("of %u slots that nobody could have, %u come free", SLOTS, free);
	return NULL;
}

/* The id of the writer that has joined the pool last. */
static u32 last_writer(const struct xm_map *map)
{
	u32 c, last = map->clients;

	for (c = 0; c < map->clients; c++)
		if (xm_client_row(map, c)->role == XMEM_ROLE_WRITER)
			last = c;
	return last;
}

/* A reader without a subscription, or with one to another writer, claims to hold all slots. */
static const char *holds_everything(void *argument)
{
	struct xmem_subscribe_request subscribe = { .size = sizeof(subscribe) };
	struct scene *scene = argument;
	struct xmem_join_request join = joining_by_file(scene->pool_fd, XMEM_ROLE_READER);
	static struct raw me;
	u32 s;

	SAME(become(ATTACKER), 0);
	SAME(raw_start(&me, &join), 0);
	subscribe.publisher = last_writer(&me.map);
	if (scene->follows)
		SAME(raw_request(&me, XMEM_IOC_SUBSCRIBE, &subscribe), 0);
	for (s = 0; s < me.map.slots; s++)
		xm_store(xm_hold(&me.map, me.join.client, s), 1);
	return NULL;
}

static const char *holds_without_right_keep_nothing(void)
{
	struct scene scene;

	GOES_WELL(start_scene(&scene));
	GOES_WELL(start_victim(&scene, publishes_and_reclaims));
	GOES_WELL(kid_start(&scene.attacker, holds_everything, &scene));
	kid_go_on(&scene.victim);
	return kid_ready(&scene.victim);
}

/* The victim's user also publishes that one, in this pool. */
static const char *start_another(struct scene *scene, struct kid *ret_other)
{
	scene->follows = true;
	return kid_start(ret_other, publishes, scene);
}

static const char *holds_of_another_ring_keep_nothing(void)
{
	struct scene scene;
	struct kid other;

	GOES_WELL(start_scene(&scene));
	GOES_WELL(start_victim(&scene, publishes_and_reclaims));
	GOES_WELL(start_another(&scene, &other));
	GOES_WELL(kid_start(&scene.attacker, holds_everything, &scene));
	kid_go_on(&scene.victim);
	return kid_ready(&scene.victim);
}

/* Returns a slot that has an owner, or the capacity if there is none. */
static u32 owned_slot(const struct xm_map *map)
{
	u32 s;

	for (s = 0; s < map->slots; s++)
		if (xm_load(&xm_slot_row(map, s)->owner) < map->clients)
			break;
	return s;
}

/* A client cannot let others hold a slot that it may not hold, although it claims a hold. */
static const char *strangers_let_nobody_in(void)
{
	struct xmem_grant_request grant = {
		.size = sizeof(grant), .op = XMEM_OP_FORWARD,
	};
	struct xmem_join_request join;
	struct scene scene;
	static struct raw me;

	GOES_WELL(start_scene(&scene));
	GOES_WELL(start_victim(&scene, publishes));
	join = joining_by_file(scene.pool_fd, XMEM_ROLE_WRITER);
	SAME(become(ATTACKER), 0);
	SAME(raw_start(&me, &join), 0);
	grant.slot = owned_slot(&me.map);
	WANT(grant.slot < me.map.slots);
	SAME(raw_request(&me, XMEM_IOC_GRANT, &grant), -EACCES);
	xm_store(xm_hold(&me.map, me.join.client, grant.slot), 1);
	SAME(raw_request(&me, XMEM_IOC_GRANT, &grant), -EACCES);
	grant.op = grant.slot = 0;
	grant.client = me.join.client;
	grant.incarnation = me.join.incarnation;
	SAME(raw_request(&me, XMEM_IOC_GRANT, &grant), 0);
	WANT(!xm_holds_count(&me.map, me.join.client, owned_slot(&me.map)));
	return NULL;
}

/* A publisher is killed and comes back, while a stranger follows another publisher. */
static const char *a_restarted_publisher_finds_room(void)
{
	struct xmem_join_request join;
	struct kid publisher, other;
	struct scene scene;
	static struct raw me;

	GOES_WELL(start_scene(&scene));
	scene.slots = 3ULL * XMEM_GROUP_SLOTS;
	GOES_WELL(start_victim(&scene, keeps));
	join = joining_by_file(scene.pool_fd, XMEM_ROLE_READER);
	SAME(raw_start(&me, &join), 0);
	GOES_WELL(kid_start(&publisher, publishes, &scene));
	GOES_WELL(start_another(&scene, &other));
	GOES_WELL(kid_start(&scene.attacker, holds_everything, &scene));
	for (u32 n = 0; n < 4; n++) {
		kid_kill(&publisher);
		kid_reap(&publisher);
		if (!EVENTUALLY(xm_load(&me.map.pool->payload_bytes) <= SLOTS * RAW_PAGE))
			return wrong("%llu bytes are kept of a publisher that died",
				     (unsigned long long)xm_load(&me.map.pool->payload_bytes));
		GOES_WELL(kid_start(&publisher, publishes, &scene));
	}
	return NULL;
}

static const char *holds_without_right_keep_no_memory(void)
{
	struct xmem_join_request join;
	struct scene scene;
	struct kid publisher;
	static struct raw me;

	GOES_WELL(start_scene(&scene));
	GOES_WELL(start_victim(&scene, keeps));
	join = joining_by_file(scene.pool_fd, XMEM_ROLE_READER);
	SAME(raw_start(&me, &join), 0);
	GOES_WELL(kid_start(&publisher, publishes, &scene));
	GOES_WELL(kid_start(&scene.attacker, holds_everything, &scene));
	kid_kill(&publisher);
	kid_reap(&publisher);
	if (!EVENTUALLY(!xm_load(&me.map.pool->payload_bytes)))
		return wrong("%llu bytes of a dead publisher are kept",
			     (unsigned long long)xm_load(&me.map.pool->payload_bytes));
	return NULL;
}

/* ---- pools ---- */

#define DEAD_POOLS	505u		/* as in the review */
#define POOLS		80u		/* more than with_few_pools allows one user */
#define USERS		80u
#define LEAST_BYTES	"67108864"	/* max_bytes, so that the machine needs little memory */

/* The victim, which has nothing yet, makes a pool and publishes in it. */
static const char *makes_a_pool(void *argument)
{
	struct scene *scene = argument;

	scene->pool_fd = -1;
	return publishes(scene);
}

static const char *victim_makes_a_pool(struct scene *scene)
{
	const char *why = kid_start(&scene->victim, makes_a_pool, scene);

	figure("taken: %u", atomic_load(&scene->told->taken));
	return why;
}

/* Each pool has lost its only client; only that client's file is left. */
static const char *leaves_dead_pools(void *argument)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_READER);
	static struct raw dead[DEAD_POOLS];
	struct scene *scene = argument;
	u32 i;

	join.slots = 16384;
	join.clients = 2;
	SAME(become(ATTACKER), 0);
	for (i = 0; i < DEAD_POOLS; i++) {
		/* If there is no room for a large pool, there may be room for a smaller one. */
		while (start_thin(&dead[i], &join) && join.slots > XMEM_GROUP_SLOTS) {
			raw_end(&dead[i]);
			join.slots /= 2;
		}
		if (!dead[i].area)
			break;
		munmap(dead[i].area, dead[i].header.area_stride);
		dead[i].area = NULL;
		scene->told->taken++;
	}
	return NULL;
}

static const char *dead_pools(struct scene *scene)
{
	GOES_WELL(kid_start(&scene->attacker, leaves_dead_pools, scene));
	return victim_makes_a_pool(scene);
}

static const char *with_parameter(const char *name, const char *value, const char *usual,
				  const char *(*attack)(struct scene *))
{
	struct scene scene;
	const char *why;

	GOES_WELL(start_scene(&scene));
	SAME(xmem_set(name, value), 0);
	why = attack(&scene);
	SAME(xmem_set(name, usual), 0);
	return why;
}

static const char *dead_pools_leave_room(void)
{
	return with_parameter("max_bytes", LEAST_BYTES, "2147483648", dead_pools);
}

/* Makes as many pools as it may, and keeps them. */
static void make_pools(struct scene *scene)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_READER);
	static struct raw pools[POOLS];
	u32 i;

	join.slots = 64;
	join.clients = 1;
	for (i = 0; i < POOLS && !start_thin(&pools[i], &join); i++)
		scene->told->taken++;
}

static const char *makes_pools(void *argument)
{
	SAME(become(ATTACKER), 0);
	make_pools(argument);
	return NULL;
}

/* So that the machine has memory for as many as there may be. */
static const char *with_few_pools(const char *(*attack)(struct scene *))
{
	const char *why;

	SAME(xmem_set("max_pools", "1024"), 0);
	why = with_parameter("user_max_pools", "64", "1024", attack);
	SAME(xmem_set("max_pools", "4096"), 0);
	return why;
}

static const char *empty_pools(struct scene *scene)
{
	GOES_WELL(kid_start(&scene->attacker, makes_pools, scene));
	return victim_makes_a_pool(scene);
}

static const char *empty_pools_leave_room(void)
{
	return with_few_pools(empty_pools);
}

/*
 * The attacker has a user namespace with many users, each of which makes pools. Root has given it
 * these ids, as newuidmap does by /etc/subuid.
 */
static const char *is_many(void *argument)
{
	struct scene *scene = argument;
	atomic_uint *ready = shared_memory(sizeof(*ready));
	u32 i;

	SAME(become(ATTACKER), 0);
	SAME(unshare(CLONE_NEWUSER), 0);
	kid_pause();
	for (i = 0; i < USERS; i++) {
		pid_t pid = fork();

		WANT(pid >= 0);
		if (!pid) {
			if (!setresuid(i, i, i))
				make_pools(scene);
			atomic_fetch_add(ready, 1);
			for (;;)
				pause();
		}
		WANT(EVENTUALLY(atomic_load(ready) == i + 1));
	}
	return NULL;
}

static const char *sub_uids(struct scene *scene)
{
	GOES_WELL(kid_start(&scene->attacker, is_many, scene));
	GOES_WELL(write_map(scene->attacker.pid, "uid_map", "0 200000 1000\n"));
	kid_go_on(&scene->attacker);
	GOES_WELL(kid_ready(&scene->attacker));
	return victim_makes_a_pool(scene);
}

static const char *sub_uids_leave_room(void)
{
	return with_few_pools(sub_uids);
}

/* ---- many at once ---- */

#define AT_ONCE		32u
#define ALL_BYTES	4194304u
#define TIMES		12u

static struct {
	pthread_barrier_t barrier;
	atomic_uint got, refused, other;
} at_once;

static void *joins_with_others(void *unused)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	struct raw me;
	int err;

	(void)unused;
	join.slots = 4096;
	join.clients = 2;
	err = raw_open(&me);
	pthread_barrier_wait(&at_once.barrier);
	err = err ? err : raw_join(&me, &join);
	atomic_fetch_add(!err ? &at_once.got : err == -EDQUOT ? &at_once.refused : &at_once.other,
			 1);
	return NULL;
}

/* Each has a file, by which it asks for a pool at one moment with all others. */
static const char *makes_pools_at_once(void *argument)
{
	struct xmem_quota_request quota = {
		.size = sizeof(quota), .quota = XMEM_QUOTA_USER_PAGE_BYTES,
	};
	struct scene *scene = argument;
	pthread_t thread[AT_ONCE];
	static struct raw any;
	u32 i;

	SAME(become(ATTACKER), 0);
	SAME(pthread_barrier_init(&at_once.barrier, NULL, AT_ONCE), 0);
	for (i = 0; i < AT_ONCE; i++)
		SAME(pthread_create(&thread[i], NULL, joins_with_others, NULL), 0);
	for (i = 0; i < AT_ONCE; i++)
		SAME(pthread_join(thread[i], NULL), 0);
	SAME(at_once.other, 0);
	WANT(at_once.got && at_once.refused);
	SAME(raw_open(&any), 0);
	SAME(raw_request(&any, XMEM_IOC_QUOTA, &quota), 0);
	scene->told->taken = quota.used;
	return NULL;
}

/* The pages of all pools that other processes have had are free by now. */
static bool no_page_counts(void)
{
	struct xmem_quota_request quota = {
		.size = sizeof(quota), .quota = XMEM_QUOTA_PAGE_BYTES,
	};
	struct raw any = RAW_NONE;
	bool none = !raw_open(&any) && !raw_request(&any, XMEM_IOC_QUOTA, &quota) && !quota.used;

	raw_end(&any);
	return none;
}

static const char *pools_at_once(struct scene *scene)
{
	u32 i;

	for (i = 0; i < TIMES; i++) {
		WANT(EVENTUALLY(no_page_counts()));
		GOES_WELL(kid_start(&scene->attacker, makes_pools_at_once, scene));
		if (scene->told->taken > ALL_BYTES / 2)
			return wrong("of %u bytes one user has taken %u", ALL_BYTES,
				     atomic_load(&scene->told->taken));
		kid_kill(&scene->attacker);
		kid_reap(&scene->attacker);
	}
	return NULL;
}

static const char *shares_hold_for_many(void)
{
	char bytes[24];

	snprintf(bytes, sizeof(bytes), "%u", ALL_BYTES);
	return with_parameter("max_bytes", bytes, "2147483648", pools_at_once);
}

/* ---- what is given back ---- */

#define ROUNDS	40u	/* more than the limit at one time */

/* One after the other, so it never reaches the limit. */
static const char *attaches_and_detaches(void *unused)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	struct xmem_attach_request attach;
	int memfd = raw_memfd(1, 1);
	static struct raw me;
	u32 i;

	(void)unused;
	SAME(become(ATTACKER), 0);
	SAME(raw_start(&me, &join), 0);
	for (i = 0; i < ROUNDS; i++) {
		attach = raw_attaching(memfd, 1);
		SAME(raw_request(&me, XMEM_IOC_ATTACH, &attach), 0);
		SAME(raw_slot(&me, XMEM_OP_DETACH, attach.slot[0]), 0);
	}
	raw_end(&me);
	return NULL;
}

static const char *as_a_user(struct scene *scene)
{
	return kid_start(&scene->attacker, attaches_and_detaches, scene);
}

static const char *files_come_back(void)
{
	return with_parameter("user_max_files", "8", "16384", as_a_user);
}

/* Also in sysfs. */
static const char *shown_slots_go(void)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	struct xmem_attach_request attach = raw_attaching(raw_memfd(1, 1), 1);
	struct shown_slot slot;
	static struct raw me;

	SAME(raw_start(&me, &join), 0);
	SAME(raw_request(&me, XMEM_IOC_ATTACH, &attach), 0);
	WANT(EVENTUALLY(pool_folder()[0]));
	slot = shown_slot(pool_folder(), attach.slot[0]);
	SAME(slot.owner, me.join.client);
	SAME(slot.payload, attach.payload);
	WANT(!strcmp(slot.state, "free"));
	SAME(raw_slot(&me, XMEM_OP_DETACH, attach.slot[0]), 0);
	slot = shown_slot(pool_folder(), attach.slot[0]);
	SAME(slot.owner, XMEM_OWNER_NONE);
	SAME(slot.payload, 0);
	return NULL;
}

static const char *makes_and_ends(struct scene *scene)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	static struct raw me;
	u32 i;

	for (i = 0; i < ROUNDS; i++) {
		SAME(raw_start(&me, &join), 0);
		raw_end(&me);
	}
	return NULL;
}

static const char *pools_come_back(void)
{
	return with_parameter("max_pools", "8", "64", makes_and_ends);
}

/* ---- memory that work items allocate ---- */

#define SHOWN_POOLS	16u
#define SHOWN_GROUPS	4u
#define MOST_UNCHARGED	(4L << 20)

/* A number from a file of "NAME number" lines; in bytes if the file has kB. Or -1. */
static long number_in(const char *path, const char *name)
{
	size_t length = strlen(name);
	FILE *file = fopen(path, "re");
	char line[256], unit[8];
	long number = -1;

	while (file && number < 0 && fgets(line, sizeof(line), file)) {
		unit[0] = 0;
		if (strncmp(line, name, length) ||
		    sscanf(line + length, " %ld %7s", &number, unit) < 1)
			number = -1;
		else if (!strcmp(unit, "kB"))
			number *= 1024;
	}
	if (file)
		fclose(file);
	return number;
}

static const char *shows_many_slots(void *argument)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	static struct raw me[SHOWN_POOLS];
	struct scene *scene = argument;
	int memfd = raw_memfd(XMEM_GROUP_SLOTS, 1);
	u32 i, j;

	SAME(enter_cgroup("charged", getpid()), 0);
	SAME(become(ATTACKER), 0);
	join.slots = SHOWN_GROUPS * XMEM_GROUP_SLOTS;
	join.clients = 1;
	for (i = 0; i < SHOWN_POOLS && !raw_start(&me[i], &join); i++) {
		for (j = 0; j < SHOWN_GROUPS; j++) {
			struct xmem_attach_request attach =
				raw_attaching(memfd, XMEM_GROUP_SLOTS);

			if (!raw_request(&me[i], XMEM_IOC_ATTACH, &attach))
				scene->told->taken++;
		}
	}
	WANT(i && scene->told->taken);
	WANT(raw_pools_shown(i) == i);
	return NULL;
}

/* Memory that it makes the kernel allocate is charged to its control group, or is little. */
static const char *work_items_are_charged(void)
{
	static const char stat[] = "/run/vm/cgroups/charged/memory.stat";
	struct scene scene;
	long slab, charged;

	GOES_WELL(start_scene(&scene));
	GOES_WELL(make_cgroup("charged", "memory", "memory.high", "max"));
	slab = number_in("/proc/meminfo", "Slab:");
	charged = number_in(stat, "slab ");
	WANT(slab > 0 && charged >= 0);
	GOES_WELL(kid_start(&scene.attacker, shows_many_slots, &scene));
	slab = number_in("/proc/meminfo", "Slab:") - slab;
	charged = number_in(stat, "slab ") - charged;
	figure("%u groups: the kernel's structs have grown by %ld kB, of which %ld kB are charged",
	       atomic_load(&scene.told->taken), slab / 1024, charged / 1024);
	if (slab - charged > MOST_UNCHARGED)
		return wrong("%ld kB of the kernel's memory are charged to nobody",
			     (slab - charged) / 1024);
	return NULL;
}

static const struct attack attacks[] = {
	{ "K5_holds_without_right_keep_nothing", holds_without_right_keep_nothing, false },
	{ "K5_holds_without_right_keep_no_memory", holds_without_right_keep_no_memory, false },
	{ "K5_holds_of_another_ring_keep_nothing", holds_of_another_ring_keep_nothing, false },
	{ "K5_strangers_let_nobody_in", strangers_let_nobody_in, false },
	{ "K5_a_restarted_publisher_finds_room", a_restarted_publisher_finds_room, false },
	{ "K8_dead_pools_leave_room", dead_pools_leave_room, false },
	{ "K8_empty_pools_leave_room", empty_pools_leave_room, false },
	{ "K8_sub_uids_leave_room", sub_uids_leave_room, false },
	{ "K8_shares_hold_for_many_at_once", shares_hold_for_many, false },
	{ "K15_work_items_are_charged", work_items_are_charged, false },
	{ "P10_files_come_back", files_come_back, false },
	{ "P10_shown_slots_go", shown_slots_go, false },
	{ "P10_pools_come_back", pools_come_back, false },
};

int main(int argc, char **argv)
{
	return attack_main(attacks, sizeof(attacks) / sizeof(*attacks), argc, argv);
}
