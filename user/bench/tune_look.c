/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A look at what was measured so far: which differences are sure, which are known not to matter,
 * and which settings need no more runs.
 *
 * Each look has its share of alpha (stats_spend), each comparison its share of that (Holm). The
 * shares add up, so all that is found in an experiment where there is nothing to find comes with
 * probability alpha at most, whatever the comparisons and looks have in common. A comparison's
 * interval is made at its own share: 0 is outside exactly when it is found.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "stats.h"
#include "tune_in.h"

uint32_t tune_look_at(const struct tune_plan *p, uint32_t k)
{
	return (p->blocks * k + p->looks - 1) / p->looks;
}

uint32_t tune_least_blocks(const struct tune_plan *p, uint32_t n)
{
	double share = stats_spend(p->alpha, p->looks, p->looks) / n;
	uint32_t blocks = 2;

	while (blocks <= 16 && ldexp(1, 1 - (int)blocks) > share) /* the least p there is */
		blocks++;
	return blocks <= 16 ? blocks : TUNE_BLOCKS + 1;
}

static bool measured(double v)
{
	return isfinite(v) && v > 0;
}

/* Differences of logarithms within blocks, where both were measured. */
static uint32_t pairs_of(const struct tune_result *r, const struct tune_comparison *c, double *d)
{
	uint32_t n = 0;

	for (uint32_t b = 0; b < r->blocks; b++) {
		double s = tune_sample_at(r, b, c->setting)->value[c->goal];
		double a = tune_sample_at(r, b, c->against)->value[c->goal];

		if (measured(s) && measured(a))
			d[n++] = log(s / a);
	}
	return n;
}

static double percent(double log_ratio)
{
	return expm1(log_ratio) * 100;
}

static uint64_t seed_of(const struct tune_result *r, const struct tune_comparison *c)
{
	return r->plan->seed + ((uint64_t)(c - r->comparison) << 32) + r->blocks;
}

static bool is_found(const struct tune_comparison *c)
{
	return c->verdict == TUNE_BETTER || c->verdict == TUNE_WORSE;
}

/* Estimates of all that is open; what was found before comes first in Holm's order, what is known
 * not to matter last. */
static int test_all(struct tune_result *r, double level, double *d)
{
	double *p = malloc((r->ncomparisons + 1) * sizeof(*p));

	if (!p)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->ncomparisons; i++) {
		struct tune_comparison *c = &r->comparison[i];

		p[i] = is_found(c) ? 0 : 1;
		if (c->verdict != TUNE_OPEN)
			continue;
		c->pairs = pairs_of(r, c, d);
		c->effect = percent(stats_mean(d, c->pairs));
		p[i] = c->p = stats_paired_p(d, c->pairs, seed_of(r, c));
	}
	stats_holm(p, r->ncomparisons);
	for (uint32_t i = 0; i < r->ncomparisons; i++) {
		if (r->comparison[i].verdict != TUNE_OPEN)
			continue;
		r->comparison[i].holm = p[i];
		r->comparison[i].level = level;
	}
	free(p);
	return 0;
}

/* How many comparisons stand before this one in Holm's order; of those not found, all found ones.
 */
static uint32_t before(const struct tune_result *r, const struct tune_comparison *c, double level)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->ncomparisons; i++) {
		const struct tune_comparison *o = &r->comparison[i];
		bool found = is_found(o) || (o->verdict == TUNE_OPEN && o->holm <= level);

		if (o == c || !found)
			continue;
		n += c->holm > level || is_found(o) || o->p < c->p || (o->p <= c->p && o < c);
	}
	return n;
}

static void settle(struct tune_result *r, struct tune_comparison *c, bool last)
{
	bool up = c->effect > 0, more_is_better = c->goal == TUNE_THROUGHPUT;
	double margin = r->plan->margin;

	if (c->holm <= c->level)
		c->verdict = up == more_is_better ? TUNE_BETTER : TUNE_WORSE;
	else if (last && !c->pairs)
		c->verdict = TUNE_UNMEASURED;
	else if (last && !isfinite(c->lo))
		c->verdict = TUNE_TOO_FEW;
	else if (last || (c->lo > -margin && c->hi < margin))
		c->verdict = TUNE_SAME;
	if (c->verdict != TUNE_OPEN)
		c->look = r->looks;
}

/* A setting is run as long as anything is open about it, or about one compared with it. */
static void drop(struct tune_result *r)
{
	for (uint32_t s = 0; s < r->nsettings; s++)
		r->dropped[s] = true;
	for (uint32_t i = 0; i < r->ncomparisons; i++) {
		const struct tune_comparison *c = &r->comparison[i];

		if (c->verdict == TUNE_OPEN)
			r->dropped[c->setting] = r->dropped[c->against] = false;
	}
}

/* The intervals of all that is open, each at the share that its place in Holm's order has. Those
 * that could settle nothing are left for the last look: they take the longest. */
static void bound(struct tune_result *r, double level, bool all, double *d)
{
	for (uint32_t i = 0; i < r->ncomparisons; i++) {
		struct tune_comparison *c = &r->comparison[i];
		struct interval v;

		if (c->verdict != TUNE_OPEN ||
		    !(all || c->holm <= level || fabs(c->effect) < r->plan->margin))
			continue;
		v = stats_paired_interval(d, pairs_of(r, c, d),
					  level / (r->ncomparisons - before(r, c, level)),
					  seed_of(r, c));
		c->lo = isfinite(v.lo) ? percent(v.lo) : -INFINITY;
		c->hi = isfinite(v.hi) ? percent(v.hi) : INFINITY;
	}
}

static int look(struct tune_result *r, double level, bool all)
{
	double *d = malloc((r->blocks + 1) * sizeof(*d));
	int err = d ? test_all(r, level, d) : -ENOMEM;

	if (!err)
		bound(r, level, all, d);
	free(d);
	return err;
}

int tune_look(struct tune_result *r, bool last)
{
	double level = stats_spend(r->plan->alpha, r->looks + 1, r->plan->looks);
	int err = look(r, level, last);

	if (err)
		return err;
	r->looks++;
	for (uint32_t i = 0; i < r->ncomparisons; i++)
		if (r->comparison[i].verdict == TUNE_OPEN)
			settle(r, &r->comparison[i], last);
	drop(r);
	return 0;
}

int tune_glance(struct tune_result *r)
{
	return look(r, stats_spend(r->plan->alpha, r->plan->looks, r->plan->looks), true);
}
