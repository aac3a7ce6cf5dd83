// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * Take programs off an interface, whatever their form and mode. Called by the detach verb.
 *
 * The kernel says ok to a removal with the wrong mode flag and does nothing: each is removed by its
 * own mode, only if it is still the one that was looked at, and then looked for again.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "prog_form.h"

static int detach_link(const struct xdpath_port *p, const struct xdpath_prog_info *in)
{
	uint32_t link_id;
	int fd = xdpath_link_find(p->ifindex, in->id, &link_id), err;

	if (fd < 0)
		return fd;
	err = bpf_link_detach(fd);
	close(fd);
	return err;
}

static int detach_netlink(const struct xdpath_port *p, const struct xdpath_prog_info *in)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, guard);
	int fd = bpf_prog_get_fd_by_id(in->id), err;

	if (fd < 0)
		return fd;
	guard.old_prog_fd = fd;
	err = bpf_xdp_detach(p->ifindex, xdpath_attach_flag(in->attach), &guard);
	close(fd);
	return err;
}

static int detach_dispatcher(const struct xdpath_port *p)
{
	struct xdp_multiprog *mp = xdp_multiprog__get_from_ifindex(p->ifindex);
	int err = (int)libxdp_get_error(mp);

	if (!err) {
		err = xdp_multiprog__detach(mp);
		xdp_multiprog__close(mp);
	}
	return err;
}

static bool is_dispatcher(const struct xdpath_prog_info *in)
{
	return !in->dispatcher_id && !strcmp(in->name, XDPATH_DISPATCHER);
}

static int detach_one(const struct xdpath_port *p, const struct xdpath_prog_info *in,
		      struct xdpath_diag *d)
{
	struct xdpath_prog_info there[XDPATH_PROGS_MAX];
	char what[96], cure[96];
	int err;

	if (in->dispatcher_id)
		err = xdpath_beside_detach(p, in, d);
	else if (in->link_id)
		err = detach_link(p, in);
	else
		err = is_dispatcher(in) ? detach_dispatcher(p) : -ENOENT;
	if (err && !in->dispatcher_id && !in->link_id) /* also a dispatcher libxdp cannot read */
		err = detach_netlink(p, in);
	/* That is all that was wanted; but nothing follows from a question that failed. */
	if (!xdpath_prog_still_there(p->ifindex, in) &&
	    (!err || xdpath_prog_query(p->ifindex, there) >= 0))
		return 0;
	if (err && in->dispatcher_id)
		return err;
	xdpath_prog_describe(in, what, sizeof(what));
	xdpath_prog_cure(in, p->name, cure, sizeof(cure));
	return xdpath_fail(d, err == -EPERM ? XDPATH_R_PERMISSION : XDPATH_R_REFUSED,
			   err ? -err : EBUSY, "detach from %s: %s is still there: %s; %s", p->name,
			   what, err ? strerror(-err) : "the kernel said ok, and did nothing",
			   err == -EPERM ? "run as root" : cure);
}

/* Only what is known to be somebody else's is called foreign. */
static int fail_foreign(const struct xdpath_port *p, const struct xdpath_prog_info *in,
			struct xdpath_diag *d)
{
	int fd = bpf_prog_get_fd_by_id(in->id);
	char what[96], cure[96];

	if (fd >= 0)
		close(fd);
	if (fd == -EPERM)
		return xdpath_fail(d, XDPATH_R_PERMISSION, EPERM,
				   "detach from %s: not permitted to see whose program %u is; run "
				   "as root (CAP_SYS_ADMIN and CAP_NET_ADMIN)",
				   p->name, in->id);
	xdpath_prog_describe(in, what, sizeof(what));
	xdpath_prog_cure(in, p->name, cure, sizeof(cure));
	return xdpath_fail(d, XDPATH_R_PROG_CONFLICT, EPERM,
			   "detach from %s: %s is not xdpath's; %s, or add --force", p->name, what,
			   cure);
}

static bool is_wanted(const struct xdpath_prog_info *in, const struct xdpath_detach_opts *o)
{
	if (o->id)
		return in->id == o->id;
	/* with the dispatcher go all that run in it */
	return o->force ? !in->dispatcher_id : in->is_xdpath;
}

/* Which of those in place; the count, 0: there is none at all. */
static int choose(const struct xdpath_port *p, const struct xdpath_detach_opts *o,
		  struct xdpath_prog_info out[XDPATH_PROGS_MAX])
{
	struct xdpath_prog_info in[XDPATH_PROGS_MAX];
	int n = xdpath_prog_query(p->ifindex, in), wanted = 0;

	if (n < 0)
		return xdpath_fail(
			o->diag, n == -EPERM ? XDPATH_R_PERMISSION : XDPATH_R_NO_DEVICE, -n,
			"detach from %s: what is attached is not to be known: %s; run as "
			"root, and see `ip link`",
			p->name, strerror(-n));
	for (int i = 0; i < n; i++)
		if (is_wanted(&in[i], o))
			out[wanted++] = in[i];
	for (int i = 0; i < wanted; i++)
		if (!out[i].is_xdpath && !o->force)
			return fail_foreign(p, &out[i], o->diag);
	if (wanted)
		return wanted;
	if (o->id)
		return xdpath_fail(o->diag, XDPATH_R_OPTIONS, ENOENT,
				   "detach from %s: no program with id %u is attached; `xdpath "
				   "status %s` shows what is",
				   p->name, o->id, p->name);
	return n ? fail_foreign(p, &in[0], o->diag) : 0;
}

int xdpath_prog_detach(const struct xdpath_port *p, const struct xdpath_detach_opts *o,
		       struct xdpath_prog_info out[XDPATH_PROGS_MAX])
{
	struct xdpath_quiet quiet;
	int n, err = 0;

	if (!p || !o || xdpath_opts_check(o, o->sz, sizeof(*o)))
		return -EINVAL;
	n = choose(p, o, out);
	if (n < 0)
		return n;
	xdpath_quiet_begin(&quiet);
	for (int i = 0; !err && i < n; i++)
		err = detach_one(p, &out[i], o->diag);
	xdpath_quiet_end(&quiet);
	if (err)
		return err;
	xdpath_beside_sweep(p);
	xdpath_leases_sweep();
	xdpath_device_restore(p);
	return n;
}
