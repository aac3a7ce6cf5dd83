/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* A plan out of words, its defaults, what cannot work, and by what it is known again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "tune_in.h"

static const char *const goal_names[TUNE_GOALS] = {"throughput", "p50", "p99", "cpu", "demand"};

const char *tune_goal_name(enum tune_goal g)
{
	return goal_names[g];
}

/* The next item of a list: what stands before the comma; NULL after the last. */
static const char *next_item(const char **list, size_t *len)
{
	const char *item = *list;

	if (!item)
		return NULL;
	*len = strcspn(item, ",");
	*list = item[*len] ? item + *len + 1 : NULL;
	return item;
}

static int add_value(struct tune_knob *k, const char *value, size_t len, struct xdpath_diag *d)
{
	struct xdpath_knobs scratch;

	if (k->nvalues == TUNE_VALUES)
		return xdpath_fail(d, XDPATH_R_OPTIONS, E2BIG,
				   "--knob %s: more than %u values; give fewer", k->key,
				   TUNE_VALUES);
	if (!len || len >= sizeof(k->value[0]))
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "--knob %s: \"%.*s\" is no value; write --knob KEY=V1,V2",
				   k->key, (int)(len < 40 ? len : 40), value);
	memcpy(k->value[k->nvalues], value, len);
	k->value[k->nvalues][len] = '\0';
	xdpath_knobs_defaults(&scratch);
	return xdpath_knob_set(&scratch, k->key, k->value[k->nvalues++], d);
}

int tune_plan_knob(struct tune_plan *p, const char *text, struct xdpath_diag *d)
{
	const char *eq = strchr(text, '='), *list, *value;
	struct tune_knob k = {0};
	size_t len;

	if (!eq || eq == text || (size_t)(eq - text) >= sizeof(k.key))
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "--knob %.60s: names no knob and its values; write --knob "
				   "KEY=V1,V2",
				   text);
	memcpy(k.key, text, (size_t)(eq - text));
	list = eq + 1;
	while ((value = next_item(&list, &len))) {
		int err = add_value(&k, value, len, d);

		if (err)
			return err;
	}
	if (k.nvalues < 2)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "--knob %s: one value is no experiment; give two or more, the "
				   "first is what the others are compared with",
				   text);
	for (uint32_t i = 0; i < p->nknobs; i++)
		if (strcmp(p->knob[i].key, k.key) == 0)
			return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
					   "--knob %s: given twice; write all its values in one",
					   k.key);
	if (p->nknobs == TUNE_KNOBS)
		return xdpath_fail(d, XDPATH_R_OPTIONS, E2BIG,
				   "--knob %s: more than %u knobs; tune them in turn", k.key,
				   TUNE_KNOBS);
	p->knob[p->nknobs++] = k;
	return 0;
}

static int add_goal(struct tune_plan *p, const char *word, size_t len, struct xdpath_diag *d)
{
	enum tune_goal g = TUNE_THROUGHPUT;

	while (g < TUNE_GOALS &&
	       (strlen(goal_names[g]) != len || strncmp(goal_names[g], word, len) != 0))
		g++;
	if (g == TUNE_GOALS)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "--goal %.*s: is no goal; give some of throughput, p50, p99, "
				   "cpu, demand, the one that decides first",
				   (int)(len < 40 ? len : 40), word);
	for (uint32_t i = 0; i < p->ngoals; i++)
		if (p->goal[i] == g)
			return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
					   "--goal %s: given twice; once is enough", goal_names[g]);
	p->goal[p->ngoals++] = g;
	return 0;
}

int tune_plan_goals(struct tune_plan *p, const char *text, struct xdpath_diag *d)
{
	const char *list = text, *word;
	size_t len;

	p->ngoals = 0;
	while ((word = next_item(&list, &len))) {
		int err = add_goal(p, word, len, d);

		if (err)
			return err;
	}
	return 0;
}

static void defaults(struct tune_plan *p)
{
	if (!p->ngoals) {
		p->goal[0] = TUNE_THROUGHPUT;
		p->goal[1] = TUNE_DEMAND;
		p->ngoals = 2;
	}
	p->blocks = p->blocks ? p->blocks : 48;
	if (!p->looks)
		p->looks = p->blocks < 8 ? 1 : 4;
	p->alpha = p->alpha > 0 ? p->alpha : 0.05;
	p->margin = p->margin > 0 ? p->margin : 3;
	p->unit = p->unit ? p->unit : "1/s";
}

/* How many settings, and comparisons for each goal; false: too many. */
static bool counted(const struct tune_plan *p, uint32_t *settings, uint32_t *comparisons)
{
	struct tune_result r = {0};
	bool ok = tune_result_init(&r, p) == 0;

	*settings = r.nsettings;
	*comparisons = r.ncomparisons;
	tune_result_free(&r);
	return ok;
}

int tune_plan_check(struct tune_plan *p, struct xdpath_diag *d)
{
	uint32_t settings, comparisons, least;

	defaults(p);
	if (!p->nknobs)
		return xdpath_fail(
			d, XDPATH_R_OPTIONS, EINVAL,
			"--knob: none given, nothing to compare; write --knob KEY=V1,V2");
	if (p->blocks > TUNE_BLOCKS || p->looks > p->blocks)
		return xdpath_fail(d, XDPATH_R_OPTIONS, ERANGE,
				   "--runs %u with %u looks: out of range; give up to %u runs, and "
				   "no more looks than runs",
				   p->blocks, p->looks, TUNE_BLOCKS);
	if (!(p->alpha < 0.5))
		return xdpath_fail(d, XDPATH_R_OPTIONS, ERANGE,
				   "alpha %g: out of range; give one below 0.5", p->alpha);
	if (!counted(p, &settings, &comparisons))
		return xdpath_fail(d, XDPATH_R_OPTIONS, E2BIG,
				   "--knob: more than %u settings; give fewer values, or one "
				   "knob at a time",
				   TUNE_SETTINGS);
	least = tune_least_blocks(p, comparisons);
	if (least > TUNE_BLOCKS)
		return xdpath_fail(d, XDPATH_R_OPTIONS, E2BIG,
				   "--knob: %u comparisons are too many to find anything; give "
				   "fewer knobs, values or goals",
				   comparisons);
	if (p->blocks < least)
		return xdpath_fail(d, XDPATH_R_OPTIONS, ERANGE,
				   "--runs %u: too few to show a difference in any of %u "
				   "comparisons; give %u or more",
				   p->blocks, comparisons, least);
	return 0;
}

json_t *tune_plan_json(const struct tune_plan *p)
{
	json_t *knobs = json_array(), *goals = json_array();

	for (uint32_t k = 0; k < p->nknobs; k++) {
		json_t *values = json_array();

		for (uint32_t i = 0; i < p->knob[k].nvalues; i++)
			json_array_append_new(values, json_string(p->knob[k].value[i]));
		json_array_append_new(knobs, json_pack("{s:s, s:o}", "key", p->knob[k].key,
						       "values", values));
	}
	for (uint32_t g = 0; g < p->ngoals; g++)
		json_array_append_new(goals, json_string(goal_names[p->goal[g]]));
	return json_pack("{s:o, s:b, s:o, s:i, s:i, s:f, s:f, s:I, s:s?}", "knobs", knobs,
			 "factorial", p->factorial, "goals", goals, "blocks", p->blocks, "looks",
			 p->looks, "alpha", p->alpha, "margin_percent", p->margin, "seed",
			 (json_int_t)p->seed, "what", p->what);
}

/* FNV-1a of the text: two plans are the same one, or not; nobody forges one. */
int tune_plan_hash(const struct tune_plan *p, char hash[17])
{
	json_t *j = tune_plan_json(p);
	char *text = j ? json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	uint64_t h = 0xcbf29ce484222325ULL;

	json_decref(j);
	if (!text)
		return -ENOMEM;
	for (const char *c = text; *c; c++)
		h = (h ^ (unsigned char)*c) * 0x100000001b3ULL;
	snprintf(hash, 17, "%016llx", (unsigned long long)h);
	free(text);
	return 0;
}
