/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What the engines share: the frames' headers, telling whose flow a frame is, threads, and the
 * sockets that keep the test's ports (and the kernel from answering "port unreachable" for them).
 */
#ifndef BENCH_ENGINE_COMMON_H
#define BENCH_ENGINE_COMMON_H

#include <pthread.h>
#include <sys/socket.h>

#include "engine.h"

#define ETH_BYTES  14U
#define UDP_BYTES  8U
#define HEADS_MOST (ETH_BYTES + 40U + UDP_BYTES)

static inline uint32_t heads_ip(const struct engine_path *p)
{
	return p->family == AF_INET6 ? 40 : 20;
}

/* Bytes from the MAC on before the test's own header. */
static inline uint32_t heads_len(const struct engine_path *p)
{
	return ETH_BYTES + heads_ip(p) + UDP_BYTES;
}

/* What a lane did. Its thread writes, anyone reads (xdpath_counted). */
struct lane_counters {
	uint64_t packets_in, bytes_in, packets_out, bytes_out;
	uint64_t rx_other;   /* frames or datagrams that are none of the test's */
	uint64_t tx_dropped; /* not taken by the kernel */
	uint64_t tx_kicks, rx_kicks, sleeps, syscalls;
} __attribute__((aligned(XDPATH_CACHELINE)));

void counters_add(const struct lane_counters *c, struct test_side *add);

/* ---- frames ---- */

/* All of a flow's headers but lengths and checksums, and the sums of what is there. */
struct flow_head {
	uint8_t b[HEADS_MOST];
	uint16_t ip_sum;  /* v4: of the IP header with length and checksum 0 */
	uint16_t udp_sum; /* v6: of pseudo header and UDP header, lengths 0 */
} __attribute__((aligned(XDPATH_CACHELINE)));

/* One for each flow. NULL: no memory. */
struct flow_head *heads_make(const struct engine_path *p);
/*
 * Headers for a datagram whose struct msg_hdr stands behind them, followed by n bytes of payload,
 * all zero where the sum must be right (v6). Returns the frame's length.
 */
uint32_t heads_write(const struct engine_path *p, const struct flow_head *h, uint8_t *frame,
		     uint32_t n);
/*
 * Whose is this frame? `have` bytes of it are at `frame` (at least up to the test's header), `len`
 * in all. True: *s is filled.
 */
bool heads_parse(const struct engine_path *p, const uint8_t *frame, uint32_t have, uint32_t len,
		 struct rx_slot *s);

/* ---- ports ---- */

/*
 * UDP sockets bound to every port of our end, on the device, that drop all they get: the kernel
 * answers nothing and gives the ports to nobody else. 0 or -errno (-EADDRINUSE).
 */
int ports_hold(const struct engine_path *p, int **fds, uint32_t *n, struct xdpath_diag *d);
void ports_release(int *fds, uint32_t n);
/* A UDP socket bound to our address, the port and the device; reuse: SO_REUSEPORT. fd or -errno. */
int ports_socket(const struct engine_path *p, uint16_t port, bool reuse);
/* Our address and a port, as the kernel wants it; the length. */
socklen_t path_local(const struct engine_path *p, uint16_t port, struct sockaddr_storage *out);
socklen_t path_remote(const struct engine_path *p, uint16_t port, struct sockaddr_storage *out);

/* ---- threads: a lane each ---- */

struct lane_threads {
	pthread_t *id;
	int *wake; /* eventfd of each lane, read by its wait */
	uint32_t running;
	bool stop; /* atomic */
	uint32_t (*turn)(void *ctx, struct lane *l);
	void *ctx;
	/* Wait for something to come, ns at most (UINT64_MAX: for ever), 0: only look. */
	void (*wait)(struct lane *l, uint64_t ns);
	bool spin;
};

/* e->lane is there. 0 or -errno, nothing left then. */
int lanes_open(struct engine *e, struct lane_threads *t);
int lanes_start(struct engine *e, struct lane_threads *t);
void lanes_nudge(const struct engine *e, const struct lane_threads *t);
void lanes_stop(const struct engine *e, struct lane_threads *t);
void lanes_close(const struct engine *e, struct lane_threads *t);
/* e->lane, zeroed, each with its counters in `priv`'s place where size is given. NULL: no memory.
 */
struct lane *lanes_alloc(struct engine *e);
/* Whole cache lines, zeroed. */
void *lines_alloc(size_t bytes);

#endif
