// SPDX-License-Identifier: MIT
/*
 * Who may join a pool, among several users (P4)? The users are the owner, a member of the pool's
 * group, another user and root. They join by name and by descriptor, as reader and as writer, and
 * from other network and user namespaces. A table has the expected results, so that they do not
 * come from the code under test.
 */
#include <grp.h>
#include <sched.h>

#include "harness.h"

#define OWNER	2001
#define GROUP	2001
#define MEMBER	2002
#define OTHER	2003
#define BYTES	4096
#define R	XMEM_MAY_READ
#define W	XMEM_MAY_WRITE

/* Each user has a group of its own number. The member is also in the owner's group. */
static void be(uid_t uid)
{
	gid_t more[] = { GROUP };

	CHECK(!setgroups(uid == MEMBER, more));
	be_user(uid);
}

/* ---- the table ---- */

static const struct {
	uint32_t mode, owner, member, other;
} modes[] = {
	{ 0, R | W, 0, 0 },		/* by default */
	{ 0640, R | W, R, 0 },
	{ 0660, R | W, R | W, 0 },
	{ 0604, R | W, 0, R },		/* a member has the group's bits, not others' */
	{ 0666, R | W, R | W, R | W },
	{ 0466, R, R | W, R | W },	/* and so the owner its own */
	{ XMEM_MODE_STRICT | 0664, R | W, R | W, R },
	{ XMEM_MODE_STRICT | 0600, R | W, 0, 0 },
};
#define MODES	(sizeof(modes) / sizeof(*modes))

struct scene {
	const char *name[MODES];
	int fd[MODES];			/* of the pool, for both roles */
	int reads[MODES];		/* for reading only */
};

static struct xmem_pool *made[MODES];

/* The owner makes a pool of each mode, passes descriptors on, and stays alive. */
static void make_pools(void *argument)
{
	struct scene *scene = argument;
	unsigned int i;

	be(OWNER);
	for (i = 0; i < MODES; i++) {
		struct xmem_pool_options options = {
			.size = sizeof(options), .mode = modes[i].mode,
		};
		int fd;

		made[i] = xmem_pool_open(scene->name[i], &options);
		CHECK(made[i]);
		fd = xmem_pool_fd(made[i]);
		CHECK(fd >= 0);
		send_file(parent_link(), fd);
		close(fd);
	}
	hear_parent();
}

static void scene_start(struct scene *scene, struct child **ret_owner)
{
	unsigned int i;

	several_users_or_skip();
	for (i = 0; i < MODES; i++)
		scene->name[i] = new_name();
	*ret_owner = spawn(make_pools, scene);
	for (i = 0; i < MODES; i++) {
		scene->fd[i] = receive_file((*ret_owner)->link);
		scene->reads[i] = xmem_pool_fd_narrow(scene->fd[i], R);
		CHECK(scene->fd[i] >= 0 && scene->reads[i] >= 0);
	}
}

static void scene_end(struct scene *scene, struct child *owner)
{
	unsigned int i;

	kill_child(owner);
	for (i = 0; i < MODES; i++) {
		close(scene->fd[i]);
		close(scene->reads[i]);
	}
}

/* ---- joining ---- */

/* Join by name if @fd is -1. Returns 0 or -errno. */
static int join(const char *name, int fd, uint32_t role)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = role == W ? XMEM_OPEN_WRITER : 0,
	};
	struct xmem_pool *pool;
	char full[64];

	snprintf(full, sizeof(full), "%u:%s", OWNER, name);
	pool = fd < 0 ? xmem_pool_open(full, &options) : open_by_fd(fd, options.flags);
	if (!pool)
		return xmem_peek_last_error(NULL);
	xmem_pool_close(pool);
	return 0;
}

static void join_says(const char *who, uint32_t mode, const char *by, uint32_t role, int got,
		      int want)
{
	if (got != want)
		FAIL("%s, mode 0%o, %s, as a %s: %d and not %d", who, mode, by,
		     role == W ? "writer" : "reader", got, want);
}

/* A user tries each way into pool @i, whose mode gives it @roles. @owner: it owns the pool. */
static void try(const struct scene *scene, unsigned int i, const char *who, uint32_t roles,
		bool owner)
{
	uint32_t mode = modes[i].mode, by_fd = mode & XMEM_MODE_STRICT ? roles : R | W, role;

	for (role = R; role <= W; role <<= 1) {
		join_says(who, mode, "by name", role, join(scene->name[i], -1, role),
			  roles & role ? 0 : roles || owner ? -EACCES : -ENOENT);
		join_says(who, mode, "by descriptor", role, join(NULL, scene->fd[i], role),
			  by_fd & role ? 0 : -EACCES);
		join_says(who, mode, "by a narrowed one", role, join(NULL, scene->reads[i], role),
			  by_fd & role & R ? 0 : -EACCES);
	}
}

/* Is the pool listed, and with these roles? */
static void listed(const char *name, uint32_t mode, uint32_t roles, bool owner)
{
	struct xmem_pool_entry entry = { .size = sizeof(entry) };
	bool found = false;

	while (!xmem_pool_next(entry.number, &entry)) {
		if (!strcmp(entry.name, name)) {
			found = true;
			SAME(entry.owner_uid, OWNER);
			SAME(entry.gid, GROUP);
			SAME(entry.mode, mode ? mode : 0600);
			SAME(entry.roles, roles);
		}
		entry.size = sizeof(entry);
	}
	SAME(found, roles || owner);
}

struct user {
	const struct scene *scene;
	const char *who;
	uid_t uid;
};

static uint32_t roles_of(uid_t uid, unsigned int i)
{
	return uid == OWNER ? modes[i].owner : uid == MEMBER ? modes[i].member :
	       uid == OTHER ? modes[i].other : R | W;
}

static void try_all(void *argument)
{
	const struct user *user = argument;
	unsigned int i;

	if (user->uid)
		be(user->uid);
	for (i = 0; i < MODES; i++) {
		uint32_t roles = roles_of(user->uid, i);

		try(user->scene, i, user->who, roles, user->uid == OWNER);
		listed(user->scene->name[i], modes[i].mode, roles, user->uid == OWNER);
	}
}

TEST_WITHIN(P4_users_join_as_the_mode_says, 60)
{
	struct scene scene;
	struct user users[] = {
		{ &scene, "the owner", OWNER }, { &scene, "a member", MEMBER },
		{ &scene, "another user", OTHER }, { &scene, "root", 0 },
	};
	struct child *owner;
	unsigned int i;

	scene_start(&scene, &owner);
	for (i = 0; i < sizeof(users) / sizeof(*users); i++)
		finish_child(spawn(try_all, &users[i]));
	scene_end(&scene, owner);
}

/* ---- messages ---- */

static void read_messages(void *argument)
{
	const struct scene *scene = argument;
	const char *why;

	be(OTHER);
	SAME(join(scene->name[0], -1, W), -ENOENT);
	why = last_message();
	CHECK(strstr(why, "user 2001") && strstr(why, "0606") && strstr(why, "0660"));
	SAME(join(scene->name[3], -1, W), -EACCES);
	why = last_message();
	CHECK(strstr(why, "user 2001") && strstr(why, "0604") && strstr(why, "0606"));
	SAME(join(NULL, scene->reads[4], W), -EACCES);
	why = last_message();
	CHECK(strstr(why, "narrowed"));
}

TEST(API_who_is_refused_is_told_what_mode_it_needs)
{
	struct scene scene;
	struct child *owner;

	scene_start(&scene, &owner);
	finish_child(spawn(read_messages, &scene));
	scene_end(&scene, owner);
}

/* ---- namespaces ---- */

static void join_from_another_network(void *argument)
{
	const struct user *user = argument;
	unsigned int i;

	CHECK(!unshare(CLONE_NEWNET));
	if (user->uid)
		be(user->uid);
	for (i = 0; i < MODES; i++) {
		SAME(join(user->scene->name[i], -1, R), -ENOENT);
		SAME(join(NULL, user->scene->reads[i], R),
		     !(modes[i].mode & XMEM_MODE_STRICT) || roles_of(user->uid, i) & R ? 0
										       : -EACCES);
		listed(user->scene->name[i], 0, 0, false);
	}
}

TEST(P4_a_network_namespace_has_names_of_its_own)
{
	struct scene scene;
	struct user users[] = { { &scene, "root", 0 }, { &scene, "another user", OTHER } };
	struct child *owner;
	unsigned int i;

	scene_start(&scene, &owner);
	for (i = 0; i < sizeof(users) / sizeof(*users); i++)
		finish_child(spawn(join_from_another_network, &users[i]));
	scene_end(&scene, owner);
}

static void write_file(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);

	CHECK(file >= 0);
	SAME(write(file, text, strlen(text)), strlen(text));
	close(file);
}

/* Become root of a user namespace that has only this user, of number @uid outside. */
static void be_root_inside(uid_t uid)
{
	char map[40];

	be(uid);
	CHECK(!unshare(CLONE_NEWUSER));
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	write_file("/proc/self/uid_map", map);
	write_file("/proc/self/gid_map", map);
	SAME(geteuid(), 0);
}

/* Its capabilities have no effect on this pool, and its namespace has no number for the owner. */
static void join_as_root_inside(void *argument)
{
	const struct scene *scene = argument;
	struct xmem_pool_entry entry = { .size = sizeof(entry) };
	struct xmem_pool *pool;
	unsigned int i, shown = 0;

	be_root_inside(OTHER);
	for (i = 0; i < MODES; i++) {
		SAME(join(scene->name[i], -1, R), -ENOENT);
		SAME(join(NULL, scene->fd[i], W),
		     !(modes[i].mode & XMEM_MODE_STRICT) || modes[i].other & W ? 0 : -EACCES);
	}
	while (!xmem_pool_next(entry.number, &entry)) {
		for (i = 0; i < MODES; i++)
			if (!strcmp(entry.name, scene->name[i])) {
				shown++;
				SAME(entry.roles, modes[i].other);
				SAME(entry.owner_uid, UINT32_MAX);
				SAME(entry.gid, UINT32_MAX);
			}
		entry.size = sizeof(entry);
	}
	SAME(shown, 4);
	pool = open_by_fd(scene->fd[4], 0);
	CHECK(pool);
	REFUSED(xmem_pool_reopen(pool), EOPNOTSUPP);
	SAME(xmem_pool_set_mode(pool, 0600, XMEM_GID_SAME), -EPERM);
	xmem_pool_close(pool);
}

TEST(P4_root_of_a_user_namespace_is_nobody_outside)
{
	struct scene scene;
	struct child *owner;

	scene_start(&scene, &owner);
	finish_child(spawn(join_as_root_inside, &scene));
	scene_end(&scene, owner);
}

static void make_one_inside(void *argument)
{
	struct xmem_pool_entry entry = { .size = sizeof(entry) };
	const char *name = argument;

	be_root_inside(OTHER);
	open_reader(name);
	while (!xmem_pool_next(entry.number, &entry) && strcmp(entry.name, name))
		entry.size = sizeof(entry);
	CHECK(!strcmp(entry.name, name));
	SAME(entry.owner_uid, 0);
	tell_parent(1);
	hear_parent();
}

static void join_ones_own_from_outside(void *argument)
{
	be(OTHER);
	SAME(stat_of(open_reader(argument)).clients, 2);
}

TEST(P4_a_user_is_the_same_inside_a_user_namespace)
{
	const char *name = new_name();
	struct child *inside;

	several_users_or_skip();
	inside = spawn(make_one_inside, (void *)name);
	hear(inside);
	finish_child(spawn(join_ones_own_from_outside, (void *)name));
	/* A pool of that name that root makes is another one. */
	REFUSED(xmem_pool_open(name, &(struct xmem_pool_options){
		.size = sizeof(struct xmem_pool_options), .flags = XMEM_OPEN_EXISTING }), ENOENT);
	kill_child(inside);
}

/* ---- changing who may join ---- */

static void join_and_change(void *argument)
{
	const struct scene *scene = argument;
	struct xmem_pool *pool;
	char full[64];

	be(MEMBER);
	snprintf(full, sizeof(full), "%u:%s", OWNER, scene->name[2]);
	pool = xmem_pool_open(full, NULL);
	CHECK(pool);
	SAME(xmem_pool_set_mode(pool, 0666, XMEM_GID_SAME), -EPERM);
	SAME(xmem_pool_set_mode(pool, 0, MEMBER), -EPERM);
	tell_parent(1);
	hear_parent();		/* until the owner has taken the group's bits away */
	SAME(join(scene->name[2], -1, R), -ENOENT);
	SAME(stat_of(pool).clients, 3);	/* with the two of the owner */
	SAME(join(NULL, scene->fd[2], R), 0);
	tell_parent(1);
	hear_parent();		/* and made it strict */
	SAME(join(NULL, scene->fd[2], R), -EACCES);
	SAME(stat_of(pool).clients, 3);
	tell_parent(1);
	hear_parent();		/* and root has let all others in, but not the group */
	SAME(join(scene->name[2], -1, R), -ENOENT);
	tell_parent(1);
	hear_parent();
}

static void change(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool;

	be(OWNER);
	pool = open_reader(scene->name[2]);
	WORKED(xmem_pool_set_mode(pool, 0600, XMEM_GID_SAME));
	SAME(xmem_pool_set_mode(pool, 0660, MEMBER), -EPERM);
	SAME(xmem_pool_set_mode(pool, 0, 0), -EPERM);
	tell_parent(1);
	hear_parent();
	WORKED(xmem_pool_set_mode(pool, XMEM_MODE_STRICT | 0600, GROUP));
	tell_parent(1);
	hear_parent();
}

static void in_turn(struct child *child)
{
	tell(child, 1);
	hear(child);
}

TEST(P4_the_owner_and_root_change_who_may_join)
{
	struct scene scene;
	struct child *owner, *member, *changer;
	struct xmem_pool *pool;
	char full[64];

	scene_start(&scene, &owner);
	member = spawn(join_and_change, &scene);
	hear(member);
	changer = spawn(change, &scene);
	hear(changer);
	in_turn(member);
	in_turn(changer);
	in_turn(member);
	kill_child(changer);
	snprintf(full, sizeof(full), "%u:%s", OWNER, scene.name[2]);
	pool = xmem_pool_open(full, NULL);
	CHECK(pool);
	WORKED(xmem_pool_set_mode(pool, 0606, XMEM_GID_SAME));
	in_turn(member);
	xmem_pool_close(pool);
	kill_child(member);
	scene_end(&scene, owner);
}

static void join_in_a_wrong_group(void *argument)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_GROUP, .mode = 0640, .gid = OTHER,
	};
	struct xmem_pool *pool;
	const char *why;

	be(MEMBER);
	REFUSED(xmem_pool_open(argument, &options), EPERM);
	why = last_message();
	CHECK(strstr(why, "group 2003"));
	REFUSED(xmem_pool_open(argument, &(struct xmem_pool_options){
		.size = sizeof(options), .flags = XMEM_OPEN_EXISTING }), ENOENT);
	options.gid = GROUP;
	pool = xmem_pool_open(argument, &options);
	CHECK(pool);
	tell_parent(1);
	hear_parent();
}

static void join_as_a_member(void *argument)
{
	char full[64];
	struct xmem_pool *pool;

	be(OWNER);		/* whose group it is */
	snprintf(full, sizeof(full), "%u:%s", MEMBER, (const char *)argument);
	pool = xmem_pool_open(full, NULL);
	CHECK(pool);
	SAME(stat_of(pool).clients, 2);
	REFUSED(xmem_pool_open(full, &(struct xmem_pool_options){
		.size = sizeof(struct xmem_pool_options), .flags = XMEM_OPEN_WRITER }), EACCES);
}

TEST(P4_a_pool_has_a_group_that_its_maker_is_of)
{
	const char *name = new_name();
	struct child *maker;

	several_users_or_skip();
	maker = spawn(join_in_a_wrong_group, (void *)name);
	hear(maker);
	finish_child(spawn(join_as_a_member, (void *)name));
	kill_child(maker);
}

/* ---- joining again ---- */

static void join_anew(void *argument)
{
	const struct scene *scene = argument;
	struct xmem_pool *pool, *again;
	char full[64];

	be(MEMBER);
	snprintf(full, sizeof(full), "%u:%s", OWNER, scene->name[1]);
	pool = xmem_pool_open(full, NULL);
	CHECK(pool);
	again = xmem_pool_reopen(pool);
	CHECK(again);
	SAME(stat_of(pool).clients, 3);
	xmem_pool_close(again);
	/* The descriptor let it in. By name the mode decides. */
	xmem_pool_close(pool);
	pool = open_by_fd(scene->fd[0], 0);
	CHECK(pool);
	REFUSED(xmem_pool_reopen(pool), ENOENT);
	xmem_pool_close(pool);
	/* The call does not make a pool of its own instead. */
	REFUSED(xmem_pool_open(scene->name[0], &(struct xmem_pool_options){
		.size = sizeof(struct xmem_pool_options), .flags = XMEM_OPEN_EXISTING }), ENOENT);
}

TEST(P4_a_reopen_joins_that_users_pool)
{
	struct scene scene;
	struct child *owner;

	scene_start(&scene, &owner);
	finish_child(spawn(join_anew, &scene));
	scene_end(&scene, owner);
}
