/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The rules of an attached steering program: put in as a whole, read back with their counters.
 */
#ifndef XDPATH_STEER_H
#define XDPATH_STEER_H

#include <xdpath/port.h>
#include <xdpath/rule.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xdpath_rule_count {
	uint64_t packets, bytes;
};

/*
 * Replace the rules of the xdpath program with this id, all at once: a packet meets the old set or
 * the new one, never half of one. Rules that stay (same id) keep their counters. Enters the kernel
 * and waits for packets that still use the old set (milliseconds). No two at the same time for one
 * program: xdpath_steer_change() sees to that. Errors: -ENOENT (gone, or not xdpath's), -EPROTO
 * (another layout), -E2BIG (too many distinct mask shapes: the diagnosis has the count), -ENOEXEC
 * (its filters are others than the program's), -EPERM, -ENOMEM; then nothing has changed.
 */
XDPATH_API int xdpath_steer_set(uint32_t prog_id, const struct xdpath_rules *rules,
				struct xdpath_diag *diag);

/*
 * The same, but if the rules' filters are others than the program's, another program takes its
 * place (xdpath_prog_replace()) in the moment in which its rules begin to hold; *prog_id becomes
 * its id.
 */
XDPATH_API int xdpath_steer_put(int ifindex, uint32_t *prog_id, const struct xdpath_rules *rules,
				struct xdpath_diag *diag);

/* The rules in force, and their counters summed over CPUs in count[out->n] (may be NULL; to be
 * freed by the caller). 0 or -errno as above. */
XDPATH_API int xdpath_steer_get(uint32_t prog_id, struct xdpath_rules *out,
				struct xdpath_rule_count **count);

/*
 * The xdpath program that steers on an interface. -ENOENT: none is attached; -EOPNOTSUPP: a user's
 * own program; -EPROTO: another layout; -EPERM; the diagnosis says what to do. Changes nothing.
 */
XDPATH_API int xdpath_steer_find(const struct xdpath_port *p, uint32_t *prog_id,
				 struct xdpath_diag *diag);

/* Changes the rules in place. Non-zero ends it, and nothing is changed in the kernel. */
typedef int (*xdpath_steer_change_fn)(void *ctx, struct xdpath_rules *rules,
				      struct xdpath_diag *diag);

/*
 * Read the rules of an interface's steering program, have them changed, put them back, under a lock
 * (/run/xdpath): two at the same time lose nothing. Waits for another one for up to 10 s, then
 * -EBUSY. Else errors as above, or what `change` returns.
 */
XDPATH_API int xdpath_steer_change(const struct xdpath_port *p, xdpath_steer_change_fn change,
				   void *ctx, struct xdpath_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
