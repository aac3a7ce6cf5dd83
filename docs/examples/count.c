/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The smallest program on the library: count what arrives on a device for three seconds.
 *   cc count.c $(pkg-config --cflags --libs --static xdpath) && ./a.out eth1
 */
#include <err.h>
#include <stdio.h>
#include <unistd.h>

#include <xdpath/xdpath.h>

/* The worker calls this again and again for each of its sockets; 0 lets it sleep. */
static uint32_t my_round(void *ctx, struct xdpath_worker *w, uint32_t i)
{
	struct xdpath_queue *q = &w->sockets[i]->q;
	struct xdp_desc burst[XDPATH_BURST_ROOM];
	uint32_t n = xdpath_rx_burst(q, burst, w->batch);

	(void)ctx;
	xdpath_release(q, burst, n); /* every frame is released, held or sent */
	return n;
}

int main(int argc, char **argv)
{
	struct xdpath_datapath_opts o = XDPATH_OPTS_INIT(struct xdpath_datapath_opts);
	struct xdpath_diag why = {0};
	struct xdpath_datapath *dp;
	const struct xdpath_worker *w;
	uint64_t packets = 0;

	o.ports[0] = argc > 1 ? argv[1] : "eth1";
	o.nports = 1;
	o.steer = XDPATH_STEER_ALL; /* all but ARP, ND and ICMP */
	o.diag = &why;
	if (xdpath_datapath_open(&dp, &o))
		errx(1, "%s", why.text); /* one line: what, why, what to do */
	printf("mode %s; not better because: %s\n", xdpath_mode_name(xdpath_datapath_mode(dp)),
	       why.text);
	if (xdpath_datapath_start(dp, my_round, NULL))
		errx(1, "the workers did not start");
	sleep(3);
	xdpath_datapath_stop(dp);
	for (uint32_t i = 0; (w = xdpath_datapath_worker(dp, i)); i++)
		for (uint32_t j = 0; j < w->nsockets; j++)
			packets += xdpath_counted(&w->sockets[j]->q.n.rx_packets);
	printf("%llu packets\n", (unsigned long long)packets);
	xdpath_datapath_close(dp);
	return 0;
}
