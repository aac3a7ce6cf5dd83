/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A queue whose kernel is played by the test: the four rings, a UMEM and one frame cache in
 * anonymous memory. Used by the unit tests and the ring bench. `q` and `f` are the application's
 * side; the fake_k_* functions are the kernel's, which keeps its own indexes and, as the real one,
 * believes only the index that the application publishes.
 */
#ifndef XDPATH_TEST_FAKE_H
#define XDPATH_TEST_FAKE_H

#include <string.h>
#include <sys/mman.h>

#include <xdpath/pkt.h>

#define FAKE_FRAME    4096UL
#define FAKE_HEADROOM 256U /* what the kernel leaves free before a packet */

/* Indexes as the kernel lays them out: each on a cache line of its own. */
struct fake_ring {
	uint32_t producer __attribute__((aligned(64)));
	uint32_t consumer __attribute__((aligned(64)));
	uint32_t flags;
	void *entries;
	uint32_t mask;
};

struct fake {
	struct xdpath_queue q;
	struct xdpath_frames f;
	struct fake_ring rx, fill, tx, comp;
	void *map;
	size_t map_len;
};

struct fake_opts {
	uint32_t frames; /* in the UMEM */
	uint32_t first;	 /* the cache has [first, frames) */
	uint32_t size;	 /* of all four rings */
	uint32_t start;	 /* where all indexes start */
};

static inline void *fake_slice(uint8_t **at, size_t len)
{
	void *p = *at;

	*at += (len + 4095) & ~(size_t)4095;
	return p;
}

static inline void fake_prod(struct xdpath_prod *r, struct fake_ring *k, const struct fake_opts *o)
{
	*r = (struct xdpath_prod){.prod = o->start,
				  .limit = o->start + o->size,
				  .mask = o->size - 1,
				  .size = o->size,
				  .k_producer = &k->producer,
				  .k_consumer = &k->consumer,
				  .k_flags = &k->flags,
				  .entries = k->entries};
}

static inline void fake_cons(struct xdpath_cons *r, struct fake_ring *k, const struct fake_opts *o)
{
	*r = (struct xdpath_cons){.cons = o->start,
				  .prod = o->start,
				  .mask = o->size - 1,
				  .size = o->size,
				  .k_producer = &k->producer,
				  .k_consumer = &k->consumer,
				  .k_flags = &k->flags,
				  .entries = k->entries};
}

/* All frames of the cache free, all rings empty. 0, or -1 without memory. */
static inline int fake_open(struct fake *k, const struct fake_opts *o)
{
	size_t rings = 4 * ((size_t)o->size * sizeof(struct xdp_desc) + 4096);
	size_t umem = (size_t)o->frames * FAKE_FRAME;
	struct fake_ring *all[] = {&k->rx, &k->fill, &k->tx, &k->comp};
	uint8_t *at;

	memset(k, 0, sizeof(*k));
	k->map_len = umem + rings + (size_t)o->frames * 9 + 3 * 4096;
	k->map = mmap(NULL, k->map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (k->map == MAP_FAILED)
		return -1;
	at = k->map;
	k->q.umem = fake_slice(&at, umem);
	for (int i = 0; i < 4; i++) {
		all[i]->entries = fake_slice(&at, (size_t)o->size * sizeof(struct xdp_desc));
		all[i]->mask = o->size - 1;
		all[i]->producer = all[i]->consumer = o->start;
	}
	k->f.stack = fake_slice(&at, (size_t)o->frames * 8);
	k->f.owner = fake_slice(&at, o->frames);
	k->f.shift = 12;
	k->f.total = k->f.end = o->frames;
	k->f.first = o->first;
	for (uint32_t i = o->frames; i-- > o->first;)
		k->f.stack[k->f.count++] = (uint64_t)i * FAKE_FRAME;
	fake_cons(&k->q.rx, &k->rx, o);
	fake_prod(&k->q.fill, &k->fill, o);
	fake_prod(&k->q.tx, &k->tx, o);
	fake_cons(&k->q.comp, &k->comp, o);
	k->q.frames = &k->f;
	k->q.frame_mask = FAKE_FRAME - 1;
	k->q.fill_most = UINT32_MAX;
	k->q.tx_max_len = 1514;
	k->q.tx_max_frags = XDPATH_PKT_FRAGS_MAX;
	return 0;
}

static inline void fake_close(struct fake *k)
{
	munmap(k->map, k->map_len);
}

/*
 * The books: NULL, or what does not add up. Owners are counted into *out (may be NULL). No frame
 * may be in the stack twice, none there that is not free, and no byte of another cache changed.
 */
static inline const char *fake_audit(const struct fake *k, struct xdpath_ledger *out)
{
	struct xdpath_ledger l = {0};
	uint8_t seen[1024] = {0};

	xdpath_frames_audit(&k->f, &l);
	if (out)
		*out = l;
	for (uint32_t i = 0; i < k->f.first; i++)
		if (k->f.owner[i] != XDPATH_FREE)
			return "a foreign frame changed its owner";
	if (l.free + l.fill + l.rx + l.held + l.tx != l.total)
		return "owners do not add up to all frames";
	if (l.free != k->f.count || l.total > sizeof(seen))
		return "the stack is not what is free";
	for (uint32_t i = 0; i < k->f.count; i++) {
		uint64_t frame = k->f.stack[i] / FAKE_FRAME;

		if (!xdpath_frame_is(&k->f, frame, XDPATH_FREE) || k->f.stack[i] % FAKE_FRAME)
			return "the stack holds what is not free";
		if (seen[frame - k->f.first]++)
			return "a frame is in the stack twice";
	}
	return NULL;
}

/* Entries the application published and the kernel has not taken. */
static inline uint32_t fake_k_pending(struct fake_ring *r)
{
	return xdpath_load_acquire(&r->producer) - r->consumer;
}

/* Put one descriptor into the RX ring, whatever it says. */
static inline void fake_k_rx(struct fake *k, uint64_t addr, uint32_t len, uint32_t options)
{
	struct xdp_desc *d = (struct xdp_desc *)k->rx.entries + (k->rx.producer & k->rx.mask);

	d->addr = addr;
	d->len = len;
	d->options = options;
	xdpath_store_release(&k->rx.producer, k->rx.producer + 1);
}

/* Take one frame out of the fill ring; UINT64_MAX when there is none. */
static inline uint64_t fake_k_fill(struct fake *k)
{
	uint64_t addr;

	if (fake_k_pending(&k->fill) == 0)
		return UINT64_MAX;
	addr = ((uint64_t *)k->fill.entries)[k->fill.consumer & k->fill.mask];
	xdpath_store_release(&k->fill.consumer, k->fill.consumer + 1);
	return addr;
}

/* Receive into the next fill frame; false when there is none. */
static inline bool fake_k_receive(struct fake *k, uint32_t len, uint32_t options)
{
	uint64_t addr = fake_k_fill(k);

	if (addr == UINT64_MAX)
		return false;
	fake_k_rx(k, addr + FAKE_HEADROOM, len, options);
	return true;
}

static inline void fake_k_complete(struct fake *k, uint64_t addr)
{
	((uint64_t *)k->comp.entries)[k->comp.producer & k->comp.mask] = addr;
	xdpath_store_release(&k->comp.producer, k->comp.producer + 1);
}

/* Send one descriptor and complete it; false when the ring is empty. *d may be NULL. */
static inline bool fake_k_send(struct fake *k, struct xdp_desc *d)
{
	struct xdp_desc got;

	if (fake_k_pending(&k->tx) == 0)
		return false;
	got = ((struct xdp_desc *)k->tx.entries)[k->tx.consumer & k->tx.mask];
	xdpath_store_release(&k->tx.consumer, k->tx.consumer + 1);
	fake_k_complete(k, got.addr);
	if (d)
		*d = got;
	return true;
}

#endif
