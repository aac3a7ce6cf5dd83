/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Which settings a plan has, in which order each block runs them, and which are compared: every one
 * with the baseline, and a combination also with itself but for one knob: that knob's own part.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"
#include "tune_in.h"

static bool same_pick(const uint32_t *a, const uint32_t *b)
{
	return memcmp(a, b, TUNE_KNOBS * sizeof(*a)) == 0;
}

uint32_t tune_setting_find(const struct tune_result *r, const uint32_t pick[TUNE_KNOBS])
{
	uint32_t s = 0;

	while (s < r->nsettings && !same_pick(r->setting[s].pick, pick))
		s++;
	return s;
}

uint32_t tune_setting_with(const struct tune_result *r, uint32_t s, uint32_t k, uint32_t i)
{
	uint32_t pick[TUNE_KNOBS];

	memcpy(pick, r->setting[s].pick, sizeof(pick));
	pick[k] = i;
	return tune_setting_find(r, pick);
}

/* A value that an earlier one of its knob equals carries its place: "64#2". */
static void add_name(struct tune_setting *t, const struct tune_knob *knob, uint32_t i)
{
	size_t at = strlen(t->name);
	char place[12] = "";

	for (uint32_t j = 0; j < i; j++)
		if (strcmp(knob->value[j], knob->value[i]) == 0)
			snprintf(place, sizeof(place), "#%u", i + 1);
	snprintf(t->name + at, sizeof(t->name) - at, "%s%s=%s%s", at ? " " : "", knob->key,
		 knob->value[i], place);
}

static int add_setting(struct tune_result *r, const uint32_t pick[TUNE_KNOBS])
{
	const struct tune_plan *p = r->plan;
	struct tune_setting *t = &r->setting[r->nsettings];

	if (r->nsettings == TUNE_SETTINGS)
		return -E2BIG;
	r->nsettings++;
	*t = (struct tune_setting){.n = p->nknobs};
	memcpy(t->pick, pick, sizeof(t->pick));
	for (uint32_t k = 0; k < p->nknobs; k++) {
		t->key[k] = p->knob[k].key;
		t->value[k] = p->knob[k].value[pick[k]];
		if (pick[k])
			add_name(t, &p->knob[k], pick[k]);
	}
	if (!t->name[0])
		snprintf(t->name, sizeof(t->name), "baseline");
	return 0;
}

static int add_one_at_a_time(struct tune_result *r)
{
	uint32_t pick[TUNE_KNOBS] = {0};
	int err = add_setting(r, pick);

	for (uint32_t k = 0; k < r->plan->nknobs; k++) {
		for (uint32_t i = 1; !err && i < r->plan->knob[k].nvalues; i++) {
			pick[k] = i;
			err = add_setting(r, pick);
		}
		pick[k] = 0;
	}
	return err;
}

static int add_all_combinations(struct tune_result *r)
{
	uint32_t pick[TUNE_KNOBS] = {0}, k;
	int err;

	do {
		err = add_setting(r, pick);
		for (k = 0; k < r->plan->nknobs; k++) { /* counts, the first knob fastest */
			if (++pick[k] < r->plan->knob[k].nvalues)
				break;
			pick[k] = 0;
		}
	} while (!err && k < r->plan->nknobs);
	return err;
}

static void compare(struct tune_result *r, uint32_t s, uint32_t against, enum tune_goal g)
{
	r->comparison[r->ncomparisons++] = (struct tune_comparison){.setting = s,
								    .against = against,
								    .goal = g,
								    .effect = NAN,
								    .lo = -INFINITY,
								    .hi = INFINITY,
								    .p = 1,
								    .holm = 1};
}

static void add_comparisons(struct tune_result *r, enum tune_goal g)
{
	for (uint32_t s = 1; s < r->nsettings; s++) {
		compare(r, s, 0, g);
		for (uint32_t k = 0; k < r->plan->nknobs; k++) {
			uint32_t without = tune_setting_with(r, s, k, 0);

			if (without && without != s && without < r->nsettings)
				compare(r, s, without, g);
		}
	}
}

int tune_result_init(struct tune_result *r, const struct tune_plan *p)
{
	size_t samples;
	int err;

	*r = (struct tune_result){.plan = p};
	err = p->factorial ? add_all_combinations(r) : add_one_at_a_time(r);
	if (err)
		return err;
	samples = (size_t)p->blocks * r->nsettings;
	r->sample = malloc(samples * sizeof(*r->sample));
	r->comparison =
		calloc((size_t)r->nsettings * (1 + p->nknobs) * p->ngoals, sizeof(*r->comparison));
	if (!r->sample || !r->comparison)
		return -ENOMEM;
	for (size_t i = 0; i < samples; i++)
		for (int g = 0; g < TUNE_GOALS; g++)
			r->sample[i].value[g] = NAN;
	for (uint32_t g = 0; g < p->ngoals; g++)
		add_comparisons(r, p->goal[g]);
	return 0;
}

void tune_result_free(struct tune_result *r)
{
	free(r->sample);
	free(r->comparison);
	r->sample = NULL;
	r->comparison = NULL;
}

/* Of all settings, so that it does not depend on which of them are dropped by then. */
uint32_t tune_order(const struct tune_result *r, uint32_t b, uint32_t order[TUNE_SETTINGS])
{
	uint64_t random = r->plan->seed;
	uint32_t all[TUNE_SETTINGS], n = 0;

	random = stats_random(&random) + b;
	for (uint32_t s = 0; s < r->nsettings; s++) {
		uint32_t at = stats_below(&random, s + 1);

		all[s] = all[at];
		all[at] = s;
	}
	for (uint32_t i = 0; i < r->nsettings; i++)
		if (!r->dropped[all[i]])
			order[n++] = all[i];
	return n;
}
