/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What both tests share: memory, phases, claims and marks, the queue of what is to be sent. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine_common.h"
#include "test_run.h"

#define CLAIM_NS 20e6 /* between two times of asking */

static struct test_lane *lane_of(const struct lane *l)
{
	return l->test;
}

/* ---- memory --------------------------------------------------------------------------------- */

static int lane_memory(struct test_end *t, struct test_lane *tl)
{
	const struct engine_path *path = &t->e->path;
	uint32_t room = 64;

	tl->t = t;
	hist_init(&tl->latency);
	hist_init(&tl->service);
	while (room < path->flows * t->window)
		room *= 2;
	tl->q.mask = room - 1;
	tl->q.e = lines_alloc(room * sizeof(*tl->q.e));
	tl->own = lines_alloc(path->flows * sizeof(*tl->own));
	if (t->receives || t->is_server)
		tl->in = lines_alloc(path->flows * sizeof(*tl->in));
	return tl->q.e && tl->own && (tl->in || !(t->receives || t->is_server)) ? 0 : -ENOMEM;
}

static int flow_memory(struct test_end *t)
{
	const struct engine_path *path = &t->e->path;
	struct rr_slot *slot;

	t->flow = lines_alloc(path->flows * sizeof(*t->flow));
	if (!t->flow)
		return -ENOMEM;
	if (t->spec->kind != TEST_RR || t->is_server)
		return 0;
	for (uint32_t f = 0; f < path->flows; f++) {
		slot = lines_alloc(t->window * sizeof(*slot));
		if (!slot)
			return -ENOMEM;
		t->flow[f].slot = slot;
	}
	return 0;
}

static void directions(struct test_end *t)
{
	const struct test_spec *s = t->spec;
	uint32_t heads = t->e->path.family == AF_INET6 ? 40 + 8 : 20 + 8;

	t->out.piece = t->in.piece = t->e->path.mtu - heads - (uint32_t)sizeof(struct msg_hdr);
	if (s->kind == TEST_RR) {
		t->sends = t->receives = true;
		t->out.len = t->is_server ? s->rsp : s->req;
		t->in.len = t->is_server ? s->req : s->rsp;
		return;
	}
	t->sends = s->bidir || s->reverse == t->is_server;
	t->receives = s->bidir || s->reverse != t->is_server;
	t->out.len = t->in.len = s->size;
}

int test_open(struct test_end **out, struct engine *e, const struct test_spec *spec, uint16_t id,
	      int event_fd)
{
	struct test_end *t = lines_alloc(sizeof(*t));
	int err = 0;

	if (!t)
		return -ENOMEM;
	t->spec = spec;
	t->e = e;
	t->is_server = e->path.is_server;
	t->wire_id = htons(id);
	t->event_fd = event_fd;
	t->window = spec->rate > 0 ? WINDOW : 1;
	t->seed = id + 1ULL;
	directions(t);
	t->lane = lines_alloc(e->path.lanes * sizeof(*t->lane));
	if (!t->lane)
		err = -ENOMEM;
	for (uint32_t i = 0; !err && i < e->path.lanes; i++)
		err = lane_memory(t, &t->lane[i]);
	if (!err)
		err = flow_memory(t);
	if (err) {
		test_close(t);
		return err;
	}
	*out = t;
	return 0;
}

void test_close(struct test_end *t)
{
	if (!t)
		return;
	for (uint32_t f = 0; t->flow && f < t->e->path.flows; f++)
		free(t->flow[f].slot);
	for (uint32_t i = 0; t->lane && i < t->e->path.lanes; i++) {
		free(t->lane[i].q.e);
		free(t->lane[i].own);
		free(t->lane[i].in);
	}
	free(t->flow);
	free(t->lane);
	free(t);
}

/* ---- the control thread's side -------------------------------------------------------------- */

void test_set_phase(struct test_end *t, enum test_phase phase)
{
	if (phase == PHASE_GO)
		__atomic_store_n(&t->run, t->run + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&t->phase, phase, __ATOMIC_RELEASE);
	t->e->ops->nudge(t->e);
}

void test_send_mark(struct test_end *t, uint32_t mark)
{
	__atomic_store_n(&t->mark, mark, __ATOMIC_RELEASE);
	t->e->ops->nudge(t->e);
}

void test_expect_mark(struct test_end *t, uint32_t mark)
{
	__atomic_store_n(&t->expect, mark, __ATOMIC_RELEASE);
}

uint32_t test_mark_seen(const struct test_end *t)
{
	return __atomic_load_n(&t->mark_seen, __ATOMIC_ACQUIRE);
}

uint32_t test_claimed(const struct test_end *t)
{
	uint32_t n = 0;

	for (uint32_t f = 0; f < t->e->path.flows; f++)
		n += __atomic_load_n(&t->flow[f].claimed, __ATOMIC_ACQUIRE);
	return n;
}

bool test_is_drained(const struct test_end *t)
{
	for (uint32_t i = 0; i < t->e->path.lanes; i++) {
		const struct test_lane *tl = &t->lane[i];

		if (__atomic_load_n(&tl->phase, __ATOMIC_ACQUIRE) == PHASE_GO ||
		    __atomic_load_n(&tl->outstanding, __ATOMIC_ACQUIRE))
			return false;
	}
	return true;
}

void test_counts(const struct test_end *t, struct test_count *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t i = 0; i < t->e->path.lanes; i++) {
		const struct test_count *n = &t->lane[i].n;

		sum->msgs_out += xdpath_counted(&n->msgs_out);
		sum->msgs_in += xdpath_counted(&n->msgs_in);
		sum->lost.timeouts += xdpath_counted(&n->lost.timeouts);
		sum->lost.incomplete += xdpath_counted(&n->lost.incomplete);
		sum->lost.reordered += xdpath_counted(&n->lost.reordered);
		sum->lost.late += xdpath_counted(&n->lost.late);
	}
}

void test_forget_times(struct test_end *t)
{
	for (uint32_t i = 0; i < t->e->path.lanes; i++) {
		hist_init(&t->lane[i].latency);
		hist_init(&t->lane[i].service);
	}
}

/* ---- claims and marks ----------------------------------------------------------------------- */

static void claim(struct test_end *t, struct test_lane *tl, uint32_t flow)
{
	uint32_t nobody = 0;

	if (test_owns(tl, flow) ||
	    !__atomic_compare_exchange_n(&t->flow[flow].claimed, &nobody, 1, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	tl->has[flow / 64] |= 1ULL << (flow % 64);
	tl->own[tl->nown++] = flow;
}

static uint32_t send_one(struct test_end *t, struct lane *l, enum msg_kind kind, uint32_t flow,
			 uint32_t seq)
{
	struct tx_slot s;

	if (!t->e->ops->tx_slots(l, &s, 1))
		return 0;
	test_head(t, &s, flow, seq, msg_kind_at(kind, 0), 0);
	s.len = 0;
	return t->e->ops->tx(l, &s, 1);
}

static void mark_came(struct test_end *t, uint32_t mark)
{
	uint64_t one = 1;

	__atomic_store_n(&t->mark_seen, mark, __ATOMIC_RELEASE);
	if (t->event_fd >= 0 && write(t->event_fd, &one, sizeof(one)) < 0)
		return; /* at its limit: readable, which is all that is wanted */
}

void test_other(struct test_end *t, struct lane *l, const struct rx_slot *s)
{
	struct test_lane *tl = lane_of(l);
	uint32_t seq = ntohl(s->msg->seq);

	if (s->msg->test != t->wire_id || ntohs(s->msg->flow) != s->flow) {
		tl->n.lost.late++;
		return;
	}
	switch (msg_kind(s->msg)) {
	case MSG_PROBE:
		if (!t->is_server)
			break;
		if (seq & MARK) {
			if ((seq | 1) != (__atomic_load_n(&t->expect, __ATOMIC_ACQUIRE) | 1))
				return;	   /* too early, or an earlier run's: it comes again */
			mark_came(t, seq); /* before: who hears the answer may go on at once */
			send_one(t, l, MSG_ECHO, s->flow, seq);
			return;
		}
		claim(t, tl, s->flow);
		send_one(t, l, MSG_ECHO, s->flow, seq);
		return;
	case MSG_ECHO:
		if (t->is_server)
			break;
		if (seq & MARK)
			mark_came(t, seq);
		else
			claim(t, tl, s->flow);
		return;
	case MSG_REQUEST:
	case MSG_RESPONSE:
	case MSG_STREAM: break;
	}
	tl->n.lost.late++;
}

/* Ask for the flows of this lane's share that nobody has yet. */
static void ask_for_flows(struct test_end *t, struct lane *l, struct test_lane *tl)
{
	uint64_t now = ticks_now();

	if (now >= tl->look_at) {
		for (uint32_t f = l->id; f < t->e->path.flows; f += t->e->path.lanes)
			if (!__atomic_load_n(&t->flow[f].claimed, __ATOMIC_RELAXED))
				send_one(t, l, MSG_PROBE, f, 0);
		tl->look_at = now + ticks_from_ns(CLAIM_NS);
	}
	test_wake_at(l, now, tl->look_at);
}

static void change_phase(struct test_end *t, struct lane *l, struct test_lane *tl,
			 enum test_phase phase)
{
	enum test_phase was = tl->phase;

	tl->run = __atomic_load_n(&t->run, __ATOMIC_RELAXED);
	if (phase == PHASE_GO) {
		double rate = t->spec->rate * tl->nown / t->e->path.flows;

		tl->begin = ticks_now();
		if (rate > 0) {
			double gap = ticks_scale.per_ns * 1e9 / rate;

			arrival_init(&tl->arrival, t->spec->arrival, gap, t->spec->burst,
				     t->seed ^ (uint64_t)tl->run << 32 ^ (uint64_t)l->id << 16,
				     gap * l->id / t->e->path.lanes);
			tl->due = arrival_next(&tl->arrival);
		}
	}
	tl->look_at = 0;
	__atomic_store_n(&tl->phase, phase, __ATOMIC_RELEASE);
	if (was == phase)
		return;
	if (t->spec->kind == TEST_RR)
		rr_phase(t, l);
	else
		stream_phase(t, l);
}

uint32_t test_turn(void *ctx, struct lane *l)
{
	struct test_end *t = ctx;
	struct test_lane *tl = lane_of(l);
	enum test_phase phase = __atomic_load_n(&t->phase, __ATOMIC_ACQUIRE);
	uint32_t mark, n;

	l->wake_at_ns = 0;
	if (xdpath_unlikely(!tl)) {
		tl = l->test = &t->lane[l->id];
		tl->phase = PHASE_IDLE;
	}
	/* a sender with a time of its own may be in DRAIN already */
	if (xdpath_unlikely(phase != tl->phase) &&
	    !(phase == PHASE_GO && tl->phase == PHASE_DRAIN &&
	      tl->run == __atomic_load_n(&t->run, __ATOMIC_RELAXED)))
		change_phase(t, l, tl, phase);
	if (xdpath_unlikely(tl->phase == PHASE_CLAIM))
		ask_for_flows(t, l, tl);
	if (xdpath_unlikely(__atomic_load_n(&t->mark, __ATOMIC_RELAXED)) && test_owns(tl, 0)) {
		mark = __atomic_exchange_n(&t->mark, 0, __ATOMIC_ACQUIRE);
		if (mark && !send_one(t, l, MSG_PROBE, 0, mark))
			__atomic_store_n(&t->mark, mark, __ATOMIC_RELEASE);
	}
	if (t->spec->kind == TEST_STREAM)
		n = stream_turn(t, l);
	else
		n = t->is_server ? rr_server_turn(t, l) : rr_client_turn(t, l);
	return n;
}

/* ---- the queue of what is to be sent -------------------------------------------------------- */

void test_wake_at(struct lane *l, uint64_t now, uint64_t at)
{
	uint64_t ns = xdpath_now_ns() + (at > now ? ticks_to_ns(at - now) : 0);

	if (!l->wake_at_ns || ns < l->wake_at_ns)
		l->wake_at_ns = ns;
}

bool pending_put(struct pending_queue *q, struct pending p)
{
	if (q->tail - q->head > q->mask)
		return false;
	q->e[q->tail++ & q->mask] = p;
	return true;
}

/* The request of the queue's head, NULL if it is no longer wanted. */
static struct rr_slot *request_of(struct test_end *t, const struct pending *p)
{
	struct rr_slot *slot = &t->flow[p->flow].slot[p->seq & (t->window - 1)];

	return slot->busy && slot->queued && slot->seq == p->seq ? slot : NULL;
}

/* Cut what the queue holds into n slots. Returns how many were filled. */
static uint32_t fill_slots(struct test_end *t, struct test_lane *tl, enum msg_kind kind,
			   struct tx_slot *s, uint32_t n, uint64_t now)
{
	const uint32_t len = t->out.len, piece = t->out.piece, wire_len = htonl(len);
	struct pending_queue *q = &tl->q;
	uint32_t k = 0;

	while (k < n && pending_any(q)) {
		struct pending *p = &q->e[q->head & q->mask];
		struct rr_slot *slot = NULL;

		if (kind == MSG_REQUEST) {
			slot = request_of(t, p);
			if (xdpath_unlikely(!slot)) {
				q->head++;
				continue;
			}
			if (p->at == 0) {
				slot->sent = now;
				slot->due = slot->due ? slot->due : now;
			}
		}
		test_head(t, &s[k], p->flow, p->seq, msg_kind_at(kind, p->at), wire_len);
		s[k].len = len - p->at < piece ? len - p->at : piece;
		p->at += s[k++].len;
		if (p->at < len)
			continue;
		if (slot)
			slot->queued = false;
		tl->n.msgs_out++;
		q->head++;
	}
	return k;
}

uint32_t test_send_pending(struct test_end *t, struct lane *l, enum msg_kind kind, uint64_t now)
{
	const struct engine_ops *ops = t->e->ops;
	struct test_lane *tl = lane_of(l);
	uint32_t each = (t->out.len + t->out.piece - 1) / t->out.piece, sent = 0;
	struct tx_slot s[LANE_BURST];

	while (pending_any(&tl->q)) {
		uint32_t want = tl->q.tail - tl->q.head, room, k;

		want = want >= LANE_BURST / each ? LANE_BURST : want * each;
		room = ops->tx_slots(l, s, want);
		if (!room)
			break;
		if (kind == MSG_REQUEST && !now)
			now = ticks_now();
		k = fill_slots(t, tl, kind, s, room, now);
		now = 0;
		ops->tx(l, s, k); /* what does not go is counted there, and asked for again */
		sent += k;
		if (room < want)
			break;
	}
	return sent;
}
