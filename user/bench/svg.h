/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Plots as inline SVG for the HTML reports: no script, no external resource. Colours are classes of
 * one style sheet, light and dark as the reader prefers. Each plot has a title and a description
 * for those who do not see it, each point its value as a tooltip.
 */
#ifndef BENCH_SVG_H
#define BENCH_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A line, or one bar in each group. NAN values are left out. */
struct svg_series {
	const char *name;
	const double *x; /* lines only */
	const double *y;
	const double *lo, *hi; /* interval around y; NULL none */
	size_t n;
};

struct svg_plot {
	const char *title, *desc;      /* desc: what is to be seen, in a sentence */
	const char *x_label, *y_label; /* with units */
	bool x_log, y_log;	       /* values <= 0 are left out then */
	bool y_zero;		       /* the axis begins at 0 (bars always do) */
	bool x_whole;		       /* x are whole numbers (runs) */
	bool x_reverse;		       /* lines: greatest x on the left */
	bool steps;		       /* lines: a staircase */
	bool points;		       /* lines: mark each point */
	const struct svg_series *series;
	size_t nseries;
	const char *const *group; /* bars: a name for each of series->n groups */
};

/* Style sheet of page and plots, with its <style> element: once, in the page's head. */
void svg_style(FILE *f);
/* &, <, >, quotes; control characters become '?'. */
void svg_escape(FILE *f, const char *text);
void svg_lines(FILE *f, const struct svg_plot *p);
void svg_bars(FILE *f, const struct svg_plot *p);

#endif
