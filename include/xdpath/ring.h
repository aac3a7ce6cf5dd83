/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The four rings between an AF_XDP socket and the kernel, and the memory model.
 *
 *  NIC queue -> bpf/steer -> XSKMAP[q] -> RX ring -> rx_burst -> app --+-- release -> frame cache
 *      ^                         +- no socket: to the kernel stack     +-- hold (copybreak)
 *      | fill ring <---- refill <---- frame cache <--------------------+
 *      +------------ TX ring <- tx_burst <-----------------------------+
 *                       +-> completion ring -> reap -> frame cache
 *
 * Each ring has one writer and one reader. Indexes run freely over 2^32 and are masked on use. The
 * producer writes entries, then its index with release; the consumer reads that index with acquire,
 * then the entries; the consumer gives slots back the same way. Nothing else is ordered, and
 * nothing else needs to be, but for one full fence between an entry and a look at need_wakeup:
 * before a thread sleeps, and in each kick of zero-copy.
 *
 * Both indexes are cached here, so that the line shared with the kernel is touched once a burst.
 * The other side's index is not trusted: one out of its bounds makes us read old entries or write
 * over unread ones. The ledger (frame.h) refuses the first, the second loses frames; never memory.
 * Nothing in this file enters the kernel.
 */
#ifndef XDPATH_RING_H
#define XDPATH_RING_H

#include <xdpath/base.h>
#include <xdpath/uapi.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline uint32_t xdpath_load_acquire(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void xdpath_store_release(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* A counter with one writing thread, read by others while it runs. */
static inline void xdpath_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline uint64_t xdpath_counted(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* A ring that we write: fill or TX. */
struct xdpath_prod {
	uint32_t prod;	/* next slot we write; published by submit */
	uint32_t limit; /* the consumer index last seen, plus size: prod may not pass it */
	uint32_t mask;
	uint32_t size;
	uint32_t *k_producer; /* shared with the kernel */
	uint32_t *k_consumer;
	uint32_t *k_flags;
	void *entries; /* uint64_t[] in the fill ring, struct xdp_desc[] in the TX ring */
};

/* A ring that we read: RX or completion. */
struct xdpath_cons {
	uint32_t cons; /* next slot we read; given back by release */
	uint32_t prod; /* the producer index last seen */
	uint32_t mask;
	uint32_t size;
	uint32_t *k_producer;
	uint32_t *k_consumer;
	uint32_t *k_flags;
	const void
		*entries; /* struct xdp_desc[] in the RX ring, uint64_t[] in the completion ring */
};

/*
 * Entries are read once into a copy, which is then checked and used: the compiler may not go back
 * to memory that someone else may write meanwhile.
 */
static inline struct xdp_desc xdpath_read_desc(const struct xdp_desc *entry)
{
	const volatile struct xdp_desc *v = entry;
	struct xdp_desc d;

	d.addr = v->addr;
	d.len = v->len;
	d.options = v->options;
	return d;
}

static inline uint64_t xdpath_read_addr(const uint64_t *entry)
{
	return *(const volatile uint64_t *)entry;
}

/* Free slots; looks at the shared index only when fewer than `want` are known. */
static inline uint32_t xdpath_prod_room(struct xdpath_prod *r, uint32_t want)
{
	uint32_t room = r->limit - r->prod;

	if (room >= want)
		return room;
	r->limit = xdpath_load_acquire(r->k_consumer) + r->size;
	return r->limit - r->prod;
}

/* Publish all slots written up to r->prod. */
static inline void xdpath_prod_submit(struct xdpath_prod *r)
{
	xdpath_store_release(r->k_producer, r->prod);
}

/* Slots published and not yet taken by the kernel. */
static inline uint32_t xdpath_prod_pending(const struct xdpath_prod *r)
{
	return r->prod - xdpath_load_acquire(r->k_consumer);
}

static inline bool xdpath_prod_need_wakeup(const struct xdpath_prod *r)
{
	return __atomic_load_n(r->k_flags, __ATOMIC_RELAXED) & XDP_RING_NEED_WAKEUP;
}

/* Entries to read; looks at the shared index only when fewer than `want` are known. */
static inline uint32_t xdpath_cons_avail(struct xdpath_cons *r, uint32_t want)
{
	uint32_t avail = r->prod - r->cons;

	if (avail >= want)
		return avail;
	r->prod = xdpath_load_acquire(r->k_producer);
	return r->prod - r->cons;
}

/* Give all slots read, up to r->cons, back to the kernel. */
static inline void xdpath_cons_release(struct xdpath_cons *r)
{
	xdpath_store_release(r->k_consumer, r->cons);
}

#ifdef __cplusplus
}
#endif
#endif
