/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The hot round of forward and reflect. Frames go from the RX ring of a port to a TX ring on the
 * same UMEM; their bytes stay where they are.
 *
 * A full egress leaves packets in the RX ring, where the kernel counts what does not fit, for up to
 * tx.stall_us; then they are taken and dropped, counted, so that one blocked direction cannot block
 * the other for ever.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "relay.h"

/* Since when the egress of each of a worker's sockets takes nothing; 0 while it does. */
struct stall {
	uint64_t since_ns[XDPATH_POLLER_SOCKETS_MAX];
};

/* The egress is full: try to make room, and say whether it has been full for too long. */
static bool stalled(const struct run *r, struct stall *st, uint32_t i, struct xdpath_socket *out)
{
	uint64_t now;

	xdpath_socket_kick(out);
	xdpath_reap(&out->q, out->q.comp.size);
	if (xdpath_tx_room(&out->q, XDPATH_PKT_FRAGS_MAX) >= XDPATH_PKT_FRAGS_MAX)
		return false;
	now = xdpath_now_ns();
	if (!st->since_ns[i])
		st->since_ns[i] = now;
	return now - st->since_ns[i] >= r->a->knobs.tx_stall_us * 1000ULL;
}

static uint32_t drop(const struct run *r, struct xdpath_worker *w, uint32_t i,
		     struct xdp_desc *burst)
{
	struct app_counters *app = w->app;
	uint32_t egress = r->o.nports == 2 ? 1 - w->port[i] : w->port[i];
	struct xdpath_queue *q = &w->sockets[i]->q;
	uint32_t n = xdpath_rx_burst(q, burst, w->batch), packets = 0, frags;

	xdpath_for_each_packet (p, frags, burst, n)
		packets++;
	xdpath_release(q, burst, n);
	xdpath_count(&app->tx_stall[egress], packets);
	return packets;
}

/*
 * The kick copies from each frame in turn and waits for each one's first line: asked for here and
 * loaded before the kick, burst by burst, those misses overlap. Over veth, 64 bytes, TSC cycles a
 * frame, kick and user code: without 970 + 35, with the loads alone 680 + 69, with both 670 + 57. A
 * prefetch alone changes nothing.
 */
static void ask_for_first_lines(const struct xdpath_queue *q, const struct xdp_desc *d, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(xdpath_data(q, &d[i]), 0, 3);
}

static void load_first_lines(const struct xdpath_queue *q, const struct xdp_desc *d, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		__asm__ volatile("" : : "r"(*(const uint8_t *)xdpath_data(q, &d[i])));
}

uint32_t relay(const struct run *r, struct xdpath_worker *w, uint32_t i, relay_change_fn change)
{
	struct app_counters *app = w->app;
	struct stall *st = app->priv;
	struct xdpath_socket *in = w->sockets[i], *out = w->peer[i];
	struct xdp_desc burst[XDPATH_BURST_ROOM];
	uint32_t want = w->batch, room = xdpath_tx_room(&out->q, want + XDPATH_PKT_FRAGS_MAX), n;

	if (xdpath_unlikely(room < XDPATH_PKT_FRAGS_MAX)) {
		if (xdpath_cons_avail(&in->q.rx, 1) == 0)
			return 0;
		if (stalled(r, st, i, out))
			return drop(r, w, i, burst);
		return 0;
	}
	st->since_ns[i] = 0;
	/* the last packet of a burst may bring up to 17 fragments more than asked for */
	if (xdpath_unlikely(room < want + XDPATH_PKT_FRAGS_MAX))
		want = room > XDPATH_PKT_FRAGS_MAX ? room - XDPATH_PKT_FRAGS_MAX : 1;
	n = xdpath_rx_burst(&in->q, burst, want);
	if (n == 0)
		return 0;
	if (change)
		change(&in->q, burst, n);
	else
		ask_for_first_lines(&in->q, burst, n);
	xdpath_tx_burst(&out->q, burst, n);
	if (!change)
		load_first_lines(&in->q, burst, n);
	return n;
}

int relay_prepare(struct run *r)
{
	for (uint32_t i = 0; i < r->nworkers; i++) {
		r->app[i].priv = calloc(1, sizeof(struct stall));
		if (!r->app[i].priv)
			return fail(r->verb, EXIT_FAILED,
				    "no memory for the workers; free some and try again");
	}
	return 0;
}

void relay_finish(struct run *r)
{
	for (uint32_t i = 0; i < r->nworkers; i++)
		free(r->app[i].priv);
}
