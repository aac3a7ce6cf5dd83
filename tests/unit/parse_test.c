/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * bpf/parse.h as plain C, on frames built by hand. Each frame is put so that it ends where a page
 * without access begins: a read past its end kills the test, with sanitizers or without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../bpf/parse.h"
#include "frames.h"

enum { ROOM = 16384 };

static uint8_t *fence; /* first byte that must not be read */
static struct xp_headers h;

static int set_up(void **state)
{
	long page = sysconf(_SC_PAGESIZE);
	uint8_t *area = mmap(NULL, ROOM + (size_t)page, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (area == MAP_FAILED || mprotect(area + ROOM, (size_t)page, PROT_NONE))
		return -1;
	fence = area + ROOM;
	return 0;
}

/* The first n bytes of the frame as its first fragment, of `whole` bytes. */
static enum xp_status parse_part(const struct frame *f, uint32_t n, uint32_t whole)
{
	memcpy(fence - n, f->b, n);
	return xp_parse(fence - n, fence, whole, &h);
}

static enum xp_status parse(const struct frame *f)
{
	return parse_part(f, f->len, f->len);
}

static void test_arp_behind_tags(void **state)
{
	static const unsigned int tpid[] = {0x8100, 0x88a8, 0x9100};
	struct frame f;

	(void)state;
	frame_arp(&f, 0, 0);
	assert_int_equal(parse(&f), XP_OK);
	assert_int_equal(h.ethertype, XP_ETH_ARP);
	assert_int_equal(h.l3, 14);
	assert_int_equal(h.ip, 0);
	for (int i = 0; i < 3; i++) {
		frame_arp(&f, tpid[i], 0);
		assert_int_equal(parse(&f), XP_OK);
		assert_int_equal(h.ethertype, XP_ETH_ARP);
		assert_int_equal(h.vlans, 1);
		frame_arp(&f, tpid[i], 0x8100);
		assert_int_equal(parse(&f), XP_OK);
		assert_int_equal(h.ethertype, XP_ETH_ARP);
		assert_int_equal(h.vlans, 2);
		assert_int_equal(h.l3, 22);
	}
}

static void test_third_tag_is_deep(void **state)
{
	struct frame f;

	(void)state;
	put_ether(&f, 0x88a8, 0x8100, 0x8100);
	put16(&f, 9);
	put16(&f, 0x0806);
	put_fill(&f, 28);
	assert_int_equal(parse(&f), XP_DEEP);
}

static void test_not_ip(void **state)
{
	struct frame f;

	(void)state;
	put_ether(&f, 0, 0, 0x0026); /* a length: 802.3 with LLC behind it */
	put_fill(&f, 38);
	assert_int_equal(parse(&f), XP_OK);
	assert_int_equal(h.ip, 0);
	assert_int_equal(h.l4, 0);
	put_ether(&f, 0, 0, 0x88cc);
	assert_int_equal(parse(&f), XP_OK);
	assert_int_equal(h.ethertype, 0x88cc);
}

static void test_ipv4(void **state)
{
	struct frame f;

	(void)state;
	frame_v4(&f, 0, 0, 17);
	assert_int_equal(parse(&f), XP_OK);
	assert_int_equal(h.ip, 4);
	assert_int_equal(h.proto, 17);
	assert_int_equal(h.l4, 34);
	assert_int_equal(h.fragment, 0);
	frame_v4(&f, 0x88a8, 0x8100, 1);
	assert_int_equal(parse(&f), XP_OK);
	assert_int_equal(h.proto, XP_PROTO_ICMP);
	assert_int_equal(h.l4, 42);
}

static void test_ipv4_options(void **state)
{
	struct frame f;

	(void)state;
	for (uint32_t header = 20; header <= 60; header += 4) {
		put_ether(&f, 0, 0, 0x0800);
		put_ipv4(&f, 6, header, 20, 0x4000); /* do not fragment */
		put_fill(&f, 20);
		assert_int_equal(parse(&f), XP_OK);
		assert_int_equal(h.l4, 14 + header);
		assert_int_equal(h.fragment, 0);
	}
}

static void test_ipv4_fragments(void **state)
{
	static const unsigned int piece[] = {0x2000, 0x2001, 0x0001, 0x1fff};
	struct frame f;

	(void)state;
	for (int i = 0; i < 4; i++) {
		put_ether(&f, 0, 0, 0x0800);
		put_ipv4(&f, 1, 20, 16, piece[i]);
		put_fill(&f, 16);
		assert_int_equal(parse(&f), XP_OK);
		assert_int_equal(h.fragment, 1);
		assert_int_equal(h.proto, XP_PROTO_ICMP);
	}
}

static void test_ipv4_malformed(void **state)
{
	struct frame f;

	(void)state;
	frame_v4(&f, 0, 0, 17);
	f.b[14] = 0x55; /* version 5 */
	assert_int_equal(parse(&f), XP_BAD);
	f.b[14] = 0x44; /* a header of 16 bytes */
	assert_int_equal(parse(&f), XP_BAD);
	f.b[14] = 0x4f; /* a header longer than the packet */
	assert_int_equal(parse(&f), XP_BAD);
	f.b[14] = 0x45;
	f.b[17] = 19; /* a packet shorter than its header */
	assert_int_equal(parse(&f), XP_BAD);
	f.b[17] = 37; /* a byte more than there is */
	assert_int_equal(parse(&f), XP_SHORT);
	f.b[17] = 36;
	assert_int_equal(parse(&f), XP_OK);
	put_fill(&f, 10); /* padding behind the packet is fine */
	assert_int_equal(parse(&f), XP_OK);
}

static void test_ipv6(void **state)
{
	struct frame f;

	(void)state;
	frame_v6(&f, 0, 0, 17);
	assert_int_equal(parse(&f), XP_OK);
	assert_int_equal(h.ip, 6);
	assert_int_equal(h.proto, 17);
	assert_int_equal(h.l4, 54);
	f.b[14] = 0x40;
	assert_int_equal(parse(&f), XP_BAD);
	frame_v6_hop(&f, 0x88a8, 0x8100, 58);
	assert_int_equal(parse(&f), XP_OK);
	assert_int_equal(h.proto, XP_PROTO_ICMPV6);
	assert_int_equal(h.l4, 70);
	put_ether(&f, 0, 0, 0x86dd);
	put_ipv6(&f, 17, 0); /* a jumbogram's length of 0 */
	put_fill(&f, 16);
	assert_int_equal(parse(&f), XP_OK);
	assert_int_equal(h.proto, 17);
}

static void test_ipv6_chain(void **state)
{
	struct frame f;

	(void)state;
	for (uint32_t n = 1; n <= XP_EXTS_MAX + 1; n++) {
		put_ether(&f, 0, 0, 0x86dd);
		put_ipv6(&f, 60, n * 16 + 16);
		for (uint32_t i = 1; i <= n; i++)
			put_ext(&f, i < n ? 60 : 58, 1);
		put_fill(&f, 16);
		assert_int_equal(parse(&f), n <= XP_EXTS_MAX ? XP_OK : XP_DEEP);
		if (n <= XP_EXTS_MAX) {
			assert_int_equal(h.proto, XP_PROTO_ICMPV6);
			assert_int_equal(h.l4, 54 + n * 16);
		}
	}
	put_ether(&f, 0, 0, 0x86dd);
	put_ipv6(&f, 60, 2048 + 8); /* the longest header there is */
	put_ext(&f, 17, 255);
	put_fill(&f, 8);
	assert_int_equal(parse(&f), XP_OK);
	assert_int_equal(h.l4, 54 + 2048);
	put_ether(&f, 0, 0, 0x86dd);
	put_ipv6(&f, 51, 24 + 8); /* AH counts in fours, less two */
	put_ext(&f, 6, 2);
	f.b[f.len - 23] = 4;
	put_fill(&f, 8);
	assert_int_equal(parse(&f), XP_OK);
	assert_int_equal(h.l4, 54 + 24);
}

static void test_ipv6_chain_outgrows_packet(void **state)
{
	struct frame f;

	(void)state;
	put_ether(&f, 0, 0, 0x86dd);
	put_ipv6(&f, 60, 16);
	put_ext(&f, 58, 2); /* 24 bytes, of 16; what follows is padding */
	put_fill(&f, 16);
	assert_int_equal(parse(&f), XP_BAD);
}

static void test_ipv6_fragments(void **state)
{
	static const unsigned int piece[] = {0x0001, 0x0009, 0x0008, 0xfff8};
	struct frame f;

	(void)state;
	for (int i = 0; i < 4; i++) {
		put_ether(&f, 0, 0, 0x86dd);
		put_ipv6(&f, 44, 8 + 16);
		put_fragment(&f, 58, piece[i]);
		put_fill(&f, 16);
		assert_int_equal(parse(&f), XP_OK);
		assert_int_equal(h.fragment, 1);
		assert_int_equal(h.proto, XP_PROTO_ICMPV6);
		f.b[54] = 60; /* only the first piece has that header: all are judged alike */
		assert_int_equal(parse(&f), XP_DEEP);
	}
	put_ether(&f, 0, 0, 0x86dd);
	put_ipv6(&f, 44, 8 + 8 + 16);
	put_fragment(&f, 60, 0); /* the whole packet in one piece */
	put_ext(&f, 58, 0);
	put_fill(&f, 16);
	assert_int_equal(parse(&f), XP_OK);
	assert_int_equal(h.fragment, 0);
	assert_int_equal(h.proto, XP_PROTO_ICMPV6);
}

/* Cut at each byte: never good before the IP packet is whole. */
static void cut_everywhere(const struct frame *f)
{
	struct xp_headers full;

	assert_int_equal(parse(f), XP_OK);
	full = h;
	for (uint32_t n = 0; n < f->len; n++) {
		uint32_t headers = full.ip ? full.l4 : full.l3;

		assert_int_equal(parse_part(f, n, n), full.ip || n < headers ? XP_SHORT : XP_OK);
		/* The rest stands in further fragments: only the headers must be in the first. */
		assert_int_equal(parse_part(f, n, f->len), n < headers ? XP_SHORT : XP_OK);
		if (n >= headers)
			assert_memory_equal(&h, &full, sizeof(h));
	}
}

static void test_truncation(void **state)
{
	struct frame f;

	(void)state;
	frame_arp(&f, 0x88a8, 0x8100);
	cut_everywhere(&f);
	frame_v4(&f, 0, 0, 1);
	cut_everywhere(&f);
	put_ether(&f, 0x8100, 0, 0x0800);
	put_ipv4(&f, 6, 60, 20, 0);
	put_fill(&f, 20);
	cut_everywhere(&f);
	frame_v6_hop(&f, 0x88a8, 0x8100, 58);
	cut_everywhere(&f);
	put_ether(&f, 0, 0, 0x86dd);
	put_ipv6(&f, 0, 8 + 24 + 8 + 24);
	put_ext(&f, 43, 0);
	put_ext(&f, 44, 2);
	put_fragment(&f, 17, 0);
	put_fill(&f, 24);
	cut_everywhere(&f);
}

/* Whatever comes, what is reported lies inside the frame (and nothing outside was read). */
static void test_any_frame(void **state)
{
	uint64_t seed = 88172645463325252ULL;
	uint32_t seen[4] = {0};
	struct frame f;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		enum xp_status st;

		frame_any(&f, &seed);
		st = parse(&f);
		assert_true(st <= XP_DEEP);
		seen[st]++;
		if (st != XP_OK)
			continue;
		assert_in_range(h.l3, 14, f.len);
		if (h.ip)
			assert_in_range(h.l4, h.l3 + 20, f.len);
	}
	for (int i = 0; i < 4; i++)
		assert_true(seen[i] > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arp_behind_tags),
		cmocka_unit_test(test_third_tag_is_deep),
		cmocka_unit_test(test_not_ip),
		cmocka_unit_test(test_ipv4),
		cmocka_unit_test(test_ipv4_options),
		cmocka_unit_test(test_ipv4_fragments),
		cmocka_unit_test(test_ipv4_malformed),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_ipv6_chain),
		cmocka_unit_test(test_ipv6_chain_outgrows_packet),
		cmocka_unit_test(test_ipv6_fragments),
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_any_frame),
	};

	return cmocka_run_group_tests_name("parse", tests, set_up, NULL);
}
