/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The text report: what was asked, the figures in the seeds' shape, what it cost, what was lost,
 * under what conditions. At most 100 columns, units always there.
 */
#include <math.h>
#include <string.h>

#include "report_in.h"

static void head(const struct bench_report *b, FILE *f)
{
	char test[256], reached[32];
	struct wrap w;

	report_test_text(b->spec, test, sizeof(test));
	fprintf(f, "bench %s: %s to %s by engine %s\n", report_test(b->spec), b->dev ? b->dev : "-",
		b->peer ? b->peer : "-", report_engine(b->spec));
	wrap_start(&w, f, "test");
	wrap_item(&w, "%s", test);
	wrap_end(&w);
	wrap_start(&w, f, "runs");
	wrap_item(&w, "%u of %.4g s after %.4g s of warm-up each", b->nruns, b->spec->seconds,
		  b->spec->warmup);
	if (b->nruns > 1)
		wrap_item(&w, "figures are mean ± standard deviation over the runs");
	else
		wrap_item(&w, "one run tells nothing of the spread: --runs");
	if (b->confidence > 0) {
		number_text(b->reached, reached, sizeof(reached));
		wrap_item(&w, "at %.4g %% confidence within ± %s %% of the mean (%.4g asked for)%s",
			  b->confidence, reached, b->width / 2,
			  b->reached > b->width / 2 ? ": NOT reached" : "");
	}
	if (b->stopped_early && !(b->confidence > 0 && b->reached <= b->width / 2))
		wrap_item(&w, "ended before all runs were made");
	wrap_end(&w);
}

/* "275 ± 2 / 643.8 ± 0.4 / 799 ± 1 / 2474 ± 3" */
static void percentiles(const struct bench_report *b, figure_fn fn, const double *p, size_t n,
			char *buf, size_t size)
{
	char one[64];
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < n && at < size; i++) {
		struct figure v = figure_of(b, fn, p[i]);

		figure_text(v, p[i] < 100 ? latency_step(v.mean) : 0, one, sizeof(one));
		at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? " / " : "", one);
	}
}

static const double body[] = {50, 90, 95, 99}, tail[] = {99.9, 99.99, 100};

static double greatest(const struct bench_report *b)
{
	double us = 0;

	for (uint32_t i = 0; i < b->nruns; i++)
		us = fmax(us, (double)b->run[i].latency.max / 1e3);
	return us;
}

static void latency_rows(const struct bench_report *b, struct grid *g)
{
	char text[GRID_CELL];

	percentiles(b, run_latency_us, body, 4, text, sizeof(text));
	grid_figure(g, figure_of(b, run_rate, 0), 0);
	grid_add(g, "%s", text);
	percentiles(b, run_latency_us, tail, 3, text, sizeof(text));
	grid_row(g, "%s", "");
	grid_add(g, "99.9 / 99.99 / 100 %%: %s", text);
	grid_row(g, "%s", "");
	number_text(greatest(b), text, sizeof(text));
	grid_add(g, "greatest of all runs: %s", text);
	if (!figure_of(b, run_service_us, 50).n)
		return;
	percentiles(b, run_service_us, body, 4, text, sizeof(text));
	grid_row(g, "%s", "");
	grid_add(g, "from when it went: %s", text);
}

static void rr_table(const struct bench_report *b, FILE *f)
{
	char place[128], offered[64];
	struct grid g = {0};

	grid_row(&g, "transactions/s");
	grid_add(&g, "latency 50 / 90 / 95 / 99 %%, us");
	for (const struct bench_report *r = b; r; r = r->next) {
		struct figure asked = figure_of(r, run_offered, 0);

		if (b->next) {
			placement_text(r, place, sizeof(place));
			grid_title(&g, place);
		}
		grid_row(&g, "%s", "");
		g.cols = 0;
		latency_rows(r, &g);
		if (!asked.n)
			continue;
		figure_text(asked, 0, offered, sizeof(offered));
		grid_row(&g, "%s asked", offered);
	}
	grid_print(&g, f);
}

static void buffer(struct grid *g, uint64_t bytes)
{
	if (bytes)
		grid_add(g, "%llu", (unsigned long long)bytes);
	else
		grid_add(g, "-1");
}

/* A new row; where there are several placements, whose it is above it. */
static void place_row(const struct bench_report *b, struct grid *g, bool several)
{
	char place[128];

	if (several) {
		placement_text(b, place, sizeof(place));
		grid_title(g, place);
	}
	grid_row(g, "%s", "");
	g->cols = 0;
}

static void stream_rows(const struct bench_report *b, struct grid *g, bool several)
{
	enum end from = report_sender(b), to = from == LOCAL ? REMOTE : LOCAL;
	const struct test_result *r = b->run;

	place_row(b, g, several);
	buffer(g, b->nruns ? side_of(r, to)->sock_recv : 0);
	buffer(g, b->nruns ? side_of(r, from)->sock_send : 0);
	grid_add(g, "%u", b->spec->size);
	grid_figure(g, figure_of(b, run_mbits, 0), 0);
	grid_figure(g, figure_of(b, run_packets, 0), 0);
	grid_figure(g, figure_of(b, run_rate, 0), 0);
}

static void stream_cost(const struct bench_report *b, struct grid *g, bool several)
{
	enum end from = report_sender(b), to = from == LOCAL ? REMOTE : LOCAL;

	place_row(b, g, several);
	/* on one machine there is one figure, which stands with the sender */
	grid_figure(g, figure_of(b, run_utilisation, same_machine(b) ? LOCAL : from), 0);
	grid_figure(g, figure_of(b, run_utilisation, same_machine(b) ? REMOTE : to), 0);
	grid_figure(g, figure_of(b, run_demand, same_machine(b) ? LOCAL : from), 0);
	grid_figure(g, figure_of(b, run_demand, same_machine(b) ? REMOTE : to), 0);
	grid_figure(g, figure_of(b, run_demand_all, 0), 0);
	grid_figure(g, figure_of(b, run_cycles_per_byte, 0), 0);
}

static void stream_table(const struct bench_report *b, FILE *f)
{
	struct grid g = {0};

	grid_row(&g, "receive");
	grid_add(&g, "send");
	grid_add(&g, "message");
	grid_add(&g, "payload");
	grid_row(&g, "buffer B");
	grid_add(&g, "buffer B");
	grid_add(&g, "B");
	grid_add(&g, "Mb/s");
	grid_add(&g, "packets/s");
	grid_add(&g, "messages/s");
	for (const struct bench_report *r = b; r; r = r->next)
		stream_rows(r, &g, b->next);
	grid_print(&g, f);
	fputc('\n', f);
	grid_title(&g, "utilisation of the CPUs, service demand; cycles are summed over all CPUs");
	grid_row(&g, "send, %%");
	grid_add(&g, "receive, %%");
	grid_add(&g, "send, us/KB");
	grid_add(&g, "receive, us/KB");
	grid_add(&g, "both, us/KB");
	grid_add(&g, "cycle/B");
	for (const struct bench_report *r = b; r; r = r->next)
		stream_cost(r, &g, b->next);
	grid_print(&g, f);
	fprintf(f, "  -1: not measured%s\n",
		same_machine(b) ? "; both ends share one machine: its CPU stands once, under send"
				: "");
}

void bench_report_text(const struct bench_report *b, FILE *f)
{
	char place[128];

	head(b, f);
	text_ends(b, f);
	fputc('\n', f);
	if (b->spec->kind == TEST_RR)
		rr_table(b, f);
	else
		stream_table(b, f);
	for (const struct bench_report *r = b; r; r = r->next) {
		if (b->next) {
			placement_text(r, place, sizeof(place));
			fprintf(f, "\n  %s:", place);
		}
		fputc('\n', f);
		text_cost(r, f);
		fputc('\n', f);
		text_losses(r, f);
	}
	fputc('\n', f);
	text_conditions(b, f);
	fflush(f);
}
