/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Rules in a program (user/lib/steer.c): put in, read back, counted, mirrored, refused. By
 * BPF_PROG_TEST_RUN; needs root; works in a network namespace of its own.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "own_program.h"

static void test_read_back(void **state)
{
	static const char *const text[] = {
		"proto udp dport 53 action xsk",
		"prio 7 src 10.0.0.0/8 sport 1000-2000 action drop",
		"dst fd00::/16 tcp-flags syn action tx",
		"vlan 5 ether 0x88cc queue 3 action redirect lo",
		"proto icmp action mirror 96",
		"action pass",
	};
	struct xdpath_rules got;

	(void)state;
	need_kernel();
	assert_int_equal(xdpath_steer_get(prog_id, &got, NULL), 0);
	assert_int_equal(got.n, 0);
	xdpath_rules_clear(&got);
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		add(text[i]);
	set();
	assert_int_equal(xdpath_steer_get(prog_id, &got, NULL), 0);
	assert_int_equal(got.n, rules.n);
	assert_int_equal(got.next_id, rules.next_id);
	for (uint32_t i = 0; i < rules.n; i++) {
		char a[XDPATH_RULE_TEXT_MAX], b[XDPATH_RULE_TEXT_MAX];

		assert_true(xdpath_rule_format(&rules.rule[i], a, sizeof(a)) > 0);
		assert_true(xdpath_rule_format(&got.rule[i], b, sizeof(b)) > 0);
		assert_string_equal(a, b);
		assert_int_equal(got.rule[i].id, rules.rule[i].id);
	}
	xdpath_rules_clear(&got);
	xdpath_rules_clear(&rules);
	set(); /* none */
	assert_int_equal(xdpath_steer_get(prog_id, &got, NULL), 0);
	assert_int_equal(got.n, 0);
	xdpath_rules_clear(&got);
}

static void test_no_program(void **state)
{
	struct xdpath_rules got;

	(void)state;
	need_kernel();
	assert_int_equal(xdpath_steer_set(0x7fffffff, &rules, &diag), -ENOENT);
	assert_non_null(strstr(diag.text, "2147483647"));
	assert_int_equal(xdpath_steer_get(0x7fffffff, &got, NULL), -ENOENT);
}

/* A rule that stays keeps its count through a swap; a new one begins at nothing. */
static void test_counters(void **state)
{
	struct frame f;
	uint64_t bytes;

	(void)state;
	need_kernel();
	add("proto udp dport 53 action drop"); /* 1 */
	add("proto udp dport 54 action drop"); /* 2 */
	set();
	udp(&f, 53, 10);
	for (int i = 0; i < 5; i++)
		assert_int_equal(run(&f), XDP_DROP);
	assert_int_equal(counted(1, &bytes), 5);
	assert_int_equal(bytes, 5 * f.len);
	assert_int_equal(counted(2, &bytes), 0);
	assert_int_equal(xdpath_rules_del(&rules, 1), 0);
	add("proto udp dport 53 action tx"); /* 3 */
	set();
	assert_int_equal(run(&f), XDP_TX);
	udp(&f, 54, 10);
	assert_int_equal(run(&f), XDP_DROP);
	assert_int_equal(counted(3, &bytes), 1);
	assert_int_equal(counted(2, &bytes), 1);
	assert_int_equal(counted(1, &bytes), UINT64_MAX);
	for (int i = 0; i < 3; i++) { /* places are used again */
		assert_int_equal(xdpath_rules_del(&rules, 3 + (uint32_t)i), 0);
		add("proto udp dport 53 action tx");
		set();
		assert_int_equal(counted(4 + (uint32_t)i, &bytes), 0);
		assert_int_equal(counted(2, &bytes), 1);
	}
	assert_int_equal(statistic(XDPATH_V_DROP), 6);
	assert_int_equal(statistic(XDPATH_V_TX), 1);
}

/* ---- limits ---- */

static void test_limits(void **state)
{
	char text[128], before[XDPATH_RULE_TEXT_MAX];
	struct xdpath_rules got;

	(void)state;
	need_kernel();
	add("action drop");
	set();
	xdpath_rule_format(&rules.rule[0], before, sizeof(before));
	/* 33 lengths of one prefix, 32 of the other */
	for (int len = 0; len <= 32; len++) {
		snprintf(text, sizeof(text), "src 0.0.0.0/%d action drop", len);
		add(text);
		snprintf(text, sizeof(text), "dst 0.0.0.0/%d action drop", len);
		if (len) /* of no bits it asks for the same as src's */
			add(text);
	}
	/* and the one that asks for nothing */
	assert_int_equal(xdpath_steer_set(prog_id, &rules, &diag), -E2BIG);
	assert_non_null(strstr(diag.text, "66 distinct mask shapes for IPv4, 64 at most"));
	assert_int_equal(xdpath_steer_get(prog_id, &got, NULL), 0);
	assert_int_equal(got.n, 1);
	assert_int_equal(xdpath_rule_format(&got.rule[0], text, sizeof(text)), strlen(before));
	xdpath_rules_clear(&got);
	while (rules.n > 64)
		assert_int_equal(xdpath_rules_del(&rules, rules.rule[rules.n - 1].id), 0);
	set();
	xdpath_rules_clear(&rules);
	for (int i = 0; i < 17; i++) {
		snprintf(text, sizeof(text), "proto udp dport %d action mirror", i + 1);
		add(text);
	}
	assert_int_equal(xdpath_steer_set(prog_id, &rules, &diag), -E2BIG);
	assert_non_null(strstr(diag.text, "17 mirror rules, 16 at most"));
}

/* Ten thousand rules, each of them found; and how long that takes. */
static void test_ten_thousand(void **state)
{
	struct xdpath_rules joined = {0};
	struct timespec a, b;
	struct frame f;
	double ms;
	uint32_t at;

	(void)state;
	need_kernel();
	joined.rule = calloc(XDPATH_RULES_MAX, sizeof(*joined.rule));
	assert_non_null(joined.rule);
	joined.room = joined.n = XDPATH_RULES_MAX;
	for (uint32_t i = 0; i < joined.n; i++) {
		struct xdpath_rule *r = &joined.rule[i];

		*r = (struct xdpath_rule){.id = i + 1,
					  .prio = 100,
					  .fields =
						  XDPATH_RF_PROTO | XDPATH_RF_DST | XDPATH_RF_DPORT,
					  .proto = 17,
					  .action = i % 2 ? XDPATH_RA_DROP : XDPATH_RA_TX};
		r->dst = (struct xdpath_prefix){4, 32, {10, 77, (uint8_t)(i >> 8), (uint8_t)i}};
		r->dport[0] = r->dport[1] = (uint16_t)(i * 7);
	}
	joined.next_id = joined.n + 1;
	clock_gettime(CLOCK_MONOTONIC, &a);
	assert_int_equal(xdpath_steer_set(prog_id, &joined, &diag), 0);
	clock_gettime(CLOCK_MONOTONIC, &b);
	ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
	print_message("# 10000 rules put in within %.1f ms\n", ms);
	assert_true(ms < 2000);
	for (uint32_t i = 0; i < joined.n; i++) {
		udp(&f, (uint16_t)(i * 7), 10);
		f.b[32] = (uint8_t)(i >> 8);
		f.b[33] = (uint8_t)i;
		assert_int_equal(run(&f), i % 2 ? XDP_DROP : XDP_TX);
		f.b[37] ^= 1; /* another port: not this rule's */
		assert_int_equal(run(&f), XDP_PASS);
	}
	/* as many others at once: none of them begins with the old ones' counts */
	for (uint32_t i = 0; i < joined.n; i++)
		joined.rule[i].id += XDPATH_RULES_MAX;
	joined.next_id += XDPATH_RULES_MAX;
	assert_int_equal(xdpath_steer_set(prog_id, &joined, &diag), 0);
	for (at = 0; at < 100; at++) {
		uint64_t bytes;

		assert_int_equal(counted(XDPATH_RULES_MAX + 1 + at * 97, &bytes), 0);
	}
	xdpath_rules_clear(&joined);
}

/* ---- mirror ---- */

static struct {
	uint32_t n;
	struct xdpath_copy head[64];
	uint8_t data[64][2048];
	size_t size[64];
} copies;

static int take_copy(void *ctx, void *data, size_t size)
{
	(void)ctx;
	if (copies.n < 64) {
		const struct xdpath_copy *c = data;

		copies.head[copies.n] = *c;
		copies.size[copies.n] = size;
		memcpy(copies.data[copies.n], c + 1, c->kept);
	}
	copies.n++;
	return 0;
}

/* The ring buffer that the first mirror rule brought. */
static struct ring_buffer *open_ring(void)
{
	uint32_t zero = 0, id;
	struct ring_buffer *ring;
	int fd;

	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(skel->maps.xdpath_mirror), &zero, &id), 0);
	fd = bpf_map_get_fd_by_id(id);
	assert_true(fd >= 0);
	ring = ring_buffer__new(fd, take_copy, NULL, NULL);
	assert_non_null(ring);
	close(fd);
	return ring;
}

static void test_mirror(void **state)
{
	static const uint32_t payload[] = {0, 86, 87, 470, 471, 1458, 8958};
	struct ring_buffer *ring;
	struct frame f;

	(void)state;
	need_kernel();
	add("proto udp dport 53 action mirror");		   /* 1 */
	add("proto udp dport 53 src 10.77.0.1 action mirror 100"); /* 2, more specific */
	add("prio 200 proto udp dport 53 action drop");		   /* 3 */
	add("proto udp dport 54 action mirror 1");		   /* 4, then the kernel */
	set();
	ring = open_ring();
	for (size_t i = 0; i < sizeof(payload) / sizeof(payload[0]); i++) {
		memset(&copies, 0, sizeof(copies));
		udp(&f, 53, payload[i]);
		assert_int_equal(run(&f), XDP_DROP);
		assert_int_equal(ring_buffer__consume(ring), 2);
		assert_int_equal(copies.head[0].rule, 2);
		assert_int_equal(copies.head[1].rule, 1);
		for (int c = 0; c < 2; c++) {
			uint32_t most = c ? XDPATH_SNAP_MAX : 100;
			uint32_t kept = f.len < most ? f.len : most;

			assert_int_equal(copies.head[c].length, f.len);
			assert_int_equal(copies.head[c].kept, kept);
			assert_int_equal(copies.size[c],
					 sizeof(struct xdpath_copy) + (kept <= 128   ? 128
								       : kept <= 512 ? 512
										     : 2048));
			assert_memory_equal(copies.data[c], f.b, kept);
		}
		assert_true(copies.head[1].time_ns >= copies.head[0].time_ns);
	}
	udp(&f, 54, 4);
	memset(&copies, 0, sizeof(copies));
	assert_int_equal(run(&f), XDP_PASS);
	assert_int_equal(ring_buffer__consume(ring), 1);
	assert_int_equal(copies.head[0].kept, 1);
	assert_int_equal(copies.data[0][0], f.b[0]);
	ring_buffer__free(ring);
}

/* Nobody reads: what does not fit is counted, and the packet goes its way. */
static void test_mirror_full(void **state)
{
	struct ring_buffer *ring;
	struct frame f;
	uint64_t bytes;
	uint32_t sent = 4000;

	(void)state;
	need_kernel();
	add("proto udp dport 53 action mirror");
	set();
	udp(&f, 53, 1400);
	assert_int_equal(run_prog(bpf_program__fd(skel->progs.xdpath_steer), &f, sent), XDP_PASS);
	assert_int_equal(counted(1, &bytes), sent);
	assert_true(statistic(XDPATH_V_UNCOPIED) > 0);
	assert_int_equal(statistic(XDPATH_V_COPIED) + statistic(XDPATH_V_UNCOPIED), sent);
	ring = open_ring();
	copies.n = 0;
	ring_buffer__consume(ring);
	assert_int_equal(copies.n, statistic(XDPATH_V_COPIED));
	ring_buffer__free(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		own_program(test_read_back),	own_program(test_no_program),
		own_program(test_counters),	own_program(test_limits),
		own_program(test_ten_thousand), own_program(test_mirror),
		own_program(test_mirror_full),
	};

	return cmocka_run_group_tests_name("steer_rules", tests, set_up, NULL);
}
