/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What the XDP programs and user space agree on: map names and layouts. Compiles for both.
 * A change of meaning here raises XDPATH_LAYOUT.
 */
#ifndef XDPATH_SHARED_H
#define XDPATH_SHARED_H

#include <linux/types.h>

#define XDPATH_LAYOUT 1
#define XDPATH_MAGIC  0x78647061U /* "xdpa" */
#define XDPATH_QUEUES 256	  /* slots of the XSKMAP: the highest queue served is 255 */

/* Map names. The kernel keeps 15 characters of them. */
#define XDPATH_MAP_META	  "xdpath_meta"	  /* ARRAY[1] of struct xdpath_meta */
#define XDPATH_MAP_CONFIG "xdpath_config" /* ARRAY[1] of struct xdpath_config */
#define XDPATH_MAP_STATS \
	"xdpath_stats"		   /* PERCPU_ARRAY[XDPATH_V_COUNT] of struct xdpath_verdict_count */
#define XDPATH_MAP_XSKS "xsks_map" /* XSKMAP[XDPATH_QUEUES], index = receiving queue */

/*
 * Names the program's layout. A program that another loader has just put in place has zeros in it:
 * then the map's value size and number of entries (= layout) speak, and the first xdpath process
 * that uses it writes magic and layout.
 */
struct xdpath_meta {
	__u32 magic;
	__u32 layout;
	__u32 owner_pid; /* who loaded it, for messages only */
	__u32 reserved;
};

/* What reaches user space. */
enum xdpath_steer {
	XDPATH_STEER_NONE = 0, /* the kernel keeps everything */
	XDPATH_STEER_ALL = 1,  /* all but ARP, ND and ICMP to the socket of the receiving queue */
	XDPATH_STEER_L2 = 2,   /* everything */
};

struct xdpath_config {
	__u32 steer; /* enum xdpath_steer */
	__u32 reserved[7];
};

/* Where a packet went; each packet counts in exactly one. */
enum xdpath_verdict {
	XDPATH_V_XSK = 0,	/* redirected to a socket */
	XDPATH_V_NO_SOCKET = 1, /* meant for user space, no socket on its queue: to the kernel */
	XDPATH_V_KEPT = 2,	/* ARP, ND, ICMP or not understood: to the kernel */
	XDPATH_V_PASS = 3,	/* not asked for: to the kernel */
	XDPATH_V_COUNT = 4,
};

struct xdpath_verdict_count {
	__u64 packets;
	__u64 bytes;
};

#endif
