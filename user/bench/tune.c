/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Runs an experiment block by block until nothing is open, and hands out what came of it. */
#include <errno.h>
#include <string.h>

#include "internal.h"
#include "tune_in.h"

static int one_run(struct tune_result *r, const struct tune_calls *calls, struct tune_log *log,
		   uint32_t s, struct xdpath_diag *d)
{
	struct tune_sample *out = tune_sample_at(r, r->blocks, s);
	int err = calls->measure(calls->ctx, &r->setting[s], out);

	if (err && d && !d->err) /* the one who measured may have said more */
		return xdpath_fail(d, XDPATH_R_REFUSED, -err,
				   "%s: could not be measured: %s; see whether its test runs alone",
				   r->setting[s].name, strerror(-err));
	return err ? err : tune_log_keep(log, r->blocks, s, out, d);
}

static int one_block(struct tune_result *r, const struct tune_calls *calls, struct tune_log *log,
		     struct xdpath_diag *d)
{
	uint32_t order[TUNE_SETTINGS], n = tune_order(r, r->blocks, order);
	int held = tune_log_holds(log, n, d), err = held < 0 ? held : 0;

	for (uint32_t i = 0; !err && i < n; i++) {
		uint32_t s = order[i];

		err = held ? tune_log_take(log, r->blocks, s, tune_sample_at(r, r->blocks, s), d)
			   : one_run(r, calls, log, s, d);
		if (!err && calls->progress)
			calls->progress(calls->ctx, r->blocks, &r->setting[s],
					tune_sample_at(r, r->blocks, s));
	}
	return err;
}

static bool is_over(const struct tune_result *r)
{
	for (uint32_t i = 0; i < r->ncomparisons; i++)
		if (r->comparison[i].verdict == TUNE_OPEN)
			return false;
	return true;
}

static int all_blocks(struct tune_result *r, const struct tune_calls *calls, struct tune_log *log,
		      struct xdpath_diag *d)
{
	int err = 0;

	while (!err && !is_over(r)) {
		err = one_block(r, calls, log, d);
		if (err)
			break;
		r->blocks++;
		if (r->blocks == tune_look_at(r->plan, r->looks + 1) &&
		    tune_look(r, r->blocks == r->plan->blocks))
			err = xdpath_fail(d, XDPATH_R_MEMORY, ENOMEM,
					  "analysis: no memory; free some");
	}
	if (err && r->blocks) /* for want of memory the numbers stay those of the last look */
		(void)tune_glance(r);
	return err;
}

int tune_measure(const struct tune_plan *plan, const struct tune_calls *calls,
		 struct tune_result *r, struct xdpath_diag *d)
{
	struct tune_log *log = NULL;
	int err = tune_result_init(r, plan);

	if (d)
		*d = (struct xdpath_diag){0};
	if (err)
		return xdpath_fail(d, XDPATH_R_MEMORY, -err, "%u runs of each setting: %s",
				   plan->blocks, "no memory; give fewer --runs");
	err = tune_log_open(&log, plan, d);
	if (!err)
		err = all_blocks(r, calls, log, d);
	tune_log_close(log);
	return err;
}

static int print_json(const struct tune_result *r, FILE *out, struct xdpath_diag *d)
{
	json_t *j = tune_json(r);
	int err = j ? json_dumpf(j, out, JSON_INDENT(2) | JSON_REAL_PRECISION(10)) : -1;

	json_decref(j);
	if (err || fputc('\n', out) == EOF)
		return xdpath_fail(d, XDPATH_R_MEMORY, EIO,
				   "JSON: could not be written; see whether the disk is full");
	return 0;
}

int tune_run(const struct tune_plan *plan, const struct tune_calls *calls, FILE *out,
	     struct xdpath_diag *d)
{
	struct tune_plan p = *plan;
	struct tune_result r;
	struct xdpath_diag why = {0};
	int err = tune_plan_check(&p, d), shown = 0;

	if (err)
		return err;
	err = tune_measure(&p, calls, &r, d);
	if (!err || r.blocks) {
		if (p.json)
			shown = print_json(&r, out, &why);
		else
			tune_text(&r, out);
	}
	if (r.blocks && p.html && !shown && (shown = tune_html(&r, p.html)))
		xdpath_fail(&why, XDPATH_R_REFUSED, -shown, "--html %s: %s; give another file",
			    p.html, strerror(-shown));
	if (!err && p.winners)
		shown = shown ? shown : tune_write_winners(&r, p.winners, &why);
	tune_result_free(&r);
	if (!err && shown && d)
		*d = why;
	return err ? err : shown;
}
