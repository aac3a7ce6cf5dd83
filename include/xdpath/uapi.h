/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Kernel constants newer than the oldest headers we build with (Debian 12: 6.1). Whether the
 * running kernel knows them is probed at run time, never taken from here.
 */
#ifndef XDPATH_UAPI_H
#define XDPATH_UAPI_H

#include <linux/if_xdp.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

#ifndef XDP_USE_SG /* 6.6: packets of several fragments */
#define XDP_USE_SG (1 << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)
#endif
#ifndef XDP_TX_METADATA /* 6.8 */
#define XDP_TX_METADATA (1 << 1)
#endif
#ifndef XDP_MAX_TX_SKB_BUDGET /* 6.17: descriptors one sendto() may send in copy mode */
#define XDP_MAX_TX_SKB_BUDGET 9
#endif

/* Generic netlink family "netdev" (6.3 and later); our names, so that newer headers do not clash.
 */
#define XDPATH_NETDEV_FAMILY	    "netdev"
#define XDPATH_NETDEV_CMD_DEV_GET   1
#define XDPATH_NETDEV_CMD_QUEUE_GET 10 /* 6.8 */
#define XDPATH_NETDEV_CMD_NAPI_GET  11 /* 6.8 */
#define XDPATH_NETDEV_CMD_NAPI_SET  14 /* 6.13 */

#define XDPATH_NETDEV_A_DEV_IFINDEX	 1
#define XDPATH_NETDEV_A_DEV_XDP_FEATURES 3
#define XDPATH_NETDEV_A_DEV_ZC_MAX_SEGS	 4
#define XDPATH_NETDEV_A_DEV_RX_METADATA	 5
#define XDPATH_NETDEV_A_DEV_XSK_FEATURES 6

#define XDPATH_NETDEV_A_QUEUE_ID      1
#define XDPATH_NETDEV_A_QUEUE_IFINDEX 2
#define XDPATH_NETDEV_A_QUEUE_TYPE    3 /* 0 rx, 1 tx */
#define XDPATH_NETDEV_A_QUEUE_NAPI_ID 4
#define XDPATH_NETDEV_A_QUEUE_XSK     7 /* 6.15: present when an AF_XDP socket holds the queue */

#define XDPATH_NETDEV_A_NAPI_IFINDEX	       1
#define XDPATH_NETDEV_A_NAPI_ID		       2
#define XDPATH_NETDEV_A_NAPI_DEFER_HARD_IRQS   5 /* 6.13 */
#define XDPATH_NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT 6 /* 6.13 */

#define XDPATH_XDP_ACT_BASIC	    (1 << 0)
#define XDPATH_XDP_ACT_REDIRECT	    (1 << 1)
#define XDPATH_XDP_ACT_NDO_XMIT	    (1 << 2)
#define XDPATH_XDP_ACT_XSK_ZEROCOPY (1 << 3)
#define XDPATH_XDP_ACT_HW_OFFLOAD   (1 << 4)
#define XDPATH_XDP_ACT_RX_SG	    (1 << 5)
#define XDPATH_XDP_ACT_NDO_XMIT_SG  (1 << 6)

#endif
