// SPDX-License-Identifier: MIT
/* A sample of the host and its pools: look.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/look.h"

json_t *look_find(const json_t *array, const char *key, json_int_t number)
{
	json_t *element;
	size_t i;

	json_array_foreach(array, i, element)
		if (look_number(element, key) == number)
			return element;
	return NULL;
}

json_t *look_named(const json_t *sample, const char *given)
{
	const char *name;
	json_t *pool;
	size_t i;

	json_array_foreach(json_object_get(sample, "pools"), i, pool) {
		name = json_string_value(json_object_get(pool, "name"));
		if (cli_names(given, name ? name : "", look_number(pool, "number"),
			      look_number(pool, "uid")))
			return pool;
	}
	return NULL;
}

json_int_t look_number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

json_t *look_known(bool known, json_int_t number)
{
	return known ? json_integer(number) : json_null();
}

/* ---- sums ---- */

/* The sums over the clients of a pool, by the fields of a client; null where all are null. */
static const char *const sums[] = {
	"frames_published", "bytes_published", "frames_received", "bytes_received", "behind",
	"lost",
};

static json_t *sum_of(const json_t *rows, const char *key)
{
	json_int_t sum = 0;
	const json_t *row;
	bool known = rows && !json_array_size(rows);
	size_t i;

	json_array_foreach(rows, i, row) {
		known |= json_is_integer(json_object_get(row, key));
		sum += look_number(row, key);
	}
	return look_known(known, sum);
}

static void add_sums(json_t *pool)
{
	const json_t *clients = json_object_get(pool, "clients");
	const json_t *slots = json_object_get(pool, "slots"), *slot;
	uint64_t limbo = 0, bytes_limbo = 0;
	const char *state;
	size_t i;

	for (i = 0; i < sizeof(sums) / sizeof(*sums); i++)
		cli_set(pool, sums[i], sum_of(clients, sums[i]));
	json_array_foreach(slots, i, slot) {
		state = json_string_value(json_object_get(slot, "state"));
		if (strcmp(state, "limbo") && strcmp(state, "overdue"))
			continue;
		limbo++;
		bytes_limbo += look_number(slot, "bytes");
	}
	cli_set(pool, "holds", sum_of(slots, "holds"));
	cli_set(pool, "limbo", look_known(clients, limbo));
	cli_set(pool, "bytes_limbo", look_known(clients, bytes_limbo));
	cli_set(pool, "bytes_cuda", sum_of(json_object_get(pool, "devices"), "bytes"));
}

/* ---- the sample ---- */

static json_t *failed(json_t *sample)
{
	struct xmem_error why = XMEM_INIT(why);

	xmem_peek_last_error(&why);
	cli_set(sample, "error", cli_text(why.message, SIZE_MAX));
	return sample;
}

/* The fields of a row of `xmem list` whose names would be those of other things here. */
static void rename_counts(json_t *pool)
{
	char *name = cli_pool_name(pool);

	cli_set(pool, "pool", cli_text(name, SIZE_MAX));
	cli_set_number(pool, "alive", look_number(pool, "clients"));
	cli_set_number(pool, "slots_max", look_number(pool, "slots"));
	json_object_del(pool, "clients");
	json_object_del(pool, "slots");
	free(name);
}

json_t *look(const json_t *before)
{
	struct xmem_host_info host = { .size = sizeof(host) };
	json_t *sample = cli_object(), *pools = cli_array(), *pool;
	struct timespec now;
	bool kernel;
	size_t i;

	clock_gettime(CLOCK_MONOTONIC, &now);
	cli_set_number(sample, "time_ns", now.tv_sec * 1000000000ULL + now.tv_nsec);
	cli_set(sample, "interval_ns", look_known(before, look_number(sample, "time_ns") -
						  look_number(before, "time_ns")));
	cli_set(sample, "backend", json_null());
	cli_set(sample, "pools", pools);
	if (xmem_host_query(&host))
		return failed(sample);
	cli_set(sample, "backend", json_string(host.backend));
	kernel = !strcmp(host.backend, "kernel");
	if (!kernel && look_daemon_begin(sample))
		return sample;
	if (cli_pools(pools)) {
		json_array_clear(pools);
		return failed(sample);
	}
	json_array_foreach(pools, i, pool) {
		const json_t *old = look_find(json_object_get(before, "pools"), "number",
					      look_number(pool, "number"));

		rename_counts(pool);
		(kernel ? look_sysfs : look_daemon)(pool, old);
		add_sums(pool);
	}
	return sample;
}
