/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A port's carrier after opening: drivers reset their device when a program is attached and when a
 * queue is bound, and what is sent until the link is back is lost (igb: about 2 s). Called by
 * datapath.c before any worker starts.
 */
#include <errno.h>
#include <time.h>

#include "carrier.h"
#include "internal.h"

#define LOOK_NS 10000000L

/* All ports together: they reset at the same time. A port that is set down is not waited for. */
static bool all_there(struct xdpath_datapath *dp)
{
	bool all = true;

	for (uint32_t i = 0; i < dp->nports; i++) {
		struct xdpath_port *p = &dp->port[i];
		uint32_t downs = p->carrier_downs;

		if (xdpath_port_link(p->ifindex, &p->flags, &p->carrier_downs))
			continue; /* it is gone: events tell that */
		p->link_reset |= p->carrier_downs != downs;
		if (p->carrier_seen && (p->flags & IFF_UP) && !xdpath_has_carrier(p->flags))
			all = false;
	}
	return all;
}

void xdpath_carrier_wait(struct xdpath_datapath *dp)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	uint64_t until = xdpath_now_ms() + dp->knobs.open_wait_ms;

	while (!all_there(dp) && xdpath_now_ms() < until)
		nanosleep(&pause, NULL);
	for (uint32_t i = 0; i < dp->nports; i++) {
		const struct xdpath_port *p = &dp->port[i];

		xdpath_datapath_set_link(dp, i, xdpath_has_carrier(p->flags));
		if (dp->live_link[i] || !(p->flags & IFF_UP))
			continue;
		if (p->carrier_seen)
			xdpath_notice(
				dp, "no-carrier", i,
				"%s: no carrier, waited %u ms for it (open.wait_ms); goes on, "
				"nothing is sent until it is there: see the cable or the peer",
				p->name, dp->knobs.open_wait_ms);
		else
			xdpath_notice(
				dp, "no-carrier", i,
				"%s: no carrier, and there never was one; goes on, nothing is "
				"sent until it is there: see the cable or the peer",
				p->name);
	}
}
