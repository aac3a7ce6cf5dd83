/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * user/lib/filter_compile.c and filter_translate.c: bad expressions are named, the first that
 * matches counts, and random classic programs mean the same as to libpcap's interpreter. What runs
 * in the kernel needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/bpf.h>
#include <linux/filter.h>

#define bpf_insn pcap_bpf_insn
#include <pcap/pcap.h>
#undef bpf_insn

#include "filter_run.h"

static struct xdpath_diag diag;

static void test_bad_expressions(void **state)
{
	static const struct {
		const char *expr, *why;
	} bad[] = {
		{"garbage here", "filter \"garbage here\": "},
		{"udp port", "syntax error"},
		{"port 99999", "illegal port number 99999 > 65535"},
		{"ip broadcast", "netmask not known"},
		{"ip protochain 6", "'protochain' is a loop"},
		{"ip6 protochain 17", "'protochain' is a loop"},
		{"inbound", "sees the frame"},
		{"udp and outbound", "sees the frame"},
		{"ifname eth0", "filter \"ifname eth0\": "},
		{"ip[0] << 32 = 1", "shift by more than 31 bits"},
		{"1 = 2", "expression rejects all packets"},
		{"ip[0] = 1/0", "division by zero"},
		{"tcp and (udp", "syntax error"},
		{"tcp\nor\x01", "filter \"tcp?or?\": "},
		{"wlan type mgt", "filter \"wlan type mgt\": "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		diag = (struct xdpath_diag){0};
		assert_int_equal(xdpath_filter_check(bad[i].expr, &diag), -EINVAL);
		assert_int_equal(diag.reason, XDPATH_R_OPTIONS);
		says(&diag, bad[i].why);
	}
	assert_int_equal(xdpath_filter_check("udp port 53 and host 10.0.0.1", NULL), 0);
	assert_int_equal(xdpath_filter_check("", NULL), 0);
}

/* The reason is still told of an expression that is longer than the diagnosis. */
static void test_long_bad_expression(void **state)
{
	char expr[1000];

	(void)state;
	memset(expr, '(', sizeof(expr));
	expr[sizeof(expr) - 1] = 0;
	assert_int_equal(xdpath_filter_check(expr, &diag), -EINVAL);
	says(&diag, "(((...\": ");
	says(&diag, "; see pcap-filter(7)");
}

/* All in one function; the first that matches from a given one on; a bad one is named wherever it
 * stands. */
static void test_several(void **state)
{
	static const char *const expr[] = {"arp or ip6", "tcp", "udp dst port 53", "udp", "ip",
					   "ip",	 ""};
	static const char *const bad[] = {"", "udp", "tpc"};
	static const struct {
		void (*make)(struct frame *, unsigned int, unsigned int, uint8_t);
		uint8_t proto, port;
		uint32_t from, want;
	} row[] = {{frame_v4, 17, 0, 0, 4},  {frame_v4, 6, 0, 0, 2},  {frame_v4, 6, 0, 1, 2},
		   {frame_v4, 6, 0, 2, 5},   {frame_v4, 6, 0, 5, 6},  {frame_v4, 6, 0, 6, 7},
		   {frame_v4, 6, 0, 7, 0},   {frame_v4, 6, 0, -1, 0}, {frame_v4, 17, 53, 0, 3},
		   {frame_v4, 17, 53, 3, 4}, {frame_v6, 17, 0, 0, 1}, {frame_v6, 17, 0, 1, 4},
		   {frame_v6, 58, 0, 1, 7}};
	struct xdpath_code code;
	struct frame frame;

	(void)state;
	assert_int_equal(xdpath_filter_compile(bad, 3, &code, &diag), -EINVAL);
	says(&diag, "\"tpc\"");
	xdpath_code_free(&code);

	need_kernel();
	assert_int_equal(xdpath_filter_compile(expr, 7, &code, &diag), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		int fd = load_filters(&code, 1, row[i].from);

		assert_true(fd >= 0);
		row[i].make(&frame, 0, 0, row[i].proto);
		frame.b[36] = 0;
		frame.b[37] = row[i].port;
		assert_int_equal(run_filters(fd, frame.b, frame.len), row[i].want);
		close(fd);
	}
	xdpath_code_free(&code);
}

/* What one filter brings by the helper is of no meaning to the next. */
static void test_several_far(void **state)
{
	static const char *const expr[] = {"ether[5000:4] = 7 and ip[0] = 0x45", "ether[5001] > 0",
					   "ip"};
	struct xdpath_code code;
	struct frame frame;

	(void)state;
	need_kernel();
	frame_v4(&frame, 0, 0, 17);
	memset(frame.b + frame.len, 0xff, 6000);
	assert_int_equal(xdpath_filter_compile(expr, 3, &code, &diag), 0);
	for (uint32_t from = 0; from < 4; from++) {
		static const uint32_t want[] = {2, 2, 3, 0};
		int fd = load_filters(&code, 1, from);

		assert_true(fd >= 0);
		assert_int_equal(run_filters(fd, frame.b, 6000), want[from]);
		close(fd);
	}
	xdpath_code_free(&code);
}

/* The verifier refuses code that is not reached. */
static void test_reached_only(void **state)
{
	static const struct {
		const char *expr[3];
		uint32_t n, want;
	} row[] = {
		{{NULL}, 0, 0},
		{{""}, 1, 1},
		{{"tcp", "", "udp"}, 3, 2},
		{{"ether[100000] = 1", "udp"}, 2, 2},
		{{"ether[70000] = 1"}, 1, 0},
		{{"less 10", "greater 10"}, 2, 2},
		{{"ip[0] / ip[1] = 1"}, 1, 0},
		{{"1 = 1"}, 1, 1},
	};
	struct xdpath_code code;
	struct frame frame;

	(void)state;
	need_kernel();
	frame_v4(&frame, 0, 0, 17);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		int fd;

		assert_int_equal(xdpath_filter_compile(row[i].expr, row[i].n, &code, &diag), 0);
		fd = load_filters(&code, 1, 0);
		assert_true(fd >= 0);
		assert_int_equal(run_filters(fd, frame.b, frame.len), row[i].want);
		close(fd);
		xdpath_code_free(&code);
	}
}

/* ---- random programs ----------------------------------------------------------------------------
 */

#define CLASSIC_LONG 48

#define ANY(code, k) ((struct sock_filter)BPF_STMT(code, k))
#define EITHER(a, b) (uint16_t)(dice(2) ? (a) : (b))

static struct sock_filter random_alu(uint32_t k)
{
	static const uint16_t alu[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_MOD, BPF_AND,
				       BPF_OR,	BPF_XOR, BPF_LSH, BPF_RSH, BPF_NEG};
	uint16_t op = PICK(alu);

	if (op == BPF_NEG)
		return ANY(BPF_ALU | BPF_NEG, 0);
	if (op == BPF_LSH || op == BPF_RSH)
		k &= 31;
	if ((op == BPF_DIV || op == BPF_MOD) && !k)
		k = 3;
	return ANY((uint16_t)(BPF_ALU | op | EITHER(BPF_X, BPF_K)), k);
}

/* most: the farthest that a jump may go */
static struct sock_filter random_jump(uint32_t k, uint32_t most)
{
	static const uint16_t test[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
	uint32_t n = most + 1 < 6 ? most + 1 : 6;

	if (!dice(4))
		return ANY(BPF_JMP | BPF_JA, dice(n));
	return (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | PICK(test) | EITHER(BPF_X, BPF_K)),
					    k, (uint8_t)dice(n), (uint8_t)dice(n));
}

static struct sock_filter random_insn(uint32_t most)
{
	static const uint16_t size[] = {BPF_B, BPF_H, BPF_W};
	static const uint32_t odd[] = {0,    1,	   14,	 20,   40,    64,	  1500,	      3520,
				       3521, 3522, 4096, 9000, 65535, 0x7fffffff, 0x80000000, -1U};
	uint32_t k = dice(3) ? dice(80) : PICK(odd);

	switch (dice(12)) {
	case 0:
	case 1:
	case 2: return ANY((uint16_t)(BPF_LD | BPF_ABS | PICK(size)), k);
	case 3: return ANY((uint16_t)(BPF_LD | BPF_IND | PICK(size)), k);
	case 4: return ANY(BPF_LDX | BPF_MSH | BPF_B, k);
	case 5: return ANY(EITHER(BPF_LD, BPF_LDX) | EITHER(BPF_IMM, BPF_LEN), k);
	case 6: return ANY(EITHER(BPF_LD, BPF_LDX) | BPF_MEM, 7 * dice(3));
	case 7: return ANY(EITHER(BPF_ST, BPF_STX), 7 * dice(3));
	case 8: return ANY(BPF_MISC | EITHER(BPF_TAX, BPF_TXA), 0);
	case 9: return random_alu(k);
	case 10: return random_jump(k, most);
	default: return dice(3) ? random_alu(k) : ANY(BPF_RET | BPF_A, 0);
	}
}

/* Valid, and defined in libpcap: M[] is written first, no division by a constant 0, no shift by a
 * constant of 32 or more. */
static uint32_t random_classic(struct sock_filter *f)
{
	uint32_t n = 0, end = 8 + dice(CLASSIC_LONG - 8);

	for (uint32_t slot = 0; slot < 3; slot++)
		f[n++] = ANY(slot & 1 ? BPF_STX : BPF_ST, slot * 7);
	for (; n < end - 1; n++)
		f[n] = random_insn(end - n - 2);
	f[n++] = ANY(EITHER(BPF_RET | BPF_A, BPF_RET | BPF_K), dice(2));
	return n;
}

static void print_classic(const struct sock_filter *f, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct pcap_bpf_insn in = {f[i].code, f[i].jt, f[i].jf, f[i].k};

		print_message("%s\n", bpf_image(&in, (int)i));
	}
}

/* Random programs, FILTERS_MAX at once in the kernel, on random frames. */
static void test_random_programs(void **state)
{
	static struct sock_filter f[FILTERS_MAX][CLASSIC_LONG + 3];
	uint32_t n[FILTERS_MAX], rounds = getenv("LONG") && *getenv("LONG") ? 2000 : 60, hits = 0;
	struct frame frame;

	(void)state;
	need_kernel();
	for (uint32_t round = 0; round < rounds; round++) {
		struct xdpath_code code[FILTERS_MAX] = {0};
		int fd;

		for (uint32_t i = 0; i < FILTERS_MAX; i++) {
			n[i] = random_classic(f[i]);
			assert_true(bpf_validate((const void *)f[i], (int)n[i]));
			xdpath_code_begin(&code[i]);
			assert_int_equal(xdpath_code_add(&code[i], f[i], n[i], 0), 0);
			assert_int_equal(xdpath_code_end(&code[i]), 0);
		}
		fd = load_filters(code, FILTERS_MAX, 0);
		if (fd < 0)
			print_message("round %u: %s\n", round, strerror(-fd));
		assert_true(fd >= 0);
		for (int p = 0; p < 60; p++) {
			uint32_t got;

			some_frame(&frame);
			got = run_filters(fd, frame.b, frame.len);
			for (uint32_t i = 0; i < FILTERS_MAX; i++) {
				bool want = bpf_filter((const void *)f[i], frame.b, frame.len,
						       frame.len) != 0;

				hits += want;
				if (want == (got >> i & 1))
					continue;
				print_classic(f[i], n[i]);
				fail_msg("%u bytes: libpcap %d, xdpath %d", frame.len, want, !want);
			}
		}
		close(fd);
		for (uint32_t i = 0; i < FILTERS_MAX; i++)
			xdpath_code_free(&code[i]);
	}
	/* Not all of them fail at their first load. */
	assert_true(hits > rounds * 60 * FILTERS_MAX / 10);
}

static void test_bad_classic(void **state)
{
	static const struct {
		struct sock_filter f[2];
		uint32_t n;
		int err;
	} row[] = {
		{{{0, 0, 0, 0}}, 0, -EINVAL},
		{{{BPF_LD | BPF_IMM, 0, 0, 0}}, 1, -EINVAL}, /* runs off its end */
		{{{BPF_JMP | BPF_JA, 0, 0, 1}, {BPF_RET, 0, 0, 0}}, 2, -EINVAL},
		{{{BPF_JMP | BPF_JA, 0, 0, -1U}, {BPF_RET, 0, 0, 0}}, 2, -ELOOP},
		{{{BPF_JMP | BPF_JEQ, 0, 9, 1}, {BPF_RET, 0, 0, 0}}, 2, -EINVAL},
		{{{BPF_ST, 0, 0, 16}, {BPF_RET, 0, 0, 0}}, 2, -EINVAL},
		{{{BPF_LD | BPF_MEM, 0, 0, 16}, {BPF_RET, 0, 0, 0}}, 2, -EINVAL},
		{{{BPF_LDX | BPF_MSH | BPF_W, 0, 0, 1}, {BPF_RET, 0, 0, 0}}, 2, -EINVAL},
		{{{BPF_LD | BPF_ABS | 0x18, 0, 0, 1}, {BPF_RET, 0, 0, 0}}, 2, -EINVAL},
		{{{BPF_ALU | 0xf0, 0, 0, 1}, {BPF_RET, 0, 0, 0}}, 2, -EINVAL},
		{{{BPF_ALU | BPF_LSH, 0, 0, 32}, {BPF_RET, 0, 0, 0}}, 2, -EINVAL},
		{{{BPF_JMP | 0x50, 0, 0, 1}, {BPF_RET, 0, 0, 0}}, 2, -EINVAL},
		{{{BPF_MISC | 0x20, 0, 0, 1}, {BPF_RET, 0, 0, 0}}, 2, -EINVAL},
		{{{BPF_RET | BPF_X, 0, 0, 1}}, 1, -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct xdpath_code code = {0};

		assert_int_equal(xdpath_code_add(&code, row[i].f, row[i].n, 0), row[i].err);
		xdpath_code_free(&code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_expressions), cmocka_unit_test(test_long_bad_expression),
		cmocka_unit_test(test_bad_classic),	cmocka_unit_test(test_several),
		cmocka_unit_test(test_several_far),	cmocka_unit_test(test_reached_only),
		cmocka_unit_test(test_random_programs),
	};

	return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
