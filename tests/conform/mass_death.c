// SPDX-License-Identifier: MIT
/*
 * Many clients of one pool die at once. The daemon has one thread: it serves other pools between
 * the ends, serves the pool itself after them, and searches once for what the dead clients have
 * left. The tests stop the daemon meanwhile, so it finds all ends and all requests at one moment.
 */
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "core/step.h"
#include "harness.h"

#define DEAD	8
#define BYTES	4096
#define WHY	"the module has a work item for the ends, and requests do not wait for it"

struct client {
	const char *name;		/* of its pool */
	int64_t (*ask)(struct raw *raw);	/* NULL: it only waits to be killed */
};

static void client_body(void *argument)
{
	struct client *client = argument;
	struct raw raw;

	raw_start(&raw, client->name, XMEM_ROLE_WRITER);
	tell_parent(1);
	hear_parent();
	tell_parent(client->ask(&raw));
	hear_parent();
}

static struct child *start(struct client *client)
{
	struct child *child = spawn(client_body, client);

	SAME(hear(child), 1);
	return child;
}

/*
 * They die while the daemon is stopped, and other clients send it requests. Returns the daemon,
 * which continues.
 */
static pid_t die_and_ask(struct child **dead, struct child **asker, unsigned int askers)
{
	pid_t daemon = stop_daemon();
	unsigned int i;

	for (i = 0; i < DEAD; i++)
		kill_child(dead[i]);
	for (i = 0; i < askers; i++)
		tell(asker[i], 1);
	EVENTUALLY(others_sleep());
	continue_daemon(daemon);
	return daemon;
}

static void start_mortals(struct client *client, struct child **ret, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		ret[i] = start(client);
}

static int64_t ask_for_connections(struct raw *raw)
{
	struct xmem_quota_request request = {
		.size = sizeof(request), .quota = XMEM_QUOTA_CONNECTIONS,
	};

	SAME(raw_request(raw, XMEM_IOC_QUOTA, &request), 0);
	SAME(request.quota, XMEM_QUOTA_CONNECTIONS);
	return request.used;
}

static int64_t ask_for_itself(struct raw *raw)
{
	struct xmem_client_request request = {
		.size = sizeof(request), .client = raw->link.join.client,
	};

	return raw_request(raw, XMEM_IOC_CLIENT, &request);
}

/* How many of the pool's clients have not ended, as the host says it. */
static unsigned int alive_in(const struct raw *raw)
{
	unsigned int alive = 0, c;

	for (c = 0; c < raw->map.clients; c++)
		alive += xm_load(&xm_client_row(&raw->map, c)->state) == XMEM_CLIENT_ALIVE;
	return alive;
}

/* How many have their answer, once no process works on one. */
static unsigned int answered(struct child **asker, unsigned int askers)
{
	unsigned int count = 0, i;

	EVENTUALLY(others_sleep());
	for (i = 0; i < askers; i++) {
		struct pollfd heard = { .fd = asker[i]->link, .events = POLLIN };

		count += poll(&heard, 1, 0) == 1;
	}
	return count;
}

/* A daemon that stops itself before each end, clients that will die, and two that send requests. */
struct scene {
	struct client mortal, other;
	struct child *dead[DEAD], *older, *asker[2];
	struct raw raw;			/* a reader of the pool whose clients will die */
	uint64_t *steps;
	pid_t daemon;
};

static void scene_begin(struct scene *scene, const char *name_of_others)
{
	unsigned int i;

	scene->mortal.name = new_name();
	scene->other.name = name_of_others ? name_of_others : scene->mortal.name;
	scene->other.ask = ask_for_itself;
	scene->steps = steps_of_daemon();
	use_own_daemon();
	if (name_of_others)
		scene->older = start(&scene->other);
	raw_start(&scene->raw, scene->mortal.name, XMEM_ROLE_READER);
	start_mortals(&scene->mortal, scene->dead, DEAD);
	for (i = 0; i < 2; i++)
		scene->asker[i] = start(&scene->other);
	scene->steps[XM_STEPS] = 1 + XM_STEP_NEXT_END;
}

static void until_next_end(struct scene *scene)
{
	EVENTUALLY(is_stopped(scene->daemon));
	note_stopped(scene->daemon);
}

/* The askers have been told to send their requests. */
static void scene_end(struct scene *scene)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		SAME(hear(scene->asker[i]), 0);
	raw_close(&scene->raw);
}

TEST(P4_between_two_ends_another_pool_is_served)
{
	struct scene scene = { .daemon = 0 };
	unsigned int i;

	daemon_only(WHY);
	steps_only();
	scene_begin(&scene, new_name());
	scene.daemon = die_and_ask(scene.dead, scene.asker, 2);
	for (i = 0; i < 3; i++) {
		until_next_end(&scene);
		SAME(alive_in(&scene.raw), DEAD + 1 - i);
		SAME(answered(scene.asker, 2), i < 2 ? i + 1 : 2);
		scene.steps[XM_STEPS] = i < 2 ? scene.steps[XM_STEPS] : 0;
		continue_daemon(scene.daemon);
	}
	scene_end(&scene);
}

/* The daemon stops itself before each end. None of them has been answered then. */
TEST(P2_in_a_pool_all_ends_precede_a_request)
{
	struct scene scene = { .daemon = 0 };
	unsigned int i;

	daemon_only(WHY);
	steps_only();
	scene_begin(&scene, NULL);
	scene.daemon = die_and_ask(scene.dead, scene.asker, 2);
	for (i = 0; i < DEAD; i++) {
		until_next_end(&scene);
		SAME(alive_in(&scene.raw), DEAD + 3 - i);
		SAME(answered(scene.asker, 2), 0);
		scene.steps[XM_STEPS] = i < DEAD - 1 ? scene.steps[XM_STEPS] : 0;
		continue_daemon(scene.daemon);
	}
	scene_end(&scene);
}

/* The end in the other pool comes before all other ends. */
TEST(P4_one_end_waits_for_no_mass_death_in_another_pool)
{
	struct scene scene = { .daemon = 0 };
	struct raw others;
	unsigned int i;

	daemon_only(WHY);
	steps_only();
	scene_begin(&scene, new_name());
	raw_start(&others, scene.other.name, XMEM_ROLE_READER);
	scene.daemon = stop_daemon();
	kill_child(scene.older);
	for (i = 0; i < DEAD; i++)
		kill_child(scene.dead[i]);
	continue_daemon(scene.daemon);
	for (i = 0; i < 3; i++) {
		until_next_end(&scene);
		if (i < 2)
			continue_daemon(scene.daemon);
	}
	SAME(alive_in(&others), 3);
	CHECK(alive_in(&scene.raw) > DEAD - 2);
	scene.steps[XM_STEPS] = 0;
	continue_daemon(scene.daemon);
	for (i = 0; i < 2; i++)
		tell(scene.asker[i], 1);
	raw_close(&others);
	scene_end(&scene);
}

static int64_t leave_and_look(struct raw *raw)
{
	struct pollfd look = { .fd = raw->link.file, .events = POLLRDHUP };

	CHECK(!shutdown(raw->link.file, SHUT_WR));
	while (poll(&look, 1, -1) != 1)
		;
	return xm_load(&xm_client_row(&raw->map, raw->link.join.client)->state);
}

/* The daemon stops itself before the end, and again before the reaping. */
TEST(P2_a_connection_ends_once_its_client_has_given_all_back)
{
	struct client leaver = { .name = new_name(), .ask = leave_and_look };
	struct scene scene = { .daemon = 0 };
	struct child *child;

	daemon_only(WHY);
	steps_only();
	scene_begin(&scene, new_name());
	child = start(&leaver);
	scene.daemon = stop_daemon();
	continue_daemon(scene.daemon);
	tell(child, 1);
	until_next_end(&scene);
	continue_daemon(scene.daemon);
	until_next_end(&scene);
	SAME(answered(&child, 1), 0);
	scene.steps[XM_STEPS] = 0;
	continue_daemon(scene.daemon);
	SAME(hear(child), XMEM_CLIENT_NONE);
	tell(scene.asker[0], 1);
	tell(scene.asker[1], 1);
	scene_end(&scene);
}

/*
 * The daemon stops itself when it has recorded an end. Then the peer shuts its socket down again.
 */
TEST(P4_a_peer_that_ends_again_and_again_delays_nobody)
{
	struct client other = { .name = new_name(), .ask = ask_for_itself };
	struct child *asker;
	uint64_t *steps;
	struct raw raw;
	pid_t daemon;

	daemon_only(WHY);
	steps_only();
	steps = steps_of_daemon();
	use_own_daemon();
	asker = start(&other);
	daemon = stop_daemon();
	continue_daemon(daemon);
	raw_start(&raw, new_name(), XMEM_ROLE_READER);	/* all ends until now have been recorded */
	steps[XM_STEP_END_NOTED] = 0;
	steps[XM_STEPS] = 1 + XM_STEP_END_NOTED;
	CHECK(!shutdown(raw.link.file, SHUT_WR));
	EVENTUALLY(is_stopped(daemon));
	note_stopped(daemon);
	CHECK(!shutdown(raw.link.file, SHUT_WR));
	tell(asker, 1);
	EVENTUALLY(others_sleep());
	continue_daemon(daemon);
	EVENTUALLY(answered(&asker, 1) || is_stopped(daemon));
	note_stopped(is_stopped(daemon) ? daemon : 0);
	SAME(steps[XM_STEP_END_NOTED], 1);
	SAME(hear(asker), 0);
	steps[XM_STEPS] = 0;		/* the ends of the clients here must not stop it */
	raw_close(&raw);
}

static int64_t ask_for_the_first_pool(struct raw *raw)
{
	struct xmem_pools_request request = { .size = sizeof(request) };

	SAME(raw_request(raw, XMEM_IOC_POOLS, &request), 0);
	return request.number;
}

/* The first pool has ended with its last client, so the second one is the first in the list. */
TEST(P2_a_list_of_pools_shows_none_whose_clients_have_died)
{
	struct client mortal = { .name = new_name() };
	struct client other = { .name = new_name(), .ask = ask_for_the_first_pool };
	struct child *dead[DEAD], *asker;

	daemon_only(WHY);
	use_own_daemon();
	start_mortals(&mortal, dead, DEAD);
	asker = start(&other);
	die_and_ask(dead, &asker, 1);
	SAME(hear(asker), 2);
}

#define FILES	32			/* that a daemon with so few descriptors takes */
#define FEW	256

static void attach_all(void *argument)
{
	struct client *client = argument;
	struct raw raw;
	unsigned int i;

	raw_start(&raw, client->name, XMEM_ROLE_WRITER);
	for (i = 0; i < FILES; i++)
		SAME(raw_attach(&raw, new_memfd(BYTES, GOOD_SEALS), 1, NULL), 0);
	tell_parent(1);
	hear_parent();
}

static int64_t ask_for_a_file(struct raw *raw)
{
	return -raw_attach(raw, new_memfd(BYTES, GOOD_SEALS), 1, NULL);
}

TEST(P2_what_all_pools_share_comes_back_before_a_refusal)
{
	struct rlimit limit = { FEW, FEW };
	struct client mortal = { .name = new_name() };
	struct client other = { .name = new_name(), .ask = ask_for_a_file };
	struct child *dead[DEAD], *asker;

	daemon_only(WHY);
	use_own_daemon();
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	start_mortals(&mortal, dead + 1, DEAD - 1);
	dead[0] = spawn(attach_all, &mortal);
	SAME(hear(dead[0]), 1);
	asker = start(&other);
	die_and_ask(dead, &asker, 1);
	SAME(hear(asker), 0);
}

/* ---- work ---- */

#define SLOTS	130
#define GROUPS	3

static void publish_all(void *argument)
{
	struct client *client = argument;
	struct xmem_pool *pool = open_writer(client->name, SLOTS, BYTES);
	struct xmem_buffer *kept;
	unsigned int i;

	for (i = 0; i < SLOTS; i++)
		tell_parent(publish_kept(pool, i, &kept));
	hear_parent();
}

TEST(P4_one_sweep_serves_all_ends)
{
	struct client mortal = { .name = new_name() };
	struct child *dead[DEAD], *owner;
	const uint64_t *steps;
	uint64_t looks;
	struct raw raw;
	unsigned int i;

	daemon_only(WHY);
	steps_only();
	steps = steps_of_daemon();
	use_own_daemon();
	raw_start(&raw, mortal.name, XMEM_ROLE_READER);
	owner = spawn(publish_all, &mortal);
	for (i = 0; i < SLOTS; i++)
		raw_hold(&raw, hear(owner));
	kill_child(owner);
	start_mortals(&mortal, dead, DEAD);
	ask_for_connections(&raw);
	looks = steps[XM_STEP_SWEEP_LOOK];
	CHECK(looks >= GROUPS);			/* after the owner's end */
	die_and_ask(dead, NULL, 0);
	SAME(ask_for_connections(&raw), 1);
	SAME(steps[XM_STEP_SWEEP_LOOK] - looks, GROUPS);
	raw_close(&raw);
}
