// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/* The rows about what the kernel counts when it loses or refuses something (15 to 18, 36). */
#include <errno.h>
#include <string.h>

#include "raw.h"

#define SENT  1536U
#define ROOM  1024U
#define BATCH 64U

/* A receiver and its RX ring, whoever made it. */
struct receiver {
	struct end *e;
	struct xdpath_cons *ring;
};

/*
 * Send f and wait until each packet is either in the receiver's ring or counted by it as lost. In
 * zero-copy what finds no room may stay in the NIC, or be lost there: then a while is enough.
 */
static int send_counted(struct api *tx, const struct receiver *rx, const struct flow *f,
			uint64_t (*lost)(const struct end_stats *st))
{
	const uint32_t in_nic_ms = 50;
	struct end_stats st;

	for (uint32_t i = 0; i < f->count; i += BATCH) {
		uint64_t begin = conf_now_ms();
		uint32_t there;

		attempt(flow_send(&tx->e, f, i, BATCH));
		for (;;) {
			tx->e.reap(&tx->e);
			attempt(end_stats(rx->e, &st));
			there = xdpath_cons_avail(rx->ring, UINT32_MAX);
			if (there == i + BATCH || there + lost(&st) == i + BATCH)
				break;
			if (conf->mode == CONF_ZC && there == ROOM &&
			    conf_now_ms() > begin + in_nic_ms)
				break;
			need(conf_now_ms() < begin + CONF_PATIENCE_MS,
			     "of %u sent %u are there, %llu counted lost", i + BATCH, there,
			     (unsigned long long)lost(&st));
			conf_pause();
		}
	}
	return conf->mode == CONF_ZC ? CONF_OK : flow_drain(&tx->e);
}

static uint64_t full(const struct end_stats *st)
{
	return st->rx_full;
}

static uint64_t empty(const struct end_stats *st)
{
	return st->fill_empty;
}

static uint64_t either(const struct end_stats *st)
{
	return st->rx_full + st->fill_empty;
}

/*
 * Zero-copy: what the NIC kept while there was no room for it. The sender's NIC may have waited for
 * that too, as emulated wires do, which then do not keep the order.
 */
static int rest_comes(struct end *tx, struct end *rx, const struct flow *f, uint32_t *more)
{
	uint64_t quiet = conf_now_ms() + 200;
	struct xdp_desc d[FLOW_BATCH];
	struct end_stats st;
	uint32_t k, number;

	for (*more = 0; conf_now_ms() < quiet; conf_pause()) {
		uint32_t n = rx->recv(rx, d, FLOW_BATCH);

		xdpath_for_each_packet (p, k, d, n) {
			attempt(flow_check(rx, p, k, f, &number));
			need(number >= ROOM && number < SENT, "packet %u came again", number);
			quiet = conf_now_ms() + 200;
			(*more)++;
		}
		rx->give(rx, d, n);
	}
	attempt(end_stats(rx, &st));
	conf_note("rx_ring_full %llu, rx_fill_ring_empty_descs %llu, %u more came from the NIC",
		  (unsigned long long)st.rx_full, (unsigned long long)st.fill_empty, *more);
	return flow_drain(tx);
}

/* The receiver takes nothing while SENT packets come, of which ROOM find room; then it goes on. */
static int overrun(const struct receiver *rx, uint64_t (*lost)(const struct end_stats *st))
{
	struct flow f = {.count = SENT, .len = 64};
	struct flow_seen seen = {0};
	struct end_stats st;
	uint32_t more = 0;
	struct api tx;

	attempt(api_open(&tx, &(struct api_opts){.dev = NET_A, .no_rx = true}));
	attempt(send_counted(&tx, rx, &f, lost));
	attempt(end_stats(rx->e, &st));
	attempt(flow_wait(NULL, rx->e, &f, &seen, ROOM));
	need(seen.next == ROOM, "the last is %u: not the first %u were kept", seen.next - 1, ROOM);
	if (conf->mode == CONF_ZC)
		attempt(rest_comes(&tx.e, rx->e, &f, &more));
	/* zero-copy: drivers look for frames again and again; some keep what finds no room */
	if (conf->mode == CONF_ZC && (lost == empty || more))
		need(lost(&st) > 0, "none is counted");
	else
		need(lost(&st) == SENT - ROOM, "%llu counted", (unsigned long long)lost(&st));
	f.first = SENT;
	return flow_run(&tx.e, rx->e, &f); /* nothing is lost any more */
}

/* By hand: the library posts no more frames than its ring has slots. */
static int rx_full(const void *arg)
{
	struct raw r;

	(void)arg;
	attempt(net_make(1500));
	attempt(raw_need(&r, &(struct raw_opts){.rx = ROOM, .frames = 4096, .tx = RAW_NONE}));
	attempt(net_attach(NET_B, NET_REDIRECT));
	attempt(net_socket(0, r.e.fd));
	return overrun(&(struct receiver){&r.e, &r.rx}, full);
}

static int overrun_lib(const struct api_opts *o, uint64_t (*lost)(const struct end_stats *st))
{
	struct xdpath_prog *g = NULL;
	struct api rx;

	attempt(net_make(1500));
	attempt(api_open(&rx, o));
	attempt(api_steer(&g, &rx, 0));
	return overrun(&(struct receiver){&rx.e, &rx.s->q.rx}, lost);
}

static int rx_full_lib(const void *arg)
{
	(void)arg;
	return overrun_lib(&(const struct api_opts){.rx = ROOM, .no_tx = true},
			   conf->mode == CONF_ZC ? full : either);
}

static int fill_empty(const void *arg)
{
	(void)arg;
	return overrun_lib(&(const struct api_opts){.frames = ROOM, .no_tx = true}, empty);
}

/* Headroom leaves less room than odd packets need, on a socket of one fragment a packet. */
static int rx_dropped(const void *arg)
{
	const uint32_t most = 4096 - 256 - 320 - 128, frame = 4096;
	struct flow f = {.count = 4096, .len = 64, .arrives = flow_even};
	uint32_t headroom = conf->k.headroom_4k < most ? conf->k.headroom_4k : most;
	struct xdpath_prog *g = NULL;
	struct end_stats st;
	struct api tx, rx;

	(void)arg;
	f.len_odd = frame - 256 - headroom + 64;
	attempt(net_make(1500));
	attempt(api_open(&tx, &(struct api_opts){.dev = NET_A, .no_rx = true}));
	attempt(api_open(&rx, &(struct api_opts){.headroom = headroom, .no_tx = true}));
	attempt(api_steer(&g, &rx, 0));
	attempt(flow_run(&tx.e, &rx.e, &f));
	attempt(end_stats(&rx.e, &st));
	/* the last may be under way */
	need(st.rx_dropped == 2048 || st.rx_dropped == 2047, "rx_dropped %llu",
	     (unsigned long long)st.rx_dropped);
	return CONF_OK;
}

/* Odd packets are longer than a frame: by hand, so that the kernel has to find it. */
static int tx_invalid(const void *arg)
{
	struct flow f = {.count = 4096, .len = 64, .arrives = flow_even};
	struct flow_seen seen = {0};
	struct raw tx, rx;
	struct end_stats st;

	(void)arg;
	attempt(raw_pair(&tx, &rx, &(struct raw_opts){0}, &(struct raw_opts){0}, 1500));
	for (uint32_t i = 0; i < f.count; i++) {
		uint64_t at = (uint64_t)(512 + i % 512) * 4096;
		struct xdp_desc d = {.addr = at, .len = i % 2 ? 9001 : 64};

		if (i % 2 == 0)
			flow_write(&tx.e, &d, 1, &f, i);
		raw_submit(&tx, &d, 1);
		if (i % BATCH != BATCH - 1)
			continue;
		need(tx.e.kick(&tx.e) == 0, "kick after packet %u", i);
		attempt(flow_wait(&tx.e, &rx.e, &f, &seen, (i + 1) / 2));
		if (!conf->k.reclaims_invalid)
			for (uint32_t j = 1; j < BATCH; j += 2)
				raw_forget(&tx,
					   &(struct xdp_desc){
						   .addr = (uint64_t)(512 +
								      (i - BATCH + 1 + j) % 512) *
							   4096},
					   1);
	}
	attempt(flow_drain(&tx.e));
	attempt(end_stats(&tx.e, &st));
	need(st.tx_invalid == 2048, "tx_invalid_descs %llu", (unsigned long long)st.tx_invalid);
	attempt(tx.e.audit(&tx.e));
	return rx.e.audit(&rx.e);
}

/* The same by the library: it refuses them itself, the kernel sees none. */
static int tx_invalid_api(const void *arg)
{
	const struct flow f = {.count = 4096, .len = 64, .len_odd = 9001, .arrives = flow_even};
	struct flow_seen seen = {0};
	struct xdpath_prog *g = NULL;
	struct api tx, rx;
	struct end_stats st;

	(void)arg;
	attempt(net_make(1500));
	attempt(api_open(&tx, &(struct api_opts){.dev = NET_A, .no_rx = true}));
	attempt(api_open(&rx, &(struct api_opts){.no_tx = true}));
	attempt(api_steer(&g, &rx, 0));
	for (uint32_t i = 0; i < f.count; i++) {
		uint64_t addr = 0;
		struct xdp_desc d = {.len = 64};

		need(tx.e.get(&tx.e, &addr, 1) == 1, "no frame for packet %u", i);
		d.addr = addr;
		flow_write(&tx.e, &d, 1, &f, i);
		d.len = i % 2 ? 9001 : 64;
		need(tx.e.send(&tx.e, &d, 1), "packet %u was left", i);
		if (i % BATCH != BATCH - 1)
			continue;
		need(tx.e.kick(&tx.e) == 0, "kick after packet %u", i);
		attempt(flow_wait(&tx.e, &rx.e, &f, &seen, (i + 1) / 2));
		tx.e.reap(&tx.e);
	}
	attempt(flow_drain(&tx.e));
	attempt(end_stats(&tx.e, &st));
	need(st.tx_invalid == 0, "tx_invalid_descs %llu", (unsigned long long)st.tx_invalid);
	need(tx.s->q.n.tx_invalid == 2048, "%llu refused",
	     (unsigned long long)tx.s->q.n.tx_invalid);
	attempt(tx.e.audit(&tx.e));
	return rx.e.audit(&rx.e);
}

/* One more than a call handles: the consumer index shows it when the call is back. */
static int queue_consumer(const void *arg)
{
	const uint32_t budget = conf->k.tx_budget;
	struct flow f = {.count = budget + 1, .len = 64};
	struct flow_seen seen = {0};
	struct raw tx, rx;
	int err;

	(void)arg;
	if (budget >= 400)
		return conf_skip("one sendto() of this kernel handles all that is there");
	if (conf->k.late_index)
		return conf_skip("this kernel's consumer index shows it only after the next call");
	attempt(raw_pair(&tx, &rx, &(struct raw_opts){0}, &(struct raw_opts){0}, 1500));
	for (uint32_t i = 0; i <= budget; i++) {
		struct xdp_desc d = {.addr = (uint64_t)(512 + i) * 4096, .len = 64};

		flow_write(&tx.e, &d, 1, &f, i);
		raw_submit(&tx, &d, 1);
	}
	err = raw_kick_once(&tx);
	need(err == (conf->k.again_when_more ? -EAGAIN : 0), "first sendto: %s", strerror(-err));
	need(xdpath_prod_pending(&tx.tx) == 1, "%u are left", xdpath_prod_pending(&tx.tx));
	err = raw_kick_once(&tx);
	need(err == 0, "second sendto: %s", strerror(-err));
	need(xdpath_prod_pending(&tx.tx) == 0, "%u are left", xdpath_prod_pending(&tx.tx));
	attempt(flow_wait(&tx.e, &rx.e, &f, &seen, budget + 1));
	attempt(flow_drain(&tx.e));
	attempt(tx.e.audit(&tx.e));
	return rx.e.audit(&rx.e);
}

const struct conf_test stat_tests[] = {
	{.row = 15,
	 .name = "STAT_RX_DROPPED",
	 .modes = CONF_BOTH,
	 .fn = rx_dropped,
	 .what = "odd packets do not fit behind the headroom",
	 .not_zc = "the NIC is told how long a packet may be"},
	{.row = 16,
	 .name = "STAT_TX_INVALID",
	 .modes = CONF_BOTH,
	 .fn = tx_invalid,
	 .what = "odd packets are longer than a frame"},
	{.row = 16,
	 .name = "STAT_TX_INVALID_LIB",
	 .modes = CONF_BOTH,
	 .fn = tx_invalid_api,
	 .what = "the library refuses them before the kernel does"},
	{.row = 17,
	 .name = "STAT_RX_FULL",
	 .modes = CONF_BOTH,
	 .fn = rx_full,
	 .what = "1536 packets for a ring of 1024"},
	{.row = 17,
	 .name = "STAT_RX_FULL_LIB",
	 .modes = CONF_BOTH,
	 .fn = rx_full_lib,
	 .what = "the same by the library: counted too"},
	{.row = 18,
	 .name = "STAT_FILL_EMPTY",
	 .modes = CONF_BOTH,
	 .fn = fill_empty,
	 .what = "1536 packets for 1024 posted frames"},
	{.row = 36,
	 .name = "TX_QUEUE_CONSUMER",
	 .modes = CONF_BOTH,
	 .fn = queue_consumer,
	 .what = "one more descriptor than a sendto() handles",
	 .not_zc = "the driver takes them, not the call"},
	{0},
};
