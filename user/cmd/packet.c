/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Builds the constant part of generated frames and its checksums. Called by `source` before it
 * starts; the part of each frame is inline in packet.h and bpf/gen.h.
 */
#include <string.h>

#include "packet.h"

#define ETHERTYPE_IP4	0x0800U
#define ETHERTYPE_IP6	0x86ddU
#define ETHERTYPE_8021Q 0x8100U
#define PROTO_UDP	17U
#define TTL		64U

uint32_t packet_headers(bool v6, bool tagged)
{
	return GEN_ETH + (tagged ? GEN_TAG : 0) + (v6 ? GEN_IP6 : GEN_IP4) + GEN_UDP;
}

uint32_t packet_shortest(bool v6, bool tagged)
{
	uint32_t n = packet_headers(v6, tagged);

	return n > PACKET_MIN ? n : PACKET_MIN;
}

static uint32_t sum_words(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	return sum;
}

static uint8_t *put_ip4(struct gen_plan *p, uint8_t *ip, const struct packet_spec *s)
{
	ip[0] = 0x45;
	gen_put16(ip + 6, 0x4000); /* DF: frames above the path's MTU shall not come in pieces */
	ip[8] = TTL;
	ip[9] = PROTO_UDP;
	memcpy(ip + 12, s->src, 4);
	memcpy(ip + 16, s->dst, 4);
	p->ip_sum = sum_words(ip, GEN_IP4);
	p->udp_sum = sum_words(ip + 12, 8) + PROTO_UDP;
	return ip + GEN_IP4;
}

static uint8_t *put_ip6(struct gen_plan *p, uint8_t *ip, const struct packet_spec *s)
{
	ip[0] = 0x60;
	ip[6] = PROTO_UDP;
	ip[7] = TTL;
	memcpy(ip + 8, s->src, 16);
	memcpy(ip + 24, s->dst, 16);
	p->udp_sum = sum_words(ip + 8, 32) + PROTO_UDP;
	return ip + GEN_IP6;
}

void packet_plan(struct gen_plan *p, const struct packet_spec *s)
{
	uint8_t *at = p->head;

	memset(p, 0, sizeof(*p));
	memcpy(at, s->dst_mac, 6);
	memcpy(at + 6, s->src_mac, 6);
	at += 12;
	if (s->vlan) {
		gen_put16(at, ETHERTYPE_8021Q);
		gen_put16(at + 2, s->vlan);
		at += GEN_TAG;
	}
	gen_put16(at, s->v6 ? ETHERTYPE_IP6 : ETHERTYPE_IP4);
	at += 2;
	at = s->v6 ? put_ip6(p, at, s) : put_ip4(p, at, s);
	gen_put16(at + 2, s->dport);
	p->udp_sum += s->dport;
	p->v6 = s->v6;
	p->tagged = s->vlan != 0;
	p->sport = s->sport;
	p->flows = s->flows;
}

void packet_sizes_range(struct gen_plan *p, uint32_t first, uint32_t last)
{
	p->size_first = first;
	p->size_span = last - first + 1;
	p->size_longest = last;
}

void packet_sizes_imix(struct gen_plan *p, uint32_t longest)
{
	static const uint16_t mix[GEN_SIZES] = {60, 590, 60, 60, 590, 60,
						60, 590, 60, 60, 590, 1514};
	uint32_t shortest = packet_shortest(p->v6, p->tagged);

	p->size_span = 0;
	p->size_longest = 0;
	for (uint32_t i = 0; i < GEN_SIZES; i++) {
		uint32_t n = mix[i] < shortest ? shortest : mix[i];

		p->sizes[i] = n > longest ? longest : n;
		if (p->sizes[i] > p->size_longest)
			p->size_longest = p->sizes[i];
	}
}
