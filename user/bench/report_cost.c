/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What a measurement cost, as text: CPUs of each end and of the whole machine, cycles by CPU, the
 * kernel's interrupts and polls, system calls, the processor's counters. Called by report_text.c.
 */
#include <math.h>
#include <string.h>

#include "report_in.h"

static const char *const end_name[] = {"local", "remote"};

/* arg: the end in the tens, which column in the ones. */
static double run_sampled(const struct bench_report *b, const struct test_result *r, double arg)
{
	const struct usage *u = &side_of(r, (enum end)((int)arg / 10))->usage;
	const double column[] = {u->user, u->system, u->softirq, u->irq, u->steal};

	(void)b;
	return u->cpus && u->seconds > 0 ? column[(int)arg % 10] / u->seconds : NAN;
}

static void cpu_row(const struct bench_report *b, struct grid *g, enum end e)
{
	const struct usage *u = &side_of(b->run, e)->usage;
	bool shared = e == REMOTE && same_machine(b);

	grid_row(g, "%s", end_name[e]);
	if (shared)
		grid_add(g, "same machine");
	else
		grid_figure(g, figure_of(b, run_machine_cpus, e), 0);
	if (shared || !u->online)
		grid_add(g, "%s", "");
	else
		grid_add(g, "of %u", u->online);
	grid_figure(g, figure_of(b, run_thread_cpus, e), 0);
	for (int i = 0; i < 5 && !shared; i++) {
		struct figure v = figure_of(b, run_sampled, e * 10 + i);

		grid_add(g, v.n ? "%.2f" : "-1", v.mean);
	}
}

static void text_demand(const struct bench_report *b, FILE *f)
{
	struct figure us = figure_of(b, run_us_per_message, 0);
	struct figure cycles = figure_of(b, run_cycles_per_message, 0);
	const char *what = b->spec->kind == TEST_RR ? "transaction" : "message";
	char a[64], c[64];
	struct wrap w;

	figure_text(us, 0, a, sizeof(a));
	figure_text(cycles, 0, c, sizeof(c));
	wrap_start(&w, f, "demand");
	wrap_item(&w, "%s us/%s", a, what);
	wrap_item(&w, "%s cycle/%s, all CPUs of %s", c, what,
		  same_machine(b) ? "the machine" : "both machines");
	wrap_end(&w);
}

static void text_source(const struct bench_report *b, FILE *f)
{
	const struct usage *u = &b->run[0].local.usage, *v = &b->run[0].remote.usage;
	struct wrap w;

	wrap_start(&w, f, "CPU time");
	wrap_item(&w, "%s", usage_source_text(u->source));
	if (v->source != u->source && !same_machine(b))
		wrap_item(&w, "the remote's: %s", usage_source_text(v->source));
	if (cycles_counted(b))
		wrap_item(&w, "cycles by the processor's counter");
	else if (u->tsc_hz > 0)
		wrap_item(&w, "cycles: CPU time by the TSC at %.4g GHz", u->tsc_hz / 1e9);
	wrap_end(&w);
}

static void text_cpu(const struct bench_report *b, FILE *f)
{
	static const char *const split[] = {"user", "system", "softirq", "irq", "steal"};
	struct grid g = {0};

	grid_row(&g, "CPUs in use");
	grid_add(&g, "machine");
	grid_add(&g, "%s", "");
	grid_add(&g, "own threads");
	for (size_t i = 0; i < 5; i++)
		grid_add(&g, "%s", split[i]);
	grid_add(&g, "(by tick)");
	cpu_row(b, &g, LOCAL);
	cpu_row(b, &g, REMOTE);
	grid_print(&g, f);
	text_source(b, f);
	text_demand(b, f);
}

/* arg: the end in the thousands, the CPU below. */
static double run_gcycles(const struct bench_report *b, const struct test_result *r, double arg)
{
	const struct usage *u = &side_of(r, (enum end)((int)arg / 1000))->usage;

	(void)b;
	return u->tsc_hz > 0 ? u->busy[(int)arg % 1000] * u->tsc_hz / 1e9 : NAN;
}

/* CPUs that did nothing to speak of are counted, not listed. */
static void text_per_cpu(const struct bench_report *b, FILE *f, enum end e)
{
	const struct usage *u = &side_of(b->run, e)->usage;
	uint32_t quiet = 0;
	char text[64];
	struct wrap w;

	if ((e == REMOTE && same_machine(b)) || !u->cpus || u->tsc_hz <= 0)
		return;
	wrap_start(&w, f, "Gcycle/run");
	for (uint32_t i = 0; i < u->cpus; i++) {
		struct figure v = figure_of(b, run_gcycles, e * 1000 + (int)i);

		if (v.mean * 1e9 < 0.01 * u->seconds * u->tsc_hz && u->cpus > 8) {
			quiet++;
			continue;
		}
		figure_text(v, 0, text, sizeof(text));
		wrap_item(&w, "%s CPU %u %s", end_name[e], i, text);
	}
	if (quiet)
		wrap_item(&w, "%u others below 1 %% of a CPU", quiet);
	wrap_end(&w);
}

static void kernel_row(const struct bench_report *b, struct grid *g, enum end e)
{
	grid_row(g, "%s", end_name[e]);
	grid_figure(g, figure_of(b, run_interrupts, e), 0);
	if (e == REMOTE && same_machine(b)) {
		grid_add(g, "same machine");
		grid_add(g, "%s", "");
		grid_figure(g, figure_of(b, run_if_packets, e), 0);
		return;
	}
	grid_figure(g, figure_of(b, run_rx_polls, e), 0);
	grid_figure(g, figure_of(b, run_tx_polls, e), 0);
	grid_figure(g, figure_of(b, run_if_packets, e), 0);
	grid_figure(g, figure_of(b, run_packets_per_poll, e), 0);
}

static void text_kernel(const struct bench_report *b, FILE *f)
{
	struct grid g = {0};

	grid_row(&g, "each second");
	grid_add(&g, "interrupts");
	grid_add(&g, "NET_RX polls");
	grid_add(&g, "NET_TX polls");
	grid_add(&g, "packets in");
	grid_add(&g, "packets/poll");
	kernel_row(b, &g, LOCAL);
	kernel_row(b, &g, REMOTE);
	grid_print(&g, f);
}

/* arg: the end in the tens, which counter in the ones. */
static double run_calls(const struct bench_report *b, const struct test_result *r, double arg)
{
	const struct test_side *s = side_of(r, (enum end)((int)arg / 10));
	const uint64_t column[] = {s->tx_kicks, s->rx_kicks, s->sleeps, s->syscalls};

	(void)b;
	return s->seconds > 0 ? (double)column[(int)arg % 10] / s->seconds : NAN;
}

static double run_calls_per_packet(const struct bench_report *b, const struct test_result *r,
				   double end)
{
	const struct test_side *s = side_of(r, (enum end)end);
	uint64_t n = s->packets_in + s->packets_out;

	(void)b;
	return n ? (double)s->syscalls / (double)n : NAN;
}

static void text_calls(const struct bench_report *b, FILE *f)
{
	struct grid g = {0};

	grid_row(&g, "each second");
	grid_add(&g, "TX kicks");
	grid_add(&g, "RX kicks");
	grid_add(&g, "sleeps");
	grid_add(&g, "system calls");
	grid_add(&g, "system calls/packet");
	for (int e = LOCAL; e <= REMOTE; e++) {
		grid_row(&g, "%s", end_name[e]);
		for (int i = 0; i < 4; i++)
			grid_figure(&g, figure_of(b, run_calls, e * 10 + i), 0);
		grid_figure(&g, figure_of(b, run_calls_per_packet, e), 0);
	}
	grid_print(&g, f);
}

/* arg: the end in the hundreds, the counter's place below. */
static double run_counter(const struct bench_report *b, const struct test_result *r, double arg)
{
	const struct usage *u = &side_of(r, (enum end)((int)arg / 100))->usage;
	uint32_t i = (uint32_t)arg % 100;

	(void)b;
	if (i >= u->counters || !u->counter[i].supported)
		return NAN;
	return (double)u->counter[i].value /
	       (strcmp(u->counter[i].name, "task-clock") == 0 ? 1e6 : 1);
}

static void counter_cell(const struct bench_report *b, struct grid *g, enum end e, uint32_t i)
{
	const struct usage *u = &side_of(b->run, e)->usage;
	const struct usage_counter *c = &u->counter[i];

	if (i >= u->counters) {
		grid_add(g, "-1");
		grid_add(g, "%s", "");
	} else if (!c->supported) {
		grid_add(g, "not supported");
		grid_add(g, "%s", "");
	} else if (e == REMOTE && c->machine && same_machine(b)) {
		grid_add(g, "same machine");
		grid_add(g, "%s", "");
	} else {
		grid_figure(g, figure_of(b, run_counter, e * 100 + (int)i), 0);
		grid_add(g, "%.0f %%, %s", c->share * 100, c->machine ? "machine" : "threads");
	}
}

/* The reasons, each once, with the counters it holds for. */
static void text_unsupported(const struct usage *u, FILE *f, const char *end)
{
	bool told[USAGE_COUNTERS_MAX] = {false};

	for (uint32_t i = 0; i < u->counters; i++) {
		struct wrap w;

		if (u->counter[i].supported || told[i])
			continue;
		wrap_start(&w, f, end);
		wrap_item(&w, "no %s", u->counter[i].name);
		for (uint32_t j = i + 1; j < u->counters; j++) {
			if (u->counter[j].supported ||
			    strcmp(u->counter[i].why, u->counter[j].why) != 0)
				continue;
			told[j] = true;
			wrap_item(&w, "%s", u->counter[j].name);
		}
		w.joined = true;
		wrap_item(&w, "(not supported: %s)", u->counter[i].why);
		wrap_end(&w);
	}
}

static void text_counters(const struct bench_report *b, FILE *f)
{
	const struct usage *u = &b->run[0].local.usage, *v = &b->run[0].remote.usage;
	const struct usage *names = u->counters ? u : v;
	struct grid g = {0};

	if (!names->counters)
		return;
	grid_row(&g, "counters, a run");
	grid_add(&g, "local");
	grid_add(&g, "counted, of");
	grid_add(&g, "remote");
	grid_add(&g, "counted, of");
	for (uint32_t i = 0; i < names->counters; i++) {
		bool here = i < u->counters && u->counter[i].supported;
		bool there = i < v->counters && v->counter[i].supported;

		if (!here && !there)
			continue;
		grid_row(&g, "%s%s", names->counter[i].name,
			 strcmp(names->counter[i].name, "task-clock") == 0 ? ", ms" : "");
		counter_cell(b, &g, LOCAL, i);
		counter_cell(b, &g, REMOTE, i);
	}
	grid_print(&g, f);
	text_unsupported(u, f, "local has");
	if (!same_machine(b))
		text_unsupported(v, f, "remote has");
}

void text_cost(const struct bench_report *b, FILE *f)
{
	if (!b->nruns)
		return;
	text_cpu(b, f);
	text_per_cpu(b, f, LOCAL);
	text_per_cpu(b, f, REMOTE);
	fputc('\n', f);
	text_kernel(b, f);
	text_calls(b, f);
	fputc('\n', f);
	text_counters(b, f);
}
