/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Rules swapped while packets flow, and filters, which bring a program of their own that takes over
 * with its rules. By BPF_PROG_TEST_RUN and over a veth; needs root; works in a network namespace of
 * its own.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <net/if.h>

#include "clock.h"
#include "own_program.h"

/* ---- swapping ---- */

enum { PARTS = 64 };

struct load {
	struct frame frame[PARTS];
	uint32_t worker;
	bool *stop;
	uint64_t seen[2], mixed, packets;
};

static void *send_frames(void *arg)
{
	struct load *l = arg;
	int fd = bpf_program__fd(skel->progs.xdpath_steer);

	for (uint32_t i = l->worker; !__atomic_load_n(l->stop, __ATOMIC_RELAXED); i++) {
		LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = l->frame[i % PARTS].b,
			    .data_size_in = l->frame[i % PARTS].len, .repeat = 50);

		if (bpf_prog_test_run_opts(fd, &o))
			break;
		l->packets += 50;
		if (o.retval == XDP_DROP)
			l->seen[0]++;
		else if (o.retval == XDP_TX)
			l->seen[1]++;
		else
			l->mixed++; /* passed: it met neither set, or a part of one */
	}
	return NULL;
}

/*
 * Two sets that differ in every rule: one copies and drops each packet, the other sends each back.
 * A packet that met a half of both would be copied and sent back; one that passes met neither.
 */
static void test_swap_is_atomic(void **state)
{
	uint32_t swaps = getenv("LONG") && getenv("LONG")[0] ? 1000 : 200;
	struct xdpath_rules set_of[2] = {{0}};
	static struct load load_of[2];
	pthread_t thread[2];
	bool stop = false;
	uint64_t decided[2], began, took;

	(void)state;
	need_kernel();
	for (int s = 0; s < 2; s++) {
		rules.next_id = 1 + 1000U * (uint32_t)s; /* ids of the two never meet */
		if (!s)
			add("prio 1 proto udp action mirror 1");
		for (int i = 0; i < PARTS; i++) {
			char text[96];

			snprintf(text, sizeof(text), "proto udp dport %d dst 10.77.0.%s action %s",
				 1000 + i, i % 2 ? "2" : "0/24", s ? "tx" : "drop");
			add(text);
		}
		set_of[s] = rules;
		rules = (struct xdpath_rules){0};
	}
	assert_int_equal(xdpath_steer_set(prog_id, &set_of[0], &diag), 0);
	for (uint32_t w = 0; w < 2; w++) {
		load_of[w] = (struct load){.worker = w, .stop = &stop};
		for (int i = 0; i < PARTS; i++)
			udp(&load_of[w].frame[i], 1000 + (unsigned int)i, 10);
		assert_int_equal(pthread_create(&thread[w], NULL, send_frames, &load_of[w]), 0);
	}
	began = xdpath_now_ms();
	for (uint32_t i = 1; i <= swaps; i++)
		assert_int_equal(xdpath_steer_set(prog_id, &set_of[i % 2], &diag), 0);
	took = xdpath_now_ms() - began;
	stop = true;
	for (int w = 0; w < 2; w++)
		assert_int_equal(pthread_join(thread[w], NULL), 0);
	for (int v = 0; v < 2; v++)
		decided[v] = statistic(v ? XDPATH_V_TX : XDPATH_V_DROP);
	print_message("# %u swaps in %llu ms, %llu packets dropped, %llu sent back\n", swaps,
		      (unsigned long long)took, (unsigned long long)decided[0],
		      (unsigned long long)decided[1]);
	assert_int_equal(load_of[0].mixed + load_of[1].mixed, 0);
	assert_int_equal(statistic(XDPATH_V_PASS) + statistic(XDPATH_V_KEPT), 0);
	assert_int_equal(statistic(XDPATH_V_COPIED) + statistic(XDPATH_V_UNCOPIED), decided[0]);
	assert_int_equal(decided[0] + decided[1], load_of[0].packets + load_of[1].packets);
	assert_true(decided[0] > 1000 && decided[1] > 1000);
	xdpath_rules_clear(&set_of[0]);
	xdpath_rules_clear(&set_of[1]);
}

/* ---- filters ---- */

static uint32_t run_id(uint32_t id, const struct frame *f)
{
	int fd = bpf_prog_get_fd_by_id(id);
	uint32_t action;

	assert_true(fd >= 0);
	action = run_prog(fd, f, 1);
	close(fd);
	return action;
}

static void put_rules(uint32_t *id)
{
	int err = xdpath_steer_put((int)if_nametoindex("xdpath0"), id, &rules, &diag);

	if (err)
		print_message("%s\n", diag.text);
	assert_int_equal(err, 0);
}

/* Filters bring a program of their own, which takes over with its rules; other rules do not. */
static void test_filters(void **state)
{
	struct xdpath_prog_opts o = XDPATH_OPTS_INIT(struct xdpath_prog_opts);
	struct xdpath_port port = {.name = "xdpath0"};
	struct xdpath_prog *g;
	uint32_t id, first;
	struct frame f;
	uint64_t bytes;

	(void)state;
	need_kernel();
	assert_int_equal(system("ip link add xdpath0 type veth peer name xdpath1"), 0);
	port.ifindex = (int)if_nametoindex(port.name);
	o.attach = XDPATH_ATTACH_NATIVE;
	o.diag = &diag;
	assert_int_equal(xdpath_prog_open(&g, &port, &o), 0);
	id = first = xdpath_prog_id(g);
	add("proto udp dport 60 action tx");			      /* 1 */
	add("filter \"udp port 53 and host 10.77.0.1\" action drop"); /* 2 */
	add("prio 50 filter \"greater 100\" action mirror 64");	      /* 3 */
	add("prio 60 filter \"udp[2:2] == 60\" action pass");	      /* 4, before 1 */
	assert_int_equal(xdpath_steer_set(id, &rules, &diag), -ENOEXEC);
	put_rules(&id);
	assert_int_not_equal(id, first);
	first = id;
	prog_id = id;
	udp(&f, 53, 10);
	assert_int_equal(run_id(id, &f), XDP_DROP);
	udp(&f, 60, 10);
	assert_int_equal(run_id(id, &f), XDP_PASS);
	udp(&f, 60, 90);
	assert_int_equal(run_id(id, &f), XDP_PASS);
	udp(&f, 53, 90);
	assert_int_equal(run_id(id, &f), XDP_DROP);
	assert_int_equal(counted(1, &bytes), 0);
	assert_int_equal(counted(2, &bytes), 2);
	assert_int_equal(counted(3, &bytes), 2);
	assert_int_equal(counted(4, &bytes), 2);
	/* The same filters: the same program. */
	add("proto udp dport 61 action tx"); /* 5 */
	put_rules(&id);
	assert_int_equal(id, first);
	udp(&f, 61, 10);
	assert_int_equal(run_id(id, &f), XDP_TX);
	assert_int_equal(counted(2, &bytes), 2);
	/* One less: another program, and 1 has its turn. */
	assert_int_equal(xdpath_rules_del(&rules, 4), 0);
	put_rules(&id);
	assert_int_not_equal(id, first);
	prog_id = id;
	udp(&f, 60, 10);
	assert_int_equal(run_id(id, &f), XDP_TX);
	assert_int_equal(counted(5, &bytes), 1);
	xdpath_prog_close(g);
	assert_int_equal(system("ip link del xdpath0"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		own_program(test_swap_is_atomic),
		own_program(test_filters),
	};

	return cmocka_run_group_tests_name("steer_swap", tests, set_up, NULL);
}
