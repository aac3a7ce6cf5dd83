/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The hot path: bursts of packets from and to one queue.
 *
 * A packet is a run of fragments in a flat array of struct xdp_desc: XDP_PKT_CONTD is set in
 * `options` on all but its last. A burst never begins or ends inside a packet, and order within a
 * queue never changes. A forwarder hands the array from rx_burst straight to tx_burst: no byte of
 * the packet moves.
 *
 * Single-fragment packets take the inline path. Everything rare (several fragments, a descriptor
 * that breaks a rule) is in pkt.c.
 *
 * A queue and its frame cache belong to one thread. Nothing in this file enters the kernel.
 */
#ifndef XDPATH_PKT_H
#define XDPATH_PKT_H

#include <xdpath/frame.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most fragments of a packet: what the kernel takes in copy mode (MAX_SKB_FRAGS 17 + 1). */
#define XDPATH_PKT_FRAGS_MAX 18U
/* Most packets of a burst, and the room that its array needs. */
#define XDPATH_BURST_MAX  256U
#define XDPATH_BURST_ROOM (XDPATH_BURST_MAX + XDPATH_PKT_FRAGS_MAX)

#define XDPATH_ETH_MIN 14U /* the kernel drops what is shorter than an Ethernet header */

/* What happened on one queue. Written by the owning thread only; read with xdpath_counted(). */
struct xdpath_queue_counters {
	uint64_t rx_packets, rx_bytes;
	uint64_t tx_packets, tx_bytes; /* handed to the kernel */
	uint64_t tx_completed;	       /* descriptors */
	uint64_t rx_bad;	       /* descriptors from the kernel outside the ledger's rules */
	uint64_t rx_refused; /* packets not handed out: a bad descriptor, too many fragments */
	uint64_t comp_bad;   /* completions outside the ledger's rules */
	/* packets that tx_burst released instead of sending, by reason */
	uint64_t tx_invalid;   /* breaks a rule of the kernel's descriptor check */
	uint64_t tx_too_big;   /* above the egress MTU, or more fragments than the device takes */
	uint64_t tx_too_short; /* shorter than an Ethernet header */
};

/* One queue of one port: its rings, its cache, its limits. Filled in by xdpath_socket_open(). */
struct xdpath_queue {
	struct xdpath_cons rx;
	struct xdpath_prod fill;
	struct xdpath_prod tx;
	struct xdpath_cons comp;
	struct xdpath_frames *frames; /* shared by the queues of one thread */
	uint8_t *umem;		      /* start of the UMEM in this process */
	uint64_t frame_mask;	      /* frame size - 1 */
	/* The two that tx_burst adds to stand apart: as neighbours compilers add both at once, with
	 * a load that has to wait for the store of reap into one of them. */
	uint32_t tx_outstanding; /* descriptors submitted and not completed */
	uint32_t tx_max_len;	 /* longest untagged frame, bytes: MTU + 14 */
	uint32_t tx_unkicked;	 /* descriptors submitted since the last kick */
	uint32_t tx_max_frags;	 /* fragments of a packet the device takes */
	/*
	 * Most frames the kernel may have, in the fill ring and unread in the RX ring together. In
	 * copy mode the RX ring's size: with more it copies a packet before it finds no slot for
	 * it, with this an overload costs no copy.
	 */
	uint32_t fill_most;
	bool rx_skipping; /* the rest of a packet with too many fragments is yet to come */
	struct xdpath_queue_counters n __attribute__((aligned(XDPATH_CACHELINE)));
} __attribute__((aligned(XDPATH_CACHELINE)));

/* First byte of a fragment. The pointer is good while the application owns the frame. */
static inline void *xdpath_data(const struct xdpath_queue *q, const struct xdp_desc *d)
{
	return q->umem + d->addr;
}

/* Fragments of the packet that begins at d[0], of n in the array; 0 if it does not end there. */
static inline uint32_t xdpath_pkt_frags(const struct xdp_desc *d, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!(d[i].options & XDP_PKT_CONTD))
			return i + 1;
	return 0;
}

/* Length of a packet of n fragments, bytes. */
static inline uint32_t xdpath_pkt_len(const struct xdp_desc *d, uint32_t n)
{
	uint32_t len = 0;

	for (uint32_t i = 0; i < n; i++)
		len += d[i].len;
	return len;
}

/* Walk a burst: `p` points to a packet's first fragment, `k` is its number of fragments. */
#define xdpath_for_each_packet(p, k, burst, n)                             \
	for (const struct xdp_desc *p = (burst), *p##_end = (burst) + (n); \
	     p < p##_end && ((k) = xdpath_pkt_frags(p, (uint32_t)(p##_end - p))) > 0; p += (k))

/*
 * The rare halves: each goes on where the inline path met something that it does not handle, deals
 * with all cases and publishes. rx: from out[done] on, returns the total. tx, release: d[0..n), tx
 * returns the fragments taken. reap: n more completions.
 */
XDPATH_API uint32_t xdpath_rx_burst_rare(struct xdpath_queue *q, struct xdp_desc *out,
					 uint32_t done, uint32_t max);
XDPATH_API uint32_t xdpath_tx_burst_rare(struct xdpath_queue *q, const struct xdp_desc *d,
					 uint32_t n);
XDPATH_API void xdpath_release_rare(struct xdpath_queue *q, const struct xdp_desc *d, uint32_t n);
XDPATH_API void xdpath_reap_rare(struct xdpath_queue *q, uint32_t n);

/* True when the last byte of a fragment is not in the frame of its first. */
static inline bool xdpath_frag_crosses(const struct xdp_desc *d, uint64_t frame_mask)
{
	return (d->addr ^ (d->addr + d->len - 1)) > frame_mask;
}

/*
 * Take whole packets from the RX ring: at most `max` fragments (1..XDPATH_BURST_MAX), and beyond
 * that what completes the last packet. `out` has room for max + XDPATH_PKT_FRAGS_MAX. Returns the
 * number of fragments, 0 when nothing waits or all of it was refused. The caller owns their frames:
 * release, hold or send each. Every fragment lies wholly in its frame.
 */
static inline uint32_t xdpath_rx_burst(struct xdpath_queue *q, struct xdp_desc *out, uint32_t max)
{
	struct xdpath_cons *r = &q->rx;
	const struct xdpath_frames f = *q->frames; /* a copy: ledger stores may alias the struct */
	const struct xdp_desc *ring = (const struct xdp_desc *)r->entries;
	uint32_t avail = xdpath_cons_avail(r, max), n = avail < max ? avail : max, i;
	uint32_t cons = r->cons, mask = r->mask;
	uint64_t in_frame = q->frame_mask, bytes = 0;

	if (xdpath_unlikely(q->rx_skipping))
		return xdpath_rx_burst_rare(q, out, 0, max);
	if (n == 0)
		return 0;
	for (i = 0; i < n; i++) {
		struct xdp_desc d = xdpath_read_desc(&ring[(cons + i) & mask]);
		uint64_t frame = d.addr >> f.shift;

		if (xdpath_unlikely(d.options || xdpath_frag_crosses(&d, in_frame) ||
				    !xdpath_frame_is(&f, frame, XDPATH_FILL)))
			break;
		f.owner[frame] = XDPATH_RX;
		out[i] = d;
		bytes += d.len;
	}
	r->cons = cons + i;
	xdpath_count(&q->n.rx_packets, i);
	xdpath_count(&q->n.rx_bytes, bytes);
	if (xdpath_unlikely(i < n))
		return xdpath_rx_burst_rare(q, out, i, max);
	xdpath_cons_release(r);
	return i;
}

/* Give the frames of n fragments back to the cache. */
static inline void xdpath_release(struct xdpath_queue *q, const struct xdp_desc *d, uint32_t n)
{
	const struct xdpath_frames f = *q->frames; /* a copy: ledger stores may alias the struct */
	uint64_t in_frame = q->frame_mask;
	uint32_t count = f.count, i;

	for (i = 0; i < n; i++) {
		uint64_t addr = d[i].addr;

		if (xdpath_unlikely(!xdpath_frame_is_app(&f, addr)))
			break;
		f.owner[addr >> f.shift] = XDPATH_FREE;
		f.stack[count++] = addr & ~in_frame;
	}
	q->frames->count = count;
	if (xdpath_unlikely(i < n))
		xdpath_release_rare(q, d + i, n - i);
}

/* Post free frames to the fill ring, as many as fit and fill_most allows. Returns how many. */
static inline uint32_t xdpath_refill(struct xdpath_queue *q)
{
	struct xdpath_prod *r = &q->fill;
	const struct xdpath_frames f = *q->frames;
	uint64_t *ring = (uint64_t *)r->entries;
	uint32_t prod = r->prod, mask = r->mask, lent = prod - q->rx.cons;
	uint32_t n = q->fill_most > lent ? q->fill_most - lent : 0, room;

	n = n < f.count ? n : f.count;
	/* Only what is lent can be in the fill ring: where that fits, its shared index, which the
	 * other CPU has just written, need not be read. */
	if (q->fill_most > r->size) {
		room = xdpath_prod_room(r, n);
		n = n < room ? n : room;
	}
	if (n == 0)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = f.stack[f.count - 1 - i];

		f.owner[addr >> f.shift] = XDPATH_FILL;
		ring[(prod + i) & mask] = addr;
	}
	q->frames->count = f.count - n;
	r->prod = prod + n;
	xdpath_prod_submit(r);
	return n;
}

/* Free TX slots, in fragments; looks at the shared index when fewer than `want` are known. */
static inline uint32_t xdpath_tx_room(struct xdpath_queue *q, uint32_t want)
{
	return xdpath_prod_room(&q->tx, want);
}

/*
 * Send whole packets: validated by the kernel's own rules, then published together. Returns how
 * many fragments are off the caller's hands: sent, or released and counted (tx_invalid, tx_too_big,
 * tx_too_short). Fewer than n only when the ring is full; the rest stays with the caller. A frame
 * may stand in several fragments, up to XDPATH_TX_REFS_MAX in flight. The kernel is not entered:
 * xdpath_socket_kick() does that.
 */
static inline uint32_t xdpath_tx_burst(struct xdpath_queue *q, const struct xdp_desc *d, uint32_t n)
{
	struct xdpath_prod *r = &q->tx;
	const struct xdpath_frames f = *q->frames; /* a copy: ledger stores may alias the struct */
	struct xdp_desc *ring = (struct xdp_desc *)r->entries;
	uint32_t room = xdpath_prod_room(r, n), m = n < room ? n : room, i;
	uint32_t prod = r->prod, mask = r->mask, span = q->tx_max_len - XDPATH_ETH_MIN;
	uint64_t in_frame = q->frame_mask, bytes = 0;

	for (i = 0; i < m; i++) {
		struct xdp_desc p = d[i];

		if (xdpath_unlikely(p.options || p.len - XDPATH_ETH_MIN > span ||
				    xdpath_frag_crosses(&p, in_frame) ||
				    !xdpath_frame_is_app(&f, p.addr)))
			break;
		f.owner[p.addr >> f.shift] = XDPATH_TX + 1;
		ring[(prod + i) & mask] = p;
		bytes += p.len;
	}
	r->prod = prod + i;
	q->tx_outstanding += i;
	q->tx_unkicked += i;
	xdpath_count(&q->n.tx_packets, i);
	xdpath_count(&q->n.tx_bytes, bytes);
	if (xdpath_unlikely(i < m))
		return i + xdpath_tx_burst_rare(q, d + i, n - i);
	xdpath_prod_submit(r);
	return i;
}

/* n TX descriptors are done with. Never below zero: a foreign completion ring may lie. */
static inline void xdpath_tx_done(struct xdpath_queue *q, uint32_t n)
{
	q->tx_outstanding -= n < q->tx_outstanding ? n : q->tx_outstanding;
	xdpath_count(&q->n.tx_completed, n);
}

/* Take completions, free their frames. At most `max` of them. Returns how many were taken. */
static inline uint32_t xdpath_reap(struct xdpath_queue *q, uint32_t max)
{
	struct xdpath_cons *r = &q->comp;
	const struct xdpath_frames f = *q->frames; /* a copy: ledger stores may alias the struct */
	const uint64_t *ring = (const uint64_t *)r->entries;
	uint32_t avail = xdpath_cons_avail(r, max), n = avail < max ? avail : max, i;
	uint32_t cons = r->cons, mask = r->mask, count = f.count;
	uint64_t in_frame = q->frame_mask;

	if (n == 0)
		return 0;
	for (i = 0; i < n; i++) {
		uint64_t addr = xdpath_read_addr(&ring[(cons + i) & mask]);
		uint64_t frame = addr >> f.shift;

		if (xdpath_unlikely(!xdpath_frame_is(&f, frame, XDPATH_TX + 1)))
			break;
		f.owner[frame] = XDPATH_FREE;
		f.stack[count++] = addr & ~in_frame;
	}
	q->frames->count = count;
	r->cons = cons + i;
	xdpath_tx_done(q, i);
	if (xdpath_unlikely(i < n))
		xdpath_reap_rare(q, n - i);
	xdpath_cons_release(r);
	return n;
}

#ifdef __cplusplus
}
#endif
#endif
