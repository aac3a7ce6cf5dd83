/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * user/lib/prog.c against the kernel: attach, join, refuse by name, leave nothing behind. Needs
 * root; works on a veth pair in a network namespace of its own, which goes with the process.
 */
#include <errno.h>
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

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/if.h>

#include <xdpath/prog.h>
#include <xdpath/uapi.h>

#include "frames.h"
#include "pass.skel.h"
#include "sandbox.h"
#include "steer.skel.h"

static struct xdpath_port port = {.name = "xdpath0"};
static struct xdpath_diag diag;

static int set_up(void **state)
{
	(void)state;
	if (!sandbox())
		return 0;
	/* No IPv6 on them: its own frames would be counted. */
	if (system("ip link add xdpath0 type veth peer name xdpath1 && "
		   "ip link set xdpath0 addrgenmode none up && "
		   "ip link set xdpath1 addrgenmode none up"))
		missing = "no veth to be had";
	return 0;
}

static void need_port(void)
{
	need_kernel();
	port.ifindex = (int)if_nametoindex(port.name);
}

static int attach(struct xdpath_prog **g, enum xdpath_attach mode, enum xdpath_steer steer,
		  bool explicit)
{
	struct xdpath_prog_opts o = XDPATH_OPTS_INIT(struct xdpath_prog_opts);

	memset(&diag, 0, sizeof(diag));
	o.attach = mode;
	o.steer = steer;
	o.steer_explicit = explicit;
	o.diag = &diag;
	return xdpath_prog_open(g, &port, &o);
}

static struct xdpath_prog *must_attach(enum xdpath_attach mode)
{
	struct xdpath_prog *g;
	int err = attach(&g, mode, XDPATH_STEER_ALL, true);

	if (err)
		print_message("%s\n", diag.text);
	assert_int_equal(err, 0);
	assert_int_equal(diag.reason, XDPATH_R_NONE);
	return g;
}

/* The one program in place. */
static struct xdpath_prog_info there(void)
{
	struct xdpath_prog_info in[XDPATH_PROGS_MAX];

	assert_int_equal(xdpath_prog_query(port.ifindex, in), 1);
	return in[0];
}

static void nothing_there(void)
{
	struct xdpath_prog_info in[XDPATH_PROGS_MAX];

	assert_int_equal(xdpath_prog_query(port.ifindex, in), 0);
}

static void refused(enum xdpath_attach mode, enum xdpath_steer steer, const char *names)
{
	struct xdpath_prog *g = (struct xdpath_prog *)&port;

	assert_int_equal(attach(&g, mode, steer, true), -EBUSY);
	assert_null(g);
	assert_int_equal(diag.reason, XDPATH_R_PROG_CONFLICT);
	assert_int_equal(diag.err, EBUSY);
	if (!strstr(diag.text, names))
		print_message("\"%s\" lacks \"%s\"\n", diag.text, names);
	assert_non_null(strstr(diag.text, names));
	assert_null(strchr(diag.text, '\n'));
}

/* Does what the diagnosis says to do. */
static void take_the_cure(void)
{
	const char *cure = strrchr(diag.text, ';');

	assert_non_null(cure);
	assert_int_equal(system(cure + 1), 0);
	nothing_there();
}

static void test_open_and_close(void **state)
{
	static const enum xdpath_attach mode[] = {XDPATH_ATTACH_NATIVE, XDPATH_ATTACH_GENERIC};

	(void)state;
	need_port();
	for (int i = 0; i < 2; i++) {
		struct xdpath_prog *g = must_attach(mode[i]);
		struct xdpath_prog_info in = there();

		assert_int_equal(in.attach, mode[i]);
		assert_int_equal(in.id, xdpath_prog_id(g));
		assert_string_equal(in.name, "xdpath_steer");
		assert_int_not_equal(in.link_id, 0);
		assert_true(in.is_xdpath && in.layout_ok);
		assert_int_equal(in.layout, XDPATH_LAYOUT);
		assert_int_equal(in.owner_pid, getpid());
		assert_false(xdpath_prog_joined(g));
		assert_int_equal(xdpath_prog_steer(g), XDPATH_STEER_ALL);
		xdpath_prog_close(g);
		nothing_there();
	}
	xdpath_prog_close(NULL);
}

static void test_join(void **state)
{
	struct xdpath_prog *first, *second;
	uint32_t id;

	(void)state;
	need_port();
	first = must_attach(XDPATH_ATTACH_NATIVE);
	id = xdpath_prog_id(first);
	assert_int_equal(attach(&second, XDPATH_ATTACH_NATIVE, XDPATH_STEER_L2, false), 0);
	assert_true(xdpath_prog_joined(second));
	assert_int_equal(xdpath_prog_steer(second), XDPATH_STEER_ALL);
	assert_int_equal(xdpath_prog_id(second), id);
	xdpath_prog_close(first);
	assert_int_equal(there().id, id);
	first = must_attach(XDPATH_ATTACH_NATIVE); /* joins through a holder that joined */
	assert_int_equal(xdpath_prog_id(first), id);
	xdpath_prog_close(second);
	assert_int_equal(there().id, id);
	xdpath_prog_close(first);
	nothing_there();
}

static void test_refuses_other_mode_and_steering(void **state)
{
	struct xdpath_prog *g, *other;
	char pid[32];

	(void)state;
	need_port();
	g = must_attach(XDPATH_ATTACH_NATIVE);
	refused(XDPATH_ATTACH_GENERIC, XDPATH_STEER_ALL, "in native mode, not generic as asked");
	snprintf(pid, sizeof(pid), "end process %d (", getpid());
	refused(XDPATH_ATTACH_NATIVE, XDPATH_STEER_L2, pid);
	refused(XDPATH_ATTACH_NATIVE, XDPATH_STEER_L2, "all but ARP, ND and ICMP");
	assert_int_equal(there().id, xdpath_prog_id(g));
	xdpath_prog_close(g);
	nothing_there();
	assert_int_equal(attach(&other, XDPATH_ATTACH_NONE, XDPATH_STEER_ALL, true), -EINVAL);
	assert_int_equal(diag.reason, XDPATH_R_OPTIONS);
}

static void test_refuses_foreign_netlink(void **state)
{
	static const struct {
		enum xdpath_attach attach;
		uint32_t flag;
		const char *cure;
	} mode[] = {
		{XDPATH_ATTACH_NATIVE, XDP_FLAGS_DRV_MODE, "ip link set dev xdpath0 xdpdrv off"},
		{XDPATH_ATTACH_GENERIC, XDP_FLAGS_SKB_MODE,
		 "ip link set dev xdpath0 xdpgeneric off"},
	};
	struct pass_bpf *foreign;

	(void)state;
	need_port();
	foreign = pass_bpf__open_and_load();
	assert_non_null(foreign);
	for (int i = 0; i < 4; i++) {
		int fd = bpf_program__fd(foreign->progs.xdpath_pass);
		char id[32];

		assert_int_equal(bpf_xdp_attach(port.ifindex, fd, mode[i / 2].flag, NULL), 0);
		assert_false(there().is_xdpath);
		assert_int_equal(there().link_id, 0);
		refused(mode[i % 2].attach, XDPATH_STEER_ALL, "xdpath_pass (id ");
		snprintf(id, sizeof(id), "%u, %s, by netlink", there().id,
			 xdpath_attach_name(mode[i / 2].attach));
		refused(mode[i % 2].attach, XDPATH_STEER_ALL, id);
		refused(mode[i % 2].attach, XDPATH_STEER_ALL, mode[i / 2].cure);
		assert_int_equal(there().attach, mode[i / 2].attach);
		take_the_cure();
	}
	pass_bpf__destroy(foreign);
}

/* A child that attaches and waits; *told: the end of a pipe that closes once it is attached. */
static pid_t child_holding(bool foreign)
{
	int told[2];
	pid_t pid;
	char c = 0;

	assert_int_equal(pipe(told), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct xdpath_prog *g;
		struct pass_bpf *f = foreign ? pass_bpf__open_and_load() : NULL;
		LIBBPF_OPTS(bpf_link_create_opts, lo);
		int err;

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nobody behind */
		lo.flags = XDP_FLAGS_DRV_MODE;
		if (foreign)
			err = !f || bpf_link_create(bpf_program__fd(f->progs.xdpath_pass),
						    port.ifindex, BPF_XDP, &lo) < 0;
		else
			err = attach(&g, XDPATH_ATTACH_NATIVE, XDPATH_STEER_ALL, true);
		c = err ? 'n' : 'y';
		err = write(told[1], &c, 1) != 1;
		close(told[0]);
		pause();
		_exit(err);
	}
	assert_int_equal(read(told[0], &c, 1), 1);
	assert_int_equal(c, 'y');
	close(told[0]);
	close(told[1]);
	return pid;
}

static void kill_child(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_refuses_foreign_link(void **state)
{
	char cure[64];
	pid_t pid;

	(void)state;
	need_port();
	pid = child_holding(true);
	snprintf(cure, sizeof(cure), "; end process %d (", pid);
	refused(XDPATH_ATTACH_NATIVE, XDPATH_STEER_ALL, cure);
	refused(XDPATH_ATTACH_GENERIC, XDPATH_STEER_ALL, "xdpath_pass (id ");
	refused(XDPATH_ATTACH_GENERIC, XDPATH_STEER_ALL, "native, by bpf_link ");
	kill_child(pid);
	nothing_there();
}

static void test_killed_holder_leaves_nothing(void **state)
{
	(void)state;
	need_port();
	for (int i = 0; i < 10; i++) {
		struct xdpath_prog *g;
		pid_t pid = child_holding(false);

		if (i % 2) { /* joined: stays until this one goes too */
			g = must_attach(XDPATH_ATTACH_NATIVE);
			assert_true(xdpath_prog_joined(g));
			assert_int_equal(there().owner_pid, pid);
			kill_child(pid);
			assert_int_equal(there().id, xdpath_prog_id(g));
			xdpath_prog_close(g);
		} else {
			kill_child(pid);
		}
		nothing_there();
	}
}

/* The holder is being killed while we open: join it, or attach anew, but never fail or be left with
 * nothing attached. */
static void test_open_while_holder_dies(void **state)
{
	(void)state;
	need_port();
	for (int i = 0; i < 30; i++) {
		pid_t pid = child_holding(false);
		struct xdpath_prog *g;

		assert_int_equal(kill(pid, SIGKILL), 0);
		g = must_attach(XDPATH_ATTACH_NATIVE);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(there().id, xdpath_prog_id(g));
		assert_int_not_equal(there().link_id, 0);
		xdpath_prog_close(g);
		nothing_there();
	}
}

/* As another loader leaves it: zeros in all maps, attached by netlink. */
static struct steer_bpf *load_kept(const struct xdpath_meta *meta, enum xdpath_steer steer)
{
	struct steer_bpf *s = steer_bpf__open_and_load();
	struct xdpath_config config = {.steer = steer};
	uint32_t zero = 0;

	assert_non_null(s);
	if (meta)
		assert_int_equal(bpf_map_update_elem(bpf_map__fd(s->maps.xdpath_meta), &zero, meta,
						     0),
				 0);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(s->maps.xdpath_config), &zero, &config, 0),
			 0);
	assert_int_equal(bpf_xdp_attach(port.ifindex, bpf_program__fd(s->progs.xdpath_steer),
					XDP_FLAGS_SKB_MODE, NULL),
			 0);
	return s;
}

static void test_joins_kept(void **state)
{
	struct xdpath_meta meta;
	struct steer_bpf *s;
	struct xdpath_prog *g;
	uint32_t zero = 0;

	(void)state;
	need_port();
	s = load_kept(NULL, XDPATH_STEER_NONE);
	assert_true(there().is_xdpath && there().layout_ok);
	refused(XDPATH_ATTACH_NATIVE, XDPATH_STEER_ALL, "xdpgeneric off");
	g = must_attach(XDPATH_ATTACH_GENERIC); /* nobody had set it up: the first user does */
	assert_false(xdpath_prog_joined(g));
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(s->maps.xdpath_meta), &zero, &meta), 0);
	assert_int_equal(meta.magic, XDPATH_MAGIC);
	assert_int_equal(meta.layout, XDPATH_LAYOUT);
	xdpath_prog_close(g);
	assert_int_equal(there().owner_pid, getpid());
	assert_int_equal(attach(&g, XDPATH_ATTACH_GENERIC, XDPATH_STEER_L2, false), 0);
	assert_true(xdpath_prog_joined(g)); /* now its steering holds */
	assert_int_equal(xdpath_prog_steer(g), XDPATH_STEER_ALL);
	xdpath_prog_close(g);
	refused(XDPATH_ATTACH_GENERIC, XDPATH_STEER_L2, "xdpgeneric off");
	take_the_cure();
	steer_bpf__destroy(s);
}

static void test_refuses_other_layout(void **state)
{
	struct xdpath_meta meta = {.magic = XDPATH_MAGIC, .layout = 99};
	struct steer_bpf *s;

	(void)state;
	need_port();
	s = load_kept(&meta, XDPATH_STEER_ALL);
	assert_true(there().is_xdpath);
	assert_false(there().layout_ok);
	refused(XDPATH_ATTACH_GENERIC, XDPATH_STEER_ALL, "layout 99");
	take_the_cure();
	steer_bpf__destroy(s);
	meta.magic = 1; /* somebody else's map of that name */
	s = load_kept(&meta, XDPATH_STEER_ALL);
	assert_false(there().is_xdpath);
	refused(XDPATH_ATTACH_GENERIC, XDPATH_STEER_ALL, "is in place");
	take_the_cure();
	steer_bpf__destroy(s);
}

/* The driver's refusal comes with the kernel's own words, and nothing stays. */
static void test_kernel_says_why(void **state)
{
	struct xdpath_prog *g;

	(void)state;
	need_port();
	assert_int_equal(
		system("ip link add xdpath2 numrxqueues 1 numtxqueues 1 type veth peer name "
		       "xdpath3 numrxqueues 4 numtxqueues 4"),
		0);
	port.ifindex = (int)if_nametoindex("xdpath2");
	assert_int_equal(attach(&g, XDPATH_ATTACH_NATIVE, XDPATH_STEER_ALL, true), -ENOSPC);
	assert_null(g);
	assert_int_equal(diag.reason, XDPATH_R_REFUSED);
	assert_non_null(strstr(diag.text, "queues, "));
	assert_null(strstr(diag.text, strerror(ENOSPC)));
	nothing_there();
	port.ifindex = (int)if_nametoindex("lo");
	assert_int_equal(attach(&g, XDPATH_ATTACH_NATIVE, XDPATH_STEER_ALL, true), -EOPNOTSUPP);
	assert_int_equal(diag.reason, XDPATH_R_NO_NATIVE);
	assert_null(strstr(diag.text, strerror(EOPNOTSUPP)));
	nothing_there();
	port.ifindex = 12345;
	assert_int_equal(attach(&g, XDPATH_ATTACH_NATIVE, XDPATH_STEER_ALL, true), -ENODEV);
	assert_int_equal(diag.reason, XDPATH_R_NO_DEVICE);
	assert_int_equal(system("ip link del xdpath2"), 0);
}

static void send_frames(const struct frame *f, int n)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET,
				 .sll_ifindex = (int)if_nametoindex("xdpath1")};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	for (int i = 0; i < n; i++)
		assert_int_equal(sendto(fd, f->b, f->len, 0, (struct sockaddr *)&to, sizeof(to)),
				 f->len);
	close(fd);
}

static void test_slots_and_counters(void **state)
{
	struct xdpath_verdict_count c[XDPATH_V_COUNT];
	struct xdpath_prog *g, *second;
	struct frame f;
	int fd;

	(void)state;
	need_port();
	g = must_attach(XDPATH_ATTACH_GENERIC);
	second = must_attach(XDPATH_ATTACH_GENERIC);
	fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(xdpath_prog_set_socket(second, 0, fd), 0);
	assert_int_equal(xdpath_prog_set_socket(g, 255, fd), 0);
	assert_int_equal(xdpath_prog_set_socket(g, 256, fd), -EINVAL);
	assert_int_equal(xdpath_prog_clear_socket(g, 0), 0);
	assert_int_equal(xdpath_prog_clear_socket(g, 0), 0); /* empty already */
	assert_int_equal(xdpath_prog_clear_socket(g, 256), -EINVAL);
	close(fd);
	frame_v4(&f, 0, 0, 17);
	send_frames(&f, 20);
	frame_arp(&f, 0, 0);
	send_frames(&f, 10);
	/* What is sent to a veth is taken up by a softirq: in time, not at once. */
	for (int i = 0; i < 200; i++) {
		assert_int_equal(xdpath_prog_counters(second, c), 0);
		if (c[XDPATH_V_KEPT].packets == 10)
			break;
		usleep(5000);
	}
	assert_int_equal(c[XDPATH_V_KEPT].packets, 10);
	assert_int_equal(c[XDPATH_V_KEPT].bytes, 10 * f.len);
	assert_int_equal(c[XDPATH_V_NO_SOCKET].packets, 20);
	assert_int_equal(c[XDPATH_V_NO_SOCKET].bytes, 20 * 50);
	assert_int_equal(c[XDPATH_V_XSK].packets, 0);
	assert_int_equal(c[XDPATH_V_PASS].packets, 0);
	xdpath_prog_close(g);
	xdpath_prog_close(second);
	nothing_there();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_and_close),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_refuses_other_mode_and_steering),
		cmocka_unit_test(test_refuses_foreign_netlink),
		cmocka_unit_test(test_refuses_foreign_link),
		cmocka_unit_test(test_killed_holder_leaves_nothing),
		cmocka_unit_test(test_open_while_holder_dies),
		cmocka_unit_test(test_joins_kept),
		cmocka_unit_test(test_refuses_other_layout),
		cmocka_unit_test(test_kernel_says_why),
		cmocka_unit_test(test_slots_and_counters),
	};

	return cmocka_run_group_tests_name("prog", tests, set_up, NULL);
}
