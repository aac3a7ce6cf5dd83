/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* An experiment as one JSON document. What is not known is null. */
#include <math.h>
#include <stdlib.h>

#include "stats.h"
#include "tune_in.h"
#include "tune_show.h"

static json_t *real_or_null(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *json_setting(const struct tune_result *r, uint32_t s)
{
	const struct tune_setting *t = &r->setting[s];
	json_t *o = json_object(), *knobs = json_object();

	for (uint32_t k = 0; k < t->n; k++)
		json_object_set_new(knobs, t->key[k], json_string(t->value[k]));
	json_object_set_new(o, "name", json_string(t->name));
	json_object_set_new(o, "baseline", json_boolean(s == 0));
	json_object_set_new(o, "knobs", knobs);
	for (uint32_t g = 0; g < r->plan->ngoals; g++) {
		struct tune_level v = tune_level_of(r, s, r->plan->goal[g]);

		json_object_set_new(o, tune_goal_name(r->plan->goal[g]),
				    json_pack("{s:o, s:o, s:o, s:i}", "median",
					      real_or_null(v.median), "low", real_or_null(v.i.lo),
					      "high", real_or_null(v.i.hi), "runs", v.n));
	}
	return o;
}

static json_t *json_comparison(const struct tune_result *r, const struct tune_comparison *c)
{
	json_t *o = json_object();

	json_object_set_new(o, "setting", json_string(r->setting[c->setting].name));
	json_object_set_new(o, "against", json_string(r->setting[c->against].name));
	json_object_set_new(o, "goal", json_string(tune_goal_name(c->goal)));
	json_object_set_new(o, "verdict", json_string(tune_verdict_name(c->verdict)));
	json_object_set_new(o, "effect_percent", real_or_null(c->effect));
	json_object_set_new(o, "low_percent", real_or_null(c->lo));
	json_object_set_new(o, "high_percent", real_or_null(c->hi));
	json_object_set_new(o, "pairs", json_integer(c->pairs));
	json_object_set_new(o, "p", real_or_null(c->p));
	json_object_set_new(o, "p_holm", real_or_null(c->holm));
	json_object_set_new(o, "level", real_or_null(c->level));
	json_object_set_new(o, "look", c->look ? json_integer(c->look) : json_null());
	return o;
}

static json_t *json_winners(const struct tune_result *r)
{
	json_t *o = json_object();

	for (uint32_t k = 0; k < r->plan->nknobs; k++) {
		const struct tune_comparison *evidence;
		const char *value = tune_winner(r, k, &evidence);

		json_object_set_new(o, r->plan->knob[k].key,
				    value ? json_string(value) : json_null());
	}
	return o;
}

json_t *tune_json(const struct tune_result *r)
{
	json_t *o = json_object(), *settings = json_array(), *comparisons = json_array();

	for (uint32_t s = 0; s < r->nsettings; s++)
		json_array_append_new(settings, json_setting(r, s));
	for (uint32_t i = 0; i < r->ncomparisons; i++)
		json_array_append_new(comparisons, json_comparison(r, &r->comparison[i]));
	json_object_set_new(o, "verb", json_string("tune"));
	json_object_set_new(o, "plan", tune_plan_json(r->plan));
	json_object_set_new(o, "throughput_unit", json_string(r->plan->unit));
	json_object_set_new(o, "blocks", json_integer(r->blocks));
	json_object_set_new(o, "looks", json_integer(r->looks));
	json_object_set_new(o, "settings", settings);
	json_object_set_new(o, "comparisons", comparisons);
	json_object_set_new(o, "winners", json_winners(r));
	return o;
}
