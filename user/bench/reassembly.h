/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A message that is longer than a datagram comes in pieces, each with its offset and the length of
 * the whole. Pieces may come in any order and more than once; a message that is not whole within
 * 200 ms is lost. One reassembly belongs to one flow in one lane.
 */
#ifndef BENCH_REASSEMBLY_H
#define BENCH_REASSEMBLY_H

#include "msg.h"
#include "test.h"

#define PIECES_MAX	128U /* of a message: 64 KiB in the smallest datagrams that are taken */
#define PIECE_MIN	(MSG_SIZE_MAX / PIECES_MAX)
#define REASSEMBLY_OPEN 4U /* messages of a flow that may be incomplete at a time */
#define REASSEMBLY_MS	200U

struct pieces {
	uint64_t seen[PIECES_MAX / 64];
	uint32_t got; /* bytes */
};

enum piece_verdict {
	PIECE_MORE,  /* taken, others are missing */
	PIECE_WHOLE, /* the last one that was missing */
	PIECE_AGAIN, /* it was there already */
	PIECE_WRONG  /* contradicts the message or the test: nobody sends that */
};

/* A datagram's part of a message: bytes of each piece but the last one, and of the whole. */
struct cut {
	uint32_t piece, len;
};

/* `at` and `n`: where the piece begins and how long it is, from the wire and not trusted. */
enum piece_verdict pieces_take(struct pieces *p, const struct cut *c, uint32_t at, uint32_t n);

struct partial {
	struct pieces pieces;
	uint32_t seq;
	bool open;
	uint64_t since;
};

struct reassembly {
	struct partial m[REASSEMBLY_OPEN];
	uint32_t nopen;
	uint32_t top_seq, top_at; /* the furthest piece so far */
	bool begun;
};

/*
 * Take a piece of message `seq`. Counts what it gives up (incomplete), what came after a later
 * piece (reordered), and what is not wanted any more (late, which is PIECE_AGAIN). `now` in the
 * caller's unit.
 */
enum piece_verdict reassembly_take(struct reassembly *r, const struct cut *c, uint32_t seq,
				   uint32_t at, uint32_t n, uint64_t now, struct test_losses *lost);
/* Give up the messages that were begun before `oldest`; counted as incomplete. */
void reassembly_expire(struct reassembly *r, uint64_t oldest, struct test_losses *lost);

#endif
