/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* How a failure or a degraded success is told to the caller. Nothing here prints. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"

const char *xdpath_mode_name(enum xdpath_mode mode)
{
	switch (mode) {
	case XDPATH_MODE_AUTO: return "auto";
	case XDPATH_MODE_GENERIC: return "generic";
	case XDPATH_MODE_COPY: return "copy";
	case XDPATH_MODE_ZEROCOPY: return "zero-copy";
	}
	return "unknown";
}

int xdpath_fail(struct xdpath_diag *d, enum xdpath_reason reason, int err, const char *fmt, ...)
{
	va_list ap;

	if (d) {
		d->reason = reason;
		d->err = err;
		va_start(ap, fmt);
		vsnprintf(d->text, sizeof(d->text), fmt, ap);
		va_end(ap);
	}
	return -err;
}

int xdpath_opts_check(const void *opts, size_t sz, size_t known)
{
	const unsigned char *byte = opts;

	if (!opts || sz < sizeof(size_t))
		return -EINVAL;
	for (size_t i = known; i < sz; i++)
		if (byte[i])
			return -EINVAL;
	return 0;
}
