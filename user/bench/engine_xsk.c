/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Our rings. A datapath on the device takes the test's own flows by a rule; the kernel keeps all
 * else. A lane is one of its workers with all that worker's queues; a flow's datagrams go out on
 * the queue where they come in. The worker reaps, refills and kicks; here frames are read and
 * built.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_common.h"
#include "internal.h"

enum {
	TX_OFFSET = 256, /* in the frame; a multiple of 64, or the kernel's copy gets slow */
	RX_ROOM = LANE_BURST + XDPATH_PKT_FRAGS_MAX,
};

/* What one socket gave in this burst: part of the array, to be given back to it. */
struct rx_part {
	uint32_t socket, from, n;
};

struct xsk_lane {
	struct lane_counters n;
	struct xdpath_worker *w;
	struct xdp_desc rx[RX_ROOM];
	struct rx_part part[LANE_BURST];
	uint32_t nparts, first; /* first: the socket to look at first, in turn */
	uint64_t given[LANE_BURST];
	uint32_t ngiven;
	uint16_t *socket; /* of each flow; NULL: there is but one */
} __attribute__((aligned(XDPATH_CACHELINE)));

struct xsk {
	struct xdpath_datapath *dp;
	struct xdpath_rules rules;
	struct flow_head *heads;
	struct xsk_lane *lane;
	int *hold;
	uint32_t nhold;
	uint32_t room;	/* bytes of a frame that a datagram may have */
	uint32_t frags; /* of the longest datagram */
	uint32_t (*turn)(void *ctx, struct lane *l);
	void *ctx;
};

static struct xsk *xsk_of(const struct engine *e)
{
	return e->priv;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int make_rules(const struct engine_path *p, struct xdpath_rules *rules,
		      struct xdpath_diag *d)
{
	char from[INET6_ADDRSTRLEN], text[200];
	struct xdpath_rule r;
	int err;

	inet_ntop(p->family, &p->remote, from, sizeof(from));
	if (p->is_server)
		snprintf(text, sizeof(text), "proto udp src %s dport %u action xsk", from,
			 p->server_port);
	else
		snprintf(text, sizeof(text), "proto udp src %s sport %u dport %u-%u action xsk",
			 from, p->server_port, p->client_base, p->client_base + p->flows - 1);
	err = xdpath_rule_parse(&r, text, d);
	if (err)
		return err;
	err = xdpath_rules_add(rules, &r, d);
	if (err)
		xdpath_rule_clear(&r);
	return err;
}

static int open_datapath(struct engine *e, struct xdpath_diag *d)
{
	struct xdpath_datapath_opts o = XDPATH_OPTS_INIT(struct xdpath_datapath_opts);
	struct xsk *x = xsk_of(e);
	struct xdpath_diag degraded = {0};
	int err = make_rules(&e->path, &x->rules, d);

	if (err)
		return err;
	o.ports[0] = e->path.dev;
	o.nports = 1;
	o.mode = e->mode;
	o.worst = e->worst;
	o.rules = &x->rules;
	o.workers = e->path.lanes;
	o.cpus = e->cpus && CPU_COUNT(e->cpus) ? e->cpus : NULL;
	o.knobs = e->knobs;
	o.who = "bench";
	o.diag = &degraded;
	err = xdpath_datapath_open(&x->dp, &o);
	if (err) {
		*d = degraded;
		return err;
	}
	e->mode_name = xdpath_mode_name(xdpath_datapath_mode(x->dp));
	if (degraded.reason != XDPATH_R_NONE)
		snprintf(e->mode_why, sizeof(e->mode_why), "%s", degraded.text);
	e->event_fd = xdpath_datapath_event_fd(x->dp);
	return 0;
}

static int open_lane(struct engine *e, uint32_t i, struct xdpath_diag *d)
{
	struct xsk *x = xsk_of(e);
	struct xsk_lane *xl = &x->lane[i];

	e->lane[i].priv = xl;
	xl->w = xdpath_datapath_worker(x->dp, i);
	xl->w->app = &e->lane[i];
	if (xl->w->nsockets > LANE_BURST)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "%s: %u queues for one worker; use more --workers", e->path.dev,
				   xl->w->nsockets);
	if (xl->w->nsockets > 1) {
		xl->socket = lines_alloc(e->path.flows * sizeof(*xl->socket));
		if (!xl->socket)
			return -ENOMEM;
		for (uint32_t f = 0; f < e->path.flows; f++)
			xl->socket[f] = (uint16_t)(f / e->path.lanes % xl->w->nsockets);
	}
	for (uint32_t k = 0; k < xl->w->nsockets; k++) {
		const struct xdpath_socket *s = xl->w->sockets[k];
		uint32_t most = s->multi_frag ? s->q.tx_max_frags : 1;

		x->room = (uint32_t)s->q.frame_mask + 1 - TX_OFFSET;
		x->frags = (e->path.mtu + ETH_BYTES + x->room - 1) / x->room;
		if (x->frags > most)
			return xdpath_fail(d, XDPATH_R_NO_FRAGMENTS, EOPNOTSUPP,
					   "%s: datagrams of %u bytes need %u fragments, and %u "
					   "can be sent in "
					   "this mode; give a smaller --mtu, or --mode copy",
					   e->path.dev, e->path.mtu, x->frags, most);
	}
	return 0;
}

static void xsk_close(struct engine *e)
{
	struct xsk *x = xsk_of(e);

	if (x) {
		xdpath_datapath_close(x->dp);
		xdpath_rules_clear(&x->rules);
		ports_release(x->hold, x->nhold);
		for (uint32_t i = 0; x->lane && i < e->path.lanes; i++)
			free(x->lane[i].socket);
		free(x->lane);
		free(x->heads);
	}
	free(x);
	free(e->lane);
	e->priv = NULL;
	e->lane = NULL;
	e->event_fd = -1;
}

static int xsk_open(struct engine *e, struct xdpath_diag *d)
{
	struct xsk *x = e->priv = calloc(1, sizeof(*x));
	int err = -ENOMEM;

	if (x && lanes_alloc(e)) {
		x->heads = heads_make(&e->path);
		x->lane = lines_alloc(e->path.lanes * sizeof(*x->lane));
		if (x->heads && x->lane)
			err = ports_hold(&e->path, &x->hold, &x->nhold, d);
		if (!err)
			err = open_datapath(e, d);
		for (uint32_t i = 0; !err && i < e->path.lanes; i++)
			err = open_lane(e, i, d);
	}
	if (!err)
		return 0;
	if (!d->text[0])
		xdpath_fail(d, XDPATH_R_MEMORY, -err, "%s: setting up the rings: %s; free memory",
			    e->path.dev, strerror(-err));
	xsk_close(e);
	return err;
}

/* ---- running -------------------------------------------------------------------------------- */

/* The datapath calls for each socket; a lane's turn is for all of them, once they are reaped. */
static uint32_t xsk_round(void *ctx, struct xdpath_worker *w, uint32_t i)
{
	const struct xsk *x = ctx;
	struct lane *l = w->app;
	uint32_t n;

	if (i + 1 < w->nsockets || xdpath_unlikely(w->stopping))
		return 0;
	n = x->turn(x->ctx, l);
	w->wake_at_ns = l->wake_at_ns;
	return n;
}

static uint32_t parse_part(struct lane *l, const struct rx_part *part, struct rx_slot *s,
			   uint64_t *bytes, uint64_t *other)
{
	const struct engine_path *p = &l->e->path;
	struct xsk_lane *x = l->priv;
	const struct xdpath_queue *q = &x->w->sockets[part->socket]->q;
	uint32_t frags, n = 0;

	xdpath_for_each_packet (d, frags, x->rx + part->from, part->n) {
		uint32_t len = frags == 1 ? d->len : xdpath_pkt_len(d, frags);

		if (xdpath_unlikely(!heads_parse(p, xdpath_data(q, d), d->len, len, &s[n]))) {
			++*other;
			continue;
		}
		*bytes += len;
		if (x->socket)
			x->socket[s[n].flow] = (uint16_t)part->socket;
		n++;
	}
	return n;
}

static uint32_t xsk_rx(struct lane *l, struct rx_slot *s)
{
	struct xsk_lane *x = l->priv;
	uint32_t at = 0, n = 0, k = x->first;
	uint64_t bytes = 0, other = 0;

	x->nparts = 0;
	for (uint32_t i = 0; i < x->w->nsockets && at < LANE_BURST; i++) {
		struct rx_part *part = &x->part[x->nparts];

		part->socket = k;
		part->from = at;
		part->n = xdpath_rx_burst(&x->w->sockets[k]->q, x->rx + at, LANE_BURST - at);
		k = k + 1 < x->w->nsockets ? k + 1 : 0;
		if (!part->n)
			continue;
		at += part->n;
		x->nparts++;
		n += parse_part(l, part, s + n, &bytes, &other);
	}
	x->first = k;
	if (!at)
		return 0;
	xdpath_count(&x->n.packets_in, n);
	xdpath_count(&x->n.bytes_in, bytes);
	xdpath_count(&x->n.rx_other, other);
	if (!n) /* nothing for the test: it does not call rx_done */
		l->e->ops->rx_done(l);
	return n;
}

static void xsk_rx_done(struct lane *l)
{
	struct xsk_lane *x = l->priv;

	for (uint32_t i = 0; i < x->nparts; i++)
		xdpath_release(&x->w->sockets[x->part[i].socket]->q, x->rx + x->part[i].from,
			       x->part[i].n);
	x->nparts = 0;
}

static uint32_t xsk_tx_slots(struct lane *l, struct tx_slot *s, uint32_t n)
{
	const struct xsk *all = xsk_of(l->e);
	struct xsk_lane *x = l->priv;
	uint32_t heads = heads_len(&l->e->path);
	uint8_t *umem = x->w->sockets[0]->q.umem;

	/* whichever queue the flows want, it has room */
	for (uint32_t k = 0; k < x->w->nsockets; k++) {
		uint32_t room = xdpath_tx_room(&x->w->sockets[k]->q, n * all->frags) / all->frags;

		n = room < n ? room : n;
	}
	x->ngiven = xdpath_frame_get(x->w->frames, x->given, n);
	for (uint32_t i = 0; i < x->ngiven; i++)
		s[i].msg = (struct msg_hdr *)(umem + x->given[i] + TX_OFFSET + heads);
	return x->ngiven;
}

/* The frame of slot i as descriptors, more frames taken where it is long. 0: no frames left. */
static uint32_t build(struct lane *l, const struct tx_slot *s, uint32_t i, struct xdp_desc *d)
{
	const struct xsk *all = xsk_of(l->e);
	const struct engine_path *p = &l->e->path;
	struct xsk_lane *x = l->priv;
	uint8_t *umem = x->w->sockets[0]->q.umem, *frame = umem + x->given[i] + TX_OFFSET;
	uint32_t done = heads_len(p) + (uint32_t)sizeof(struct msg_hdr), len = done + s->len,
		 k = (len + all->room - 1) / all->room;
	uint64_t more[XDPATH_PKT_FRAGS_MAX];

	if (k > 1 && xdpath_frame_get(x->w->frames, more, k - 1) < k - 1)
		k = 1; /* less than it says: the receiver drops it, and counts */
	for (uint32_t j = 0; j < k; j++) {
		d[j].addr = (j ? more[j - 1] : x->given[i]) + TX_OFFSET;
		d[j].len = len < all->room ? len : all->room;
		d[j].options = j + 1 < k ? XDP_PKT_CONTD : 0;
		len -= d[j].len;
		/* a sum that must be right is that of zeros; without one nobody reads them */
		if (p->family == AF_INET6 && d[j].len > done)
			memset(umem + d[j].addr + done, 0, d[j].len - done);
		done = 0;
	}
	heads_write(p, &all->heads[s->flow], frame, s->len);
	return k;
}

static uint32_t xsk_tx(struct lane *l, struct tx_slot *s, uint32_t n)
{
	struct xsk_lane *x = l->priv;
	struct xdp_desc d[LANE_BURST + XDPATH_PKT_FRAGS_MAX];
	uint32_t nd = 0, at = 0;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t to = x->socket ? x->socket[s[i].flow] : 0;

		if (nd && (to != at || nd >= LANE_BURST)) {
			xdpath_tx_burst(&x->w->sockets[at]->q, d, nd); /* there is room */
			nd = 0;
		}
		at = to;
		nd += build(l, &s[i], i, d + nd);
		bytes += heads_len(&l->e->path) + sizeof(struct msg_hdr) + s[i].len;
	}
	if (nd)
		xdpath_tx_burst(&x->w->sockets[at]->q, d, nd);
	for (uint32_t i = n; i < x->ngiven; i++) {
		struct xdp_desc unused = {.addr = x->given[i]};

		xdpath_release(&x->w->sockets[0]->q, &unused, 1);
	}
	x->ngiven = 0;
	xdpath_count(&x->n.packets_out, n);
	xdpath_count(&x->n.bytes_out, bytes);
	return n;
}

static int xsk_start(struct engine *e, uint32_t (*turn)(void *ctx, struct lane *l), void *ctx)
{
	struct xsk *x = xsk_of(e);

	x->turn = turn;
	x->ctx = ctx;
	return xdpath_datapath_start(x->dp, xsk_round, x);
}

static void xsk_nudge(struct engine *e)
{
	xdpath_datapath_nudge(xsk_of(e)->dp);
}

static void xsk_stop(struct engine *e)
{
	xdpath_datapath_stop(xsk_of(e)->dp);
}

static void add_socket(const struct xdpath_socket *s, struct test_side *add)
{
	const struct xdpath_queue_counters *n = &s->q.n;
	struct xdpath_socket_stats st = {0};
	uint64_t kicks = xdpath_counted(&s->c.tx_kicks) + xdpath_counted(&s->c.tx_stuck_kicks);

	add->tx_kicks += kicks;
	add->rx_kicks += xdpath_counted(&s->c.rx_kicks);
	add->syscalls += kicks + xdpath_counted(&s->c.rx_kicks);
	add->lost.tx_dropped += xdpath_counted(&s->c.tx_dropped) + xdpath_counted(&n->tx_invalid) +
				xdpath_counted(&n->tx_too_big) + xdpath_counted(&n->tx_too_short);
	add->lost.rx_other += xdpath_counted(&n->rx_refused);
	add->sock_recv += (uint64_t)s->q.rx.size * (s->q.frame_mask + 1);
	add->sock_send += (uint64_t)s->q.tx.size * (s->q.frame_mask + 1);
	if (xdpath_socket_stats(s, &st))
		return;
	add->lost.rx_ring_full += st.rx_ring_full;
	add->lost.rx_no_frame += st.rx_dropped;
}

static void xsk_totals(const struct engine *e, struct test_side *add)
{
	const struct xsk *x = xsk_of(e);
	const struct xdpath_worker *w;

	for (uint32_t i = 0; (w = xdpath_datapath_worker(x->dp, i)); i++) {
		uint64_t sleeps = xdpath_counted(&w->poller.sleeps);

		counters_add(&x->lane[i].n, add);
		add->sleeps += sleeps;
		add->syscalls += sleeps;
		for (uint32_t k = 0; k < w->nsockets; k++)
			add_socket(w->sockets[k], add);
	}
}

const struct engine_ops engine_xsk = {
	.name = "xsk",
	.open = xsk_open,
	.start = xsk_start,
	.nudge = xsk_nudge,
	.stop = xsk_stop,
	.close = xsk_close,
	.totals = xsk_totals,
	.rx = xsk_rx,
	.rx_done = xsk_rx_done,
	.tx_slots = xsk_tx_slots,
	.tx = xsk_tx,
};
