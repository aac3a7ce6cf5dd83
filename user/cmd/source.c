/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * source: generate UDP frames. Here the verb and its engine xsk, which builds frames in the UMEM
 * and sends them by the datapath's workers; source_args.c reads the options, source_live.c is the
 * other engine.
 *
 * Rate and count are dealt out before the start: of n sockets, socket i sends the frames i, i + n,
 * i + 2n, ... at an n-th of the rate. So nothing is shared while it runs, the total is exact, and
 * no sequence number is sent twice.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "run.h"
#include "source.h"

#define VERB_NAME "source"

enum {
	BURST = 64,	      /* packets a round builds at most: one kick's worth in copy mode */
	TX_OFFSET = 256,      /* in the frame; a multiple of 64, or the kernel's copy gets slow */
	SLACK_NS = 100000,    /* a sleep ends late by up to so much: made up for in one burst */
	LATE_NS = 1000000000, /* frames later than this are given up */
};

/* One socket's share of the job. */
struct share {
	struct gen_pace pace;
	uint64_t seq;	   /* next frame */
	uint64_t left;	   /* frames still to send */
	uint64_t earliest; /* the next frame goes out at this time at the earliest */
} __attribute__((aligned(XDPATH_CACHELINE)));

struct job {
	const struct source *s;
	struct share *shares;
	uint32_t n;
	uint32_t unfinished; /* shares with frames left; atomic */
};

static bool is_paced(const struct share *h)
{
	return h->pace.gap || h->pace.gap_byte;
}

static uint64_t due_at(const struct share *h)
{
	return h->pace.next_ns > h->earliest ? h->pace.next_ns : h->earliest;
}

/* After a frame: when may the next one go? Only what a late sleep explains goes out at once. */
static void step(struct share *h, uint32_t size, uint64_t now)
{
	uint64_t gap = gen_pace_gap(&h->pace, size);

	if (h->earliest + SLACK_NS < now)
		h->earliest = now - SLACK_NS;
	h->earliest += gap >> (GEN_FRACTION + GEN_CATCH_UP);
	gen_pace_step(&h->pace, gap);
}

static uint32_t room_of(const struct xdpath_queue *q)
{
	return (uint32_t)q->frame_mask + 1 - TX_OFFSET;
}

static uint32_t frags_of(const struct xdpath_queue *q, uint32_t size)
{
	return (size + room_of(q) - 1) / room_of(q);
}

/* Write frame `seq` into k fragments at d; their frames are ours. All but the head is zero. */
static void build(const struct xdpath_queue *q, const struct gen_plan *p, uint64_t seq,
		  uint64_t now, struct xdp_desc *d, const uint64_t *frames, uint32_t k)
{
	uint32_t left = gen_size(p, seq);

	for (uint32_t i = 0; i < k; i++) {
		uint32_t done = 0;
		uint8_t *data;

		d[i].addr = frames[i] + TX_OFFSET;
		d[i].len = left < room_of(q) ? left : room_of(q);
		d[i].options = i + 1 < k ? XDP_PKT_CONTD : 0;
		left -= d[i].len;
		data = xdpath_data(q, &d[i]);
		if (i == 0) {
			packet_head(p, data, seq, now);
			done = GEN_HEAD;
		}
		if (d[i].len > done)
			memset(data + done, 0, d[i].len - done);
	}
}

/* Build what is due and fits, at most BURST packets. Returns packets, *n their fragments. */
static uint32_t build_due(const struct job *j, struct share *h, struct xdpath_queue *q,
			  uint64_t now, struct xdp_desc *d, uint32_t *n)
{
	const struct gen_plan *p = &j->s->plan;
	uint32_t room = xdpath_tx_room(q, BURST), packets = 0;
	uint64_t frames[XDPATH_PKT_FRAGS_MAX] = {0};

	*n = 0;
	while (packets < BURST && h->left && (!is_paced(h) || due_at(h) <= now)) {
		uint32_t size = gen_size(p, h->seq), k = frags_of(q, size);

		if (k > room - *n || *n + k > XDPATH_BURST_ROOM || k > q->frames->count)
			break;
		xdpath_frame_get(q->frames, frames, k);
		build(q, p, h->seq, now, d + *n, frames, k);
		*n += k;
		packets++;
		h->seq += j->n;
		h->left--;
		if (is_paced(h))
			step(h, size, now);
	}
	return packets;
}

static uint32_t source_round(void *ctx, struct xdpath_worker *w, uint32_t i)
{
	struct run *r = ctx;
	struct job *j = r->priv;
	struct share *h = (struct share *)((struct app_counters *)w->app)->priv + i;
	struct xdpath_queue *q = &w->sockets[i]->q;
	struct xdp_desc d[XDPATH_BURST_ROOM];
	uint32_t packets, n;
	uint64_t now;

	if (!h->left || w->stopping)
		return 0;
	now = xdpath_now_ns();
	if (is_paced(h)) {
		if (h->pace.next_ns + LATE_NS < now)
			h->pace.next_ns = now - LATE_NS;
		if (due_at(h) > now) {
			if (!w->wake_at_ns || due_at(h) < w->wake_at_ns)
				w->wake_at_ns = due_at(h);
			return 0;
		}
	}
	packets = build_due(j, h, q, now, d, &n);
	xdpath_tx_burst(q, d, n); /* takes all: there is room */
	if (!h->left && __atomic_sub_fetch(&j->unfinished, 1, __ATOMIC_RELAXED) == 0)
		run_finish(r);
	return packets;
}

static int check_fragments(const struct run *r, const struct xdpath_socket *s, uint32_t size)
{
	uint32_t k = frags_of(&s->q, size), most = s->multi_frag ? s->q.tx_max_frags : 1;

	if (k <= most)
		return EXIT_DONE;
	return fail(
		r->verb, EXIT_MISSING,
		"%s: frames of %u bytes need %u fragments of %u bytes, and %u can be sent in this "
		"mode; give a smaller --size, or --mode copy",
		s->ifname, size, k, room_of(&s->q), most);
}

static void deal_out(struct job *j, uint64_t count)
{
	const struct gen_pace *all = &j->s->pace;
	uint64_t start = xdpath_now_ns();

	for (uint32_t i = 0; i < j->n; i++) {
		struct share *h = &j->shares[i];

		/* One after the other, not all at once. */
		h->pace.next_ns = start + (all->gap >> GEN_FRACTION) * i;
		h->pace.gap = all->gap * j->n;
		h->pace.gap_byte = all->gap_byte * j->n;
		h->seq = i;
		h->left = count ? count / j->n + (i < count % j->n) : UINT64_MAX;
		j->unfinished += h->left != 0;
	}
}

/* The sockets are open: deal out the job. */
static int prepare(struct run *r)
{
	struct job *j = r->priv;
	const struct xdpath_worker *w;
	uint32_t n = 0;
	int code;

	for (uint32_t i = 0; (w = xdpath_datapath_worker(r->dp, i)); i++)
		for (uint32_t k = 0; k < w->nsockets; k++, j->n++) {
			code = check_fragments(r, w->sockets[k], j->s->plan.size_longest);
			if (code)
				return code;
		}
	j->shares = aligned_alloc(XDPATH_CACHELINE, j->n * sizeof(*j->shares));
	if (!j->shares)
		return fail(r->verb, EXIT_FAILED,
			    "no memory for the sockets' shares; free some and try again");
	memset(j->shares, 0, j->n * sizeof(*j->shares));
	deal_out(j, r->a->count);
	for (uint32_t i = 0; (w = xdpath_datapath_worker(r->dp, i)); i++) {
		r->app[i].priv = &j->shares[n];
		n += w->nsockets;
	}
	return EXIT_DONE;
}

static int source_xsk(const struct source *s)
{
	struct job j = {.s = s};
	char text[300];
	struct run r;
	int code;

	source_describe(s, text, sizeof(text));
	run_init(&r, VERB_NAME, s->args);
	r.o.no_prog = true;
	r.o.no_rx = true;
	r.round = source_round;
	r.prepare = prepare;
	r.note = text;
	r.engine = "xsk";
	r.priv = &j;
	code = run_datapath(&r);
	free(j.shares);
	return code;
}

int cmd_source(const struct args *a)
{
	struct source s;
	int code = source_parse(&s, a);

	if (code)
		return code;
	return a->engine == ENGINE_LIVE ? source_live(&s) : source_xsk(&s);
}
