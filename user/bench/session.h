/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A measurement between two hosts. The bench end connects to the serve end by TCP through the
 * device (the same path the test takes), says what test it wants, and both open the engine, run,
 * and tell each other their accounts. Whoever loses the connection ends the test and cleans up.
 */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include <jansson.h>

#include "test.h"

#define SESSION_PORT 12866U /* control; the test's datagrams use the next one */

struct session;

struct session_opts {
	const char *dev, *peer; /* peer: an IPv4 or IPv6 address (fe80::1%dev too) */
	uint16_t port;		/* 0: SESSION_PORT */
	struct test_spec spec;
	struct xdpath_knobs knobs; /* of this end; the far end is told the same */
	enum xdpath_mode mode, worst;
};

/*
 * Connect, agree, open the engine on both ends. 0, or -errno with the diagnosis: a peer that is not
 * there, not reached through dev, of another version, refusing (with its own words), an engine that
 * could not be opened at either end.
 */
int session_open(struct session **s, const struct session_opts *o, struct xdpath_diag *d);
/*
 * One run: warm up, measure, gather both accounts. The session can run again. -EINTR when `stop_fd`
 * (readable ends it; -1 none) was; -EPIPE when the far end died: say so and close.
 */
int session_run(struct session *s, struct test_result *r, int stop_fd, struct xdpath_diag *d);
/* What the far end says of its machine (record_host()); borrowed, NULL if it did not. */
json_t *session_peer_record(const struct session *s);
void session_close(struct session *s); /* NULL is fine */

/*
 * The far end: listen on dev, one session at a time (another is told who has it), until stop_fd is
 * readable. ready(ctx) is called once it listens. Returns 0 or -errno.
 */
struct serve_opts {
	const char *dev;
	uint16_t port;
	struct xdpath_knobs knobs; /* where the bench end sets none */
	enum xdpath_mode mode, worst;
	bool json, quiet;
	void (*ready)(void *ctx);
	void *ctx;
};
int session_serve(const struct serve_opts *o, int stop_fd, struct xdpath_diag *d);

#endif
