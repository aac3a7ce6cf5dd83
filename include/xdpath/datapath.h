/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A datapath: one or more ports, their queues on one shared UMEM, opened in the best mode to be had
 * for all of them, and the threads that work them.
 *
 *   struct xdpath_datapath_opts o = XDPATH_OPTS_INIT(struct xdpath_datapath_opts);
 *   o.ports[0] = "eth1"; o.nports = 1; o.steer = XDPATH_STEER_ALL;
 *   xdpath_datapath_open(&dp, &o);
 *   xdpath_datapath_start(dp, my_round, my_ctx);
 *   ... xdpath_datapath_stop(dp); xdpath_datapath_close(dp);
 */
#ifndef XDPATH_DATAPATH_H
#define XDPATH_DATAPATH_H

#include <sched.h>

#include <xdpath/knob.h>
#include <xdpath/poller.h>
#include <xdpath/prog.h>
#include <xdpath/rule.h>

#ifdef __cplusplus
extern "C" {
#endif

#define XDPATH_PORTS_MAX 2U

struct xdpath_datapath_opts {
	size_t sz;
	const char *ports[XDPATH_PORTS_MAX];
	uint32_t nports;
	const uint32_t *queues; /* the same list on each port; NULL means all */
	uint32_t nqueues;
	enum xdpath_mode mode;	/* best wished for; AUTO means zero-copy */
	enum xdpath_mode worst; /* below it is an error; AUTO means generic */
	enum xdpath_steer steer;
	bool steer_explicit;
	/* in force before a socket receives; NULL: none. A program attached already that has others
	 * is refused */
	const struct xdpath_rules *rules;
	bool beside;	       /* as in struct xdpath_prog_opts */
	bool no_prog;	       /* send only: attach nothing unless zero-copy needs it */
	bool no_rx, no_tx;     /* one-way sockets */
	bool promisc;	       /* hold promiscuity while open */
	bool plain_rx;	       /* RX VLAN stripping and LRO off while open, restored after */
	uint32_t workers;      /* 0: one for each queue up to the CPUs */
	const cpu_set_t *cpus; /* where workers run, in turn; NULL: not pinned */
	const struct xdpath_knobs *knobs; /* NULL means defaults */
	const char *who;		  /* written into the lease: "forward" */
	struct xdpath_diag *diag;
};

/* One try at a mode, kept whether it succeeded or not. */
struct xdpath_attempt {
	enum xdpath_mode mode;
	enum xdpath_reason reason;
	int err;
	char text[400];
};

#define XDPATH_ATTEMPTS_MAX 6

/* What the user should know though the datapath was opened: one line, "DEV: what; what to do". */
struct xdpath_notice {
	const char *key; /* "no-carrier", "queues-not-served"; a stable name */
	uint32_t port;
	char text[300];
};

#define XDPATH_NOTICES_MAX 8

struct xdpath_worker {
	struct xdpath_datapath *dp;
	uint32_t id;
	uint32_t nsockets;
	struct xdpath_socket **sockets; /* of all ports; port of sockets[i] is port[i] */
	uint32_t *port;
	struct xdpath_socket **peer; /* for sockets[i]: the egress socket of the same worker on the
					other port (on the same port when there is one) */
	struct xdpath_frames *frames;
	struct xdpath_poller poller;
	uint32_t batch;	     /* rx.batch */
	uint32_t seen;	     /* the generation of live values taken over */
	uint64_t rounds;     /* passes over the sockets */
	int wake_fd;	     /* eventfd, ends this worker's sleep */
	int error;	     /* -errno that ended it, 0 */
	bool stopping;	     /* the datapath is being stopped: begin nothing new */
	uint64_t wake_at_ns; /* CLOCK_MONOTONIC, 0 none: set by a round that has work only then */
	void *app;	     /* the application's own, per worker */
} __attribute__((aligned(XDPATH_CACHELINE))); /* no line of one worker is another's */

/*
 * The application's turn at one socket: take what is there, deal with it, return how many packets
 * were handled (0: nothing to do). Runs on the worker's thread, must not block.
 */
typedef uint32_t (*xdpath_round_fn)(void *ctx, struct xdpath_worker *w, uint32_t socket_index);

struct xdpath_datapath;

/*
 * Open all queues of all ports in one mode, the best from `mode` down to `worst`. Every attempt is
 * recorded. Errors are those of port, prog and socket; -EOPNOTSUPP with reason NO_ZEROCOPY or
 * NO_NATIVE when `worst` could not be had. diag, on success, tells the best reason why the mode is
 * not better, or R_NONE.
 *
 * Drivers reset their device when a program is attached and when a queue is bound: a port that has
 * had a carrier is waited for until it has it again, open.wait_ms at most. What remains amiss is a
 * notice, not an error.
 */
XDPATH_API int xdpath_datapath_open(struct xdpath_datapath **out,
				    const struct xdpath_datapath_opts *o);

/* Start the workers. 0 or -errno. */
XDPATH_API int xdpath_datapath_start(struct xdpath_datapath *dp, xdpath_round_fn round, void *ctx);
/* Readable once a worker ended by itself (eventfd); for the control thread's poll. */
XDPATH_API int xdpath_datapath_event_fd(const struct xdpath_datapath *dp);
/*
 * Take the sockets out of the programs, finish what is in the rings, stop and join the workers.
 * Ends 200 ms after the last progress, 2 s after the call at most; what is left then is counted.
 */
XDPATH_API void xdpath_datapath_stop(struct xdpath_datapath *dp);
/* Undo everything. NULL is fine. */
XDPATH_API void xdpath_datapath_close(struct xdpath_datapath *dp);

XDPATH_API enum xdpath_mode xdpath_datapath_mode(const struct xdpath_datapath *dp);
XDPATH_API const struct xdpath_attempt *xdpath_datapath_attempts(const struct xdpath_datapath *dp,
								 uint32_t *n);
XDPATH_API const struct xdpath_notice *xdpath_datapath_notices(const struct xdpath_datapath *dp,
							       uint32_t *n);
XDPATH_API const struct xdpath_port *xdpath_datapath_port(const struct xdpath_datapath *dp,
							  uint32_t i);
XDPATH_API const struct xdpath_prog *xdpath_datapath_prog(const struct xdpath_datapath *dp,
							  uint32_t i);
XDPATH_API struct xdpath_worker *xdpath_datapath_worker(struct xdpath_datapath *dp,
							uint32_t i); /* NULL past the last */
XDPATH_API const struct xdpath_umem *xdpath_datapath_umem(const struct xdpath_datapath *dp);
/*
 * The port's MTU (bytes) has changed: longer packets are refused from each worker's next pass on.
 * Any thread; the kernel is not entered.
 */
XDPATH_API void xdpath_datapath_set_mtu(struct xdpath_datapath *dp, uint32_t port, uint32_t mtu);
/*
 * Have every worker look at its rings once more. While an interface is down the kernel's poll()
 * says nothing of the frames that came before: whoever sees one go down or up calls this, else they
 * wait for the next frame. Any thread; enters the kernel once for each worker.
 */
XDPATH_API void xdpath_datapath_nudge(struct xdpath_datapath *dp);
/*
 * The port's link is up with carrier, or not (as it is at opening): without one no TX is taken for
 * stuck. From each worker's next pass on; any thread; the kernel is not entered.
 */
XDPATH_API void xdpath_datapath_set_link(struct xdpath_datapath *dp, uint32_t port, bool running);
/* All frames by owner; after stop. */
XDPATH_API void xdpath_datapath_audit(const struct xdpath_datapath *dp, struct xdpath_ledger *out);

#ifdef __cplusplus
}
#endif
#endif
