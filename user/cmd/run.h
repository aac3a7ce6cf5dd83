/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What every verb that runs a datapath shares: open, tell the mode, run until stopped, report.
 *
 * The control thread sleeps on signals, timers, link events and the workers' end. Workers never
 * print.
 */
#ifndef XDPATH_RUN_H
#define XDPATH_RUN_H

#include <stdio.h>

#include "cli.h"

/* Packets an application's own round dropped, by port they were to leave or had come from. Each
 * worker has one, in worker->app, on lines of its own. */
struct app_counters {
	uint64_t tx_stall[XDPATH_PORTS_MAX]; /* egress full for longer than tx.stall_us */
	void *priv;			     /* the verb's own, per worker */
} __attribute__((aligned(XDPATH_CACHELINE)));

struct run {
	const char *verb;
	const struct args *a;
	struct xdpath_datapath_opts o; /* the verb sets steer, promisc, no_rx, ... */
	xdpath_round_fn round;	       /* gets this struct run as ctx */
	/* after opening, before starting; NULL or 0, else an exit code */
	int (*prepare)(struct run *r);
	/* after closing: undoes what prepare did; NULL: nothing to undo */
	void (*finish)(struct run *r);
	const char *note;   /* more for the start line, NULL none */
	const char *engine; /* for the JSON report, NULL none */
	void *priv;	    /* the verb's own */
	/* filled by run_datapath() */
	struct xdpath_datapath *dp;
	struct app_counters *app; /* one for each worker */
	uint32_t nworkers;
	struct xdpath_diag diag; /* why the mode is not better */
	double seconds;		 /* from start to stop */
	int finish_fd;
};

/* Options common to all verbs into r->o. */
void run_init(struct run *r, const char *verb, const struct args *a);

/* 0, or the exit code of a verb that would get nothing: no --all, no rule and no program that
 * steers. */
int run_needs_steering(const char *verb, const struct args *a);

/* Open, start, wait, stop, report, close. Returns an exit code. */
int run_datapath(struct run *r);

/* From any worker: the job is done, end the run. */
void run_finish(struct run *r);

/* One port's sums over its queues, ours and the kernel's. */
struct port_totals {
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
	/* drops of the way in: the kernel's count, then ours */
	uint64_t rx_ring_full, rx_no_frame, rx_too_long, rx_refused, rx_unread;
	/* drops of the way out */
	uint64_t tx_invalid, tx_too_big, tx_too_short, tx_stall, tx_device, tx_unsent;
	/* system calls */
	uint64_t tx_kicks, tx_again, rx_kicks, tx_stuck_kicks;
	uint64_t desc_bad, comp_bad, tx_invalid_kernel;
};

/* report.c */
void report_start(const struct run *r, FILE *f);
void report_notices(const struct run *r); /* to stderr, a line each */
void report_totals(const struct run *r, uint32_t port, struct port_totals *out);
void report_progress(const struct run *r, double elapsed, double interval, struct port_totals *last,
		     FILE *f);
void report_summary(const struct run *r, FILE *f);
int report_json(const struct run *r); /* on stdout; an exit code */

#endif
