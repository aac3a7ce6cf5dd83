/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Changing the rules of an interface: find the program that steers, read its rules, change them,
 * put them back, while nobody else does the same. Called by the `steer` verb, by negotiate.c for a
 * run's own rules and by applications. Owns nothing afterwards.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include <xdpath/steer.h>

#include "internal.h"

enum { WAIT_MS = 10000, PAUSE_MS = 2 };

int xdpath_steer_find(const struct xdpath_port *p, uint32_t *prog_id, struct xdpath_diag *diag)
{
	struct xdpath_prog_info info[XDPATH_PROGS_MAX];
	const struct xdpath_prog_info *own = NULL, *other = NULL;
	struct xdpath_prog_state state;
	int n = xdpath_prog_query(p->ifindex, info);

	for (int i = 0; i < n; i++) {
		if (!info[i].is_xdpath)
			other = other ? other : &info[i];
		else if (info[i].own)
			own = &info[i];
		else if (!info[i].layout_ok)
			return xdpath_fail(diag, XDPATH_R_PROG_CONFLICT, EPROTO,
					   "%s: the program (id %u) has map layout %u, this "
					   "xdpath's is %d; end its user, or detach it",
					   p->name, info[i].id, info[i].layout, XDPATH_LAYOUT);
		else {
			*prog_id = info[i].id;
			return 0;
		}
	}
	/* without privilege a program's id is all there is to know of it */
	if (n == -EPERM || (other && xdpath_prog_read(other->id, &state) == -EPERM))
		return xdpath_fail(
			diag, XDPATH_R_PERMISSION, EPERM,
			"%s: not permitted to see its programs; run as root (CAP_BPF and "
			"CAP_NET_ADMIN)",
			p->name);
	if (n < 0)
		return xdpath_fail(
			diag, XDPATH_R_REFUSED, -n,
			"%s: the kernel does not tell its programs: %s; see `bpftool net`", p->name,
			strerror(-n));
	if (own)
		return xdpath_fail(diag, XDPATH_R_PROG_CONFLICT, EOPNOTSUPP,
				   "%s: the program %s (id %u) is a user's own and steers by "
				   "itself; `xdpath detach %s` it to use rules",
				   p->name, own->name, own->id, p->name);
	return xdpath_fail(
		diag, XDPATH_R_REFUSED, ENOENT,
		"%s: no xdpath program is attached%s%s; `xdpath attach %s` puts one there", p->name,
		other ? ", but another: " : "", other ? other->name : "", p->name);
}

int xdpath_steer_lock(struct xdpath_lease **out, const struct xdpath_port *p,
		      struct xdpath_diag *diag)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
	uint64_t until = xdpath_now_ms() + WAIT_MS;
	char by[48] = "";
	int err, pid = 0;

	while ((err = xdpath_lease_take(out, p->netns, p->ifindex, XDPATH_LEASE_RULES, "steer",
					&pid, by, sizeof(by))) == -EBUSY &&
	       xdpath_now_ms() < until)
		nanosleep(&pause, NULL);
	if (err == -EBUSY)
		return xdpath_fail(
			diag, XDPATH_R_PROG_CONFLICT, EBUSY,
			"%s: its rules are being changed by pid %d (%s) for %d s; end it "
			"or try again",
			p->name, pid, by, WAIT_MS / 1000);
	if (err)
		return xdpath_fail(diag, XDPATH_R_PERMISSION, -err,
				   "%s: no lock for its rules under /run/xdpath: %s; run as root",
				   p->name, strerror(-err));
	return 0;
}

static int change_locked(const struct xdpath_port *p, xdpath_steer_change_fn change, void *ctx,
			 struct xdpath_diag *diag)
{
	struct xdpath_rules rules = {0};
	uint32_t id = 0;
	int err = xdpath_steer_find(p, &id, diag);

	if (err)
		return err;
	err = xdpath_steer_get(id, &rules, NULL);
	if (err)
		return xdpath_fail(diag, XDPATH_R_REFUSED, -err,
				   "%s: the rules of program %u cannot be read: %s; see `xdpath "
				   "status %s`",
				   p->name, id, strerror(-err), p->name);
	err = change(ctx, &rules, diag);
	if (!err)
		err = xdpath_steer_put(p->ifindex, &id, &rules, diag);
	xdpath_rules_clear(&rules);
	return err;
}

int xdpath_steer_change(const struct xdpath_port *p, xdpath_steer_change_fn change, void *ctx,
			struct xdpath_diag *diag)
{
	struct xdpath_lease *lock;
	int err = xdpath_steer_lock(&lock, p, diag);

	if (err)
		return err;
	err = change_locked(p, change, ctx, diag);
	xdpath_lease_drop(lock);
	return err;
}
