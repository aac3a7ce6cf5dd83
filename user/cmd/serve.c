/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* serve: the far end of a measurement; what it does is user/bench/serve.c's business. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../bench/session.h"
#include "bench.h"

#define VERB_NAME "serve"

static void listening(void *ctx)
{
	const struct serve_opts *o = ctx;
	uint32_t port = o->port ? o->port : SESSION_PORT;

	if (o->quiet || o->json)
		return;
	printf("serve: %s: control on TCP port %u, datagrams on UDP port %u; Ctrl-C ends it\n",
	       o->dev, port, port + 1);
	fflush(stdout);
}

int cmd_serve(const struct args *a)
{
	struct xdpath_diag d = {0};
	struct serve_opts o = {
		.dev = a->dev[0],
		.port = (uint16_t)a->bench.port,
		.knobs = a->knobs,
		.mode = a->mode,
		.worst = a->worst,
		.json = a->json,
		.quiet = a->quiet,
		.ready = listening,
		.ctx = &o,
	};
	int stop_fd, err;

	if (a->bench.port > 65534)
		return fail(VERB_NAME, EXIT_USAGE, "--port %u: give 1 to 65534", a->bench.port);
	stop_fd = bench_stop_fd(a->duration);
	if (stop_fd < 0)
		return fail(VERB_NAME, EXIT_FAILED, "no descriptor for signals: %s; free some",
			    strerror(-stop_fd));
	err = session_serve(&o, stop_fd, &d);
	close(stop_fd);
	return err ? fail_diag(VERB_NAME, &d, err) : EXIT_DONE;
}
