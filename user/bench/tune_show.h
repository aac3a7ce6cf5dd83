/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What the outputs of an experiment share. */
#ifndef BENCH_TUNE_SHOW_H
#define BENCH_TUNE_SHOW_H

#include "stats.h"
#include "tune.h"

/* A setting's own runs: 95 % interval of their median. Settings are compared by pairs, not by it.
 */
struct tune_level {
	uint32_t n;
	double median;
	struct interval i;
};
struct tune_level tune_level_of(const struct tune_result *r, uint32_t s, enum tune_goal g);
/* "transactions/s", "us" */
const char *tune_unit(const struct tune_result *r, enum tune_goal g);
const char *tune_verdict_name(enum tune_verdict v); /* "better", "no difference" */

#endif
