/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Frames, their owners, and the cache of free ones.
 *
 * A frame is one chunk of the UMEM. It has exactly one owner at any time:
 *
 *   FREE (cache) -> FILL (kernel) -> RX (app) -> FREE | HELD (app) | TX (kernel) -> FREE
 *
 * and the ledger, a byte a frame, says which. While in TX a frame may stand in several descriptors:
 * the byte counts them, and the last completion frees the frame. A move that the ledger does not
 * allow is refused and counted; a debug build (-DXDPATH_DEBUG) aborts on it. Either way no frame is
 * ever handed out twice.
 *
 * A cache belongs to one thread. Last in, first out: the frame that comes back last is warm.
 * Nothing in this file enters the kernel.
 */
#ifndef XDPATH_FRAME_H
#define XDPATH_FRAME_H

#include <xdpath/ring.h>

#ifdef __cplusplus
extern "C" {
#endif

enum xdpath_owner {
	XDPATH_FREE = 0, /* in a cache */
	XDPATH_FILL = 1, /* in the fill ring, or with the NIC */
	XDPATH_RX = 2,	 /* handed to the application by rx_burst */
	XDPATH_HELD = 3, /* kept by the application, or taken from the cache to build a packet */
	XDPATH_TX = 0x80 /* 0x80 + number of TX descriptors that name the frame */
};

#define XDPATH_TX_REFS_MAX 0x7fU

struct xdpath_frames {
	uint64_t *stack;     /* base addresses of free frames; the top is at stack[count - 1] */
	uint8_t *owner;	     /* the ledger, one byte for each frame of the whole UMEM */
	uint32_t count;	     /* free frames in the stack */
	uint32_t shift;	     /* log2 of the frame size */
	uint32_t total;	     /* frames in the UMEM */
	uint32_t first, end; /* the frames this cache was given: [first, end) */
	uint64_t wrong;	     /* moves refused by the ledger */
};

/* Out of line: count a refused move, or abort in a debug build. */
XDPATH_API void xdpath_frame_wrong(struct xdpath_frames *f, const char *move, uint64_t addr);

static inline uint64_t xdpath_frame_index(const struct xdpath_frames *f, uint64_t addr)
{
	return addr >> f->shift;
}

/*
 * True for a frame that this cache was given. Every address from outside is held against this
 * before the ledger is read: frames of another thread's cache are as foreign as those past the
 * UMEM.
 */
static inline bool xdpath_frame_mine(const struct xdpath_frames *f, uint64_t index)
{
	return index - f->first < f->end - f->first;
}

/* True for a frame of this cache that has this owner. */
static inline bool xdpath_frame_is(const struct xdpath_frames *f, uint64_t index, uint8_t owner)
{
	return xdpath_frame_mine(f, index) && f->owner[index] == owner;
}

/* True for an address whose frame the application owns now: RX or HELD, which differ in bit 0. */
static inline bool xdpath_frame_is_app(const struct xdpath_frames *f, uint64_t addr)
{
	uint64_t i = xdpath_frame_index(f, addr);

	return xdpath_frame_mine(f, i) && (f->owner[i] & ~1) == XDPATH_RX;
}

/*
 * Take up to n free frames to build packets in; addrs receives their base addresses (UMEM offsets
 * in bytes). Returns how many. They are HELD until sent or released.
 */
static inline uint32_t xdpath_frame_get(struct xdpath_frames *f, uint64_t *addrs, uint32_t n)
{
	const struct xdpath_frames v = *f; /* a copy: ledger stores may alias the struct */

	if (n > v.count)
		n = v.count;
	for (uint32_t i = 0; i < n; i++) {
		addrs[i] = v.stack[v.count - 1 - i];
		v.owner[addrs[i] >> v.shift] = XDPATH_HELD;
	}
	f->count -= n;
	return n;
}

/* Keep a received frame beyond the burst. `addr` is any address inside it. */
static inline void xdpath_frame_hold(struct xdpath_frames *f, uint64_t addr)
{
	if (xdpath_unlikely(!xdpath_frame_is_app(f, addr))) {
		xdpath_frame_wrong(f, "hold", addr);
		return;
	}
	f->owner[xdpath_frame_index(f, addr)] = XDPATH_HELD;
}

/* Give one frame back. `addr` is any address inside it. */
static inline void xdpath_frame_put(struct xdpath_frames *f, uint64_t addr)
{
	uint64_t i = xdpath_frame_index(f, addr);

	if (xdpath_unlikely(!xdpath_frame_is_app(f, addr))) {
		xdpath_frame_wrong(f, "release", addr);
		return;
	}
	f->owner[i] = XDPATH_FREE;
	f->stack[f->count++] = i << f->shift;
}

/* Frames by owner. free + fill + rx + tx + held = total, always. */
struct xdpath_ledger {
	uint32_t total, free, fill, rx, held, tx;
	uint32_t completed; /* of tx: already in a completion ring, not yet reaped */
	uint64_t wrong;	    /* moves the ledger refused since the start */
};

/*
 * Count the frames [f->first, f->end) by owner into *out (added to what is there). Call it from
 * the owning thread, or after it ended.
 */
XDPATH_API void xdpath_frames_audit(const struct xdpath_frames *f, struct xdpath_ledger *out);

#ifdef __cplusplus
}
#endif
#endif
