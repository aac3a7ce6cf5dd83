/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * How a worker waits. The order before a sleep is what makes it safe: fence, look at all rings once
 * more, kick every ring that wants it, then sleep. The kernel sets need_wakeup, then looks at the
 * ring; we write the ring, fence, then look at need_wakeup: one of the two sees the other.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define NS_PER_S      1000000000ULL
#define REAP_FIRST_NS 1000000ULL  /* completions raise no event: look again after 1 ms */
#define REAP_LAST_NS  64000000ULL /* and ever more rarely while none come */

void xdpath_poller_init(struct xdpath_poller *p, enum xdpath_poll_mode mode, int wake_fd)
{
	memset(p, 0, sizeof(*p));
	p->mode = mode;
	p->fds[0].fd = wake_fd;
	p->fds[0].events = POLLIN;
	p->reap_ns = REAP_FIRST_NS;
}

int xdpath_poller_add(struct xdpath_poller *p, struct xdpath_socket *s)
{
	if (p->n == XDPATH_POLLER_SOCKETS_MAX)
		return -ENOSPC;
	p->s[p->n++] = s;
	p->fds[p->n].fd = s->fd;
	p->fds[p->n].events = POLLIN;
	return 0;
}

/* 1: something is there after all; 0: all quiet, all kicked; -errno: a socket died. */
static int last_look(struct xdpath_poller *p, bool *outstanding)
{
	int ready = 0;

	*outstanding = false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < p->n; i++) {
		struct xdpath_socket *s = p->s[i];

		if (xdpath_prod_need_wakeup(&s->q.fill))
			xdpath_socket_kick_rx(s);
		if (s->q.tx_outstanding) {
			xdpath_socket_kick(s);
			ready |= xdpath_cons_avail(&s->q.comp, 1) > 0;
			*outstanding = true;
		}
		ready |= xdpath_cons_avail(&s->q.rx, 1) > 0;
		if (s->fatal)
			return s->fatal;
	}
	return ready;
}

static int look_at_events(struct xdpath_poller *p)
{
	uint64_t nudges;

	if ((p->fds[0].revents & POLLIN) && read(p->fds[0].fd, &nudges, sizeof(nudges)) < 0 &&
	    errno != EAGAIN)
		return -errno;
	for (uint32_t i = 0; i < p->n; i++)
		if (p->fds[i + 1].revents & (POLLERR | POLLHUP | POLLNVAL)) {
			int err = 0;
			socklen_t len = sizeof(err);

			if (getsockopt(p->s[i]->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 || !err)
				err = EIO;
			p->s[i]->fatal = -err;
			return -err;
		}
	return 0;
}

static int sleep_until(struct xdpath_poller *p, uint64_t wake_at_ns, bool outstanding)
{
	uint64_t now = wake_at_ns || outstanding ? xdpath_now_ns() : 0, ns = UINT64_MAX;
	struct timespec ts;
	int r;

	for (uint32_t i = 0; outstanding && i < p->n; i++)
		xdpath_socket_watch_tx(p->s[i], now);
	if (wake_at_ns)
		ns = wake_at_ns > now ? wake_at_ns - now : 0;
	if (outstanding && p->reap_ns < ns)
		ns = p->reap_ns;
	ts.tv_sec = (time_t)(ns / NS_PER_S);
	ts.tv_nsec = (long)(ns % NS_PER_S);
	r = ppoll(p->fds, p->n + 1, ns == UINT64_MAX ? NULL : &ts, NULL);
	xdpath_count(&p->sleeps, 1);
	if (r > 0)
		return look_at_events(p);
	xdpath_count(&p->wakes_empty, 1);
	if (r == 0 && outstanding && p->reap_ns < REAP_LAST_NS)
		p->reap_ns *= 2;
	return r < 0 && errno != EINTR ? -errno : 0;
}

int xdpath_poller_wait(struct xdpath_poller *p, uint64_t wake_at_ns)
{
	bool outstanding;
	int r;

	switch (p->mode) {
	case XDPATH_POLL_SPIN: return 0;
	case XDPATH_POLL_BLOCK: break;
	}
	r = last_look(p, &outstanding);
	if (!outstanding)
		p->reap_ns = REAP_FIRST_NS;
	if (r)
		return r < 0 ? r : 0;
	return sleep_until(p, wake_at_ns, outstanding);
}
