/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What the files of `bench`, and `serve`, share. */
#ifndef XDPATH_BENCH_H
#define XDPATH_BENCH_H

#include "../bench/report.h"
#include "../bench/session.h"
#include "cli.h"

/* How the runs are repeated. */
struct bench_plan {
	struct session_opts o;
	bool lab;
	uint32_t runs_least, runs_most;
	double confidence, width; /* percent; 0: a fixed number of runs */
	cpu_set_t also;		  /* second placement; empty: none */
};

/* bench_args.c: words and options to a plan. An exit code; not 0: it was told. */
int bench_parse(struct bench_plan *p, const struct args *a);
struct lab_hosts;
/* With p->lab: the two hosts, named in the plan. An exit code; not 0: it was told. */
int bench_open_lab(const char *verb, const struct args *a, struct bench_plan *p,
		   struct lab_hosts **lab);
/* Readable once SIGINT or SIGTERM came, or after `duration` seconds (0: never). Blocks the signals:
 * to be called before any thread is made. fd or -errno. */
int bench_stop_fd(double duration);

#endif
