/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* sink: count frames and release them; --touch reads every byte first, as an application would. */
#include <string.h>

#include "run.h"

/* The sum is asked for, so that the reads cannot be left out. */
static uint64_t touch(const struct xdpath_queue *q, const struct xdp_desc *d, uint32_t n)
{
	uint64_t sum = 0, word;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *p = xdpath_data(q, &d[i]);
		uint32_t at = 0;

		for (; at + sizeof(word) <= d[i].len; at += sizeof(word)) {
			memcpy(&word, p + at, sizeof(word));
			sum += word;
		}
		for (; at < d[i].len; at++)
			sum += p[at];
	}
	return sum;
}

struct sink {
	uint64_t left;	/* with --count: packets not yet claimed by a worker */
	uint64_t taken; /* ... and those counted */
};

/* With --count: how many packets of this burst are still wanted. Not on the path without it. */
static uint32_t claim(struct sink *s, uint32_t want)
{
	uint64_t left = __atomic_load_n(&s->left, __ATOMIC_RELAXED), take;

	do {
		take = left < want ? left : want;
	} while (take && !__atomic_compare_exchange_n(&s->left, &left, left - take, true,
						      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return (uint32_t)take;
}

/* A claim may bring fewer packets than fragments, or none: the rest goes back. */
static void settle(struct run *r, struct sink *s, uint32_t claimed, uint32_t got)
{
	if (got < claimed)
		__atomic_fetch_add(&s->left, claimed - got, __ATOMIC_RELAXED);
	if (got && __atomic_add_fetch(&s->taken, got, __ATOMIC_RELAXED) == r->a->count)
		run_finish(r);
}

static uint32_t count_packets(const struct xdp_desc *d, uint32_t n)
{
	uint32_t packets = 0;

	for (uint32_t i = 0; i < n; i++)
		packets += !(d[i].options & XDP_PKT_CONTD);
	return packets;
}

static uint32_t sink_round(void *ctx, struct xdpath_worker *w, uint32_t i)
{
	struct run *r = ctx;
	struct sink *s = r->priv;
	struct xdpath_queue *q = &w->sockets[i]->q;
	struct xdp_desc burst[XDPATH_BURST_ROOM];
	uint32_t n, want = w->batch;

	if (r->a->count) {
		want = xdpath_cons_avail(&q->rx, 1) ? claim(s, want) : 0;
		if (!want)
			return 0;
	}
	n = xdpath_rx_burst(q, burst, want);
	if (r->a->count)
		settle(r, s, want, count_packets(burst, n));
	if (r->a->touch && n)
		__asm__ volatile("" : : "r"(touch(q, burst, n)));
	xdpath_release(q, burst, n);
	return n;
}

int cmd_sink(const struct args *a)
{
	struct sink s = {.left = a->count};
	struct run r;
	int code = run_needs_steering("sink", a);

	if (code)
		return code;
	run_init(&r, "sink", a);
	r.o.no_tx = true;
	r.round = sink_round;
	r.priv = &s;
	return run_datapath(&r);
}
