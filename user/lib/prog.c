/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The steering program in its run form: attach it by a bpf_link of our own, or join one that is
 * there; sockets in and out of its slots; its counters.
 *
 * Called by datapath.c and the verbs. A handle owns descriptors of the link and of the maps,
 * nothing else: the kernel detaches the program with the link's last descriptor, however its holder
 * ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "prog_find.h"
#include "steer.skel.h"

/* Programs come and go between question and answer; a dying one is gone within this. */
enum { TRIES = 200, TRY_WAIT_MS = 10 };

struct xdpath_prog {
	struct xdpath_maps maps;
	int link_fd; /* -1: joined a program that is held by netlink */
	uint32_t id;
	bool joined;
	enum xdpath_steer steer;
};

/* One xdpath_prog_open() under way. */
struct opening {
	struct xdpath_prog *g;
	const struct xdpath_port *port;
	struct xdpath_prog_opts o;
	bool undone; /* netlink took what the link had refused: once is chance */
};

static void wait_a_little(void)
{
	struct timespec t = {.tv_nsec = TRY_WAIT_MS * 1000000L};

	nanosleep(&t, NULL);
}

static void release(struct xdpath_prog *g)
{
	xdpath_maps_close(&g->maps);
	if (g->link_fd >= 0)
		close(g->link_fd);
	g->link_fd = -1;
}

/* ---- what a refusal means ---- */

static int fail_attach(const struct opening *a, int err, const char *ext)
{
	const char *dev = a->port->name;
	struct xdpath_diag *d = a->o.diag;
	const char *mode = xdpath_attach_name(a->o.attach);
	bool native = a->o.attach == XDPATH_ATTACH_NATIVE;
	const char *why = ext[0] ? ext : strerror(err);

	if (err == EPERM)
		return xdpath_fail(
			d, XDPATH_R_PERMISSION, err,
			"attach to %s: not permitted; run as root (CAP_NET_ADMIN and CAP_BPF, "
			"and CAP_SYS_ADMIN to join a program that is there)",
			dev);
	if (err == ENODEV)
		return xdpath_fail(d, XDPATH_R_NO_DEVICE, err,
				   "attach to %s: the interface is gone; see `ip link`", dev);
	/* drivers say so too when they lack a TX ring for each CPU: generic mode may still work */
	if (err == ENOMEM)
		return xdpath_fail(d, native ? XDPATH_R_REFUSED : XDPATH_R_MEMORY, err,
				   "attach to %s in %s mode: %s; free memory, use fewer queues "
				   "(`ethtool -L`)%s",
				   dev, mode, why, native ? " or take generic mode" : "");
	if (err == ERANGE || strstr(ext, "MTU"))
		return xdpath_fail(d, XDPATH_R_MTU, err,
				   "attach to %s in %s mode: %s; lower the MTU (a veth's peer's)%s",
				   dev, mode, why, native ? " or take generic mode" : "");
	if (err == EOPNOTSUPP && native)
		return xdpath_fail(d, XDPATH_R_NO_NATIVE, err,
				   "attach to %s in native mode: %s; take generic mode", dev, why);
	if (err == EBUSY || err == EEXIST)
		return xdpath_fail(d, XDPATH_R_PROG_CONFLICT, err,
				   "attach to %s in %s mode: %s; another program keeps coming and "
				   "going, see `bpftool net show dev %s`",
				   dev, mode, why, dev);
	if (err == ENOSPC && native)
		return xdpath_fail(
			d, XDPATH_R_REFUSED, err,
			"attach to %s in native mode: %s; give it as many RX queues as its "
			"peer has TX queues, or take generic mode",
			dev, why);
	return xdpath_fail(d, XDPATH_R_REFUSED, err, "attach to %s in %s mode: %s; %s", dev, mode,
			   why,
			   native ? "change what it names or take generic mode"
				  : "change what it names");
}

static int fail_load(const struct opening *a, int err)
{
	if (err == EPERM)
		return fail_attach(a, err, "");
	if (err == ENOMEM)
		return xdpath_fail(a->o.diag, XDPATH_R_MEMORY, err,
				   "load the steering program: no memory; free some");
	return xdpath_fail(a->o.diag, XDPATH_R_KERNEL, err,
			   "load the steering program: %s; a kernel of 5.18 or later with BPF and "
			   "AF_XDP is needed",
			   strerror(err));
}

/* A program in the way, by name, and why it is. -EAGAIN if it has gone by itself meanwhile. */
static int fail_taken(const struct opening *a, const struct xdpath_prog_info *in, const char *why)
{
	char what[96], cure[96];

	release(a->g); /* or we should be found as the holder */
	xdpath_prog_describe(in, what, sizeof(what));
	xdpath_prog_cure(in, a->port->name, cure, sizeof(cure));
	xdpath_fail(a->o.diag, XDPATH_R_PROG_CONFLICT, EBUSY, "attach to %s: %s %s; %s",
		    a->port->name, what, why, cure);
	return xdpath_prog_still_there(a->port->ifindex, in) ? -EBUSY : -EAGAIN;
}

/* ---- attach our own ---- */

static int take_fds(struct xdpath_prog *g, const struct steer_bpf *s)
{
	const struct bpf_map *const map[MAP_COUNT] = {
		[MAP_META] = s->maps.xdpath_meta,
		[MAP_CONFIG] = s->maps.xdpath_config,
		[MAP_STATS] = s->maps.xdpath_stats,
		[MAP_XSKS] = s->maps.xsks_map,
	};

	for (int i = 0; i < MAP_COUNT; i++) {
		g->maps.fd[i] = fcntl(bpf_map__fd(map[i]), F_DUPFD_CLOEXEC, 0);
		if (g->maps.fd[i] < 0)
			return -errno;
	}
	return 0;
}

static int write_meta(const struct xdpath_maps *m)
{
	struct xdpath_meta meta = {.magic = XDPATH_MAGIC,
				   .layout = XDPATH_LAYOUT,
				   .owner_pid = (uint32_t)getpid()};
	uint32_t zero = 0;

	return bpf_map_update_elem(m->fd[MAP_META], &zero, &meta, BPF_ANY);
}

static int write_steer(const struct xdpath_maps *m, enum xdpath_steer steer)
{
	struct xdpath_config config = {.steer = steer};
	uint32_t zero = 0;

	return bpf_map_update_elem(m->fd[MAP_CONFIG], &zero, &config, BPF_ANY);
}

/*
 * A refused link carries no reason. Ask by netlink, which gives one; should that succeed, undo it
 * (guarded by the program, so that nobody else's goes) and have the link tried again.
 */
static int ask_reason(struct opening *a, int prog_fd, int err)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, guard);
	uint32_t flag = xdpath_attach_flag(a->o.attach);
	char ext[160] = "";
	int again = xdpath_nl_set_xdp(a->port->ifindex, prog_fd, flag | XDP_FLAGS_UPDATE_IF_NOEXIST,
				      ext, sizeof(ext));

	if (again) /* of an interface that went, the link says EINVAL */
		return fail_attach(a, again == -ENODEV ? ENODEV : err, ext);
	guard.old_prog_fd = prog_fd;
	bpf_xdp_detach(a->port->ifindex, flag, &guard);
	fail_attach(a, err, "");
	again = a->undone ? -err : -EAGAIN;
	a->undone = true;
	return again;
}

/* Load, configure, attach. -EAGAIN: look again, someone was faster. */
static int attach_loaded(struct opening *a, struct steer_bpf *s)
{
	LIBBPF_OPTS(bpf_link_create_opts, lo);
	int prog_fd = bpf_program__fd(s->progs.xdpath_steer);
	struct bpf_prog_info info = {0};
	struct xdpath_prog *g = a->g;
	uint32_t len = sizeof(info);
	int err;

	err = take_fds(g, s);
	if (!err)
		err = write_meta(&g->maps);
	if (!err)
		err = write_steer(&g->maps, a->o.steer);
	if (!err)
		err = bpf_obj_get_info_by_fd(prog_fd, &info, &len);
	if (err)
		return fail_load(a, -err);
	lo.flags = xdpath_attach_flag(a->o.attach);
	g->link_fd = bpf_link_create(prog_fd, a->port->ifindex, BPF_XDP, &lo);
	if (g->link_fd < 0) {
		err = -g->link_fd;
		if (err == EBUSY || err == EEXIST) {
			fail_attach(a, err, "");
			return -EAGAIN;
		}
		return ask_reason(a, prog_fd, err);
	}
	g->id = info.id;
	g->steer = a->o.steer;
	g->joined = false;
	return 0;
}

static int attach_own(struct opening *a)
{
	struct steer_bpf *s = steer_bpf__open_and_load();
	int err;

	if (!s)
		return fail_load(a, errno);
	err = attach_loaded(a, s);
	steer_bpf__destroy(s); /* the link and our descriptors keep what is needed */
	return err;
}

/* ---- join what is there ---- */

/* Hold the link too. 0; -EAGAIN while the program is on its way in or out. */
static int hold_link(struct xdpath_prog *g, int ifindex, struct xdpath_prog_info *in)
{
	int held;

	in->link_id = 0;
	g->link_fd = xdpath_link_find(ifindex, in->id, &in->link_id);
	if (g->link_fd >= 0)
		return 0;
	if (g->link_fd != -ENOENT)
		return g->link_fd;
	held = xdpath_held_by_link(ifindex, in->attach);
	if (held < 0)
		return held;
	/* By netlink, then; which holds nothing for us: it may have gone meanwhile. */
	return held || !xdpath_prog_still_there(ifindex, in) ? -EAGAIN : 0;
}

static int steer_differs(const struct opening *a, const struct xdpath_prog_info *in,
			 enum xdpath_steer there)
{
	static const char *const word[] = {"nothing", "all but ARP, ND and ICMP", "everything"};
	char why[128];

	snprintf(why, sizeof(why), "sends %s to user space, not %s as asked",
		 there <= XDPATH_STEER_L2 ? word[there] : "what is unknown here", word[a->o.steer]);
	return fail_taken(a, in, why);
}

/* The steering that holds: the program's own, or ours where nobody has set any yet. */
static int settle_steer(struct opening *a, const struct xdpath_prog_info *in)
{
	struct xdpath_maps *m = &a->g->maps;
	struct xdpath_config config;
	uint32_t zero = 0;
	int err = bpf_map_lookup_elem(m->fd[MAP_CONFIG], &zero, &config);

	a->g->joined = true;
	if (!err && m->fresh) {
		err = write_meta(m);
		if (!err && config.steer == XDPATH_STEER_NONE && a->o.steer) {
			err = write_steer(m, a->o.steer);
			config.steer = a->o.steer;
			a->g->joined = false;
		}
	}
	if (err)
		return xdpath_fail(a->o.diag, XDPATH_R_REFUSED, -err,
				   "attach to %s: maps of program %u: %s; try again", a->port->name,
				   in->id, strerror(-err));
	if (a->o.steer_explicit && config.steer != a->o.steer)
		return steer_differs(a, in, config.steer);
	a->g->steer = config.steer;
	return 0;
}

static int join_held(struct opening *a, const struct xdpath_prog_info *in)
{
	char why[128];
	int err;

	if (!a->g->maps.layout_ok) {
		snprintf(why, sizeof(why),
			 "is xdpath's with map layout %u, this library's is %d, or its maps differ",
			 a->g->maps.layout, XDPATH_LAYOUT);
		return fail_taken(a, in, why);
	}
	if (in->attach != a->o.attach) {
		snprintf(why, sizeof(why), "is xdpath's, in %s mode, not %s as asked",
			 xdpath_attach_name(in->attach), xdpath_attach_name(a->o.attach));
		return fail_taken(a, in, why);
	}
	err = settle_steer(a, in);
	if (err)
		return err;
	a->g->id = in->id;
	return xdpath_prog_still_there(a->port->ifindex, in) ? 0 : -EAGAIN;
}

static int join(struct opening *a, struct xdpath_prog_info *in)
{
	int fd = bpf_prog_get_fd_by_id(in->id);
	int err = fd < 0 ? fd : 0;

	if (!err && !in->is_xdpath) {
		close(fd);
		return fail_taken(a, in, "is in place");
	}
	if (!err)
		err = hold_link(a->g, a->port->ifindex, in);
	if (!err)
		err = xdpath_maps_open(&a->g->maps, fd);
	if (fd >= 0)
		close(fd);
	if (err == -EAGAIN || err == -ENOENT) {
		fail_taken(a, in, "comes and goes");
		return -EAGAIN;
	}
	return err ? fail_attach(a, -err, "") : join_held(a, in);
}

/* ---- open and close ---- */

static int open_once(struct opening *a)
{
	struct xdpath_prog_info there[XDPATH_PROGS_MAX];
	int n = xdpath_prog_query(a->port->ifindex, there);

	if (n == -ENOENT || n == -EINTR) {
		fail_attach(a, -n, "");
		return -EAGAIN;
	}
	if (n < 0)
		return fail_attach(a, -n, "");
	for (int i = 0; i < n; i++)
		if (there[i].attach != XDPATH_ATTACH_OFFLOAD) /* in the NIC, in nobody's way */
			return join(a, &there[i]);
	return attach_own(a);
}

static int check(const struct xdpath_port *p, const struct xdpath_prog_opts *o)
{
	if (!p || !o || xdpath_opts_check(o, o->sz, sizeof(*o)))
		return -EINVAL;
	if (o->attach != XDPATH_ATTACH_NATIVE && o->attach != XDPATH_ATTACH_GENERIC)
		return xdpath_fail(o->diag, XDPATH_R_OPTIONS, EINVAL,
				   "attach to %s: mode %s; ask for native or generic", p->name,
				   xdpath_attach_name(o->attach));
	if ((unsigned int)o->steer > XDPATH_STEER_L2)
		return xdpath_fail(
			o->diag, XDPATH_R_OPTIONS, EINVAL,
			"attach to %s: steering %u is unknown; take one of enum xdpath_steer",
			p->name, (unsigned int)o->steer);
	return 0;
}

int xdpath_prog_open(struct xdpath_prog **out, const struct xdpath_port *p,
		     const struct xdpath_prog_opts *o)
{
	struct opening a = {.port = p};
	libbpf_print_fn_t print;
	int err;

	*out = NULL;
	err = check(p, o);
	if (err)
		return err;
	a.g = calloc(1, sizeof(*a.g));
	if (!a.g)
		return xdpath_fail(o->diag, XDPATH_R_MEMORY, ENOMEM,
				   "attach to %s: no memory; free some", p->name);
	a.g->link_fd = -1;
	for (int i = 0; i < MAP_COUNT; i++)
		a.g->maps.fd[i] = -1;
	memcpy(&a.o, o, o->sz < sizeof(a.o) ? o->sz : sizeof(a.o));
	print = libbpf_set_print(NULL); /* what it would print is told by the diagnosis */
	for (int i = 0; i < TRIES; i++) {
		err = open_once(&a);
		if (err != -EAGAIN)
			break;
		release(a.g);
		wait_a_little();
	}
	libbpf_set_print(print);
	if (err) {
		release(a.g);
		free(a.g);
		return err == -EAGAIN ? -EBUSY : err;
	}
	if (a.o.diag)
		*a.o.diag = (struct xdpath_diag){0}; /* what earlier tries left there */
	*out = a.g;
	return 0;
}

void xdpath_prog_close(struct xdpath_prog *g)
{
	if (!g)
		return;
	release(g);
	free(g);
}

/* ---- sockets and counters ---- */

int xdpath_prog_set_socket(struct xdpath_prog *g, uint32_t queue, int fd)
{
	if (queue >= XDPATH_QUEUES)
		return -EINVAL;
	return bpf_map_update_elem(g->maps.fd[MAP_XSKS], &queue, &fd, BPF_ANY);
}

int xdpath_prog_clear_socket(struct xdpath_prog *g, uint32_t queue)
{
	int err;

	if (queue >= XDPATH_QUEUES)
		return -EINVAL;
	err = bpf_map_delete_elem(g->maps.fd[MAP_XSKS], &queue);
	return err == -ENOENT ? 0 : err; /* a closed socket empties its slot by itself */
}

int xdpath_prog_counters(const struct xdpath_prog *g,
			 struct xdpath_verdict_count out[XDPATH_V_COUNT])
{
	struct xdpath_verdict_count *cpu;
	int cpus = libbpf_num_possible_cpus();
	int err = 0;

	if (cpus < 0)
		return cpus;
	cpu = calloc((size_t)cpus, sizeof(*cpu));
	if (!cpu)
		return -ENOMEM;
	for (uint32_t v = 0; !err && v < XDPATH_V_COUNT; v++) {
		out[v] = (struct xdpath_verdict_count){0};
		err = bpf_map_lookup_elem(g->maps.fd[MAP_STATS], &v, cpu);
		for (int i = 0; !err && i < cpus; i++) {
			out[v].packets += cpu[i].packets;
			out[v].bytes += cpu[i].bytes;
		}
	}
	free(cpu);
	return err;
}

bool xdpath_prog_joined(const struct xdpath_prog *g)
{
	return g->joined;
}

enum xdpath_steer xdpath_prog_steer(const struct xdpath_prog *g)
{
	return g->steer;
}

uint32_t xdpath_prog_id(const struct xdpath_prog *g)
{
	return g->id;
}
