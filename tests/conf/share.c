// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * Several sockets on one UMEM (rows 19, 21): on one queue made by hand, the library gives each
 * socket a queue of its own; on two queues by the library. And need_wakeup on and off.
 */
#include "raw.h"

/* Two receivers on queue 0; the slot goes from the first to the second between two runs. */
static int prog_cleanup(const void *arg)
{
	const struct flow f = {.count = 4096, .len = 64};
	struct raw tx, one, two;

	(void)arg;
	attempt(net_make(1500));
	attempt(raw_need(&tx, &(struct raw_opts){.dev = NET_A}));
	attempt(raw_need(&one, &(struct raw_opts){0}));
	attempt(raw_need(&two, &(struct raw_opts){.share = &one}));
	attempt(net_attach(NET_B, NET_REDIRECT));
	attempt(net_socket(0, one.e.fd));
	attempt(flow_run(&tx.e, &one.e, &f));
	attempt(net_socket(0, two.e.fd));
	attempt(flow_run(&tx.e, &two.e, &f));
	need(xdpath_cons_avail(&one.rx, 1) == 0, "the first socket got some of it");
	return CONF_OK;
}

/* Two senders and two receivers, one UMEM and one queue on each side. */
static int shared_umem(const void *arg)
{
	const uint32_t rounds = 2048 / FLOW_BATCH;
	struct flow f[2] = {{.len = 64}, {.len = 64, .dst = 1, .stream = 1}};
	struct flow_seen seen[2] = {{0}, {0}};
	struct raw tx[2], rx[2];

	(void)arg;
	attempt(net_make(1500));
	attempt(raw_need(&tx[0], &(struct raw_opts){.dev = NET_A}));
	attempt(raw_need(&tx[1], &(struct raw_opts){.dev = NET_A, .share = &tx[0]}));
	attempt(raw_need(&rx[0], &(struct raw_opts){0}));
	attempt(raw_need(&rx[1], &(struct raw_opts){.share = &rx[0]}));
	tx[0].tx_last = tx[1].tx_first = tx[1].tx_next = 768; /* no frame is used by both */
	tx[1].tx_last = 1024;
	attempt(net_attach(NET_B, NET_BY_MAC));
	attempt(net_socket(0, rx[0].e.fd));
	attempt(net_socket(1, rx[1].e.fd));
	for (uint32_t i = 0; i < rounds; i++) {
		for (uint32_t j = 0; j < 2; j++)
			attempt(flow_send(&tx[j].e, &f[j], i * FLOW_BATCH, FLOW_BATCH));
		for (uint32_t j = 0; j < 2; j++)
			attempt(flow_wait(&tx[0].e, &rx[j].e, &f[j], &seen[j],
					  (i + 1) * FLOW_BATCH));
	}
	attempt(flow_drain(&tx[0].e));
	for (uint32_t j = 0; j < 2; j++) {
		attempt(flow_recv(&rx[j].e, &f[j], &seen[j]));
		need(seen[j].got == 2048, "socket %u got %u packets", j, seen[j].got);
		attempt(tx[j].e.audit(&tx[j].e));
		attempt(rx[j].e.audit(&rx[j].e));
	}
	return CONF_OK;
}

/* Two queues of one port and of both ports on one UMEM, each with rings of its own. */
static int shared_queues(const void *arg)
{
	const struct flow f = {.count = 2048, .len = 64};
	struct xdpath_prog *g = NULL;
	struct api tx, one, two;

	(void)arg;
	attempt(net_make(1500));
	attempt(net_queues(2));
	attempt(api_open(&one, &(struct api_opts){.frames = 4096, .umem_frames = 12288}));
	attempt(api_open(&two, &(struct api_opts){.frames = 4096, .queue = 1, .share = &one.e}));
	attempt(api_open(&tx, &(struct api_opts){.dev = NET_A, .frames = 4096, .share = &one.e}));
	attempt(api_steer(&g, &two, 1));
	attempt(api_steer(&g, &one, 0));
	attempt(flow_run(&tx.e, &one.e, &f));
	attempt(two.e.audit(&two.e));
	return one.e.audit(&one.e);
}

/* Copy mode always wants a call; in zero-copy the driver says so, at the latest when idle. */
static int wakeup(const void *arg)
{
	const bool on = arg != NULL;
	const struct flow f = {.count = 4096, .len = 64};
	const struct raw_opts o = {.bind = RAW_BIND | raw_mode() | (on ? XDP_USE_NEED_WAKEUP : 0)};
	uint64_t until;
	struct raw tx, rx;

	attempt(raw_pair(&tx, &rx, &o, &o, 1500));
	need(!on || conf->mode == CONF_ZC || xdpath_prod_need_wakeup(&tx.tx),
	     "no flag in the TX ring before");
	attempt(flow_run(&tx.e, &rx.e, &f));
	until = conf_now_ms() + (conf->mode == CONF_ZC ? CONF_PATIENCE_MS : 0);
	while (on && !xdpath_prod_need_wakeup(&tx.tx)) {
		need(conf_now_ms() < until, "no flag in the TX ring after");
		conf_pause();
	}
	return CONF_OK;
}

const struct conf_test share_tests[] = {
	{.row = 19,
	 .name = "XDP_PROG_CLEANUP",
	 .modes = CONF_BOTH,
	 .fn = prog_cleanup,
	 .what = "the slot's socket is exchanged"},
	{.row = 21,
	 .name = "XDP_SHARED_UMEM",
	 .modes = CONF_BOTH,
	 .fn = shared_umem,
	 .what = "two sockets, one UMEM, one queue, at both ends"},
	{.row = 21,
	 .name = "SHARED_UMEM_QUEUES",
	 .modes = CONF_BOTH,
	 .fn = shared_queues,
	 .what = "three queues of two ports on one UMEM, by the library"},
	{.name = "NEED_WAKEUP_ON",
	 .modes = CONF_BOTH,
	 .fn = wakeup,
	 .arg = "on",
	 .what = "the driver, and copy mode always, wants a call"},
	{.name = "NEED_WAKEUP_OFF",
	 .modes = CONF_BOTH,
	 .fn = wakeup,
	 .what = "bound without it, the flag is not looked at"},
	{0},
};
