// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * The library's validator against the kernel's. A random packet of 1 to 20 descriptors, good or
 * bad, is first judged by xdpath_tx_burst() on a queue whose rings lead nowhere; then the same
 * descriptors are written to a socket's TX ring by hand and the kernel judges:
 *
 *   taken                      <=> sent: nothing counted as invalid, no EBUSY
 *   refused as invalid, or with
 *   more fragments than go     <=> tx_invalid_descs moves
 *   too short, above the MTU   <=> EBUSY: the device drops it
 *
 * One packet at a time. The last descriptor never has XDP_PKT_CONTD, so that the kernel is at a
 * packet's beginning again afterwards; where it does not drain the rest of a bad one, a good packet
 * is sent in between. Left out: XDP_TX_METADATA, which the library always refuses and which stops
 * the kernel's ring (TX_POISONED_HEAD); a packet without an end (TX_PARTIAL).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "raw.h"

#define FRAGS 20U
#define MTU   (conf->nic ? 1500U : 3000U) /* of a veth: several fragments fit */

/* All frames the application's, rings in ordinary memory. */
struct judge {
	struct xdpath_queue q;
	struct xdpath_frames f;
	uint32_t index[3]; /* producer, consumer, flags: the ring is always empty */
	struct xdp_desc ring[64];
};

enum verdict { TAKEN, INVALID, DROPPED };
static const char *const verdict_name[] = {"taken", "invalid", "dropped"};

static uint64_t state;
static struct judge judge;

static uint64_t rnd(void) /* xorshift64 */
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t below(uint64_t n)
{
	return rnd() % n;
}

static int judge_open(const struct api *a)
{
	judge.q = a->s->q;
	judge.f = *a->frames;
	judge.f.owner = calloc(1, judge.f.total);
	judge.f.stack = calloc(judge.f.total, sizeof(uint64_t));
	need(judge.f.owner && judge.f.stack, "no memory");
	judge.f.first = 0;
	judge.f.end = judge.f.total; /* the whole UMEM: only the kernel's rules shall count */
	judge.q.frames = &judge.f;
	if (conf->nic && judge.q.tx_max_frags > conf->k.frags)
		judge.q.tx_max_frags = conf->k.frags; /* see TX_FRAGS_LIMIT */
	judge.q.tx = (struct xdpath_prod){.mask = 63,
					  .size = 64,
					  .k_producer = &judge.index[0],
					  .k_consumer = &judge.index[1],
					  .k_flags = &judge.index[2],
					  .entries = judge.ring};
	return CONF_OK;
}

/* Judge d[0..n). The ledger is as new each time. */
static enum verdict judge_packet(const struct xdp_desc *d, uint32_t n)
{
	struct xdpath_queue *q = &judge.q;

	memset(judge.f.owner, XDPATH_HELD, judge.f.total);
	judge.f.count = 0;
	q->tx.prod = 0;
	q->tx.limit = q->tx.size;
	judge.index[0] = judge.index[1] = 0;
	memset(&q->n, 0, sizeof(q->n));
	xdpath_tx_burst(q, d, n);
	if (q->n.tx_packets)
		return TAKEN;
	if (q->n.tx_invalid || n > q->tx_max_frags)
		return INVALID;
	return DROPPED;
}

/* ---- random descriptors: mostly good, near every limit, sometimes anything ---- */

static uint64_t random_addr(uint64_t size, uint32_t chunk)
{
	uint64_t frame = below(size / chunk) * chunk;

	switch (below(16)) {
	case 0: return frame + chunk - below(80);
	case 1: return size - below(200);
	case 2: return size + below(200);
	case 3: return (uint64_t)0 - below(200);
	case 4: return rnd();
	case 5: return rnd() >> below(64);
	case 6: return frame + below(chunk);
	case 7: return below(64);
	default: return frame + below(chunk / 2);
	}
}

static uint32_t random_len(uint32_t chunk)
{
	switch (below(16)) {
	case 0: return 0;
	case 1: return (uint32_t)below(30);
	case 2: return chunk + 1 - (uint32_t)below(3);
	case 3: return (uint32_t)rnd();
	case 4: return (uint32_t)rnd() >> below(32);
	case 5: return MTU + 12 + (uint32_t)below(10);
	default: return 14 + (uint32_t)below(chunk / 2 - 14);
	}
}

static uint32_t random_options(bool last)
{
	uint32_t bits = 0;

	if (below(40) == 0)
		bits = below(2) ? 1U << (2 + below(30)) : (uint32_t)rnd();
	bits &= ~(uint32_t)(XDP_TX_METADATA | XDP_PKT_CONTD);
	return last ? bits : bits | XDP_PKT_CONTD;
}

static uint32_t random_packet(struct xdp_desc *d, uint64_t size, uint32_t chunk)
{
	uint32_t n = !conf->k.sg || below(3) ? 1 : 1 + (uint32_t)below(FRAGS);
	bool careful = below(2); /* else a packet of many fragments is hardly ever good */

	for (uint32_t i = 0; i < n; i++) {
		if (careful && below(n)) {
			d[i].addr = below(size / chunk) * chunk + below(chunk / 2);
			d[i].len = 1 + (uint32_t)below(2 * MTU / n < chunk / 2 ? 2 * MTU / n
									       : chunk / 2);
		} else {
			d[i].addr = random_addr(size, chunk);
			d[i].len = random_len(chunk);
		}
		d[i].options =
			careful ? (i + 1 < n ? XDP_PKT_CONTD : 0) : random_options(i + 1 == n);
	}
	return n;
}

/* ---- the kernel's judgement ---- */

/* Until the TX ring is empty; *busy: the device dropped something. */
static int kick_all(struct api *a, bool *busy)
{
	uint64_t until = conf_now_ms() + CONF_PATIENCE_MS;
	struct xdpath_cons *c = &a->s->q.comp;

	while (xdpath_prod_pending(&a->s->q.tx)) {
		int err = sendto(a->e.fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 ? errno : 0;

		need(err == 0 || err == EAGAIN || err == EBUSY || err == ENOBUFS, "sendto: %s",
		     strerror(err));
		*busy |= err == EBUSY;
		need(conf_now_ms() < until, "the ring is not emptied");
		c->cons += xdpath_cons_avail(c, UINT32_MAX);
		xdpath_cons_release(c);
	}
	return CONF_OK;
}

static void write_raw(struct api *a, const struct xdp_desc *d, uint32_t n)
{
	struct xdpath_prod *r = &a->s->q.tx;
	struct xdp_desc *ring = r->entries;

	for (uint32_t i = 0; i < n; i++)
		ring[r->prod++ & r->mask] = d[i];
	xdpath_prod_submit(r);
}

static int kernel_packet(struct api *a, const struct xdp_desc *d, uint32_t n, enum verdict *v)
{
	static const struct xdp_desc good = {.addr = 0, .len = 64};
	static uint64_t invalid_before;
	struct end_stats st;
	bool busy = false, ignored;

	write_raw(a, d, n);
	attempt(kick_all(a, &busy));
	if (!conf->k.drains_contd) { /* what the kernel took for a new packet ends here */
		write_raw(a, &good, 1);
		attempt(kick_all(a, &ignored));
	}
	attempt(end_stats(&a->e, &st));
	*v = st.tx_invalid != invalid_before ? INVALID : busy ? DROPPED : TAKEN;
	invalid_before = st.tx_invalid;
	return CONF_OK;
}

static bool has_zero(const struct xdp_desc *d, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (d[i].len == 0)
			return true;
	return false;
}

static int disagree(const struct xdp_desc *d, uint32_t n, enum verdict ours, enum verdict theirs,
		    uint32_t number)
{
	char text[400] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < n && at < sizeof(text) - 60; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, " {0x%llx, %u, 0x%x}",
				       (unsigned long long)d[i].addr, d[i].len, d[i].options);
	need(false, "seed %llu packet %u: we say %s, the kernel %s:%s",
	     (unsigned long long)conf->seed, number, verdict_name[ours], verdict_name[theirs],
	     text);
	return CONF_FAIL;
}

static int fuzz(const void *arg)
{
	const uint32_t frame = *(const uint32_t *)arg;
	uint64_t until = conf_now_ms() + (conf->long_run ? 60000 : 2000);
	uint32_t count[3] = {0}, total = 0, n;
	struct xdp_desc d[FRAGS];
	enum verdict ours, theirs;
	struct api a;

	state = conf->seed * 0x9e3779b97f4a7c15ULL + frame;
	state = state ? state : 1;
	attempt(net_make(MTU));
	attempt(api_open(&a, &(struct api_opts){.dev = NET_A,
						.frame_size = frame,
						.frames = 1024,
						.several = conf->k.sg}));
	attempt(judge_open(&a));
	for (; total < 10000000 && conf_now_ms() < until; total++) {
		n = random_packet(d, xdpath_umem_size(a.umem), frame);
		if (!conf->k.zero_invalid && has_zero(d, n))
			continue; /* too short, for this kernel */
		ours = judge_packet(d, n);
		if (ours == DROPPED && !conf->k.short_refused && xdpath_pkt_len(d, n) < 14)
			continue; /* this kernel sends what is too short */
		if (ours == DROPPED && conf->nic)
			continue; /* nobody judges lengths; the NIC may not bear it */
		attempt(kernel_packet(&a, d, n, &theirs));
		/* the kernel also takes four bytes above the MTU, for a tag that is not there */
		if (ours == DROPPED && theirs == TAKEN && xdpath_pkt_len(d, n) > MTU + 14 &&
		    xdpath_pkt_len(d, n) <= MTU + 18)
			continue;
		if (ours != theirs)
			return disagree(d, n, ours, theirs, total);
		count[ours]++;
	}
	need(count[TAKEN] > total / 20 && count[INVALID] > total / 20 &&
		     (count[DROPPED] > 0 || conf->nic),
	     "%u taken, %u invalid, %u dropped of %u", count[0], count[1], count[2], total);
	conf_note("seed %llu: %u taken, %u invalid, %u dropped", (unsigned long long)conf->seed,
		  count[0], count[1], count[2]);
	return CONF_OK;
}

const struct conf_test fuzz_tests[] = {
	{.name = "FUZZ_4K_FRAMES",
	 .modes = CONF_ANY,
	 .fn = fuzz,
	 .arg = &(const uint32_t){4096},
	 .what = "our validator says what the kernel says",
	 .seconds = 90},
	{.name = "FUZZ_2K_FRAMES",
	 .modes = CONF_ANY,
	 .fn = fuzz,
	 .arg = &(const uint32_t){2048},
	 .what = "the same with 2048-byte frames",
	 .seconds = 90},
	{0},
};
