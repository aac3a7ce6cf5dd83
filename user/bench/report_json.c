/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The JSON report: every run whole, the figures over the runs, the conditions.
 * docs/bench.schema.json says what stands where. */
#include <math.h>
#include <stdlib.h>

#include "report_in.h"

static const struct {
	const char *key;
	double percent;
} points[] = {{"p50_us", 50},	  {"p90_us", 90},	{"p95_us", 95}, {"p99_us", 99},
	      {"p99_9_us", 99.9}, {"p99_99_us", 99.99}, {"max_us", 100}};

#define POINTS (sizeof(points) / sizeof(points[0]))

static json_t *real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *cpus_to_json(const cpu_set_t *cpus)
{
	json_t *list = json_array();

	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, cpus))
			json_array_append_new(list, json_integer(i));
	return list;
}

static json_t *spec_to_json(const struct test_spec *s)
{
	json_t *o =
		json_pack("{s:s, s:s, s:I, s:I, s:s, s:f, s:I, s:I, s:I, s:f, s:f}", "test",
			  report_test(s), "engine", report_engine(s), "flows", (json_int_t)s->flows,
			  "mtu_bytes", (json_int_t)s->mtu, "arrival", report_arrival(s),
			  "rate_per_s", s->rate, "burst_messages", (json_int_t)s->burst, "workers",
			  (json_int_t)s->workers, "peer_workers", (json_int_t)s->peer_workers,
			  "warmup_seconds", s->warmup, "seconds", s->seconds);

	if (s->kind == TEST_RR) {
		json_object_set_new(o, "request_bytes", json_integer(s->req));
		json_object_set_new(o, "response_bytes", json_integer(s->rsp));
	} else {
		json_object_set_new(o, "message_bytes", json_integer(s->size));
		json_object_set_new(o, "direction",
				    json_string(s->bidir     ? "both"
						: s->reverse ? "in"
							     : "out"));
	}
	json_object_set_new(o, "cpus", cpus_to_json(&s->cpus));
	json_object_set_new(o, "peer_cpus", cpus_to_json(&s->peer_cpus));
	return o;
}

static json_t *times_to_json(const struct hist *h)
{
	json_t *o;

	if (!h->total)
		return json_null();
	o = json_pack("{s:I, s:f, s:f}", "count", (json_int_t)h->total, "mean_us",
		      hist_mean(h) / 1e3, "min_us", (double)h->min / 1e3);
	for (size_t i = 0; i < POINTS; i++) {
		uint64_t ns =
			points[i].percent >= 100 ? h->max : hist_percentile(h, points[i].percent);

		json_object_set_new(o, points[i].key, json_real((double)ns / 1e3));
	}
	return o;
}

static json_t *run_to_json(const struct test_result *r)
{
	json_t *o = json_object();

	json_object_set_new(o, "seconds", real(r->seconds));
	json_object_set_new(o, "messages_per_s", real(r->msgs_per_s));
	json_object_set_new(o, "payload_bits_per_s", real(r->bits_per_s));
	json_object_set_new(o, "offered_per_s",
			    r->offered_per_s > 0 ? real(r->offered_per_s) : json_null());
	json_object_set_new(o, "latency", times_to_json(&r->latency));
	json_object_set_new(o, "service", times_to_json(&r->service));
	json_object_set_new(o, "local", side_to_json(&r->local));
	json_object_set_new(o, "remote", side_to_json(&r->remote));
	return o;
}

static json_t *figure_to_json(struct figure v)
{
	if (!v.n)
		return json_null();
	return json_pack("{s:f, s:f, s:I}", "mean", v.mean, "sd", v.sd, "runs", (json_int_t)v.n);
}

static const struct {
	const char *key;
	figure_fn fn;
	double arg;
} summary[] = {
	{"messages_per_s", run_rate, 0},
	{"payload_mbits_per_s", run_mbits, 0},
	{"packets_per_s", run_packets, 0},
	{"offered_per_s", run_offered, 0},
	{"machine_cpus_local", run_machine_cpus, LOCAL},
	{"machine_cpus_remote", run_machine_cpus, REMOTE},
	{"thread_cpus_local", run_thread_cpus, LOCAL},
	{"thread_cpus_remote", run_thread_cpus, REMOTE},
	{"utilisation_percent_local", run_utilisation, LOCAL},
	{"utilisation_percent_remote", run_utilisation, REMOTE},
	{"demand_us_per_kb_local", run_demand, LOCAL},
	{"demand_us_per_kb_remote", run_demand, REMOTE},
	{"demand_us_per_kb", run_demand_all, 0},
	{"demand_us_per_message", run_us_per_message, 0},
	{"cycles_per_message", run_cycles_per_message, 0},
	{"cycles_per_byte", run_cycles_per_byte, 0},
	{"interrupts_per_s_local", run_interrupts, LOCAL},
	{"interrupts_per_s_remote", run_interrupts, REMOTE},
	{"net_rx_polls_per_s_local", run_rx_polls, LOCAL},
	{"net_rx_polls_per_s_remote", run_rx_polls, REMOTE},
	{"net_tx_polls_per_s_local", run_tx_polls, LOCAL},
	{"net_tx_polls_per_s_remote", run_tx_polls, REMOTE},
	{"packets_per_poll_local", run_packets_per_poll, LOCAL},
	{"packets_per_poll_remote", run_packets_per_poll, REMOTE},
};

static json_t *percentiles_to_json(const struct bench_report *b, figure_fn fn)
{
	json_t *o = json_object();

	for (size_t i = 0; i < POINTS; i++)
		json_object_set_new(o, points[i].key,
				    figure_to_json(figure_of(b, fn, points[i].percent)));
	return o;
}

static json_t *summary_to_json(const struct bench_report *b)
{
	json_t *o = json_object(), *lost = json_object();

	for (size_t i = 0; i < sizeof(summary) / sizeof(summary[0]); i++)
		json_object_set_new(o, summary[i].key,
				    figure_to_json(figure_of(b, summary[i].fn, summary[i].arg)));
	json_object_set_new(o, "latency", percentiles_to_json(b, run_latency_us));
	json_object_set_new(o, "service", percentiles_to_json(b, run_service_us));
	json_object_set_new(o, "cycles_by",
			    json_string(cycles_counted(b) ? "counter" : "cpu_time_x_tsc"));
	for (size_t i = 0; i < report_nlosses; i++) {
		const struct loss *l = &report_losses[i];

		json_object_set_new(lost, l->key,
				    json_pack("{s:I, s:I}", "local",
					      (json_int_t)loss_sum(b, LOCAL, l), "remote",
					      (json_int_t)loss_sum(b, REMOTE, l)));
	}
	json_object_set_new(o, "losses", lost);
	return o;
}

/* Buckets that are not empty, of all runs: [greatest value in us, how many]. */
static json_t *histogram_to_json(const struct bench_report *b)
{
	struct hist *h = report_merged(b, false);
	json_t *list = json_array();
	uint64_t lo, hi;

	for (uint32_t i = 0; h && i < HIST_BUCKETS; i++) {
		if (!h->count[i])
			continue;
		hist_bounds(i, &lo, &hi);
		hi = hi < h->max ? hi : h->max;
		json_array_append_new(list, json_pack("[f, I]", (double)hi / 1e3,
						      (json_int_t)h->count[i]));
	}
	free(h);
	return list;
}

static json_t *one_to_json(const struct bench_report *b)
{
	json_t *o = json_object(), *runs = json_array();
	char place[128];

	placement_text(b, place, sizeof(place));
	json_object_set_new(o, "placement", json_string(place));
	json_object_set_new(o, "spec", spec_to_json(b->spec));
	json_object_set_new(o, "device", json_string(b->dev ? b->dev : ""));
	json_object_set_new(o, "peer", json_string(b->peer ? b->peer : ""));
	json_object_set_new(o, "same_machine", json_boolean(same_machine(b)));
	json_object_set_new(o, "stopped_early", json_boolean(b->stopped_early));
	json_object_set_new(o, "interval",
			    b->confidence > 0
				    ? json_pack("{s:f, s:f, s:o}", "confidence_percent",
						b->confidence, "width_percent", b->width,
						"half_width_reached_percent", real(b->reached))
				    : json_null());
	json_object_set_new(o, "summary", summary_to_json(b));
	for (uint32_t i = 0; i < b->nruns; i++)
		json_array_append_new(runs, run_to_json(&b->run[i]));
	json_object_set_new(o, "runs", runs);
	json_object_set_new(o, "latency_histogram_us", histogram_to_json(b));
	json_object_set_new(o, "conditions",
			    json_pack("{s:O?, s:O?}", "local", b->local, "remote", b->remote));
	return o;
}

json_t *bench_report_json(const struct bench_report *b)
{
	json_t *o = json_object(), *list = json_array();

	json_object_set_new(o, "format", json_string("xdpath-bench-1"));
	json_object_set_new(o, "version", json_string(XDPATH_VERSION));
	for (; b; b = b->next)
		json_array_append_new(list, one_to_json(b));
	json_object_set_new(o, "measurements", list);
	return o;
}
