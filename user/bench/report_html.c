/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The HTML report: one file without script or outer resource, so that it opens anywhere, for as
 * long as files are kept. Plots of the runs, then the whole text report, then the conditions.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_in.h"
#include "svg.h"

#define PLACES_MAX 6 /* placements in one plot: as many as there are colours */
#define CDF_POINTS 400

/* Storage of one series; freed together. */
struct column {
	char name[160];
	double *x, *y, *lo, *hi;
	size_t n;
};

static bool column_make(struct column *c, size_t most)
{
	double *all = calloc(4 * most + 4, sizeof(*all));

	if (!all)
		return false;
	c->x = all;
	c->y = all + most + 1;
	c->lo = all + 2 * (most + 1);
	c->hi = all + 3 * (most + 1);
	c->n = 0;
	return true;
}

static void columns_free(struct column *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(c[i].x);
}

static void to_series(const struct column *c, size_t n, struct svg_series *s, bool interval)
{
	for (size_t i = 0; i < n; i++)
		s[i] = (struct svg_series){.name = c[i].name,
					   .x = c[i].x,
					   .y = c[i].y,
					   .lo = interval ? c[i].lo : NULL,
					   .hi = interval ? c[i].hi : NULL,
					   .n = c[i].n};
}

static void name_column(struct column *c, const struct bench_report *first,
			const struct bench_report *b, const char *what)
{
	char place[128] = "";

	if (first->next)
		placement_text(b, place, sizeof(place));
	snprintf(c->name, sizeof(c->name), "%s%s%s", what, what[0] && place[0] ? ", " : "", place);
}

/*
 * How many took at most (or, in the tail, longer than) so long, in percent: one point for every
 * bucket, thinned to what can be seen. The last bucket ends at the greatest.
 */
static void fill_cdf(struct column *c, const struct hist *h, bool above)
{
	uint64_t seen = 0, lo, hi;
	double last = -1;

	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		double percent, us;

		if (!h->count[i])
			continue;
		if (!c->n) { /* the foot of the curve */
			c->x[c->n] = (double)h->min / 1e3;
			c->y[c->n++] = above ? 100 : 0;
		}
		seen += h->count[i];
		hist_bounds(i, &lo, &hi);
		us = (double)(hi < h->max ? hi : h->max) / 1e3;
		percent = 100.0 * (double)(above ? h->total - seen : seen) / (double)h->total;
		if (above && seen == h->total) /* the slowest one itself */
			percent = 100.0 / (double)h->total;
		if (c->n > CDF_POINTS && fabs(percent - last) < 0.05 && !above)
			continue;
		last = percent;
		c->x[c->n] = us;
		c->y[c->n++] = percent;
	}
}

static void plot_cdf(const struct bench_report *b, FILE *f, bool above)
{
	struct column c[2 * PLACES_MAX] = {0};
	struct svg_series s[2 * PLACES_MAX];
	size_t n = 0;
	struct svg_plot p = {.x_label = "latency, us (log scale)", .x_log = true, .series = s};

	for (const struct bench_report *r = b; r && n + 1 < 2UL * PLACES_MAX; r = r->next) {
		for (int service = 0; service < 2; service++) {
			struct hist *h = report_merged(r, service);

			if (h && h->total && column_make(&c[n], HIST_BUCKETS + 2)) {
				name_column(&c[n], b, r,
					    service		      ? "from when it went"
					    : r->run[0].service.total ? "from when it was due"
								      : "all runs");
				fill_cdf(&c[n++], h, above);
			}
			free(h);
		}
	}
	to_series(c, n, s, false);
	p.nseries = n;
	p.title = above ? "Latency, the tail" : "Latency";
	p.desc = above ? "Share of transactions that took longer; both scales logarithmic."
		       : "Share of transactions answered within a time, all runs together.";
	p.y_label = above ? "longer than this, %" : "within this, %";
	p.y_log = above;
	p.y_zero = true;
	if (n)
		svg_lines(f, &p);
	columns_free(c, n);
}

/* One value a run: what drifts, or comes in two speeds, is seen here and in no average. */
static void plot_runs(const struct bench_report *b, FILE *f, figure_fn fn, double arg,
		      const char *title, const char *y_label)
{
	struct column c[PLACES_MAX] = {0};
	struct svg_series s[PLACES_MAX];
	size_t n = 0;
	struct svg_plot p = {.title = title,
			     .desc = "Each run in the order they were made.",
			     .x_label = "run",
			     .y_label = y_label,
			     .x_whole = true,
			     .points = true,
			     .series = s};

	for (const struct bench_report *r = b; r && n < PLACES_MAX; r = r->next) {
		if (!column_make(&c[n], r->nruns))
			break;
		name_column(&c[n], b, r, "");
		for (uint32_t i = 0; i < r->nruns; i++) {
			c[n].x[i] = i + 1;
			c[n].y[i] = fn(r, &r->run[i], arg);
		}
		c[n++].n = r->nruns;
	}
	to_series(c, n, s, false);
	for (size_t i = 0; i < n && !b->next; i++)
		s[i].name = NULL;
	p.nseries = n;
	if (n)
		svg_lines(f, &p);
	columns_free(c, n);
}

struct bar {
	const char *name;
	figure_fn fn;
	double arg;
};

/* Mean and deviation of several figures, one group each. */
static void plot_bars(const struct bench_report *b, FILE *f, struct svg_plot p,
		      const struct bar *bar, size_t nbars)
{
	struct column c[PLACES_MAX] = {0};
	struct svg_series s[PLACES_MAX];
	const char *group[16];
	size_t n = 0, used = 0;

	for (size_t i = 0; i < nbars && used < 16; i++)
		if (figure_of(b, bar[i].fn, bar[i].arg).n)
			group[used++] = bar[i].name;
	for (const struct bench_report *r = b; r && n < PLACES_MAX && used; r = r->next) {
		if (!column_make(&c[n], used))
			break;
		name_column(&c[n], b, r, r->next || b->next ? "" : "mean, ± standard deviation");
		for (size_t i = 0; i < nbars && c[n].n < used; i++) {
			struct figure v = figure_of(r, bar[i].fn, bar[i].arg);
			size_t at = c[n].n;

			if (!figure_of(b, bar[i].fn, bar[i].arg).n)
				continue;
			c[n].y[at] = v.n ? v.mean : NAN;
			c[n].lo[at] = v.n > 1 ? v.mean - v.sd : NAN;
			c[n].hi[at] = v.n > 1 ? v.mean + v.sd : NAN;
			c[n].n++;
		}
		n++;
	}
	to_series(c, n, s, true);
	p.series = s;
	p.nseries = n;
	p.group = group;
	if (n && c[0].n)
		svg_bars(f, &p);
	columns_free(c, n);
}

static void plot_percentiles(const struct bench_report *b, FILE *f)
{
	static const struct bar bar[] = {{"50 %", run_latency_us, 50},
					 {"90 %", run_latency_us, 90},
					 {"95 %", run_latency_us, 95},
					 {"99 %", run_latency_us, 99},
					 {"99.9 %", run_latency_us, 99.9},
					 {"99.99 %", run_latency_us, 99.99},
					 {"greatest", run_latency_us, 100}};
	struct svg_plot p = {.title = "Latency by percentile",
			     .desc = "Mean over the runs, the whisker is the standard deviation.",
			     .y_label = "us (log scale)",
			     .y_log = true};

	plot_bars(b, f, p, bar, sizeof(bar) / sizeof(bar[0]));
}

static void plot_cpu(const struct bench_report *b, FILE *f)
{
	const struct bar bar[] = {{same_machine(b) ? "machine (both ends)" : "machine, local",
				   run_machine_cpus, LOCAL},
				  {"machine, remote", run_machine_cpus, REMOTE},
				  {"own threads, local", run_thread_cpus, LOCAL},
				  {"own threads, remote", run_thread_cpus, REMOTE}};
	struct svg_plot p = {.title = "CPUs in use",
			     .desc = "The whole machine, with interrupts and softirqs on any CPU; "
				     "and of it the threads of the measurement.",
			     .y_label = "CPUs"};

	plot_bars(b, f, p, bar, sizeof(bar) / sizeof(bar[0]));
}

static void row(FILE *f, const char *name, const char *value, bool absent)
{
	fputs("<tr><th scope=row>", f);
	svg_escape(f, name);
	fputs(absent ? "</th><td class=soft>" : "</th><td>", f);
	svg_escape(f, value);
	fputs("</td></tr>\n", f);
}

static void summary_row(FILE *f, const struct bench_report *b, const char *name, figure_fn fn,
			double arg)
{
	struct figure v = figure_of(b, fn, arg);
	bool time = fn == run_latency_us && arg < 100;
	char text[64];

	if (!v.n)
		return;
	figure_text(v, time ? latency_step(v.mean) : 0, text, sizeof(text));
	row(f, name, text, false);
}

static void summary_table(FILE *f, const struct bench_report *b)
{
	bool rr = b->spec->kind == TEST_RR;

	fputs("<div class=scroll><table>\n", f);
	summary_row(f, b, rr ? "transactions/s" : "messages/s", run_rate, 0);
	summary_row(f, b, "payload, Mb/s", run_mbits, 0);
	summary_row(f, b, "packets/s received", run_packets, 0);
	summary_row(f, b, "latency 50 %, us", run_latency_us, 50);
	summary_row(f, b, "latency 99 %, us", run_latency_us, 99);
	summary_row(f, b, "latency 99.9 %, us", run_latency_us, 99.9);
	summary_row(f, b, "demand, us/KB", run_demand_all, 0);
	summary_row(f, b, "demand, cycle/B", run_cycles_per_byte, 0);
	summary_row(f, b, rr ? "demand, us/transaction" : "demand, us/message", run_us_per_message,
		    0);
	fputs("</table></div>\n", f);
}

/* A value as text, the reason where there is none; the caller frees it. */
static char *value_text(const json_t *record, const char *key, const json_t *v)
{
	char why[96];

	if (json_is_null(v)) {
		snprintf(why, sizeof(why), "%s_why", key);
		v = json_object_get(record, why);
		return strdup(json_is_string(v) ? json_string_value(v) : "not known");
	}
	if (json_is_string(v))
		return strdup(json_string_value(v));
	return json_dumps(v, JSON_ENCODE_ANY);
}

/* One end's record, every key. */
static void record_table(FILE *f, const char *title, const json_t *record)
{
	const char *key;
	json_t *v;

	fprintf(f, "<h2>Conditions, %s end</h2>\n", title);
	if (!json_is_object(record)) {
		fputs("<p>Not told by that end.</p>\n", f);
		return;
	}
	fputs("<div class=scroll><table>\n", f);
	json_object_foreach((json_t *)record, key, v)
	{
		size_t len = strlen(key);
		char *text;

		if (len > 4 && strcmp(key + len - 4, "_why") == 0)
			continue;
		text = value_text(record, key, v);
		row(f, key, text ? text : "", json_is_null(v));
		free(text);
	}
	fputs("</table></div>\n", f);
}

static void text_part(FILE *f, const struct bench_report *b)
{
	char *text = NULL;
	size_t size = 0;
	FILE *m = open_memstream(&text, &size);

	if (!m)
		return;
	bench_report_text(b, m);
	if (fclose(m) == 0 && text) {
		fputs("<h2>In full</h2>\n<pre>", f);
		svg_escape(f, text);
		fputs("</pre>\n", f);
	}
	free(text);
}

static void page(FILE *f, const struct bench_report *b)
{
	bool rr = b->spec->kind == TEST_RR;
	char test[256], place[128];

	report_test_text(b->spec, test, sizeof(test));
	fprintf(f,
		"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
		"<title>xdpath bench %s</title>\n",
		report_test(b->spec));
	svg_style(f);
	fprintf(f, "</head><body>\n<h1>bench %s, engine %s</h1>\n<p>", report_test(b->spec),
		report_engine(b->spec));
	svg_escape(f, test);
	fprintf(f,
		"</p>\n<p class=soft>%u run%s of %.4g s; figures are mean ± standard deviation "
		"over "
		"the runs.</p>\n",
		b->nruns, b->nruns == 1 ? "" : "s", b->spec->seconds);
	for (const struct bench_report *r = b; r; r = r->next) {
		if (b->next) {
			placement_text(r, place, sizeof(place));
			fputs("<h2>", f);
			svg_escape(f, place);
			fputs("</h2>\n", f);
		}
		summary_table(f, r);
	}
	if (rr && b->nruns) {
		plot_cdf(b, f, false);
		plot_cdf(b, f, true);
		plot_percentiles(b, f);
	}
	plot_runs(b, f, rr ? run_rate : run_mbits, 0, rr ? "Transactions by run" : "Payload by run",
		  rr ? "transactions/s" : "Mb/s");
	if (rr)
		plot_runs(b, f, run_latency_us, 99, "Latency 99 % by run", "us");
	plot_cpu(b, f);
	text_part(f, b);
	record_table(f, "local", b->local);
	record_table(f, "remote", b->remote);
	fputs("</body></html>\n", f);
}

int bench_report_html(const struct bench_report *b, const char *path)
{
	FILE *f = fopen(path, "we");
	int err = 0;

	if (!f)
		return -errno;
	page(f, b);
	if (ferror(f))
		err = -EIO;
	if (fclose(f) && !err)
		err = -errno;
	return err;
}
