/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The rule engine's verdict, by BPF_PROG_TEST_RUN, against the reference in plain C (rule_match.h):
 * random sets of rules, random, broken and cut frames, captures that are at hand. What a packet's
 * rule was is told by the return value and by the rules' own counters, which must come out exact.
 * Needs root; works in a network namespace of its own. LONG=1: a million packets.
 */
#include <errno.h>
#include <glob.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <xdpath/shared.h>
#include <xdpath/steer.h>
#include <xdpath/uapi.h>

#include "flows.h"
#include "sandbox.h"
#include "../../bpf/set.h"
#include "rule_match.h"
#include "steer.skel.h"

static struct steer_bpf *skel;
static uint32_t prog_id;
static int prog_fd, xsk = -1;
static bool long_run, in_slot;
static struct xdpath_diag diag;

static int set_up(void **state)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info), zero = 0;

	(void)state;
	long_run = getenv("LONG") && getenv("LONG")[0];
	if (!sandbox())
		return 0;
	skel = steer_bpf__open_and_load();
	if (!skel && errno == EPERM) {
		missing = "loading BPF programs is not permitted here";
		return 0;
	}
	if (!skel)
		return -1;
	prog_fd = bpf_program__fd(skel->progs.xdpath_steer);
	if (bpf_obj_get_info_by_fd(prog_fd, &info, &len))
		return -1;
	prog_id = info.id;
	/* Some kernels want it bound: then the action tells no more than `pass`, the counters do.
	 */
	xsk = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	in_slot = xsk >= 0 &&
		  !bpf_map_update_elem(bpf_map__fd(skel->maps.xsks_map), &zero, &xsk, BPF_ANY);
	if (!in_slot)
		print_message("# no unbound socket in a slot: %s\n", strerror(errno));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	steer_bpf__destroy(skel);
	if (xsk >= 0)
		close(xsk);
	return 0;
}

static uint32_t run(const void *frame, uint32_t len)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = len, .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(prog_fd, &o), 0);
	return o.retval;
}

static uint32_t next_id = 1; /* a rule of the same id keeps its counters */

/* A set in force, and what it should count. */
struct trial {
	struct xdpath_rules rules;
	uint32_t order[XDPATH_RULES_MAX];
	uint64_t packets[XDPATH_RULES_MAX], bytes[XDPATH_RULES_MAX];
	uint64_t decided, total;
};

static void begin(struct trial *t)
{
	int err;

	xdpath_rules_order(&t->rules, t->order);
	memset(t->packets, 0, sizeof(t->packets));
	memset(t->bytes, 0, sizeof(t->bytes));
	err = xdpath_steer_set(prog_id, &t->rules, &diag);
	if (err)
		print_message("%s\n", diag.text);
	assert_int_equal(err, 0);
}

static void told_wrong(const struct trial *t, const uint8_t *frame, uint32_t len, uint32_t rule,
		       uint32_t got)
{
	char text[XDPATH_RULE_TEXT_MAX] = "no rule";

	if (rule != UINT32_MAX)
		xdpath_rule_format(&t->rules.rule[rule], text, sizeof(text));
	print_message("%s: returned %u for", text, got);
	for (uint32_t i = 0; i < len; i++)
		print_message(" %02x", frame[i]);
	print_message("\n");
}

static void judge(struct trial *t, const uint8_t *frame, uint32_t len)
{
	const uint32_t action[] = {in_slot ? XDP_REDIRECT : XDP_PASS, XDP_PASS, XDP_DROP, XDP_TX,
				   XDP_REDIRECT};
	const struct xdpath_rule *mirror[SET_MIRRORS];
	uint32_t n, rule = rule_match(&t->rules, t->order, frame, len, 0, mirror, &n);
	uint32_t want = rule == UINT32_MAX ? XDP_PASS : action[t->rules.rule[rule].action];
	uint32_t got = run(frame, len);

	if (got != want)
		told_wrong(t, frame, len, rule, got);
	assert_int_equal(got, want);
	for (uint32_t i = 0; i < n; i++) {
		t->packets[mirror[i] - t->rules.rule]++;
		t->bytes[mirror[i] - t->rules.rule] += len;
	}
	t->total++;
	if (rule == UINT32_MAX)
		return;
	t->decided++;
	t->packets[rule]++;
	t->bytes[rule] += len;
}

static void end(struct trial *t)
{
	struct xdpath_rule_count *count;
	struct xdpath_rules got;

	assert_int_equal(xdpath_steer_get(prog_id, &got, &count), 0);
	assert_int_equal(got.n, t->rules.n);
	for (uint32_t i = 0; i < got.n; i++) {
		assert_int_equal(got.rule[i].id, t->rules.rule[i].id);
		if (count[i].packets != t->packets[i]) {
			char text[XDPATH_RULE_TEXT_MAX];

			xdpath_rule_format(&got.rule[i], text, sizeof(text));
			print_message("rule %u: %s\n", i, text);
		}
		assert_int_equal(count[i].packets, t->packets[i]);
		assert_int_equal(count[i].bytes, t->bytes[i]);
	}
	free(count);
	next_id = got.next_id;
	xdpath_rules_clear(&got);
	xdpath_rules_clear(&t->rules);
}

/* n rules of at most `kinds` kinds; duplicates are left out. */
static void random_rules(struct trial *t, uint32_t n, uint32_t kinds, const struct flow_pool *pool,
			 uint64_t *seed)
{
	uint64_t kind[64];
	uint32_t mirrors = 0;

	t->rules.next_id = next_id;
	for (uint32_t i = 0; i < kinds; i++)
		kind[i] = ((uint64_t)frame_random(seed) << 32 | frame_random(seed)) | 1;
	for (uint32_t i = 0; i < n; i++) {
		struct xdpath_rule r;

		flow_rule(&r, pool, kind[frame_random(seed) % kinds], seed);
		if (mirrors < SET_MIRRORS && frame_random(seed) % 6 == 0) {
			r.action = XDPATH_RA_MIRROR;
			r.snap = 64;
		}
		if (!xdpath_rules_add(&t->rules, &r, NULL) && t->rules.rule[t->rules.n - 1].snap)
			mirrors++;
	}
}

/* Sets of all sizes; with the few kinds of a set its shapes stay below the limit. */
static void test_random(void **state)
{
	static const struct {
		struct flow_pool pool;
		uint32_t rules, kinds;
	} size[] = {
		{{3, 2, false}, 4, 4},	      {{4, 4, false}, 20, 3},
		{{8, 8, false}, 60, 10},      {{8, 8, false}, 60, 30},
		{{40, 40, false}, 600, 6},    {{200, 100, false}, 1500, 12},
		{{100, 1000, true}, 1000, 3},
	};
	uint32_t sets = long_run ? 1000 : 98, packets = 1000;
	struct trial *t = calloc(1, sizeof(*t));
	uint64_t seed = 88172645463325252ULL;
	uint64_t decided = 0, total = 0;

	(void)state;
	need_kernel();
	assert_non_null(t);
	for (uint32_t i = 0; i < sets; i++) {
		uint32_t k = i % 7;
		struct frame f;

		random_rules(t, size[k].rules, size[k].kinds, &size[k].pool, &seed);
		t->decided = t->total = 0;
		begin(t);
		for (uint32_t j = 0; j < packets; j++) {
			flow_frame(&f, &size[k].pool, &seed);
			judge(t, f.b, f.len);
		}
		decided += t->decided;
		total += t->total;
		end(t);
	}
	print_message("# %llu packets, a rule decided about %llu\n", (unsigned long long)total,
		      (unsigned long long)decided);
	assert_true(decided > total / 20 && decided < total);
	free(t);
}

/* Frames with all there is in them, cut at every byte. */
static void test_cut_everywhere(void **state)
{
	struct flow_pool pool = {.addresses = 3, .ports = 2};
	struct trial *t = calloc(1, sizeof(*t));
	uint64_t seed = 2463534242ULL;

	(void)state;
	need_kernel();
	assert_non_null(t);
	for (uint32_t set = 0; set < (long_run ? 20 : 4); set++) {
		random_rules(t, 40, 12, &pool, &seed);
		begin(t);
		for (uint32_t i = 0; i < 40; i++) {
			struct frame f;

			do
				flow_frame(&f, &pool, &seed);
			while (f.len < 60);
			for (; f.len >= 14; f.len--)
				judge(t, f.b, f.len);
		}
		end(t);
	}
	free(t);
}

/* ---- captures ---- */

static uint32_t le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Each Ethernet frame of a capture file of the old format. */
static void judge_capture(struct trial *t, const char *path)
{
	static uint8_t frame[9000];
	uint8_t head[24];
	FILE *f = fopen(path, "re");

	if (!f)
		return;
	if (fread(head, 1, 24, f) == 24 && le32(head) == 0xa1b2c3d4 && le32(head + 20) == 1)
		while (fread(head, 1, 16, f) == 16) {
			uint32_t len = le32(head + 8);

			if (len > sizeof(frame) || fread(frame, 1, len, f) != len)
				break;
			if (len >= 14)
				judge(t, frame, len);
		}
	fclose(f);
}

static void test_captures(void **state)
{
	static const char *const where[] = {
		"/usr/share/gocode/src/github.com/google/gopacket/*/*.pcap",
		"/usr/share/gocode/src/github.com/google/gopacket/*/*/*.pcap",
		"/usr/share/sip-tester/*/*.pcap",
		"/usr/share/doc/sip-tester/*/*/*.pcap",
		"/usr/share/sipp/pcap/*.pcap",
		"/usr/share/doc/python3-dpkt/examples/*.pcap",
	};
	struct trial *t = calloc(1, sizeof(*t));
	glob_t g = {0};
	static const char *const text[] = {
		"proto udp action drop",
		"proto tcp tcp-flags syn action tx",
		"proto tcp dport 0-1023 action drop",
		"proto icmp action tx",
		"dst 10.0.0.0/8 action drop",
		"src 192.168.0.0/16 proto tcp action tx",
		"ether 0x0806 action drop",
		"prio 90 dport 53 action mirror 64",
	};

	(void)state;
	need_kernel();
	assert_non_null(t);
	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++)
		glob(where[i], i ? GLOB_APPEND : 0, NULL, &g);
	t->rules.next_id = next_id;
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		struct xdpath_rule r;
		int err = xdpath_rule_parse(&r, text[i], &diag);

		if (err)
			print_message("%s\n", diag.text);
		assert_int_equal(err, 0);
		assert_int_equal(xdpath_rules_add(&t->rules, &r, &diag), 0);
	}
	begin(t);
	for (size_t i = 0; i < g.gl_pathc; i++)
		judge_capture(t, g.gl_pathv[i]);
	print_message("# %zu capture files, %llu frames, a rule decided about %llu\n", g.gl_pathc,
		      (unsigned long long)t->total, (unsigned long long)t->decided);
	globfree(&g);
	if (!t->total) {
		xdpath_rules_clear(&t->rules);
		free(t);
		print_message("skipped: no captures at hand\n");
		skip();
	}
	assert_true(t->decided > 0);
	end(t);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_cut_everywhere),
		cmocka_unit_test(test_captures),
	};

	return cmocka_run_group_tests_name("ruleset", tests, set_up, tear_down);
}
