/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The record of conditions: what cannot be told is null with its reason; a device of another
 * network namespace is not taken for ours; rules are counted; one end's account survives the way
 * to the other end and back, and garbage does not.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>

#include "bench_fake.h"
#include "../../user/bench/record_in.h"
#include "sandbox.h"

static int enter(void **state)
{
	(void)state;
	sandbox();
	return 0;
}

static void nothing_is_absent_without_a_reason(void **state)
{
	static const char *const keys[] = {
		"kernel",   "cpu_model", "cpus",	"clocksource", "governor",
		"driver",   "bus",	 "queues",	"rings",       "offloads",
		"xps",	    "rps",	 "rfs",		"irq_cpus",    "netfilter_rules",
		"load",	    "knobs",	 "version",	"date",	       "steal_percent_since_boot",
		"boot_id",  "smt",	 "mitigations", "coalescing",  "tcp_autocorking",
		"mtu_bytes"};
	struct xdpath_knobs knobs;
	json_t *o, *v;
	char why[64];
	const char *key;

	(void)state;
	xdpath_knobs_defaults(&knobs);
	o = record_host("lo", &knobs);
	assert_non_null(o);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_non_null(json_object_get(o, keys[i]));
	json_object_foreach(o, key, v)
	{
		snprintf(why, sizeof(why), "%s_why", key);
		assert_int_equal(json_is_null(v), json_string_length(json_object_get(o, why)) > 0);
	}
	assert_true(json_is_string(json_object_get(o, "kernel")));
	assert_true(json_integer_value(json_object_get(o, "cpus")) > 0);
	assert_true(json_is_null(json_object_get(o, "irq_cpus"))); /* lo has none */
	assert_string_equal(json_string_value(
				    json_object_get(json_object_get(o, "knobs"), "rx.batch")),
			    "64");
	json_decref(o);
}

static void a_device_that_is_not_there(void **state)
{
	json_t *o = record_host("xdpath-none", NULL);

	(void)state;
	assert_true(json_is_null(json_object_get(o, "driver")));
	assert_non_null(strstr(json_string_value(json_object_get(o, "driver_why")), "xdpath-none"));
	assert_true(json_is_null(json_object_get(o, "knobs")));
	json_decref(o);
}

static void masks_are_lists(void **state)
{
	char out[64];

	(void)state;
	assert_true(record_mask_list("00000000\n", out, sizeof(out)));
	assert_string_equal(out, "");
	assert_true(record_mask_list("4f\n", out, sizeof(out)));
	assert_string_equal(out, "0-3,6");
	assert_true(record_mask_list("00000001,80000000", out, sizeof(out)));
	assert_string_equal(out, "31-32");
	assert_true(record_mask_list("8", out, sizeof(out)));
	assert_string_equal(out, "3");
	assert_true(record_mask_list("f", out, sizeof(out)));
	assert_string_equal(out, "0-3");
	assert_false(record_mask_list("0-3", out, sizeof(out)));
	assert_false(record_mask_list("\n", out, sizeof(out)));
}

/* RPS of our own lo, set through our namespace's own tree; /sys would show another lo's. */
static void steering_is_this_namespaces(void **state)
{
	int sysfs, fd;
	json_t *o;

	(void)state;
	need_kernel();
	sysfs = record_sysfs();
	assert_true(sysfs >= 0);
	fd = openat(sysfs, "class/net/lo/queues/rx-0/rps_cpus", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	/* only lo is here, and whatever the kernel puts into each namespace */
	assert_int_equal(faccessat(sysfs, "class/net/eth0", F_OK, 0), -1);
	close(sysfs);
	o = json_object();
	record_device(o, "lo");
	assert_string_equal(json_string_value(json_object_get(json_object_get(o, "rps"), "rx-0")),
			    "");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "rfs"), "rx-0")), 0);
	assert_true(json_array_size(json_object_get(o, "offloads")) > 0);
	json_decref(o);
}

struct batch {
	char buf[8192];
	struct mnl_nlmsg_batch *b;
	uint32_t seq;
};

static struct nlmsghdr *message(struct batch *b, uint16_t type, uint16_t flags, uint16_t res)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(mnl_nlmsg_batch_current(b->b));
	struct nfgenmsg *g;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = ++b->seq;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->nfgen_family = res ? AF_UNSPEC : AF_INET;
	g->res_id = htons(res);
	return nlh;
}

#define NFT(type) (NFNL_SUBSYS_NFTABLES << 8 | (type))

/* The kernel's answer to the one message that asked for one: 0 or -errno. */
static int acknowledged(struct mnl_socket *nl)
{
	const struct nlmsghdr *nlh;
	const struct nlmsgerr *e;
	char buf[4096];
	ssize_t got = mnl_socket_recvfrom(nl, buf, sizeof(buf));

	nlh = (const struct nlmsghdr *)buf;
	e = mnl_nlmsg_get_payload(nlh);
	return got >= (ssize_t)sizeof(*nlh) && nlh->nlmsg_type == NLMSG_ERROR ? e->error : -EBADMSG;
}

/* A table, a chain and n rules in it that match everything and do nothing. 0 or -errno. */
static int add_rules(int n)
{
	struct mnl_socket *nl = mnl_socket_open(NETLINK_NETFILTER);
	struct batch b = {.seq = 0};
	struct nlmsghdr *nlh;
	int ret;

	if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID))
		return -errno;
	b.b = mnl_nlmsg_batch_start(b.buf, sizeof(b.buf));
	message(&b, NFNL_MSG_BATCH_BEGIN, 0, NFNL_SUBSYS_NFTABLES);
	mnl_nlmsg_batch_next(b.b);
	nlh = message(&b, NFT(NFT_MSG_NEWTABLE), NLM_F_CREATE, 0);
	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, "t");
	mnl_nlmsg_batch_next(b.b);
	nlh = message(&b, NFT(NFT_MSG_NEWCHAIN), NLM_F_CREATE, 0);
	mnl_attr_put_strz(nlh, NFTA_CHAIN_TABLE, "t");
	mnl_attr_put_strz(nlh, NFTA_CHAIN_NAME, "c");
	mnl_nlmsg_batch_next(b.b);
	for (int i = 0; i < n; i++) {
		nlh = message(&b, NFT(NFT_MSG_NEWRULE),
			      NLM_F_CREATE | NLM_F_APPEND | (i + 1 == n ? NLM_F_ACK : 0), 0);
		mnl_attr_put_strz(nlh, NFTA_RULE_TABLE, "t");
		mnl_attr_put_strz(nlh, NFTA_RULE_CHAIN, "c");
		mnl_nlmsg_batch_next(b.b);
	}
	message(&b, NFNL_MSG_BATCH_END, 0, NFNL_SUBSYS_NFTABLES);
	mnl_nlmsg_batch_next(b.b);
	ret = mnl_socket_sendto(nl, mnl_nlmsg_batch_head(b.b), mnl_nlmsg_batch_size(b.b)) > 0
		      ? acknowledged(nl)
		      : -errno;
	mnl_nlmsg_batch_stop(b.b);
	mnl_socket_close(nl);
	return ret;
}

static json_int_t rules(const char *key)
{
	json_t *o = json_object();
	json_int_t n;

	record_rules(o);
	n = json_is_integer(json_object_get(o, key)) ? json_integer_value(json_object_get(o, key))
						     : -1;
	json_decref(o);
	return n;
}

static void rules_are_counted(void **state)
{
	int err;

	(void)state;
	need_kernel();
	assert_int_equal(rules("netfilter_rules"), 0);
	err = add_rules(7);
	if (err == -EPROTONOSUPPORT || err == -EINVAL || err == -EOPNOTSUPP) {
		print_message("skipped: this kernel has no nftables\n");
		skip();
	}
	assert_int_equal(err, 0);
	assert_int_equal(rules("nftables_rules"), 7);
	assert_int_equal(rules("netfilter_rules"), 7);
	assert_int_equal(rules("iptables_entries"), 0);
}

/* Every count another one, so that none can stand in for its neighbour. */
static void number_counts(struct test_side *s)
{
	size_t n = (offsetof(struct test_side, lost) + sizeof(s->lost) -
		    offsetof(struct test_side, msgs_out)) /
		   sizeof(uint64_t);

	for (size_t i = 0; i < n; i++)
		memcpy((char *)s + offsetof(struct test_side, msgs_out) + i * sizeof(uint64_t),
		       &(uint64_t){1000 + i}, sizeof(uint64_t));
	s->usage.softirqs_tx = 1;
	s->usage.irq = 0.125;
}

static bool same_counts(const struct test_side *a, const struct test_side *b)
{
	size_t from = offsetof(struct test_side, msgs_out), to = offsetof(struct test_side, usage);

	return memcmp((const char *)a + from, (const char *)b + from, to - from) == 0;
}

static void there_and_back(void **state)
{
	static struct test_result r;
	static struct test_side back;
	json_t *a, *b;

	(void)state;
	fake_run(&r, TEST_RR, 1);
	r.local.usage.interrupts = 77;
	number_counts(&r.local);
	number_counts(&r.remote);
	for (int i = 0; i < 2; i++) {
		const struct test_side *s = i ? &r.remote : &r.local;
		char *text;

		a = side_to_json(s);
		text = json_dumps(a, 0);
		b = json_loads(text, 0, NULL);
		assert_int_equal(side_from_json(b, &back), 0);
		assert_true(same_counts(&back, s));
		assert_int_equal(back.usage.interrupts, s->usage.interrupts);
		assert_int_equal(back.payload_in, s->payload_in);
		assert_string_equal(back.mode_why, s->mode_why);
		assert_int_equal(back.usage.source, s->usage.source);
		json_decref(b);
		b = side_to_json(&back); /* every field there is */
		assert_true(json_equal(a, b));
		free(text);
		json_decref(a);
		json_decref(b);
	}
	memset(&r.local, 0, sizeof(r.local)); /* a side that measured no CPU */
	a = side_to_json(&r.local);
	assert_int_equal(side_from_json(a, &back), 0);
	json_decref(a);
}

/* One value of a good account is spoilt; the whole is refused. */
static void spoil(const json_t *good, const char *in, const char *key, json_t *value)
{
	json_t *j = json_deep_copy(good);
	static struct test_side s;

	json_object_set_new(in ? json_object_get(j, in) : j, key, value);
	assert_int_equal(side_from_json(j, &s), -EINVAL);
	json_decref(j);
}

static void garbage_is_refused(void **state)
{
	static struct test_result r;
	static struct test_side s;
	json_t *good, *many = json_array();

	(void)state;
	fake_run(&r, TEST_RR, 1);
	good = side_to_json(&r.local);
	for (uint32_t i = 0; i <= USAGE_CPUS_MAX; i++)
		json_array_append_new(many, json_real(1));
	spoil(good, NULL, "packets_in", json_integer(-1));
	spoil(good, NULL, "packets_in", json_string("1"));
	spoil(good, NULL, "packets_in", json_null());
	spoil(good, NULL, "seconds", json_real(-0.5));
	spoil(good, NULL, "host", json_integer(1));
	spoil(good, NULL, "usage", json_null());
	spoil(good, NULL, "losses", json_array());
	spoil(good, "usage", "busy_seconds", many);
	spoil(good, "usage", "busy_seconds", json_pack("[s]", "1"));
	spoil(good, "usage", "cpus_online", json_integer(3));
	spoil(good, "usage", "source", json_string("guess"));
	spoil(good, "usage", "counters", json_pack("[{}]"));
	spoil(good, "usage", "counters", json_object());
	spoil(good, "losses", "timeouts", json_real(1.5));
	assert_int_equal(side_from_json(NULL, &s), -EINVAL);
	json_object_set_new(good, "host", json_string("evil\x1b[2Jhost\x7f"));
	assert_int_equal(side_from_json(good, &s), 0);
	assert_string_equal(s.host, "evil?[2Jhost?");
	json_decref(good);
}

/* 63 bytes have room: a name is cut between characters, not within one. */
static void long_texts_are_cut(void **state)
{
	static struct test_result r;
	static struct test_side s;
	char name[80];
	json_t *j;

	(void)state;
	fake_run(&r, TEST_RR, 1);
	j = side_to_json(&r.local);
	memset(name, 'a', sizeof(name));
	memcpy(name + 62, "\xc3\xa9\xc3\xa9", 5);
	json_object_set_new(j, "host", json_string(name));
	assert_int_equal(side_from_json(j, &s), 0);
	assert_int_equal(strlen(s.host), 62);
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_absent_without_a_reason),
		cmocka_unit_test(a_device_that_is_not_there),
		cmocka_unit_test(masks_are_lists),
		cmocka_unit_test(steering_is_this_namespaces),
		cmocka_unit_test(rules_are_counted),
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(garbage_is_refused),
		cmocka_unit_test(long_texts_are_cut),
	};

	return cmocka_run_group_tests_name("record", tests, enter, NULL);
}
