/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* A steering program of a test's own, its rules, its counters. Include after cmocka.h. */
#ifndef XDPATH_TEST_OWN_PROGRAM_H
#define XDPATH_TEST_OWN_PROGRAM_H

#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>

#include <xdpath/prog.h>
#include <xdpath/shared.h>
#include <xdpath/steer.h>

#include "frames.h"
#include "sandbox.h"
#include "steer.skel.h"

static struct steer_bpf *skel;
static uint32_t prog_id;
static struct xdpath_rules rules;
static struct xdpath_diag diag;

static inline uint32_t id_of(int prog_fd)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(prog_fd, &info, &len) ? 0 : info.id;
}

static inline int set_up(void **state)
{
	(void)state;
	sandbox();
	return 0;
}

/* A program of its own for each test: nothing in its maps. */
static inline int load(void **state)
{
	(void)state;
	if (missing)
		return 0;
	skel = steer_bpf__open_and_load();
	if (!skel && errno == EPERM)
		missing = "loading BPF programs is not permitted here";
	if (skel)
		prog_id = id_of(bpf_program__fd(skel->progs.xdpath_steer));
	return skel || missing ? 0 : -1;
}

static inline int unload(void **state)
{
	(void)state;
	xdpath_rules_clear(&rules);
	steer_bpf__destroy(skel);
	skel = NULL;
	return 0;
}

static inline void add(const char *text)
{
	struct xdpath_rule r;
	int err = xdpath_rule_parse(&r, text, &diag);

	if (!err)
		err = xdpath_rules_add(&rules, &r, &diag);
	if (err)
		print_message("%s\n", diag.text);
	assert_int_equal(err, 0);
}

static inline void set(void)
{
	int err = xdpath_steer_set(prog_id, &rules, &diag);

	if (err)
		print_message("%s\n", diag.text);
	assert_int_equal(err, 0);
}

static inline uint32_t run_prog(int fd, const struct frame *f, uint32_t times)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f->b, .data_size_in = f->len, .repeat = times);

	assert_int_equal(bpf_prog_test_run_opts(fd, &o), 0);
	return o.retval;
}

static inline uint32_t run(const struct frame *f)
{
	return run_prog(bpf_program__fd(skel->progs.xdpath_steer), f, 1);
}

static inline void udp(struct frame *f, unsigned int dport, uint32_t payload)
{
	put_ether(f, 0, 0, 0x0800);
	put_ipv4(f, 17, 20, 8 + payload, 0);
	put16(f, 40000);
	put16(f, dport);
	put16(f, 8 + payload);
	put16(f, 0);
	put_fill(f, payload);
}

/* Packets that the rule of this id has counted. */
static inline uint64_t counted(uint32_t rule, uint64_t *bytes)
{
	struct xdpath_rule_count *count;
	struct xdpath_rules got;
	uint64_t packets = UINT64_MAX;

	assert_int_equal(xdpath_steer_get(prog_id, &got, &count), 0);
	for (uint32_t i = 0; i < got.n; i++)
		if (got.rule[i].id == rule) {
			packets = count[i].packets;
			*bytes = count[i].bytes;
		}
	free(count);
	xdpath_rules_clear(&got);
	return packets;
}

static inline uint64_t statistic(uint32_t which)
{
	int cpus = libbpf_num_possible_cpus();
	struct xdpath_verdict_count *each = calloc((size_t)cpus, sizeof(*each));
	uint64_t sum = 0;

	assert_non_null(each);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(skel->maps.xdpath_stats), &which, each),
			 0);
	for (int i = 0; i < cpus; i++)
		sum += each[i].packets;
	free(each);
	return sum;
}

#define own_program(t) cmocka_unit_test_setup_teardown(t, load, unload)

#endif
