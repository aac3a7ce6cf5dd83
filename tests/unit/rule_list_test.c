/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Rules in lists and from files: ids, duplicates, order; all of a file or nothing; ten thousand.
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

#include "rule_text.h"

/* ---- lists ---------------------------------------------------------------------------------- */

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),	cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_order),	cmocka_unit_test(test_file),
		cmocka_unit_test(test_replace), cmocka_unit_test(test_bad_file),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests_name("rule_list", tests, set_up, tear_down);
}
