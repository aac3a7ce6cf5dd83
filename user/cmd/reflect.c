/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * reflect: each frame goes back where it came from. MACs are swapped; for UDP and ICMP echo
 * addresses and ports too, and an echo request becomes a reply, so that an ordinary host at the
 * other end takes it for an answer. Swaps leave checksums right; the echo's type is mended by RFC
 * 1624.
 */
#include <string.h>

#include "../../bpf/parse.h"
#include "relay.h"

#define PROTO_UDP 17

static void swap(uint8_t *a, uint8_t *b, size_t n)
{
	uint8_t t[16];

	memcpy(t, a, n);
	memcpy(a, b, n);
	memcpy(b, t, n);
}

/* Only the first piece of a fragmented packet has an upper header. */
static bool has_upper(const uint8_t *p, const struct xp_headers *h)
{
	if (!h->fragment)
		return true;
	return h->ip == 4 ? (xp_be16(p + h->l3 + 6) & 0x1fff) == 0
			  : (xp_be16(p + h->l4 - 6) & 0xfff8) == 0;
}

/* Set the type at icmp[0]; the checksum at icmp[2] follows. */
static void set_type(uint8_t *icmp, uint8_t type)
{
	uint32_t sum =
		(uint16_t)~xp_be16(icmp + 2) + (uint16_t) ~(icmp[0] << 8) + (uint32_t)(type << 8);

	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	icmp[0] = type;
	icmp[2] = (uint8_t)(sum >> 8);
	icmp[3] = (uint8_t)sum;
}

static void swap_addresses(uint8_t *p, const struct xp_headers *h)
{
	if (h->ip == 4)
		swap(p + h->l3 + 12, p + h->l3 + 16, 4);
	else
		swap(p + h->l3 + 8, p + h->l3 + 24, 16);
}

/* Nearly all there is, without the parser's cost: IPv4 with no options or pieces, UDP, no tag. */
static bool turn_plain_udp(uint8_t *p, uint32_t len)
{
	if (len < 42 || p[12] != 0x08 || p[13] != 0x00 || p[14] != 0x45 || p[23] != PROTO_UDP ||
	    (xp_be16(p + 20) & 0x3fff) || xp_be16(p + 16) > len - 14)
		return false;
	swap(p, p + 6, 6);
	swap(p + 26, p + 30, 4);
	swap(p + 34, p + 36, 2);
	return true;
}

/* len: bytes of the first fragment; whole: of the packet. */
static void turn_around(uint8_t *p, uint32_t len, uint32_t whole)
{
	struct xp_headers h;
	uint8_t request, reply;

	if (len < 14 || turn_plain_udp(p, len))
		return;
	swap(p, p + 6, 6);
	if (xp_parse(p, p + len, whole, &h) != XP_OK || !h.ip)
		return;
	if (h.proto == PROTO_UDP) {
		swap_addresses(p, &h);
		if (has_upper(p, &h) && h.l4 + 8U <= len)
			swap(p + h.l4, p + h.l4 + 2, 2);
		return;
	}
	request = h.ip == 4 ? 8 : 128;
	reply = h.ip == 4 ? 0 : 129;
	if (h.proto != (h.ip == 4 ? XP_PROTO_ICMP : XP_PROTO_ICMPV6))
		return;
	if (!has_upper(p, &h) || (h.l4 + 8U <= len && p[h.l4] == request))
		swap_addresses(p, &h); /* a later piece of an echo comes back with its first one */
	if (has_upper(p, &h) && h.l4 + 8U <= len && p[h.l4] == request)
		set_type(p + h.l4, reply);
}

static void change(const struct xdpath_queue *q, const struct xdp_desc *d, uint32_t n)
{
	uint32_t frags;

	xdpath_for_each_packet (p, frags, d, n)
		turn_around(xdpath_data(q, p), p->len, xdpath_pkt_len(p, frags));
}

static uint32_t reflect_round(void *ctx, struct xdpath_worker *w, uint32_t i)
{
	return relay(ctx, w, i, change);
}

int cmd_reflect(const struct args *a)
{
	struct run r;
	int code = run_needs_steering("reflect", a);

	if (code)
		return code;
	run_init(&r, "reflect", a);
	r.o.plain_rx = true;
	r.round = reflect_round;
	r.prepare = relay_prepare;
	r.finish = relay_finish;
	return run_datapath(&r);
}
