/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * One AF_XDP socket on one queue: rings, bind, kick, statistics.
 *
 * A socket, its frame cache and its poller belong to one thread at a time.
 */
#ifndef XDPATH_SOCKET_H
#define XDPATH_SOCKET_H

#include <xdpath/pkt.h>
#include <xdpath/port.h>
#include <xdpath/umem.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xdpath_socket_opts {
	size_t sz;
	uint32_t queue;
	enum xdpath_mode mode; /* GENERIC and COPY bind with XDP_COPY, ZEROCOPY with XDP_ZEROCOPY */
	uint32_t ring_rx, ring_tx, ring_fill, ring_comp; /* slots, powers of two; 0 means 2048 */
	uint32_t tx_kick_budget;      /* descriptors a sendto() may send in copy mode, 0 leaves the
					 kernel's */
	bool no_rx, no_tx;	      /* one-way socket: a ring that is not there costs nothing */
	bool single_frag;	      /* do not ask for packets of several fragments (XDP_USE_SG) */
	bool no_quirks;		      /* do not heed known faults of the driver */
	uint32_t wait_ms;	      /* how long a busy queue is waited for; 0 means not at all */
	struct xdpath_frames *frames; /* the owning thread's cache; required */
	const struct xdpath_socket *share; /* a socket on the same UMEM, NULL for the first */
	struct xdpath_diag *diag;
};

/* What the kernel counts for the socket (getsockopt XDP_STATISTICS). rx_dropped includes what was
 * dropped for want of fill frames: do not add the two. */
struct xdpath_socket_stats {
	uint64_t rx_dropped, rx_invalid_descs, tx_invalid_descs, rx_ring_full, rx_fill_empty,
		tx_idle_looks;
};

/* System calls and what they said; written by the owning thread, read with xdpath_counted(). */
struct xdpath_socket_counters {
	uint64_t tx_kicks;	 /* sendto() */
	uint64_t tx_again;	 /* ... that said "more is left" (EAGAIN) */
	uint64_t tx_dropped;	 /* ... that said "the device dropped one" (EBUSY): packets */
	uint64_t tx_no_buffer;	 /* ... that said ENOBUFS */
	uint64_t rx_kicks;	 /* recvfrom() for the fill ring */
	uint64_t tx_stuck_kicks; /* sendto() because nothing was completed for long */
};

/*
 * TX that stands still: frames handed to the device, none completed for 100 ms or more. The owning
 * thread looks now and then, and kicks again; stuck_ns and frames are read with xdpath_counted().
 */
struct xdpath_tx_watch {
	uint64_t stuck_ns;  /* how long it stood still as of the last kick; 0: it moves */
	uint64_t frames;    /* ... and how many descriptors wait */
	uint64_t completed; /* as of the last look */
	uint64_t since_ns;  /* ... which was then already so; 0: nothing was out */
	uint64_t next_ns;   /* when to kick again */
	uint32_t kicks;	    /* since it stands still */
	bool link_down;	    /* the port is down or without carrier: nothing can move */
};

struct xdpath_socket {
	struct xdpath_queue q; /* first: the hot path works on it */
	int fd;
	uint32_t queue_id;
	enum xdpath_mode mode; /* as read back from the kernel and the attach mode asked for */
	bool multi_frag;       /* bound with XDP_USE_SG */
	uint32_t kick_budget; /* descriptors a sendto() sends in copy mode, as the kernel took it */
	int fatal;	      /* -errno once the socket can carry nothing more, 0 while it lives */
	struct xdpath_socket_counters c;
	struct xdpath_tx_watch watch;
	struct xdpath_umem *umem;
	struct {
		void *map;
		size_t len;
	} maps[4]; /* rx, tx, fill, comp */
	char ifname[IFNAMSIZ];
};

/*
 * Create, size, map, bind and fill: on return the fill ring is full and the socket is bound, but no
 * program sends it anything yet (xdpath_prog_set_socket). Enters the kernel; waits up to wait_ms
 * for a queue that a closed socket still holds. Errors: -EBUSY (queue held; diag names the holder),
 * -EOPNOTSUPP (no zero-copy, or one that would cut packets up), -EINVAL, -ENODEV, -ENETDOWN,
 * -ENOBUFS (RLIMIT_MEMLOCK), -EPERM, -ENOMEM. On failure nothing is left behind. Kernel 5.4;
 * several queues or ports on one UMEM 5.10; several fragments 6.6. Source:
 * Documentation/networking/af_xdp.rst.
 */
XDPATH_API int xdpath_socket_open(struct xdpath_socket **out, const struct xdpath_port *p,
				  struct xdpath_umem *u, const struct xdpath_socket_opts *o);

/* Unmap the rings, then close: in the other order the kernel keeps the queue busy. NULL is fine. */
XDPATH_API void xdpath_socket_close(struct xdpath_socket *s);

/*
 * Have the kernel send what is in the TX ring. Loops, bounded, until the ring is empty or the
 * kernel takes no more. Enters the kernel when the ring is not empty and wants it. Returns 0,
 * -EAGAIN when descriptors are left, or -errno when the socket is dead (-ENETDOWN, -ENXIO,
 * -EINVAL), kept in s->fatal.
 */
XDPATH_API int xdpath_socket_kick(struct xdpath_socket *s);

/* Wake the driver for an empty fill ring (zero-copy). Enters the kernel. */
XDPATH_API void xdpath_socket_kick_rx(struct xdpath_socket *s);

/*
 * Look whether completions come; now_ns is CLOCK_MONOTONIC. While none came for 100 ms though
 * frames are out and the link is up, kick TX and RX again, whatever need_wakeup says, at growing
 * distances up to 1 s; each is counted. Enters the kernel only then. To be called every 100 ms or
 * so while q.tx_outstanding is not 0: workers and the poller do.
 */
XDPATH_API void xdpath_socket_watch_tx(struct xdpath_socket *s, uint64_t now_ns);

/* 0 or -errno. */
XDPATH_API int xdpath_socket_stats(const struct xdpath_socket *s, struct xdpath_socket_stats *out);

#ifdef __cplusplus
}
#endif
#endif
