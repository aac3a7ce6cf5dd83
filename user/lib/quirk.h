/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Faults of drivers that no question and no try brings to light: the only place where a driver's
 * name decides. Private to the library, probe and the tests.
 */
#ifndef XDPATH_QUIRK_H
#define XDPATH_QUIRK_H

#include "internal.h"

struct xdpath_quirk {
	const char *key;    /* a stable name */
	const char *driver; /* ethtool's name of it */
	const char *what;   /* what goes wrong, and when */
	const char *done;   /* what xdpath does about it */
	const char *seen;   /* where it was seen */
	const char *verify; /* how to see it on one's own NIC */
	/* zero-copy: the RX buffer is rounded down to a multiple of this, bytes, 0 not; packets up
	 * to this length come whatever the MTU */
	uint32_t rx_granule, rx_least;
};

/* The entry after `last` (NULL: the first) for this driver, or NULL. */
const struct xdpath_quirk *xdpath_quirk_next(const struct xdpath_quirk *last, const char *driver);

#endif
