/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The command: option tables, the common options, how a verb ends.
 *
 * One struct args holds every option of every verb; a table says which verb takes which.
 */
#ifndef XDPATH_CLI_H
#define XDPATH_CLI_H

#include <sched.h>
#include <stdio.h>

#include <xdpath/xdpath.h>

#include "bench_args.h"

enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_MISSING = 3 };

#define VERB(n) (1u << (n))
enum verb_id {
	V_PROBE,
	V_ATTACH,
	V_DETACH,
	V_STATUS,
	V_STEER,
	V_FORWARD,
	V_REFLECT,
	V_SINK,
	V_SOURCE,
	V_SERVE,
	V_BENCH,
	V_TUNE,
	V_COUNT
};

enum engine { ENGINE_XSK = 0, ENGINE_LIVE = 1 };

#define TUNE_ARGS_KNOBS 8

struct tune_args {
	const char *knob[TUNE_ARGS_KNOBS]; /* "KEY=V1,V2" */
	uint32_t nknobs;
	bool factorial;
	const char *goal, *preset, *resume, *winners;
};

struct args {
	const char *dev[2]; /* positional */
	int ndev;
	char *const *words; /* what follows the device, of a verb that takes words */
	int nwords;
	/* common */
	enum xdpath_mode mode, worst;
	uint32_t queues[XDPATH_QUEUES];
	uint32_t nqueues; /* 0: all */
	uint32_t workers;
	cpu_set_t cpus;
	bool have_cpus;
	struct xdpath_knobs knobs;
	enum xdpath_steer steer;
	bool steer_given;
	struct xdpath_rules rules; /* of -r and -f */
	bool rules_given;	   /* even if there are none in a file */
	double duration;	   /* seconds, 0: until stopped */
	uint64_t count;		   /* packets, 0: no limit */
	double interval;	   /* seconds, 0: none, < 0: not given */
	bool json, quiet;
	int verbose;
	/* probe */
	bool try_modes;
	const char *require;
	/* attach, detach */
	enum xdpath_attach attach;
	bool beside, force;
	const char *pin, *section, *prog_name;
	uint32_t prio, actions;
	uint64_t prog_id;
	/* forward */
	bool no_promisc;
	/* sink */
	bool touch;
	/* source */
	const char *size, *rate, *dst_mac, *src, *dst, *sport, *dport, *vlan;
	uint32_t flows;
	enum engine engine;
	struct bench_args bench; /* bench, serve, tune */
	struct tune_args tune;
};

#define VERB_WORDS 99

struct verb {
	const char *name;
	enum verb_id id;
	const char *synopsis;		  /* "forward A [B]" */
	const char *text;		  /* one line */
	const char *examples;		  /* two lines */
	int min_dev, max_dev;		  /* VERB_WORDS: one device, then any words */
	int (*run)(const struct args *a); /* returns an exit code */
};

extern const struct verb verbs[V_COUNT];

/* "xdpath VERB: ..." on stderr, one line; returns the code. */
int fail(const char *verb, enum exit_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same from a diagnosis; code 3 when a required mode or feature is not to be had, else 1. */
int fail_diag(const char *verb, const struct xdpath_diag *d, int err);

int cli_main(int argc, char **argv);
/* A command line within one, argv[0] the verb: 0, an exit code, or -1 when help was asked for and
 * given. */
int cli_parse(int argc, char **argv, struct args *a);

int cmd_probe(const struct args *a);
int cmd_attach(const struct args *a);
int cmd_detach(const struct args *a);
int cmd_status(const struct args *a);
int cmd_steer(const struct args *a);
int cmd_forward(const struct args *a);
int cmd_reflect(const struct args *a);
int cmd_sink(const struct args *a);
int cmd_source(const struct args *a);
int cmd_serve(const struct args *a);
int cmd_bench(const struct args *a);
int cmd_tune(const struct args *a);

#endif
