/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Rules as text and in lists: what is right is printed in one form and read back the same, what is
 * wrong is named in one line and changes nothing; order, duplicates, files; rubbish for a second.
 */
#include <errno.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "frames.h"
#include "rule_bad.h"
#include "rule_good.h"
#include "rule_match.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* In place of the C library's: libpcap asks it for the hosts of an expression, rubbish among them.
 */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **res)
{
	(void)node, (void)service, (void)hints, (void)res;
	return EAI_NONAME;
}

static uint64_t seed = 88172645463325252ULL;

static uint32_t below(uint32_t n)
{
	return frame_random(&seed) % n;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static struct xdpath_rule parsed(const char *text)
{
	struct xdpath_diag d = {0};
	struct xdpath_rule r;

	if (xdpath_rule_parse(&r, text, &d))
		fail_msg("\"%s\": %s", text, d.text);
	return r;
}

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

/* ---- lists ---------------------------------------------------------------------------------- */

static void add(struct xdpath_rules *l, const char *text)
{
	struct xdpath_rule r = parsed(text);

	assert_int_equal(xdpath_rules_add(l, &r, NULL), 0);
}

static int adds(struct xdpath_rules *l, const char *text, struct xdpath_diag *d)
{
	struct xdpath_rule r = parsed(text);
	int err = xdpath_rules_add(l, &r, d);

	xdpath_rule_clear(&r); /* taken over on success only */
	return err;
}

static void test_ids(void **state)
{
	struct xdpath_rules l = {0};

	(void)state;
	add(&l, "dport 1 action xsk");
	add(&l, "dport 2 action xsk");
	add(&l, "filter 'udp' action xsk");
	assert_int_equal(l.rule[0].id, 1);
	assert_int_equal(l.rule[2].id, 3);
	assert_int_equal(xdpath_rules_del(&l, 2), 0);
	assert_int_equal(xdpath_rules_del(&l, 2), -ENOENT);
	assert_int_equal(xdpath_rules_del(&l, 3), 0);
	add(&l, "dport 2 action xsk");
	assert_int_equal(l.n, 2);
	assert_int_equal(l.rule[1].id, 4); /* never reused */
	xdpath_rules_clear(&l);
	assert_int_equal(l.n, 0);
	xdpath_rules_clear(&l);
	xdpath_rules_clear(NULL);
}

static void test_duplicates(void **state)
{
	struct xdpath_rules l = {0};
	struct xdpath_diag d = {0};

	(void)state;
	add(&l, "proto udp dport 53 action xsk");
	assert_int_equal(adds(&l, "dport 53 proto 17 action xsk", &d), -EEXIST);
	assert_non_null(strstr(d.text, "proto udp dport 53 action xsk: rule 1 is the same; "));
	assert_int_equal(adds(&l, "proto udp dport 53 action drop", &d), -EEXIST);
	assert_non_null(strstr(d.text, "rule 1 has the same matches and priority; "));
	assert_int_equal(adds(&l, "prio 99 proto udp dport 53 action drop", &d), 0);
	assert_int_equal(adds(&l, "dport 53 action xsk", &d), 0);
	assert_int_equal(adds(&l, "filter 'udp' action xsk", &d), 0);
	assert_int_equal(adds(&l, "filter \"udp\" action drop", &d), -EEXIST);
	assert_int_equal(adds(&l, "filter 'tcp' action drop", &d), 0);
	assert_int_equal(adds(&l, "src 0.0.0.0/0 action drop", &d), 0);
	assert_int_equal(adds(&l, "src ::/0 action drop", &d), 0);
	assert_int_equal(adds(&l, "action drop", &d), 0);
	assert_int_equal(l.n, 8);
	xdpath_rules_clear(&l);
}

/* By priority, then bits fixed, then age. */
static void test_order(void **state)
{
	static const char *const sorted[] = {
		"prio 1 action drop",
		"prio 1 filter 'udp' action drop",
		"src fd00::1 dst fd00::1 action xsk",
		"src 10.0.0.1 dst 10.0.0.2 action xsk",
		"dst 10.0.0.2 src 10.0.0.0/24 action xsk",
		"ether ipv4 vlan 5 action xsk",
		"proto udp sport 53 action xsk",
		"dst 10.0.0.0/24 action xsk",
		"proto udp dport 1000-1007 action xsk",
		"dport 53 action xsk",
		"sport 53 action xsk",
		"ether arp action xsk",
		"vlan 5 action xsk",
		"tcp-flags syn,ack action xsk",
		"proto tcp action xsk",
		"queue 5 action xsk",
		"sport 1024-2047 action xsk",
		"sport 0-65535 action xsk",
		"filter 'tcp' action xsk",
		"action xsk",
		"prio 101 src 10.0.0.1 dst 10.0.0.2 action xsk",
	};
	static const uint32_t bits[] = {0,  0,	256, 64, 56, 28, 24, 24, 21, 16, 16,
					16, 12, 10,  8,	 8,  6,	 0,  0,	 0,  64};
	struct xdpath_rules l = {0}, back = {0};
	uint32_t order[COUNT(sorted)];

	(void)state;
	for (size_t i = 0; i < COUNT(sorted); i++)
		add(&l, sorted[i]);
	xdpath_rules_order(&l, order);
	for (uint32_t i = 0; i < l.n; i++) {
		assert_int_equal(order[i], i);
		assert_int_equal(xdpath_rule_specificity(&l.rule[i]), bits[i]);
	}
	for (size_t i = COUNT(sorted); i-- > 0;)
		add(&back, sorted[i]);
	xdpath_rules_order(&back, order);
	for (uint32_t i = 1; i < l.n; i++) {
		const struct xdpath_rule *a = &back.rule[order[i - 1]], *b = &back.rule[order[i]];

		assert_true(a->prio <= b->prio);
		if (a->prio != b->prio)
			continue;
		assert_true(xdpath_rule_specificity(a) >= xdpath_rule_specificity(b));
		if (xdpath_rule_specificity(a) == xdpath_rule_specificity(b))
			assert_true(a->id < b->id);
	}
	xdpath_rules_clear(&l);
	xdpath_rules_clear(&back);
}

/* ---- files ---------------------------------------------------------------------------------- */

static char path[] = "/tmp/xdpath-rules.XXXXXX";

static int set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_file(const void *text, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
}

static int load(struct xdpath_rules *l, const char *text, struct xdpath_diag *d)
{
	write_file(text, strlen(text));
	return xdpath_rules_load(l, path, d);
}

static void test_file(void **state)
{
	struct xdpath_rules l = {0};
	struct xdpath_diag d = {0};

	(void)state;
	add(&l, "dport 9 action xsk");
	assert_int_equal(load(&l, "", &d), 0);
	assert_int_equal(load(&l, "# nothing\n\n  \t\n   # more\n", &d), 0);
	assert_int_equal(l.n, 1);
	assert_int_equal(load(&l,
			      "# a set\n\nproto udp dport 53 action xsk # DNS\r\n"
			      "  filter \"udp[8] = 35\" action drop #\"\n\tether arp action pass",
			      &d),
			 0);
	assert_int_equal(l.n, 4);
	assert_string_equal(l.rule[2].filter, "udp[8] = 35");
	assert_int_equal(l.rule[1].id, 2);
	assert_int_equal(l.rule[3].ether, 0x0806);
	assert_int_equal(l.rule[3].id, 4);
	/* no comment begins in quotes or in a word */
	assert_int_equal(load(&l, "filter 'udp # \" #' action xsk", &d), -EINVAL);
	assert_non_null(strstr(d.text, "udp # \" #"));
	assert_int_equal(load(&l, "filter \"udp \\\" # '\" action xsk", &d), -EINVAL);
	assert_non_null(strstr(d.text, "udp \" # '"));
	assert_int_equal(load(&l, "vlan 1#2 action xsk", &d), -EINVAL);
	assert_non_null(strstr(d.text, "vlan 1#2: not a number"));
	xdpath_rules_clear(&l);
}

/* What is in both sets keeps its id. */
static void test_replace(void **state)
{
	struct xdpath_rules l = {0}, by = {0};

	(void)state;
	add(&l, "dport 1 action xsk");
	add(&l, "dport 2 action xsk");
	add(&l, "filter 'udp' action xsk");
	add(&l, "action redirect lo");
	assert_int_equal(load(&by,
			      "filter udp action xsk\ndport 5 action xsk\ndport 2 action drop\n"
			      "dport 1 action xsk\naction redirect lo\n",
			      NULL),
			 0);
	assert_int_equal(xdpath_rules_replace(&l, &by, NULL), 0);
	assert_int_equal(by.n, 0);
	assert_null(by.rule);
	assert_int_equal(l.n, 5);
	assert_int_equal(l.rule[0].id, 3);
	assert_int_equal(l.rule[1].id, 5);
	assert_int_equal(l.rule[2].id, 6);
	assert_int_equal(l.rule[3].id, 1);
	assert_int_equal(l.rule[4].id, 4);
	add(&l, "dport 7 action xsk");
	assert_int_equal(l.rule[5].id, 7);
	assert_int_equal(xdpath_rules_replace(&l, &by, NULL), 0);
	assert_int_equal(l.n, 0);
	add(&l, "dport 7 action xsk");
	assert_int_equal(l.rule[0].id, 8);
	xdpath_rules_clear(&l);
}

/* Nothing of a bad file is taken; its line is named. */
static void test_bad_file(void **state)
{
	static const char zero[] = "action xsk\naction \0pass\n";
	struct xdpath_rules l = {0};
	struct xdpath_diag d = {0};
	char longest[5000];

	(void)state;
	add(&l, "dport 9 action xsk");
	assert_int_equal(load(&l, "action xsk\n#\ndport 70000 action xsk\n", &d), -EINVAL);
	assert_non_null(strstr(d.text, path));
	assert_non_null(strstr(d.text, ":3: dport 70000: out of range; "));
	assert_int_equal(load(&l, "action xsk\nvlan 1 action redirect nil\n", &d), -ENODEV);
	assert_non_null(strstr(d.text, ":2: nil: no such device"));
	assert_int_equal(d.reason, XDPATH_R_NO_DEVICE);
	assert_int_equal(load(&l, "dport 1 action xsk\n\ndport 1-1 action drop\n", &d), -EEXIST);
	assert_non_null(strstr(d.text, ":3: dport 1 action drop: line 1 has the same"));
	assert_int_equal(load(&l, "dport 1 action xsk\ndport 9 action xsk\n", &d), -EEXIST);
	assert_non_null(strstr(d.text, ":2: dport 9 action xsk: rule 1 is the same"));
	write_file(zero, sizeof(zero) - 1);
	assert_int_equal(xdpath_rules_load(&l, path, &d), -EINVAL);
	assert_non_null(strstr(d.text, ":2: holds a byte 0; "));
	memset(longest, '#', sizeof(longest));
	write_file(longest, sizeof(longest));
	assert_int_equal(xdpath_rules_load(&l, path, &d), -EINVAL);
	assert_non_null(strstr(d.text, ":1: the line is too long; "));
	assert_int_equal(xdpath_rules_load(&l, "/nowhere/rules", &d), -ENOENT);
	assert_non_null(strstr(d.text, "/nowhere/rules: No such file or directory; "));
	assert_true(xdpath_rules_load(&l, "/", &d) < 0);
	assert_non_null(strstr(d.text, "/: cannot be read (Is a directory); "));
	assert_true(xdpath_rules_load(&l, "/dev/zero", &d) < 0);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.next_id, 2);
	xdpath_rules_clear(&l);
}

static void write_many(uint32_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (uint32_t i = 0; i < n; i++)
		fprintf(f, "proto udp src 10.%u.%u.%u dport %u action xsk\n", i >> 16, i >> 8 & 255,
			i & 255, 1 + i % 60000);
	fclose(f);
}

static void test_many(void **state)
{
	struct xdpath_rules l = {0};
	struct xdpath_diag d = {0};
	double begun, took;

	(void)state;
	write_many(XDPATH_RULES_MAX);
	begun = now();
	assert_int_equal(xdpath_rules_load(&l, path, &d), 0);
	took = now() - begun;
	print_message("10,000 rules read in %.0f ms\n", took * 1e3);
	assert_int_equal(l.n, XDPATH_RULES_MAX);
	assert_true(took < 1);
	assert_int_equal(adds(&l, "action drop", &d), -ENOSPC);
	assert_non_null(strstr(d.text, "more than 10000 rules; "));
	assert_int_equal(xdpath_rules_load(&l, path, &d), -ENOSPC);
	xdpath_rules_clear(&l);
	write_many(XDPATH_RULES_MAX + 1);
	assert_int_equal(xdpath_rules_load(&l, path, &d), -ENOSPC);
	assert_non_null(strstr(d.text, ":10001: more than 10000 rules; "));
	assert_int_equal(l.n, 0);
	xdpath_rules_clear(&l);
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
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_rubbish),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_replace),
		cmocka_unit_test(test_bad_file),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_reference),
		cmocka_unit_test(test_reference_order),
	};

	return cmocka_run_group_tests_name("rule", tests, set_up, tear_down);
}
