/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Rules in an attached program (user/lib/steer.c): put in, read back, counted, mirrored, filtered,
 * swapped under load, refused. By BPF_PROG_TEST_RUN and over a veth; needs root; works in a network
 * namespace of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>

#include <xdpath/prog.h>
#include <xdpath/shared.h>
#include <xdpath/steer.h>

#include "frames.h"
#include "steer.skel.h"

static struct steer_bpf *skel;
static const char *missing; /* why nothing can be tried here */
static uint32_t prog_id;
static struct xdpath_rules rules;
static struct xdpath_diag diag;

static int quiet(enum libbpf_print_level level, const char *format, va_list ap)
{
	(void)level, (void)format, (void)ap;
	return 0;
}

static uint32_t id_of(int prog_fd)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(prog_fd, &info, &len) ? 0 : info.id;
}

static int set_up(void **state)
{
	(void)state;
	if (geteuid()) {
		missing = "needs root";
		return 0;
	}
	if (unshare(CLONE_NEWNET)) {
		missing = "no network namespace to be had";
		return 0;
	}
	libbpf_set_print(quiet);
	return 0;
}

/* A program of its own for each test: nothing in its maps. */
static int load(void **state)
{
	(void)state;
	if (missing)
		return 0;
	skel = steer_bpf__open_and_load();
	if (!skel && errno == EPERM)
		missing = "loading BPF programs is not permitted here";
	if (skel)
		prog_id = id_of(bpf_program__fd(skel->progs.xdpath_steer));
	return skel || missing ? 0 : -1;
}

static int unload(void **state)
{
	(void)state;
	xdpath_rules_clear(&rules);
	steer_bpf__destroy(skel);
	skel = NULL;
	return 0;
}

static void need_kernel(void)
{
	if (!missing)
		return;
	print_message("skipped: %s\n", missing);
	skip();
}

static void add(const char *text)
{
	struct xdpath_rule r;
	int err = xdpath_rule_parse(&r, text, &diag);

	if (!err)
		err = xdpath_rules_add(&rules, &r, &diag);
	if (err)
		print_message("%s\n", diag.text);
	assert_int_equal(err, 0);
}

static void set(void)
{
	int err = xdpath_steer_set(prog_id, &rules, &diag);

	if (err)
		print_message("%s\n", diag.text);
	assert_int_equal(err, 0);
}

static uint32_t run_prog(int fd, const struct frame *f, uint32_t times)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f->b, .data_size_in = f->len, .repeat = times);

	assert_int_equal(bpf_prog_test_run_opts(fd, &o), 0);
	return o.retval;
}

static uint32_t run(const struct frame *f)
{
	return run_prog(bpf_program__fd(skel->progs.xdpath_steer), f, 1);
}

static void udp(struct frame *f, unsigned int dport, uint32_t payload)
{
	put_ether(f, 0, 0, 0x0800);
	put_ipv4(f, 17, 20, 8 + payload, 0);
	put16(f, 40000);
	put16(f, dport);
	put16(f, 8 + payload);
	put16(f, 0);
	put_fill(f, payload);
}

/* Packets that the rule of this id has counted. */
static uint64_t counted(uint32_t rule, uint64_t *bytes)
{
	struct xdpath_rule_count *count;
	struct xdpath_rules got;
	uint64_t packets = UINT64_MAX;

	assert_int_equal(xdpath_steer_get(prog_id, &got, &count), 0);
	for (uint32_t i = 0; i < got.n; i++)
		if (got.rule[i].id == rule) {
			packets = count[i].packets;
			*bytes = count[i].bytes;
		}
	free(count);
	xdpath_rules_clear(&got);
	return packets;
}

static uint64_t statistic(uint32_t which)
{
	int cpus = libbpf_num_possible_cpus();
	struct xdpath_verdict_count *each = calloc((size_t)cpus, sizeof(*each));
	uint64_t sum = 0;

	assert_non_null(each);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(skel->maps.xdpath_stats), &which, each),
			 0);
	for (int i = 0; i < cpus; i++)
		sum += each[i].packets;
	free(each);
	return sum;
}

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

/* ---- swapping ---- */

enum { PARTS = 64 };

struct load {
	struct frame frame[PARTS];
	uint32_t worker;
	bool *stop;
	uint64_t seen[2], mixed, packets;
};

static void *send_frames(void *arg)
{
	struct load *l = arg;
	int fd = bpf_program__fd(skel->progs.xdpath_steer);

	for (uint32_t i = l->worker; !__atomic_load_n(l->stop, __ATOMIC_RELAXED); i++) {
		LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = l->frame[i % PARTS].b,
			    .data_size_in = l->frame[i % PARTS].len, .repeat = 50);

		if (bpf_prog_test_run_opts(fd, &o))
			break;
		l->packets += 50;
		if (o.retval == XDP_DROP)
			l->seen[0]++;
		else if (o.retval == XDP_TX)
			l->seen[1]++;
		else
			l->mixed++; /* passed: it met neither set, or a part of one */
	}
	return NULL;
}

/*
 * Two sets that differ in every rule: one copies and drops each packet, the other sends each back.
 * A packet that met a half of both would be copied and sent back; one that passes met neither.
 */
static void test_swap_is_atomic(void **state)
{
	uint32_t swaps = getenv("LONG") && getenv("LONG")[0] ? 1000 : 200;
	struct xdpath_rules set_of[2] = {{0}};
	static struct load load_of[2];
	pthread_t thread[2];
	bool stop = false;
	uint64_t decided[2];

	(void)state;
	need_kernel();
	for (int s = 0; s < 2; s++) {
		rules.next_id = 1 + 1000U * (uint32_t)s; /* ids of the two never meet */
		if (!s)
			add("prio 1 proto udp action mirror 1");
		for (int i = 0; i < PARTS; i++) {
			char text[96];

			snprintf(text, sizeof(text), "proto udp dport %d dst 10.77.0.%s action %s",
				 1000 + i, i % 2 ? "2" : "0/24", s ? "tx" : "drop");
			add(text);
		}
		set_of[s] = rules;
		rules = (struct xdpath_rules){0};
	}
	assert_int_equal(xdpath_steer_set(prog_id, &set_of[0], &diag), 0);
	for (uint32_t w = 0; w < 2; w++) {
		load_of[w] = (struct load){.worker = w, .stop = &stop};
		for (int i = 0; i < PARTS; i++)
			udp(&load_of[w].frame[i], 1000 + (unsigned int)i, 10);
		assert_int_equal(pthread_create(&thread[w], NULL, send_frames, &load_of[w]), 0);
	}
	for (uint32_t i = 1; i <= swaps; i++) {
		assert_int_equal(xdpath_steer_set(prog_id, &set_of[i % 2], &diag), 0);
	}
	stop = true;
	for (int w = 0; w < 2; w++)
		assert_int_equal(pthread_join(thread[w], NULL), 0);
	for (int v = 0; v < 2; v++)
		decided[v] = statistic(v ? XDPATH_V_TX : XDPATH_V_DROP);
	print_message("# %u swaps, %llu packets dropped, %llu sent back\n", swaps,
		      (unsigned long long)decided[0], (unsigned long long)decided[1]);
	assert_int_equal(load_of[0].mixed + load_of[1].mixed, 0);
	assert_int_equal(statistic(XDPATH_V_PASS) + statistic(XDPATH_V_KEPT), 0);
	assert_int_equal(statistic(XDPATH_V_COPIED) + statistic(XDPATH_V_UNCOPIED), decided[0]);
	assert_int_equal(decided[0] + decided[1], load_of[0].packets + load_of[1].packets);
	assert_true(decided[0] > 1000 && decided[1] > 1000);
	xdpath_rules_clear(&set_of[0]);
	xdpath_rules_clear(&set_of[1]);
}

/* ---- filters ---- */

static uint32_t run_id(uint32_t id, const struct frame *f)
{
	int fd = bpf_prog_get_fd_by_id(id);
	uint32_t action;

	assert_true(fd >= 0);
	action = run_prog(fd, f, 1);
	close(fd);
	return action;
}

static void put_rules(uint32_t *id)
{
	int err = xdpath_steer_put((int)if_nametoindex("xdpath0"), id, &rules, &diag);

	if (err)
		print_message("%s\n", diag.text);
	assert_int_equal(err, 0);
}

/* Filters bring a program of their own, which takes over with its rules; other rules do not. */
static void test_filters(void **state)
{
	struct xdpath_prog_opts o = XDPATH_OPTS_INIT(struct xdpath_prog_opts);
	struct xdpath_port port = {.name = "xdpath0"};
	struct xdpath_prog *g;
	uint32_t id, first;
	struct frame f;
	uint64_t bytes;

	(void)state;
	need_kernel();
	assert_int_equal(system("ip link add xdpath0 type veth peer name xdpath1"), 0);
	port.ifindex = (int)if_nametoindex(port.name);
	o.attach = XDPATH_ATTACH_NATIVE;
	o.diag = &diag;
	assert_int_equal(xdpath_prog_open(&g, &port, &o), 0);
	id = first = xdpath_prog_id(g);
	add("proto udp dport 60 action tx");			      /* 1 */
	add("filter \"udp port 53 and host 10.77.0.1\" action drop"); /* 2 */
	add("prio 50 filter \"greater 100\" action mirror 64");	      /* 3 */
	add("prio 60 filter \"udp[2:2] == 60\" action pass");	      /* 4, before 1 */
	assert_int_equal(xdpath_steer_set(id, &rules, &diag), -ENOEXEC);
	put_rules(&id);
	assert_int_not_equal(id, first);
	first = id;
	prog_id = id;
	udp(&f, 53, 10);
	assert_int_equal(run_id(id, &f), XDP_DROP);
	udp(&f, 60, 10);
	assert_int_equal(run_id(id, &f), XDP_PASS);
	udp(&f, 60, 90);
	assert_int_equal(run_id(id, &f), XDP_PASS);
	udp(&f, 53, 90);
	assert_int_equal(run_id(id, &f), XDP_DROP);
	assert_int_equal(counted(1, &bytes), 0);
	assert_int_equal(counted(2, &bytes), 2);
	assert_int_equal(counted(3, &bytes), 2);
	assert_int_equal(counted(4, &bytes), 2);
	/* The same filters: the same program. */
	add("proto udp dport 61 action tx"); /* 5 */
	put_rules(&id);
	assert_int_equal(id, first);
	udp(&f, 61, 10);
	assert_int_equal(run_id(id, &f), XDP_TX);
	assert_int_equal(counted(2, &bytes), 2);
	/* One less: another program, and 1 has its turn. */
	assert_int_equal(xdpath_rules_del(&rules, 4), 0);
	put_rules(&id);
	assert_int_not_equal(id, first);
	prog_id = id;
	udp(&f, 60, 10);
	assert_int_equal(run_id(id, &f), XDP_TX);
	assert_int_equal(counted(5, &bytes), 1);
	xdpath_prog_close(g);
	assert_int_equal(system("ip link del xdpath0"), 0);
}

#define own_program(t) cmocka_unit_test_setup_teardown(t, load, unload)

int main(void)
{
	const struct CMUnitTest tests[] = {
		own_program(test_read_back),	own_program(test_no_program),
		own_program(test_counters),	own_program(test_limits),
		own_program(test_ten_thousand), own_program(test_mirror),
		own_program(test_mirror_full),	own_program(test_swap_is_atomic),
		own_program(test_filters),
	};

	return cmocka_run_group_tests_name("steer_rules", tests, set_up, NULL);
}
