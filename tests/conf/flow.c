// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * Streams of numbered packets. One thread plays both ends in turn: a batch is sent, then received
 * to its last packet, so that no test depends on who is scheduled when. What a packet must contain
 * follows from the number found in it, never from a count of what came before.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "end.h"

#define ETHERTYPE 0x88b5U /* local experimental */
#define NUMBER_AT 16U
#define BODY_AT	  20U
#define META_LEN  32U
#define GROW_MARK 0xa5

static uint8_t wire[FLOW_PACKET_MAX], expected[FLOW_PACKET_MAX];

bool flow_even(uint32_t number)
{
	return number % 2 == 0;
}

static uint32_t length_of(const struct flow *f, uint32_t number)
{
	return number % 2 && f->len_odd ? f->len_odd : f->len;
}

static void build(uint8_t *p, uint32_t len, const struct flow *f, uint32_t number)
{
	const uint8_t head[BODY_AT] = {0x02,
				       0,
				       0,
				       0,
				       0,
				       f->dst,
				       0x02,
				       0,
				       0,
				       0,
				       1,
				       1,
				       ETHERTYPE >> 8,
				       ETHERTYPE & 0xff,
				       (uint8_t)(f->stream >> 8),
				       (uint8_t)f->stream,
				       (uint8_t)(number >> 24),
				       (uint8_t)(number >> 16),
				       (uint8_t)(number >> 8),
				       (uint8_t)number};

	memcpy(p, head, len < BODY_AT ? len : BODY_AT);
	for (uint32_t i = BODY_AT; i < len; i++)
		p[i] = (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

void flow_write(const struct end *e, const struct xdp_desc *d, uint32_t n, const struct flow *f,
		uint32_t number)
{
	uint32_t len = xdpath_pkt_len(d, n), at = 0;

	build(wire, len, f, number);
	for (uint32_t i = 0; i < n; at += d[i++].len)
		memcpy(e->area + end_flat(e, d[i].addr), wire + at, d[i].len);
}

static int check_meta(const struct end *e, const struct xdp_desc *d, uint32_t number)
{
	uint64_t meta;

	memcpy(&meta, e->area + end_flat(e, d->addr) - META_LEN, sizeof(meta));
	need(meta == number, "packet %u carries %llu", number, (unsigned long long)meta);
	return CONF_OK;
}

static int check_place(const struct end *e, const struct xdp_desc *d, const struct flow *f)
{
	uint64_t flat = end_flat(e, d->addr), at = flat & (e->chunk - 1);
	uint32_t want = f->data_at ? f->data_at : e->headroom + 256;

	if (!e->unaligned) {
		need(at == want, "data at %llu of the frame, not %u", (unsigned long long)at, want);
		need(at + d->len <= e->chunk, "%u bytes at %llu", d->len, (unsigned long long)at);
	} else {
		need(d->addr >> XSK_UNALIGNED_BUF_OFFSET_SHIFT == want, "offset %llu, not %u",
		     (unsigned long long)(d->addr >> XSK_UNALIGNED_BUF_OFFSET_SHIFT), want);
	}
	return CONF_OK;
}

int flow_check(const struct end *e, const struct xdp_desc *d, uint32_t n, const struct flow *f,
	       uint32_t *number)
{
	uint32_t len = xdpath_pkt_len(d, n), sent, want, at = 0;

	need(len >= BODY_AT && len <= FLOW_PACKET_MAX, "a packet of %u bytes", len);
	for (uint32_t i = 0; i < n; at += d[i++].len) {
		attempt(check_place(e, &d[i], f));
		memcpy(wire + at, e->area + end_flat(e, d[i].addr), d[i].len);
	}
	*number = (uint32_t)wire[NUMBER_AT] << 24 | (uint32_t)wire[NUMBER_AT + 1] << 16 |
		  (uint32_t)wire[NUMBER_AT + 2] << 8 | wire[NUMBER_AT + 3];
	sent = length_of(f, *number);
	want = (uint32_t)((int32_t)sent + f->grown);
	need(len == want, "packet %u has %u bytes, not %u", *number, len, want);
	build(expected, len, f, *number);
	if (f->grown > 0) /* the mark, then zeros */
		for (uint32_t i = sent; i < len; i++)
			expected[i] = i < sent + 4 ? GROW_MARK : 0;
	for (uint32_t i = 0; i < len; i++)
		need(wire[i] == expected[i], "packet %u: byte %u is 0x%02x, not 0x%02x", *number, i,
		     wire[i], expected[i]);
	return f->meta ? check_meta(e, d, *number) : CONF_OK;
}

/* ---- send ---- */

static int send_one(struct end *tx, const struct flow *f, uint32_t number)
{
	uint32_t len = length_of(f, number), off = number % 2 ? f->odd_off : 0, n = 0, got;
	uint64_t until = conf_now_ms() + CONF_PATIENCE_MS, addr[XDPATH_PKT_FRAGS_MAX];
	struct xdp_desc d[XDPATH_PKT_FRAGS_MAX];

	n = (len + tx->chunk - 1) / tx->chunk;
	for (got = 0; got < n;) {
		got += tx->get(tx, addr + got, n - got);
		if (got < n && !tx->reap(tx))
			conf_pause();
		need(got == n || conf_now_ms() < until, "no frame to send packet %u from", number);
	}
	for (uint32_t i = 0; i < n; i++) {
		d[i] = (struct xdp_desc){.addr = addr[i] + off,
					 .len = len < tx->chunk ? len : tx->chunk,
					 .options = i + 1 < n ? XDP_PKT_CONTD : 0};
		len -= d[i].len;
	}
	flow_write(tx, d, n, f, number);
	while (!tx->send(tx, d, n)) {
		need(conf_now_ms() < until, "no room in the TX ring for packet %u", number);
		attempt(tx->kick(tx) == 0 ? CONF_OK : CONF_FAIL);
		tx->reap(tx);
	}
	return CONF_OK;
}

/* poll() alone has to send. */
static int poll_out(struct end *tx)
{
	struct pollfd p = {.fd = tx->fd, .events = POLLOUT};
	uint64_t until = conf_now_ms() + CONF_PATIENCE_MS;

	while (tx->pending(tx)) {
		int n = poll(&p, 1, 1000);

		need(n == 1 && p.revents == POLLOUT, "poll %d, events 0x%x", n, p.revents);
		tx->reap(tx);
		need(conf_now_ms() < until, "%u descriptors still out", tx->pending(tx));
	}
	return CONF_OK;
}

int flow_send(struct end *tx, const struct flow *f, uint32_t from, uint32_t n)
{
	int err;

	for (uint32_t i = 0; i < n; i++)
		attempt(send_one(tx, f, f->first + from + i));
	if (f->poll_tx)
		return poll_out(tx);
	err = tx->kick(tx);
	need(err == 0, "kick: %s", strerror(-err));
	return CONF_OK;
}

/* Take completions. In zero-copy a driver stops when these fill their ring, and wants a call. */
static uint32_t collect(struct end *tx)
{
	uint32_t n = tx->reap(tx);

	if (conf->mode == CONF_ZC)
		tx->kick(tx);
	return n;
}

int flow_drain(struct end *tx)
{
	uint64_t until = conf_now_ms() + CONF_PATIENCE_MS;

	while (tx->pending(tx)) {
		if (conf_now_ms() >= until)
			return tx->audit(tx); /* it knows which */
		if (!collect(tx))
			conf_pause();
	}
	return CONF_OK;
}

/* ---- receive ---- */

int flow_recv(struct end *rx, const struct flow *f, struct flow_seen *s)
{
	struct xdp_desc d[XDPATH_BURST_ROOM];
	uint32_t n = rx->recv(rx, d, FLOW_BATCH), k, number;

	xdpath_for_each_packet (p, k, d, n) {
		attempt(flow_check(rx, p, k, f, &number));
		need(!f->arrives || f->arrives(number), "packet %u should not have come", number);
		need(number >= s->next, "packet %u after %u", number, s->next - 1);
		s->next = number + 1;
		s->got++;
	}
	rx->give(rx, d, n);
	return CONF_OK;
}

int flow_wait(struct end *tx, struct end *rx, const struct flow *f, struct flow_seen *s,
	      uint32_t want)
{
	uint64_t until = conf_now_ms() + CONF_PATIENCE_MS;
	struct pollfd p = {.fd = rx->fd, .events = POLLIN};

	while (s->got < want) {
		uint32_t before = s->got;

		if (f->poll_rx) {
			int n = poll(&p, 1, 1000);

			need(n == 1 && p.revents == POLLIN, "poll %d, events 0x%x", n, p.revents);
		}
		attempt(flow_recv(rx, f, s));
		need(s->got > before || conf_now_ms() < until, "%u of %u packets came", s->got,
		     want);
		if (s->got == before) {
			if (tx)
				collect(tx);
			conf_pause();
		}
	}
	need(s->got == want, "%u packets came, %u should have", s->got, want);
	return CONF_OK;
}

int flow_run(struct end *tx, struct end *rx, const struct flow *f)
{
	uint32_t batch = f->batch ? f->batch : FLOW_BATCH, n, want = 0;
	struct flow_seen s = {.next = f->first};

	for (uint32_t i = 0; i < f->count; i += n) {
		n = f->count - i < batch ? f->count - i : batch;
		attempt(flow_send(tx, f, i, n));
		for (uint32_t j = 0; j < n; j++)
			want += !f->arrives || f->arrives(f->first + i + j);
		attempt(flow_wait(tx, rx, f, &s, want));
	}
	attempt(flow_drain(tx));
	attempt(flow_recv(rx, f, &s)); /* nothing more may be there */
	need(s.got == want, "%u packets more than expected", s.got - want);
	attempt(tx->audit(tx));
	return rx->audit(rx);
}
