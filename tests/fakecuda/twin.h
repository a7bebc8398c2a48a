/* SPDX-License-Identifier: MIT */
/*
 * Host twins: kernels of the tests, compiled as C++, by name. twins.cc makes the table from the
 * kernels' source, and launch.c calls them.
 */
#ifndef FAKECUDA_TWIN_H
#define FAKECUDA_TWIN_H

#ifdef __cplusplus
extern "C" {
#endif

struct fk_parameter {
	unsigned int bytes;
	unsigned int pointer;	/* 0: a value; 1: points to memory to read; 3: to read and write */
};

struct fk_grid {
	unsigned int grid[3], block[3];
};

struct fk_twin {
	const char *name;
	unsigned int count;	/* of parameters */
	const struct fk_parameter *parameters;
	/* Runs all threads, one after another; values[i] points to the i-th argument. */
	void (*run)(const struct fk_grid *grid, void **values);
};

/* The last one has no name. */
extern const struct fk_twin fk_twins[];

#ifdef __cplusplus
}
#endif
#endif
