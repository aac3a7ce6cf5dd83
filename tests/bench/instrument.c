/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What the instrument itself costs: the two tests over an engine of memory, less the engine. TSC
 * cycles per transaction (client and server together, time stamps and histogram included) and per
 * packet of a stream (sender and receiver together); the median of many short runs, and the
 * quarters.
 */
#include <stdio.h>

#include "null_engine.h"

/* Many short runs: most of them nobody interrupts. */
enum { RUNS = 801, MESSAGES = 3000 };

static struct null_end client, server;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The engine alone: datagrams through the ring and back in the same bursts, nothing done to them
 * but the header written and its kind looked at. */
static uint64_t engine_alone(uint32_t burst, bool back, uint64_t *datagrams)
{
	struct tx_slot tx[LANE_BURST];
	struct rx_slot rx[LANE_BURST];
	uint64_t from, sum = 0, n = 0;

	from = ticks_now();
	while (n < MESSAGES) {
		for (int way = 0; way < (back ? 2 : 1); way++) {
			struct lane *out = way ? &server.lane : &client.lane,
				    *in = way ? &client.lane : &server.lane;
			uint32_t k = null_tx_slots(out, tx, burst), got;

			for (uint32_t i = 0; i < k; i++) {
				tx[i].len = 64;
				tx[i].flow = 0;
			}
			null_tx(out, tx, k);
			got = null_rx(in, rx);
			for (uint32_t i = 0; i < got; i++)
				sum += rx[i].flow;
			null_rx_done(in);
			n += back && way ? 0 : got;
		}
	}
	__asm__ volatile("" : : "r"(sum));
	*datagrams = n;
	return ticks_now() - from;
}

static uint64_t whole_test(uint64_t *messages)
{
	struct test_count was, is;
	uint64_t from, until, n = 0;

	test_counts(client.t->receives ? client.t : server.t, &was);
	test_set_phase(client.t, PHASE_GO);
	from = ticks_now();
	do {
		for (int i = 0; i < 64; i++) {
			null_turn(&client);
			null_turn(&server);
		}
		test_counts(client.t->receives ? client.t : server.t, &is);
		n = is.msgs_in - was.msgs_in;
	} while (n < MESSAGES);
	until = ticks_now();
	test_set_phase(client.t, PHASE_DRAIN);
	for (int i = 0; i < 1000 && !test_is_drained(client.t); i++) {
		null_turn(&client);
		null_turn(&server);
	}
	null_turn(&server);
	test_set_phase(client.t, PHASE_IDLE);
	null_turn(&client);
	*messages = n;
	return until - from;
}

/* What time stamps and counts may cost on top of the engine, both ends together. */
#define RR_MOST	    100.0
#define STREAM_MOST 5.0

static int one(const char *name, const struct test_spec *spec, uint32_t burst)
{
	double cost[RUNS];
	bool rr = spec->kind == TEST_RR, ok;
	double most = rr ? RR_MOST : STREAM_MOST;

	if (null_open(&client, &server, spec)) {
		fprintf(stderr, "instrument: %s: the test did not open\n", name);
		return 1;
	}
	for (int i = 0; i < RUNS; i++) {
		uint64_t n, m, whole, alone;

		whole = whole_test(&n);
		alone = engine_alone(burst, rr, &m);
		cost[i] = (double)whole / (double)n - (double)alone / (double)m;
	}
	qsort(cost, RUNS, sizeof(cost[0]), by_value);
	ok = cost[RUNS / 2] <= most;
	printf("%-4s %-30s median %6.1f  quarters %6.1f .. %6.1f  TSC cycles per %s; at most "
	       "%.0f\n",
	       ok ? "ok" : "FAIL", name, cost[RUNS / 2], cost[RUNS / 4], cost[RUNS / 4 * 3],
	       rr ? "transaction" : "packet", most);
	null_close(&client, &server);
	return ok ? 0 : 1;
}

int main(void)
{
	static const struct {
		const char *name;
		struct test_spec spec;
		uint32_t burst;
	} cases[] = {
		{"rr, 1 flow", {.kind = TEST_RR, .flows = 1, .req = 1, .rsp = 1}, 1},
		{"rr, 16 flows", {.kind = TEST_RR, .flows = 16, .req = 64, .rsp = 64}, 16},
		{"rr, 200 flows", {.kind = TEST_RR, .flows = 200, .req = 1400, .rsp = 1}, 64},
		{"stream, 1 flow of 64 bytes", {.kind = TEST_STREAM, .flows = 1, .size = 64}, 64},
		{"stream, 60 flows of 64 bytes",
		 {.kind = TEST_STREAM, .flows = 60, .size = 64},
		 64},
	};
	const size_t n = sizeof(cases) / sizeof(cases[0]);
	int failed = 0;

	ticks_init();
	printf("time stamps from %s\n",
	       ticks_scale.counter ? "the processor's counter" : "the clock");
	for (size_t i = 0; i < n; i++)
		failed += one(cases[i].name, &cases[i].spec, cases[i].burst);
	printf("%d passed, %d failed, 0 skipped\n", (int)n - failed, failed);
	return failed != 0;
}
