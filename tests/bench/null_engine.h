/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * An engine of nothing but memory: what one end sends, the other finds. No threads, no kernel; the
 * caller gives each end its turns. For the tests of the test's own logic, and for what it costs.
 */
#ifndef NULL_ENGINE_H
#define NULL_ENGINE_H

#include <stdlib.h>
#include <string.h>

#include "../../user/bench/test_run.h"

#define NULL_CELLS 4096U

struct null_cell {
	struct msg_hdr h;
	uint32_t len, flow;
};

struct null_end {
	struct engine e;
	struct lane lane;
	struct null_end *peer;
	struct test_spec spec;
	struct test_end *t;
	struct null_cell *ring; /* what has come for this end */
	uint32_t head, tail;
	uint32_t taken; /* of ring, given by the last rx */
	uint64_t packets_out;
	/* false: this one gets lost. NULL: none does */
	bool (*arrives)(struct null_end *from, const struct null_cell *c);
};

static inline uint32_t null_rx(struct lane *l, struct rx_slot *s)
{
	struct null_end *n = l->priv;
	uint32_t have = n->tail - n->head;

	n->taken = have < LANE_BURST ? have : LANE_BURST;
	for (uint32_t i = 0; i < n->taken; i++) {
		const struct null_cell *c = &n->ring[(n->head + i) % NULL_CELLS];

		s[i].msg = &c->h;
		s[i].len = c->len;
		s[i].flow = c->flow;
	}
	return n->taken;
}

static inline void null_rx_done(struct lane *l)
{
	struct null_end *n = l->priv;

	n->head += n->taken;
}

/* Straight into the other's ring. */
static inline uint32_t null_tx_slots(struct lane *l, struct tx_slot *s, uint32_t want)
{
	struct null_end *to = ((struct null_end *)l->priv)->peer;
	uint32_t room = NULL_CELLS - (to->tail - to->head), n = room < want ? room : want;

	for (uint32_t i = 0; i < n; i++)
		s[i].msg = &to->ring[(to->tail + i) % NULL_CELLS].h;
	return n;
}

static inline uint32_t null_tx(struct lane *l, struct tx_slot *s, uint32_t n)
{
	struct null_end *from = l->priv, *to = from->peer;
	uint32_t first = to->tail;

	for (uint32_t i = 0; i < n; i++) {
		struct null_cell *c = &to->ring[(first + i) % NULL_CELLS];

		c->len = s[i].len;
		c->flow = s[i].flow;
		if (!from->arrives) /* it is where it belongs */
			to->tail++;
		else if (from->arrives(from, c))
			to->ring[to->tail++ % NULL_CELLS] = *c;
	}
	from->packets_out += n;
	return n;
}

static inline void null_nudge(struct engine *e)
{
	(void)e;
}

static const struct engine_ops null_ops = {
	.name = "null",
	.nudge = null_nudge,
	.rx = null_rx,
	.rx_done = null_rx_done,
	.tx_slots = null_tx_slots,
	.tx = null_tx,
};

static inline int null_open_end(struct null_end *n, struct null_end *peer,
				const struct test_spec *spec, bool is_server)
{
	memset(n, 0, sizeof(*n));
	n->spec = *spec;
	n->peer = peer;
	n->ring = calloc(NULL_CELLS, sizeof(*n->ring));
	n->e.ops = &null_ops;
	n->e.path.family = AF_INET;
	n->e.path.mtu = spec->mtu ? spec->mtu : 1500;
	n->e.path.flows = spec->flows;
	n->e.path.lanes = 1;
	n->e.path.is_server = is_server;
	n->lane.e = &n->e;
	n->lane.priv = n;
	return n->ring ? test_open(&n->t, &n->e, &n->spec, 7, -1) : -1;
}

static inline void null_close_end(struct null_end *n)
{
	test_close(n->t);
	free(n->ring);
}

static inline uint32_t null_turn(struct null_end *n)
{
	return test_turn(n->t, &n->lane);
}

/* Both ends, all flows claimed. */
static inline int null_open(struct null_end *client, struct null_end *server,
			    const struct test_spec *spec)
{
	ticks_init();
	if (null_open_end(client, server, spec, false) || null_open_end(server, client, spec, true))
		return -1;
	test_set_phase(client->t, PHASE_CLAIM);
	for (int i = 0; i < 10000 && test_claimed(client->t) < spec->flows; i++) {
		null_turn(client);
		null_turn(server);
	}
	test_set_phase(client->t, PHASE_IDLE);
	null_turn(client);
	return test_claimed(client->t) == spec->flows ? 0 : -1;
}

static inline void null_close(struct null_end *client, struct null_end *server)
{
	null_close_end(client);
	null_close_end(server);
}

#endif
