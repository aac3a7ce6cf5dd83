/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* forward: frames from one port to the other, both ways, all queues; one device hairpins. */
#include "relay.h"

static uint32_t forward_round(void *ctx, struct xdpath_worker *w, uint32_t i)
{
	return relay(ctx, w, i, NULL);
}

int cmd_forward(const struct args *a)
{
	struct run r;

	run_init(&r, "forward", a);
	if (!a->steer_given && !a->rules.n)
		r.o.steer = XDPATH_STEER_L2; /* an L2 forwarder keeps nothing back */
	r.o.promisc = !a->no_promisc;
	r.o.plain_rx = true;
	r.round = forward_round;
	r.prepare = relay_prepare;
	r.finish = relay_finish;
	return run_datapath(&r);
}
