// SPDX-License-Identifier: MIT
/*
 * Fuzz target: a reader that uses the library's public functions, beside a publisher that stores
 * anything into its own pages (ring, entries, state words, metadata), ends and comes back. So the
 * host's rows change as well. The input gives the steps of both. In all cases contents lie within a
 * mapping, views within the contents, all calls end, and at the end the reader has put all of its
 * holds.
 */
#include "fuzz.h"

#define HANDLES		8
#define OPERATIONS	200

static struct reader {
	struct xmem_pool *pool;
	struct xmem_subscription *sub;
	struct xmem_buffer *held[HANDLES];
	u64 seen;			/* a token that was received once */
} reader;

/* ---- the reader's steps ---- */

/* Contents that the library hands out are mapped. */
static void must_be_mapped(const char *data, size_t bytes)
{
	const struct xl_mappings *mappings = &reader.pool->mappings;
	const struct xl_mapping *m;
	u32 i;

	for (i = 0; i < mappings->lists; i++)
		for (m = mappings->list[i]; m; m = m->next)
			if (data >= m->base && bytes <= m->bytes &&
			    (u64)(data - m->base) <= m->bytes - bytes)
				return;
	MUST(!"contents outside all mappings");
}

static void look_at(struct xmem_buffer *buffer)
{
	struct xmem_tensor tensor = { .size = sizeof(tensor) };
	struct xmem_image image = { .size = sizeof(image) };
	struct xmem_strings column = { .size = sizeof(column) };
	const void *data = xmem_data(buffer);
	size_t bytes = xmem_size(buffer);
	struct xmem_buffer_info info = XMEM_INIT(info);
	struct xmem_metadata m;

	MUST(!xmem_buffer_stat(buffer, &info) && info.bytes == bytes &&
	     memchr(info.label, 0, sizeof(info.label)));
	MUST(!xmem_metadata_view(buffer, &m));
	look_at_strings(&m);
	if (!data)
		return;
	must_be_mapped(data, bytes);
	look_at_bytes(data, bytes);
	MUST(m.size == bytes && m.offset <= FUZZ_SLOT_BYTES);
	MUST(bytes <= FUZZ_SLOT_BYTES - m.offset && xmem_capacity(buffer) == FUZZ_SLOT_BYTES);
	if (!xmem_tensor_view(buffer, 0, &tensor))
		look_at_tensor(&tensor, data, bytes);
	if (!xmem_image_view(buffer, 0, &image))
		look_at_image(&image, data, bytes);
	if (!xmem_strings_view(buffer, 0, &column))
		look_at_column(&column, data, bytes);
}

static void keep(struct xmem_buffer *buffer, u32 place)
{
	if (!buffer)
		return;
	look_at(buffer);
	xmem_release(reader.held[place % HANDLES]);
	reader.held[place % HANDLES] = buffer;
	reader.seen = xmem_token(buffer);
}

static void subscribe(u8 how)
{
	struct xmem_subscribe_options options = {
		.size = sizeof(options),
		.flags = XMEM_SUBSCRIBE_NOWAIT | (how & 1 ? XMEM_SUBSCRIBE_WAITS : 0) |
			 (how & 2 ? XMEM_SUBSCRIBE_PUBLISHER : 0),
		.publisher = how & 2 ? FUZZ_HOSTILE : 0,
	};

	xmem_unsubscribe(reader.sub);
	reader.sub = xmem_subscribe(reader.pool, &options);
}

static void ask_about_the_pool(u8 which)
{
	struct xmem_pool_info pool = { .size = sizeof(pool) };
	struct xmem_client_info client = { .size = sizeof(client) };
	struct xmem_slot_info slot = { .size = sizeof(slot) };
	struct xmem_subscription_info told = XMEM_INIT(told);

	xmem_pool_stat(reader.pool, &pool);
	xmem_pool_client_info(reader.pool, which % 4, &client);
	xmem_pool_slot_info(reader.pool, which, &slot);
	xmem_pool_holds(reader.pool, which % 4, which);
	xmem_subscription_stat(reader.sub, &told);
}

static void read_something(struct input *in)
{
	u8 what = input_u8(in), how = input_u8(in);

	switch (what % 8) {
	case 0:
	case 1:	keep(xmem_receive(reader.sub, 0), how); break;
	case 2:	keep(xmem_receive_any(reader.pool, 0, NULL), how); break;
	case 3:	keep(xmem_get(reader.pool, how & 1 ? input_u64(in) : reader.seen), how); break;
	case 4:	keep(xmem_clone(reader.held[how % HANDLES]), how / HANDLES); break;
	case 5:
		xmem_release(reader.held[how % HANDLES]);
		reader.held[how % HANDLES] = NULL;
		break;
	case 6:	subscribe(how); break;
	case 7:	ask_about_the_pool(how); break;
	}
}

/* ---- the publisher's steps ---- */

static u64 token_of(u32 slot)
{
	return xm_token(xm_generation(xm_load(&xm_slot(&fuzz.host.map, slot)->state)), slot);
}

/* A number with a meaning here, or any number. */
static u64 take_value(struct input *in, u64 is)
{
	u8 kind = input_u8(in), small = input_u8(in);
	const struct xm_map *map = &fuzz.host.map;

	switch (kind % 8) {
	case 0:	return input_u64(in);
	case 1:	return small;
	case 2:	return is + (int8_t)small;
	case 3:	return token_of(fuzz.slot[small & 1][small / 2 % FUZZ_SLOTS]);
	case 4:	return xm_load(xm_cursor(map, FUZZ_READER, FUZZ_HOSTILE)) + (int8_t)small;
	case 5:	return 1ULL << small % 64;
	case 6:	return XMEM_DTYPE(small % 20, 8 << small / 64, 1);
	case 7:	return is ^ 1ULL << small % 64;
	}
	return 0;
}

static void store(void *at, struct input *in, size_t places)
{
	u64 *word = (u64 *)at + (input_u8(in) | input_u8(in) << 8) % places;

	xm_store(word, take_value(in, xm_load(word)));
}

/* All that a client may write in any pool. */
static void *own_page(struct input *in, u8 which, size_t *ret_words)
{
	const struct xm_map *map = &fuzz.host.map;
	u32 slot = fuzz.slot[0][input_u8(in) % FUZZ_SLOTS];

	switch (which % 5) {
	case 0:
		*ret_words = sizeof(struct xmem_ring) / 8;
		return xm_ring(map, FUZZ_HOSTILE);
	case 1:
		*ret_words = 4 * map->entry_stride / 8;
		return xm_entry(map, FUZZ_HOSTILE, 0);
	case 2:
		*ret_words = sizeof(struct xmem_slot_word) / 8;
		return xm_slot(map, slot);
	case 3:
		*ret_words = 2;
		return &xm_metadata(map, slot)->size;		/* and offset */
	}
	*ret_words = sizeof(struct xmem_metadata) / 8;
	return xm_metadata(map, slot);
}

static void write_something(struct input *in)
{
	size_t words;
	void *page = own_page(in, input_u8(in), &words);

	store(page, in, words);
}

/* Publishes as the protocol requires, so that there are contents to spoil. */
static void publish(struct input *in)
{
	u32 slot = fuzz.slot[0][input_u8(in) % FUZZ_SLOTS];
	struct xm_publication what = {
		.offset = input_u8(in) * 4, .length = input_u8(in) * 4,
	};

	if (xm_state(xm_load(&xm_slot(&fuzz.host.map, slot)->state)) != XMEM_SLOT_WRITING &&
	    xm_take(&fuzz.host.map, slot))
		return;
	xm_publish(&fuzz.host.map, FUZZ_HOSTILE, slot, &what);
}

/* Its contents get a complete description; later steps change single words of it. */
static void describe(struct input *in)
{
	static const struct xl_says says = { "fuzz", EBADMSG };
	struct xmem_metadata m = { 0 };
	u8 format = input_u8(in), width = input_u8(in), height = input_u8(in);

	if (!xl_image_fill(&m, format % XMEM_IMAGE_FORMATS, width % 32, height % 32, 0, &says))
		memcpy(xm_metadata(&fuzz.host.map, fuzz.slot[0][format % FUZZ_SLOTS]), &m,
		       sizeof(m));
}

static void end_or_come(u8 what)
{
	switch (what % 8) {
	case 0:	fuzz_host_end_writer(); break;
	case 1:	fuzz_host_reap(); break;
	case 2:	fuzz_host_new_writer(); break;
	}
}

/* ---- one input ---- */

static void run(struct input *in)
{
	u32 operations = 0;

	while (in->at < in->end && operations++ < OPERATIONS) {
		u8 who = input_u8(in) % 16;

		if (who < 6)
			read_something(in);
		else if (who < 12)
			write_something(in);
		else if (who < 14)
			publish(in);
		else if (who < 15)
			describe(in);
		else
			end_or_come(input_u8(in));
	}
}

static void let_go(void)
{
	u32 i;

	for (i = 0; i < HANDLES; i++)
		xmem_release(reader.held[i]);
	xmem_unsubscribe(reader.sub);
	for (i = 0; i < fuzz.host.map.slots; i++)
		MUST(!(*xm_hold(&fuzz.host.map, FUZZ_READER, i) & XM_HOLD_COUNT));
	xmem_pool_close(reader.pool);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in = { data, data + size };

	fuzz_host_begin();
	memset(&reader, 0, sizeof(reader));
	reader.pool = xmem_pool_open("fuzz", NULL);
	MUST(reader.pool);
	subscribe(2);
	MUST(reader.sub);
	run(&in);
	let_go();
	return 0;
}
