/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * One end of a link: a socket with its UMEM, seen the same whether it is the library's (api.c) or
 * made by hand (raw.c); and streams of numbered packets between two ends (flow.c).
 */
#ifndef CONF_END_H
#define CONF_END_H

#include <xdpath/xdpath.h>

#include "conf.h"

struct end_stats {
	uint64_t rx_dropped, rx_invalid, tx_invalid, rx_full, fill_empty;
};

struct end {
	int fd;
	uint8_t *area;
	uint32_t chunk;
	uint32_t headroom;
	bool unaligned;
	/* Up to n frames to build packets in; returns how many. */
	uint32_t (*get)(struct end *e, uint64_t *addr, uint32_t n);
	/* Whole packets into the TX ring: all of them or nothing, then false. */
	bool (*send)(struct end *e, const struct xdp_desc *d, uint32_t n);
	/* Have all of the TX ring sent; 0 or -errno. */
	int (*kick)(struct end *e);
	uint32_t (*reap)(struct end *e);
	uint32_t (*pending)(struct end *e); /* descriptors that did not come back yet */
	uint32_t (*recv)(struct end *e, struct xdp_desc *d, uint32_t max);
	void (*give)(struct end *e, const struct xdp_desc *d, uint32_t n); /* back to the kernel */
	/* Every frame has exactly one owner, nothing is under way. */
	int (*audit)(struct end *e);
};

static inline uint64_t end_flat(const struct end *e, uint64_t addr)
{
	return e->unaligned ? (addr & XSK_UNALIGNED_BUF_ADDR_MASK) +
				      (addr >> XSK_UNALIGNED_BUF_OFFSET_SHIFT)
			    : addr;
}

int end_stats(const struct end *e, struct end_stats *st);

/* The test's mode, as the library calls it. */
static inline enum xdpath_mode end_mode(void)
{
	return conf->mode == CONF_ZC	? XDPATH_MODE_ZEROCOPY
	       : conf->mode == CONF_DRV ? XDPATH_MODE_COPY
					: XDPATH_MODE_GENERIC;
}

static inline enum xdpath_attach end_attach(void)
{
	return end_mode() == XDPATH_MODE_GENERIC ? XDPATH_ATTACH_GENERIC : XDPATH_ATTACH_NATIVE;
}

/* ---- api.c ---- */

struct api_opts {
	const char *dev; /* NULL: NET_B */
	uint32_t queue, frame_size, frames, headroom, rx, tx, fill, comp;
	uint32_t umem_frames; /* 0: as frames; more leave room for those that share */
	bool several;	      /* packets of several fragments */
	bool no_rx, no_tx, huge;
	uint32_t tx_budget;
	struct end *share; /* same UMEM, other frames */
};

struct api {
	struct end e; /* first */
	struct xdpath_port port;
	struct xdpath_umem *umem;
	struct xdpath_frames *frames;
	struct xdpath_socket *s;
	struct xdpath_diag diag;
	bool owns_umem;
};

int api_open(struct api *a, const struct api_opts *o);
void api_close(struct api *a);
/* The library's own program on dev, everything to user space, e's socket in the slot of queue. */
int api_steer(struct xdpath_prog **g, const struct api *a, uint32_t queue);

/* ---- flow.c ---- */

#define FLOW_BATCH 64U

struct flow {
	uint32_t count, batch;		  /* batch 0: FLOW_BATCH */
	uint32_t len, len_odd;		  /* bytes; len_odd 0: as len */
	uint32_t first;			  /* number of the first packet */
	uint16_t stream;		  /* goes into the packet */
	uint8_t dst;			  /* last byte of the destination address */
	bool (*arrives)(uint32_t number); /* NULL: all do */
	bool poll_rx, poll_tx;
	bool meta;	  /* the running number stands 32 bytes before the data */
	int32_t grown;	  /* bytes the program adds or cuts */
	uint32_t odd_off; /* odd packets: built so many bytes off the frame's start */
	uint32_t data_at; /* offset of received data in its frame, 0: headroom + 256 */
};

#define FLOW_PACKET_MAX 16384U

/* Build a packet in n fragments (address and length set). */
void flow_write(const struct end *e, const struct xdp_desc *d, uint32_t n, const struct flow *f,
		uint32_t number);
/* Check a received packet of n fragments; its number goes to *number. */
int flow_check(const struct end *e, const struct xdp_desc *d, uint32_t n, const struct flow *f,
	       uint32_t *number);

/* Send f from tx to rx, batch by batch, and see all of it arrive in order and nothing else; at the
 * end both sides' frames are audited. */
int flow_run(struct end *tx, struct end *rx, const struct flow *f);

/* The halves: packets [from, from + n) out; what has arrived, checked and given back. */
int flow_send(struct end *tx, const struct flow *f, uint32_t from, uint32_t n);
struct flow_seen {
	uint32_t next; /* lowest number that may come now */
	uint32_t got;
};
int flow_recv(struct end *rx, const struct flow *f, struct flow_seen *s);
/* Receive until s->got reaches want. */
int flow_wait(struct end *tx, struct end *rx, const struct flow *f, struct flow_seen *s,
	      uint32_t want);
/* Reap until all came back. */
int flow_drain(struct end *tx);

bool flow_even(uint32_t number);

#endif
