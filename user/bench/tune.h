/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * An experiment over knobs: which value wins, and is it sure?
 *
 * Runs come in blocks. A block runs every setting once, in random order, so that each one and what
 * it is compared with were measured within seconds of each other; a machine that is slower for
 * minutes is slower for both. Compared are the ratios within blocks. Nothing here measures: a
 * callback does, so that experiments are tested on recorded runs.
 */
#ifndef BENCH_TUNE_H
#define BENCH_TUNE_H

#include <stdio.h>

#include <jansson.h>
#include <xdpath/xdpath.h>

#define TUNE_KNOBS    8U
#define TUNE_VALUES   16U
#define TUNE_SETTINGS 64U
#define TUNE_BLOCKS   1000U /* at most */

/* What a run yields, and what can be compared. */
enum tune_goal {
	TUNE_THROUGHPUT, /* a second, in plan.unit; more is better, of all the others less */
	TUNE_P50,	 /* us */
	TUNE_P99,	 /* us */
	TUNE_CPU,	 /* CPUs in use, of all machines that took part */
	TUNE_DEMAND,	 /* us of CPU for a KB, of all machines that took part */
	TUNE_GOALS
};

struct tune_sample {
	double value[TUNE_GOALS]; /* NAN: not measured; 0 and less count as not measured */
};

struct tune_knob {
	char key[32];
	char value[TUNE_VALUES][24]; /* the first one is the baseline; the same twice is a null */
	uint32_t nvalues;
};

/* Zero means the default. tune_plan_knob() and tune_plan_goals() fill it from words. */
struct tune_plan {
	struct tune_knob knob[TUNE_KNOBS];
	uint32_t nknobs;
	bool factorial; /* all combinations; else one knob at a time is moved off the baseline */
	enum tune_goal goal[TUNE_GOALS]; /* the first one that differs decides */
	uint32_t ngoals;		 /* 0: throughput, then demand */
	uint32_t blocks;		 /* at most; 48 */
	uint32_t looks; /* how often it may end early, spread evenly; 4, or 1 below 8 blocks */
	double alpha;	/* of all comparisons and looks together: to find what is not there; 0.05 */
	double margin;	/* percent that do not matter: known to be within, a setting is done; 3 */
	uint64_t seed;	/* of the orders */
	const char *what;   /* the test and its device in one line; part of what a resumed plan must
			       equal. NULL: nothing is said */
	const char *unit;   /* of throughput: "bit/s", "transactions/s"; NULL: "1/s" */
	const char *resume; /* a file: samples are kept there and taken from there; NULL none */
	const char *winners; /* a file: KEY = VALUE of what won; NULL none */
	const char *html;    /* a file for plots and text; NULL none */
	bool json;
};

/* Where a run is to be made. */
struct tune_setting {
	uint32_t n; /* knobs */
	const char *key[TUNE_KNOBS], *value[TUNE_KNOBS];
	uint32_t pick[TUNE_KNOBS]; /* which of the knob's values; all 0 in the baseline */
	char name[160]; /* "rx.batch=128 poll.mode=spin", of what differs; or "baseline" */
};

enum tune_verdict {
	TUNE_OPEN, /* interrupted before anything was sure */
	TUNE_BETTER,
	TUNE_WORSE,
	TUNE_SAME,	/* none found; what there may be is within the interval */
	TUNE_TOO_FEW,	/* pairs, for any verdict */
	TUNE_UNMEASURED /* no pair with both values */
};

/* Of `setting` against `against`. Once settled it stays as it was then. */
struct tune_comparison {
	uint32_t setting, against;
	enum tune_goal goal;
	enum tune_verdict verdict;
	uint32_t pairs, look;  /* look: the one that settled it, from 1; 0 none yet */
	double effect, lo, hi; /* percent; +-INFINITY where too few pairs give no end */
	double p;	       /* of this comparison alone */
	double holm, level;    /* after the correction; a difference when holm <= level */
};

struct tune_result {
	const struct tune_plan *plan; /* with its defaults filled in */
	struct tune_setting setting[TUNE_SETTINGS];
	uint32_t nsettings;
	struct tune_sample *sample;  /* tune_sample_at() */
	uint32_t blocks;	     /* whole ones that were run */
	uint32_t looks;		     /* that were taken */
	bool dropped[TUNE_SETTINGS]; /* nothing about it is open any more */
	struct tune_comparison *comparison;
	uint32_t ncomparisons;
};

/* Returns 0, or -errno, which ends the experiment: what was measured is kept (plan.resume). */
struct tune_calls {
	int (*measure)(void *ctx, const struct tune_setting *s, struct tune_sample *out);
	/* after each run, also one taken from the file; may be NULL. Blocks count from 0. */
	void (*progress)(void *ctx, uint32_t block, const struct tune_setting *s,
			 const struct tune_sample *got);
	void *ctx;
};

const char *tune_goal_name(enum tune_goal g); /* "throughput" */
/* One --knob, "KEY=V1,V2": known, in range. -EINVAL, -ENOENT, -ERANGE, -E2BIG. */
int tune_plan_knob(struct tune_plan *p, const char *text, struct xdpath_diag *d);
/* --goal, "throughput,demand". */
int tune_plan_goals(struct tune_plan *p, const char *text, struct xdpath_diag *d);
/* Fill in the defaults; refuse what cannot give a result. tune_run() does it too. */
int tune_plan_check(struct tune_plan *p, struct xdpath_diag *d);

/*
 * The whole experiment: measure or resume, print to out as text or JSON, write the winners. 0, or
 * -errno with the diagnosis: -EINTR (or what else measure() returned) after having printed what is
 * known so far, -EINVAL a plan or a file that will not do, -EBUSY a file another one writes.
 */
int tune_run(const struct tune_plan *plan, const struct tune_calls *calls, FILE *out,
	     struct xdpath_diag *d);

/* Its parts. A result refers to the plan, which must have been checked; free it in any case. */
int tune_measure(const struct tune_plan *plan, const struct tune_calls *calls,
		 struct tune_result *r, struct xdpath_diag *d);
void tune_result_free(struct tune_result *r);
void tune_text(const struct tune_result *r, FILE *f);
json_t *tune_json(const struct tune_result *r);
int tune_html(const struct tune_result *r, const char *path); /* 0 or -errno */
int tune_write_winners(const struct tune_result *r, const char *path, struct xdpath_diag *d);
/* The value of knob k that won, with the comparison that shows it; NULL: no difference found. */
const char *tune_winner(const struct tune_result *r, uint32_t k,
			const struct tune_comparison **evidence);

#endif
