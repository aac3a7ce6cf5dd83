/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Which mode all ports and queues of a datapath get: a table walked from best to worst. Each
 * attempt is whole (programs, UMEM, sockets), recorded with its reason, and undone wholly when it
 * fails. Nothing falls back silently; below `worst` is an error. Called by datapath.c only.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/bpf.h>

#include <xdpath/steer.h>

#include "netlink_parse.h"
#include "prog_find.h"
#include "rule_list.h"

#define NIC_RING_UNKNOWN 2048U /* where ethtool -g tells nothing */

static const enum xdpath_mode best_to_worst[] = {XDPATH_MODE_ZEROCOPY, XDPATH_MODE_COPY,
						 XDPATH_MODE_GENERIC};

static bool is_native(enum xdpath_mode mode)
{
	return mode != XDPATH_MODE_GENERIC;
}

/* Sending by copies needs none; in zero-copy some drivers never send without a native one. */
static bool needs_prog(const struct xdpath_datapath *dp, enum xdpath_mode mode)
{
	return !dp->o.no_prog || mode == XDPATH_MODE_ZEROCOPY;
}

/* What the kernel says before anything is tried. Unknown is not no. */
static int check_facts(const struct xdpath_port *p, enum xdpath_mode mode, struct xdpath_diag *d)
{
	if (!p->features_known || !is_native(mode))
		return 0;
	if (!(p->xdp_features & XDPATH_XDP_ACT_BASIC) ||
	    !(p->xdp_features & XDPATH_XDP_ACT_REDIRECT))
		return xdpath_fail(
			d, XDPATH_R_NO_NATIVE, EOPNOTSUPP,
			"%s: the driver%s%s has no native XDP%s; use --mode generic or auto",
			p->name, p->driver[0] ? " " : "", p->driver,
			p->xdp_features & XDPATH_XDP_ACT_BASIC ? " redirect" : "");
	if (mode == XDPATH_MODE_ZEROCOPY && !(p->xdp_features & XDPATH_XDP_ACT_XSK_ZEROCOPY))
		return xdpath_fail(d, XDPATH_R_NO_ZEROCOPY, EOPNOTSUPP,
				   "%s: the driver%s%s does no zero-copy; use --mode copy or auto",
				   p->name, p->driver[0] ? " " : "", p->driver);
	return 0;
}

/* An xdpath program or a dispatcher in place settles the attach mode; a foreign one is prog.c's to
 * refuse. */
static int check_attached(const struct xdpath_port *p, enum xdpath_mode mode, struct xdpath_diag *d)
{
	struct xdpath_prog_info info[XDPATH_PROGS_MAX];
	enum xdpath_attach want = is_native(mode) ? XDPATH_ATTACH_NATIVE : XDPATH_ATTACH_GENERIC;
	int n = xdpath_prog_query(p->ifindex, info);

	for (int i = 0; i < n; i++) {
		bool dispatcher = !strcmp(info[i].name, XDPATH_DISPATCHER);
		char what[48];

		if (info[i].attach == want || info[i].attach == XDPATH_ATTACH_OFFLOAD ||
		    !(info[i].is_xdpath || dispatcher))
			continue;
		snprintf(what, sizeof(what),
			 dispatcher ? "a dispatcher (id %u)" : "an xdpath program (id %u, pid %u)",
			 info[i].id, info[i].owner_pid);
		return xdpath_fail(
			d, want == XDPATH_ATTACH_NATIVE ? XDPATH_R_NO_NATIVE : XDPATH_R_REFUSED,
			EEXIST, "%s: %s is attached in %s mode; use that mode or detach it first",
			p->name, what, xdpath_attach_name(info[i].attach));
	}
	return 0;
}

/* Faults of drivers that would only show in the traffic. */
static int check_quirks(const struct xdpath_datapath *dp, const struct xdpath_port *p,
			enum xdpath_mode mode, struct xdpath_diag *d)
{
	uint32_t taken = XDP_PACKET_HEADROOM + dp->knobs.umem_headroom;

	if (dp->o.no_rx || !dp->knobs.open_quirks || taken >= dp->knobs.umem_frame_size)
		return 0;
	return xdpath_quirk_check(p, mode, dp->knobs.umem_frame_size - taken, d);
}

/*
 * Zero-copy: the NIC takes as many frames as its RX ring holds, also for a socket that only sends:
 * with fewer, or none, what the kernel is to receive on that queue is lost.
 */
static uint32_t fill_size(const struct xdpath_datapath *dp, enum xdpath_mode mode)
{
	uint32_t want = 2048;

	if (dp->knobs.ring_fill != XDPATH_KNOB_AUTO)
		return dp->knobs.ring_fill;
	if (mode != XDPATH_MODE_ZEROCOPY)
		return dp->o.no_rx ? 64 : want;
	for (uint32_t i = 0; i < dp->nports; i++) {
		uint32_t nic = dp->port[i].rings_known ? dp->port[i].ring_rx : NIC_RING_UNKNOWN;

		while (want < nic + (dp->o.no_rx ? 0 : dp->knobs.ring_rx) && want < 65536)
			want *= 2;
	}
	return want;
}

static uint32_t frames_per_queue(const struct xdpath_datapath *dp, uint32_t fill)
{
	const struct xdpath_knobs *k = &dp->knobs;

	if (k->umem_frames != XDPATH_KNOB_AUTO)
		return k->umem_frames;
	return fill + (dp->o.no_rx ? 0 : k->ring_rx) + (dp->o.no_tx ? 0 : 2 * k->ring_tx);
}

/* Queue j of every port belongs to worker j modulo workers. */
static uint32_t sockets_of(const struct xdpath_datapath *dp, uint32_t worker)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < dp->nports; i++)
		for (uint32_t j = worker; j < dp->nqueues[i]; j += dp->nworkers)
			n++;
	return n;
}

static int make_umem(struct xdpath_datapath *dp, uint32_t each, struct xdpath_diag *d)
{
	struct xdpath_umem_opts uo = XDPATH_OPTS_INIT(struct xdpath_umem_opts);
	uint64_t total = 0;
	int err;

	for (uint32_t w = 0; w < dp->nworkers; w++)
		total += ((uint64_t)sockets_of(dp, w) * each + 63) & ~63ULL;
	uo.frames = total > UINT32_MAX ? UINT32_MAX : (uint32_t)total;
	uo.frame_size = dp->knobs.umem_frame_size;
	uo.headroom = dp->knobs.umem_headroom;
	uo.hugepages = (enum xdpath_hugepages)dp->knobs.umem_hugepages;
	uo.diag = d;
	err = xdpath_umem_create(&dp->umem, &uo);
	for (uint32_t w = 0; !err && w < dp->nworkers; w++)
		err = xdpath_umem_carve(dp->umem, sockets_of(dp, w) * each, &dp->worker[w].frames);
	return err;
}

/* Can the largest packet of this MTU be received and sent as bound? */
static int check_mtu(const struct xdpath_datapath *dp, const struct xdpath_port *p,
		     const struct xdpath_socket *s, struct xdpath_diag *d)
{
	uint32_t longest = p->mtu + XDPATH_ETH_MIN, room = xdpath_umem_rx_room(dp->umem);
	uint32_t need = (longest + room - 1) / room;

	if (need <= s->q.tx_max_frags)
		return 0;
	if (!s->multi_frag)
		return xdpath_fail(d, XDPATH_R_NO_FRAGMENTS, EOPNOTSUPP,
				   "%s: MTU %u needs packets of %u fragments of %u bytes, and %s "
				   "mode takes one here; "
				   "set the MTU to %u or less%s",
				   p->name, p->mtu, need, room, xdpath_mode_name(s->mode),
				   room - XDPATH_ETH_MIN,
				   dp->knobs.umem_frame_size < 4096 ? " or umem.frame_size=4096"
								    : "");
	return xdpath_fail(d, XDPATH_R_MTU, EMSGSIZE,
			   "%s: MTU %u needs packets of %u fragments of %u bytes, the kernel takes "
			   "%u; set the MTU to "
			   "%u or less%s",
			   p->name, p->mtu, need, room, s->q.tx_max_frags,
			   s->q.tx_max_frags * room - XDPATH_ETH_MIN,
			   dp->knobs.umem_frame_size < 4096 ? " or umem.frame_size=4096" : "");
}

static int open_sockets(struct xdpath_datapath *dp, uint32_t i, enum xdpath_mode mode,
			uint32_t fill, struct xdpath_diag *d)
{
	const struct xdpath_knobs *k = &dp->knobs;
	struct xdpath_socket_opts so = XDPATH_OPTS_INIT(struct xdpath_socket_opts);
	int err = 0;

	so.mode = mode;
	so.ring_rx = k->ring_rx;
	so.ring_tx = k->ring_tx;
	so.ring_fill = fill;
	so.ring_comp = k->ring_comp;
	so.tx_kick_budget = k->tx_kick_budget == XDPATH_KNOB_AUTO ? 64 : k->tx_kick_budget;
	so.no_quirks = !k->open_quirks;
	so.single_frag = mode == XDPATH_MODE_ZEROCOPY && dp->port[i].zc_max_segs == 1;
	so.wait_ms = k->open_wait_ms;
	so.no_rx = dp->o.no_rx;
	so.no_tx = dp->o.no_tx;
	so.diag = d;
	for (uint32_t j = 0; !err && j < dp->nqueues[i]; j++) {
		so.queue = dp->queue[i][j];
		so.frames = dp->worker[j % dp->nworkers].frames;
		so.share = i || j ? dp->socket[0][0] : NULL;
		err = xdpath_socket_open(&dp->socket[i][j], &dp->port[i], dp->umem, &so);
	}
	if (!err && !dp->o.no_rx) /* what a sender builds is its own affair */
		err = check_mtu(dp, &dp->port[i], dp->socket[i][0], d);
	return err;
}

/* A user's own program may have room for fewer queues than ours. */
static int check_slots(const struct xdpath_datapath *dp, uint32_t i, struct xdpath_diag *d)
{
	uint32_t slots = xdpath_prog_slots(dp->prog[i]);

	for (uint32_t j = 0; !dp->o.no_rx && j < dp->nqueues[i]; j++)
		if (dp->queue[i][j] >= slots)
			return xdpath_fail(
				d, XDPATH_R_QUEUE_RANGE, E2BIG,
				"%s queue %u: the XSKMAP of the attached program has %u slots; use "
				"queues below that (-q), or give its map more",
				dp->port[i].name, dp->queue[i][j], slots);
	return 0;
}

/* Into a program that is ours; one that was there before must have the same already. */
static int put_rules(const struct xdpath_datapath *dp, uint32_t i, struct xdpath_diag *d)
{
	uint32_t id = xdpath_prog_id(dp->prog[i]);
	struct xdpath_rules there = {0};
	bool same;

	if (!xdpath_prog_joined(dp->prog[i]))
		return xdpath_steer_put(dp->port[i].ifindex, &id, dp->o.rules, d);
	same = !xdpath_steer_get(id, &there, NULL) && xdpath_rules_same(&there, dp->o.rules);
	xdpath_rules_clear(&there);
	if (same)
		return 0;
	return xdpath_fail(
		d, XDPATH_R_PROG_CONFLICT, EBUSY,
		"attach to %s: the xdpath program in place (id %u) has rules of its own; "
		"leave yours out, or put them there: `xdpath steer %s`",
		dp->port[i].name, id, dp->port[i].name);
}

static int attach(struct xdpath_datapath *dp, uint32_t i, enum xdpath_mode mode,
		  struct xdpath_diag *d)
{
	struct xdpath_prog_opts po = XDPATH_OPTS_INIT(struct xdpath_prog_opts);
	struct xdpath_lease *lock = NULL;
	int err = 0;

	if (!needs_prog(dp, mode))
		return 0;
	po.attach = is_native(mode) ? XDPATH_ATTACH_NATIVE : XDPATH_ATTACH_GENERIC;
	po.steer = dp->o.no_prog ? XDPATH_STEER_NONE : dp->o.steer;
	po.steer_explicit = dp->o.steer_explicit || dp->o.rules;
	po.beside = dp->o.beside;
	po.diag = d;
	if (dp->o.rules) /* another run may be putting its own there */
		err = xdpath_steer_lock(&lock, &dp->port[i], d);
	if (!err)
		err = xdpath_prog_open(&dp->prog[i], &dp->port[i], &po);
	if (!err)
		err = check_slots(dp, i, d);
	if (!err && dp->o.rules)
		err = put_rules(dp, i, d);
	xdpath_lease_drop(lock);
	return err;
}

/*
 * What the kernel says is attached now: zero-copy with a program in generic mode receives, and some
 * drivers then never send.
 */
static int read_back_attach(const struct xdpath_datapath *dp, uint32_t i, enum xdpath_mode mode,
			    struct xdpath_diag *d)
{
	struct xdpath_prog_info info[XDPATH_PROGS_MAX];
	enum xdpath_attach want = is_native(mode) ? XDPATH_ATTACH_NATIVE : XDPATH_ATTACH_GENERIC;
	int n = dp->prog[i] ? xdpath_prog_query(dp->port[i].ifindex, info) : 0;

	if (!dp->prog[i])
		return 0;
	for (int k = 0; k < n; k++)
		/* filters bring another program in its place: the maps say whether it is ours */
		if (info[k].meta_id == xdpath_prog_meta_id(dp->prog[i]) && info[k].attach == want)
			return 0;
	return xdpath_fail(
		d, XDPATH_R_REFUSED, EPROTO,
		"%s: the program was attached in %s mode and the kernel does not list it "
		"so; see `xdpath status %s`",
		dp->port[i].name, xdpath_attach_name(want), dp->port[i].name);
}

/*
 * Some drivers open more receive queues once a native program is attached (virtio-net: one for each
 * CPU), and the NIC spreads traffic over those too.
 */
static void look_at_queues(struct xdpath_datapath *dp, uint32_t i)
{
	struct xdpath_queue_facts f = {.ifindex = dp->port[i].ifindex};

	if (dp->o.queues || dp->o.no_rx || xdpath_nl_queues(&f) || f.rx <= dp->nqueues[i])
		return;
	dp->port[i].rx_queues = f.rx;
	xdpath_notice(dp, "queues-not-served", i,
		      "%s: %u receive queues are in use since the XDP program is attached, %u are "
		      "served; what arrives on the others goes to the kernel: first use all the "
		      "device has (`ethtool -L %s combined N`, N as `ethtool -l %s` says)",
		      dp->port[i].name, f.rx, dp->nqueues[i], dp->port[i].name, dp->port[i].name);
}

static int try_mode(struct xdpath_datapath *dp, enum xdpath_mode mode, struct xdpath_diag *d)
{
	uint32_t fill = fill_size(dp, mode), each = frames_per_queue(dp, fill);
	int err = 0;

	for (uint32_t i = 0; !err && i < dp->nports; i++)
		err = check_facts(&dp->port[i], mode, d);
	for (uint32_t i = 0; !err && i < dp->nports; i++)
		err = check_quirks(dp, &dp->port[i], mode, d);
	for (uint32_t i = 0; !err && needs_prog(dp, mode) && i < dp->nports; i++)
		err = check_attached(&dp->port[i], mode, d);
	for (uint32_t i = 0; !err && i < dp->nports; i++)
		err = attach(dp, i, mode, d);
	if (!err)
		err = make_umem(dp, each, d);
	for (uint32_t i = 0; !err && i < dp->nports; i++)
		err = open_sockets(dp, i, mode, fill, d);
	for (uint32_t i = 0; !err && i < dp->nports; i++)
		err = read_back_attach(dp, i, mode, d);
	for (uint32_t i = 0; !err && is_native(mode) && i < dp->nports; i++)
		look_at_queues(dp, i);
	if (err)
		xdpath_negotiate_undo(dp);
	return err;
}

void xdpath_negotiate_undo(struct xdpath_datapath *dp)
{
	/* a shared UMEM's first socket goes last */
	for (uint32_t i = dp->nports; i-- > 0;)
		for (uint32_t j = dp->nqueues[i]; j-- > 0;) {
			xdpath_socket_close(dp->socket[i][j]);
			dp->socket[i][j] = NULL;
		}
	xdpath_umem_destroy(dp->umem);
	dp->umem = NULL;
	for (uint32_t i = 0; i < dp->nports; i++) {
		xdpath_prog_close(dp->prog[i]);
		dp->prog[i] = NULL;
	}
}

/* A worse mode would meet the same obstacle: stop at once. */
static bool is_final(const struct xdpath_datapath *dp, enum xdpath_reason r)
{
	switch (r) {
	case XDPATH_R_PROG_CONFLICT: return !dp->o.no_prog; /* copying needs no program */
	case XDPATH_R_NO_NATIVE:
	case XDPATH_R_NO_ZEROCOPY:
	case XDPATH_R_NO_FRAGMENTS:
	case XDPATH_R_MTU:
	case XDPATH_R_KERNEL:
	case XDPATH_R_REFUSED: return false;
	default: return true;
	}
}

static void record(struct xdpath_datapath *dp, enum xdpath_mode mode, int err,
		   const struct xdpath_diag *d)
{
	struct xdpath_attempt *a;

	if (dp->nattempts == XDPATH_ATTEMPTS_MAX)
		return;
	a = &dp->attempt[dp->nattempts++];
	a->mode = mode;
	a->err = -err;
	a->reason = d->reason;
	snprintf(a->text, sizeof(a->text), "%s", d->text);
}

static int tell_failure(struct xdpath_datapath *dp, enum xdpath_mode worst, int err,
			const struct xdpath_diag *last)
{
	if (!dp->o.diag)
		return err;
	*dp->o.diag = *last;
	dp->o.diag->err = -err;
	if (!last->text[0])
		return xdpath_fail(dp->o.diag, XDPATH_R_REFUSED, -err, "%s: %s mode: %s",
				   dp->port[0].name, xdpath_mode_name(worst), strerror(-err));
	return err;
}

int xdpath_negotiate(struct xdpath_datapath *dp)
{
	enum xdpath_mode best = dp->o.mode == XDPATH_MODE_AUTO ? XDPATH_MODE_ZEROCOPY : dp->o.mode;
	enum xdpath_mode worst =
		dp->o.worst == XDPATH_MODE_AUTO ? XDPATH_MODE_GENERIC : dp->o.worst;
	struct xdpath_diag d = {0};
	int err = -EINVAL;

	/* a mode asked for by name is what is meant: no worse one unless `worst` says so */
	if (dp->o.mode != XDPATH_MODE_AUTO && dp->o.worst == XDPATH_MODE_AUTO)
		worst = best;
	for (size_t m = 0; m < sizeof(best_to_worst) / sizeof(best_to_worst[0]); m++) {
		if (best_to_worst[m] > best || best_to_worst[m] < worst)
			continue;
		memset(&d, 0, sizeof(d));
		err = try_mode(dp, best_to_worst[m], &d);
		record(dp, best_to_worst[m], err, &d);
		if (!err) {
			dp->mode = best_to_worst[m];
			return 0;
		}
		if (is_final(dp, d.reason))
			break;
	}
	return tell_failure(dp, worst, err, &d);
}
