/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The measurement's own header: 16 bytes in front of the payload of each UDP datagram, the same on
 * every engine. A message longer than a datagram holds is cut: each piece carries its offset and
 * the length of the whole.
 */
#ifndef BENCH_MSG_H
#define BENCH_MSG_H

#include <arpa/inet.h>
#include <stdint.h>

enum msg_kind { MSG_REQUEST = 1, MSG_RESPONSE = 2, MSG_STREAM = 3, MSG_PROBE = 4, MSG_ECHO = 5 };

#define MSG_SIZE_MAX 65536U /* bytes of payload of a message, all its pieces */

/* Behind 14 + 20 + 8 bytes of a frame it lies on a multiple of 2 only, which its type must say. */
struct msg_hdr {
	uint16_t test; /* of this measurement, so that a late datagram of another is told */
	uint16_t flow;
	uint32_t seq;	  /* of the message within its flow */
	uint32_t kind_at; /* kind in the upper 8 bits, offset of this piece (bytes) in the lower 24
			   */
	uint32_t len;	  /* bytes of the whole message */
} __attribute__((packed, aligned(2)));

_Static_assert(sizeof(struct msg_hdr) == 16, "as the seeds' tables count it");

static inline uint32_t msg_kind_at(enum msg_kind kind, uint32_t at)
{
	return htonl((uint32_t)kind << 24 | at);
}

static inline enum msg_kind msg_kind(const struct msg_hdr *h)
{
	return (enum msg_kind)(ntohl(h->kind_at) >> 24);
}

/*
 * The header as two words, as a sender of many and their receiver handle it: which message it is,
 * and what all of them have in common. Fields are in network order.
 */
static inline uint64_t msg_which(uint16_t test, uint32_t flow, uint32_t seq)
{
	struct {
		uint16_t test, flow;
		uint32_t seq;
	} w = {test, htons((uint16_t)flow), htonl(seq)};
	uint64_t v;

	__builtin_memcpy(&v, &w, sizeof(v));
	return v;
}

static inline uint64_t msg_common(uint32_t kind_at, uint32_t len)
{
	uint32_t w[2] = {kind_at, len};
	uint64_t v;

	__builtin_memcpy(&v, w, sizeof(v));
	return v;
}

static inline void msg_put(struct msg_hdr *h, uint64_t which, uint64_t common)
{
	__builtin_memcpy(h, &which, sizeof(which));
	__builtin_memcpy(&h->kind_at, &common, sizeof(common));
}

static inline uint64_t msg_common_of(const struct msg_hdr *h)
{
	uint64_t v;

	__builtin_memcpy(&v, &h->kind_at, sizeof(v));
	return v;
}

static inline uint32_t msg_at(const struct msg_hdr *h)
{
	return ntohl(h->kind_at) & 0xffffff;
}

#endif
