/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What the ethtool ioctls tell about a port. Private to port.c and ethtool.c. */
#ifndef XDPATH_ETHTOOL_H
#define XDPATH_ETHTOOL_H

#include "internal.h"

/*
 * Fill driver, bus, rings, rxvlan and lro of *p, which carries the name; what the driver does not
 * answer stays as it is. rx and tx get the queues in use, 0 if it does not say. Enters the kernel.
 */
void xdpath_ethtool_query(struct xdpath_port *p, uint32_t *rx, uint32_t *tx);

#endif
