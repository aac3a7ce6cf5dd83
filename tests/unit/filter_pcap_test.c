/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Hundreds of expressions give libpcap's own verdict in the kernel: on every packet of the captures
 * that Debian packages bring, where they are installed, and on frames made here. Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <linux/bpf.h>

#define bpf_insn pcap_bpf_insn
#include <pcap/pcap.h>
#undef bpf_insn

#include "filter_run.h"

static const char *const expr[] = {
#include "filter_exprs.h"
};

#define EXPRS	 (sizeof(expr) / sizeof(expr[0]))
#define PROGRAMS ((EXPRS + FILTERS_MAX - 1) / FILTERS_MAX)

static int program[PROGRAMS];
static struct bpf_program oracle[EXPRS];
static uint32_t matched[EXPRS], packets, mismatches;

/* Once: every expression in both forms. */
static void set_up(void)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 262144);
	struct xdpath_code code[FILTERS_MAX];
	struct xdpath_diag diag;

	need_kernel();
	assert_non_null(pcap);
	for (uint32_t i = 0; i < EXPRS && !program[PROGRAMS - 1]; i++) {
		uint32_t in = i % FILTERS_MAX;

		if (pcap_compile(pcap, &oracle[i], expr[i], 1, PCAP_NETMASK_UNKNOWN))
			fail_msg("%s: %s", expr[i], pcap_geterr(pcap));
		if (xdpath_filter_compile(&expr[i], 1, &code[in], &diag))
			fail_msg("%s", diag.text);
		if (in < FILTERS_MAX - 1 && i < EXPRS - 1)
			continue;
		program[i / FILTERS_MAX] = load_filters(code, in + 1, 0);
		assert_true(program[i / FILTERS_MAX] > 0);
		for (uint32_t c = 0; c <= in; c++)
			xdpath_code_free(&code[c]);
	}
	pcap_close(pcap);
}

static void judge(const uint8_t *data, uint32_t len)
{
	struct pcap_pkthdr h = {.caplen = len, .len = len};

	packets++;
	for (uint32_t p = 0; p < PROGRAMS; p++) {
		uint32_t got = run_filters(program[p], data, len);

		for (uint32_t i = p * FILTERS_MAX; i < EXPRS && i < (p + 1) * FILTERS_MAX; i++) {
			bool want = pcap_offline_filter(&oracle[i], &h, data) != 0;

			matched[i] += want;
			if (want == (got >> i % FILTERS_MAX & 1) || mismatches++ > 20)
				continue;
			print_message("\"%s\" on a frame of %u bytes: libpcap says %d\n", expr[i],
				      len, want);
			for (uint32_t b = 0; b < len && b < 80; b++)
				print_message("%02x%s", data[b], b % 16 == 15 ? "\n" : " ");
			print_message("\n");
		}
	}
}

/* Frames of all kinds, many longer than what a packet pointer reaches. */
static void test_made_frames(void **state)
{
	static struct frame f;
	uint32_t rounds = getenv("LONG") && *getenv("LONG") ? 500000 : 30000, never = 0;

	(void)state;
	set_up();
	for (uint32_t i = 0; i < rounds; i++) {
		some_frame(&f);
		judge(f.b, f.len);
	}
	assert_int_equal(mismatches, 0);
	for (uint32_t i = 0; i < EXPRS; i++) {
		if (matched[i] && matched[i] < rounds)
			continue;
		print_message("\"%s\": the same verdict for all frames\n", expr[i]);
		never++;
	}
	/* Those that nothing can match, or everything does. */
	assert_true(never < EXPRS / 20);
}

/* Around each boundary: the first 100 bytes, the first fragment's end, the largest that fits. */
static void test_every_length(void **state)
{
	static struct frame f;

	(void)state;
	set_up();
	for (uint32_t len = 14; len < 9000;
	     len += len < 100 || (len > 3480 && len < 3540) ? 1 : 97) {
		frame_v4(&f, len & 1 ? 0x8100 : 0, 0, len & 2 ? 17 : 6);
		put_fill(&f, 9000);
		judge(f.b, len);
	}
	assert_int_equal(mismatches, 0);
}

/* ---- captures -----------------------------------------------------------------------------------
 */

/* Where Debian's golang-github-google-gopacket-dev, sip-tester, python3-dpkt and pathspider have
 * them. */
static const char *const where[] = {
	"/usr/share/gocode/src/github.com/google/gopacket",
	"/usr/share/sip-tester",
	"/usr/share/doc/python3-dpkt/examples",
	"/usr/lib/python3/dist-packages/pathspider/tests",
};

static uint32_t captures, not_ethernet, not_read, too_short;

static int one_capture(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *dot = strrchr(path, '.');
	char why[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *h;
	const u_char *data;
	pcap_t *pcap;
	uint32_t n;
	int rc;

	(void)st, (void)ftw;
	if (type != FTW_F || !dot || (strcmp(dot, ".pcap") != 0 && strcmp(dot, ".pcapng") != 0))
		return 0;
	pcap = pcap_open_offline(path, why);
	if (!pcap) {
		not_read++;
		return 0;
	}
	if (pcap_datalink(pcap) != DLT_EN10MB) {
		not_ethernet++;
		pcap_close(pcap);
		return 0;
	}
	captures++;
	for (n = 0; (rc = pcap_next_ex(pcap, &h, &data)) == 1; n++) {
		if (h->caplen < 14)
			too_short++; /* XDP does not see such */
		else
			judge(data, h->caplen);
	}
	pcap_close(pcap);
	return 0;
}

static void test_captures(void **state)
{
	uint32_t before = packets;

	(void)state;
	set_up();
	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++)
		nftw(where[i], one_capture, 16, FTW_PHYS);
	if (!captures) {
		print_message("skipped: no captures installed\n");
		skip();
	}
	print_message(
		"%zu expressions, %u packets of %u captures; left out: %u captures of another "
		"link type, %u that libpcap does not read, %u packets below 14 bytes\n",
		EXPRS, packets - before, captures, not_ethernet, not_read, too_short);
	assert_int_equal(mismatches, 0);
	assert_true(packets > before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_frames),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_captures),
	};

	_Static_assert(EXPRS >= 200, "as promised");
	return cmocka_run_group_tests_name("filter_pcap", tests, NULL, NULL);
}
