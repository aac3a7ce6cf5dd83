// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * Which mode a device would give: judged by facts, or by opening each one. Called by probe.c.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "carrier.h"
#include "probe.h"
#include "prog_find.h"

static const enum xdpath_mode best_first[MODES] = {XDPATH_MODE_ZEROCOPY, XDPATH_MODE_COPY,
						   XDPATH_MODE_GENERIC};

/* A dispatcher, or what runs in one: a run joins it, in its mode. */
static bool in_dispatcher(const struct xdpath_prog_info *g)
{
	return g->dispatcher_id || !strcmp(g->name, XDPATH_DISPATCHER);
}

/* Programs exclude each other: a foreign one bars every mode, ours all but its own. */
static bool barred_by_program(struct mode_view *v, const struct inspect *in)
{
	enum xdpath_attach want =
		v->mode == XDPATH_MODE_GENERIC ? XDPATH_ATTACH_GENERIC : XDPATH_ATTACH_NATIVE;

	for (int i = 0; i < in->nprogs; i++) {
		const struct xdpath_prog_info *g = &in->prog[i];

		if (!g->is_xdpath && !in_dispatcher(g))
			snprintf(v->against, sizeof(v->against),
				 "the XDP program %s (id %u, %s) is attached and not xdpath's",
				 g->name[0] ? g->name : "without a name", g->id,
				 xdpath_attach_name(g->attach));
		else if (g->attach != want)
			snprintf(v->against, sizeof(v->against),
				 "%s (id %u) is attached in %s mode, and the two "
				 "exclude each other",
				 in_dispatcher(g) ? "a dispatcher" : "an xdpath program", g->id,
				 xdpath_attach_name(g->attach));
		else
			continue;
		return true;
	}
	return false;
}

static bool barred_by_driver(struct mode_view *v, const struct xdpath_port *p)
{
	const char *the = p->driver[0] ? "the driver " : "the device", *driver = p->driver;
	uint64_t native = XDPATH_XDP_ACT_BASIC | XDPATH_XDP_ACT_REDIRECT;

	if (v->mode == XDPATH_MODE_GENERIC || !p->features_known)
		return false;
	if (!(p->xdp_features & XDPATH_XDP_ACT_BASIC))
		snprintf(v->against, sizeof(v->against), "%s%s has no native XDP", the, driver);
	else if ((p->xdp_features & native) != native)
		snprintf(v->against, sizeof(v->against),
			 "native XDP of %s%s cannot redirect to a socket", the, driver);
	else if (v->mode == XDPATH_MODE_ZEROCOPY &&
		 !(p->xdp_features & XDPATH_XDP_ACT_XSK_ZEROCOPY))
		snprintf(v->against, sizeof(v->against), "%s%s does no zero-copy", the, driver);
	else
		return false;
	return true;
}

static bool barred_by_sockets(struct mode_view *v, const struct inspect *in)
{
	char who[80];

	if (!in->nqueues || in->ntaken < in->nqueues)
		return false;
	snprintf(v->against, sizeof(v->against), "%s taken, queue 0 by %s",
		 in->nqueues == 1 ? "the one queue is" : "all queues are",
		 holder_text(&in->holder[0], who, sizeof(who)));
	return true;
}

void probe_judge(struct probe *pr)
{
	const struct xdpath_port *p = &pr->in.port;

	for (int i = 0; i < MODES; i++) {
		struct mode_view *v = &pr->view[i];

		*v = (struct mode_view){.mode = best_first[i]};
		if (pr->kernel.point[XDPATH_K_AF_XDP] <= 0)
			snprintf(v->against, sizeof(v->against),
				 "no AF_XDP socket is to be had: %s",
				 pr->kernel.point[XDPATH_K_AF_XDP]
					 ? strerror(-pr->kernel.point[XDPATH_K_AF_XDP])
					 : "the kernel is built without");
		else if (!barred_by_driver(v, p) && !barred_by_program(v, &pr->in))
			barred_by_sockets(v, &pr->in);
	}
}

enum xdpath_mode probe_best(const struct probe *pr)
{
	for (int i = 0; i < MODES; i++) {
		const struct mode_view *v = &pr->view[i];

		if (v->tried ? v->obtained : !v->against[0])
			return v->mode;
	}
	return XDPATH_MODE_AUTO;
}

/* What opening brought to light; the first notice is the one to act on. */
static void keep_findings(struct mode_view *v, const struct xdpath_datapath *dp)
{
	uint32_t n;
	const struct xdpath_notice *notice = xdpath_datapath_notices(dp, &n);

	v->obtained = xdpath_datapath_mode(dp) == v->mode;
	v->link_reset = xdpath_datapath_port(dp, 0)->link_reset;
	if (n)
		snprintf(v->notice, sizeof(v->notice), "%s", notice[0].text);
}

/* Closing the mode before may have taken the link away: that is not what the next one does. */
static void let_link_return(const struct xdpath_port *p, uint32_t ms)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	uint64_t until = xdpath_now_ms() + ms;
	uint32_t flags = 0;

	while ((p->flags & IFF_RUNNING) && xdpath_port_link(p->ifindex, &flags, NULL) == 0 &&
	       !xdpath_has_carrier(flags) && xdpath_now_ms() < until)
		nanosleep(&pause, NULL);
}

void probe_try(struct probe *pr, const struct xdpath_knobs *knobs)
{
	static const uint32_t queue0[] = {0};

	for (int i = 0; i < MODES; i++) {
		struct xdpath_datapath_opts o = XDPATH_OPTS_INIT(struct xdpath_datapath_opts);
		struct mode_view *v = &pr->view[i];
		struct xdpath_datapath *dp = NULL;

		o.ports[0] = pr->in.port.name;
		o.nports = 1;
		o.queues = queue0;
		o.nqueues = 1;
		o.mode = o.worst = v->mode;
		o.steer = XDPATH_STEER_NONE; /* traffic stays with the kernel */
		o.workers = 1;
		o.knobs = knobs;
		o.who = "probe";
		o.diag = &v->diag;
		v->tried = true;
		let_link_return(&pr->in.port, knobs->open_wait_ms);
		if (xdpath_datapath_open(&dp, &o) == 0)
			keep_findings(v, dp);
		xdpath_datapath_close(dp);
	}
}
