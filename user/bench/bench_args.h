/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The options of `bench` and `serve` as text; user/cmd/bench.c makes a test of them. */
#ifndef BENCH_ARGS_H
#define BENCH_ARGS_H

#include <stdbool.h>
#include <stdint.h>

struct bench_args {
	const char *sizes;   /* -r REQ,RSP */
	const char *msg;     /* -m SIZE */
	uint32_t flows;	     /* -n */
	const char *rate;    /* --rate: messages a second, "10k" */
	const char *arrival; /* even, poisson, burst:N */
	bool reverse, bidir;
	uint32_t mtu;
	const char *engine; /* xsk, udp, packet */
	uint32_t runs;
	double time, warmup;
	const char *until; /* -I CONF,WIDTH */
	uint32_t peer_workers;
	const char *peer_cpus;
	const char *also_cpus; /* a second placement of our workers, in the same tables */
	const char *html;
	bool lab;
	uint32_t lab_queues;
	uint32_t port;
};

#endif
