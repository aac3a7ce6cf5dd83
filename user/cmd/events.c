/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Device events under a running datapath. Called by run.c, on the control thread only. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "carrier.h"
#include "events.h"

#define STUCK_TOLD_NS 900000000ULL /* TX that stands still for so long is told */

/* Packets meant for user space that arrived where no socket is, where all queues are to be served.
 */
static uint64_t unserved(const struct run *r, uint32_t i)
{
	const struct xdpath_prog *g = xdpath_datapath_prog(r->dp, i);
	struct xdpath_verdict_count v[XDPATH_V_COUNT];

	if (!g || r->o.queues || r->o.no_rx || xdpath_prog_counters(g, v))
		return 0;
	return v[XDPATH_V_NO_SOCKET].packets;
}

int events_open(struct events *e)
{
	struct sockaddr_nl sa = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};

	memset(e, 0, sizeof(*e));
	e->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (e->fd < 0)
		return -errno;
	if (bind(e->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		int err = -errno;

		close(e->fd);
		e->fd = -1;
		return err;
	}
	return 0;
}

/* The resets that come with opening are past: what they left to be read is not told. */
bool events_start(struct events *e, const struct run *r)
{
	const struct xdpath_port *p;
	const struct xdpath_prog *g;
	bool end;

	for (uint32_t i = 0; (p = xdpath_datapath_port(r->dp, i)); i++) {
		g = xdpath_datapath_prog(r->dp, i);
		snprintf(e->port[i].name, sizeof(e->port[i].name), "%s", p->name);
		e->port[i].flags = p->flags;
		e->port[i].no_carrier = !(p->flags & IFF_RUNNING);
		e->port[i].mtu = p->mtu;
		e->port[i].queues = xdpath_port_queues(p);
		e->port[i].prog_id = g ? xdpath_prog_id(g) : 0;
		e->port[i].unserved = unserved(r, i);
		e->port[i].meta_id = g ? xdpath_prog_meta_id(g) : 0;
	}
	e->opening = true;
	end = events_read(e, r);
	e->opening = false;
	return end;
}

static void say(const struct run *r, const char *text, const char *name)
{
	fprintf(stderr, "xdpath %s: %s: %s\n", r->verb, name, text);
}

/*
 * "Down" is told at the next tick: it also comes before a removal or a renaming, and then that is
 * what the user wants to read.
 */
static void flags_changed(struct events *e, const struct run *r, uint32_t i, uint32_t flags)
{
	uint32_t changed = e->port[i].flags ^ flags;
	const char *name = e->port[i].name;

	e->port[i].flags = flags;
	if (changed & (IFF_UP | IFF_RUNNING | IFF_LOWER_UP))
		xdpath_datapath_set_link(r->dp, i, (flags & IFF_UP) && xdpath_has_carrier(flags));
	if (e->opening) {
		e->port[i].no_carrier = !(flags & IFF_RUNNING);
		return;
	}
	if (changed)
		xdpath_datapath_nudge(r->dp);
	if (changed & IFF_UP) {
		if (!(flags & IFF_UP))
			e->port[i].down_untold = true;
		else if (!e->port[i].down_untold)
			say(r, "set up again; goes on", name);
		else
			e->port[i].blinked = true;
		return;
	}
	if (!(changed & IFF_RUNNING) || !(flags & IFF_UP) || e->port[i].down_untold)
		return;
	if (!(flags & IFF_RUNNING))
		say(r, "no carrier; goes on when it is back", name);
	else if (e->port[i].no_carrier) /* not what comes with being set up */
		say(r, "carrier again; goes on", name);
	e->port[i].no_carrier = !(flags & IFF_RUNNING);
}

static void tell_down(struct events *e, const struct run *r, uint32_t i)
{
	if (!e->port[i].down_untold)
		return;
	say(r,
	    e->port[i].blinked ? "was set down and up again; goes on"
			       : "set down; goes on when it is up again (`ip link set up`)",
	    e->port[i].name);
	e->port[i].down_untold = e->port[i].blinked = false;
}

static void mtu_changed(struct events *e, const struct run *r, uint32_t i, uint32_t mtu)
{
	char text[160];

	snprintf(text, sizeof(text),
		 "MTU %u now, was %u; longer packets are dropped and counted (tx_too_big)", mtu,
		 e->port[i].mtu);
	e->port[i].mtu = mtu;
	xdpath_datapath_set_mtu(r->dp, i, mtu);
	say(r, text, e->port[i].name);
}

static void renamed(struct events *e, const struct run *r, uint32_t i, const char *name)
{
	char text[64];

	snprintf(text, sizeof(text), "called %.15s now; goes on", name);
	say(r, text, e->port[i].name);
	snprintf(e->port[i].name, sizeof(e->port[i].name), "%.15s", name);
}

static bool link_event(struct events *e, const struct run *r, const struct nlmsghdr *h)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(h);
	const struct xdpath_port *p;
	const struct nlattr *attr;

	for (uint32_t i = 0; (p = xdpath_datapath_port(r->dp, i)); i++) {
		if (ifi->ifi_index != p->ifindex || ifi->ifi_family != AF_UNSPEC)
			continue;
		if (h->nlmsg_type == RTM_DELLINK) {
			say(r, "removed, or moved to another namespace; start again where it is",
			    e->port[i].name);
			return true;
		}
		mnl_attr_for_each (attr, h, sizeof(*ifi)) {
			if (mnl_attr_get_type(attr) == IFLA_IFNAME &&
			    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0 &&
			    strcmp(mnl_attr_get_str(attr), e->port[i].name) != 0)
				renamed(e, r, i, mnl_attr_get_str(attr));
			if (mnl_attr_get_type(attr) == IFLA_MTU &&
			    mnl_attr_validate(attr, MNL_TYPE_U32) >= 0 &&
			    mnl_attr_get_u32(attr) != e->port[i].mtu)
				mtu_changed(e, r, i, mnl_attr_get_u32(attr));
		}
		flags_changed(e, r, i, ifi->ifi_flags);
	}
	return false;
}

bool events_read(struct events *e, const struct run *r)
{
	static char buf[32768] __attribute__((aligned(NLMSG_ALIGNTO)));
	bool end = false;
	ssize_t n;

	for (int reads = 0; reads < 64 && !end; reads++) {
		n = recv(e->fd, buf, sizeof(buf), 0);
		if (n < 0 && errno == ENOBUFS)
			continue; /* too many at once: what was missed shows at the next tick */
		if (n <= 0)
			break;
		int left = (int)n;

		for (const struct nlmsghdr *h = (void *)buf; !end && mnl_nlmsg_ok(h, left);
		     h = mnl_nlmsg_next(h, &left))
			if ((h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_DELLINK) &&
			    h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct ifinfomsg)))
				end = link_event(e, r, h);
	}
	return end;
}

static void queues_changed(struct events *e, const struct run *r, uint32_t i, uint32_t queues)
{
	char text[160];

	if (queues > e->port[i].queues)
		snprintf(text, sizeof(text),
			 "%u queues now, were %u: the new ones are not read, their frames go to "
			 "the kernel; start again "
			 "to read them",
			 queues, e->port[i].queues);
	else
		snprintf(text, sizeof(text), "%u queues now, were %u; goes on", queues,
			 e->port[i].queues);
	e->port[i].queues = queues;
	say(r, text, e->port[i].name);
}

/* Our program is no longer there: nothing arrives any more, and waiting for it would look like
 * peace. */
static bool program_gone(const struct events *e, const struct run *r, uint32_t i, int ifindex)
{
	struct xdpath_prog_info info[XDPATH_PROGS_MAX];
	int n = xdpath_prog_query(ifindex, info);
	char text[160];

	if (!e->port[i].prog_id || n < 0)
		return false;
	for (int k = 0; k < n; k++)
		if (info[k].id == e->port[i].prog_id || /* or replaced by its successor */
		    (info[k].meta_id && info[k].meta_id == e->port[i].meta_id))
			return false;
	if (n > 0)
		snprintf(text, sizeof(text),
			 "the XDP program was replaced by \"%s\" (id %u), by someone else; nothing "
			 "arrives any more, ends",
			 info[0].name, info[0].id);
	else
		snprintf(text, sizeof(text),
			 "the XDP program was detached by someone else; nothing arrives any more, "
			 "ends");
	say(r, text, e->port[i].name);
	return true;
}

/* Once. Where queues were added while running, that has been told already. */
static void look_at_unserved(struct events *e, const struct run *r, uint32_t i)
{
	const struct xdpath_port *p = xdpath_datapath_port(r->dp, i);
	uint64_t now = unserved(r, i);
	char text[240];

	if (now <= e->port[i].unserved || e->port[i].unserved_told ||
	    e->port[i].queues > xdpath_port_queues(p))
		return;
	e->port[i].unserved_told = true;
	snprintf(text, sizeof(text),
		 "%llu packets arrived on queues that have no socket and went to the kernel; use "
		 "all queues of the device (`ethtool -L %s combined N`) and start again",
		 (unsigned long long)(now - e->port[i].unserved), e->port[i].name);
	say(r, text, e->port[i].name);
}

static void look_at_tx(struct events *e, const struct run *r, const struct xdpath_worker *w,
		       uint32_t j)
{
	const struct xdpath_socket *s = w->sockets[j];
	uint64_t ns = xdpath_counted(&s->watch.stuck_ns);
	uint32_t port = w->port[j], q = s->queue_id;
	char text[240];

	if (q >= XDPATH_QUEUES || e->port[port].stuck[q] == (ns >= STUCK_TOLD_NS))
		return;
	e->port[port].stuck[q] = ns >= STUCK_TOLD_NS;
	if (ns)
		snprintf(
			text, sizeof(text),
			"queue %u: %llu frames handed to the device, not one completed for %.1f s; "
			"kicks go on (tx_stuck_kicks): see `ethtool -S %s` and `dmesg`",
			q, (unsigned long long)xdpath_counted(&s->watch.frames), (double)ns / 1e9,
			e->port[port].name);
	else
		snprintf(text, sizeof(text), "queue %u: the device completes frames again", q);
	say(r, text, e->port[port].name);
}

bool events_tick(struct events *e, const struct run *r)
{
	const struct xdpath_worker *w;
	const struct xdpath_port *p;
	struct xdpath_port now;
	char name[IFNAMSIZ];

	for (uint32_t i = 0; (p = xdpath_datapath_port(r->dp, i)); i++) {
		tell_down(e, r, i);
		if (!if_indextoname((unsigned int)p->ifindex, name))
			continue; /* gone: an event will tell, or has */
		if (strcmp(name, e->port[i].name) != 0)
			renamed(e, r, i, name); /* its event was lost */
		if (xdpath_port_query(&now, e->port[i].name, NULL) || now.ifindex != p->ifindex)
			continue;
		if (now.flags != e->port[i].flags)
			flags_changed(e, r, i, now.flags);
		if (now.mtu != e->port[i].mtu)
			mtu_changed(e, r, i, now.mtu);
		if ((now.flags & IFF_UP) && xdpath_port_queues(&now) != e->port[i].queues)
			queues_changed(e, r, i, xdpath_port_queues(&now));
		if (program_gone(e, r, i, p->ifindex))
			return true;
		look_at_unserved(e, r, i);
	}
	for (uint32_t i = 0; (w = xdpath_datapath_worker(r->dp, i)); i++)
		for (uint32_t j = 0; j < w->nsockets; j++)
			look_at_tx(e, r, w, j);
	return false;
}
