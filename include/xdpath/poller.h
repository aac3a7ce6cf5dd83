/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * How a thread waits for its sockets. Here: block (poll) and spin; adaptive has its place in
 * xdpath_poller_wait().
 */
#ifndef XDPATH_POLLER_H
#define XDPATH_POLLER_H

#include <poll.h>

#include <xdpath/knob.h>
#include <xdpath/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#define XDPATH_POLLER_SOCKETS_MAX 512U

struct xdpath_poller {
	enum xdpath_poll_mode mode;
	uint32_t n; /* sockets */
	struct xdpath_socket *s[XDPATH_POLLER_SOCKETS_MAX];
	struct pollfd fds[XDPATH_POLLER_SOCKETS_MAX + 1]; /* the wake-up's first */
	uint64_t reap_ns;     /* how soon to look for completions again */
	uint64_t sleeps;      /* poll() calls that could sleep */
	uint64_t wakes_empty; /* ... that brought no packet */
};

/* wake_fd: an eventfd of this poller alone that ends a sleep, from any thread; read empty, not
 * owned. */
XDPATH_API void xdpath_poller_init(struct xdpath_poller *p, enum xdpath_poll_mode mode,
				   int wake_fd);
/* -ENOSPC past XDPATH_POLLER_SOCKETS_MAX. */
XDPATH_API int xdpath_poller_add(struct xdpath_poller *p, struct xdpath_socket *s);

/*
 * Called when a round over all sockets brought nothing. Spin returns at once. Block sends what is
 * still unsent, then: fence, look at all rings once more, kick every ring that wants it, sleep
 * until something arrives, wake_fd is written or wake_at_ns (CLOCK_MONOTONIC, 0 none) is reached.
 * Bounded while TX is outstanding, so that completions are never waited for in vain. Returns 0, or
 * -errno when a socket died (its `fatal` says which).
 */
XDPATH_API int xdpath_poller_wait(struct xdpath_poller *p, uint64_t wake_at_ns);

#ifdef __cplusplus
}
#endif
#endif
