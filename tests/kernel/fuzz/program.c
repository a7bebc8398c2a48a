// SPDX-License-Identifier: MIT
/*
 * Programs of the fuzzer: made by chance, mutated, printed and read. As text, an op is a line
 *
 *   WHAT CLIENT NUMBER PLACE CHANGE NTH BESIDE SEED [WORD:VALUE...]
 *
 * with the seed and the values in hexadecimal. An empty line ends a program, and # begins a
 * comment.
 */
#include <stdlib.h>

#include "fuzz.h"

static const char *const whats[FUZZ_WHATS] = {
	[FUZZ_ASK] = "ask", [FUZZ_JOIN] = "join", [FUZZ_END] = "end", [FUZZ_MAP] = "map",
	[FUZZ_REMAP] = "remap", [FUZZ_SCRIBBLE] = "scribble", [FUZZ_TOUCH] = "touch",
	[FUZZ_FILES] = "files", [FUZZ_PASS] = "pass", [FUZZ_FORK] = "fork",
	[FUZZ_KILL] = "kill", [FUZZ_POLL] = "poll", [FUZZ_SHOW] = "show", [FUZZ_WHO] = "who",
};
static const char *const places[FUZZ_PLACES] = {
	[FUZZ_PLAIN] = "plain", [FUZZ_TAIL] = "tail", [FUZZ_MISSING] = "missing",
	[FUZZ_SECOND] = "second", [FUZZ_READONLY] = "readonly", [FUZZ_AREA] = "area",
	[FUZZ_GROUP] = "group", [FUZZ_TABLE] = "table", [FUZZ_NOWHERE] = "nowhere",
};
static const char *const changes[FUZZ_CHANGES] = {
	[FUZZ_NOTHING] = "nothing", [FUZZ_REWRITE] = "rewrite", [FUZZ_UNMAP] = "unmap",
	[FUZZ_CLOSE] = "close", [FUZZ_LEAVE] = "leave", [FUZZ_GARBAGE] = "garbage",
	[FUZZ_OTHER] = "other", [FUZZ_LATER] = "later",
};

/* ---- by chance ---- */

/* How many of 256 ops are of each kind. */
static const u8 weights[FUZZ_WHATS] = {
	[FUZZ_ASK] = 168, [FUZZ_JOIN] = 12, [FUZZ_END] = 6, [FUZZ_MAP] = 12, [FUZZ_REMAP] = 8,
	[FUZZ_SCRIBBLE] = 12, [FUZZ_TOUCH] = 8, [FUZZ_FILES] = 6, [FUZZ_PASS] = 6,
	[FUZZ_FORK] = 1, [FUZZ_KILL] = 1, [FUZZ_POLL] = 8, [FUZZ_SHOW] = 4, [FUZZ_WHO] = 2,
};

static u8 random_what(struct actor *a)
{
	int left = chance(a) % 256;
	u8 what = 0;

	while (what < FUZZ_WHATS - 1 && (left -= weights[what]) >= 0)
		what++;
	return what;
}

static void random_tweak(struct actor *a, struct fuzz_op *op)
{
	const struct xm_request_kind *kind = fields_request(op->number);
	u32 words = kind ? kind->bytes / 4 : 8, n;

	n = op->tweaks < FUZZ_TWEAKS ? op->tweaks++ : chance(a) % FUZZ_TWEAKS;
	/* A few words behind the end: fields that only a newer caller knows. */
	op->tweak[n].word = chance(a) % (words + (one_in(a, 8) ? 8 : 0));
	op->tweak[n].value = one_in(a, 4) ? 1u << chance(a) % 32 : odd_number(a);
}

/* Changes take long, because another thread has to come and go. */
static void random_place(struct actor *a, struct fuzz_op *op)
{
	u64 n = chance(a) % 32;

	op->place = FUZZ_PLAIN;
	op->change = FUZZ_NOTHING;
	if (n < 8)
		op->place = chance(a) % FUZZ_PLACES;
	if (n == 0 || n == 31)
		op->change = one_in(a, 2) ? FUZZ_REWRITE : chance(a) % FUZZ_CHANGES;
}

static void random_op(struct actor *a, struct fuzz_op *op)
{
	*op = (struct fuzz_op){
		.what = random_what(a), .who = one_in(a, 2) ? 0 : chance(a) % CLIENTS,
		.number = fields_some(a), .seed = chance(a),
		.beside = one_in(a, 8),
	};
	if (op->what == FUZZ_ASK)
		random_place(a, op);
	if (op->what == FUZZ_ASK && one_in(a, 4))
		random_tweak(a, op);
	if (one_in(a, 16))
		op->nth = 1 + chance(a) % 12;
}

void fuzz_random_program(struct actor *a, struct fuzz_program *p)
{
	u32 i;

	p->ops = 4 + chance(a) % (FUZZ_OPS - 4);
	for (i = 0; i < p->ops; i++)
		random_op(a, &p->op[i]);
	/* Without slots it can do little. Each executor has a writer, and this gives it slots. */
	if (!one_in(a, 4))
		p->op[0] = (struct fuzz_op){
			.what = FUZZ_ASK, .number = _IOC_NR(XMEM_IOC_ATTACH), .seed = chance(a),
		};
}

/* ---- of each request in turn ---- */

static void add_ask(struct actor *a, struct fuzz_program *p, unsigned int number,
		    enum fuzz_place place, enum fuzz_change change, u8 nth)
{
	p->op[p->ops++] = (struct fuzz_op){
		.what = FUZZ_ASK, .number = number, .place = place, .change = change, .nth = nth,
		.seed = chance(a),
	};
}

/* All changes to its struct; those that end the client come last. */
void fuzz_changes_of(struct actor *a, struct fuzz_program *p, unsigned int number)
{
	static const struct {
		enum fuzz_place place;
		enum fuzz_change change;
	} what[] = {
		{ FUZZ_PLAIN, FUZZ_REWRITE }, { FUZZ_PLAIN, FUZZ_REWRITE },
		{ FUZZ_PLAIN, FUZZ_REWRITE }, { FUZZ_PLAIN, FUZZ_REWRITE },
		{ FUZZ_PLAIN, FUZZ_REWRITE }, { FUZZ_PLAIN, FUZZ_REWRITE },
		{ FUZZ_PLAIN, FUZZ_REWRITE }, { FUZZ_PLAIN, FUZZ_REWRITE },
		{ FUZZ_SECOND, FUZZ_REWRITE }, { FUZZ_SECOND, FUZZ_REWRITE },
		{ FUZZ_SECOND, FUZZ_REWRITE }, { FUZZ_MISSING, FUZZ_REWRITE },
		{ FUZZ_PLAIN, FUZZ_UNMAP }, { FUZZ_MISSING, FUZZ_UNMAP },
		{ FUZZ_TAIL, FUZZ_NOTHING }, { FUZZ_READONLY, FUZZ_NOTHING },
		{ FUZZ_AREA, FUZZ_NOTHING }, { FUZZ_GROUP, FUZZ_GARBAGE },
		{ FUZZ_MISSING, FUZZ_OTHER }, { FUZZ_SECOND, FUZZ_CLOSE },
		{ FUZZ_MISSING, FUZZ_LEAVE },
	};
	unsigned int i;

	*p = (struct fuzz_program){ .ops = 0 };
	add_ask(a, p, _IOC_NR(XMEM_IOC_ATTACH), FUZZ_PLAIN, FUZZ_NOTHING, 0);
	for (i = 0; i < sizeof(what) / sizeof(*what); i++)
		add_ask(a, p, number, what[i].place, what[i].change, 0);
}

/* Its first fields exceed the allowed range, one after the other. */
void fuzz_words_of(struct actor *a, struct fuzz_program *p, unsigned int number)
{
	static const u32 beyond[] = { 0x7fffffff, 0xfffffff0, 0x10000 };
	struct fuzz_op *op;

	*p = (struct fuzz_program){ .ops = 0 };
	add_ask(a, p, _IOC_NR(XMEM_IOC_ATTACH), FUZZ_PLAIN, FUZZ_NOTHING, 0);
	while (p->ops < FUZZ_OPS) {
		op = &p->op[p->ops];
		add_ask(a, p, number, FUZZ_PLAIN, FUZZ_NOTHING, 0);
		op->tweaks = 1;
		op->tweak[0].word = 2 + (p->ops - 2) / 3;	/* behind size and flags */
		op->tweak[0].value = beyond[p->ops % 3];
	}
}

/* Each of its allocations and copies fails, one after the other. */
void fuzz_failures_of(struct actor *a, struct fuzz_program *p, unsigned int number)
{
	unsigned int nth;

	*p = (struct fuzz_program){ .ops = 0 };
	add_ask(a, p, _IOC_NR(XMEM_IOC_ATTACH), FUZZ_PLAIN, FUZZ_NOTHING, 0);
	for (nth = 1; p->ops < FUZZ_OPS; nth++)
		add_ask(a, p, number, FUZZ_PLAIN, FUZZ_NOTHING, nth);
}

/* ---- mutation ---- */

static void insert(struct fuzz_program *p, u32 at, const struct fuzz_op *op)
{
	if (p->ops == FUZZ_OPS)
		p->ops--;
	if (at > p->ops)
		at = p->ops;
	memmove(&p->op[at + 1], &p->op[at], (p->ops - at) * sizeof(*op));
	p->op[at] = *op;
	p->ops++;
}

static void erase(struct fuzz_program *p, u32 at)
{
	if (p->ops < 2)
		return;
	p->ops--;
	memmove(&p->op[at], &p->op[at + 1], (p->ops - at) * sizeof(*p->op));
}

/* The head of this program, and the tail of the other. */
static void append(struct actor *a, struct fuzz_program *p, const struct fuzz_program *other)
{
	u32 from = chance(a) % other->ops, at = 1 + chance(a) % p->ops;

	for (p->ops = at; p->ops < FUZZ_OPS && from < other->ops; from++)
		p->op[p->ops++] = other->op[from];
}

/* Changes one property of one op. */
static void tweak(struct actor *a, struct fuzz_op *op)
{
	switch (chance(a) % 8) {
	case 0:
		op->seed = chance(a);
		break;
	case 1:
		op->seed ^= 1u << chance(a) % 32;
		break;
	case 2:
		op->who = chance(a) % CLIENTS;
		break;
	case 3:
		random_place(a, op);
		break;
	case 4:
		op->nth = one_in(a, 4) ? 0 : op->nth + 1 + chance(a) % 3;
		break;
	case 5:
		op->beside = !op->beside;
		break;
	case 6:
		op->number = fields_some(a);
		break;
	case 7:
		if (one_in(a, 4))
			op->tweaks = 0;
		else
			random_tweak(a, op);
		break;
	}
}

void fuzz_mutate(struct actor *a, struct fuzz_program *p, const struct fuzz_program *other)
{
	u32 n = 1 + chance(a) % 4, at;
	struct fuzz_op op;

	while (n--) {
		at = chance(a) % p->ops;
		switch (chance(a) % 8) {
		case 0:
			append(a, p, other);
			break;
		case 1:
		case 2:
			random_op(a, &op);
			insert(p, at, &op);
			break;
		case 3:
			erase(p, at);
			break;
		case 4:
			op = p->op[at];
			insert(p, at + one_in(a, 2) + chance(a) % 3, &op);
			break;
		default:
			tweak(a, &p->op[at]);
			break;
		}
	}
}

/* ---- as text ---- */

void fuzz_print(FILE *to, const struct fuzz_program *p)
{
	const struct fuzz_op *op;
	u32 i;

	for (op = p->op; op < p->op + p->ops; op++) {
		fprintf(to, "%s %u %u %s %s %u %u %x", whats[op->what], op->who, op->number,
			places[op->place], changes[op->change], op->nth, op->beside, op->seed);
		for (i = 0; i < op->tweaks; i++)
			fprintf(to, " %u:%x", op->tweak[i].word, op->tweak[i].value);
		fputc('\n', to);
	}
	fputc('\n', to);
}

static bool find_word(const char *const *words, unsigned int count, const char *word, u8 *found)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (!strcmp(words[i], word))
			*found = i;
	return *found < count;
}

static bool read_op(const char *line, struct fuzz_op *op)
{
	char what[16], place[16], change[16];
	unsigned int who, number, nth, beside;
	int used;

	*op = (struct fuzz_op){ .what = 255, .place = 255, .change = 255 };
	if (sscanf(line, "%15s %u %u %15s %15s %u %u %x%n", what, &who, &number, place, change,
		   &nth, &beside, &op->seed, &used) != 8)
		return false;
	op->who = who;
	op->number = number;
	op->nth = nth;
	op->beside = beside;
	for (line += used; op->tweaks < FUZZ_TWEAKS; op->tweaks++, line += used) {
		struct fuzz_tweak *t = &op->tweak[op->tweaks];

		if (sscanf(line, " %u:%x%n", &t->word, &t->value, &used) != 2)
			break;
	}
	return line[strspn(line, " \n")] == 0 && who < CLIENTS &&
		find_word(whats, FUZZ_WHATS, what, &op->what) &&
		find_word(places, FUZZ_PLACES, place, &op->place) &&
		find_word(changes, FUZZ_CHANGES, change, &op->change);
}

bool fuzz_read(FILE *from, const char *name, struct fuzz_program *p)
{
	char line[256];

	*p = (struct fuzz_program){ .ops = 0 };
	while (fgets(line, sizeof(line), from)) {
		if (line[0] == '#')
			continue;
		if (line[0] == '\n') {
			if (p->ops)
				return true;
			continue;
		}
		if (p->ops == FUZZ_OPS || !read_op(line, &p->op[p->ops])) {
			fprintf(stderr, "%s: no op, or too many: %s", name, line);
			exit(2);
		}
		p->ops++;
	}
	return p->ops;
}
