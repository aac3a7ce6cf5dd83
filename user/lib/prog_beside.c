// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * Beside other XDP programs: through libxdp's dispatcher, in the order of their priorities.
 *
 * Called by the forms of attachment. libxdp attaches by netlink and keeps its own pins; we own
 * nothing of it. It falls back by itself to attaching plainly, which is not what was asked: then we
 * undo that and say why.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bpf/libbpf.h>
#include <linux/magic.h>
#include <xdp/libxdp.h>

#include "prog_form.h"

#define BESIDE_DIR XDPATH_RUN_DIR "/beside"

static enum xdp_attach_mode mode_of(enum xdpath_attach a)
{
	return a == XDPATH_ATTACH_GENERIC ? XDP_MODE_SKB : XDP_MODE_NATIVE;
}

static bool have_bpffs(void)
{
	const char *set = getenv(XDP_BPFFS_ENVVAR);
	struct statfs fs;

	return statfs(set ? set : "/sys/fs/bpf", &fs) == 0 && fs.f_type == BPF_FS_MAGIC;
}

/* libxdp attached it plainly, as if alone. */
static int fail_plain(struct xdp_program *x, const struct xdpath_port *p, enum xdp_attach_mode mode,
		      struct xdpath_diag *d)
{
	char why[160];

	snprintf(why, sizeof(why), "%s", xdpath_quiet_said());
	xdp_program__detach(x, p->ifindex, mode, 0);
	if (!have_bpffs())
		return xdpath_fail(d, XDPATH_R_KERNEL, EOPNOTSUPP,
				   "attach to %s beside others: no bpffs is mounted on /sys/fs/bpf "
				   "here (`ip netns exec` hides it); mount one, or attach without "
				   "--beside",
				   p->name);
	return xdpath_fail(
		d, XDPATH_R_KERNEL, EOPNOTSUPP,
		"attach to %s beside others: this kernel refuses program extensions%s%s; "
		"attach without --beside",
		p->name, why[0] ? ": " : "", why);
}

static int fail_beside(const struct xdpath_port *p, const struct xdpath_beside_opts *o, int err,
		       struct xdpath_diag *d)
{
	const char *said = xdpath_quiet_said();

	if (strstr(said, "changes packet data"))
		said = "it changes packets or makes tail calls, which a dispatcher cannot carry";
	if (err == EPERM || err == ENODEV || err == ENOMEM || err == ERANGE || !said[0])
		return xdpath_fail_attach(d, p->name, o->attach, err, said);
	return xdpath_fail(d, XDPATH_R_REFUSED, err,
			   "attach to %s beside others: %s; see `xdp-loader status %s`", p->name,
			   said, p->name);
}

static int set_order(struct xdp_program *x, const struct xdpath_beside_opts *o)
{
	int err = 0;

	if (o->prio)
		err = xdp_program__set_run_prio(x, o->prio);
	for (unsigned int action = XDP_ABORTED; !err && o->actions && action <= XDP_REDIRECT;
	     action++)
		err = xdp_program__set_chain_call_enabled(x, action, o->actions >> action & 1);
	return err;
}

int xdpath_beside_attach(struct xdpath_load *l, const struct xdpath_port *p,
			 const struct xdpath_beside_opts *o, struct xdpath_diag *d)
{
	DECLARE_LIBBPF_OPTS(xdp_program_opts, xo);
	struct xdpath_prog_info there[XDPATH_PROGS_MAX];
	struct xdp_program *x;
	int err, n;

	xo.obj = l->obj;
	xo.prog_name = bpf_program__name(l->prog);
	x = xdp_program__create(&xo);
	err = (int)libxdp_get_error(x);
	if (err)
		return fail_beside(p, o, -err, d);
	err = set_order(x, o);
	if (!err)
		err = xdp_program__attach(x, p->ifindex, mode_of(o->attach), 0);
	if (err) {
		fail_beside(p, o, -err, d);
	} else {
		n = xdpath_prog_query(p->ifindex, there);
		for (int i = 0; i < n; i++)
			if (there[i].id == xdp_program__id(x) && !there[i].dispatcher_id)
				err = fail_plain(x, p, mode_of(o->attach), d);
	}
	xdp_program__close(x);
	return err;
}

int xdpath_beside_detach(const struct xdpath_port *p, const struct xdpath_prog_info *in,
			 struct xdpath_diag *d)
{
	struct xdp_multiprog *mp = xdp_multiprog__get_from_ifindex(p->ifindex);
	struct xdp_program *x = NULL;
	int err = (int)libxdp_get_error(mp);

	if (!err) {
		while ((x = xdp_multiprog__next_prog(x, mp)))
			if (xdp_program__id(x) == in->id)
				break;
		err = x ? xdp_program__detach(x, p->ifindex, mode_of(in->attach), 0) : -ENOENT;
		xdp_multiprog__close(mp);
	}
	if (err)
		return xdpath_fail(d, XDPATH_R_REFUSED, -err,
				   "detach from %s: libxdp does not take program %u out of its "
				   "dispatcher: %s; `xdp-loader unload %s -i %u` may",
				   p->name, in->id,
				   xdpath_quiet_said()[0] ? xdpath_quiet_said() : strerror(-err),
				   p->name, in->id);
	return 0;
}

/* ---- the users of a program that goes with its last ---- */

static void lock_path(const struct xdpath_port *p, char *out, size_t size)
{
	snprintf(out, size, BESIDE_DIR "/%llu-%d", (unsigned long long)p->netns, p->ifindex);
}

int xdpath_beside_share(const struct xdpath_port *p, int *fd)
{
	char path[96];

	lock_path(p, path, sizeof(path));
	mkdir(XDPATH_RUN_DIR, 0755);
	mkdir(BESIDE_DIR, 0755);
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (*fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	if (flock(*fd, LOCK_SH | LOCK_NB) == 0 && xdpath_lock_is_file(*fd, path))
		return 0;
	close(*fd);
	*fd = -1;
	return -EAGAIN;
}

bool xdpath_beside_last(const struct xdpath_port *p, int fd)
{
	char path[96];

	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	lock_path(p, path, sizeof(path));
	if (xdpath_lock_is_file(fd, path))
		unlink(path);
	rmdir(BESIDE_DIR);
	rmdir(XDPATH_RUN_DIR);
	return true;
}

void xdpath_beside_sweep(const struct xdpath_port *p)
{
	char path[96];
	int fd;

	lock_path(p, path, sizeof(path));
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	xdpath_beside_last(p, fd);
	close(fd);
}
