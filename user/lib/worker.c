/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The threads of a datapath. Each owns its sockets and its frame cache; nothing hot is shared.
 * A pass: for each socket reap, the application's round, refill; then kick what is worth it; wait
 * when nothing was there.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define THIN	 16U /* a pass below this sends at once what it gathered */
#define GATHER	 32U /* a kick's fixed cost is 2 % of 32 frames */
#define DRAIN_MS 200U
#define WATCH	 1024U /* passes between two looks at TX that may stand still */

#define DRAIN_MOST_MS 2000U /* should an XSKMAP that is not ours go on feeding us */

struct drain {
	uint64_t idle_end_ms, end_ms;
};

static uint32_t pass(struct xdpath_worker *w, xdpath_round_fn round, void *ctx)
{
	uint32_t got = 0;

	w->wake_at_ns = 0;
	for (uint32_t i = 0; i < w->nsockets; i++) {
		struct xdpath_socket *s = w->sockets[i];

		if (s->q.tx_outstanding)
			xdpath_reap(&s->q, s->q.comp.size);
		got += round(ctx, w, i);
		xdpath_refill(&s->q);
		if (s->mode == XDPATH_MODE_ZEROCOPY && xdpath_prod_need_wakeup(&s->q.fill) &&
		    s->q.frames->count)
			xdpath_socket_kick_rx(s);
	}
	for (uint32_t i = 0; i < w->nsockets; i++) {
		struct xdpath_socket *s = w->sockets[i];

		if (s->q.tx_unkicked && (got < THIN || s->q.tx_unkicked >= GATHER))
			xdpath_socket_kick(s);
	}
	xdpath_count(&w->rounds, 1);
	return got;
}

static void take_over_live(struct xdpath_worker *w, uint32_t generation)
{
	w->seen = generation;
	for (uint32_t i = 0; i < w->nsockets; i++) {
		w->sockets[i]->q.tx_max_len =
			__atomic_load_n(&w->dp->live_mtu[w->port[i]], __ATOMIC_RELAXED) +
			XDPATH_ETH_MIN;
		w->sockets[i]->watch.link_down =
			!__atomic_load_n(&w->dp->live_link[w->port[i]], __ATOMIC_RELAXED);
	}
}

/* A worker that never sleeps looks here; one that does, before it sleeps. */
static void watch_tx(struct xdpath_worker *w)
{
	uint64_t now = 0;

	for (uint32_t i = 0; i < w->nsockets; i++) {
		if (!w->sockets[i]->q.tx_outstanding)
			continue;
		now = now ? now : xdpath_now_ns();
		xdpath_socket_watch_tx(w->sockets[i], now);
	}
}

static int first_fatal(const struct xdpath_worker *w)
{
	for (uint32_t i = 0; i < w->nsockets; i++)
		if (w->sockets[i]->fatal)
			return w->sockets[i]->fatal;
	return 0;
}

static bool all_sent(const struct xdpath_worker *w)
{
	for (uint32_t i = 0; i < w->nsockets; i++)
		if (w->sockets[i]->q.tx_outstanding && !w->sockets[i]->fatal)
			return false;
	return true;
}

/*
 * After a stop is asked for: finish what is in the rings. Nothing new comes in, so whoever still
 * makes progress may go on, however slow the machine; who makes none has DRAIN_MS.
 */
static bool drained(struct xdpath_worker *w, uint32_t got, struct drain *d)
{
	uint64_t now;

	if (got == 0 && w->stopping && all_sent(w))
		return true;
	now = xdpath_now_ms();
	if (!w->stopping)
		d->end_ms = now + DRAIN_MOST_MS;
	if (!w->stopping || got)
		d->idle_end_ms = now + DRAIN_MS;
	w->stopping = true;
	return now >= d->idle_end_ms || now >= d->end_ms;
}

static void *worker_main(void *arg)
{
	struct xdpath_worker *w = arg;
	struct xdpath_datapath *dp = w->dp;
	struct drain drain = {0};
	uint64_t one = 1;
	uint32_t got, generation;

	prctl(PR_SET_TIMERSLACK, 1UL); /* a timed sleep ends when it was asked to */
	for (;;) {
		generation = xdpath_load_acquire(&dp->generation);
		if (xdpath_unlikely(generation != w->seen))
			take_over_live(w, generation);
		got = pass(w, dp->round, dp->ctx);
		if (xdpath_unlikely(w->rounds % WATCH == 0)) {
			watch_tx(w);
			w->error = first_fatal(w); /* others may never leave it idle */
			if (w->error)
				break;
		}
		if (__atomic_load_n(&dp->stop, __ATOMIC_ACQUIRE)) {
			if (drained(w, got, &drain))
				break;
			continue;
		}
		if (got == 0) {
			w->error = xdpath_poller_wait(&w->poller, w->wake_at_ns);
			if (!w->error)
				w->error = first_fatal(w);
			if (w->error)
				break;
		}
	}
	if (w->error && write(dp->event_fd, &one, sizeof(one)) < 0)
		w->error = -errno;
	return NULL;
}

int xdpath_thread_pin(const cpu_set_t *cpus, uint32_t id, pthread_attr_t *attr)
{
	int n = cpus ? CPU_COUNT(cpus) : 0, skip;
	cpu_set_t one;

	if (n == 0)
		return 0;
	skip = (int)(id % (uint32_t)n);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, cpus) && skip-- == 0) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			return -pthread_attr_setaffinity_np(attr, sizeof(one), &one);
		}
	return -EINVAL;
}

int xdpath_workers_start(struct xdpath_datapath *dp)
{
	pthread_attr_t attr;
	char name[24]; /* 15 characters at most are taken; ids are below 512 */
	int err = 0;

	for (dp->running = 0; !err && dp->running < dp->nworkers;) {
		uint32_t id = dp->running;

		pthread_attr_init(&attr);
		err = xdpath_thread_pin(&dp->cpus, id, &attr);
		if (!err)
			err = -pthread_create(&dp->thread[id], &attr, worker_main, &dp->worker[id]);
		pthread_attr_destroy(&attr);
		if (err)
			break;
		snprintf(name, sizeof(name), "xdpath-w%u", id);
		pthread_setname_np(dp->thread[id], name);
		dp->running++;
	}
	if (err)
		xdpath_workers_stop(dp);
	return err;
}

void xdpath_workers_stop(struct xdpath_datapath *dp)
{
	__atomic_store_n(&dp->stop, true, __ATOMIC_RELEASE);
	xdpath_datapath_nudge(dp);
	for (uint32_t i = 0; i < dp->running; i++)
		pthread_join(dp->thread[i], NULL);
	dp->running = 0;
}
