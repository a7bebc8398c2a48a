// SPDX-License-Identifier: MIT
/*
 * Errors on demand. FAKECUDA_FAIL, or cuFakeFail() at any time, is a list of rules with commas:
 *
 *   cuMemCreate:3:2     the third call of cuMemCreate gives 2
 *   cuMemCreate:3+:2    the third and all later ones
 *   cuCtxSynchronize:1:719!   and the error sticks: all later calls that work give it too
 *
 * A name stands for all its variants: cuMemAlloc is also cuMemAlloc_v2. A call that fails for its
 * own reasons before this check (not initialized) does not count.
 * FAKECUDA_MISSING=cuMemCreate,cuMemPool* lists functions that this driver does not have.
 */
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "tests.h"

#define MAX_RULES 32

static struct rule {
	char name[64];
	unsigned long nth, seen;
	CUresult error;
	bool onwards, sticky;
} rules[MAX_RULES];
static int rule_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards both */
static atomic_bool any;

static bool parse(const char *text, struct rule *ret_rule)
{
	struct rule rule = { 0 };
	char plus[2] = "", bang[2] = "";

	if (sscanf(text, "%63[A-Za-z0-9_]:%lu%1[+]:%d%1[!]", rule.name, &rule.nth, plus,
		   &rule.error, bang) < 4) {
		plus[0] = bang[0] = 0;
		if (sscanf(text, "%63[A-Za-z0-9_]:%lu:%d%1[!]", rule.name, &rule.nth,
			   &rule.error, bang) < 3)
			return false;
	}
	rule.onwards = plus[0];
	rule.sticky = bang[0];
	*ret_rule = rule;
	return rule.nth && rule.error;
}

int cuFakeFail(const char *text)
{
	char copy[1024], *save, *word;
	int count = 0, result = 0;

	snprintf(copy, sizeof(copy), "%s", text ? text : "");
	pthread_mutex_lock(&lock);
	for (word = strtok_r(copy, ", ", &save); word; word = strtok_r(NULL, ", ", &save)) {
		if (count == MAX_RULES || !parse(word, &rules[count])) {
			fk_violation("FAKECUDA_FAIL: '%s' is no rule", word);
			result = -1;
			break;
		}
		count++;
	}
	rule_count = count;
	any = count != 0;
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult fk_inject(struct fk_function *function)
{
	CUresult error = FK_OK;

	if (!any)
		return FK_OK;
	pthread_mutex_lock(&lock);
	for (struct rule *rule = rules; rule < rules + rule_count && !error; rule++) {
		if (strcmp(rule->name, function->name) && strcmp(rule->name, function->base))
			continue;
		rule->seen++;
		if (rule->seen == rule->nth || (rule->onwards && rule->seen > rule->nth))
			error = rule->error;
		if (error && rule->sticky)
			fk_sticky_set(error);
	}
	pthread_mutex_unlock(&lock);
	return error;
}

static void mark_missing(const char *list)
{
	char copy[1024], *save, *word;

	snprintf(copy, sizeof(copy), "%s", list);
	for (word = strtok_r(copy, ", ", &save); word; word = strtok_r(NULL, ", ", &save))
		for (struct fk_function *f = fk_functions(); f; f = f->next)
			if (!fnmatch(word, f->name, 0) || !fnmatch(word, f->base, 0))
				f->missing = true;
}

/* Runs after the constructors that register functions, which have an earlier priority. */
__attribute__((constructor)) static void read_environment(void)
{
	cuFakeFail(fk_option("FAIL", ""));
	mark_missing(fk_option("MISSING", ""));
}
