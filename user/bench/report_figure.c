/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Figures of a run, and their mean and deviation over the runs. All reports print these, so that
 * they cannot differ. NAN is "not measured".
 *
 * Two ends on one machine share its CPUs, interrupts and polls: those are the local end's then.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_in.h"
#include "stats.h"

struct figure figure_of(const struct bench_report *b, figure_fn f, double arg)
{
	double *x = calloc(b->nruns + 1, sizeof(*x));
	struct figure v = {0};

	for (uint32_t i = 0; x && i < b->nruns; i++) {
		double one = f(b, &b->run[i], arg);

		if (isfinite(one))
			x[v.n++] = one;
	}
	if (v.n) {
		v.mean = stats_mean(x, v.n);
		v.sd = stats_sd(x, v.n);
	}
	free(x);
	return v;
}

const struct test_side *side_of(const struct test_result *r, enum end e)
{
	return e == LOCAL ? &r->local : &r->remote;
}

const json_t *record_of(const struct bench_report *b, enum end e)
{
	return e == LOCAL ? b->local : b->remote;
}

bool same_machine(const struct bench_report *b)
{
	const char *here = json_string_value(json_object_get(b->local, "boot_id"));
	const char *there = json_string_value(json_object_get(b->remote, "boot_id"));

	if (here && there)
		return strcmp(here, there) == 0;
	return b->nruns && b->run[0].local.host[0] &&
	       strcmp(b->run[0].local.host, b->run[0].remote.host) == 0;
}

enum end report_sender(const struct bench_report *b)
{
	const struct test_spec *s = b->spec;

	return s->kind == TEST_STREAM && s->reverse && !s->bidir ? REMOTE : LOCAL;
}

/* Usage of the machine that this end stands for; NULL: not measured, or another end's already. */
static const struct usage *machine(const struct bench_report *b, const struct test_result *r,
				   double end)
{
	const struct usage *u = &side_of(r, (enum end)end)->usage;

	if ((enum end)end == REMOTE && same_machine(b))
		return NULL;
	return u->cpus && u->seconds > 0 ? u : NULL;
}

double run_rate(const struct bench_report *b, const struct test_result *r, double arg)
{
	(void)b, (void)arg;
	return r->msgs_per_s;
}

double run_mbits(const struct bench_report *b, const struct test_result *r, double arg)
{
	(void)b, (void)arg;
	return r->bits_per_s / 1e6;
}

double run_packets(const struct bench_report *b, const struct test_result *r, double arg)
{
	(void)b, (void)arg;
	if (r->seconds <= 0)
		return NAN;
	return (double)(r->local.packets_in + r->remote.packets_in) / r->seconds;
}

double run_offered(const struct bench_report *b, const struct test_result *r, double arg)
{
	(void)b, (void)arg;
	return r->offered_per_s > 0 ? r->offered_per_s : NAN;
}

double run_latency_us(const struct bench_report *b, const struct test_result *r, double percent)
{
	(void)b;
	if (!r->latency.total)
		return NAN;
	return (double)(percent >= 100 ? r->latency.max : hist_percentile(&r->latency, percent)) /
	       1e3;
}

double run_service_us(const struct bench_report *b, const struct test_result *r, double percent)
{
	(void)b;
	if (!r->service.total)
		return NAN;
	return (double)(percent >= 100 ? r->service.max : hist_percentile(&r->service, percent)) /
	       1e3;
}

double run_machine_cpus(const struct bench_report *b, const struct test_result *r, double end)
{
	const struct usage *u = machine(b, r, end);

	return u ? u->busy_total / u->seconds : NAN;
}

double run_thread_cpus(const struct bench_report *b, const struct test_result *r, double end)
{
	const struct usage *u = &side_of(r, (enum end)end)->usage;

	(void)b;
	return u->cpus && u->seconds > 0 ? u->threads / u->seconds : NAN;
}

double run_utilisation(const struct bench_report *b, const struct test_result *r, double end)
{
	const struct usage *u = machine(b, r, end);

	return u && u->online ? 100 * u->busy_total / u->seconds / u->online : NAN;
}

static double payload_bytes(const struct test_result *r)
{
	return r->bits_per_s / 8 * r->seconds;
}

/* us of CPU for 1024 bytes of payload, as netperf says it. */
double run_demand(const struct bench_report *b, const struct test_result *r, double end)
{
	const struct usage *u = machine(b, r, end);
	double bytes = payload_bytes(r);

	return u && bytes > 0 ? u->busy_total * 1e6 / (bytes / 1024) : NAN;
}

double run_interrupts(const struct bench_report *b, const struct test_result *r, double end)
{
	const struct usage *u = &side_of(r, (enum end)end)->usage;

	(void)b;
	return u->interrupts == UINT64_MAX || u->seconds <= 0 ? NAN
							      : (double)u->interrupts / u->seconds;
}

double run_rx_polls(const struct bench_report *b, const struct test_result *r, double end)
{
	const struct usage *u = machine(b, r, end);

	return u ? (double)u->softirqs_rx / u->seconds : NAN;
}

double run_tx_polls(const struct bench_report *b, const struct test_result *r, double end)
{
	const struct usage *u = machine(b, r, end);

	return u ? (double)u->softirqs_tx / u->seconds : NAN;
}

double run_if_packets(const struct bench_report *b, const struct test_result *r, double end)
{
	const struct test_side *s = side_of(r, (enum end)end);

	(void)b;
	return s->seconds > 0 ? (double)s->if_packets_in / s->seconds : NAN;
}

/* On one machine the polls are those of both ends. */
double run_packets_per_poll(const struct bench_report *b, const struct test_result *r, double end)
{
	const struct usage *u = machine(b, r, end);
	double in = (double)side_of(r, (enum end)end)->if_packets_in;

	if (same_machine(b))
		in += (double)r->remote.if_packets_in;
	return u && u->softirqs_rx ? in / (double)u->softirqs_rx : NAN;
}

/* All cycles by the counter of the processor; false: it has none. */
static bool counted_cycles(const struct usage *u, double *cycles)
{
	for (uint32_t i = 0; i < u->counters; i++) {
		const struct usage_counter *c = &u->counter[i];

		if (strcmp(c->name, "cycles") == 0 && c->supported && c->machine) {
			*cycles = (double)c->value;
			return true;
		}
	}
	return false;
}

bool cycles_counted(const struct bench_report *b)
{
	double cycles;

	return b->nruns && counted_cycles(&b->run[0].local.usage, &cycles) &&
	       (same_machine(b) || counted_cycles(&b->run[0].remote.usage, &cycles));
}

/* CPU seconds, or cycles, of every machine that took part; NAN if one of them is not known. */
static double all_machines(const struct bench_report *b, const struct test_result *r, bool cycles)
{
	double sum = 0, one;

	for (int e = LOCAL; e <= REMOTE; e++) {
		const struct usage *u = machine(b, r, e);

		if (!u && e == REMOTE && same_machine(b))
			continue;
		if (!u)
			return NAN;
		one = u->busy_total;
		if (cycles && !(cycles_counted(b) && counted_cycles(u, &one)))
			one = u->tsc_hz > 0 ? u->busy_total * u->tsc_hz : NAN;
		sum += one;
	}
	return sum;
}

double run_us_per_message(const struct bench_report *b, const struct test_result *r, double arg)
{
	double n = r->msgs_per_s * r->seconds;

	(void)arg;
	return n > 0 ? all_machines(b, r, false) * 1e6 / n : NAN;
}

double run_cycles_per_message(const struct bench_report *b, const struct test_result *r, double arg)
{
	double n = r->msgs_per_s * r->seconds;

	(void)arg;
	return n > 0 ? all_machines(b, r, true) / n : NAN;
}

double run_cycles_per_byte(const struct bench_report *b, const struct test_result *r, double arg)
{
	double bytes = payload_bytes(r);

	(void)arg;
	return bytes > 0 ? all_machines(b, r, true) / bytes : NAN;
}

double run_demand_all(const struct bench_report *b, const struct test_result *r, double arg)
{
	double bytes = payload_bytes(r);

	(void)arg;
	return bytes > 0 ? all_machines(b, r, false) * 1e6 / (bytes / 1024) : NAN;
}

struct hist *report_merged(const struct bench_report *b, bool service)
{
	struct hist *h = malloc(sizeof(*h));

	if (!h)
		return NULL;
	hist_init(h);
	for (uint32_t i = 0; i < b->nruns; i++)
		hist_merge(h, service ? &b->run[i].service : &b->run[i].latency);
	return h;
}

#define LOSS(key, text)                                       \
	{                                                     \
#key, text, offsetof(struct test_losses, key) \
	}

const struct loss report_losses[] = {
	LOSS(timeouts, "messages not answered whole within 200 ms, sent again"),
	LOSS(incomplete, "messages of which a piece was missing"),
	LOSS(reordered, "pieces that came after a later one of their flow"),
	LOSS(late, "pieces of another test, or of a message given up"),
	LOSS(rx_ring_full, "RX ring or socket buffer full (user space too slow)"),
	LOSS(rx_no_frame, "no frame to receive into (user space too slow)"),
	LOSS(rx_other, "dropped on the way in for another reason"),
	LOSS(tx_dropped, "not taken by the engine or the device"),
};

const size_t report_nlosses = sizeof(report_losses) / sizeof(report_losses[0]);

uint64_t loss_sum(const struct bench_report *b, enum end e, const struct loss *l)
{
	uint64_t sum = 0, one;

	for (uint32_t i = 0; i < b->nruns; i++) {
		memcpy(&one, (const char *)&side_of(&b->run[i], e)->lost + l->offset, sizeof(one));
		sum += one;
	}
	return sum;
}
