/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Made-up results of a measurement, so that reports are tested without traffic: latencies with a
 * long tail, two ends, some losses, counters of which the machine has only a few. The same seed
 * gives the same run. Included by the bench's unit tests.
 */
#ifndef TEST_BENCH_FAKE_H
#define TEST_BENCH_FAKE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/bench/report.h"

static inline uint64_t fake_random(uint64_t *state) /* splitmix64 */
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static inline double fake_uniform(uint64_t *state) /* above 0, at most 1 */
{
	return ((double)(fake_random(state) >> 11) + 1) / 9007199254740992.0;
}

static inline void fake_counter(struct usage *u, const char *name, double value, double share)
{
	struct usage_counter *c = &u->counter[u->counters++];

	snprintf(c->name, sizeof(c->name), "%s", name);
	c->supported = value >= 0;
	if (!c->supported)
		snprintf(c->why, sizeof(c->why), "no such counter on this processor (or guest)");
	c->value = c->supported ? (uint64_t)value : 0;
	c->share = share;
	c->machine = strcmp(name, "task-clock") != 0;
}

static inline void fake_usage(struct usage *u, double seconds, uint64_t *seed)
{
	double noise = 1 + 0.02 * fake_uniform(seed);

	u->source = USAGE_NOHZ;
	u->cpus = u->online = 2;
	u->seconds = seconds;
	u->busy[0] = 0.94 * seconds * noise;
	u->busy[1] = 0.48 * seconds * noise;
	u->busy_total = u->busy[0] + u->busy[1];
	u->threads = 0.9 * seconds * noise;
	u->user = 0.41 * seconds;
	u->system = 0.62 * seconds;
	u->softirq = 0.38 * seconds;
	u->steal = 0.01 * seconds;
	u->tsc_hz = 2.096e9;
	u->interrupts = UINT64_MAX;
	u->softirqs_rx = (uint64_t)(21000 * seconds * noise);
	u->softirqs_tx = 12;
	fake_counter(u, "task-clock", u->threads * 1e9, 1);
	fake_counter(u, "context-switches", 12345 * noise, 1);
	fake_counter(u, "cycles", -1, 0);
	fake_counter(u, "instructions", -1, 0);
	fake_counter(u, "cache-misses", 4.2e6 * noise, 0.37);
}

static inline void fake_side(struct test_side *s, const char *host, double seconds, uint64_t msgs,
			     uint64_t *seed)
{
	snprintf(s->host, sizeof(s->host), "%s", host);
	snprintf(s->dev, sizeof(s->dev), "d0");
	snprintf(s->driver, sizeof(s->driver), "veth");
	snprintf(s->mode, sizeof(s->mode), "copy");
	snprintf(s->mode_why, sizeof(s->mode_why),
		 "zero-copy on d0 queue 0: the driver has none (Operation not supported)");
	s->seconds = seconds;
	s->msgs_out = s->msgs_in = s->packets_out = s->packets_in = msgs;
	s->if_packets_out = s->if_packets_in = msgs;
	s->payload_out = s->payload_in = msgs * 1400;
	s->bytes_out = s->bytes_in = s->if_bytes_out = s->if_bytes_in = msgs * 1458;
	s->tx_kicks = msgs / 16;
	s->sleeps = msgs / 100;
	s->syscalls = s->tx_kicks + s->sleeps;
	s->lost.timeouts = 3;
	fake_usage(&s->usage, seconds, seed);
}

/* One run of 1400 B requests and 1 B answers, or of a stream of 1400 B messages. */
static inline void fake_run(struct test_result *r, enum test_kind kind, uint64_t seed)
{
	uint64_t n = 200000 + fake_random(&seed) % 2000;

	memset(r, 0, sizeof(*r));
	hist_init(&r->latency);
	hist_init(&r->service);
	r->seconds = 0.3;
	r->msgs_per_s = (double)n / r->seconds;
	r->bits_per_s = r->msgs_per_s * 1400 * 8;
	/* around 275 us, one in twenty much slower */
	for (uint64_t i = 0; kind == TEST_RR && i < n / 10; i++) {
		double us = 200 + 75 * -log(fake_uniform(&seed));

		if (fake_random(&seed) % 20 == 0)
			us += 900 * -log(fake_uniform(&seed));
		hist_add(&r->latency, (uint64_t)(us * 1e3));
	}
	fake_side(&r->local, "left", r->seconds, n, &seed);
	fake_side(&r->remote, "right", r->seconds, n, &seed);
}

/* What record_host() gives, as little as the reports want; the caller drops it. */
static inline json_t *fake_record(const char *boot_id)
{
	return json_pack("{s:s, s:s, s:s, s:i, s:s, s:n, s:s, s:s, s:i, s:n, s:s, s:{s:s}, "
			 "s:[s,s], s:i, s:f, s:{s:s, s:s}}",
			 "boot_id", boot_id, "kernel", "6.18.0", "cpu_model",
			 "A <fast> \"CPU\" & co", "cpus", 2, "clocksource", "tsc", "governor",
			 "governor_why",
			 "no CPU frequency driver here (usual in a virtual machine)", "driver",
			 "veth", "mtu_bytes", 1500, "irq_cpus", "irq_cpus_why",
			 "the device has no interrupt of its own", "rps", "rx-0", "", "offloads",
			 "tx-scatter-gather", "rx-gro", "netfilter_rules", 4,
			 "steal_percent_since_boot", 0.25, "knobs", "rx.batch", "32", "ring.rx",
			 "2048");
}

#endif
