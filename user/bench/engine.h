/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * How datagrams reach the wire and come back: our rings (xsk), the kernel's UDP sockets (udp), or
 * AF_PACKET sockets (packet). The test above is the same on each; so is the report.
 *
 * An engine has lanes, one per worker thread. A lane belongs to its thread; nothing hot is shared.
 */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include <netinet/in.h>

#include "msg.h"
#include "test.h"

#define LANE_BURST 64U

/* Both ends of all flows: flow f has the client's port base + f, the server's port is one. */
struct engine_path {
	const char *dev;
	int family; /* AF_INET, AF_INET6 */
	union {
		struct in_addr v4;
		struct in6_addr v6;
	} local, remote;
	uint8_t local_mac[6],
		remote_mac[6];		   /* from the kernel's neighbour table: of the next hop */
	uint16_t client_base, server_port; /* host order */
	bool is_server;
	uint32_t mtu; /* IP bytes of a datagram at most */
	uint32_t flows, lanes;
	uint32_t ifindex;
};

struct lane;
struct engine;

/* A datagram that arrived: good until lane_rx_done(). */
struct rx_slot {
	const struct msg_hdr *msg; /* the payload follows it */
	uint32_t len;		   /* bytes of payload behind the header */
	uint32_t flow;		   /* by the client's port; below path.flows */
};

/* A datagram to send: room is given by lane_tx_slots(), filled by the test, sent by lane_tx(). */
struct tx_slot {
	struct msg_hdr *msg;
	uint32_t len; /* bytes of payload behind the header, set by the test */
	uint32_t flow;
	void *priv;
};

struct engine_ops {
	const char *name;
	int (*open)(struct engine *e, struct xdpath_diag *d); /* 0 or -errno, d says why */
	/* Start e->path.lanes threads; each calls turn(ctx, lane) again and again until stop(); a
	 * turn that returns 0 had nothing to do and is followed by a wait, at most until
	 * lane_wake_at(). */
	int (*start)(struct engine *e, uint32_t (*turn)(void *ctx, struct lane *l), void *ctx);
	/* End the wait of every lane: something changed. Any thread; after start. */
	void (*nudge)(struct engine *e);
	void (*stop)(struct engine *e);
	void (*close)(struct engine *e);
	/* Add this engine's packets, bytes, drops, kicks so far; any thread. */
	void (*totals)(const struct engine *e, struct test_side *add);
	/* up to LANE_BURST datagrams of this test's flows; others are dropped and counted */
	uint32_t (*rx)(struct lane *l, struct rx_slot *s);
	void (*rx_done)(struct lane *l);
	/* room for up to n datagrams (n <= LANE_BURST); fewer when the way out is full */
	uint32_t (*tx_slots)(struct lane *l, struct tx_slot *s, uint32_t n);
	/* the first n of the slots given last; the others are taken back. Returns how many went. */
	uint32_t (*tx)(struct lane *l, struct tx_slot *s, uint32_t n);
};

struct engine {
	const struct engine_ops *ops;
	struct engine_path path;
	const struct xdpath_knobs *knobs;
	enum xdpath_mode mode, worst; /* xsk */
	const cpu_set_t *cpus;	      /* lanes go there in turn; NULL or empty: not pinned */
	int event_fd;		      /* readable once a lane ended by itself; -1: never */
	const char *mode_name;	      /* as obtained, for the report; set by open */
	char mode_why[400];	      /* why not better; empty: nothing to say */
	struct lane *lane;	      /* path.lanes of them, on whole cache lines */
	void *priv;
};

/* What every lane begins with; the engine's own follows. */
struct lane {
	struct engine *e;
	uint32_t id;
	uint64_t wake_at_ns; /* CLOCK_MONOTONIC; set by a turn that has work only then; 0 none */
	void *test;	     /* the test's own, per lane */
	void *priv;	     /* the engine's own, per lane */
} __attribute__((aligned(XDPATH_CACHELINE)));

extern const struct engine_ops engine_xsk, engine_udp, engine_packet;

#endif
