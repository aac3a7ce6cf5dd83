/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * AF_XDP sockets made by hand, for what the library refuses to do: every step may fail and be
 * looked at. Keeps its own books: each descriptor submitted and each frame posted stands in a bag
 * until the kernel gives it back, and a thing that comes back twice is found.
 */
#ifndef CONF_RAW_H
#define CONF_RAW_H

#include "end.h"

/* Newer than the oldest headers we build with. */
struct raw_umem_reg {
	uint64_t addr, len;
	uint32_t chunk_size, headroom, flags, tx_metadata_len;
};
#define RAW_UMEM_SW_CSUM     (1U << 1) /* XDP_UMEM_TX_SW_CSUM */
#define RAW_UMEM_TX_METADATA (1U << 2) /* XDP_UMEM_TX_METADATA_LEN */

#define RAW_NONE UINT32_MAX /* this ring is not made */
#define RAW_BIND 0x8000U    /* marks bind flags as given, so that 0 can be asked for */

struct raw_opts {
	const char *dev; /* NULL: NET_B */
	int ifindex;	 /* instead of dev */
	uint32_t queue;
	uint32_t bind; /* RAW_BIND and flags; 0: raw_mode() | XDP_USE_NEED_WAKEUP */
	bool several;  /* adds XDP_USE_SG */
	uint32_t chunk, frames, headroom, umem_flags, md; /* 0: 4096, 1024 */
	bool huge;					  /* area of 2 MiB pages */
	uint32_t rx, tx, fill, comp;			  /* slots, 0: 2048 */
	struct raw *share;  /* same UMEM: XDP_SHARED_UMEM with its descriptor */
	bool own_rings;	    /* with share: fill and completion ring of its own */
	uint32_t post_step; /* frames posted: each so many bytes; 0: chunk */
	uint32_t post;	    /* frames posted at the start, RAW_NONE: none; 0: half of them */
	bool once;	    /* do not wait for a busy queue */
};

struct raw_bag {
	uint64_t v[4096];
	uint32_t head, n;
};

struct raw {
	struct end e;	   /* first */
	uint64_t size;	   /* of the UMEM */
	const char *stage; /* what raw_open() was at: "umem", "rings", "bind" ... */
	struct xdpath_prod fill, tx;
	struct xdpath_cons rx, comp;
	struct {
		void *map;
		size_t len;
	} maps[4];
	bool owns_area;
	size_t mapped;
	struct raw *books; /* whose bags count: itself, or the socket it shares with */
	struct raw_bag out, posted;
	uint32_t tx_next, tx_first, tx_last; /* frames to build packets in, in turn */
	uint32_t tx_step;		     /* frames from one to the next */
	uint32_t kicks;
	uint64_t foreign; /* came back and was not ours to come back */
	uint64_t last_foreign;
	uint64_t kept; /* invalid ones that this kernel never returns */
};

int raw_socket(void);
int raw_reg(int fd, const void *area, uint64_t len, uint32_t chunk, uint32_t headroom,
	    uint32_t flags, uint32_t md);
int raw_ring(int fd, int opt, uint32_t size);
int raw_bind(int fd, int ifindex, uint32_t queue, uint32_t flags, int shared_fd);

/* All steps; 0 or -errno (then closed, stage tells where). */
int raw_open(struct raw *r, const struct raw_opts *o);
void raw_close(struct raw *r);
/* The same in a test, which ends when it fails. */
int raw_need(struct raw *r, const struct raw_opts *o);
/* The network, a sender at NET_A, a receiver at NET_B, and the program that feeds it. */
int raw_pair(struct raw *tx, struct raw *rx, const struct raw_opts *to, const struct raw_opts *ro,
	     uint32_t mtu);
/* XDP_COPY or XDP_ZEROCOPY, as the test's mode is. */
uint32_t raw_mode(void);

/* Write descriptors as they are and publish them. */
void raw_submit(struct raw *r, const struct xdp_desc *d, uint32_t n);
/* One sendto(): 0 or -errno. */
int raw_kick_once(struct raw *r);
/* Forget n descriptors that this kernel does not give back. */
void raw_forget(struct raw *r, const struct xdp_desc *d, uint32_t n);
void raw_post(struct raw *r, uint64_t addr);

/* Memory for a UMEM; NULL if there is none (huge: none reserved). */
void *raw_area(size_t len, bool huge);

#endif
