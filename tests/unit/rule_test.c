/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Rules as text: what is right is printed in one form and read back the same, what is wrong is
 * named in one line and changes nothing; rubbish for a second. And the matcher that other tests
 * refer to.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rule_bad.h"
#include "rule_good.h"
#include "rule_match.h"
#include "rule_text.h"

/* ---- text ----------------------------------------------------------------------------------- */

static void test_good(void **state)
{
	char text[XDPATH_RULE_TEXT_MAX], again[XDPATH_RULE_TEXT_MAX];
	struct xdpath_rule r, s;

	(void)state;
	assert_true(COUNT(good) >= 80);
	for (size_t i = 0; i < COUNT(good); i++) {
		const char *want = good[i].canonical ? good[i].canonical : good[i].text;

		r = parsed(good[i].text);
		assert_int_equal(xdpath_rule_format(&r, text, sizeof(text)), strlen(want));
		assert_string_equal(text, want);
		s = parsed(text);
		xdpath_rule_format(&s, again, sizeof(again));
		assert_string_equal(again, text);
		/* no byte more than there is room for */
		memset(again, 'x', sizeof(again));
		assert_int_equal(xdpath_rule_format(&r, again, strlen(want)), -ENOSPC);
		assert_int_equal(again[strlen(want)], 'x');
		xdpath_rule_clear(&r);
		xdpath_rule_clear(&s);
	}
}

static void test_bad(void **state)
{
	static const struct xdpath_rule none;
	struct xdpath_rule r;

	(void)state;
	assert_true(COUNT(bad) >= 80);
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct xdpath_diag d = {0};
		int err;

		memset(&r, 0x55, sizeof(r));
		err = xdpath_rule_parse(&r, bad[i].text, &d);
		if (!err || !strstr(d.text, bad[i].word) || !strstr(d.text, bad[i].cure))
			fail_msg("\"%s\": %d \"%s\", want \"%s\" and \"%s\"", bad[i].text, err,
				 d.text, bad[i].word, bad[i].cure);
		assert_int_equal(err, d.reason == XDPATH_R_NO_DEVICE ? -ENODEV : -EINVAL);
		assert_int_equal(d.err, -err);
		assert_null(strchr(d.text, '\n'));
		assert_memory_equal(&r, &none, sizeof(r)); /* nothing to clear, nothing half done */
		assert_int_equal(xdpath_rule_parse(&r, bad[i].text, NULL), err);
	}
}

static void test_values(void **state)
{
	struct xdpath_rule r = parsed("prio 9 ether ipv4 vlan 12 proto tcp src 10.0.0.0/8 dst "
				      "192.168.1.1 sport 1-2 dport 80 tcp-flags syn,!ack,rst queue "
				      "3 action mirror 96");
	static const uint8_t src[16] = {10}, dst[16] = {192, 168, 1, 1};

	(void)state;
	assert_int_equal(r.prio, 9);
	assert_int_equal(r.fields, 0x1ff);
	assert_int_equal(r.ether, 0x0800);
	assert_int_equal(r.vlan, 12);
	assert_int_equal(r.proto, 6);
	assert_int_equal(r.src.family, 4);
	assert_int_equal(r.src.len, 8);
	assert_memory_equal(r.src.addr, src, 16);
	assert_int_equal(r.dst.len, 32);
	assert_memory_equal(r.dst.addr, dst, 16);
	assert_int_equal(r.sport[0], 1);
	assert_int_equal(r.sport[1], 2);
	assert_int_equal(r.dport[0], 80);
	assert_int_equal(r.dport[1], 80);
	assert_int_equal(r.flags, 0x06);
	assert_int_equal(r.flags_mask, 0x16);
	assert_int_equal(r.queue, 3);
	assert_int_equal(r.action, XDPATH_RA_MIRROR);
	assert_int_equal(r.snap, 96);
	r = parsed("action redirect lo");
	assert_int_equal(r.ifindex, if_nametoindex("lo"));
	assert_string_equal(r.dev, "lo");
	r = parsed("filter 'udp port 53' action drop");
	assert_int_equal(r.fields, XDPATH_RF_FILTER);
	assert_string_equal(r.filter, "udp port 53");
	xdpath_rule_clear(&r);
	xdpath_rule_clear(&r);
	xdpath_rule_clear(NULL);
}

/* The longest that fits is taken, one more is refused; also where printing makes it longer. */
static void test_long(void **state)
{
	char text[XDPATH_RULE_TEXT_MAX + 64];
	struct xdpath_diag d = {0};
	struct xdpath_rule r;
	int n;

	(void)state;
	n = snprintf(text, sizeof(text), "%*s", (int)XDPATH_RULE_TEXT_MAX - 1, "action xsk");
	assert_int_equal(xdpath_rule_parse(&r, text, &d), 0);
	n = snprintf(text, sizeof(text), "%*s", n + 1, "action xsk");
	assert_int_equal(xdpath_rule_parse(&r, text, &d), -EINVAL);
	assert_non_null(strstr(d.text, "too long; a rule has at most 1023 characters"));
	/* each \ is printed as two */
	n = snprintf(text, sizeof(text), "filter 'ip proto \\udp");
	for (int i = 0; i < 56; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " or ip proto \\udp");
	n += snprintf(text + n, sizeof(text) - (size_t)n, "' action xsk");
	assert_true(n < (int)XDPATH_RULE_TEXT_MAX && n + 57 > (int)XDPATH_RULE_TEXT_MAX);
	assert_int_equal(xdpath_rule_parse(&r, text, &d), -EINVAL);
	assert_non_null(strstr(d.text, "filter: too long; a rule has at most 1023 characters"));
}

static void random_text(char *out, size_t size)
{
	static const char *const ethers[] = {"ipv4", "ipv6", "arp", "0x88b5"};
	static const char *const protos[] = {"tcp", "udp", "sctp", "icmp", "icmpv6", "47", "200"};
	static const char *const src[] = {"10.0.0.0/8", "192.168.7.9", "fd00::/64", "fd00::5"};
	static const char *const actions[] = {"xsk", "pass", "drop", "tx", "mirror", "mirror 70"};
	size_t n = 0;

#define PUT(...)                                                               \
	do {                                                                   \
		if (below(3) == 0)                                             \
			n += (size_t)snprintf(out + n, size - n, __VA_ARGS__); \
	} while (0)
	out[0] = '\0';
	PUT("prio %u ", below(65536));
	PUT("ether %s ", ethers[below(4)]);
	PUT("vlan %u ", below(4096));
	PUT("proto %s ", protos[below(7)]);
	PUT("src %s ", src[below(4)]);
	PUT("dst %s ", src[below(4)]);
	PUT("sport %u ", below(65536));
	PUT("dport %u-%u ", below(30000), 30000 + below(30000));
	PUT("tcp-flags %ssyn,%sack ", below(2) ? "!" : "", below(2) ? "!" : "");
	PUT("queue %u ", below(256));
	snprintf(out + n, size - n, "action %s", actions[below(6)]);
}

/* Whatever is accepted is printed so that it reads back as the same, field by field. */
static void test_round_trip(void **state)
{
	char text[XDPATH_RULE_TEXT_MAX], canonical[XDPATH_RULE_TEXT_MAX];
	uint32_t accepted = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct xdpath_rule r, s;

		random_text(text, sizeof(text));
		if (xdpath_rule_parse(&r, text, NULL))
			continue;
		accepted++;
		assert_true(xdpath_rule_format(&r, canonical, sizeof(canonical)) > 0);
		s = parsed(canonical);
		assert_memory_equal(&r, &s, sizeof(r));
		assert_true(xdpath_rule_specificity(&r) == xdpath_rule_specificity(&s));
	}
	assert_true(accepted > 4000 && accepted < 16000);
}

/* Rubbish for a second: no crash, one line, and what passes reads back. */
static void test_rubbish(void **state)
{
	static const char letters[] = "abcdefgh ipv4 udp \"' \\/,-!0123456789.:\t\001\377";
	char text[XDPATH_RULE_TEXT_MAX + 40];
	double end = now() + 1;
	uint32_t tried = 0, passed = 0;

	(void)state;
	while (now() < end) {
		struct xdpath_diag d = {0};
		struct xdpath_rule r;
		size_t n;

		if (below(2))
			snprintf(text, sizeof(text), "%s", good[below(COUNT(good))].text);
		else
			snprintf(text, sizeof(text), "%s", bad[below(COUNT(bad))].text);
		n = strlen(text);
		for (uint32_t k = below(5); k; k--) {
			char c = letters[below(sizeof(letters) - 1)];

			if (n && below(3))
				text[below((uint32_t)n)] = c;
			else if (n < sizeof(text) - 1)
				text[n++] = c;
		}
		if (below(4) == 0)
			n = below((uint32_t)n + 1);
		text[n] = '\0';
		tried++;
		if (xdpath_rule_parse(&r, text, &d)) {
			assert_true(d.text[0] && !strchr(d.text, '\n') && strstr(d.text, ": "));
			assert_null(r.filter);
			continue;
		}
		passed++;
		assert_true(xdpath_rule_format(&r, text, sizeof(text)) > 0);
		assert_true(strlen(text) < XDPATH_RULE_TEXT_MAX);
		xdpath_rule_clear(&r);
		r = parsed(text);
		xdpath_rule_clear(&r);
	}
	assert_true(tried > 1000 && passed > 100);
}

/* ---- the reference matcher itself ------------------------------------------------------------ */

static uint32_t met(const struct xdpath_rules *l, const struct frame *f, uint32_t queue)
{
	uint32_t order[16];

	xdpath_rules_order(l, order);
	return rule_match(l, order, f->b, f->len, queue, NULL, NULL);
}

static bool meets(const char *rule, const struct frame *f)
{
	struct xdpath_rules l = {0};
	uint32_t hit;

	add(&l, rule);
	hit = met(&l, f, 5);
	xdpath_rules_clear(&l);
	return hit == 0;
}

static void put_udp(struct frame *f, uint16_t sport, uint16_t dport)
{
	put16(f, sport);
	put16(f, dport);
	put16(f, 8);
	put16(f, 0);
}

static void test_reference(void **state)
{
	struct frame f;

	(void)state;
	put_ether(&f, 0x8100, 0, 0x0800);
	put_ipv4(&f, 17, 24, 8, 0);
	put_udp(&f, 1000, 53);
	assert_true(meets("ether ipv4 vlan 7 proto udp src 10.77.0.0/24 dst 10.77.0.2 sport "
			  "900-1000 dport 53 queue 5 action xsk",
			  &f));
	assert_true(meets("action drop", &f));
	assert_true(meets("dport 53 action drop", &f));
	assert_false(meets("dport 54 action drop", &f));
	assert_false(meets("sport 1001-2000 action drop", &f));
	assert_false(meets("proto tcp action drop", &f));
	assert_false(meets("ether ipv6 action drop", &f));
	assert_false(meets("vlan 8 action drop", &f));
	assert_false(meets("queue 4 action drop", &f));
	assert_false(meets("src 10.77.0.2 action drop", &f));
	assert_true(meets("src 0.0.0.0/0 action drop", &f));
	assert_false(meets("src ::/0 action drop", &f));
	assert_false(meets("filter 'udp' action drop", &f));
	f.len--; /* cut off: nothing applies */
	assert_false(meets("action drop", &f));

	put_ether(&f, 0, 0, 0x0800);
	put_ipv4(&f, 17, 20, 7, 0); /* half a UDP header, padding behind */
	put_fill(&f, 26);
	assert_false(meets("action drop", &f));
	assert_false(meets("vlan 0 action drop", &f));

	put_ether(&f, 0, 0, 0x0800);
	put_ipv4(&f, 17, 20, 8, 0x2001); /* a later piece */
	put_udp(&f, 1000, 53);
	assert_true(meets("proto udp action drop", &f));
	assert_false(meets("dport 53 action drop", &f));

	put_ether(&f, 0, 0, 0x86dd);
	put_ipv6(&f, 44, 8 + 20);
	put_fragment(&f, 6, 1); /* the first piece */
	put_udp(&f, 1000, 80);
	put_fill(&f, 12);
	f.b[f.len - 7] = 0x12; /* SYN, ACK */
	assert_true(meets("dport 80 tcp-flags syn,ack,!rst src fd77::/16 action drop", &f));
	assert_false(meets("tcp-flags syn,!ack action drop", &f));
	f.b[14 + 40 + 2] = 1; /* now a later one */
	assert_true(meets("proto tcp action drop", &f));
	assert_false(meets("dport 80 action drop", &f));
	assert_false(meets("tcp-flags syn action drop", &f));
}

static void test_reference_order(void **state)
{
	const struct xdpath_rule *mirrors[4];
	struct xdpath_rules l = {0};
	uint32_t order[4], n;
	struct frame f;

	(void)state;
	frame_arp(&f, 0, 0);
	add(&l, "action drop");
	add(&l, "ether arp action mirror 64");
	add(&l, "prio 101 ether arp action pass");
	add(&l, "prio 50 action mirror");
	xdpath_rules_order(&l, order);
	assert_int_equal(rule_match(&l, order, f.b, f.len, 0, mirrors, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(mirrors[0]->id, 4);
	assert_int_equal(mirrors[1]->id, 2);
	xdpath_rules_del(&l, 1);
	xdpath_rules_del(&l, 3);
	xdpath_rules_order(&l, order);
	assert_int_equal(rule_match(&l, order, f.b, f.len, 0, mirrors, &n), UINT32_MAX);
	assert_int_equal(n, 2);
	xdpath_rules_clear(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	   cmocka_unit_test(test_bad),
		cmocka_unit_test(test_values),	   cmocka_unit_test(test_long),
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_rubbish),
		cmocka_unit_test(test_reference),  cmocka_unit_test(test_reference_order),
	};

	return cmocka_run_group_tests_name("rule", tests, NULL, NULL);
}
