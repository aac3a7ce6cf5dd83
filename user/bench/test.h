/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What is asked of a measurement, and what one run of it yields. Filled by session.c (the run),
 * usage.c (CPU and kernel counters), read by the report and by tune.
 */
#ifndef BENCH_TEST_H
#define BENCH_TEST_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include <xdpath/xdpath.h>

#include "hist.h"
#include "usage.h"

enum test_kind { TEST_RR, TEST_STREAM };
enum test_engine { ENGINE_T_XSK, ENGINE_T_UDP, ENGINE_T_PACKET };
enum test_arrival { ARRIVAL_CLOSED, ARRIVAL_EVEN, ARRIVAL_POISSON, ARRIVAL_BURST };

struct test_spec {
	enum test_kind kind;
	enum test_engine engine;
	uint32_t flows;
	uint32_t req, rsp; /* rr: payload bytes of a request and of its answer, 1..MSG_SIZE_MAX */
	uint32_t size;	   /* stream: payload bytes of a message */
	bool reverse;	   /* stream: the far end sends */
	bool bidir;	   /* stream: both do */
	uint32_t mtu;	   /* IP bytes of a datagram at most; 0: the device's */
	enum test_arrival arrival;
	uint32_t burst; /* of ARRIVAL_BURST: messages */
	double rate; /* messages a second over all flows, 0: closed loop, or as fast as it goes */
	uint32_t workers, peer_workers; /* 0: one */
	cpu_set_t cpus, peer_cpus;	/* empty: not pinned */
	double warmup, seconds;
};

/* Why something that was sent is not among what was measured. Packets, unless said otherwise. */
struct test_losses {
	uint64_t timeouts;   /* rr: messages not answered whole within 200 ms, issued again */
	uint64_t incomplete; /* messages of which a piece was missing */
	uint64_t reordered;  /* pieces that came after a later one of their flow */
	uint64_t late;	     /* pieces of another test, or of a message given up */
	uint64_t rx_ring_full, rx_no_frame, rx_other; /* the engine's receive drops */
	uint64_t tx_dropped;			      /* not taken by the engine or the device */
};

/* One end's own account of one run, between its start and its end. */
struct test_side {
	char host[64], dev[16], driver[32],
		mode[16];   /* mode: "zero-copy", "copy", "generic", "kernel" */
	char mode_why[400]; /* why not better; empty: nothing to say */
	double seconds;
	uint64_t msgs_out, msgs_in;	 /* whole messages */
	uint64_t packets_out, bytes_out; /* datagrams; bytes of their frames from the MAC on */
	uint64_t packets_in, bytes_in;
	uint64_t payload_out, payload_in; /* bytes of messages, without any header */
	/* the interface's own counters over the same time */
	uint64_t if_packets_out, if_bytes_out, if_packets_in, if_bytes_in;
	uint64_t tx_kicks, rx_kicks, sleeps, syscalls; /* of the engine */
	uint64_t sock_send, sock_recv; /* bytes of the engine's buffers for sending (socket, ring
					* frames) and receiving; 0: not told */
	struct test_losses lost;
	struct usage usage;
};

/* One run. */
struct test_result {
	double seconds;
	double msgs_per_s;    /* rr: transactions; stream: messages received, both ways summed */
	double bits_per_s;    /* payload received, both ways summed */
	double offered_per_s; /* open loop: what was asked for; 0 closed */
	struct hist latency;  /* rr: ns; open loop: from when it should have gone */
	struct hist
		service; /* rr, open loop: ns from when it went (what coordinated omission hides) */
	struct test_side local, remote;
};

#endif
