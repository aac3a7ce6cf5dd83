/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The frames of the engines that build their own: Ethernet, IPv4 or IPv6, UDP. A flow's headers are
 * made once; a datagram adds its lengths and checksums. IPv4 goes without a UDP checksum, which is
 * allowed there; IPv6 must have one, and its payload is zero, so that it adds nothing.
 */
#include <netinet/ip.h>
#include <string.h>

#include "engine_common.h"

#define UDP 17

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t add(uint32_t sum, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i + 1 < len; i += 2)
		sum += get16(p + i);
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

static void make(const struct engine_path *p, struct flow_head *h, uint32_t flow)
{
	uint32_t client = p->client_base + flow, ip_len = heads_ip(p);
	uint8_t *ip = h->b + ETH_BYTES, *udp = ip + ip_len;

	memcpy(h->b, p->remote_mac, 6);
	memcpy(h->b + 6, p->local_mac, 6);
	put16(udp, p->is_server ? p->server_port : client);
	put16(udp + 2, p->is_server ? client : p->server_port);
	if (p->family == AF_INET6) {
		put16(h->b + 12, 0x86dd);
		ip[0] = 0x60;
		ip[6] = UDP;
		ip[7] = 64;
		memcpy(ip + 8, &p->local.v6, 16);
		memcpy(ip + 24, &p->remote.v6, 16);
		h->udp_sum = fold(add(add(UDP, ip + 8, 32), udp, 4));
		return;
	}
	put16(h->b + 12, 0x0800);
	ip[0] = 0x45;
	put16(ip + 6, 0x4000); /* not to be cut up on the way */
	ip[8] = 64;
	ip[9] = UDP;
	memcpy(ip + 12, &p->local.v4, 4);
	memcpy(ip + 16, &p->remote.v4, 4);
	h->ip_sum = fold(add(0, ip, 20));
}

struct flow_head *heads_make(const struct engine_path *p)
{
	struct flow_head *h = lines_alloc(p->flows * sizeof(*h));

	for (uint32_t i = 0; h && i < p->flows; i++)
		make(p, &h[i], i);
	return h;
}

uint32_t heads_write(const struct engine_path *p, const struct flow_head *h, uint8_t *frame,
		     uint32_t n)
{
	uint32_t udp_len = UDP_BYTES + (uint32_t)sizeof(struct msg_hdr) + n;
	uint8_t *ip = frame + ETH_BYTES;

	if (p->family == AF_INET6) {
		uint16_t sum;

		memcpy(frame, h->b, ETH_BYTES + 40 + UDP_BYTES);
		put16(ip + 4, udp_len);
		put16(ip + 44, udp_len);
		sum = (uint16_t)~fold(
			add(h->udp_sum + 2 * udp_len, ip + 48, sizeof(struct msg_hdr)));
		put16(ip + 46, sum ? sum : 0xffff);
		return ETH_BYTES + 40 + udp_len;
	}
	memcpy(frame, h->b, ETH_BYTES + 20 + UDP_BYTES);
	put16(ip + 2, 20 + udp_len);
	put16(ip + 10, (uint16_t)~fold(h->ip_sum + 20 + udp_len));
	put16(ip + 24, udp_len);
	return ETH_BYTES + 20 + udp_len;
}

/* Where the UDP header begins, 0 if this is no whole UDP datagram of the path's addresses. */
static uint32_t find_udp(const struct engine_path *p, const uint8_t *frame, uint32_t have)
{
	const uint8_t *ip = frame + ETH_BYTES;

	if (have < heads_len(p) + sizeof(struct msg_hdr))
		return 0;
	if (p->family == AF_INET6) {
		if (get16(frame + 12) != 0x86dd || ip[6] != UDP ||
		    memcmp(ip + 8, &p->remote.v6, 16) != 0)
			return 0;
		return ETH_BYTES + 40;
	}
	if (get16(frame + 12) != 0x0800 || ip[0] != 0x45 || ip[9] != UDP ||
	    (get16(ip + 6) & 0x3fff) || memcmp(ip + 12, &p->remote.v4, 4) != 0)
		return 0;
	return ETH_BYTES + 20;
}

bool heads_parse(const struct engine_path *p, const uint8_t *frame, uint32_t have, uint32_t len,
		 struct rx_slot *s)
{
	uint32_t at = find_udp(p, frame, have), from, to, udp_len, flow;
	const uint8_t *udp = frame + at;

	if (!at)
		return false;
	from = get16(udp);
	to = get16(udp + 2);
	udp_len = get16(udp + 4);
	flow = (p->is_server ? from : to) - p->client_base;
	if ((p->is_server ? to : from) != p->server_port || flow >= p->flows ||
	    udp_len < UDP_BYTES + sizeof(struct msg_hdr) || at + udp_len > len)
		return false;
	s->msg = (const struct msg_hdr *)(udp + UDP_BYTES);
	s->len = udp_len - UDP_BYTES - (uint32_t)sizeof(struct msg_hdr);
	s->flow = flow;
	return true;
}
