/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * bpf/steer.bpf.c in the kernel by BPF_PROG_TEST_RUN: each verdict, empty slots, counters to the
 * byte, and the same judgement as the parser in plain C. Needs root; works in a network namespace
 * of its own, with a veth that has more queues than the map has slots.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <net/if.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <xdpath/shared.h>
#include <xdpath/uapi.h>

#include "../../bpf/parse.h"
#include "../../bpf/set.h"
#include "frames.h"
#include "sandbox.h"
#include "steer.skel.h"

static struct steer_bpf *skel;
static int wide_ifindex; /* 0: there is no device of that many queues */

static int set_up(void **state)
{
	(void)state;
	if (!sandbox())
		return 0;
	skel = steer_bpf__open_and_load();
	if (!skel && errno == EPERM)
		missing = "loading BPF programs is not permitted here";
	if (!system("ip link add xdpath0 numrxqueues 260 numtxqueues 260 type veth peer name "
		    "xdpath1 "
		    "numrxqueues 260 numtxqueues 260"))
		wide_ifindex = (int)if_nametoindex("xdpath0");
	return skel || missing ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	steer_bpf__destroy(skel); /* the namespace goes with the process, the devices with it */
	return 0;
}

/* Set the steering, empty the counters. */
static void start(enum xdpath_steer steer)
{
	int cpus = libbpf_num_possible_cpus();
	struct xdpath_verdict_count *none = calloc((size_t)cpus, sizeof(*none));
	struct xdpath_config config = {.steer = steer};
	uint32_t zero = 0;

	assert_non_null(none);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(skel->maps.xdpath_config), &zero, &config,
					     0),
			 0);
	for (uint32_t v = 0; v < XDPATH_V_COUNT; v++)
		assert_int_equal(bpf_map_update_elem(bpf_map__fd(skel->maps.xdpath_stats), &v, none,
						     0),
				 0);
	free(none);
}

static void counters(struct xdpath_verdict_count out[XDPATH_V_COUNT])
{
	int cpus = libbpf_num_possible_cpus();
	struct xdpath_verdict_count *each = calloc((size_t)cpus, sizeof(*each));

	assert_non_null(each);
	for (uint32_t v = 0; v < XDPATH_V_COUNT; v++) {
		out[v] = (struct xdpath_verdict_count){0};
		assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(skel->maps.xdpath_stats), &v,
						     each),
				 0);
		for (int i = 0; i < cpus; i++) {
			out[v].packets += each[i].packets;
			out[v].bytes += each[i].bytes;
		}
	}
	free(each);
}

/* One run on a queue of the wide device, -1: as the kernel runs it without being told (queue 0). */
static uint32_t run_on(const struct frame *f, int queue)
{
	struct xdp_md md = {.data_end = f->len,
			    .ingress_ifindex = (uint32_t)wide_ifindex,
			    .rx_queue_index = (uint32_t)queue};
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f->b, .data_size_in = f->len, .repeat = 1);

	if (queue >= 0) {
		o.ctx_in = &md;
		o.ctx_size_in = sizeof(md);
	}
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(skel->progs.xdpath_steer), &o), 0);
	return o.retval;
}

/* The verdict the frame counts in; that it counts once, whole, and goes where the verdict says. */
static enum xdpath_verdict verdict_on(const struct frame *f, int queue)
{
	struct xdpath_verdict_count before[XDPATH_V_COUNT], after[XDPATH_V_COUNT];
	uint32_t action, verdict = XDPATH_V_COUNT;

	counters(before);
	action = run_on(f, queue);
	counters(after);
	for (uint32_t v = 0; v < XDPATH_V_COUNT; v++) {
		if (after[v].packets == before[v].packets) {
			assert_int_equal(after[v].bytes, before[v].bytes);
			continue;
		}
		assert_int_equal(verdict, XDPATH_V_COUNT);
		assert_int_equal(after[v].packets, before[v].packets + 1);
		assert_int_equal(after[v].bytes, before[v].bytes + f->len);
		verdict = v;
	}
	assert_int_not_equal(verdict, XDPATH_V_COUNT);
	assert_int_equal(action, verdict == XDPATH_V_XSK ? XDP_REDIRECT : XDP_PASS);
	return verdict;
}

static enum xdpath_verdict verdict(const struct frame *f)
{
	return verdict_on(f, -1);
}

/* An AF_XDP socket in a slot: it need not be bound for a redirect to find it. */
static int socket_in(uint32_t slot)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(skel->maps.xsks_map), &slot, &fd, 0), 0);
	return fd;
}

static void has_map(const char *name, enum bpf_map_type type, uint32_t value, uint32_t entries)
{
	const struct bpf_map *m = bpf_object__find_map_by_name(skel->obj, name);

	assert_non_null(m);
	assert_int_equal(bpf_map__type(m), type);
	assert_int_equal(bpf_map__value_size(m), value);
	assert_int_equal(bpf_map__max_entries(m), entries);
}

/* What another program finds it by: names, sizes, and that the kernel lists all of its maps. */
static void test_found_by_maps(void **state)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	struct bpf_map *m;
	uint32_t n = 0;

	(void)state;
	need_kernel();
	has_map(XDPATH_MAP_META, BPF_MAP_TYPE_ARRAY, sizeof(struct xdpath_meta), XDPATH_LAYOUT);
	has_map(XDPATH_MAP_CONFIG, BPF_MAP_TYPE_ARRAY, sizeof(struct xdpath_config), 1);
	has_map(XDPATH_MAP_STATS, BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(struct xdpath_verdict_count),
		XDPATH_V_ENTRIES);
	has_map(XDPATH_MAP_XSKS, BPF_MAP_TYPE_XSKMAP, 4, XDPATH_QUEUES);
	has_map(XDPATH_MAP_RULES, BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, XDPATH_SET_SLOTS);
	has_map(XDPATH_MAP_SOURCE, BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, XDPATH_SOURCE_SLOTS);
	has_map(XDPATH_MAP_COUNTS, BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(struct xdpath_count_page),
		XDPATH_COUNT_PAGES);
	has_map(XDPATH_MAP_MIRROR, BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 1);
	bpf_object__for_each_map(m, skel->obj) n++;
	assert_int_equal(n, 8); /* no configuration in data sections */
	assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(skel->progs.xdpath_steer), &info,
						&len),
			 0);
	assert_int_equal(info.nr_map_ids, 8);
	assert_string_equal(info.name, "xdpath_steer");
	/* What the kernel's verifier walks: half of its limit leaves room for other compilers and
	 * kernels. 0: a kernel that does not tell. */
	print_message("# verified instructions: %u\n", info.verified_insns);
	assert_in_range(info.verified_insns, 0, 500000);
}

static void test_none_passes(void **state)
{
	struct frame f;
	int fd;

	(void)state;
	need_kernel();
	fd = socket_in(0);
	start(XDPATH_STEER_NONE);
	frame_v4(&f, 0, 0, 17);
	assert_int_equal(verdict(&f), XDPATH_V_PASS);
	frame_arp(&f, 0, 0);
	assert_int_equal(verdict(&f), XDPATH_V_PASS);
	start((enum xdpath_steer)77); /* a later library's: the kernel keeps everything */
	assert_int_equal(verdict(&f), XDPATH_V_PASS);
	close(fd);
}

static void all_keeps(unsigned int tpid1, unsigned int tpid2)
{
	struct frame f;

	frame_arp(&f, tpid1, tpid2);
	assert_int_equal(verdict(&f), XDPATH_V_KEPT);
	frame_v4(&f, tpid1, tpid2, 1);
	assert_int_equal(verdict(&f), XDPATH_V_KEPT);
	frame_v6(&f, tpid1, tpid2, 58);
	assert_int_equal(verdict(&f), XDPATH_V_KEPT);
	frame_v6_hop(&f, tpid1, tpid2, 58);
	assert_int_equal(verdict(&f), XDPATH_V_KEPT);
	frame_v4(&f, tpid1, tpid2, 17);
	assert_int_equal(verdict(&f), XDPATH_V_XSK);
	frame_v4(&f, tpid1, tpid2, 58); /* not ICMP there */
	assert_int_equal(verdict(&f), XDPATH_V_XSK);
	frame_v6(&f, tpid1, tpid2, 6);
	assert_int_equal(verdict(&f), XDPATH_V_XSK);
	frame_v6(&f, tpid1, tpid2, 1);
	assert_int_equal(verdict(&f), XDPATH_V_XSK);
	frame_v6_hop(&f, tpid1, tpid2, 17);
	assert_int_equal(verdict(&f), XDPATH_V_XSK);
}

static void test_all(void **state)
{
	static const unsigned int tpid[] = {0, 0x8100, 0x88a8, 0x9100};
	struct frame f;
	int fd;

	(void)state;
	need_kernel();
	fd = socket_in(0);
	start(XDPATH_STEER_ALL);
	for (int i = 0; i < 4; i++) {
		all_keeps(tpid[i], 0);
		if (i)
			all_keeps(tpid[i], 0x8100);
	}
	put_ether(&f, 0, 0, 0x88b5); /* no IP at all */
	assert_int_equal(verdict(&f), XDPATH_V_XSK);
	put_ether(&f, 0x8100, 0x8100, 0x8100); /* might be anything */
	put16(&f, 1);
	put16(&f, 0x0800);
	assert_int_equal(verdict(&f), XDPATH_V_KEPT);
	close(fd);
}

static void test_all_keeps_broken_ip(void **state)
{
	struct frame f;
	int fd;

	(void)state;
	need_kernel();
	fd = socket_in(0);
	start(XDPATH_STEER_ALL);
	frame_v6_hop(&f, 0x88a8, 0x8100, 17);
	assert_int_equal(verdict(&f), XDPATH_V_XSK);
	while (--f.len >= 14)
		assert_int_equal(verdict(&f), XDPATH_V_KEPT);
	frame_v4(&f, 0, 0, 17);
	f.b[14] = 0x44;
	assert_int_equal(verdict(&f), XDPATH_V_KEPT);
	close(fd);
}

static void test_l2_takes_everything(void **state)
{
	struct frame f;
	int fd;

	(void)state;
	need_kernel();
	fd = socket_in(0);
	start(XDPATH_STEER_L2);
	frame_arp(&f, 0, 0);
	assert_int_equal(verdict(&f), XDPATH_V_XSK);
	frame_v6(&f, 0x8100, 0, 58);
	assert_int_equal(verdict(&f), XDPATH_V_XSK);
	f.len = 15; /* cut in the tag */
	assert_int_equal(verdict(&f), XDPATH_V_XSK);
	close(fd);
}

static void test_empty_slot_passes(void **state)
{
	struct frame f;
	int fd;

	(void)state;
	need_kernel();
	frame_v4(&f, 0, 0, 17);
	for (int steer = XDPATH_STEER_ALL; steer <= XDPATH_STEER_L2; steer++) {
		start((enum xdpath_steer)steer);
		assert_int_equal(verdict(&f), XDPATH_V_NO_SOCKET);
		fd = socket_in(0);
		assert_int_equal(verdict(&f), XDPATH_V_XSK);
		close(fd); /* as a process that dies: the kernel empties the slot */
		assert_int_equal(verdict(&f), XDPATH_V_NO_SOCKET);
	}
	frame_arp(&f, 0, 0);
	start(XDPATH_STEER_ALL);
	assert_int_equal(verdict(&f), XDPATH_V_KEPT);
}

static void test_slot_is_the_queue(void **state)
{
	struct frame f;
	int first, last;

	(void)state;
	need_kernel();
	if (!wide_ifindex) {
		print_message("skipped: no veth of 260 queues to be had\n");
		skip();
	}
	frame_v4(&f, 0, 0, 17);
	start(XDPATH_STEER_ALL);
	first = socket_in(0);
	last = socket_in(255);
	assert_int_equal(verdict_on(&f, 0), XDPATH_V_XSK);
	assert_int_equal(verdict_on(&f, 1), XDPATH_V_NO_SOCKET);
	assert_int_equal(verdict_on(&f, 254), XDPATH_V_NO_SOCKET);
	assert_int_equal(verdict_on(&f, 255), XDPATH_V_XSK);
	assert_int_equal(verdict_on(&f, 256), XDPATH_V_NO_SOCKET); /* past the map's end */
	assert_int_equal(verdict_on(&f, 259), XDPATH_V_NO_SOCKET);
	close(first);
	close(last);
}

/* Several fragments: the whole length counts, and the IP length is held against the whole. */
static void test_fragments_count_whole(void **state)
{
	static const uint32_t size[] = {1500, 4000, 9000, 11000};
	struct frame f;
	int fd;

	(void)state;
	need_kernel();
	fd = socket_in(0);
	start(XDPATH_STEER_ALL);
	for (int i = 0; i < 4; i++) {
		put_ether(&f, 0, 0, 0x0800);
		put_ipv4(&f, 17, 20, size[i] - 34, 0);
		put_fill(&f, size[i] - 34);
		assert_int_equal(f.len, size[i]);
		assert_int_equal(verdict(&f), XDPATH_V_XSK);
		f.len--;
		assert_int_equal(verdict(&f), XDPATH_V_KEPT);
	}
	close(fd);
}

/* The verifier's program and the C compiler's judge alike. */
static void test_agrees_with_c(void **state)
{
	uint64_t seed = 2463534242ULL;
	uint64_t want[XDPATH_V_COUNT] = {0};
	struct xdpath_verdict_count got[XDPATH_V_COUNT];
	struct frame f;
	int fd;

	(void)state;
	need_kernel();
	fd = socket_in(0);
	start(XDPATH_STEER_ALL);
	for (int i = 0; i < 50000; i++) {
		struct xp_headers h;
		bool keep;

		frame_any(&f, &seed);
		keep = xp_parse(f.b, f.b + f.len, f.len, &h) != XP_OK ||
		       h.ethertype == XP_ETH_ARP || (h.ip == 4 && h.proto == 1) ||
		       (h.ip == 6 && h.proto == 58);
		want[keep ? XDPATH_V_KEPT : XDPATH_V_XSK]++;
		assert_int_equal(run_on(&f, -1), keep ? XDP_PASS : XDP_REDIRECT);
	}
	counters(got);
	for (int v = 0; v < XDPATH_V_COUNT; v++)
		assert_int_equal(got[v].packets, want[v]);
	assert_true(want[XDPATH_V_KEPT] > 5000 && want[XDPATH_V_XSK] > 5000);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_by_maps),
		cmocka_unit_test(test_none_passes),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_all_keeps_broken_ip),
		cmocka_unit_test(test_l2_takes_everything),
		cmocka_unit_test(test_empty_slot_passes),
		cmocka_unit_test(test_slot_is_the_queue),
		cmocka_unit_test(test_fragments_count_whole),
		cmocka_unit_test(test_agrees_with_c),
	};

	return cmocka_run_group_tests_name("steer", tests, set_up, tear_down);
}
