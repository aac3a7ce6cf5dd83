/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What the XDP programs and user space agree on: map names and layouts. Compiles for both.
 * A change of meaning here raises XDPATH_LAYOUT.
 */
#ifndef XDPATH_SHARED_H
#define XDPATH_SHARED_H

#include <linux/types.h>

#define XDPATH_LAYOUT 2
#define XDPATH_MAGIC  0x78647061U /* "xdpa" */
#define XDPATH_QUEUES 256	  /* slots of the XSKMAP: the highest queue served is 255 */

/* Map names. The kernel keeps 15 characters of them. */
#define XDPATH_MAP_META	  "xdpath_meta"	  /* ARRAY[1] of struct xdpath_meta */
#define XDPATH_MAP_CONFIG "xdpath_config" /* ARRAY[1] of struct xdpath_config */
#define XDPATH_MAP_STATS \
	"xdpath_stats" /* PERCPU_ARRAY[XDPATH_V_ENTRIES] of struct xdpath_verdict_count */
#define XDPATH_MAP_XSKS	  "xsks_map"	  /* XSKMAP[XDPATH_QUEUES], index = receiving queue */
#define XDPATH_MAP_RULES  "xdpath_rules"  /* the rules as the program reads them, see bpf/set.h */
#define XDPATH_MAP_SOURCE "xdpath_source" /* ... and as they were written */
#define XDPATH_MAP_COUNTS "xdpath_counts" /* ... and what they matched, per CPU */
#define XDPATH_MAP_MIRROR "xdpath_mirror" /* ARRAY_OF_MAPS[1]: a ring buffer if rules mirror */

/*
 * Names the program's layout. A program that another loader has just put in place has zeros in it:
 * then the map's value size and number of entries (= layout) speak, and the first xdpath process
 * that uses it writes magic and layout.
 */
struct xdpath_meta {
	__u32 magic;
	__u32 layout;
	__u32 owner_pid; /* who loaded it, for messages only */
	__u32 flags;	 /* XDPATH_META_* */
};

#define XDPATH_META_OWN \
	1U /* a user's own program, attached by xdpath: has this map and an XSKMAP */
#define XDPATH_META_RUN 2U /* in a dispatcher, for as long as somebody uses it */

/*
 * What reaches user space of the packets that no rule decides. Rules come first: one that matches
 * ARP, ND or ICMP decides about them too. A frame that is malformed or cut off meets no rule.
 */
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
	XDPATH_V_PASS = 3,	/* not asked for, or a rule says so: to the kernel */
	XDPATH_V_DROP = 4,	/* by a rule, as are the next two */
	XDPATH_V_TX = 5,	/* back out of the interface */
	XDPATH_V_REDIRECT = 6,	/* handed to another interface */
	XDPATH_V_COUNT = 7,
	/* Further counters of the same map, of copies and not of packets. */
	XDPATH_V_COPIED = 7,   /* by mirror rules */
	XDPATH_V_UNCOPIED = 8, /* ... but the ring buffer was full */
	XDPATH_V_ENTRIES = 9,
};

struct xdpath_verdict_count {
	__u64 packets;
	__u64 bytes;
};

/*
 * A mirror rule's record in the ring buffer: this head, then `kept` bytes of the frame. Records
 * have one of three sizes: head and 128, 512 or 2048 bytes.
 */
struct xdpath_copy {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 ifindex;
	__u32 queue;
	__u32 length; /* of the frame */
	__u32 kept;
	__u32 rule; /* id */
	__u32 reserved;
};

/*
 * Filters in tcpdump syntax are written into the program before it is loaded: over the body of
 * xp_filter(ctx, from), whose first instruction is `r0 = XDPATH_FILTER_MAGIC` and is found by that.
 * It and the XDPATH_FILTER_INSNS - 1 instructions behind it (a jump over all the others, `goto +0`)
 * may be overwritten; r1 is the context, r2 is `from`; r0 at the end (the next instruction is
 * `exit`) is 1 + i for the first of the filters i >= from that matches, 0 for none. Filters are
 * numbered from 0 in the order in which their rules are tried.
 */
#define XDPATH_FILTER_MAGIC 0x78646670
#define XDPATH_FILTER_INSNS 4096

/*
 * A program whose filters differ takes over in one step with its rules: its rules stand in the
 * other slot of xdpath_rules. The slot is the lowest bit of the one `r = XDPATH_SLOT_MAGIC` in the
 * program, to be set before it is loaded, and can be read off the loaded one.
 */
#define XDPATH_SLOT_MAGIC 0x78647330

#endif
