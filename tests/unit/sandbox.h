/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * For tests that need root and the kernel: a network namespace of the process's own, gone with it,
 * or the reason why there is none. Include after cmocka.h.
 */
#ifndef XDPATH_TEST_SANDBOX_H
#define XDPATH_TEST_SANDBOX_H

#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

#include <bpf/libbpf.h>

static const char *missing; /* why nothing can be tried here */

/* In a set-up: enter it. False: `missing` says why not, every test that asks is skipped. */
static inline bool sandbox(void)
{
	libbpf_set_print(NULL);
	if (geteuid())
		missing = "needs root";
	else if (unshare(CLONE_NEWNET))
		missing = "no network namespace to be had";
	return !missing;
}

/* At the beginning of a test. */
static inline void need_kernel(void)
{
	if (!missing)
		return;
	print_message("skipped: %s\n", missing);
	skip();
}

#endif
