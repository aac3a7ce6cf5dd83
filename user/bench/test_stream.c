/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Messages one way or both, as fast as they go or at a rate. A sender takes its flows in turn, a
 * message each; a receiver counts messages that are whole, and what came out of order.
 */
#include "test_run.h"

#define FULL_NS 50e3 /* the way out is full: look again so soon */

/* ---- receiving ------------------------------------------------------------------------------ */

static void take_piece(struct test_end *t, struct test_lane *tl, const struct rx_slot *s)
{
	struct reassembly *r = &tl->in[s->flow].r;
	uint32_t was = r->nopen;

	if (reassembly_take(r, &t->in, ntohl(s->msg->seq), msg_at(s->msg), s->len, ticks_now(),
			    &tl->n.lost) == PIECE_WHOLE)
		xdpath_count(&tl->n.msgs_in, 1);
	tl->open += r->nopen - was;
}

static void take_rare(struct test_end *t, struct lane *l, const struct rx_slot *s)
{
	struct test_lane *tl = l->test;

	if (msg_kind(s->msg) != MSG_STREAM)
		test_other(t, l, s);
	else if (s->msg->test != t->wire_id || !t->receives || s->msg->len != htonl(t->in.len))
		tl->n.lost.late++;
	else
		take_piece(t, tl, s);
}

static uint32_t receive(struct test_end *t, struct lane *l)
{
	const struct engine_ops *ops = t->e->ops;
	const uint64_t common = msg_common(msg_kind_at(MSG_STREAM, 0), htonl(t->in.len));
	const uint32_t len = t->in.len;
	const uint16_t id = t->wire_id;
	const bool receives = t->receives;
	struct test_lane *tl = l->test;
	struct server_flow *in = tl->in;
	struct rx_slot s[LANE_BURST];
	uint32_t n = ops->rx(l, s), whole = 0;

	if (!n)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct msg_hdr *h = s[i].msg;
		struct server_flow *f;
		uint32_t seq;

		if (xdpath_unlikely(msg_common_of(h) != common || h->test != id ||
				    s[i].len != len || !receives)) {
			take_rare(t, l, &s[i]);
			continue;
		}
		f = &in[s[i].flow];
		seq = ntohl(h->seq);
		whole++;
		if (xdpath_unlikely((int32_t)(seq - f->next_seq) < 0))
			tl->n.lost.reordered++;
		else
			f->next_seq = seq + 1;
	}
	xdpath_count(&tl->n.msgs_in, whole);
	ops->rx_done(l);
	return n;
}

/* ---- sending -------------------------------------------------------------------------------- */

/* How many messages may begin now. */
static uint32_t allowed(struct test_end *t, struct test_lane *tl, uint64_t now)
{
	uint32_t n = 0;

	if (tl->phase != PHASE_GO || !tl->nown)
		return 0;
	if (!test_is_open_loop(t))
		return LANE_BURST;
	while (n < LANE_BURST && tl->due <= (double)(now - tl->begin)) {
		tl->due = arrival_next(&tl->arrival);
		n++;
	}
	return n;
}

static struct client_flow *current(struct test_end *t, const struct test_lane *tl)
{
	return &t->flow[tl->own[tl->next_own]];
}

/* The same for messages of one datagram each: nothing but numbers. */
static uint32_t fill_whole(struct test_end *t, struct test_lane *tl, struct tx_slot *s, uint32_t n)
{
	const uint64_t common = msg_common(msg_kind_at(MSG_STREAM, 0), htonl(t->out.len));
	const uint32_t len = t->out.len, nown = tl->nown, *own = tl->own;
	const uint16_t id = t->wire_id;
	uint32_t k, next = tl->next_own;

	n = n < tl->credit ? n : tl->credit;
	for (k = 0; k < n; k++) {
		uint32_t flow = own[next];

		msg_put(s[k].msg, msg_which(id, flow, t->flow[flow].next_seq++), common);
		s[k].flow = flow;
		s[k].len = len;
		next = next + 1 < nown ? next + 1 : 0;
	}
	tl->next_own = next;
	tl->credit -= n;
	xdpath_count(&tl->n.msgs_out, n);
	return n;
}

/* Fill n slots from the flows in turn, beginning at most `credit` messages. */
static uint32_t fill(struct test_end *t, struct test_lane *tl, struct tx_slot *s, uint32_t n)
{
	const uint32_t len = t->out.len, piece = t->out.piece, wire_len = htonl(len);
	uint32_t k, whole = 0;

	for (k = 0; k < n; k++) {
		struct client_flow *f = current(t, tl);
		uint32_t at = f->at, rest = len - at;

		if (at == 0 && tl->credit == 0)
			break;
		tl->credit -= at == 0;
		test_head(t, &s[k], tl->own[tl->next_own], f->next_seq, msg_kind_at(MSG_STREAM, at),
			  wire_len);
		s[k].len = rest < piece ? rest : piece;
		if (rest > piece) {
			f->at = at + piece;
			continue;
		}
		f->at = 0;
		f->next_seq++;
		whole++;
		tl->next_own = tl->next_own + 1 < tl->nown ? tl->next_own + 1 : 0;
	}
	xdpath_count(&tl->n.msgs_out, whole);
	return k;
}

static uint32_t send_messages(struct test_end *t, struct lane *l, struct test_lane *tl,
			      uint64_t now)
{
	const struct engine_ops *ops = t->e->ops;
	uint32_t each = (t->out.len + t->out.piece - 1) / t->out.piece, want, room, k;
	struct tx_slot s[LANE_BURST];

	if (tl->credit < LANE_BURST)
		tl->credit += allowed(t, tl, now);
	if (tl->phase != PHASE_GO)
		tl->credit = 0;
	want = tl->credit >= LANE_BURST / each ? LANE_BURST : tl->credit * each;
	if (!want && tl->nown && current(t, tl)->at)
		want = LANE_BURST;
	room = want ? ops->tx_slots(l, s, want) : 0;
	if (want && !room)
		test_wake_at(l, 0, ticks_from_ns(FULL_NS));
	if (!room)
		return 0;
	k = each == 1 ? fill_whole(t, tl, s, room) : fill(t, tl, s, room);
	ops->tx(l, s, k);
	__atomic_store_n(&tl->outstanding, current(t, tl)->at != 0, __ATOMIC_RELEASE);
	return k;
}

/* ---- both ----------------------------------------------------------------------------------- */

void stream_phase(struct test_end *t, struct lane *l)
{
	struct test_lane *tl = l->test;

	if (tl->phase == PHASE_GO)
		tl->credit = 0;
	(void)t;
}

uint32_t stream_turn(struct test_end *t, struct lane *l)
{
	struct test_lane *tl = l->test;
	uint32_t n = receive(t, l);
	uint64_t now = 0;

	if (t->sends && (tl->phase == PHASE_GO || tl->phase == PHASE_DRAIN)) {
		if (t->stop_at || test_is_open_loop(t))
			now = ticks_now();
		if (t->stop_at && now >= t->stop_at && tl->phase == PHASE_GO)
			__atomic_store_n(&tl->phase, PHASE_DRAIN, __ATOMIC_RELEASE);
		n += send_messages(t, l, tl, now);
		if (!n && tl->phase == PHASE_GO && test_is_open_loop(t) && tl->nown)
			test_wake_at(l, now, tl->begin + (uint64_t)tl->due);
	}
	if (!n && tl->open)
		test_expire(t, l, tl);
	return n;
}
