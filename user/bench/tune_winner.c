/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Which value of which knob won, and the file of them: KEY = VALUE with the evidence above it, as
 * --config and sysctl read it. Where nothing was found nothing is set, and the file says that.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"
#include "tune_in.h"

/* Comparisons stand by goal, the one that decides first. */
const struct tune_comparison *tune_decided(const struct tune_result *r, uint32_t s, uint32_t a)
{
	for (uint32_t i = 0; i < r->ncomparisons; i++) {
		const struct tune_comparison *c = &r->comparison[i];

		if (c->setting == s && c->against == a &&
		    (c->verdict == TUNE_BETTER || c->verdict == TUNE_WORSE))
			return c;
	}
	return NULL;
}

static bool is_better(const struct tune_comparison *c)
{
	return c && c->verdict == TUNE_BETTER;
}

static uint32_t place_of(const struct tune_result *r, enum tune_goal g)
{
	uint32_t i = 0;

	while (i < r->plan->ngoals && r->plan->goal[i] != g)
		i++;
	return i;
}

/* By the goal that decides first, then by how much. */
static bool beats(const struct tune_result *r, const struct tune_comparison *c,
		  const struct tune_comparison *best)
{
	if (!best || place_of(r, c->goal) != place_of(r, best->goal))
		return !best || place_of(r, c->goal) < place_of(r, best->goal);
	return fabs(log1p(c->effect / 100)) > fabs(log1p(best->effect / 100));
}

/* Better than the baseline, and by each of the knobs that it moves. */
static const struct tune_comparison *full_win(const struct tune_result *r, uint32_t s)
{
	const struct tune_comparison *c = tune_decided(r, s, 0);

	for (uint32_t k = 0; is_better(c) && k < r->plan->nknobs; k++)
		if (r->setting[s].pick[k] &&
		    !is_better(tune_decided(r, s, tune_setting_with(r, s, k, 0))))
			return NULL;
	return is_better(c) ? c : NULL;
}

/* The best of the combinations; the baseline, unless all combinations were run. */
static uint32_t best_combination(const struct tune_result *r)
{
	const struct tune_comparison *best = NULL;

	for (uint32_t s = 1; r->plan->factorial && s < r->nsettings; s++) {
		const struct tune_comparison *c = full_win(r, s);

		if (c && beats(r, c, best))
			best = c;
	}
	return best ? best->setting : 0;
}

const char *tune_winner(const struct tune_result *r, uint32_t k,
			const struct tune_comparison **evidence)
{
	const struct tune_knob *knob = &r->plan->knob[k];
	const struct tune_comparison *best = NULL, *worse = NULL;
	uint32_t at = best_combination(r), nworse = 0;

	if (r->setting[at].pick[k]) {
		*evidence = tune_decided(r, at, tune_setting_with(r, at, k, 0));
		return knob->value[r->setting[at].pick[k]];
	}
	for (uint32_t i = 1; i < knob->nvalues; i++) {
		uint32_t s = tune_setting_with(r, at, k, i);
		const struct tune_comparison *c = tune_decided(r, s, at);

		/* a combination that is better here, but not the best, has lost already */
		if (is_better(c) && !r->plan->factorial && beats(r, c, best))
			best = c;
		if (c && c->verdict == TUNE_WORSE) {
			nworse++;
			worse = !worse || beats(r, worse, c) ? c : worse; /* the nearest one */
		}
	}
	*evidence = best ? best : worse;
	if (best)
		return knob->value[r->setting[best->setting].pick[k]];
	return nworse == knob->nvalues - 1 ? knob->value[0] : NULL;
}

static void put_evidence(const struct tune_result *r, const struct tune_comparison *c, FILE *f)
{
	fprintf(f, "# %s against %s: %s %+.1f %% (%+.1f .. %+.1f), %u pairs, p %.2g\n",
		r->setting[c->setting].name, r->setting[c->against].name, tune_goal_name(c->goal),
		c->effect, c->lo, c->hi, c->pairs, c->p);
}

/* What there may be and was not found: of the goal that decides, over the knob's values. */
static void put_nothing(const struct tune_result *r, uint32_t k, FILE *f)
{
	const struct tune_knob *knob = &r->plan->knob[k];
	double most = 0;

	for (uint32_t i = 0; i < r->ncomparisons; i++) {
		const struct tune_comparison *c = &r->comparison[i];

		if (c->goal == r->plan->goal[0] && c->verdict == TUNE_SAME &&
		    tune_setting_with(r, c->setting, k, 0) == c->against)
			most = fmax(most, fmax(-c->lo, c->hi));
	}
	fprintf(f, "# %s: no better value than %s was found", knob->key, knob->value[0]);
	if (most > 0)
		fprintf(f, "; %s differs by %.1f %% at most where none was",
			tune_goal_name(r->plan->goal[0]), most);
	fputc('\n', f);
}

static void put_head(const struct tune_result *r, FILE *f)
{
	const struct tune_plan *p = r->plan;
	time_t now = time(NULL);
	struct tm tm;
	char date[32] = "";

	if (gmtime_r(&now, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d", &tm);
	fprintf(f, "# xdpath tune, %s: what won of %u settings in %u blocks\n", date, r->nsettings,
		r->blocks);
	if (p->what)
		fprintf(f, "# measured: %s\n", p->what);
	fprintf(f, "# decided by");
	for (uint32_t g = 0; g < p->ngoals; g++)
		fprintf(f, "%s %s", g ? ", then" : "", tune_goal_name(p->goal[g]));
	fprintf(f, "; at most %g %% of such experiments find what is not there\n", p->alpha * 100);
	if (!p->factorial && p->nknobs > 1)
		fprintf(f, "# each knob was moved alone: what wins together was not measured\n");
}

static void put_winners(const struct tune_result *r, FILE *f)
{
	put_head(r, f);
	for (uint32_t k = 0; k < r->plan->nknobs; k++) {
		const struct tune_comparison *evidence = NULL;
		const char *value = tune_winner(r, k, &evidence);

		fputc('\n', f);
		if (value && evidence) {
			put_evidence(r, evidence, f);
			fprintf(f, "%s = %s\n", r->plan->knob[k].key, value);
		} else {
			put_nothing(r, k, f);
		}
	}
}

/* Whole or not at all: it may replace a file that is in use. */
int tune_write_winners(const struct tune_result *r, const char *path, struct xdpath_diag *d)
{
	char temporary[4096];
	int err = 0;
	FILE *f;

	errno = 0;
	if ((size_t)snprintf(temporary, sizeof(temporary), "%s.new", path) >= sizeof(temporary))
		errno = ENAMETOOLONG;
	f = errno ? NULL : fopen(temporary, "we");
	if (f) {
		put_winners(r, f);
		err = ferror(f) ? EIO : 0;
		if (fclose(f))
			err = errno;
	}
	if (!f || (!err && rename(temporary, path)))
		err = errno;
	if (f && err)
		remove(temporary);
	if (err)
		return xdpath_fail(d, XDPATH_R_OPTIONS, err,
				   "%.200s: could not be written: %s; name a file in a folder "
				   "that can",
				   path, strerror(err));
	return 0;
}
