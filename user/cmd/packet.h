/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Generated frames: Ethernet, an 802.1Q tag if asked for, IPv4 or IPv6, UDP, payload. Used by the
 * two engines of `source` (source.c, source_live.c).
 *
 * The payload, which a receiver may read:
 *
 *   offset 0   8 bytes  sequence number of the frame, from 0, big-endian
 *   offset 8   8 bytes  CLOCK_MONOTONIC in ns when the frame was written, big-endian
 *   offset 16  zeros up to the end of the frame
 *
 * A payload of less than 16 bytes carries no time, one of less than 8 no number: zeros instead. A
 * frame of 60 bytes has 18 bytes of payload with IPv4 and no tag. There is no padding: the payload
 * ends where the frame ends. IPv4 goes with DF and identification 0.
 */
#ifndef XDPATH_PACKET_H
#define XDPATH_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include "../../bpf/gen.h"

#define PACKET_MIN 60U /* an Ethernet frame without FCS */

/* What the user asks for, in network byte order where it is an address. */
struct packet_spec {
	uint8_t dst_mac[6], src_mac[6];
	bool v6;
	uint8_t src[16], dst[16]; /* the first 4 bytes with IPv4 */
	uint16_t sport, dport;
	uint16_t vlan;	/* 1..4094, 0: no tag */
	uint32_t flows; /* 1..GEN_PORT_SPAN */
};

/* Headers in bytes: what precedes the payload. */
uint32_t packet_headers(bool v6, bool tagged);

/* The shortest frame: PACKET_MIN, or the headers where they are longer. */
uint32_t packet_shortest(bool v6, bool tagged);

/* Fill in all of the plan but the sizes. */
void packet_plan(struct gen_plan *p, const struct packet_spec *s);

/* Sizes first..last in turn; packet_shortest() <= first <= last. */
void packet_sizes_range(struct gen_plan *p, uint32_t first, uint32_t last);

/*
 * The "simple IMIX": of twelve frames seven of 60, four of 590, one of 1514 bytes, that is 64, 594
 * and 1518 with FCS, mixed. Each is raised to packet_shortest() and capped at `longest`.
 */
void packet_sizes_imix(struct gen_plan *p, uint32_t longest);

/*
 * Write the head of frame number `seq`, that is its first GEN_HEAD bytes, to `head`, which has room
 * for them even if the frame is shorter. All that follows is zero and for the caller to clear.
 * Returns the size of the frame.
 */
static inline uint32_t packet_head(const struct gen_plan *p, uint8_t *head, uint64_t seq,
				   uint64_t now)
{
	uint32_t size = gen_size(p, seq);

	__builtin_memcpy(head, p->head, GEN_HEAD);
	gen_stamp(head, p, GEN_ETH + (p->tagged ? GEN_TAG : 0), p->v6, size, seq, now);
	return size;
}

#endif
