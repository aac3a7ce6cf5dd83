/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* How a peer is reached: through which device, by whose MAC. Asked of the kernel by rtnetlink. */
#ifndef BENCH_NEIGH_H
#define BENCH_NEIGH_H

#include <netinet/in.h>

#include <xdpath/base.h>

struct neigh_addr {
	int family;
	union {
		struct in_addr v4;
		struct in6_addr v6;
	};
};

/* The peer's address from text ("10.0.0.2", "fe80::1%eth1"). 0 or -EINVAL with the diagnosis. */
int neigh_parse(const char *text, struct neigh_addr *out, struct xdpath_diag *d);
/*
 * The next hop to `peer` through `dev` alone: the peer itself or a gateway. 0, or -ENETUNREACH,
 * -EINVAL (an address of this host, or another device) with a diagnosis.
 */
int neigh_route(const char *dev, const struct neigh_addr *peer, struct neigh_addr *hop,
		struct xdpath_diag *d);
/*
 * The next hop's MAC, from the neighbour table. Packets must have gone there just before; waits for
 * the answer 500 ms at most. 0, or -EHOSTUNREACH with a diagnosis.
 */
int neigh_mac(const char *dev, const struct neigh_addr *hop, uint8_t mac[6], struct xdpath_diag *d);

/* The interface's own counters: frames and bytes from the MAC on. */
struct if_counters {
	uint64_t packets_in, bytes_in, packets_out, bytes_out;
};
int neigh_if_counters(uint32_t ifindex, struct if_counters *out);

#endif
