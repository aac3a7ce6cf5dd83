/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The two tests over an engine of memory: every request has one answer, what is lost is asked again
 * and counted, a stall shows in the latency of all that it held up, a message is whole or it is not
 * counted. And the frames that two of the engines build.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "../../user/bench/engine_common.h"
#include "../bench/null_engine.h"

#include <cmocka.h> /* last: it has a macro fail() */

static struct null_end client, server;

static void sleep_ms(int ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&ts, NULL);
}

static void turns(int n)
{
	while (n--) {
		null_turn(&client);
		null_turn(&server);
	}
}

/* Stop and let everything come home; bounded, as in a session. */
static void drain(void)
{
	test_set_phase(client.t, PHASE_DRAIN);
	for (int i = 0; i < 500; i++) {
		turns(5);
		if (test_is_drained(client.t))
			break;
		sleep_ms(1);
	}
	assert_true(test_is_drained(client.t));
}

static void counts(struct test_count *c, struct test_count *s)
{
	test_counts(client.t, c);
	test_counts(server.t, s);
}

static void every_request_has_one_answer(void **state)
{
	static const uint32_t sizes[][2] = {
		{1, 1}, {1400, 1}, {14000, 14000}, {65536, 3}, {1456, 1457}};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct test_spec spec = {.kind = TEST_RR,
					 .flows = 20,
					 .req = sizes[i][0],
					 .rsp = sizes[i][1]};
		uint32_t out = (spec.req + 1455) / 1456, in = (spec.rsp + 1455) / 1456;
		uint64_t asked, answered;
		struct test_count c, s;

		assert_int_equal(null_open(&client, &server, &spec), 0);
		asked = client.packets_out;
		answered = server.packets_out;
		test_set_phase(client.t, PHASE_GO);
		turns(2000);
		drain();
		counts(&c, &s);
		assert_true(c.msgs_in > 100);
		assert_true(c.msgs_in == c.msgs_out && s.msgs_in == s.msgs_out &&
			    s.msgs_in == c.msgs_in);
		assert_true(client.t->lane[0].latency.total == c.msgs_in);
		assert_true(client.packets_out - asked == c.msgs_out * out);
		assert_true(server.packets_out - answered == s.msgs_out * in);
		assert_int_equal(c.lost.late + c.lost.timeouts + s.lost.late + s.lost.incomplete,
				 0);
		null_close(&client, &server);
	}
}

static uint32_t lose, lost;

static bool loses_some(struct null_end *from, const struct null_cell *c)
{
	(void)from;
	(void)c;
	if (!lose)
		return true;
	lose--;
	lost++;
	return false;
}

static void a_loss_is_asked_again_and_counted(void **state)
{
	struct test_spec spec = {.kind = TEST_RR, .flows = 4, .req = 3000, .rsp = 1};
	uint64_t from;
	struct test_count c, s;

	(void)state;
	assert_int_equal(null_open(&client, &server, &spec), 0);
	client.arrives = loses_some;
	lost = 0;
	lose = 1; /* the first piece of the first flow's first request */
	test_set_phase(client.t, PHASE_GO);
	from = xdpath_now_ms();
	while (client.t->flow[0].next_seq < 2 && xdpath_now_ms() - from < 2000)
		turns(10);
	assert_int_equal(lost, 1);
	assert_true(client.t->flow[0].next_seq >= 2);
	assert_true(xdpath_now_ms() - from >= REASSEMBLY_MS);
	drain();
	counts(&c, &s);
	assert_int_equal(c.lost.timeouts, 1);
	assert_true(c.msgs_in == client.t->lane[0].latency.total);
	/* the one that was lost took all the time it took */
	assert_true(client.t->lane[0].latency.max >= REASSEMBLY_MS * 1000000ULL);
	null_close(&client, &server);
}

/* An answer that never comes is given up after the run, and the run can end. */
static void a_lost_answer_does_not_hold_the_end_up(void **state)
{
	struct test_spec spec = {.kind = TEST_RR, .flows = 3, .req = 1, .rsp = 1};
	struct test_count c, s;

	(void)state;
	assert_int_equal(null_open(&client, &server, &spec), 0);
	server.arrives = loses_some;
	lost = 0;
	lose = 3;
	test_set_phase(client.t, PHASE_GO);
	turns(3);
	drain();
	counts(&c, &s);
	assert_int_equal(lost, 3);
	assert_int_equal(c.lost.timeouts, 3);
	assert_int_equal(c.msgs_in, 0);
	assert_int_equal(s.msgs_in, 3);
	null_close(&client, &server);
}

/* The server stands still for 50 ms: messages were due every 100 us meanwhile. Service says that a
 * window's worth was slow, latency that all 500 were. */
static void a_stall_is_paid_for_by_all_it_held_up(void **state)
{
	struct test_spec spec = {.kind = TEST_RR,
				 .flows = 1,
				 .req = 1,
				 .rsp = 1,
				 .rate = 10000,
				 .arrival = ARRIVAL_EVEN};
	const struct test_lane *tl;
	uint64_t from, slow = 0, slow_service = 0;

	(void)state;
	assert_int_equal(null_open(&client, &server, &spec), 0);
	tl = &client.t->lane[0];
	test_set_phase(client.t, PHASE_GO);
	for (from = xdpath_now_ms(); xdpath_now_ms() - from < 20;)
		turns(1);
	for (from = xdpath_now_ms(); xdpath_now_ms() - from < 50;)
		null_turn(&client);
	for (from = xdpath_now_ms(); xdpath_now_ms() - from < 20;)
		turns(1);
	turns(100);
	drain();
	for (uint32_t b = hist_bucket(2000000); b < HIST_BUCKETS; b++) {
		slow += tl->latency.count[b];
		slow_service += tl->service.count[b];
	}
	assert_true(tl->latency.total >= 800);
	assert_true(slow >= 450); /* all but those due in the last 2 ms */
	assert_true(slow_service <
		    slow / 2); /* a window, and one for each stall of the test itself */
	assert_true(tl->latency.max >= 48000000);
	null_close(&client, &server);
}

/* All that was due by a moment has gone soon after it, and nothing that was due later. */
static void open_loop_keeps_its_rate(void **state)
{
	static const enum test_arrival kinds[] = {ARRIVAL_EVEN, ARRIVAL_BURST};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct test_spec spec = {.kind = TEST_RR,
					 .flows = 7,
					 .req = 10,
					 .rsp = 10,
					 .rate = 20000,
					 .arrival = kinds[i],
					 .burst = 10};
		uint64_t from, begin, due, until;
		struct test_count c, s;

		assert_int_equal(null_open(&client, &server, &spec), 0);
		test_set_phase(client.t, PHASE_GO);
		null_turn(&client);
		begin = client.t->lane[0].begin;
		for (from = xdpath_now_ms(); xdpath_now_ms() - from < 100;)
			turns(1);
		due = ticks_to_ns(ticks_now() - begin) / 50000;
		turns(100); /* also what a stall of this loop held up */
		until = ticks_to_ns(ticks_now() - begin) / 50000;
		drain();
		counts(&c, &s);
		assert_true(c.msgs_in == c.msgs_out);
		assert_in_range(c.msgs_in, due - 1, until + 10);
		null_close(&client, &server);
	}
}

static void streams_count_whole_messages(void **state)
{
	static const uint32_t sizes[] = {1, 64, 1456, 1457, 14000, 65536};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct test_spec spec = {.kind = TEST_STREAM, .flows = 5, .size = sizes[i]};
		uint32_t each = (sizes[i] + 1455) / 1456;
		struct test_count c, s;
		uint64_t before;

		assert_int_equal(null_open(&client, &server, &spec), 0);
		before = client.packets_out;
		test_set_phase(client.t, PHASE_GO);
		turns(501);
		drain();
		counts(&c, &s);
		assert_true(c.msgs_out > 20);
		assert_true(s.msgs_in == c.msgs_out && c.msgs_in == 0 && s.msgs_out == 0);
		assert_true(client.packets_out - before == c.msgs_out * each);
		assert_int_equal(s.lost.late + s.lost.reordered + s.lost.incomplete, 0);
		for (uint32_t f = 0; f < 5; f++) /* in turn: none ahead by more than one */
			assert_in_range(client.t->flow[f].next_seq, c.msgs_out / 5,
					c.msgs_out / 5 + 1);
		null_close(&client, &server);
	}
}

static void a_stream_with_a_hole_is_not_whole(void **state)
{
	struct test_spec spec = {.kind = TEST_STREAM, .flows = 1, .size = 5000};
	struct test_count c, s;

	(void)state;
	assert_int_equal(null_open(&client, &server, &spec), 0);
	client.arrives = loses_some;
	lost = 0;
	lose = 1;
	test_set_phase(client.t, PHASE_GO);
	turns(50);
	drain();
	for (int i = 0; i < 60; i++, sleep_ms(10))
		turns(3);
	counts(&c, &s);
	assert_int_equal(lost, 1);
	assert_int_equal(c.msgs_out - s.msgs_in, 1);
	assert_int_equal(s.lost.incomplete, 1);
	null_close(&client, &server);
}

/* Datagrams of another test, of flows that are not there, of kinds that are not asked for. */
static void what_is_not_ours_is_left_alone(void **state)
{
	struct test_spec spec = {.kind = TEST_RR, .flows = 2, .req = 100, .rsp = 100};
	struct null_cell *cell;
	struct test_count c, s;

	(void)state;
	assert_int_equal(null_open(&client, &server, &spec), 0);
	for (uint32_t kind = 0; kind < 256; kind++) {
		cell = &server.ring[server.tail++ % NULL_CELLS];
		cell->h = (struct msg_hdr){.test = htons(8), .kind_at = htonl(kind << 24 | kind)};
		cell->flow = kind & 1;
		cell->len = kind;
		cell = &client.ring[client.tail++ % NULL_CELLS];
		cell->h = (struct msg_hdr){.test = htons(7), .kind_at = htonl(kind << 24 | kind)};
		cell->h.len = htonl(kind);
		cell->flow = kind & 1;
		cell->len = kind;
	}
	turns(20);
	counts(&c, &s);
	assert_int_equal(s.msgs_in + s.msgs_out + c.msgs_in + c.msgs_out, 0);
	assert_int_equal(s.lost.late, 256);
	assert_true(c.lost.late >= 250); /* an echo is nothing wrong */
	null_close(&client, &server);
}

/* ---- frames --------------------------------------------------------------------------------- */

static uint32_t sum16(uint32_t sum, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
		if (sum > 0xffff)
			sum -= 0xffff;
	}
	return sum;
}

static struct engine_path path_of(int family, bool is_server)
{
	struct engine_path p = {.family = family,
				.flows = 9,
				.client_base = 20000,
				.server_port = 12867,
				.is_server = is_server,
				.local_mac = {2, 0, 0, 0, 0, 1},
				.remote_mac = {2, 0, 0, 0, 0, 2}};
	uint8_t *a = (uint8_t *)&p.local, *b = (uint8_t *)&p.remote;

	for (int i = 0; i < 16; i++) {
		a[i] = (uint8_t)(is_server ? 0xf0 + i : i + 1);
		b[i] = (uint8_t)(is_server ? i + 1 : 0xf0 + i);
	}
	return p;
}

static void check_frame(const struct engine_path *p, const uint8_t *f, uint32_t len, uint32_t n)
{
	const uint8_t *ip = f + 14;
	uint32_t udp_len = 8 + 16 + n;

	assert_memory_equal(f, p->remote_mac, 6);
	if (p->family == AF_INET) {
		assert_int_equal(len, 14 + 20 + udp_len);
		assert_int_equal(sum16(0, ip, 20), 0xffff);
		assert_int_equal(ip[2] << 8 | ip[3], 20 + udp_len);
		assert_int_equal(ip[26] | ip[27], 0);
		return;
	}
	assert_int_equal(len, 14 + 40 + udp_len);
	assert_int_equal(sum16(sum16(17 + udp_len, ip + 8, 32), ip + 40, udp_len), 0xffff);
}

static void frames_are_right_and_understood_by_the_other_end(void **state)
{
	static uint8_t frame[2048];

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct engine_path us = path_of(k & 1 ? AF_INET6 : AF_INET, k & 2),
				   them = path_of(us.family, !us.is_server);
		struct flow_head *heads = heads_make(&us);
		uint32_t at = heads_len(&us), len;
		struct rx_slot s;

		assert_non_null(heads);
		for (uint32_t n = 0; n < 1400; n += n < 40 ? 1 : 61) {
			uint32_t flow = n % 9;

			memset(frame, 0, sizeof(frame));
			for (uint32_t i = 0; i < 16; i++)
				frame[at + i] = (uint8_t)(n * 7 + i * 31);
			len = heads_write(&us, &heads[flow], frame, n);
			check_frame(&us, frame, len, n);
			assert_true(heads_parse(&them, frame, len, len, &s));
			assert_int_equal(s.flow, flow);
			assert_int_equal(s.len, n);
			assert_ptr_equal(s.msg, frame + at);
			/* padded on the wire: the datagram is as long as it says */
			assert_true(heads_parse(&them, frame, len + 6, len + 6, &s));
			assert_int_equal(s.len, n);
			/* cut off, or another's */
			assert_false(heads_parse(&them, frame, len - 1, len - 1, &s));
			assert_false(heads_parse(&us, frame, len, len, &s));
		}
		free(heads);
	}
}

/* Whatever bytes come: no read past what is there (under ASan), no flow that is not there. */
static void frames_of_noise_are_refused_or_bounded(void **state)
{
	struct engine_path p = path_of(AF_INET, true);
	uint64_t x = 88172645463325252ULL;
	struct rx_slot s;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint32_t len = (uint32_t)(x % 80);
		uint8_t *f = malloc(len ? len : 1);

		for (uint32_t k = 0; k < len; k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			f[k] = (uint8_t)x;
		}
		if (len > 38 && i % 2) { /* near to a right one */
			struct flow_head *h;
			struct engine_path us = path_of(AF_INET, false);

			h = heads_make(&us);
			memcpy(f, h[0].b, len < 42 ? len : 42);
			free(h);
			f[x % len] ^= (uint8_t)(x >> 8);
		}
		if (heads_parse(&p, f, len, len, &s)) {
			assert_true(s.flow < p.flows);
			assert_true((const uint8_t *)s.msg + 16 + s.len <= f + len);
		}
		free(f);
		x++;
	}
}

/* ---- layout ---- */

struct part {
	const void *at;
	size_t size;
	uint32_t owner;
};

static bool share_a_line(const struct part *a, const struct part *b)
{
	uintptr_t first[2] = {(uintptr_t)a->at / XDPATH_CACHELINE,
			      (uintptr_t)b->at / XDPATH_CACHELINE};
	uintptr_t last[2] = {((uintptr_t)a->at + a->size - 1) / XDPATH_CACHELINE,
			     ((uintptr_t)b->at + b->size - 1) / XDPATH_CACHELINE};

	return first[0] <= last[1] && first[1] <= last[0];
}

/* Whatever a lane writes while it runs lies on cache lines that no other lane, and not the control
 * thread, writes; a flow's state belongs to one lane, and is on lines of its own. */
static void no_line_of_one_lane_is_anothers(void **state)
{
	struct test_spec spec = {.kind = TEST_RR, .flows = 60, .req = 64, .rsp = 64};
	struct engine e = {.path = {.family = AF_INET, .mtu = 1500, .flows = 60, .lanes = 4}};
	struct part p[4 * 5 + 2 * 60 + 1];
	struct test_end *t;
	uint32_t n = 0;

	(void)state;
	assert_non_null(lanes_alloc(&e));
	e.path.is_server = false;
	assert_int_equal(test_open(&t, &e, &spec, 1, -1), 0);
	for (uint32_t i = 0; i < 4; i++) {
		struct test_lane *l = &t->lane[i];

		p[n++] = (struct part){&e.lane[i], sizeof(e.lane[i]), i};
		p[n++] = (struct part){l, sizeof(*l), i};
		p[n++] = (struct part){l->q.e, (l->q.mask + 1) * sizeof(*l->q.e), i};
		p[n++] = (struct part){l->own, 60 * sizeof(*l->own), i};
		p[n++] = (struct part){l->in, 60 * sizeof(*l->in), i};
	}
	for (uint32_t f = 0; f < 60; f++) {
		p[n++] = (struct part){&t->flow[f], sizeof(t->flow[f]), 100 + f};
		p[n++] = (struct part){t->flow[f].slot, sizeof(*t->flow[f].slot), 100 + f};
	}
	p[n++] = (struct part){&t->phase, sizeof(t->phase), 1000};
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++)
			assert_false(p[i].owner != p[j].owner && share_a_line(&p[i], &p[j]));
	assert_int_equal(sizeof(struct lane_counters) % XDPATH_CACHELINE, 0);
	test_close(t);
	free(e.lane);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_request_has_one_answer),
		cmocka_unit_test(a_loss_is_asked_again_and_counted),
		cmocka_unit_test(a_lost_answer_does_not_hold_the_end_up),
		cmocka_unit_test(a_stall_is_paid_for_by_all_it_held_up),
		cmocka_unit_test(open_loop_keeps_its_rate),
		cmocka_unit_test(streams_count_whole_messages),
		cmocka_unit_test(a_stream_with_a_hole_is_not_whole),
		cmocka_unit_test(what_is_not_ours_is_left_alone),
		cmocka_unit_test(frames_are_right_and_understood_by_the_other_end),
		cmocka_unit_test(frames_of_noise_are_refused_or_bounded),
		cmocka_unit_test(no_line_of_one_lane_is_anothers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
