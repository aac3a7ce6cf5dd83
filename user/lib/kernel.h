/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What the running kernel can do for AF_XDP, each point tried, none read off a version.
 * Private to the library and the command.
 */
#ifndef XDPATH_KERNEL_H
#define XDPATH_KERNEL_H

#include "internal.h"

enum xdpath_kernel_point {
	XDPATH_K_AF_XDP,       /* sockets at all */
	XDPATH_K_NEED_WAKEUP,  /* rings have a flags word */
	XDPATH_K_UNALIGNED,    /* chunks of any size and place */
	XDPATH_K_SHARED_UMEM,  /* one UMEM for several queues and devices */
	XDPATH_K_MULTI_BUFFER, /* packets of several fragments (XDP_USE_SG) */
	XDPATH_K_TX_BUDGET,    /* XDP_MAX_TX_SKB_BUDGET */
	XDPATH_K_TX_METADATA,  /* checksum and timestamp requests before the packet */
	XDPATH_K_BUSY_POLL,    /* SO_PREFER_BUSY_POLL */
	XDPATH_K_NETDEV,       /* generic netlink family "netdev" */
	XDPATH_K_QUEUE_GET,    /* ... its queues */
	XDPATH_K_NAPI_SET,     /* ... per-NAPI settings */
	XDPATH_K_SOCK_DIAG,    /* sock_diag lists AF_XDP sockets */
	XDPATH_K_COUNT
};

struct xdpath_kernel {
	char release[65];	   /* for the record only */
	int point[XDPATH_K_COUNT]; /* 1 yes, 0 no, -errno: could not be asked (-EPERM) */
};

/* Enters the kernel; binds nothing, so no device or queue notices. */
void xdpath_kernel_query(struct xdpath_kernel *k);

#endif
