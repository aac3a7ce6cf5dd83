/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * user/lib/prog_{keep,detach,replace}.c against the kernel: what is attached stays, goes in any
 * form and mode, and is replaced without a packet lost. Needs root; works on a veth pair in a
 * network namespace of its own, which goes with the process.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/if.h>

#include <xdpath/prog.h>

#include "frames.h"
#include "pass.skel.h"
#include "sandbox.h"

static struct xdpath_port port = {.name = "xdpath0"};
static struct xdpath_diag diag;

static int set_up(void **state)
{
	(void)state;
	if (sandbox() && system("ip link add xdpath0 type veth peer name xdpath1 && "
				"ip link set xdpath0 addrgenmode none up && "
				"ip link set xdpath1 addrgenmode none up"))
		missing = "no veth to be had";
	port.ifindex = (int)if_nametoindex(port.name);
	return 0;
}

static void need_port(void)
{
	need_kernel();
	memset(&diag, 0, sizeof(diag));
}

static int attach(enum xdpath_attach mode, struct xdpath_prog_info *in)
{
	struct xdpath_attach_opts o = XDPATH_OPTS_INIT(struct xdpath_attach_opts);

	o.attach = mode;
	o.steer = XDPATH_STEER_L2;
	o.diag = &diag;
	return xdpath_prog_attach(&port, &o, in);
}

static int detach(uint32_t id, bool force)
{
	struct xdpath_detach_opts o = XDPATH_OPTS_INIT(struct xdpath_detach_opts);
	struct xdpath_prog_info gone[XDPATH_PROGS_MAX];

	o.id = id;
	o.force = force;
	o.diag = &diag;
	return xdpath_prog_detach(&port, &o, gone);
}

static int replace(uint32_t id, const void *image, size_t size, uint32_t *new_id)
{
	struct xdpath_replace_opts o = XDPATH_OPTS_INIT(struct xdpath_replace_opts);

	o.image = image;
	o.size = size;
	o.diag = &diag;
	return xdpath_prog_replace(port.ifindex, id, &o, new_id);
}

static int count(void)
{
	struct xdpath_prog_info in[XDPATH_PROGS_MAX];

	return xdpath_prog_query(port.ifindex, in);
}

static void test_attach_and_detach(void **state)
{
	static const enum xdpath_attach mode[] = {XDPATH_ATTACH_NONE, XDPATH_ATTACH_NATIVE,
						  XDPATH_ATTACH_GENERIC};
	struct xdpath_prog_info in, again;

	(void)state;
	need_port();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(attach(mode[i], &in), 0);
		assert_int_equal(in.attach, mode[i] ? mode[i] : XDPATH_ATTACH_NATIVE);
		assert_true(in.is_xdpath && in.layout_ok && !in.own && !in.link_id);
		assert_int_equal(attach(mode[i], &again), -EEXIST);
		assert_int_equal(diag.reason, XDPATH_R_PROG_CONFLICT);
		assert_int_equal(detach(in.id + 1, false), -ENOENT);
		assert_int_equal(detach(0, false), 1);
		assert_int_equal(count(), 0);
		assert_int_equal(detach(0, false), 0);
	}
	port.ifindex = 12345;
	assert_int_equal(attach(XDPATH_ATTACH_NATIVE, &in), -ENODEV);
	port.ifindex = (int)if_nametoindex(port.name);
}

/* By link and by netlink, in both modes: only what is forced goes. */
static void test_foreign(void **state)
{
	static const uint32_t flag[] = {XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE};
	struct xdpath_prog_info in;
	struct pass_bpf *foreign;

	(void)state;
	need_port();
	foreign = pass_bpf__open_and_load();
	assert_non_null(foreign);
	for (int i = 0; i < 4; i++) {
		LIBBPF_OPTS(bpf_link_create_opts, lo, .flags = flag[i % 2]);
		int fd = bpf_program__fd(foreign->progs.xdpath_pass), link = -1;

		if (i < 2)
			assert_int_equal(bpf_xdp_attach(port.ifindex, fd, flag[i % 2], NULL), 0);
		else
			link = bpf_link_create(fd, port.ifindex, BPF_XDP, &lo);
		assert_int_equal(attach(XDPATH_ATTACH_NONE, &in), -EBUSY);
		assert_int_equal(detach(0, false), -EPERM);
		assert_int_equal(diag.reason, XDPATH_R_PROG_CONFLICT);
		assert_int_equal(count(), 1);
		assert_int_equal(detach(0, true), 1);
		assert_int_equal(count(), 0);
		if (link >= 0)
			close(link);
	}
	pass_bpf__destroy(foreign);
}

/* ---- a sender that counts ---- */

struct sender {
	pid_t pid;
	int stop, told;
};

/* Paced, so that the device drops none: what the program did not count was lost by us. */
static void send_until_told(int stop, int told)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET,
				 .sll_ifindex = (int)if_nametoindex("xdpath1")};
	struct pollfd end = {.fd = stop, .events = POLLIN};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	uint64_t sent = 0;
	struct frame f;

	frame_v4(&f, 0, 0, 17);
	while (poll(&end, 1, 1) == 0)
		for (int i = 0; i < 32; i++)
			sent += sendto(fd, f.b, f.len, 0, (struct sockaddr *)&to, sizeof(to)) ==
				(ssize_t)f.len;
	_exit(write(told, &sent, sizeof(sent)) != sizeof(sent));
}

static struct sender start_sender(void)
{
	struct sender s;
	int stop[2], told[2];

	assert_int_equal(pipe(stop), 0);
	assert_int_equal(pipe(told), 0);
	s.pid = fork();
	assert_true(s.pid >= 0);
	if (!s.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		send_until_told(stop[0], told[1]);
	}
	close(stop[0]);
	close(told[1]);
	s.stop = stop[1];
	s.told = told[0];
	return s;
}

static uint64_t stop_sender(const struct sender *s)
{
	uint64_t sent = 0;

	assert_int_equal(write(s->stop, "", 1), 1);
	assert_int_equal(read(s->told, &sent, sizeof(sent)), sizeof(sent));
	assert_int_equal(waitpid(s->pid, NULL, 0), s->pid);
	close(s->stop);
	close(s->told);
	return sent;
}

static uint64_t counted(uint32_t id)
{
	struct xdpath_prog_state st;
	uint64_t n = 0;

	assert_int_equal(xdpath_prog_read(id, &st), 0);
	for (int v = 0; v < XDPATH_V_COUNT; v++)
		n += st.verdict[v].packets;
	return n;
}

/* Under traffic: each packet meets exactly one program, and they share their counters. */
static void replace_many(uint32_t id, int times)
{
	uint32_t first = id, next;
	struct sender s = start_sender();
	uint64_t sent, got = 0;

	for (int i = 0; i < times; i++) {
		assert_int_equal(replace(id, NULL, 0, &next), 0);
		assert_int_not_equal(next, id);
		id = next;
	}
	sent = stop_sender(&s);
	for (int i = 0; i < 200 && got < sent; i++) { /* what is sent is taken up by a softirq */
		usleep(5000);
		got = counted(id);
	}
	print_message("%d replaces: %llu packets sent, %llu counted\n", times,
		      (unsigned long long)sent, (unsigned long long)got);
	assert_int_equal(got, sent);
	assert_true(sent > 300);
	assert_int_equal(replace(first, NULL, 0, &next), -ENOENT);
}

static void test_replaces_kept(void **state)
{
	static const enum xdpath_attach mode[] = {XDPATH_ATTACH_NATIVE, XDPATH_ATTACH_GENERIC};
	struct xdpath_prog_info in;

	(void)state;
	need_port();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(attach(mode[i], &in), 0);
		replace_many(in.id, mode[i] == XDPATH_ATTACH_NATIVE ? 50 : 10);
		assert_int_equal(count(), 1);
		assert_int_equal(detach(0, false), 1);
	}
}

static void test_replaces_run(void **state)
{
	struct xdpath_prog_opts o = XDPATH_OPTS_INIT(struct xdpath_prog_opts);
	struct xdpath_prog_info in[XDPATH_PROGS_MAX];
	struct xdpath_verdict_count c[XDPATH_V_COUNT];
	struct xdpath_prog *g;
	int fd;

	(void)state;
	need_port();
	o.attach = XDPATH_ATTACH_NATIVE;
	o.steer = XDPATH_STEER_L2;
	o.diag = &diag;
	assert_int_equal(xdpath_prog_open(&g, &port, &o), 0);
	replace_many(xdpath_prog_id(g), 50);
	assert_int_equal(xdpath_prog_query(port.ifindex, in), 1);
	assert_int_not_equal(in[0].link_id, 0);
	assert_int_equal(in[0].meta_id,
			 xdpath_prog_meta_id(g)); /* so it is known as its successor */
	fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	assert_int_equal(xdpath_prog_set_socket(g, 0, fd), 0); /* the handle still serves */
	assert_int_equal(xdpath_prog_counters(g, c), 0);
	close(fd);
	xdpath_prog_close(g);
	assert_int_equal(count(), 0);
}

/* In a dispatcher old and new run together for a moment: none passes by, some count twice. */
static void test_replaces_beside(void **state)
{
	struct xdpath_attach_opts o = XDPATH_OPTS_INIT(struct xdpath_attach_opts);
	struct xdpath_prog_info in;
	struct sender s;
	uint64_t sent, got = 0;
	uint32_t id;
	int err;

	(void)state;
	need_port();
	o.attach = XDPATH_ATTACH_NATIVE;
	o.steer = XDPATH_STEER_L2;
	o.beside = true;
	o.diag = &diag;
	err = xdpath_prog_attach(&port, &o, &in);
	if (err == -EOPNOTSUPP) {
		print_message("skipped: %s\n", diag.text);
		assert_int_equal(count(), 0);
		skip();
	}
	assert_int_equal(err, 0);
	assert_int_not_equal(in.dispatcher_id, 0);
	id = in.id;
	s = start_sender();
	for (int i = 0; i < 3; i++)
		assert_int_equal(replace(id, NULL, 0, &id), 0);
	sent = stop_sender(&s);
	for (int i = 0; i < 200 && got < sent; i++) {
		usleep(5000);
		got = counted(id);
	}
	print_message("beside: %llu packets sent, %llu counted\n", (unsigned long long)sent,
		      (unsigned long long)got);
	assert_true(got >= sent && sent > 0);
	assert_int_equal(count(), 2); /* the dispatcher too */
	assert_int_equal(detach(0, false), 1);
	assert_int_equal(count(), 0);
}

/* What cannot take its place leaves it in place. */
static void test_replace_refused(void **state)
{
	static const char garbage[64] = "garbage";
	struct xdpath_prog_info in, list[XDPATH_PROGS_MAX];
	struct pass_bpf *foreign;
	uint32_t id;

	(void)state;
	need_port();
	foreign = pass_bpf__open_and_load();
	assert_non_null(foreign);
	assert_int_equal(attach(XDPATH_ATTACH_NATIVE, &in), 0);
	assert_true(replace(in.id, garbage, sizeof(garbage), &id) < 0);
	assert_int_equal(replace(in.id + 1000000, NULL, 0, &id), -ENOENT);
	assert_int_equal(count(), 1);
	assert_int_equal(detach(in.id, false), 1);
	assert_int_equal(bpf_xdp_attach(port.ifindex, bpf_program__fd(foreign->progs.xdpath_pass),
					XDP_FLAGS_DRV_MODE, NULL),
			 0);
	assert_int_equal(xdpath_prog_query(port.ifindex, list), 1);
	assert_int_equal(replace(list[0].id, NULL, 0, &id), -EPROTO);
	assert_int_equal(detach(list[0].id, true), 1);
	pass_bpf__destroy(foreign);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attach_and_detach), cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_replaces_kept),	  cmocka_unit_test(test_replaces_run),
		cmocka_unit_test(test_replaces_beside),	  cmocka_unit_test(test_replace_refused),
	};

	return cmocka_run_group_tests_name("attach", tests, set_up, NULL);
}
