/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Reading netlink answers, apart from talking, so that tests can feed constructed ones.
 *
 * netlink.c, netlink_parse.c, port.c and holder.c implement it; port.c, holder.c and the unit tests
 * call it. Nothing here enters the kernel or keeps a pointer into the message. Attributes that are
 * unknown, too short or cut off are left out; the rest of the message still counts.
 */
#ifndef XDPATH_NETLINK_PARSE_H
#define XDPATH_NETLINK_PARSE_H

#include "internal.h"

struct nlattr;

/* One conversation: what is expected, where the answers go, how it ended. */
struct xdpath_nl_reply {
	uint32_t seq, portid;
	int (*cb)(const struct nlmsghdr *nlh, void *ctx); /* < 0 ends it with that -errno */
	void *ctx;
	char *ext; /* the kernel's extack text, "" if none */
	size_t size;
	bool interrupted; /* the dump changed under our hands */
};

/* One received datagram. 1: more is to come, 0: ended well, -errno: ended so. */
int xdpath_nl_consume(struct xdpath_nl_reply *r, const void *buf, size_t len);

/* Attribute values by length: false (and *out untouched) if the attribute is too short. */
bool xdpath_nl_u32(const struct nlattr *a, uint32_t *out);
bool xdpath_nl_uint(const struct nlattr *a, uint64_t *out); /* 1, 2, 4 or 8 bytes */
void xdpath_nl_str(const struct nlattr *a, char *out, size_t size);

/* CTRL_CMD_NEWFAMILY: the family's id and the commands it knows. */
struct xdpath_nl_family {
	uint16_t id;
	uint64_t ops; /* bit N: command N */
};
int xdpath_nl_parse_family(const struct nlmsghdr *nlh, void *family);
int xdpath_nl_family_query(const char *name, struct xdpath_nl_family *out);

/* RTM_NEWLINK into a port: name, ifindex, mac, mtu, flags, peer, kind, program. */
struct xdpath_link_facts {
	struct xdpath_port *port;
	uint32_t rx_queues, tx_queues;	     /* the most there can be: a last resort */
	uint32_t carrier_ups, carrier_downs; /* how often the carrier came and went */
	bool carrier_ups_known;		     /* before 4.16: not */
};
int xdpath_nl_parse_link(const struct nlmsghdr *nlh, void *link_facts);

/* netdev dev-get into a port: features, zc_max_segs, metadata. */
int xdpath_nl_parse_netdev(const struct nlmsghdr *nlh, void *port);

/* netdev queue-get: one message a queue. */
struct xdpath_queue_facts {
	int ifindex;			 /* whose queues; the answers for others are passed over */
	uint32_t rx, tx;		 /* queues counted */
	uint64_t taken[4];		 /* bit Q: queue Q (0..255) has an AF_XDP socket */
	uint32_t napi[2][XDPATH_QUEUES]; /* of RX and TX queue Q, 0 not told */
};
int xdpath_nl_parse_queue(const struct nlmsghdr *nlh, void *queue_facts);
/* port.c: ask for all queues of f->ifindex; 0 or -errno (-ENOENT, -EOPNOTSUPP: before 6.8). */
int xdpath_nl_queues(struct xdpath_queue_facts *f);

/* netdev napi-get: one message a NAPI. */
struct xdpath_napi_facts {
	int ifindex;
	uint32_t count;
	uint32_t settable; /* ... that have deferral settings of their own */
};
int xdpath_nl_parse_napi(const struct nlmsghdr *nlh, void *napi_facts);
/* port.c: ask for all NAPIs of f->ifindex; 0 or -errno (-ENOENT, -EOPNOTSUPP: before 6.8). */
int xdpath_nl_napis(struct xdpath_napi_facts *f);

/* sock_diag for AF_XDP: one message a socket; the one bound to ifindex and queue is kept. */
struct xdpath_xsk_facts {
	int ifindex;
	uint32_t queue;
	bool found;
	uint64_t inode; /* socket:[inode] in /proc/PID/fd */
};
int xdpath_nl_parse_xsk(const struct nlmsghdr *nlh, void *xsk_facts);
/* holder.c: ask for all AF_XDP sockets of this namespace; -ENOENT: built without AF_XDP sock_diag.
 */
int xdpath_nl_sockets(struct xdpath_xsk_facts *f);

#endif
