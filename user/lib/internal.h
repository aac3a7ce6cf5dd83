/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What the library's files share and nobody else sees. */
#ifndef XDPATH_INTERNAL_H
#define XDPATH_INTERNAL_H

#include <pthread.h>

#include <xdpath/xdpath.h>

#include "clock.h"

/* diag.c: fill a diagnosis (d may be NULL); returns -err so that it can be returned at once. */
int xdpath_fail(struct xdpath_diag *d, enum xdpath_reason reason, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* diag.c: -EINVAL if an option struct of size `sz` has non-zero bytes past what we know (`known`).
 */
int xdpath_opts_check(const void *opts, size_t sz, size_t known);

/* near.c: of all candidates offered the one next to a misspelt word; best is NULL if none is near.
 */
struct xdpath_near {
	const char *word, *best;
	uint32_t limit;
};
void xdpath_near_start(struct xdpath_near *n, const char *word);
void xdpath_near_offer(struct xdpath_near *n, const char *candidate);

/* port.c: -ENODEV with a diagnosis that names the nearest device. */
int xdpath_no_device(const char *name, struct xdpath_diag *diag);

/* holder.c: a process's name for itself, control characters taken out. False: no such process. */
bool xdpath_command_name(int pid, char *out, size_t size);

#define XDPATH_RUN_DIR "/run/xdpath"
/* lease.c: whether a file just locked is still the one at its path: the last to have it locked may
 * have unlinked it. */
bool xdpath_lock_is_file(int fd, const char *path);

/* lease.c: an exclusive claim on a queue, or on the right to change an interface's rules; gone with
 * the process. */
struct xdpath_lease;
#define XDPATH_LEASE_RULES UINT32_MAX /* in place of a queue */
/* -EBUSY: held; *pid (may be NULL) and who (size bytes, may be NULL) tell by whom. */
int xdpath_lease_take(struct xdpath_lease **out, uint64_t netns, int ifindex, uint32_t queue,
		      const char *who, int *pid, char *held_by, size_t size);
void xdpath_lease_drop(struct xdpath_lease *l);
/* Remove the files of leases that nobody holds any more. */
void xdpath_leases_sweep(void);
/* pid of the holder, 0 if nobody holds it; who gets its name for itself. */
int xdpath_lease_holder(uint64_t netns, int ifindex, uint32_t queue, char *who, size_t size);

/* steer.c: as xdpath_steer_set(), into a program that was loaded with these rules' filters. */
int xdpath_steer_begin(uint32_t prog_id, const struct xdpath_rules *rules,
		       struct xdpath_diag *diag);

/* steer_change.c: nobody else changes the interface's rules until the lease is dropped. */
int xdpath_steer_lock(struct xdpath_lease **out, const struct xdpath_port *p,
		      struct xdpath_diag *diag);

/* device.c: what a run changes on a device, undone at the latest by the next run. */
struct xdpath_device;
int xdpath_device_hold(struct xdpath_device **out, const struct xdpath_port *p, bool promisc,
		       bool plain_rx, struct xdpath_diag *diag);
void xdpath_device_release(struct xdpath_device *d);
/* Put back what a run that crashed left changed, if no other run has the device. */
void xdpath_device_restore(const struct xdpath_port *p);

/* The inside of a datapath: datapath.c opens and closes it, negotiate.c finds its mode, worker.c
 * runs it. */
struct xdpath_datapath {
	struct xdpath_datapath_opts o; /* a copy; diag is valid only while opening */
	struct xdpath_knobs knobs;
	cpu_set_t cpus;
	char who[32];
	uint32_t nports;
	struct xdpath_port port[XDPATH_PORTS_MAX];
	struct xdpath_prog *prog[XDPATH_PORTS_MAX];
	struct xdpath_device *device[XDPATH_PORTS_MAX];
	struct xdpath_lease *lease[XDPATH_PORTS_MAX][XDPATH_QUEUES];
	uint32_t queue[XDPATH_PORTS_MAX][XDPATH_QUEUES], nqueues[XDPATH_PORTS_MAX];
	struct xdpath_socket *socket[XDPATH_PORTS_MAX][XDPATH_QUEUES];
	struct xdpath_umem *umem;
	enum xdpath_mode mode;
	struct xdpath_attempt attempt[XDPATH_ATTEMPTS_MAX];
	uint32_t nattempts;
	struct xdpath_notice notice[XDPATH_NOTICES_MAX];
	uint32_t nnotices;
	struct xdpath_worker *worker;
	uint32_t nworkers, running;
	pthread_t *thread;
	xdpath_round_fn round;
	void *ctx;
	int event_fd; /* a worker ended by itself */
	bool stop;    /* atomic */
	/* Live values: written by anyone, then the generation is raised; each worker takes them
	 * over at its next pass. */
	uint32_t generation, live_mtu[XDPATH_PORTS_MAX];
	bool live_link[XDPATH_PORTS_MAX];
};

/* datapath.c: keep a notice; what does not fit is left out. */
void xdpath_notice(struct xdpath_datapath *dp, const char *key, uint32_t port, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* carrier.c: wait for each port's carrier after opening; a notice for one that has none. */
void xdpath_carrier_wait(struct xdpath_datapath *dp);

/* negotiate.c: programs, UMEM and sockets of all ports in the best mode for all. */
int xdpath_negotiate(struct xdpath_datapath *dp);
/* negotiate.c: undo it. */
void xdpath_negotiate_undo(struct xdpath_datapath *dp);
/* worker.c: pin the attributes' thread to the id'th of the CPUs, in turn; nothing if there are none
 * or NULL. 0 or -errno. */
int xdpath_thread_pin(const cpu_set_t *cpus, uint32_t id, pthread_attr_t *attr);
int xdpath_workers_start(struct xdpath_datapath *dp);
void xdpath_workers_stop(struct xdpath_datapath *dp);

/* quirk.c: 0, or -EOPNOTSUPP where a known fault of the driver would break frames up. */
int xdpath_quirk_check(const struct xdpath_port *p, enum xdpath_mode mode, uint32_t rx_room,
		       struct xdpath_diag *d);

/* port.c: flags of the interface now (IFF_*, IFF_LOWER_UP too), and how often its carrier went (may
 * be NULL). 0 or -errno. */
int xdpath_port_link(int ifindex, uint32_t *flags, uint32_t *carrier_downs);

/* netlink.c (libmnl): */
struct nlmsghdr;
/*
 * Send one request and read the answers; cb gets each data message (may be NULL). The kernel's
 * extack text, if any, goes to ext (size bytes). Returns 0 or -errno.
 */
int xdpath_nl_talk(int protocol, struct nlmsghdr *nlh, int (*cb)(const struct nlmsghdr *, void *),
		   void *ctx, char *ext, size_t size);
/* Set (fd >= 0) or remove (fd = -1) an XDP program by RTM_SETLINK with XDP_FLAGS_*; ext as above.
 */
int xdpath_nl_set_xdp(int ifindex, int fd, uint32_t flags, char *ext, size_t size);
/* Id of a generic netlink family by name, or -errno (-ENOENT: the kernel has none). */
int xdpath_nl_family(const char *name);

#endif
