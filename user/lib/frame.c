// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * The parts of the frame ledger that are not hot: what happens on a refused move, and the count of
 * frames by owner. Called by the inlines of frame.h and pkt.h, by pkt.c, and by whoever audits. The
 * ledger and the stack belong to the UMEM, the moves to the thread that owns the cache.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <xdpath/frame.h>

void xdpath_frame_wrong(struct xdpath_frames *f, const char *move, uint64_t addr)
{
#ifdef XDPATH_DEBUG
	uint64_t i = xdpath_frame_index(f, addr);

	if (xdpath_frame_mine(f, i))
		fprintf(stderr,
			"xdpath: %s: address 0x%" PRIx64 " is in frame %" PRIu64 ", owner 0x%02x\n",
			move, addr, i, f->owner[i]);
	else
		fprintf(stderr,
			"xdpath: %s: address 0x%" PRIx64
			" is outside the cache's frames %u to %u\n",
			move, addr, f->first, f->end - 1);
	abort();
#else
	(void)move;
	(void)addr;
	f->wrong++;
#endif
}

void xdpath_frames_audit(const struct xdpath_frames *f, struct xdpath_ledger *out)
{
	for (uint32_t i = f->first; i < f->end; i++) {
		uint8_t owner = f->owner[i];

		/* A byte that names no owner is counted nowhere: the sum then shows it. */
		out->free += owner == XDPATH_FREE;
		out->fill += owner == XDPATH_FILL;
		out->rx += owner == XDPATH_RX;
		out->held += owner == XDPATH_HELD;
		out->tx += owner > XDPATH_TX;
	}
	out->total += f->end - f->first;
	out->wrong += f->wrong;
}
