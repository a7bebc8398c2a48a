/* SPDX-License-Identifier: MIT */
/*
 * The fuzzer of xmem.ko: its programs, and the functions that its files share. main.c describes the
 * command line.
 *
 *   program.c  a program: made by chance, mutated, read and written as text
 *   cover.c    the coverage of the module, and the corpus, which all executors share
 *   memory.c   user memory that changes, faults or goes while the kernel looks at it
 *   acts.c     acts of an op other than requests: mappings, files, processes
 *   run.c      an executor: a process that runs one program after another
 *   main.c     starts, watches and kills the executors, and judges the state that they leave
 */
#ifndef XMEM_KERNEL_FUZZ_H
#define XMEM_KERNEL_FUZZ_H

#include <pthread.h>
#include <setjmp.h>
#include <sys/types.h>

#include "../fields.h"

/* The user whose clients no executor may end, and its pool, which all may join. */
#define FUZZ_BYSTANDER	65533
#define FUZZ_KEPT	"fuzz-kept"

struct fuzz_executor;
struct fuzz_memory;
struct fuzz_worker;

/* ---- programs ---- */

#define FUZZ_OPS	32
#define FUZZ_TWEAKS	3

/* The kinds of ops. Everything else about an op follows from its seed. */
enum fuzz_what {
	FUZZ_ASK,		/* a request */
	FUZZ_JOIN,		/* the client ends, and another takes its place */
	FUZZ_END,		/* the client ends, its file is closed, or part of it goes */
	FUZZ_MAP,		/* mmap of odd ranges */
	FUZZ_REMAP,		/* mprotect, madvise, mremap, munmap of mappings */
	FUZZ_SCRIBBLE,		/* garbage in all pages that the client may write */
	FUZZ_TOUCH,		/* pages are read, written, or pinned */
	FUZZ_FILES,		/* dup, close */
	FUZZ_PASS,		/* descriptors through a socket */
	FUZZ_FORK,		/* a child */
	FUZZ_KILL,		/* a child is killed */
	FUZZ_POLL,		/* poll and epoll */
	FUZZ_SHOW,		/* sysfs and fdinfo are read */
	FUZZ_WHO,		/* another effective user */
	FUZZ_WHATS
};

/* Where a request's struct lies. */
enum fuzz_place {
	FUZZ_PLAIN,
	FUZZ_TAIL,		/* its end is not mapped */
	FUZZ_MISSING,		/* on a page that userfaultfd brings */
	FUZZ_SECOND,		/* on two pages; userfaultfd brings the second */
	FUZZ_READONLY,
	FUZZ_AREA,		/* in the client's own area */
	FUZZ_GROUP,		/* in one of its groups */
	FUZZ_TABLE,		/* somewhere in the pool, which it may only read */
	FUZZ_NOWHERE,		/* odd addresses */
	FUZZ_PLACES
};

/* Changes meanwhile: while the kernel waits for a page, or at any moment. */
enum fuzz_change {
	FUZZ_NOTHING,
	FUZZ_REWRITE,		/* one word changes again and again */
	FUZZ_UNMAP,		/* the struct's pages go */
	FUZZ_CLOSE,		/* the file is closed */
	FUZZ_LEAVE,		/* the client's area is unmapped, so the client ends */
	FUZZ_GARBAGE,		/* scribble */
	FUZZ_OTHER,		/* another request of the same client */
	FUZZ_LATER,		/* the next ops of the program run */
	FUZZ_CHANGES
};

struct fuzz_tweak {
	u32 word, value;
};

struct fuzz_op {
	u8 what, who, number, place, change;
	u8 nth;			/* not 0: this allocation or copy fails */
	u8 beside;		/* not 0: on a second thread, beside the ops that follow */
	u8 tweaks;
	u32 seed;
	struct fuzz_tweak tweak[FUZZ_TWEAKS];	/* words of the struct that get other values */
};

struct fuzz_program {
	u64 number;		/* in the order in which programs were run */
	u32 ops, found;		/* found: edges that were new in its run */
	struct fuzz_op op[FUZZ_OPS];
};

void fuzz_random_program(struct actor *a, struct fuzz_program *p);
/*
 * Programs that try one request in every way: its struct changes, has odd fields, or what it
 * allocates fails.
 */
void fuzz_words_of(struct actor *a, struct fuzz_program *p, unsigned int number);
void fuzz_changes_of(struct actor *a, struct fuzz_program *p, unsigned int number);
void fuzz_failures_of(struct actor *a, struct fuzz_program *p, unsigned int number);
/* At times @other is spliced in. */
void fuzz_mutate(struct actor *a, struct fuzz_program *p, const struct fuzz_program *other);
void fuzz_print(FILE *to, const struct fuzz_program *p);
/* false: there are no more. A line that is no op ends the process with a message. */
bool fuzz_read(FILE *from, const char *name, struct fuzz_program *p);

/* ---- coverage and corpus: in memory that all executors share ---- */

#define FUZZ_EDGES	(1u << 18)	/* bits; there are some thousands */
#define FUZZ_CORPUS	8192		/* programs */

struct fuzz_shared {
	u64 seed, deadline_ns;
	u64 latest_ns;			/* the deadline while given programs have yet to run */
	bool kcov, failing;
	u32 edges;			/* reached so far */
	u32 answers;			/* pairs of request and errno so far */
	u32 unwritten;			/* errno of a write of a journal that failed; or 0 */
	u64 programs, ops;		/* done so far */
	u32 next;			/* the next program of the given corpus to run */
	u32 given;			/* number of given programs */
	u32 given_edges;		/* edges after the last given program has run */
	u32 corpus;			/* number of programs, all of them complete */
	pid_t adding;			/* the process that adds a program now; or 0 */
	u32 taken[FIELDS_REQUESTS], refused[FIELDS_REQUESTS];
	u64 edge[FUZZ_EDGES / 64];
	u64 answer[FIELDS_REQUESTS * 256 / 64];
	struct fuzz_program program[FUZZ_CORPUS];
};

struct fuzz_cover {
	int file;			/* an open kcov; -1: the kernel has none */
	u64 *trace;			/* a count, then that many addresses */
};

void cover_open(struct fuzz_cover *c);	/* for the calling thread */
void cover_begin(struct fuzz_cover *c);
/* Returns the number of new edges. @edge gets all edges that were reached, or is NULL. */
u32 cover_end(struct fuzz_cover *c, struct fuzz_shared *s, u64 *edge);
/* 1: no executor has had this answer to that request before. */
u32 cover_answer(struct fuzz_shared *s, unsigned int number, int err);
void corpus_add(struct fuzz_shared *s, const struct fuzz_program *p);

/* ---- user memory ---- */


struct fuzz_memory *memory_new(struct fuzz_worker *w);	/* NULL and errno */
/* Places the struct of @bytes at @from, returns its address, and begins the changes. */
void *memory_begin(struct fuzz_memory *m, const struct fuzz_op *op, const void *from, u32 bytes,
		   int file);
/* After @asked times, is the request to be repeated until a change hits the right moment? */
bool memory_once_more(struct fuzz_memory *m, u32 asked);
/* Ends the changes. true: @to has the struct that the kernel, and only the kernel, has left. */
bool memory_end(struct fuzz_memory *m, void *to, u32 bytes);

/* ---- executors ---- */

/* A thread that does ops; an executor has two. */
struct fuzz_worker {
	struct fuzz_executor *executor;
	struct actor a;			/* me points to a client of the first worker */
	struct fuzz_memory *memory;
	struct fuzz_cover cover;
	int fail_nth;			/* or -1 */
	u32 found;			/* edges, by this program */
};

#define FUZZ_KIDS	4
#define FUZZ_PLOT	(1ULL << 20)	/* a part of the arena for one mapping */
#define FUZZ_PLOTS	8

struct fuzz_executor {
	struct fuzz_shared *shared;
	u64 *edge;			/* see cover_end */
	char names[2][16];		/* of pools */
	struct fuzz_worker worker[2];
	int first_file;			/* the program has all files from here on */
	int journal;			/* the last programs, on the host's disk; or -1 */
	char *arena;			/* for mappings; empty after each program */
	pid_t kid[FUZZ_KIDS];
	int socket[2];
	u32 done;			/* ops of this program that the first worker has done */
	bool verbose;
	int cpu;			/* on which all its threads run */

	pthread_mutex_t lock;		/* guards the second worker's op; NULL: it has none */
	pthread_cond_t changed;
	const struct fuzz_op *beside;
};

/*
 * A signal for a bad access ends the code between these two. So that code takes no lock and
 * allocates nothing. Returns false after such a signal.
 */
extern __thread sigjmp_buf fuzz_escape;
extern __thread volatile bool fuzz_guarded;
#define FUZZ_GUARDED(...) \
	({ \
		sigjmp_buf outer_; \
		const bool was_ = fuzz_guarded; \
		bool well_; \
		memcpy(&outer_, &fuzz_escape, sizeof(outer_)); \
		well_ = !sigsetjmp(fuzz_escape, 0); \
		if (well_) { \
			fuzz_guarded = true; \
			__VA_ARGS__; \
		} \
		memcpy(&fuzz_escape, &outer_, sizeof(outer_)); \
		fuzz_guarded = was_; \
		well_; \
	})

/* A file of the program, or any number. */
int fuzz_some_file(struct fuzz_worker *w);
/*
 * Makes the calling thread run only on that CPU. All threads of an executor run on one CPU. Else
 * each change of a mapping would have to notify the other CPU, which in a VM may not be running.
 */
void fuzz_run_on(int cpu);
/* Waits until the second worker has no op. */
void fuzz_settle(struct fuzz_executor *e);
/* Runs any op but FUZZ_ASK. */
void fuzz_act(struct fuzz_worker *w, const struct fuzz_op *op);
void fuzz_end_kids(struct fuzz_executor *e);

int executor_prepare(struct fuzz_executor *e, struct fuzz_shared *s, unsigned int number,
		     int journal);	/* an open file, or -1 */
/* Runs the program, adds to the coverage, and cleans up. Returns how much of it was new. */
u32 executor_run(struct fuzz_executor *e, struct fuzz_program *p);
void executor_fuzz(struct fuzz_executor *e);	/* fuzzes for ever; does not return */
bool executor_goes_on(const struct fuzz_shared *s);

#define FUZZ_JOURNAL	32		/* number of programs in a journal */

#endif
