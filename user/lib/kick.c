/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The system calls of a running socket: have TX sent, have RX refilled, ask for statistics. Called
 * by the worker that owns the socket (statistics: by anyone).
 */
#include <errno.h>
#include <sys/socket.h>

#include "internal.h"

#define STUCK_NS      100000000ULL  /* no completion for so long: kick again */
#define STUCK_MOST_NS 1000000000ULL /* the longest wait between two such kicks */

/*
 * One sendto(). The kernel's answers, as measured: EAGAIN, the budget is used up or the device is
 * busy; EBUSY, the device dropped one packet, which is consumed and completed; EINVAL, the
 * descriptor at the ring's head can never be sent and blocks all others.
 */
static int kick_once(struct xdpath_socket *s)
{
	ssize_t r = sendto(s->fd, NULL, 0, MSG_DONTWAIT, NULL, 0);

	xdpath_count(&s->c.tx_kicks, 1);
	if (r >= 0)
		return 0;
	switch (errno) {
	case EINTR: return 0;
	case EAGAIN: xdpath_count(&s->c.tx_again, 1); return 0;
	case EBUSY: xdpath_count(&s->c.tx_dropped, 1); return 0;
	case ENOBUFS: xdpath_count(&s->c.tx_no_buffer, 1); return -EAGAIN;
	case ENETDOWN: return -ENETDOWN; /* may come up again */
	default: s->fatal = -errno; return s->fatal;
	}
}

static int kick_copy(struct xdpath_socket *s)
{
	struct xdpath_queue *q = &s->q;
	uint32_t pending = xdpath_prod_pending(&q->tx), before;
	uint32_t bound = pending + 16; /* each call takes at least one, or we stop */
	int err, idle = 0;

	q->tx_unkicked = pending;
	while (pending && bound--) {
		before = pending;
		err = kick_once(s);
		pending = xdpath_prod_pending(&q->tx);
		q->tx_unkicked = pending;
		if (err)
			return err;
		if (pending != before || xdpath_reap(q, q->comp.size))
			idle = 0;
		else if (++idle == 2) /* kernels before 6.18 show progress one call late */
			break; /* no room for completions was not the cause: the device is busy */
	}
	return pending ? -EAGAIN : 0;
}

int xdpath_socket_kick(struct xdpath_socket *s)
{
	if (xdpath_unlikely(s->fatal))
		return s->fatal;
	if (s->mode != XDPATH_MODE_ZEROCOPY)
		return kick_copy(s);
	s->q.tx_unkicked = 0;
	/* Published, then looked at: one that spins or drains has no last look before a sleep. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (xdpath_prod_pending(&s->q.tx) == 0 || !xdpath_prod_need_wakeup(&s->q.tx))
		return 0;
	return kick_once(s);
}

void xdpath_socket_kick_rx(struct xdpath_socket *s)
{
	recvfrom(s->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
	xdpath_count(&s->c.rx_kicks, 1);
}

static void publish_stuck(struct xdpath_tx_watch *w, uint64_t ns, uint64_t frames)
{
	__atomic_store_n(&w->frames, frames, __ATOMIC_RELAXED);
	__atomic_store_n(&w->stuck_ns, ns, __ATOMIC_RELAXED);
}

/* An error of the socket itself is kept in s->fatal, as with every kick. */
static void kick_stuck(struct xdpath_socket *s)
{
	if (s->fatal)
		return;
	kick_once(s);
	if (s->mode == XDPATH_MODE_ZEROCOPY) /* one NAPI may serve both ways */
		xdpath_socket_kick_rx(s);
	xdpath_count(&s->c.tx_stuck_kicks, 1);
}

void xdpath_socket_watch_tx(struct xdpath_socket *s, uint64_t now_ns)
{
	struct xdpath_tx_watch *w = &s->watch;
	uint64_t completed = s->q.n.tx_completed, gap;

	if (!s->q.tx_outstanding || !w->since_ns || w->link_down || completed != w->completed) {
		w->completed = completed;
		w->since_ns = s->q.tx_outstanding ? now_ns : 0;
		w->next_ns = now_ns + STUCK_NS;
		w->kicks = 0;
		if (w->stuck_ns)
			publish_stuck(w, 0, 0);
		return;
	}
	if (now_ns < w->next_ns)
		return;
	kick_stuck(s);
	/* the first four soon, then ever more rarely; the fifth step is past the most */
	gap = STUCK_NS << (w->kicks < 16 ? w->kicks / 4 : 4);
	w->kicks++;
	w->next_ns = now_ns + (gap < STUCK_MOST_NS ? gap : STUCK_MOST_NS);
	publish_stuck(w, now_ns - w->since_ns, s->q.tx_outstanding);
}

int xdpath_socket_stats(const struct xdpath_socket *s, struct xdpath_socket_stats *out)
{
	struct xdp_statistics st = {0};
	socklen_t len = sizeof(st); /* older kernels fill only the first 24 bytes */

	if (getsockopt(s->fd, SOL_XDP, XDP_STATISTICS, &st, &len) < 0)
		return -errno;
	*out = (struct xdpath_socket_stats){
		.rx_dropped = st.rx_dropped,
		.rx_invalid_descs = st.rx_invalid_descs,
		.tx_invalid_descs = st.tx_invalid_descs,
		.rx_ring_full = st.rx_ring_full,
		.rx_fill_empty = st.rx_fill_ring_empty_descs,
		.tx_idle_looks = st.tx_ring_empty_descs,
	};
	return 0;
}
