/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * For filter_test.c and filter_pcap_test.c: filters run by the kernel, each as a function of its
 * own as in the steering program, and random frames of all kinds for them.
 */
#ifndef XDPATH_TEST_FILTER_RUN_H
#define XDPATH_TEST_FILTER_RUN_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "filter.h"
#include "frames.h"

#define FILTERS_MAX 32 /* in one program: a bit of its result each */

static inline struct bpf_insn insn(int code, int dst, int src, int off, int32_t imm)
{
	return (struct bpf_insn){.code = (uint8_t)code,
				 .dst_reg = (uint8_t)(dst & 15),
				 .src_reg = (uint8_t)(src & 15),
				 .off = (int16_t)off,
				 .imm = imm};
}

/* A program that calls the n functions with `from` and returns a bit for each whose result is not
 * 0; of one function its result as it is. Its descriptor, or -errno. */
static inline int load_filters(const struct xdpath_code *code, uint32_t n, uint32_t from)
{
	LIBBPF_OPTS(bpf_prog_load_opts, o, .prog_flags = BPF_F_XDP_HAS_FRAGS);
	uint32_t room = 6 * n + 5, at = 0, first;
	struct bpf_insn *prog;
	int fd;

	for (uint32_t i = 0; i < n; i++)
		room += code[i].n + 1;
	prog = calloc(room, sizeof(*prog));
	if (!prog)
		return -ENOMEM;
	/* r8 is 0, but the verifier does not know: else it would walk on once for each set of bits.
	 */
	prog[at++] =
		insn(BPF_LDX | BPF_MEM | BPF_W, 8, 1, offsetof(struct xdp_md, rx_queue_index), 0);
	prog[at++] = insn(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0);
	prog[at++] = insn(BPF_ALU64 | BPF_MOV | BPF_X, 7, 8, 0, 0);
	first = 6 * n + 5;
	for (uint32_t i = 0; i < n; i++) {
		prog[at++] = insn(BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0);
		prog[at++] = insn(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, (int32_t)from);
		prog[at] = insn(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, (int)(first - at - 1));
		at++;
		first += code[i].n + 1;
		prog[at++] = insn(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1, 0);
		if (n == 1)
			prog[at++] = insn(BPF_ALU | BPF_MOV | BPF_X, 7, 0, 0, 0);
		else
			prog[at++] = insn(BPF_ALU | BPF_OR | BPF_K, 7, 0, 0, (int32_t)(1U << i));
		prog[at++] = insn(BPF_ALU | BPF_XOR | BPF_X, 7, 8, 0, 0);
	}
	prog[at++] = insn(BPF_ALU64 | BPF_MOV | BPF_X, 0, 7, 0, 0);
	prog[at++] = insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	for (uint32_t i = 0; i < n; i++) {
		memcpy(prog + at, code[i].insn, code[i].n * sizeof(*prog));
		at += code[i].n;
		prog[at++] = insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	}
	fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "filters", "Dual BSD/GPL", prog, at, &o);
	free(prog);
	return fd;
}

/* The result for a frame of at least 14 bytes. */
static inline uint32_t run_filters(int fd, const void *data, uint32_t len)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = data, .data_size_in = len);

	if (bpf_prog_test_run_opts(fd, &o)) {
		fprintf(stderr, "test run of %u bytes: %s\n", len, strerror(errno));
		abort();
	}
	return o.retval;
}

/* Skips the test where no program can be run. */
static inline void need_kernel(void)
{
	struct xdpath_code none = {0};
	int fd = geteuid() ? -EPERM : load_filters(&none, 0, 0);

	if (fd == -EPERM) {
		print_message("skipped: needs root and the right to load BPF programs\n");
		skip();
	}
	close(fd);
}

static inline void says(const struct xdpath_diag *d, const char *words)
{
	if (!strstr(d->text, words))
		print_message("\"%s\" lacks \"%s\"\n", d->text, words);
	assert_non_null(strstr(d->text, words));
	assert_null(strchr(d->text, '\n'));
}

static uint64_t dice_state = 88172645463325252ULL;

static inline uint32_t dice(uint32_t n)
{
	dice_state ^= dice_state << 13;
	dice_state ^= dice_state >> 7;
	dice_state ^= dice_state << 17;
	return (uint32_t)(dice_state >> 20) % n;
}

#define PICK(a) ((a)[dice(sizeof(a) / sizeof((a)[0]))])

static inline void put8(struct frame *f, unsigned int v)
{
	f->b[f->len++] = (uint8_t)v;
}

static inline void put32(struct frame *f, uint32_t v)
{
	put16(f, v >> 16);
	put16(f, v & 0xffff);
}

static inline void put_random(struct frame *f, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		put8(f, dice(256));
}

static inline void put_some_port(struct frame *f)
{
	static const uint16_t port[] = {53, 53, 80, 443, 22, 67, 123, 4789, 6081, 1024, 5060};

	put16(f, dice(4) ? PICK(port) : dice(65536));
}

static inline void put_some_v4(struct frame *f)
{
	static const uint32_t address[] = {0x0a000001, 0x0a000002, 0x0a010203, 0xc0a80101,
					   0xe0000001, 0xffffffff, 0,	       0x7f000001};

	put32(f, dice(8) ? PICK(address) : dice(1U << 31));
}

static inline void put_some_v6(struct frame *f)
{
	static const uint32_t prefix[] = {0xfd770000, 0x20010db8, 0xfe800000, 0xff020000};

	put32(f, PICK(prefix));
	put32(f, 0);
	put32(f, 0);
	put32(f, dice(3));
}

static inline void put_some_upper(struct frame *f, uint8_t proto)
{
	static const uint8_t tcp_flags[] = {0x02, 0x12, 0x10, 0x18, 0x04};
	static const uint8_t icmp_type[] = {0, 3, 8, 11};

	switch (proto) {
	case 6:
		put_some_port(f);
		put_some_port(f);
		put_random(f, 8);
		put16(f, (5 + dice(4)) << 12 | (dice(2) ? PICK(tcp_flags) : dice(256)));
		put_random(f, 6 + 4 * dice(2));
		put(f, "GET /", 5);
		break;
	case 17:
	case 132:
		put_some_port(f);
		put_some_port(f);
		put16(f, dice(100));
		put_random(f, 10);
		break;
	case 1:
	case 58:
		put8(f, dice(2) ? PICK(icmp_type) : 128 + dice(10));
		put8(f, dice(4));
		put_random(f, 12);
		break;
	case 2:
		put8(f, 0x16);
		put_random(f, 7);
		break;
	default: put_random(f, dice(40));
	}
}

static inline uint8_t some_proto(void)
{
	static const uint8_t proto[] = {6,  6,	6,  17, 17, 17, 1,   58,  132, 47,
					50, 51, 89, 2,	4,  41, 112, 103, 9};

	return PICK(proto);
}

static inline void put_some_ipv4(struct frame *f, int depth);
static inline void put_some_ipv6(struct frame *f, int depth);

/* UDP to the port, Geneve, Ethernet, IPv4. */
static inline void put_some_geneve(struct frame *f, int depth)
{
	put16(f, 1024);
	put16(f, 6081);
	put32(f, 0);
	put16(f, 0);
	put16(f, 0x6558);
	put32(f, dice(2) << 8);
	put_random(f, 12);
	put16(f, 0x0800);
	put_some_ipv4(f, depth + 1);
}

/* What stands behind an IP header. */
static inline void put_some_inner(struct frame *f, uint8_t proto, int depth)
{
	if (proto == 47) {
		put16(f, 0);
		put16(f, dice(2) ? 0x0800 : 0x86dd);
	}
	if (depth < 2 && proto == 17 && !dice(8))
		put_some_geneve(f, depth);
	else if (depth < 2 && (proto == 4 || proto == 47))
		put_some_ipv4(f, depth + 1);
	else if (depth < 2 && proto == 41)
		put_some_ipv6(f, depth + 1);
	else
		put_some_upper(f, proto);
}

static inline void put_some_ipv4(struct frame *f, int depth)
{
	static const uint16_t fragment[] = {0, 0, 0, 0x4000, 0x4000, 0x2000, 0x2005, 0x0005};
	uint32_t words = dice(3) ? 5 : 5 + dice(11);
	uint8_t proto = some_proto();

	put8(f, (dice(16) ? 0x40U : dice(16) << 4) | (dice(16) ? words : dice(16)));
	put8(f, dice(256));
	put16(f, 20 + dice(1500));
	put16(f, dice(65536));
	put16(f, PICK(fragment));
	put8(f, dice(256));
	put8(f, proto);
	put16(f, 0);
	put_some_v4(f);
	put_some_v4(f);
	put_random(f, 4 * (words - 5));
	put_some_inner(f, proto, depth);
}

static inline void put_some_ipv6(struct frame *f, int depth)
{
	static const uint8_t ext[] = {0, 43, 44, 60, 51};
	uint8_t proto = some_proto(), chain[5];
	uint32_t n = dice(2) ? 0 : dice(5);

	for (uint32_t i = 0; i < n; i++)
		chain[i] = PICK(ext);
	chain[n] = proto;
	put32(f, 0x60000000 | dice(1 << 28));
	put16(f, dice(1500));
	put8(f, chain[0]);
	put8(f, dice(256));
	put_some_v6(f);
	put_some_v6(f);
	for (uint32_t i = 0; i < n; i++) {
		if (chain[i] == 44)
			put_fragment(f, chain[i + 1], dice(2) ? 0 : dice(65536));
		else
			put_ext(f, chain[i + 1], (uint8_t)dice(3));
	}
	put_some_inner(f, proto, depth);
}

/* An EtherType and what it announces. */
static inline void put_some_network(struct frame *f)
{
	static const uint16_t sap[] = {0x4242, 0xfefe, 0xaaaa, 0xf0f0, 0xe0e0};
	static const uint16_t type[] = {0x6001, 0x6002, 0x6003, 0x6004, 0x809b,
					0x80f3, 0x88cc, 0x4242, 0x8137};

	switch (dice(16)) {
	case 0: /* ARP, RARP */
		put16(f, dice(3) ? 0x0806 : 0x8035);
		put32(f, 0x00010800);
		put16(f, 0x0604);
		put16(f, 1 + dice(4));
		put_random(f, 6);
		put_some_v4(f);
		put_random(f, 6);
		put_some_v4(f);
		break;
	case 1: /* MPLS */
		put16(f, dice(2) ? 0x8847 : 0x8848);
		while (dice(2))
			put32(f, (dice(3) + 100) << 12 | 64);
		put32(f, (dice(3) + 100) << 12 | 0x140);
		put_some_ipv4(f, 0);
		break;
	case 2: /* PPPoE */
		put16(f, dice(2) ? 0x8864 : 0x8863);
		put16(f, 0x1100);
		put16(f, dice(3));
		put16(f, dice(1500));
		put16(f, dice(2) ? 0x0021 : 0x0057);
		put_some_ipv4(f, 0);
		break;
	case 3: /* LLC */
		put16(f, dice(1500));
		put16(f, PICK(sap));
		put8(f, 3);
		put_random(f, 40);
		break;
	case 4:
		put16(f, dice(4) ? PICK(type) : dice(65536));
		put_random(f, dice(100));
		break;
	case 5:
	case 6:
	case 7:
	case 8:
	case 9:
		put16(f, 0x86dd);
		put_some_ipv6(f, 0);
		break;
	default: put16(f, 0x0800); put_some_ipv4(f, 0);
	}
}

/* Whole, cut short, bent, or much longer than the first fragment of a test run (about 3.5 KB). */
static inline void some_frame(struct frame *f)
{
	static const uint16_t tpid[] = {0x8100, 0x8100, 0x88a8, 0x9100};
	static const uint16_t first[] = {0xffff, 0x0100, 0x0200, 0x3333, 0x0180};

	f->len = 0;
	put16(f, PICK(first));
	put32(f, dice(3) - 1);
	put16(f, 0x0200);
	put32(f, dice(3));
	for (uint32_t tags = dice(4) ? 0 : 1 + dice(3); tags; tags--) {
		put16(f, PICK(tpid));
		put16(f, dice(8) << 13 | (dice(2) ? 5 : 7 * dice(100)));
	}
	put_some_network(f);
	if (!dice(16))
		put_random(f, 3000 + dice(5000));
	else if (dice(2))
		put_random(f, dice(64));
	for (uint32_t n = dice(4) ? 0 : dice(6); n; n--)
		f->b[dice(f->len < 100 ? f->len : 100)] = (uint8_t)dice(256);
	if (!dice(4))
		f->len = dice(4) ? dice(f->len) : dice(80);
	if (f->len < 14)
		f->len = 14;
}

#endif
