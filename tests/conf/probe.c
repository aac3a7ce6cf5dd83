// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * How this kernel behaves where kernels differ. Run once by the runner before the tests, which take
 * their expectations from what is found here. Probing is by single, simple cases; the tests then
 * hold other and harder ones against it.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "raw.h"

#ifndef XDP_TX_METADATA
#define XDP_TX_METADATA (1 << 1)
#endif

#define SHORTLY (conf->nic ? 150U : 50U) /* ms */

static struct raw tx, rx;

/* Completions after a kick: they come within microseconds, or not at all. */
static void completions(void)
{
	uint64_t until = conf_now_ms() + SHORTLY;

	while (tx.out.n && conf_now_ms() < until) {
		tx.e.reap(&tx.e);
		conf_pause();
	}
}

/* Packets that come, at most so many are waited for; *bytes: of the last. */
static uint32_t packets(uint32_t most, uint32_t *bytes)
{
	uint64_t until = conf_now_ms() + SHORTLY;
	struct xdp_desc d[64];
	uint32_t n = 0, got, k;

	while (n < most && conf_now_ms() < until) {
		got = rx.e.recv(&rx.e, d, 64);
		xdpath_for_each_packet (p, k, d, got) {
			n++;
			if (bytes)
				*bytes = xdpath_pkt_len(p, k);
		}
		rx.e.give(&rx.e, d, got);
		conf_pause();
	}
	return n;
}

/* All back, or given up. */
static void clear(void)
{
	tx.e.kick(&tx.e);
	completions();
	tx.out.n = 0;
	packets(UINT32_MAX, NULL);
}

static void probe_invalid(struct conf_kernel *k)
{
	const struct xdp_desc d[] = {{.addr = 0, .len = 9001}, {.addr = 4096, .len = 64}};
	const struct xdp_desc zero = {.addr = 0, .len = 0};
	struct end_stats before = {0}, after = {0};

	raw_submit(&tx, d, 2);
	raw_kick_once(&tx);
	k->bad_ends_call = packets(1, NULL) == 0; /* zero-copy: ends a look into the ring */
	tx.e.kick(&tx.e);
	completions();
	k->reclaims_invalid = tx.out.n == 0;
	clear();
	end_stats(&tx.e, &before);
	raw_submit(&tx, &zero, 1);
	clear();
	end_stats(&tx.e, &after);
	k->zero_invalid = after.tx_invalid > before.tx_invalid;
}

static void probe_odd(struct conf_kernel *k)
{
	const struct xdp_desc d = {.addr = 4097, .len = 64};

	k->odd_verbatim = true; /* else the books would take the other for it */
	raw_submit(&tx, &d, 1);
	tx.e.kick(&tx.e);
	completions();
	k->odd_verbatim = tx.out.n == 0;
	clear();
}

static void probe_drain(struct conf_kernel *k)
{
	const struct xdp_desc d[] = {{.addr = 0, .len = 3072, .options = XDP_PKT_CONTD},
				     {.addr = tx.size, .len = 3072, .options = XDP_PKT_CONTD},
				     {.addr = 4096, .len = 64},
				     {.addr = 8192, .len = 64}};

	if (!k->sg)
		return;
	raw_submit(&tx, d, 4);
	tx.e.kick(&tx.e);
	k->drains_contd = packets(2, NULL) == 1;
	completions();
	k->reclaims_lead = tx.out.n == 0;
	clear();
}

/* The most fragments that arrive as one packet. */
static void probe_frags(struct conf_kernel *k)
{
	struct xdp_desc d[64];

	k->frags = 1;
	for (uint32_t n = 2; k->sg && n <= 64; n++) {
		uint32_t bytes = 0;

		for (uint32_t i = 0; i < n; i++)
			d[i] = (struct xdp_desc){.addr = i * 4096,
						 .len = 64,
						 .options = i + 1 < n ? XDP_PKT_CONTD : 0};
		raw_submit(&tx, d, n);
		tx.e.kick(&tx.e);
		if (packets(1, &bytes) != 1 || bytes != n * 64)
			break;
		k->frags = n;
		completions();
	}
	clear();
}

static void probe_budget(struct conf_kernel *k)
{
	struct xdp_desc d[400];
	uint32_t value = 64;

	for (uint32_t i = 0; i < 400; i++)
		d[i] = (struct xdp_desc){.addr = (uint64_t)(i % 256) * 4096, .len = 64};
	raw_submit(&tx, d, 400);
	k->again_when_more = raw_kick_once(&tx) == -EAGAIN;
	k->tx_budget = packets(400, NULL);
	k->late_index = k->tx_budget < 400 && xdpath_prod_pending(&tx.tx) == 400;
	clear();
	k->budget_settable =
		setsockopt(tx.e.fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &value, sizeof(value)) == 0;
}

static void probe_short(struct conf_kernel *k)
{
	const struct xdp_desc d = {.addr = 0, .len = 13};

	raw_submit(&tx, &d, 1);
	k->short_refused = raw_kick_once(&tx) == -EBUSY;
	clear();
}

static bool reg_ok(uint32_t chunk, uint32_t headroom, uint32_t flags, uint32_t md)
{
	static void *area;
	int fd = raw_socket();
	bool ok;

	if (!area)
		area = raw_area(1 << 20, false);
	ok = area && raw_reg(fd, area, 1 << 20, chunk, headroom, flags, md) == 0;
	raw_close(&(struct raw){.e.fd = fd});
	return ok;
}

static uint32_t largest_headroom(uint32_t chunk)
{
	uint32_t good = 0, bad = chunk + 1;

	while (bad - good > 1) {
		uint32_t mid = good + (bad - good) / 2;

		if (reg_ok(chunk, mid, 0, 0))
			good = mid;
		else
			bad = mid;
	}
	return good;
}

/* A packet across a page's end, from memory of 4 KiB pages. */
static void probe_unaligned(struct conf_kernel *k)
{
	const struct raw_opts o = {.dev = NET_A,
				   .rx = RAW_NONE,
				   .umem_flags = XDP_UMEM_UNALIGNED_CHUNK_FLAG};
	const struct xdp_desc d = {.addr = 4096 - 32, .len = 64};
	struct end_stats st = {0};
	struct raw r;

	raw_close(&tx);
	if (raw_open(&r, &o))
		return;
	raw_submit(&r, &d, 1);
	r.e.kick(&r.e);
	k->unaligned_pages = end_stats(&r.e, &st) == CONF_OK && st.tx_invalid == 0;
	raw_close(&r);
}

/* Two ends that reach each other. */
static int connect_ends(struct conf_kernel *k)
{
	const struct xdp_desc d = {.addr = 0, .len = 64};
	uint64_t until = conf_now_ms() + CONF_PATIENCE_MS;
	struct raw_opts o = {.dev = NET_A, .several = true};
	int err;

	attempt(net_make(conf->nic ? 1500 : 9000));
	err = raw_open(&tx, &o);
	k->sg = err == 0;
	o.several = k->sg;
	if (err)
		err = raw_open(&tx, &o);
	if (err)
		return conf_skip("no such socket at %s: %s: %s", NET_A, tx.stage, strerror(-err));
	o.dev = NULL;
	err = raw_open(&rx, &o);
	if (err)
		return conf_skip("no such socket at %s: %s: %s", NET_B, rx.stage, strerror(-err));
	attempt(net_attach(NET_B, NET_REDIRECT));
	attempt(net_socket(0, rx.e.fd));
	do {
		need(conf_now_ms() < until, "nothing that %s sends arrives at %s", NET_A, NET_B);
		raw_submit(&tx, &d, 1);
		tx.e.kick(&tx.e);
		completions();
	} while (packets(1, NULL) == 0);
	clear();
	return CONF_OK;
}

int conf_probe(const void *arg)
{
	struct conf_kernel *k = &conf->k;

	(void)arg;
	attempt(connect_ends(k));
	probe_invalid(k);
	probe_odd(k);
	probe_drain(k);
	probe_frags(k);
	k->tx_budget = UINT32_MAX;
	k->late_index = k->again_when_more = k->budget_settable = k->short_refused = false;
	if (conf->mode != CONF_ZC) {
		probe_budget(k);
		probe_short(k);
	}
	probe_unaligned(k);
	k->tx_metadata = reg_ok(4096, 0, RAW_UMEM_TX_METADATA, 16);
	k->sw_csum = reg_ok(4096, 0, RAW_UMEM_SW_CSUM, 0);
	k->headroom_4k = largest_headroom(4096);
	k->headroom_2k = largest_headroom(2048);
	return CONF_OK;
}
