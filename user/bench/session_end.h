/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What both ends of a session do alike: open the engine with the test on it, take the account of a
 * run, undo it. session.c is the bench end, serve.c the far end.
 */
#ifndef BENCH_SESSION_END_H
#define BENCH_SESSION_END_H

#include <jansson.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "neigh.h"
#include "test_run.h"

#define SESSION_PROTOCOL 1
#define SESSION_WAIT_MS	 5000  /* for an answer that needs no device */
#define SESSION_OPEN_MS	 60000 /* drivers reset for seconds */
#define SESSION_QUIET_MS 5     /* nothing came for so long: nothing is on its way */

struct end_sample {
	struct test_side engine;
	struct test_count test;
	struct if_counters ifc;
	uint64_t ns;
};

struct session_end {
	struct engine e;
	struct test_spec spec;
	struct xdpath_knobs knobs;
	struct test_end *t;
	uint16_t id;
	char dev[16], driver[32], host[64];
	cpu_set_t cpus;
	int event_fd; /* a mark came, or was answered */
	bool started;
	struct end_sample begin, end;
	struct usage_meter *meter;
	struct usage usage;
};

/* The device: its MAC, MTU, index and driver into path and end. 0 or -errno with a diagnosis. */
int end_device(struct session_end *x, const char *dev, struct xdpath_diag *d);
/* An address of a dual socket may be an IPv4 one in IPv6's dress: its family, the address (4 or 16
 * bytes) to out. */
int end_unpack(const struct sockaddr_storage *a, void *out);
/* Our address and the peer's from the control connection, and the next hop's MAC. */
int end_addresses(struct session_end *x, int tcp, struct xdpath_diag *d);
/* Engine and test; the path and the spec are there. `mtu` 0: the device's. */
int end_open(struct session_end *x, enum xdpath_mode mode, enum xdpath_mode worst,
	     struct xdpath_diag *d);
void end_close(struct session_end *x); /* fine on one that was never opened, but zeroed */

void end_usage_start(struct session_end *x); /* takes some ms */
void end_begin(struct session_end *x);	     /* counters from here on */
void end_usage_stop(struct session_end *x);  /* the traffic is over */
void end_finish(struct session_end *x);	     /* counters up to here */
void end_account(const struct session_end *x, struct test_side *out);
/* Wait until nothing has come or gone for SESSION_QUIET_MS, at most_ms in all. */
void end_quiet(const struct session_end *x, int most_ms);

/* spec_json.c: the test as the far end is told it. */
json_t *spec_to_json(const struct test_spec *s);
int spec_from_json(const json_t *o, struct test_spec *s); /* 0 or -EPROTO: not within bounds */
int knobs_from_json(const json_t *o, struct xdpath_knobs *k, struct xdpath_diag *d);
/* What the caller of either end must not ask for. 0 or -EINVAL with a diagnosis. */
int spec_check(const struct test_spec *s, struct xdpath_diag *d);
/* The datagrams' size against device and family. */
int spec_mtu(const struct session_end *x, uint32_t device_mtu, uint32_t *mtu,
	     struct xdpath_diag *d);
const char *spec_engine_name(enum test_engine e);

#endif
