/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* An experiment as text: a table for each goal, then what won. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_in.h"
#include "tune_in.h"
#include "tune_show.h"

const char *tune_verdict_name(enum tune_verdict v)
{
	switch (v) {
	case TUNE_OPEN: return "not sure yet";
	case TUNE_BETTER: return "better";
	case TUNE_WORSE: return "worse";
	case TUNE_SAME: return "no difference";
	case TUNE_TOO_FEW: return "too few pairs";
	case TUNE_UNMEASURED: return "not measured";
	}
	return "unknown";
}

struct tune_level tune_level_of(const struct tune_result *r, uint32_t s, enum tune_goal g)
{
	double *x = malloc((r->blocks + 1) * sizeof(*x));
	struct tune_level v = {.median = NAN, .i = {-INFINITY, INFINITY}};

	for (uint32_t b = 0; x && b < r->blocks; b++) {
		double got = tune_sample_at(r, b, s)->value[g];

		if (isfinite(got) && got > 0)
			x[v.n++] = got;
	}
	if (v.n) {
		v.median = stats_median(x, v.n);
		v.i = stats_median_interval(x, v.n, 0.95, r->plan->seed);
	}
	free(x);
	return v;
}

const char *tune_unit(const struct tune_result *r, enum tune_goal g)
{
	switch (g) {
	case TUNE_THROUGHPUT: return r->plan->unit;
	case TUNE_CPU: return "CPUs";
	case TUNE_DEMAND: return "us/KB";
	default: return "us";
	}
}

static void add_level(struct grid *g, const struct tune_level *v)
{
	char median[32], lo[32], hi[32];

	number_text(v->median, median, sizeof(median));
	number_text(v->i.lo, lo, sizeof(lo));
	number_text(v->i.hi, hi, sizeof(hi));
	grid_add(g, "%s", median);
	if (isfinite(v->i.lo))
		grid_add(g, "%s .. %s", lo, hi);
	else
		grid_add(g, "-1");
}

static void add_comparison(struct grid *g, const struct tune_result *r,
			   const struct tune_comparison *c)
{
	grid_add(g, "%s", r->setting[c->against].name);
	if (c->pairs)
		grid_add(g, "%+.1f %%", c->effect);
	else
		grid_add(g, "-1");
	if (isfinite(c->lo))
		grid_add(g, "%+.1f .. %+.1f", c->lo, c->hi);
	else
		grid_add(g, "-1");
	grid_add(g, "%u", c->pairs);
	grid_add(g, "%.2g", c->holm);
	if (c->verdict == TUNE_SAME)
		grid_add(g, "no difference (within %.1f %%)", fmax(-c->lo, c->hi));
	else
		grid_add(g, "%s", tune_verdict_name(c->verdict));
}

static void add_head(struct grid *g, const struct tune_result *r, enum tune_goal goal)
{
	grid_row(g, "%s, %s", tune_goal_name(goal), tune_unit(r, goal));
	grid_add(g, "median");
	grid_add(g, "95 %% of it");
	grid_add(g, "against");
	grid_add(g, "differs by");
	grid_add(g, "interval");
	grid_add(g, "pairs");
	grid_add(g, "p");
	grid_add(g, "verdict");
}

/* A table that is longer than a grid goes on in the next, under the same head. */
static void make_room(struct grid *g, const struct tune_result *r, enum tune_goal goal, FILE *f)
{
	if (g->rows < GRID_ROWS)
		return;
	grid_print(g, f);
	add_head(g, r, goal);
}

static void text_goal(const struct tune_result *r, enum tune_goal goal, FILE *f)
{
	struct tune_level v = tune_level_of(r, 0, goal);
	struct grid *g = calloc(1, sizeof(*g));
	uint32_t last = 0;

	if (!g)
		return;
	add_head(g, r, goal);
	grid_row(g, "baseline");
	add_level(g, &v);
	for (uint32_t i = 0; i < r->ncomparisons; i++) {
		const struct tune_comparison *c = &r->comparison[i];

		if (c->goal != goal)
			continue;
		make_room(g, r, goal, f);
		grid_row(g, "%s", c->setting != last ? r->setting[c->setting].name : "");
		v = tune_level_of(r, c->setting, goal);
		if (c->setting != last) {
			add_level(g, &v);
		} else { /* the same setting against another one */
			grid_add(g, "%s", "");
			grid_add(g, "%s", "");
		}
		add_comparison(g, r, c);
		last = c->setting;
	}
	fputc('\n', f);
	grid_print(g, f);
	free(g);
}

static void text_head(const struct tune_result *r, FILE *f)
{
	const struct tune_plan *p = r->plan;
	struct wrap w;

	fprintf(f, "tune: %u settings%s, %u of at most %u blocks, each setting once in each\n",
		r->nsettings, p->factorial ? ", all combinations" : "", r->blocks, p->blocks);
	if (p->what)
		fprintf(f, "  %-*s%s\n", INDENT - 2, "measured", p->what);
	wrap_start(&w, f, "baseline");
	for (uint32_t k = 0; k < p->nknobs; k++)
		wrap_item(&w, "%s=%s", p->knob[k].key, p->knob[k].value[0]);
	wrap_end(&w);
	wrap_start(&w, f, "sure");
	wrap_item(&w, "at most %g %% of such experiments find what is not there", p->alpha * 100);
	wrap_item(&w, "p and intervals pay for %u comparison%s and %u look%s (%u taken)",
		  r->ncomparisons, r->ncomparisons == 1 ? "" : "s", p->looks,
		  p->looks == 1 ? "" : "s", r->looks);
	wrap_end(&w);
}

static void text_winners(const struct tune_result *r, FILE *f)
{
	struct wrap w;

	fputc('\n', f);
	wrap_start(&w, f, "won");
	for (uint32_t k = 0; k < r->plan->nknobs; k++) {
		const struct tune_comparison *evidence;
		const char *value = tune_winner(r, k, &evidence);

		if (value)
			wrap_item(&w, "%s=%s", r->plan->knob[k].key, value);
		else
			wrap_item(&w, "%s: nothing found", r->plan->knob[k].key);
	}
	wrap_end(&w);
}

void tune_text(const struct tune_result *r, FILE *f)
{
	text_head(r, f);
	for (uint32_t g = 0; g < r->plan->ngoals; g++)
		text_goal(r, r->plan->goal[g], f);
	text_winners(r, f);
}
