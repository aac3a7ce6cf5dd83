/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A machine that an experiment measures without running anything: it has two speeds, 1.35 apart,
 * that last for minutes, and noise within them; what a setting is worth is told by the test.
 */
#ifndef TUNE_MODEL_H
#define TUNE_MODEL_H

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"
#include "tune.h"

struct model {
	uint64_t random;
	double noise;	/* standard deviation of a run within a phase, of the logarithm */
	double seconds; /* of a run: 0.5 if 0 */
	double left;	/* seconds of this phase */
	bool slow;
	/* how many times as much of this goal as the baseline; NULL: nothing differs */
	double (*worth)(const struct tune_setting *s, enum tune_goal g);
	uint32_t runs, fail_at; /* fail_at: this run fails with `error`, counted from 1; 0 none */
	int error;
	uint32_t seen[64][TUNE_SETTINGS]; /* runs of each block and setting, by progress() */
};

static inline double model_unit(struct model *m)
{
	return ((double)(stats_random(&m->random) >> 11) + 0.5) / 9007199254740992.0;
}

static inline double model_normal(struct model *m)
{
	double r = sqrt(-2 * log(model_unit(m)));

	return r * cos(2 * M_PI * model_unit(m));
}

static inline int model_measure(void *ctx, const struct tune_setting *s, struct tune_sample *out)
{
	struct model *m = ctx;
	double speed;

	if (++m->runs == m->fail_at)
		return m->error;
	m->left -= m->seconds > 0 ? m->seconds : 0.5;
	if (m->left < 0) { /* a minute and a half on average */
		m->slow = !m->slow;
		m->left = -90 * log(model_unit(m));
	}
	speed = m->slow ? 1 : 1.35;
	for (int g = 0; g < TUNE_GOALS; g++) {
		double base = g == TUNE_THROUGHPUT ? 1e6 * speed : 100 / speed;

		out->value[g] = base * exp(m->noise * model_normal(m)) *
				(m->worth ? m->worth(s, (enum tune_goal)g) : 1);
	}
	return 0;
}

static inline struct tune_calls model_calls(struct model *m)
{
	return (struct tune_calls){.measure = model_measure, .ctx = m};
}

/* A checked plan of one knob. */
static inline struct tune_plan plan_of(const char *knob, const char *goals)
{
	struct tune_plan p = {.seed = 1};
	struct xdpath_diag d = {0};

	if (tune_plan_knob(&p, knob, &d) || (goals && tune_plan_goals(&p, goals, &d)))
		fail_msg("%s", d.text);
	return p;
}

static inline void checked(struct tune_plan *p)
{
	struct xdpath_diag d = {0};

	if (tune_plan_check(p, &d))
		fail_msg("%s", d.text);
}

#endif
