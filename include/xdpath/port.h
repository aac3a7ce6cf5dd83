/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A port: one network interface, what it can do, what stands on it. Facts come from the kernel
 * (rtnetlink, generic netlink "netdev", ethtool), never from a driver's name or a kernel version.
 */
#ifndef XDPATH_PORT_H
#define XDPATH_PORT_H

#include <net/if.h>

#include <xdpath/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum xdpath_attach {
	XDPATH_ATTACH_NONE = 0,
	XDPATH_ATTACH_NATIVE = 1,
	XDPATH_ATTACH_GENERIC = 2,
	XDPATH_ATTACH_OFFLOAD = 3
};

/* "none", "native", "generic", "offload". */
XDPATH_API const char *xdpath_attach_name(enum xdpath_attach a);

struct xdpath_port {
	char name[IFNAMSIZ];
	int ifindex;
	uint64_t netns; /* inode of the network namespace */
	uint8_t mac[6];
	uint32_t mtu;	    /* bytes, without the Ethernet header */
	uint32_t flags;	    /* IFF_UP, IFF_RUNNING, ... */
	uint32_t rx_queues; /* queues in use now, not the most there could be */
	uint32_t tx_queues;
	uint32_t peer_ifindex; /* veth and the like: IFLA_LINK, 0 if none */
	char kind[16];	       /* rtnetlink kind ("veth"), "" for a physical NIC */
	char driver[32];       /* ethtool's driver name, "" if it has none; for messages only */
	char driver_version[32];
	char bus[32];	     /* bus address, "" if none */
	int numa_node;	     /* -1 unknown */
	bool features_known; /* false: the kernel has no netdev family (before 6.3): try and see */
	uint64_t xdp_features; /* XDPATH_XDP_ACT_* */
	uint32_t zc_max_segs;  /* fragments of a packet in zero-copy; 0 if no zero-copy */
	uint64_t rx_metadata;  /* bit 0 timestamp, 1 hash, 2 vlan-tag */
	uint64_t xsk_features; /* bit 0 TX timestamp, 1 TX checksum, 2 launch time */
	bool rings_known;      /* ethtool -g */
	uint32_t ring_rx, ring_tx, ring_rx_max, ring_tx_max;
	bool rxvlan, lro;	     /* RX VLAN stripping, large receive offload: on now */
	enum xdpath_attach attached; /* XDP program in place */
	uint32_t prog_id;  /* its id, 0 if none (or one for each mode: see xdpath_prog_query) */
	bool carrier_seen; /* it has, or had, a carrier since it was made; also if not known */
	uint32_t carrier_downs; /* how often it went, 0 also if not known */
	bool link_reset;	/* opening a datapath took the carrier away */
};

/*
 * Look the interface up in the calling thread's network namespace and fill *p. Enters the kernel
 * (netlink and ioctl), changes nothing. Errors: -ENODEV (diag: no such device, with the nearest
 * name), -EPERM, -ENOMEM, or what netlink says.
 */
XDPATH_API int xdpath_port_query(struct xdpath_port *p, const char *name, struct xdpath_diag *diag);

/* Highest number of a usable queue, plus one: max(rx, tx), as bind() counts. */
static inline uint32_t xdpath_port_queues(const struct xdpath_port *p)
{
	return p->rx_queues > p->tx_queues ? p->rx_queues : p->tx_queues;
}

/* Who holds an AF_XDP queue, as far as the kernel tells. */
struct xdpath_holder {
	bool taken;    /* an AF_XDP socket is bound to the queue */
	int pid;       /* 0 if not to be found */
	char comm[16]; /* its command name */
	bool by_lease; /* found by xdpath's own lease, else by sock_diag and /proc */
};

/*
 * Find the holder of a queue: lease, then AF_XDP sock_diag with /proc, then the netdev family's
 * `xsk` attribute (taken, but not by whom). Enters the kernel. 0, or -errno if nothing could be
 * asked.
 */
XDPATH_API int xdpath_queue_holder(const struct xdpath_port *p, uint32_t queue,
				   struct xdpath_holder *out);

#ifdef __cplusplus
}
#endif
#endif
