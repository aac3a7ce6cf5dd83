/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Generated frames against a plain reading of RFC 791, 8200, 768 and 1071: every length and
 * checksum, over families, tags, sizes, flows and sequence numbers; sizes in turn; rates and
 * pacing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../user/cmd/source.h"

#include <cmocka.h> /* last: it has a macro fail() */

#define ROOM 9100

static const struct packet_spec spec4 = {
	.dst_mac = {0x02, 0, 0, 0, 0, 0x02},
	.src_mac = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55},
	.src = {198, 18, 0, 1},
	.dst = {198, 18, 255, 254},
	.sport = 1024,
	.dport = 9,
	.flows = 1,
};

static const struct packet_spec spec6 = {
	.dst_mac = {0x02, 0, 0, 0, 0, 0x02},
	.src_mac = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55},
	.v6 = true,
	.src = {0x20, 0x01, 0, 2, [8] = 0xff, [9] = 0xfe, [15] = 1},
	.dst = {0x20, 0x01, 0, 2, [8] = 0xff, [9] = 0xff, [15] = 0xfe},
	.sport = 65535,
	.dport = 65535,
	.flows = 1,
};

static uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

/* One's complement sum with the carry added at once, byte by byte; an odd end counts as zero. */
static uint32_t add_bytes(uint32_t sum, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
		if (sum > 0xffff)
			sum -= 0xffff;
	}
	return sum;
}

/* The pseudo header written out, then the datagram with its checksum: a right one gives ffff. */
static uint32_t udp_sum(const uint8_t *ip, bool v6, const uint8_t *udp, uint32_t len)
{
	uint8_t pseudo[40] = {0};
	uint32_t n = v6 ? 16 : 4;

	memcpy(pseudo, ip + (v6 ? 8 : 12), n);
	memcpy(pseudo + n, ip + (v6 ? 24 : 16), n);
	pseudo[2 * n + 2] = (uint8_t)(len >> 8);
	pseudo[2 * n + 3] = (uint8_t)len;
	if (v6)
		pseudo[2 * n + 7] = 17;
	else
		pseudo[2 * n + 1] = 17;
	return add_bytes(add_bytes(0, pseudo, v6 ? 40 : 12), udp, len);
}

/* The whole frame, as the engines make it, on memory that was not clean. */
static uint32_t make(const struct gen_plan *p, uint8_t *frame, uint64_t seq, uint64_t now)
{
	uint32_t size;

	memset(frame, 0xa5, ROOM);
	size = packet_head(p, frame, seq, now);
	assert_true(size <= ROOM);
	if (size > GEN_HEAD)
		memset(frame + GEN_HEAD, 0, size - GEN_HEAD);
	return size;
}

static void check_ip(const uint8_t *ip, const struct packet_spec *s, uint32_t len)
{
	if (s->v6) {
		assert_int_equal(get16(ip), 0x6000);
		assert_int_equal(get16(ip + 4), len - 40);
		assert_int_equal(ip[6], 17);
		assert_memory_equal(ip + 8, s->src, 16);
		assert_memory_equal(ip + 24, s->dst, 16);
		return;
	}
	assert_int_equal(ip[0], 0x45);
	assert_int_equal(get16(ip + 2), len);
	assert_int_equal(ip[9], 17);
	assert_memory_equal(ip + 12, s->src, 4);
	assert_memory_equal(ip + 16, s->dst, 4);
	assert_int_equal(add_bytes(0, ip, 20), 0xffff);
}

static void check_payload(const uint8_t *p, uint32_t len, uint64_t seq, uint64_t now)
{
	uint32_t i = 0;

	if (len >= 8) {
		assert_true(get64(p) == seq);
		i = 8;
	}
	if (len >= 16) {
		assert_true(get64(p + 8) == now);
		i = 16;
	}
	for (; i < len; i++)
		assert_int_equal(p[i], 0);
}

static void check(const struct gen_plan *p, const struct packet_spec *s, uint64_t seq, uint64_t now)
{
	static uint8_t f[ROOM];
	uint32_t size = make(p, f, seq, now), l3 = s->vlan ? 18 : 14, l4 = l3 + (s->v6 ? 40 : 20);
	uint32_t len = size - l4, sport = s->sport + (uint32_t)(seq % s->flows);

	assert_memory_equal(f, s->dst_mac, 6);
	assert_memory_equal(f + 6, s->src_mac, 6);
	if (s->vlan) {
		assert_int_equal(get16(f + 12), 0x8100);
		assert_int_equal(get16(f + 14), s->vlan);
	}
	assert_int_equal(get16(f + l3 - 2), s->v6 ? 0x86dd : 0x0800);
	check_ip(f + l3, s, size - l3);
	assert_int_equal(get16(f + l4), sport > 65535 ? sport - 65536 + 1024 : sport);
	assert_int_equal(get16(f + l4 + 2), s->dport);
	assert_int_equal(get16(f + l4 + 4), len);
	assert_int_not_equal(get16(f + l4 + 6), 0);
	assert_int_equal(udp_sum(f + l3, s->v6, f + l4, len), 0xffff);
	check_payload(f + l4 + 8, len - 8, seq, now);
}

static const uint64_t numbers[] = {
	0, 1, 0xffff, 0x10000, 0xffffffff, 0x123456789abcdef0, UINT64_MAX,
};

static void every_size(struct packet_spec s)
{
	uint32_t shortest = packet_shortest(s.v6, s.vlan != 0);
	struct gen_plan p;

	packet_plan(&p, &s);
	for (uint32_t size = shortest; size <= 9018; size += size < 300 ? 1 : 97) {
		packet_sizes_range(&p, size, size);
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
			for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
				check(&p, &s, numbers[i], numbers[k]);
	}
}

static void frames_are_right_at_every_size(void **state)
{
	static const uint16_t vlans[] = {0, 1, 4094};

	(void)state;
	for (size_t i = 0; i < sizeof(vlans) / sizeof(vlans[0]); i++) {
		struct packet_spec s4 = spec4, s6 = spec6;

		s4.vlan = s6.vlan = vlans[i];
		every_size(s4);
		every_size(s6);
	}
}

/* Choose the time so that the sum comes out as zero: on the wire that would mean "no checksum". */
static void a_sum_of_zero_goes_out_as_ffff(void **state)
{
	const struct packet_spec *specs[] = {&spec4, &spec6};
	static uint8_t f[ROOM];

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint32_t l4 = specs[i]->v6 ? 54 : 34;
		struct gen_plan p;
		uint64_t now;

		packet_plan(&p, specs[i]);
		packet_sizes_range(&p, 100, 100);
		make(&p, f, 7, 0);
		now = get16(f + l4 + 6);
		assert_int_not_equal(now, 0xffff);
		make(&p, f, 7, now);
		assert_int_equal(get16(f + l4 + 6), 0xffff);
		check(&p, specs[i], 7, now);
		/* One more, and nothing is special. */
		make(&p, f, 7, now + 1);
		assert_int_equal(get16(f + l4 + 6), 0xfffe);
	}
}

static void flows_take_source_ports_in_turn_and_wrap(void **state)
{
	struct packet_spec s = spec4;
	static uint8_t f[ROOM];
	struct gen_plan p;

	(void)state;
	s.sport = 65530;
	s.flows = 20;
	packet_plan(&p, &s);
	packet_sizes_range(&p, 60, 60);
	for (uint64_t seq = 0; seq < 60; seq++)
		check(&p, &s, seq, 5);
	make(&p, f, 5, 0);
	assert_int_equal(get16(f + 34), 65535);
	make(&p, f, 6, 0);
	assert_int_equal(get16(f + 34), 1024);
	make(&p, f, 20, 0);
	assert_int_equal(get16(f + 34), 65530);
	s.sport = 1; /* below the range only where it was asked for */
	s.flows = GEN_PORT_SPAN;
	packet_plan(&p, &s);
	packet_sizes_range(&p, 60, 60);
	for (uint64_t seq = 0; seq < GEN_PORT_SPAN; seq += 11)
		check(&p, &s, seq, 5);
}

static void sizes_come_in_turn(void **state)
{
	struct gen_plan p;

	(void)state;
	packet_plan(&p, &spec4);
	packet_sizes_range(&p, 60, 63);
	for (uint64_t seq = 0; seq < 9; seq++) {
		assert_int_equal(gen_size(&p, seq), 60 + seq % 4);
		check(&p, &spec4, seq, 1);
	}
	assert_int_equal(p.size_longest, 63);
}

static void count_mix(const struct gen_plan *p, uint32_t small, uint32_t middle, uint32_t big)
{
	uint32_t n[3] = {0};

	for (uint64_t seq = 0; seq < 1200; seq++) {
		uint32_t size = gen_size(p, seq);

		n[0] += size == small;
		n[1] += size == middle;
		n[2] += size == big;
	}
	assert_int_equal(n[0], 700);
	assert_int_equal(n[1], 400);
	assert_int_equal(n[2], 100);
}

static void imix_keeps_its_shares_and_the_mtu(void **state)
{
	struct packet_spec s = spec6;
	struct gen_plan p;

	(void)state;
	packet_plan(&p, &spec4);
	packet_sizes_imix(&p, 1514);
	count_mix(&p, 60, 590, 1514);
	packet_sizes_imix(&p, 1294);
	count_mix(&p, 60, 590, 1294);
	assert_int_equal(p.size_longest, 1294);
	s.vlan = 3;
	packet_plan(&p, &s);
	packet_sizes_imix(&p, 1518);
	count_mix(&p, 66, 590, 1514);
}

static void rates_are_read(void **state)
{
	static const struct {
		const char *text;
		double gap_ns, byte_ns;
	} good[] = {
		{"1", 1e9, 0},	     {"10000", 1e5, 0},
		{"10k", 1e5, 0},     {"1.5M", 1e9 / 1.5e6, 0},
		{"1G", 1, 0},	     {"10kpps", 1e5, 0},
		{"10kbps", 0, 8e5},  {"100Mbps", 0, 80},
		{"2.5Gbps", 0, 3.2}, {"100000bps", 0, 8e4},
	};
	static const char *const bad[] = {"",	  "k",	  "x",	   "10x", "10 k",    "1e9",
					  "0x10", "inf",  "nan",   "-1",  "+1",	     "1.2.3",
					  "10K",  "10kk", "1mbps", ".",	  "10kbps ", "10kBps"};
	static const char *const range[] = {"0", "0.5", "2G", "9kbps", "1001Gbps"};
	struct gen_pace t;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(source_parse_rate(good[i].text, &t), 0);
		assert_true((double)t.gap / (1 << GEN_FRACTION) >= good[i].gap_ns);
		assert_true((double)(t.gap - (t.gap > 0)) / (1 << GEN_FRACTION) <= good[i].gap_ns);
		assert_true((double)t.gap_byte / (1 << GEN_FRACTION) >= good[i].byte_ns);
		assert_true((double)(t.gap_byte - (t.gap_byte > 0)) / (1 << GEN_FRACTION) <=
			    good[i].byte_ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(source_parse_rate(bad[i], &t), -EINVAL);
	for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); i++)
		assert_int_equal(source_parse_rate(range[i], &t), -ERANGE);
}

/* Three million frames a second for a second: as many as that, not one more, and none late. */
static void pacing_does_not_drift(void **state)
{
	static const struct {
		const char *text;
		uint64_t frames; /* of 100 bytes, due within a second */
	} cases[] = {{"3M", 3000000},
		     {"7", 7},
		     {"10k", 10000},
		     {"1234567", 1234567},
		     {"800Mbps", 1000000}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gen_pace t = {0};
		uint64_t n = 0, last = 0;

		assert_int_equal(source_parse_rate(cases[i].text, &t), 0);
		for (; t.next_ns < 1000000000; n++) {
			assert_true(n == 0 || t.next_ns > last);
			last = t.next_ns;
			gen_pace_step(&t, gen_pace_gap(&t, 100));
		}
		assert_int_equal(n, cases[i].frames);
		assert_true(t.next_ns - 1000000000 <= 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_right_at_every_size),
		cmocka_unit_test(a_sum_of_zero_goes_out_as_ffff),
		cmocka_unit_test(flows_take_source_ports_in_turn_and_wrap),
		cmocka_unit_test(sizes_come_in_turn),
		cmocka_unit_test(imix_keeps_its_shares_and_the_mtu),
		cmocka_unit_test(rates_are_read),
		cmocka_unit_test(pacing_does_not_drift),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
