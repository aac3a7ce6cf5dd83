/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A datapath from names to running workers and back: look the ports up, claim the queues, prepare
 * the devices, negotiate, start; the exact reverse at the end.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

static int resolve_queues(struct xdpath_datapath *dp, uint32_t i)
{
	const struct xdpath_port *p = &dp->port[i];
	uint32_t have = xdpath_port_queues(p), n;

	if (!dp->o.queues) {
		n = have < XDPATH_QUEUES ? have : XDPATH_QUEUES;
		for (uint32_t j = 0; j < n; j++)
			dp->queue[i][j] = j;
		dp->nqueues[i] = n;
		return 0;
	}
	for (uint32_t j = 0; j < dp->o.nqueues; j++) {
		uint32_t q = dp->o.queues[j];

		if (q >= have || q >= XDPATH_QUEUES)
			return xdpath_fail(
				dp->o.diag, XDPATH_R_QUEUE_RANGE, EINVAL,
				"%s queue %u: the device has %s%u; choose among them (-q)", p->name,
				q, have > 1 ? "queues 0 to " : "only queue ", have - 1);
		dp->queue[i][j] = q;
	}
	dp->nqueues[i] = dp->o.nqueues;
	return 0;
}

static int look_up_ports(struct xdpath_datapath *dp)
{
	int err;

	for (uint32_t i = 0; i < dp->nports; i++) {
		struct xdpath_port *p = &dp->port[i];

		err = xdpath_port_query(p, dp->o.ports[i], dp->o.diag);
		if (err)
			return err;
		if (i && p->ifindex == dp->port[0].ifindex)
			return xdpath_fail(
				dp->o.diag, XDPATH_R_OPTIONS, EINVAL,
				"%s: named twice; name it once to send frames back out of it",
				p->name);
		if (!(p->flags & IFF_UP))
			return xdpath_fail(dp->o.diag, XDPATH_R_DEVICE_DOWN, ENETDOWN,
					   "%s: the interface is down; `ip link set %s up`",
					   p->name, p->name);
		dp->live_mtu[i] = p->mtu;
		err = resolve_queues(dp, i);
		if (err)
			return err;
	}
	return 0;
}

static int count_workers(struct xdpath_datapath *dp)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t most = dp->nqueues[0];

	for (uint32_t i = 1; i < dp->nports; i++)
		if (dp->nqueues[i] < most)
			most = dp->nqueues[i];
	if (dp->o.workers > most)
		return xdpath_fail(dp->o.diag, XDPATH_R_OPTIONS, EINVAL,
				   "%u workers: %s has %u queue%s in use and a queue belongs to "
				   "one worker; use "
				   "--workers %u or more queues (`ethtool -L`)",
				   dp->o.workers, dp->nports > 1 ? "a port" : dp->port[0].name,
				   most, most == 1 ? "" : "s", most);
	dp->nworkers = dp->o.workers ? dp->o.workers : most;
	if (!dp->o.workers && cpus > 0 && dp->nworkers > (uint32_t)cpus)
		dp->nworkers = (uint32_t)cpus;
	_Static_assert(sizeof(*dp->worker) % XDPATH_CACHELINE == 0, "whole lines each");
	dp->thread = calloc(dp->nworkers, sizeof(*dp->thread));
	if (dp->thread)
		dp->worker = aligned_alloc(XDPATH_CACHELINE, dp->nworkers * sizeof(*dp->worker));
	if (!dp->worker)
		return -ENOMEM;
	memset(dp->worker, 0, dp->nworkers * sizeof(*dp->worker));
	return 0;
}

/* A former holder may just be ending: wait for it as long as for the queue itself. */
static int take_lease(struct xdpath_datapath *dp, uint32_t i, uint32_t j)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	uint32_t left = dp->knobs.open_wait_ms / 5;
	const struct xdpath_port *p = &dp->port[i];
	char by[48] = "";
	int err, pid = 0;

	for (;;) {
		err = xdpath_lease_take(&dp->lease[i][j], p->netns, p->ifindex, dp->queue[i][j],
					dp->who, &pid, by, sizeof(by));
		if (err != -EBUSY || left-- == 0)
			break;
		nanosleep(&pause, NULL);
	}
	if (err == -EBUSY)
		return xdpath_fail(
			dp->o.diag, XDPATH_R_QUEUE_BUSY, EBUSY,
			"%s queue %u: held by pid %d (%s); end it or use another queue (-q)",
			p->name, dp->queue[i][j], pid, by);
	if (err)
		return xdpath_fail(dp->o.diag, XDPATH_R_PERMISSION, -err,
				   "%s queue %u: no lease under /run/xdpath: %s; run as root",
				   p->name, dp->queue[i][j], strerror(-err));
	return 0;
}

static int claim(struct xdpath_datapath *dp)
{
	int err = 0;

	xdpath_leases_sweep();
	for (uint32_t i = 0; !err && i < dp->nports; i++) {
		for (uint32_t j = 0; !err && j < dp->nqueues[i]; j++)
			err = take_lease(dp, i, j);
		if (!err)
			err = xdpath_device_hold(&dp->device[i], &dp->port[i], dp->o.promisc,
						 dp->o.plain_rx, dp->o.diag);
	}
	return err;
}

static struct xdpath_socket *egress_of(const struct xdpath_datapath *dp, uint32_t i, uint32_t j)
{
	uint32_t out = dp->nports == 2 ? 1 - i : i;

	if (j >= dp->nqueues[out]) /* fewer queues there: the worker's first */
		j %= dp->nworkers;
	return dp->socket[out][j];
}

static int assign(struct xdpath_datapath *dp, struct xdpath_worker *w)
{
	uint32_t room = dp->nqueues[0] + dp->nqueues[dp->nports - 1] + 1, n = 0;
	int err = 0;

	w->sockets = calloc(room, sizeof(*w->sockets));
	w->peer = calloc(room, sizeof(*w->peer));
	w->port = calloc(room, sizeof(*w->port));
	if (!w->sockets || !w->peer || !w->port)
		return -ENOMEM;
	xdpath_poller_init(&w->poller, (enum xdpath_poll_mode)dp->knobs.poll_mode, w->wake_fd);
	for (uint32_t i = 0; i < dp->nports; i++)
		for (uint32_t j = w->id; !err && j < dp->nqueues[i]; j += dp->nworkers) {
			w->sockets[n] = dp->socket[i][j];
			w->peer[n] = egress_of(dp, i, j);
			w->port[n++] = i;
			err = xdpath_poller_add(&w->poller, dp->socket[i][j]);
		}
	w->nsockets = n;
	return err;
}

static int make_workers(struct xdpath_datapath *dp)
{
	int err = 0;

	dp->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (dp->event_fd < 0)
		return -errno;
	for (uint32_t i = 0; !err && i < dp->nworkers; i++) {
		dp->worker[i].wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (dp->worker[i].wake_fd < 0)
			return -errno;
		dp->worker[i].dp = dp;
		dp->worker[i].id = i;
		dp->worker[i].batch = dp->knobs.rx_batch;
		err = assign(dp, &dp->worker[i]);
	}
	return err;
}

/* Why the mode is not better than it is, or nothing. */
static void tell_degraded(const struct xdpath_datapath *dp)
{
	const struct xdpath_attempt *a = &dp->attempt[0];

	if (!dp->o.diag)
		return;
	dp->o.diag->reason = a->reason;
	dp->o.diag->err = a->err;
	snprintf(dp->o.diag->text, sizeof(dp->o.diag->text), "%s", a->text);
}

void xdpath_notice(struct xdpath_datapath *dp, const char *key, uint32_t port, const char *fmt, ...)
{
	struct xdpath_notice *n = &dp->notice[dp->nnotices];
	va_list ap;

	if (dp->nnotices == XDPATH_NOTICES_MAX)
		return;
	dp->nnotices++;
	n->key = key;
	n->port = port;
	va_start(ap, fmt);
	vsnprintf(n->text, sizeof(n->text), fmt, ap);
	va_end(ap);
}

static int check_opts(const struct xdpath_datapath_opts *o)
{
	if (xdpath_opts_check(o, o->sz, sizeof(*o)) || o->nports < 1 ||
	    o->nports > XDPATH_PORTS_MAX || o->nqueues > XDPATH_QUEUES ||
	    (o->queues && !o->nqueues))
		return -EINVAL;
	if (o->mode != XDPATH_MODE_AUTO && o->worst > o->mode)
		return xdpath_fail(
			o->diag, XDPATH_R_OPTIONS, EINVAL,
			"mode %s: below the worst accepted (%s); lower --worst or raise --mode",
			xdpath_mode_name(o->mode), xdpath_mode_name(o->worst));
	return 0;
}

int xdpath_datapath_open(struct xdpath_datapath **out, const struct xdpath_datapath_opts *o)
{
	struct xdpath_datapath *dp;
	int err;

	*out = NULL;
	if (!o)
		return -EINVAL;
	err = check_opts(o);
	if (err)
		return err;
	dp = calloc(1, sizeof(*dp));
	if (!dp)
		return -ENOMEM;
	dp->o = *o;
	dp->nports = o->nports;
	dp->event_fd = -1;
	snprintf(dp->who, sizeof(dp->who), "%s", o->who ? o->who : "xdpath");
	if (o->knobs)
		dp->knobs = *o->knobs;
	else
		xdpath_knobs_defaults(&dp->knobs);
	if (o->cpus)
		dp->cpus = *o->cpus;
	if (!(err = look_up_ports(dp)) && !(err = count_workers(dp)) && !(err = claim(dp)) &&
	    !(err = xdpath_negotiate(dp)) && !(err = make_workers(dp)))
		xdpath_carrier_wait(dp);
	if (err) {
		if (o->diag && !o->diag->text[0])
			xdpath_fail(o->diag, XDPATH_R_MEMORY, -err,
				    "%s: setting up the workers: %s; free memory or descriptors "
				    "(`ulimit -n`), or use fewer (--workers, -q)",
				    o->ports[0], strerror(-err));
		xdpath_datapath_close(dp);
		return err;
	}
	tell_degraded(dp);
	dp->o.diag = NULL;
	*out = dp;
	return 0;
}

static int connect_sockets(struct xdpath_datapath *dp, bool on)
{
	int err = 0;

	for (uint32_t i = 0; i < dp->nports; i++)
		for (uint32_t j = 0; dp->prog[i] && j < dp->nqueues[i]; j++) {
			int r = on ? xdpath_prog_set_socket(dp->prog[i], dp->queue[i][j],
							    dp->socket[i][j]->fd)
				   : xdpath_prog_clear_socket(dp->prog[i], dp->queue[i][j]);

			if (r && !err)
				err = r;
		}
	return err;
}

int xdpath_datapath_start(struct xdpath_datapath *dp, xdpath_round_fn round, void *ctx)
{
	int err = 0;

	dp->round = round;
	dp->ctx = ctx;
	if (!dp->o.no_rx)
		err = connect_sockets(dp, true);
	if (!err)
		err = xdpath_workers_start(dp);
	return err;
}

int xdpath_datapath_event_fd(const struct xdpath_datapath *dp)
{
	return dp->event_fd;
}

void xdpath_datapath_stop(struct xdpath_datapath *dp)
{
	if (!dp->o.no_rx)
		connect_sockets(dp, false); /* nothing new; what is in the rings is finished */
	xdpath_workers_stop(dp);
}

void xdpath_datapath_close(struct xdpath_datapath *dp)
{
	if (!dp)
		return;
	if (dp->running)
		xdpath_datapath_stop(dp);
	for (uint32_t i = 0; dp->worker && i < dp->nworkers; i++) {
		free(dp->worker[i].sockets);
		free(dp->worker[i].peer);
		free(dp->worker[i].port);
		if (dp->worker[i].dp)
			close(dp->worker[i].wake_fd);
	}
	xdpath_negotiate_undo(dp);
	for (uint32_t i = 0; i < dp->nports; i++) {
		xdpath_device_release(dp->device[i]);
		for (uint32_t j = 0; j < dp->nqueues[i]; j++)
			xdpath_lease_drop(dp->lease[i][j]);
	}
	if (dp->event_fd >= 0)
		close(dp->event_fd);
	free(dp->worker);
	free(dp->thread);
	free(dp);
}

enum xdpath_mode xdpath_datapath_mode(const struct xdpath_datapath *dp)
{
	return dp->mode;
}

const struct xdpath_attempt *xdpath_datapath_attempts(const struct xdpath_datapath *dp, uint32_t *n)
{
	*n = dp->nattempts;
	return dp->attempt;
}

const struct xdpath_notice *xdpath_datapath_notices(const struct xdpath_datapath *dp, uint32_t *n)
{
	*n = dp->nnotices;
	return dp->notice;
}

const struct xdpath_port *xdpath_datapath_port(const struct xdpath_datapath *dp, uint32_t i)
{
	return i < dp->nports ? &dp->port[i] : NULL;
}

const struct xdpath_prog *xdpath_datapath_prog(const struct xdpath_datapath *dp, uint32_t i)
{
	return i < dp->nports ? dp->prog[i] : NULL;
}

struct xdpath_worker *xdpath_datapath_worker(struct xdpath_datapath *dp, uint32_t i)
{
	return i < dp->nworkers ? &dp->worker[i] : NULL;
}

const struct xdpath_umem *xdpath_datapath_umem(const struct xdpath_datapath *dp)
{
	return dp->umem;
}

void xdpath_datapath_set_mtu(struct xdpath_datapath *dp, uint32_t port, uint32_t mtu)
{
	if (port >= dp->nports)
		return;
	__atomic_store_n(&dp->live_mtu[port], mtu, __ATOMIC_RELAXED);
	__atomic_add_fetch(&dp->generation, 1, __ATOMIC_RELEASE);
}

void xdpath_datapath_nudge(struct xdpath_datapath *dp)
{
	uint64_t one = 1;

	for (uint32_t i = 0; i < dp->nworkers; i++)
		if (write(dp->worker[i].wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
			return; /* an eventfd of ours always takes a 1 */
}

void xdpath_datapath_set_link(struct xdpath_datapath *dp, uint32_t port, bool running)
{
	if (port >= dp->nports)
		return;
	__atomic_store_n(&dp->live_link[port], running, __ATOMIC_RELAXED);
	__atomic_add_fetch(&dp->generation, 1, __ATOMIC_RELEASE);
}

void xdpath_datapath_audit(const struct xdpath_datapath *dp, struct xdpath_ledger *out)
{
	memset(out, 0, sizeof(*out));
	for (uint32_t i = 0; i < dp->nworkers; i++)
		xdpath_frames_audit(dp->worker[i].frames, out);
	for (uint32_t i = 0; i < dp->nports; i++)
		for (uint32_t j = 0; j < dp->nqueues[i]; j++) {
			struct xdpath_cons *c = &dp->socket[i][j]->q.comp;

			out->completed +=
				__atomic_load_n(c->k_producer, __ATOMIC_ACQUIRE) - c->cons;
		}
}
