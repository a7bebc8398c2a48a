// SPDX-License-Identifier: MIT
/*
 * Modules and kernels of the fake driver. A module is the text of a PTX file, of which only the
 * names of its kernels are read. A launch runs the host twin of that name. A kernel without a twin
 * is not found, and the log says so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "lack.h"
#include "stream.h"

#define MOST_PARAMETERS 16
#define MOST_THREADS_OF_A_BLOCK 1024

/* Neither is ever freed, so that the driver notices the use of an unloaded one. */
struct function {
	struct module *module;
	const struct fk_twin *twin;
	struct function *next;
};

struct module {
	bool unloaded;
	struct fk_context *context;	/* NULL: a library, which works in all of them */
	char *text;
	struct function *functions;
	struct module *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards all of them */
static struct module *modules;

static struct module *find_module_locked(CUmodule handle)
{
	struct module *module;

	for (module = modules; module; module = module->next)
		if (module == (struct module *)handle && !module->unloaded)
			break;
	return module;
}

static struct function *find_function(CUfunction handle)
{
	struct function *function = NULL;
	struct module *module;

	pthread_mutex_lock(&lock);
	for (module = modules; module && !function; module = module->next)
		for (function = module->functions; function; function = function->next)
			if (function == (struct function *)handle && !module->unloaded)
				break;
	pthread_mutex_unlock(&lock);
	return function;
}

/* ---- Modules ---- */

static CUresult load(CUmodule *ret_module, const char *text, struct fk_context *context)
{
	struct module *module;

	if (!ret_module || !text)
		return FK_INVALID_VALUE;
	if (!strstr(text, ".version"))
		return FK_INVALID_IMAGE;
	module = calloc(1, sizeof(*module));
	if (!module || !(module->text = strdup(text)))
		abort();
	module->context = context;
	pthread_mutex_lock(&lock);
	module->next = modules;
	modules = module;
	pthread_mutex_unlock(&lock);
	*ret_module = (CUmodule)module;
	return FK_OK;
}

FK_DEFINE(cuModuleLoadData, 2000, cuModuleLoadData, FK_CONTEXT, CUmodule *ret_module,
	  const void *image)
{
	FK_ENTER(cuModuleLoadData);
	return load(ret_module, image, fk_context_current());
}

FK_DEFINE(cuModuleLoadDataEx, 2010, cuModuleLoadDataEx, FK_CONTEXT, CUmodule *ret_module,
	  const void *image, unsigned int count, int *options, void **values)
{
	FK_ENTER(cuModuleLoadDataEx);
	return load(ret_module, image, fk_context_current());
}

static CUresult unload(CUmodule handle)
{
	struct module *module;

	pthread_mutex_lock(&lock);
	module = find_module_locked(handle);
	if (module)
		module->unloaded = true;
	pthread_mutex_unlock(&lock);
	return module ? FK_OK : FK_INVALID_HANDLE;
}

FK_DEFINE(cuModuleUnload, 2000, cuModuleUnload, FK_CONTEXT, CUmodule module)
{
	FK_ENTER(cuModuleUnload);
	return unload(module);
}

/* Does the text define a kernel of that name: ".entry NAME(" ? */
static bool defines(const char *text, const char *name)
{
	const char *at = text;
	char found[128];

	while ((at = strstr(at, ".entry"))) {
		at += strlen(".entry");
		if (sscanf(at, " %127[A-Za-z0-9_$]", found) == 1 && !strcmp(found, name))
			return true;
	}
	return false;
}

static const struct fk_twin *find_twin(const char *name)
{
	const struct fk_twin *twin;

	for (twin = fk_twins; twin->name; twin++)
		if (!strcmp(twin->name, name))
			return twin;
	fk_lack("host twin of the kernel", name);
	return NULL;
}

static struct function *add_function(struct module *module, const struct fk_twin *twin)
{
	struct function *function;

	pthread_mutex_lock(&lock);
	for (function = module->functions; function; function = function->next)
		if (function->twin == twin)
			break;
	if (!function) {
		function = calloc(1, sizeof(*function));
		if (!function)
			abort();
		*function = (struct function){ module, twin, module->functions };
		module->functions = function;
	}
	pthread_mutex_unlock(&lock);
	return function;
}

static CUresult get_function(CUfunction *ret_function, CUmodule handle, const char *name)
{
	const struct fk_twin *twin;
	struct module *module;

	if (!ret_function || !name)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	module = find_module_locked(handle);
	pthread_mutex_unlock(&lock);
	if (!module)
		return FK_INVALID_HANDLE;
	twin = defines(module->text, name) ? find_twin(name) : NULL;
	if (!twin)
		return FK_NOT_FOUND;
	*ret_function = (CUfunction)add_function(module, twin);
	return FK_OK;
}

FK_DEFINE(cuModuleGetFunction, 2000, cuModuleGetFunction, FK_CONTEXT, CUfunction *ret_function,
	  CUmodule module, const char *name)
{
	FK_ENTER(cuModuleGetFunction);
	return get_function(ret_function, module, name);
}

/* ---- Libraries, which are modules of no context; their kernels are functions ---- */

FK_DEFINE(cuLibraryLoadData, 12000, cuLibraryLoadData, FK_WORK, CUmodule *ret_library,
	  const void *image, int *options, void **values, unsigned int count,
	  int *library_options, void **library_values, unsigned int library_count)
{
	FK_ENTER(cuLibraryLoadData);
	return load(ret_library, image, NULL);
}

FK_DEFINE(cuLibraryUnload, 12000, cuLibraryUnload, FK_INIT, CUmodule library)
{
	FK_ENTER(cuLibraryUnload);
	return unload(library);
}

FK_DEFINE(cuLibraryGetKernel, 12000, cuLibraryGetKernel, FK_WORK, CUfunction *ret_kernel,
	  CUmodule library, const char *name)
{
	FK_ENTER(cuLibraryGetKernel);
	return get_function(ret_kernel, library, name);
}

FK_DEFINE(cuKernelGetFunction, 12000, cuKernelGetFunction, FK_CONTEXT, CUfunction *ret_function,
	  CUfunction kernel)
{
	FK_ENTER(cuKernelGetFunction);
	if (!ret_function)
		return FK_INVALID_VALUE;
	if (!find_function(kernel))
		return FK_INVALID_HANDLE;
	*ret_function = kernel;
	return FK_OK;
}

/* ---- Launches ---- */

struct launch {
	struct fk_op op;
	const struct fk_twin *twin;
	struct fk_grid grid;
	uint64_t values[MOST_PARAMETERS];
};

/* Pointers become those of the driver's own view; a bad one is an illegal address. */
static int run_launch(struct fk_op *op)
{
	struct launch *launch = (struct launch *)op;
	struct fk_device *device = op->stream->context->device;
	struct fk_pin *pins[MOST_PARAMETERS] = { 0 };
	void *values[MOST_PARAMETERS];
	unsigned int i;
	int result = FK_OK;

	for (i = 0; i < launch->twin->count && !result; i++) {
		unsigned int access = launch->twin->parameters[i].pointer;
		CUresult why;
		void *at;

		values[i] = &launch->values[i];
		if (!access)
			continue;
		at = fk_memory_at(launch->values[i], 1, device, access, &pins[i], &why);
		if (!at)
			result = FK_ILLEGAL_ADDRESS;
		launch->values[i] = (uintptr_t)at;
	}
	if (!result)
		launch->twin->run(&launch->grid, values);
	for (i = 0; i < launch->twin->count; i++)
		if (pins[i])
			fk_memory_done(pins[i]);
	return result;
}

static bool is_possible(const struct fk_grid *grid)
{
	unsigned int i;

	for (i = 0; i < 3; i++)
		if (!grid->grid[i] || !grid->block[i] ||
		    grid->block[i] > MOST_THREADS_OF_A_BLOCK)
			return false;
	return (uint64_t)grid->block[0] * grid->block[1] * grid->block[2] <=
		MOST_THREADS_OF_A_BLOCK;
}

static void set(struct launch *launch, const struct function *function,
		const struct fk_grid *grid, void **parameters)
{
	unsigned int i;

	launch->twin = function->twin;
	launch->grid = *grid;
	for (i = 0; i < launch->twin->count; i++)
		memcpy(&launch->values[i], parameters[i], launch->twin->parameters[i].bytes);
}

static CUresult launch(bool own, CUfunction handle, const struct fk_grid *grid, CUstream stream,
		       void **parameters)
{
	struct function *function = find_function(handle);
	struct fk_stream *on;
	struct launch *launch;
	CUresult why;
	uint64_t seq;

	if (!function)
		return FK_INVALID_HANDLE;
	on = fk_stream_find(stream, own, &why);
	if (!on)
		return why;
	if (function->module->context && on->context != function->module->context)
		return FK_INVALID_HANDLE;
	if (!is_possible(grid) || !parameters || function->twin->count > MOST_PARAMETERS)
		return FK_INVALID_VALUE;
	launch = fk_op_new(sizeof(*launch), run_launch);
	launch->op.node = FK_KERNEL_NODE;
	set(launch, function, grid, parameters);
	return fk_enqueue(on, &launch->op, &seq);
}

static CUresult launch_plain(bool own, CUfunction function, unsigned int grid_x,
			     unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
			     unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
			     CUstream stream, void **parameters, void **extra)
{
	const struct fk_grid grid = { { grid_x, grid_y, grid_z }, { block_x, block_y, block_z } };

	return extra ? FK_NOT_SUPPORTED : launch(own, function, &grid, stream, parameters);
}

/* The argument of cuLaunchKernelEx that says where to launch. */
struct launch_config {
	struct fk_grid grid;
	unsigned int shared_bytes;
	CUstream stream;
	void *attributes;
	unsigned int count;
};

static CUresult launch_config(bool own, const struct launch_config *config, CUfunction function,
			      void **parameters, void **extra)
{
	if (!config)
		return FK_INVALID_VALUE;
	if (extra || config->count)
		return FK_NOT_SUPPORTED;
	return launch(own, function, &config->grid, config->stream, parameters);
}

FK_DEFINE_BOTH(cuLaunchKernel, 4000, cuLaunchKernel, cuLaunchKernel_ptsz, FK_CONTEXT, launch_plain,
	       (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
		unsigned int block_x, unsigned int block_y, unsigned int block_z,
		unsigned int shared_bytes, CUstream stream, void **parameters, void **extra),
	       (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
		parameters, extra))
FK_DEFINE_BOTH(cuLaunchKernelEx, 11060, cuLaunchKernelEx, cuLaunchKernelEx_ptsz, FK_CONTEXT,
	       launch_config,
	       (const struct launch_config *config, CUfunction function, void **parameters,
		void **extra), (config, function, parameters, extra))

/* ---- New parameters of a node ---- */

/* The form of CUDA 12 has two more fields. */
struct node_params_v2 {
	struct node_params params;
	CUfunction kernel;		/* instead of the function */
	CUcontext context;		/* NULL: the current one */
};

static CUresult set_node(CUgraphExec exec, CUgraphNode node, const struct node_params *params)
{
	struct fk_op *op = fk_exec_find(exec, node, FK_KERNEL_NODE);
	struct function *function = params ? find_function(params->function) : NULL;

	if (!op || !function || !is_possible(&params->grid) || !params->parameters ||
	    function->twin->count > MOST_PARAMETERS)
		return FK_INVALID_VALUE;
	if (params->extra)
		return FK_NOT_SUPPORTED;
	set((struct launch *)op, function, &params->grid, params->parameters);
	return FK_OK;
}

FK_DEFINE(cuGraphExecKernelNodeSetParams, 10010, cuGraphExecKernelNodeSetParams, FK_WORK,
	  CUgraphExec exec, CUgraphNode node, const struct node_params *params)
{
	FK_ENTER(cuGraphExecKernelNodeSetParams);
	return set_node(exec, node, params);
}

FK_DEFINE(cuGraphExecKernelNodeSetParams, 12000, cuGraphExecKernelNodeSetParams_v2, FK_WORK,
	  CUgraphExec exec, CUgraphNode node, const struct node_params_v2 *params)
{
	FK_ENTER(cuGraphExecKernelNodeSetParams_v2);
	if (params && (params->kernel || params->context))
		return FK_NOT_SUPPORTED;
	return set_node(exec, node, params ? &params->params : NULL);
}
