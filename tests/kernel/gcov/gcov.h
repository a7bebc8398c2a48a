/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included before each file of a module that counts (kmod/Kbuild, XMEM_GCOV): it replaces
 * module_init and module_exit, so that counting begins before the one and ends after the other.
 */
#ifndef XMEM_TEST_GCOV_H
#define XMEM_TEST_GCOV_H

#include <linux/init.h>
#include <linux/module.h>

void xk_gcov_begin(void);
void xk_gcov_end(void);

#undef module_init
#define module_init(function)		\
int __init init_module(void)		\
{					\
	xk_gcov_begin();		\
	return function();		\
}

#undef module_exit
#define module_exit(function)		\
void __exit cleanup_module(void)	\
{					\
	function();			\
	xk_gcov_end();			\
}

#endif
