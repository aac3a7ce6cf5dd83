/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The steering program under a run: attach it by a bpf_link of our own (beside others: through
 * libxdp), or join one that is there; sockets in and out of its slots; its counters.
 *
 * Called by datapath.c and the verbs. A handle owns descriptors of the link and of the maps, and of
 * a lock where a dispatcher holds the program. The kernel detaches the program with the link's last
 * descriptor, however its holder ends; a dispatcher keeps it until its last user takes it out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "prog_form.h"

/* Programs come and go between question and answer; a dying one is gone within this. */
enum { TRIES = 200, TRY_WAIT_MS = 10 };

struct xdpath_prog {
	struct xdpath_maps maps;
	int link_fd;		    /* -1: none, it is held by netlink or by a dispatcher */
	int beside_fd;		    /* the lock of those who use it in a dispatcher, -1 none */
	struct xdpath_prog_info in; /* ... and which it is there */
	struct xdpath_port port;
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

/* It, or what took its place meanwhile with the same maps, out of the dispatcher. */
static void take_out(const struct xdpath_prog *g)
{
	struct xdpath_prog_info in[XDPATH_PROGS_MAX];
	int n = xdpath_prog_query(g->port.ifindex, in);

	for (int i = 0; i < n; i++)
		if (in[i].dispatcher_id &&
		    (in[i].id == g->in.id || (g->maps.meta_id && in[i].meta_id == g->maps.meta_id)))
			xdpath_beside_detach(&g->port, &in[i], NULL);
}

static void release(struct xdpath_prog *g)
{
	xdpath_maps_close(&g->maps);
	if (g->link_fd >= 0)
		close(g->link_fd);
	g->link_fd = -1;
	if (g->beside_fd >= 0) {
		if (xdpath_beside_last(&g->port, g->beside_fd))
			take_out(g);
		close(g->beside_fd);
	}
	g->beside_fd = -1;
}

static int fail_attach(const struct opening *a, int err, const char *ext)
{
	return xdpath_fail_attach(a->o.diag, a->port->name, a->o.attach, err, ext);
}

/* -EAGAIN if what is in the way has gone by itself meanwhile. */
static int fail_taken(const struct opening *a, const struct xdpath_prog_info *in, const char *why)
{
	release(a->g); /* or we should be found as the holder */
	xdpath_fail_taken(a->o.diag, a->port->name, in, why);
	return xdpath_prog_still_there(a->port->ifindex, in) ? -EBUSY : -EAGAIN;
}

/* ---- attach our own ---- */

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

/* -EAGAIN: look again, someone was faster. */
static int attach_link(struct opening *a, const struct xdpath_load *l)
{
	LIBBPF_OPTS(bpf_link_create_opts, lo);
	struct xdpath_prog *g = a->g;
	int err;

	lo.flags = xdpath_attach_flag(a->o.attach);
	g->link_fd = bpf_link_create(l->fd, a->port->ifindex, BPF_XDP, &lo);
	if (g->link_fd >= 0)
		return 0;
	err = -g->link_fd;
	if (err == EBUSY || err == EEXIST) {
		fail_attach(a, err, "");
		return -EAGAIN;
	}
	return ask_reason(a, l->fd, err);
}

/* What a dispatcher holds stays after us: the last who shares the lock takes it out. */
static int share(struct opening *a)
{
	int err = xdpath_beside_share(a->port, &a->g->beside_fd);

	if (!err || err == -EAGAIN)
		return err;
	return xdpath_fail(a->o.diag, XDPATH_R_PERMISSION, -err,
			   "attach to %s: no lock under " XDPATH_RUN_DIR ": %s; run as root",
			   a->port->name, strerror(-err));
}

static int attach_beside(struct opening *a, struct xdpath_load *l)
{
	struct xdpath_beside_opts bo = {.attach = a->o.attach};
	struct xdpath_prog *g = a->g;
	int err = share(a);

	if (err)
		return err;
	err = xdpath_beside_attach(l, a->port, &bo, a->o.diag);
	if (err) { /* nothing to take out, but perhaps a file to remove */
		xdpath_beside_last(a->port, g->beside_fd);
		close(g->beside_fd);
		g->beside_fd = -1;
	}
	return err;
}

static int attach_own(struct opening *a, bool beside)
{
	const struct xdpath_image ours = {0};
	struct xdpath_load l;
	int err = xdpath_load_open(&l, &ours, a->o.diag);

	if (err)
		return err;
	err = beside ? attach_beside(a, &l) : xdpath_load_finish(&l, a->o.diag);
	if (!err)
		err = xdpath_load_configure(&l, a->o.steer, beside ? XDPATH_META_RUN : 0,
					    a->o.diag);
	a->g->in = (struct xdpath_prog_info){.id = l.id, .attach = a->o.attach};
	if (!err && !beside)
		err = attach_link(a, &l);
	if (!err) {
		a->g->id = l.id;
		a->g->maps = l.maps; /* they and the link keep what is needed */
		for (int i = 0; i < MAP_COUNT; i++)
			l.maps.fd[i] = -1;
		a->g->steer = a->o.steer;
		a->g->joined = false;
	}
	xdpath_load_close(&l);
	return err;
}

/* ---- join what is there ---- */

/* Hold the link too. 0; -EAGAIN while the program is on its way in or out. */
static int hold_link(struct xdpath_prog *g, int ifindex, struct xdpath_prog_info *in)
{
	int held;

	in->link_id = 0;
	if (in->dispatcher_id)
		return 0;
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
	int err;

	a->g->joined = true;
	if (m->own)
		return a->o.steer_explicit ? fail_taken(a, in, "is a program that steers by itself")
					   : 0;
	err = bpf_map_lookup_elem(m->fd[MAP_CONFIG], &zero, &config);
	if (!err && m->fresh) {
		err = xdpath_write_meta(m, 0);
		if (!err && config.steer == XDPATH_STEER_NONE && a->o.steer) {
			err = xdpath_write_steer(m, a->o.steer);
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
	if (!err && in->dispatcher_id && (a->g->maps.flags & XDPATH_META_RUN)) {
		err = share(a);
		a->g->in = *in;
	}
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
	int n = xdpath_prog_query(a->port->ifindex, there), first;

	if (n == -ENOENT || n == -EINTR) {
		fail_attach(a, -n, "");
		return -EAGAIN;
	}
	if (n < 0)
		return fail_attach(a, -n, "");
	first = xdpath_prog_first(there, n);
	if (first < 0)
		return attach_own(a, a->o.beside);
	if (!there[first].is_xdpath && !strcmp(there[first].name, XDPATH_DISPATCHER))
		return there[first].attach == a->o.attach
			       ? attach_own(a, true)
			       : fail_taken(a, &there[first], "runs in the other mode");
	return join(a, &there[first]);
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
	struct xdpath_quiet quiet;
	int err;

	*out = NULL;
	err = check(p, o);
	if (err)
		return err;
	a.g = calloc(1, sizeof(*a.g));
	if (!a.g)
		return xdpath_fail(o->diag, XDPATH_R_MEMORY, ENOMEM,
				   "attach to %s: no memory; free some", p->name);
	a.g->link_fd = a.g->beside_fd = -1;
	a.g->port = *p;
	for (int i = 0; i < MAP_COUNT; i++)
		a.g->maps.fd[i] = -1;
	memcpy(&a.o, o, o->sz < sizeof(a.o) ? o->sz : sizeof(a.o));
	xdpath_quiet_begin(&quiet);
	for (int i = 0; i < TRIES; i++) {
		err = open_once(&a);
		if (err != -EAGAIN)
			break;
		release(a.g);
		wait_a_little();
	}
	if (err)
		release(a.g);
	xdpath_quiet_end(&quiet);
	if (err) {
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
	struct xdpath_quiet quiet;

	if (!g)
		return;
	xdpath_quiet_begin(&quiet);
	release(g);
	xdpath_quiet_end(&quiet);
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
	if (g->maps.fd[MAP_STATS] < 0)
		return -ENOENT; /* a user's own program counts by itself */
	return xdpath_verdicts_read(g->maps.fd[MAP_STATS], out);
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

uint32_t xdpath_prog_meta_id(const struct xdpath_prog *g)
{
	return g->maps.meta_id;
}

uint32_t xdpath_prog_slots(const struct xdpath_prog *g)
{
	return g->maps.slots;
}
