/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The parts of an experiment: what is to be compared (tune_plan.c, tune_setting.c), the file of
 * samples (tune_log.c), the looks at them (tune_look.c), what won (tune_winner.c); tune.c runs it.
 */
#ifndef BENCH_TUNE_IN_H
#define BENCH_TUNE_IN_H

#include "tune.h"

/* tune_plan.c: what makes two plans the same experiment, and a hash of it in hex. */
json_t *tune_plan_json(const struct tune_plan *p);
int tune_plan_hash(const struct tune_plan *p, char hash[17]);

/* tune_setting.c: settings and comparisons of a checked plan. 0 or -ENOMEM, -E2BIG (settings). */
int tune_result_init(struct tune_result *r, const struct tune_plan *p);
uint32_t tune_setting_find(const struct tune_result *r, const uint32_t pick[TUNE_KNOBS]);
/* The setting with knob k moved to its i-th value; nsettings: not in this plan. */
uint32_t tune_setting_with(const struct tune_result *r, uint32_t s, uint32_t k, uint32_t i);
/* The settings of block b in the order they are run, without those that are dropped. */
uint32_t tune_order(const struct tune_result *r, uint32_t b, uint32_t order[TUNE_SETTINGS]);

static inline struct tune_sample *tune_sample_at(const struct tune_result *r, uint32_t block,
						 uint32_t setting)
{
	return &r->sample[(size_t)block * r->nsettings + setting];
}

/* tune_look.c: compare all that is open after r->blocks blocks; `last`: nothing stays open. */
int tune_look(struct tune_result *r, bool last);
/* Interrupted: what is open gets its numbers, and stays open. */
int tune_glance(struct tune_result *r);
/* After how many blocks the k-th look is due. */
uint32_t tune_look_at(const struct tune_plan *p, uint32_t k);
/* As few blocks as can show a difference in one of n comparisons; TUNE_BLOCKS + 1: none can. */
uint32_t tune_least_blocks(const struct tune_plan *p, uint32_t n);

/* tune_winner.c: of setting s against a: the goal that decides, better or worse; NULL: neither. */
const struct tune_comparison *tune_decided(const struct tune_result *r, uint32_t s, uint32_t a);

/* tune_log.c: samples kept in a file, one JSON line each, the plan in the first. */
struct tune_log;
/* *out is NULL where the plan keeps none. -EINVAL another plan's file, -EBUSY somebody writes it.
 */
int tune_log_open(struct tune_log **out, const struct tune_plan *p, struct xdpath_diag *d);
void tune_log_close(struct tune_log *l); /* NULL is fine, for all */
/* Whether the file holds all n runs of the next block. Half a block is cut off: it is measured
 * anew, because what is compared must have been measured within seconds. */
int tune_log_holds(struct tune_log *l, uint32_t n, struct xdpath_diag *d); /* 1, 0, -errno */
/* The next run of the file. -EINVAL: another run than this one. */
int tune_log_take(struct tune_log *l, uint32_t block, uint32_t setting, struct tune_sample *s,
		  struct xdpath_diag *d);
int tune_log_keep(struct tune_log *l, uint32_t block, uint32_t setting, const struct tune_sample *s,
		  struct xdpath_diag *d);

#endif
