/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Request and response. The client has one request out per flow (closed loop), or sends when the
 * schedule says (open loop): then the latency counts from the time a message was due, not from when
 * it went, so that a stall is paid for by every message that it held up.
 */
#include <string.h>

#include "test_run.h"

#define LOOK_NS	   20e6 /* between two looks for what is overdue */
#define LOOK_TURNS 256U /* ... of a lane that never has nothing to do */
#define FEW	   4U	/* datagrams are dealt with in 0.1 us: one stamp does for them */
#define FULL_NS	   50e3 /* the way out is full: look again so soon */

static bool single(const struct cut *c)
{
	return c->len <= c->piece;
}

/* ---- the client ----------------------------------------------------------------------------- */

static bool issue(struct test_end *t, struct test_lane *tl, uint32_t flow, uint64_t due)
{
	struct client_flow *f = &t->flow[flow];
	struct rr_slot *slot = &f->slot[f->next_seq & (t->window - 1)];

	if (slot->busy || !pending_put(&tl->q, (struct pending){.flow = flow, .seq = f->next_seq}))
		return false;
	slot->due = due;
	slot->seq = f->next_seq++;
	slot->busy = slot->queued = true;
	slot->pieces = (struct pieces){0};
	f->out++;
	__atomic_store_n(&tl->outstanding, tl->outstanding + 1, __ATOMIC_RELEASE);
	return true;
}

static void finish(struct test_lane *tl, struct client_flow *f, struct rr_slot *slot)
{
	slot->busy = false;
	f->out--;
	__atomic_store_n(&tl->outstanding, tl->outstanding - 1, __ATOMIC_RELEASE);
}

static bool is_whole(const struct test_end *t, struct rr_slot *slot, const struct rx_slot *s,
		     struct test_lane *tl)
{
	uint32_t at = msg_at(s->msg);
	enum piece_verdict v;

	if (xdpath_likely(s->len == t->in.len && at == 0))
		return true;
	v = pieces_take(&slot->pieces, &t->in, at, s->len);
	if (v == PIECE_AGAIN || v == PIECE_WRONG)
		tl->n.lost.late++;
	return v == PIECE_WHOLE;
}

static void answered(struct test_end *t, struct test_lane *tl, const struct rx_slot *s,
		     uint64_t now)
{
	struct client_flow *f = &t->flow[s->flow];
	uint32_t seq = ntohl(s->msg->seq);
	struct rr_slot *slot = &f->slot[seq & (t->window - 1)];

	if (xdpath_unlikely(s->msg->test != t->wire_id || !test_owns(tl, s->flow) || !slot->busy ||
			    slot->seq != seq || !slot->sent || s->msg->len != htonl(t->in.len))) {
		tl->n.lost.late++;
		return;
	}
	if (!is_whole(t, slot, s, tl))
		return;
	hist_add(&tl->latency, now > slot->due ? ticks_to_ns(now - slot->due) : 0);
	if (test_is_open_loop(t))
		hist_add(&tl->service, ticks_to_ns(now - slot->sent));
	finish(tl, f, slot);
	xdpath_count(&tl->n.msgs_in, 1);
	if (tl->phase == PHASE_GO && !test_is_open_loop(t))
		issue(t, tl, s->flow, 0);
}

/* What is due goes out on the flows in turn. A flow with all its places taken is passed over; when
 * all are, the message waits, and its time does not change. */
static void take_arrivals(struct test_end *t, struct test_lane *tl, uint64_t now)
{
	double since = (double)(now - tl->begin);

	while (tl->due <= since) {
		uint32_t tries = 0;

		while (tries < tl->nown) {
			uint32_t flow = tl->own[tl->next_own];

			tl->next_own = tl->next_own + 1 < tl->nown ? tl->next_own + 1 : 0;
			tries++;
			if (issue(t, tl, flow, tl->begin + (uint64_t)tl->due))
				break;
			if (tries == tl->nown)
				return;
		}
		if (!tl->nown)
			return;
		tl->due = arrival_next(&tl->arrival);
	}
}

/* Too long without an answer: lost. Asked again in the run, given up after it. */
static void look_at_flow(struct test_end *t, struct test_lane *tl, uint32_t flow, uint64_t oldest)
{
	struct client_flow *f = &t->flow[flow];

	for (uint32_t i = 0; f->out && i < t->window; i++) {
		struct rr_slot *slot = &f->slot[i];

		if (!slot->busy || slot->queued || slot->sent > oldest)
			continue;
		tl->n.lost.timeouts++;
		tl->n.lost.incomplete += slot->pieces.got != 0;
		slot->pieces = (struct pieces){0};
		if (tl->phase != PHASE_GO)
			finish(tl, f, slot);
		else
			slot->queued = pending_put(&tl->q, (struct pending){.flow = flow,
									    .seq = slot->seq});
	}
}

static void look_for_overdue(struct test_end *t, struct test_lane *tl, uint64_t now)
{
	uint64_t limit = ticks_from_ns(REASSEMBLY_MS * 1e6);

	if (now < tl->look_at)
		return;
	if (tl->look_at)
		for (uint32_t i = 0; i < tl->nown; i++)
			look_at_flow(t, tl, tl->own[i], now - limit);
	tl->look_at = now + ticks_from_ns(LOOK_NS);
}

/* *stamp: of when they came, where that is just now for what is sent on it: after few. */
static uint32_t client_receive(struct test_end *t, struct lane *l, uint64_t *stamp)
{
	const struct engine_ops *ops = t->e->ops;
	struct test_lane *tl = l->test;
	struct rx_slot s[LANE_BURST];
	uint32_t n = ops->rx(l, s);
	uint64_t now;

	if (!n)
		return 0;
	now = ticks_now();
	for (uint32_t i = 0; i < n; i++)
		if (xdpath_likely(msg_kind(s[i].msg) == MSG_RESPONSE))
			answered(t, tl, &s[i], now);
		else
			test_other(t, l, &s[i]);
	ops->rx_done(l);
	*stamp = n <= FEW ? now : 0;
	return n;
}

uint32_t rr_client_turn(struct test_end *t, struct lane *l)
{
	struct test_lane *tl = l->test;
	bool open = tl->phase == PHASE_GO && test_is_open_loop(t);
	uint64_t stamp = 0, now = 0;
	uint32_t n = client_receive(t, l, &stamp);

	if (open) {
		now = ticks_now();
		take_arrivals(t, tl, now);
		stamp = now;
	}
	n += test_send_pending(t, l, MSG_REQUEST, stamp);
	if ((n && ++tl->turns % LOOK_TURNS) || (!tl->outstanding && !open))
		return n;
	now = now ? now : ticks_now();
	look_for_overdue(t, tl, now);
	if (tl->outstanding)
		test_wake_at(l, now, tl->look_at);
	if (open && tl->nown && tl->begin + (uint64_t)tl->due > now)
		test_wake_at(l, now, tl->begin + (uint64_t)tl->due);
	if (pending_any(&tl->q)) /* no room to send: soon there is */
		test_wake_at(l, now, now + ticks_from_ns(FULL_NS));
	return n;
}

/* What has not begun to go is taken back: the run is over. */
static void take_back(struct test_end *t, struct test_lane *tl)
{
	struct pending_queue *q = &tl->q, rest = *q;

	rest.tail = q->head;
	for (uint32_t i = q->head; i != q->tail; i++) {
		struct pending p = q->e[i & q->mask];
		struct rr_slot *slot = &t->flow[p.flow].slot[p.seq & (t->window - 1)];

		if (p.at)
			pending_put(&rest, p);
		else if (slot->busy && slot->queued && slot->seq == p.seq)
			finish(tl, &t->flow[p.flow], slot);
	}
	q->tail = rest.tail;
}

void rr_phase(struct test_end *t, struct lane *l)
{
	struct test_lane *tl = l->test;

	if (t->is_server)
		return;
	if (tl->phase == PHASE_DRAIN)
		take_back(t, tl);
	else if (tl->phase == PHASE_GO && !test_is_open_loop(t))
		for (uint32_t i = 0; i < tl->nown; i++)
			issue(t, tl, tl->own[i], 0);
}

/* ---- the server ----------------------------------------------------------------------------- */

static void asked(struct test_end *t, struct test_lane *tl, const struct rx_slot *s, uint64_t now)
{
	struct reassembly *r = &tl->in[s->flow].r;
	uint32_t was = r->nopen, seq = ntohl(s->msg->seq);

	if (xdpath_unlikely(s->msg->test != t->wire_id || s->msg->len != htonl(t->in.len))) {
		tl->n.lost.late++;
		return;
	}
	if (reassembly_take(r, &t->in, seq, msg_at(s->msg), s->len, now, &tl->n.lost) ==
	    PIECE_WHOLE) {
		xdpath_count(&tl->n.msgs_in, 1);
		pending_put(&tl->q, (struct pending){.flow = s->flow, .seq = seq});
	}
	tl->open += r->nopen - was;
}

void test_expire(struct test_end *t, struct lane *l, struct test_lane *tl)
{
	uint64_t now = ticks_now(), limit = ticks_from_ns(REASSEMBLY_MS * 1e6);

	if (now >= tl->look_at) {
		for (uint32_t f = 0; tl->open && tl->look_at && f < t->e->path.flows; f++) {
			uint32_t was = tl->in[f].r.nopen;

			reassembly_expire(&tl->in[f].r, now - limit, &tl->n.lost);
			tl->open -= was - tl->in[f].r.nopen;
		}
		tl->look_at = now + ticks_from_ns(LOOK_NS);
	}
	if (tl->open)
		test_wake_at(l, now, tl->look_at);
}

uint32_t rr_server_turn(struct test_end *t, struct lane *l)
{
	const struct engine_ops *ops = t->e->ops;
	struct test_lane *tl = l->test;
	struct rx_slot s[LANE_BURST];
	uint32_t n = ops->rx(l, s);
	uint64_t now = n && !single(&t->in) ? ticks_now() : 0;

	for (uint32_t i = 0; i < n; i++)
		if (xdpath_likely(msg_kind(s[i].msg) == MSG_REQUEST))
			asked(t, tl, &s[i], now);
		else
			test_other(t, l, &s[i]);
	if (n)
		ops->rx_done(l);
	n += test_send_pending(t, l, MSG_RESPONSE, 0);
	if (!n && tl->open)
		test_expire(t, l, tl);
	if (!n && pending_any(&tl->q))
		test_wake_at(l, 0, ticks_from_ns(FULL_NS));
	return n;
}
