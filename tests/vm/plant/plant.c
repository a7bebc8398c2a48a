// SPDX-License-Identifier: GPL-2.0-only
/*
 * Misbehaves on purpose when loaded, in the way that the parameter "kind" names,
 * so that selftest.sh can see whether the harness notices. Never part of xmem.
 */
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

static char *kind = "nothing";
module_param(kind, charp, 0444);
MODULE_PARM_DESC(kind, "what to do wrong");

static DEFINE_MUTEX(lock_a);
static DEFINE_MUTEX(lock_b);
static DEFINE_SPINLOCK(spin);
static DEFINE_RAW_SPINLOCK(raw);

static int plant_nothing(void)
{
	return 0;
}

static int plant_refuse(void)
{
	return -EINVAL;
}

/* Holds itself, so that it can never be unloaded. */
static int plant_stuck(void)
{
	__module_get(THIS_MODULE);
	return 0;
}

static int plant_warn(void)
{
	WARN(1, "planted warning\n");
	return 0;
}

static int plant_oops(void)
{
	int *volatile nowhere = NULL;

	*(volatile int *)nowhere = 1;
	return 0;
}

/* Neither of the two stops the kernel. */
static int plant_text_and_taint(void)
{
	pr_err("BUG: planted text\n");
	add_taint(TAINT_USER, LOCKDEP_STILL_OK);
	return 0;
}

/* Cannot even be killed. */
static int plant_hang(void)
{
	for (;;)
		msleep(1000);
	return 0;
}

/* Two orders of two locks: no deadlock here, only lockdep can tell. */
static int plant_lockdep(void)
{
	mutex_lock(&lock_a);
	mutex_lock(&lock_b);
	mutex_unlock(&lock_b);
	mutex_unlock(&lock_a);

	mutex_lock(&lock_b);
	mutex_lock(&lock_a);
	mutex_unlock(&lock_a);
	mutex_unlock(&lock_b);
	return 0;
}

static int plant_use_after_free(void)
{
	char *volatile gone = kmalloc(64, GFP_KERNEL);

	if (!gone)
		return -ENOMEM;
	kfree(gone);
	return READ_ONCE(*gone) == 'x' ? -EINVAL : 0;
}

static int plant_atomic_sleep(void)
{
	spin_lock(&spin);
	mutex_lock(&lock_a);
	mutex_unlock(&lock_a);
	spin_unlock(&spin);
	return 0;
}

/* As harmless as can be, except where spinlocks sleep (PREEMPT_RT). */
static int plant_raw_sleep(void)
{
	raw_spin_lock(&raw);
	spin_lock(&spin);
	spin_unlock(&spin);
	raw_spin_unlock(&raw);
	return 0;
}

static int plant_double_free(void)
{
	char *volatile gone = kmalloc(64, GFP_KERNEL);

	kfree(gone);
	kfree(gone);
	return 0;
}

/* The second row of a table is read as the end of the first. */
static int plant_index(void)
{
	static u32 table[2][4];
	volatile u32 index = 6;

	return table[0][index] ? -EINVAL : 0;
}

/* Two threads count what only one at a time may count. */
static u32 races;

static int plant_racer(void *unused)
{
	while (!kthread_should_stop()) {
		races++;
		cond_resched();
	}
	return 0;
}

static int plant_race(void)
{
	struct task_struct *racers[2];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(racers); i++) {
		racers[i] = kthread_run(plant_racer, NULL, "plant-%zu", i);
		if (IS_ERR(racers[i]))
			return PTR_ERR(racers[i]);
	}
	msleep(5000);
	for (i = 0; i < ARRAY_SIZE(racers); i++)
		kthread_stop(racers[i]);
	return 0;
}

/* Only with kmemleak=on. */
static int plant_leak(void)
{
	void *volatile lost = kmalloc(100, GFP_KERNEL);

	lost = NULL;
	return 0;
}

static const struct {
	const char *name;
	int (*plant)(void);
} kinds[] = {
	{ "nothing", plant_nothing },
	{ "refuse", plant_refuse },
	{ "stuck", plant_stuck },
	{ "warn", plant_warn },
	{ "oops", plant_oops },
	{ "text_and_taint", plant_text_and_taint },
	{ "hang", plant_hang },
	{ "lockdep", plant_lockdep },
	{ "use_after_free", plant_use_after_free },
	{ "atomic_sleep", plant_atomic_sleep },
	{ "raw_sleep", plant_raw_sleep },
	{ "double_free", plant_double_free },
	{ "index", plant_index },
	{ "race", plant_race },
	{ "leak", plant_leak },
};

static int __init plant_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kind, kinds[i].name))
			return kinds[i].plant();
	return -ENOENT;
}

static void __exit plant_exit(void)
{
}

module_init(plant_init);
module_exit(plant_exit);
MODULE_DESCRIPTION("Bugs on purpose, to test the VM harness of xmem");
MODULE_LICENSE("GPL");
