/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* An experiment as one HTML file, as the reports of bench are: bars with intervals for each goal,
 * the runs in their order, then the whole text. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "svg.h"
#include "tune_in.h"
#include "tune_show.h"

#define LINES_MAX 6U /* settings in one plot of runs: as many as there are colours */

static void plot_medians(const struct tune_result *r, enum tune_goal goal, FILE *f)
{
	double y[TUNE_SETTINGS], lo[TUNE_SETTINGS], hi[TUNE_SETTINGS];
	const char *name[TUNE_SETTINGS];
	struct svg_series s = {
		.name = "median, 95 % interval", .y = y, .lo = lo, .hi = hi, .n = r->nsettings};
	struct svg_plot p = {.title = tune_goal_name(goal),
			     .desc = "Each setting's own runs. What differs is judged by pairs of "
				     "runs, in the table below.",
			     .x_label = "setting",
			     .y_label = tune_unit(r, goal),
			     .series = &s,
			     .nseries = 1,
			     .group = name};

	for (uint32_t i = 0; i < r->nsettings; i++) {
		struct tune_level v = tune_level_of(r, i, goal);
		bool known = isfinite(v.i.lo);

		name[i] = r->setting[i].name;
		y[i] = v.median;
		lo[i] = known ? v.i.lo : v.median;
		hi[i] = known ? v.i.hi : v.median;
	}
	svg_bars(f, &p);
}

/* Each setting's value in each block: a machine that changes its pace is seen here. */
static void plot_runs(const struct tune_result *r, enum tune_goal goal, FILE *f)
{
	uint32_t lines = r->nsettings < LINES_MAX ? r->nsettings : LINES_MAX;
	double *x = calloc((size_t)(lines + 1) * (r->blocks + 1), sizeof(*x));
	struct svg_series s[LINES_MAX];
	struct svg_plot p = {.title = "Runs in their order",
			     .desc = "A block runs each setting once, in random order.",
			     .x_label = "block",
			     .y_label = tune_unit(r, goal),
			     .x_whole = true,
			     .points = true,
			     .series = s,
			     .nseries = lines};

	if (!x)
		return;
	for (uint32_t b = 0; b < r->blocks; b++)
		x[b] = b + 1;
	for (uint32_t i = 0; i < lines; i++) {
		double *y = x + (size_t)(i + 1) * r->blocks;

		for (uint32_t b = 0; b < r->blocks; b++)
			y[b] = tune_sample_at(r, b, i)->value[goal];
		s[i] = (struct svg_series){.name = r->setting[i].name,
					   .x = x,
					   .y = y,
					   .n = r->blocks};
	}
	svg_lines(f, &p);
	free(x);
}

static void text_part(const struct tune_result *r, FILE *f)
{
	char *text = NULL;
	size_t size = 0;
	FILE *m = open_memstream(&text, &size);

	if (!m)
		return;
	tune_text(r, m);
	if (fclose(m) == 0 && text) {
		fputs("<h2>In full</h2>\n<pre>", f);
		svg_escape(f, text);
		fputs("</pre>\n", f);
	}
	free(text);
}

int tune_html(const struct tune_result *r, const char *path)
{
	const struct tune_plan *p = r->plan;
	FILE *f = fopen(path, "we");
	int err = 0;

	if (!f)
		return -errno;
	fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	      "<title>xdpath tune</title>\n",
	      f);
	svg_style(f);
	fputs("</head><body>\n<h1>xdpath tune</h1>\n<p>", f);
	svg_escape(f, p->what ? p->what : "");
	fprintf(f, "</p>\n<p class=soft>%u settings, %u blocks.</p>\n", r->nsettings, r->blocks);
	for (uint32_t g = 0; g < p->ngoals; g++)
		plot_medians(r, p->goal[g], f);
	plot_runs(r, p->goal[0], f);
	text_part(r, f);
	fputs("</body></html>\n", f);
	if (ferror(f))
		err = -EIO;
	if (fclose(f) && !err)
		err = -errno;
	return err;
}
