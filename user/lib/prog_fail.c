// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/* What a refused attachment means, in one line. Called by every form of attachment. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "prog_form.h"

int xdpath_fail_attach(struct xdpath_diag *d, const char *dev, enum xdpath_attach attach, int err,
		       const char *ext)
{
	const char *mode = xdpath_attach_name(attach);
	bool native = attach == XDPATH_ATTACH_NATIVE;
	const char *why = ext[0] ? ext : strerror(err);

	if (err == EPERM)
		return xdpath_fail(
			d, XDPATH_R_PERMISSION, err,
			"attach to %s: not permitted; run as root (CAP_NET_ADMIN and CAP_BPF, "
			"and CAP_SYS_ADMIN to join a program that is there)",
			dev);
	if (err == ENODEV)
		return xdpath_fail(d, XDPATH_R_NO_DEVICE, err,
				   "attach to %s: the interface is gone; see `ip link`", dev);
	/* drivers say so too when they lack a TX ring for each CPU: generic mode may still work */
	if (err == ENOMEM)
		return xdpath_fail(d, native ? XDPATH_R_REFUSED : XDPATH_R_MEMORY, err,
				   "attach to %s in %s mode: %s; free memory, use fewer queues "
				   "(`ethtool -L`)%s",
				   dev, mode, why, native ? " or take generic mode" : "");
	if (err == ERANGE || strstr(ext, "MTU"))
		return xdpath_fail(d, XDPATH_R_MTU, err,
				   "attach to %s in %s mode: %s; lower the MTU (a veth's peer's)%s",
				   dev, mode, why, native ? " or take generic mode" : "");
	if (err == EOPNOTSUPP && native)
		return xdpath_fail(d, XDPATH_R_NO_NATIVE, err,
				   "attach to %s in native mode: %s; take generic mode", dev, why);
	if (err == EBUSY || err == EEXIST)
		return xdpath_fail(d, XDPATH_R_PROG_CONFLICT, err,
				   "attach to %s in %s mode: %s; another program keeps coming and "
				   "going, see `bpftool net show dev %s`",
				   dev, mode, why, dev);
	if (err == ENOSPC && native)
		return xdpath_fail(
			d, XDPATH_R_REFUSED, err,
			"attach to %s in native mode: %s; give it as many RX queues as its "
			"peer has TX queues, or take generic mode",
			dev, why);
	return xdpath_fail(d, XDPATH_R_REFUSED, err, "attach to %s in %s mode: %s; %s", dev, mode,
			   why,
			   native ? "change what it names or take generic mode"
				  : "change what it names");
}

int xdpath_fail_taken(struct xdpath_diag *d, const char *dev, const struct xdpath_prog_info *in,
		      const char *why)
{
	char what[96], cure[96];

	xdpath_prog_describe(in, what, sizeof(what));
	xdpath_prog_cure(in, dev, cure, sizeof(cure));
	return xdpath_fail(d, XDPATH_R_PROG_CONFLICT, EBUSY, "attach to %s: %s %s; %s", dev, what,
			   why, cure);
}

bool xdpath_fail_is_of_mode(enum xdpath_reason r)
{
	return r == XDPATH_R_NO_NATIVE || r == XDPATH_R_MTU || r == XDPATH_R_REFUSED;
}
