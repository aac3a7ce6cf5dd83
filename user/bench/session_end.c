/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* One end of a session; see session_end.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "internal.h"
#include "session_end.h"

int end_device(struct session_end *x, const char *dev, struct xdpath_diag *d)
{
	struct xdpath_port p;
	int err = xdpath_port_query(&p, dev, d);

	if (err)
		return err;
	if (!(p.flags & IFF_UP))
		return xdpath_fail(d, XDPATH_R_DEVICE_DOWN, ENETDOWN,
				   "%s: the interface is down; `ip link set %s up`", dev, dev);
	snprintf(x->dev, sizeof(x->dev), "%s", dev);
	snprintf(x->driver, sizeof(x->driver), "%s", p.driver);
	if (gethostname(x->host, sizeof(x->host) - 1))
		x->host[0] = '\0';
	x->e.path.dev = x->dev;
	x->e.path.ifindex = (uint32_t)p.ifindex;
	x->e.path.mtu = p.mtu;
	memcpy(x->e.path.local_mac, p.mac, 6);
	return 0;
}

int end_unpack(const struct sockaddr_storage *a, void *out)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	uint8_t addr[16];

	if (a->ss_family == AF_INET) {
		memcpy(out, &v4->sin_addr, 4);
		return AF_INET;
	}
	memcpy(addr, &v6->sin6_addr, sizeof(addr));
	if (memcmp(addr, mapped, sizeof(mapped)) == 0) {
		memcpy(out, addr + 12, 4);
		return AF_INET;
	}
	memcpy(out, addr, sizeof(addr));
	return AF_INET6;
}

int end_addresses(struct session_end *x, int tcp, struct xdpath_diag *d)
{
	struct engine_path *p = &x->e.path;
	struct sockaddr_storage local = {0}, remote = {0};
	socklen_t llen = sizeof(local), rlen = sizeof(remote);
	struct neigh_addr peer = {0}, hop;
	int err;

	if (getsockname(tcp, (struct sockaddr *)&local, &llen) ||
	    getpeername(tcp, (struct sockaddr *)&remote, &rlen))
		return xdpath_fail(d, XDPATH_R_REFUSED, errno,
				   "%s: the control connection is gone: %s; try again", x->dev,
				   strerror(errno));
	p->family = end_unpack(&local, &p->local);
	peer.family = end_unpack(&remote, &p->remote);
	memcpy(&peer.v6, &p->remote, sizeof(peer.v6));
	err = neigh_route(x->dev, &peer, &hop, d);
	return err ? err : neigh_mac(x->dev, &hop, p->remote_mac, d);
}

int end_open(struct session_end *x, enum xdpath_mode mode, enum xdpath_mode worst,
	     struct xdpath_diag *d)
{
	static const struct engine_ops *const ops[] = {&engine_xsk, &engine_udp, &engine_packet};
	struct engine *e = &x->e;
	int err;

	e->ops = ops[x->spec.engine];
	e->path.flows = x->spec.flows;
	e->path.lanes = x->spec.workers ? x->spec.workers : 1;
	e->knobs = &x->knobs;
	e->cpus = &x->spec.cpus;
	e->mode = mode;
	e->worst = worst;
	e->event_fd = -1;
	d->text[0] = '\0';
	err = e->ops->open(e, d);
	if (err)
		e->ops = NULL; /* nothing to close */
	if (!err)
		err = test_open(&x->t, e, &x->spec, x->id, x->event_fd);
	if (!err)
		err = e->ops->start(e, test_turn, x->t);
	if (!err) {
		x->started = true;
		return 0;
	}
	if (!d->text[0])
		xdpath_fail(d, XDPATH_R_MEMORY, -err,
			    "%s: the test could not be set up: %s; use fewer flows (-n) or workers",
			    x->dev, strerror(-err));
	end_close(x);
	return err;
}

void end_close(struct session_end *x)
{
	if (x->started && x->e.ops)
		x->e.ops->stop(&x->e);
	x->started = false;
	if (x->meter)
		usage_end(x->meter, NULL);
	x->meter = NULL;
	if (x->e.ops)
		x->e.ops->close(&x->e);
	x->e.ops = NULL;
	test_close(x->t);
	x->t = NULL;
}

/* ---- the account ---------------------------------------------------------------------------- */

static void sample(const struct session_end *x, struct end_sample *s)
{
	memset(s, 0, sizeof(*s));
	neigh_if_counters(x->e.path.ifindex, &s->ifc);
	x->e.ops->totals(&x->e, &s->engine);
	test_counts(x->t, &s->test);
	s->ns = xdpath_now_ns();
}

void end_usage_start(struct session_end *x)
{
	end_usage_stop(x); /* of a run that was broken off */
	memset(&x->usage, 0, sizeof(x->usage));
	if (usage_begin(&x->meter, x->dev, false))
		x->meter = NULL;
}

void end_begin(struct session_end *x)
{
	sample(x, &x->begin);
}

void end_usage_stop(struct session_end *x)
{
	if (x->meter)
		usage_end(x->meter, &x->usage);
	x->meter = NULL;
}

void end_finish(struct session_end *x)
{
	end_usage_stop(x);
	sample(x, &x->end);
}

static uint64_t moved(const struct session_end *x)
{
	struct test_side s = {0};

	x->e.ops->totals(&x->e, &s);
	return s.packets_in + s.packets_out;
}

void end_quiet(const struct session_end *x, int most_ms)
{
	const struct timespec pause = {.tv_nsec = SESSION_QUIET_MS * 1000000L};
	uint64_t until = xdpath_now_ms() + (uint64_t)most_ms, was = moved(x), now;

	for (;;) {
		nanosleep(&pause, NULL);
		now = moved(x);
		if (now == was || xdpath_now_ms() >= until)
			return;
		was = now;
	}
}

static void losses(const struct session_end *x, struct test_losses *out)
{
	const struct test_losses *e0 = &x->begin.engine.lost, *e1 = &x->end.engine.lost;
	const struct test_losses *t0 = &x->begin.test.lost, *t1 = &x->end.test.lost;

	out->timeouts = t1->timeouts - t0->timeouts;
	out->incomplete = t1->incomplete - t0->incomplete;
	out->reordered = t1->reordered - t0->reordered;
	out->late = t1->late - t0->late;
	out->rx_ring_full = e1->rx_ring_full - e0->rx_ring_full;
	out->rx_no_frame = e1->rx_no_frame - e0->rx_no_frame;
	out->rx_other = e1->rx_other - e0->rx_other;
	out->tx_dropped = e1->tx_dropped - e0->tx_dropped;
}

void end_account(const struct session_end *x, struct test_side *out)
{
	const struct test_side *e0 = &x->begin.engine, *e1 = &x->end.engine;

	memset(out, 0, sizeof(*out));
	memcpy(out->host, x->host, sizeof(out->host));
	memcpy(out->dev, x->dev, sizeof(out->dev));
	memcpy(out->driver, x->driver, sizeof(out->driver));
	snprintf(out->mode, sizeof(out->mode), "%s", x->e.mode_name);
	snprintf(out->mode_why, sizeof(out->mode_why), "%s", x->e.mode_why);
	out->seconds = (double)(x->end.ns - x->begin.ns) * 1e-9;
	out->msgs_out = x->end.test.msgs_out - x->begin.test.msgs_out;
	out->msgs_in = x->end.test.msgs_in - x->begin.test.msgs_in;
	out->packets_out = e1->packets_out - e0->packets_out;
	out->bytes_out = e1->bytes_out - e0->bytes_out;
	out->packets_in = e1->packets_in - e0->packets_in;
	out->bytes_in = e1->bytes_in - e0->bytes_in;
	out->payload_out = out->msgs_out * x->t->out.len;
	out->payload_in = out->msgs_in * x->t->in.len;
	out->if_packets_out = x->end.ifc.packets_out - x->begin.ifc.packets_out;
	out->if_bytes_out = x->end.ifc.bytes_out - x->begin.ifc.bytes_out;
	out->if_packets_in = x->end.ifc.packets_in - x->begin.ifc.packets_in;
	out->if_bytes_in = x->end.ifc.bytes_in - x->begin.ifc.bytes_in;
	out->tx_kicks = e1->tx_kicks - e0->tx_kicks;
	out->rx_kicks = e1->rx_kicks - e0->rx_kicks;
	out->sleeps = e1->sleeps - e0->sleeps;
	out->syscalls = e1->syscalls - e0->syscalls;
	out->sock_send = e1->sock_send;
	out->sock_recv = e1->sock_recv;
	losses(x, &out->lost);
	out->usage = x->usage;
}
