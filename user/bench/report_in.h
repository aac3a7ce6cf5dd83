/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What the three reports share: figures taken out of the runs (report_figure.c), and the tables of
 * the text report (report_grid.c). */
#ifndef BENCH_REPORT_IN_H
#define BENCH_REPORT_IN_H

#include "report.h"

enum end { LOCAL, REMOTE };

/* Mean and standard deviation over the runs; n is 0 where it was not measured. */
struct figure {
	double mean, sd;
	uint32_t n;
};

/* A figure of one run; NAN where not measured. arg is the function's own. */
typedef double (*figure_fn)(const struct bench_report *b, const struct test_result *r, double arg);
struct figure figure_of(const struct bench_report *b, figure_fn f, double arg);

double run_rate(const struct bench_report *b, const struct test_result *r, double arg);
double run_mbits(const struct bench_report *b, const struct test_result *r, double arg);
double run_packets(const struct bench_report *b, const struct test_result *r, double arg);
double run_offered(const struct bench_report *b, const struct test_result *r, double arg);
double run_latency_us(const struct bench_report *b, const struct test_result *r, double percent);
double run_service_us(const struct bench_report *b, const struct test_result *r, double percent);
/* arg: the end. CPUs in use of its machine: of two ends on one machine only the local has it. */
double run_machine_cpus(const struct bench_report *b, const struct test_result *r, double end);
double run_thread_cpus(const struct bench_report *b, const struct test_result *r, double end);
double run_utilisation(const struct bench_report *b, const struct test_result *r, double end);
double run_demand(const struct bench_report *b, const struct test_result *r, double end);
double run_packets_per_poll(const struct bench_report *b, const struct test_result *r, double end);
double run_interrupts(const struct bench_report *b, const struct test_result *r, double end);
double run_rx_polls(const struct bench_report *b, const struct test_result *r, double end);
double run_tx_polls(const struct bench_report *b, const struct test_result *r, double end);
double run_if_packets(const struct bench_report *b, const struct test_result *r, double end);
/* Of all machines that took part, per message (a transaction) and per byte of payload. */
double run_us_per_message(const struct bench_report *b, const struct test_result *r, double arg);
double run_cycles_per_message(const struct bench_report *b, const struct test_result *r,
			      double arg);
double run_cycles_per_byte(const struct bench_report *b, const struct test_result *r, double arg);
double run_demand_all(const struct bench_report *b, const struct test_result *r, double arg);

const struct test_side *side_of(const struct test_result *r, enum end e);
const json_t *record_of(const struct bench_report *b, enum end e);
/* Both ends ran on one machine, whose CPU, interrupts and polls must not be counted twice. */
bool same_machine(const struct bench_report *b);
/* The end that sends a stream; LOCAL for rr and both ways. */
enum end report_sender(const struct bench_report *b);
/* Cycles by the processor's own counter (else CPU time by the TSC). */
bool cycles_counted(const struct bench_report *b);
/* All runs' histograms in one: the caller frees it; NULL: no memory. */
struct hist *report_merged(const struct bench_report *b, bool service);

/* The losses, one table for all reports. */
struct loss {
	const char *key, *text;
	size_t offset;
};
extern const struct loss report_losses[];
extern const size_t report_nlosses;
uint64_t loss_sum(const struct bench_report *b, enum end e, const struct loss *l);

const char *report_test(const struct test_spec *s);   /* "rr", "stream" */
const char *report_engine(const struct test_spec *s); /* "xsk", "udp", "packet" */
const char *report_arrival(const struct test_spec *s);
/* What was asked, in words: "200 flows of 1400 B requests and 1 B answers, closed loop". */
void report_test_text(const struct test_spec *s, char *buf, size_t size);
/* "0-1,4"; "not pinned". */
void cpus_text(const cpu_set_t *cpus, char *buf, size_t size);
void placement_text(const struct bench_report *b, char *buf, size_t size);

/*
 * "275 ± 2": the deviation with one digit, the mean to the same place, at most five digits;
 * without a deviation (one run) four. Below `step`, the resolution of what was measured (0: none),
 * "644 ± <3". "-1": not measured.
 */
void figure_text(struct figure v, double step, char *buf, size_t size);
/* Half a bucket of the histogram at this value. */
double latency_step(double us);
/* As above, of a number alone, four digits. */
void number_text(double v, char *buf, size_t size);

/* A table whose columns are as wide as their widest cell; cells are UTF-8. */
#define GRID_ROWS 28
#define GRID_COLS 10
#define GRID_CELL 96
struct grid {
	uint32_t rows, cols;
	bool title[GRID_ROWS];
	char cell[GRID_ROWS][GRID_COLS][GRID_CELL];
};
/* The next row; cells after it go there. */
void grid_row(struct grid *g, const char *first, ...) __attribute__((format(printf, 2, 3)));
/* A row that is one text across all columns. */
void grid_title(struct grid *g, const char *text);
void grid_add(struct grid *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void grid_figure(struct grid *g, struct figure v, double step);
void grid_print(struct grid *g, FILE *f);
/* Items separated by ", ", broken below 100 columns, lines after the first indented. */
#define INDENT 14
struct wrap {
	FILE *f;
	uint32_t column;
	bool any, joined; /* joined: the next item follows without a comma */
};
void wrap_start(struct wrap *w, FILE *f, const char *title);
void wrap_item(struct wrap *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void wrap_end(struct wrap *w);
/* Columns a text takes: code points. */
uint32_t text_width(const char *text);

/* report_record.c: conditions, losses, ends as text. */
void text_ends(const struct bench_report *b, FILE *f);
void text_losses(const struct bench_report *b, FILE *f);
void text_conditions(const struct bench_report *b, FILE *f);
/* report_cost.c: CPU, kernel work, counters. */
void text_cost(const struct bench_report *b, FILE *f);

#endif
