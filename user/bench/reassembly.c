/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Pieces to messages; see reassembly.h. */
#include <string.h>

#include "reassembly.h"

enum piece_verdict pieces_take(struct pieces *p, const struct cut *c, uint32_t at, uint32_t n)
{
	uint32_t i, rest;

	if (at >= c->len || at % c->piece)
		return PIECE_WRONG;
	i = at / c->piece;
	rest = c->len - at;
	if (i >= PIECES_MAX || n != (rest < c->piece ? rest : c->piece))
		return PIECE_WRONG;
	if (p->seen[i / 64] >> (i % 64) & 1)
		return PIECE_AGAIN;
	p->seen[i / 64] |= 1ULL << (i % 64);
	p->got += n;
	return p->got == c->len ? PIECE_WHOLE : PIECE_MORE;
}

/* Numbers go round; half the circle is ahead. */
static bool before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static void look_at_order(struct reassembly *r, uint32_t seq, uint32_t at, struct test_losses *lost)
{
	if (r->begun && (before(seq, r->top_seq) || (seq == r->top_seq && at < r->top_at))) {
		lost->reordered++;
		return;
	}
	r->begun = true;
	r->top_seq = seq;
	r->top_at = at;
}

static void give_up(struct reassembly *r, struct partial *m, struct test_losses *lost)
{
	m->open = false;
	r->nopen--;
	lost->incomplete++;
}

enum piece_verdict reassembly_take(struct reassembly *r, const struct cut *c, uint32_t seq,
				   uint32_t at, uint32_t n, uint64_t now, struct test_losses *lost)
{
	struct partial *m = &r->m[seq % REASSEMBLY_OPEN];
	enum piece_verdict v;

	look_at_order(r, seq, at, lost);
	if (n == c->len && at == 0 && !(m->open && m->seq == seq))
		return PIECE_WHOLE; /* one datagram, and nothing to keep */
	if (m->open && m->seq != seq) {
		if (before(seq, m->seq)) {
			lost->late++;
			return PIECE_AGAIN;
		}
		give_up(r, m, lost);
	}
	if (!m->open) {
		memset(m, 0, sizeof(*m));
		m->seq = seq;
		m->since = now;
	}
	v = pieces_take(&m->pieces, c, at, n);
	if (v == PIECE_AGAIN || v == PIECE_WRONG)
		lost->late++;
	if (v == PIECE_MORE && !m->open) {
		m->open = true;
		r->nopen++;
	} else if (v == PIECE_WHOLE && m->open) {
		m->open = false;
		r->nopen--;
	}
	return v;
}

void reassembly_expire(struct reassembly *r, uint64_t oldest, struct test_losses *lost)
{
	for (uint32_t i = 0; r->nopen && i < REASSEMBLY_OPEN; i++)
		if (r->m[i].open && r->m[i].since < oldest)
			give_up(r, &r->m[i], lost);
}
