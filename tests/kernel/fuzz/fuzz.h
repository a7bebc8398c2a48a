/* SPDX-License-Identifier: MIT */
/*
 * The fuzzer of xmem.ko: its programs, and what its files offer each other. main.c says how it
 * is called.
 *
 *   program.c  a program: made by chance, mutated, read and written as text
 *   cover.c    what of the module has been reached, and the corpus, which all executors share
 *   memory.c   user memory that changes, faults or goes while the kernel looks at it
 *   acts.c     what an op can do besides asking: mappings, files, processes
 *   run.c      an executor: a process that does one program after another
 *   main.c     starts, watches and kills the executors, and judges what they have left
 */
#ifndef XMEM_KERNEL_FUZZ_H
#define XMEM_KERNEL_FUZZ_H

#include <pthread.h>
#include <setjmp.h>
#include <sys/types.h>

#include "../fields.h"

/* The user whose clients nobody here may end, and its pool, which all may join. */
#define FUZZ_BYSTANDER	65533
#define FUZZ_KEPT	"fuzz-kept"

struct fuzz_executor;
struct fuzz_memory;
struct fuzz_worker;

/* ---- programs ---- */

#define FUZZ_OPS	32
#define FUZZ_TWEAKS	3

/* What an op does. All else about it follows from its seed. */
enum fuzz_what {
	FUZZ_ASK,		/* a request */
	FUZZ_JOIN,		/* the client ends, and another takes its place */
	FUZZ_END,		/* the client ends, or its file is closed, or part of it goes */
	FUZZ_MAP,		/* mmap of odd ranges */
	FUZZ_REMAP,		/* mprotect, madvise, mremap, munmap of what is mapped */
	FUZZ_SCRIBBLE,		/* garbage in all pages that it may write */
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

/* What happens meanwhile: while the kernel waits for a page, or at any moment. */
enum fuzz_change {
	FUZZ_NOTHING,
	FUZZ_REWRITE,		/* one word becomes another, and again */
	FUZZ_UNMAP,		/* the struct's pages go */
	FUZZ_CLOSE,		/* the file is closed */
	FUZZ_LEAVE,		/* the client's area is unmapped: it ends */
	FUZZ_GARBAGE,		/* scribble */
	FUZZ_OTHER,		/* another request of the same client */
	FUZZ_LATER,		/* what the program does next is done */
	FUZZ_CHANGES
};

struct fuzz_tweak {
	u32 word, value;
};

struct fuzz_op {
	u8 what, who, number, place, change;
	u8 nth;			/* not 0: this allocation or copy fails */
	u8 beside;		/* not 0: on a second thread, beside what follows */
	u8 tweaks;
	u32 seed;
	struct fuzz_tweak tweak[FUZZ_TWEAKS];	/* words of the struct that are other than filled */
};

struct fuzz_program {
	u64 number;		/* in the order in which they were run */
	u32 ops, found;		/* found: edges that were new when it ran */
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
/* @other is spliced in at times. */
void fuzz_mutate(struct actor *a, struct fuzz_program *p, const struct fuzz_program *other);
void fuzz_print(FILE *to, const struct fuzz_program *p);
/* false: there is no more. A line that is no op ends the process with a message. */
bool fuzz_read(FILE *from, const char *name, struct fuzz_program *p);

/* ---- coverage and corpus: in memory that all executors share ---- */

#define FUZZ_EDGES	(1u << 18)	/* bits; there are some thousands */
#define FUZZ_CORPUS	8192		/* programs */

struct fuzz_shared {
	u64 seed, deadline_ns;
	u64 latest_ns;			/* the deadline while some of the corpus is to be run */
	bool kcov, failing;
	u32 edges;			/* reached so far */
	u32 answers;			/* pairs of request and errno so far */
	u32 unwritten;			/* errno of who could not write its journal; or 0 */
	u64 programs, ops;		/* done so far */
	u32 next;			/* of the corpus as it was given: to be run */
	u32 given;			/* so many programs were given */
	u32 given_edges;		/* edges when the last of them had been run */
	u32 corpus;			/* programs, all of them complete */
	pid_t adding;			/* who adds a program now; or 0 */
	u32 taken[FIELDS_REQUESTS], refused[FIELDS_REQUESTS];
	u64 edge[FUZZ_EDGES / 64];
	u64 answer[FIELDS_REQUESTS * 256 / 64];
	struct fuzz_program program[FUZZ_CORPUS];
};

struct fuzz_cover {
	int file;			/* of kcov; -1: the kernel has none */
	u64 *trace;			/* how many, then that many addresses */
};

void cover_open(struct fuzz_cover *c);	/* for the calling thread */
void cover_begin(struct fuzz_cover *c);
/* How many edges were new. @edge: where to note all that were reached, or NULL. */
u32 cover_end(struct fuzz_cover *c, struct fuzz_shared *s, u64 *edge);
/* 1: nobody has had this answer to that request before. */
u32 cover_answer(struct fuzz_shared *s, unsigned int number, int err);
void corpus_add(struct fuzz_shared *s, const struct fuzz_program *p);

/* ---- user memory ---- */


struct fuzz_memory *memory_new(struct fuzz_worker *w);	/* NULL and errno */
/* Where the struct of @bytes at @from lies; changes begin. */
void *memory_begin(struct fuzz_memory *m, const struct fuzz_op *op, const void *from, u32 bytes,
		   int file);
/* A change has to come at the right moment: is it to be asked again, after @asked times? */
bool memory_once_more(struct fuzz_memory *m, u32 asked);
/* Changes have ended. true: @to has the struct as the kernel has left it, and only the kernel. */
bool memory_end(struct fuzz_memory *m, void *to, u32 bytes);

/* ---- executors ---- */

/* A thread that does ops; an executor has two. */
struct fuzz_worker {
	struct fuzz_executor *executor;
	struct actor a;			/* its chance, and what it has; me is one of the first's */
	struct fuzz_memory *memory;
	struct fuzz_cover cover;
	int fail_nth;			/* or -1 */
	u32 found;			/* by this program */
};

#define FUZZ_KIDS	4
#define FUZZ_PLOT	(1ULL << 20)	/* of the arena: one mapping lies in each */
#define FUZZ_PLOTS	8

struct fuzz_executor {
	struct fuzz_shared *shared;
	u64 *edge;			/* see cover_end */
	char names[2][16];		/* of pools */
	struct fuzz_worker worker[2];
	int first_file;			/* all files from here on are the program's */
	int journal;			/* the last programs, on the host's disk; or -1 */
	char *arena;			/* for mappings; emptied after each program */
	pid_t kid[FUZZ_KIDS];
	int socket[2];
	u32 done;			/* ops of this program that the first worker has done */
	bool verbose;
	int cpu;			/* where all its threads run */

	pthread_mutex_t lock;		/* of the second worker's op; NULL: it has none */
	pthread_cond_t changed;
	const struct fuzz_op *beside;
};

/*
 * A signal for a bad access ends what the thread does between these: nothing that takes a lock
 * or allocates is done there. False where it has come to that.
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
 * The calling thread runs there alone. All threads of an executor run on one CPU: each change of
 * a mapping would else have to tell the other CPU, and in a VM that may not be running.
 */
void fuzz_run_on(int cpu);
/* Until the second worker has no op. */
void fuzz_settle(struct fuzz_executor *e);
/* All but FUZZ_ASK. */
void fuzz_act(struct fuzz_worker *w, const struct fuzz_op *op);
void fuzz_end_kids(struct fuzz_executor *e);

int executor_prepare(struct fuzz_executor *e, struct fuzz_shared *s, unsigned int number,
		     int journal);	/* an open file, or -1 */
/* Does it, adds to the coverage, and leaves nothing. Returns how much of it was new. */
u32 executor_run(struct fuzz_executor *e, struct fuzz_program *p);
void executor_fuzz(struct fuzz_executor *e);	/* as long as it goes on; does not return */
bool executor_goes_on(const struct fuzz_shared *s);

#define FUZZ_JOURNAL	32		/* programs in a journal */

#endif
