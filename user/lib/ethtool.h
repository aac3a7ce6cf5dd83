/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What the ethtool ioctls tell about a port and its NIC. Private to the library and probe. */
#ifndef XDPATH_ETHTOOL_H
#define XDPATH_ETHTOOL_H

#include "internal.h"

/*
 * Fill driver, bus, rings, rxvlan and lro of *p, which carries the name; what the driver does not
 * answer stays as it is. rx and tx get the queues in use, 0 if it does not say. Enters the kernel.
 */
void xdpath_ethtool_query(struct xdpath_port *p, uint32_t *rx, uint32_t *tx);

/* What probe tells of a NIC beyond the port's facts. */
struct xdpath_nic {
	bool channels_known; /* ethtool -l */
	struct xdpath_channels {
		uint32_t now, most;
	} combined, rx, tx;
	bool coalescing_known; /* ethtool -c: how long an interrupt is put off */
	uint32_t rx_usecs, rx_frames, tx_usecs, tx_frames;
	bool rx_adaptive, tx_adaptive;
	int napis;	    /* -errno: the kernel does not list them */
	bool napi_settings; /* deferral is set for each NAPI, else for the device */
	int napi_shared;    /* RX and TX of a queue have one NAPI: 1, 0, -1 not told */
};

/* nic.c: enters the kernel; what is not told stays 0. */
void xdpath_nic_query(struct xdpath_nic *n, const struct xdpath_port *p);
/* The part that ethtool tells. */
void xdpath_ethtool_details(struct xdpath_nic *n, const char *name);

#endif
