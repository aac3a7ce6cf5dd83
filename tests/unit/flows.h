/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Random rules and random frames that meet each other often: both take their values from the same
 * small pools. For ruleset_test.c and the bench of rules. The same in every run (frame_random()).
 */
#ifndef XDPATH_TEST_FLOWS_H
#define XDPATH_TEST_FLOWS_H

#include <xdpath/rule.h>

#include "frames.h"

/* How many values the pools hold: few make most frames match something. */
struct flow_pool {
	uint32_t addresses, ports;
	bool wide; /* ranges of destination ports are any */
};

static inline void flow_address(const struct flow_pool *p, uint8_t *to, uint32_t n, uint64_t *seed)
{
	uint32_t r = frame_random(seed) % p->addresses;

	memset(to, 0, n);
	to[0] = n == 4 ? 10 : 0xfd;
	to[1] = (uint8_t)(r * 37);
	to[n == 4 ? 2 : 7] = (uint8_t)(r * 101 >> 3);
	to[n - 1] = (uint8_t)(r + 1);
}

static inline uint16_t flow_port(const struct flow_pool *p, uint64_t *seed)
{
	static const uint16_t edge[] = {0, 1, 53, 80, 443, 1023, 1024, 65534, 65535};
	uint32_t r = frame_random(seed) % (p->ports + 9);

	return r < 9 ? edge[r] : (uint16_t)(2000 + (r - 9) * 3);
}

static inline uint8_t flow_proto(uint64_t *seed)
{
	static const uint8_t proto[] = {6, 6, 6, 17, 17, 17, 132, 1, 58, 50, 59};

	return proto[frame_random(seed) % 11];
}

/* The upper header: `n` bytes of it are there. */
static inline void flow_upper(struct frame *f, const struct flow_pool *p, uint8_t proto,
			      uint64_t *seed)
{
	uint32_t at = f->len, n = proto == 6 ? 20 : proto == 132 ? 12 : 8;

	put16(f, flow_port(p, seed));
	put16(f, flow_port(p, seed));
	put_fill(f, n - 4);
	if (proto == 6)
		f->b[at + 13] = (uint8_t)frame_random(seed);
	put_fill(f, frame_random(seed) % 16);
}

static inline void flow_v4(struct frame *f, const struct flow_pool *p, uint64_t *seed)
{
	static const unsigned int piece[] = {0, 0, 0, 0x4000, 0x2000, 0x2001, 0x0001, 0x1fff};
	uint8_t proto = flow_proto(seed);
	uint32_t l3 = f->len, header = 20;
	unsigned int size;

	if (frame_random(seed) % 3 == 0)
		header += frame_random(seed) % 11 * 4;
	put_ipv4(f, proto, header, 0, piece[frame_random(seed) % 8]);
	flow_address(p, f->b + l3 + 12, 4, seed);
	flow_address(p, f->b + l3 + 16, 4, seed);
	flow_upper(f, p, proto, seed);
	size = f->len - l3;
	if (frame_random(seed) % 8 == 0) /* less than there is: the rest is padding */
		size -= frame_random(seed) % size;
	f->b[l3 + 2] = (uint8_t)(size >> 8);
	f->b[l3 + 3] = (uint8_t)size;
}

static inline void flow_v6(struct frame *f, const struct flow_pool *p, uint64_t *seed)
{
	static const uint8_t ext[] = {0, 43, 60, 51, 44};
	uint32_t exts = frame_random(seed) % 2 ? 0 : frame_random(seed) % 10, l3 = f->len;
	uint8_t proto = flow_proto(seed), next[12];
	unsigned int size;

	for (uint32_t i = 0; i < exts; i++)
		next[i] = ext[frame_random(seed) % (i + 2 > exts ? 5 : 4)];
	next[exts] = proto;
	put_ipv6(f, next[0], 0);
	flow_address(p, f->b + l3 + 8, 16, seed);
	flow_address(p, f->b + l3 + 24, 16, seed);
	for (uint32_t i = 0; i < exts; i++) {
		static const unsigned int piece[] = {0, 1, 8, 9};
		uint8_t more = frame_random(seed) % 4 ? 0 : 2;

		if (next[i] == 44)
			put_fragment(f, next[i + 1], piece[frame_random(seed) % 4]);
		else if (next[i] == 51) { /* counts in fours, less two */
			put_ext(f, next[i + 1], more);
			f->b[f->len - 7 - more * 8U] = more * 2;
		} else
			put_ext(f, next[i + 1], more);
	}
	flow_upper(f, p, proto, seed);
	size = f->len - l3 - 40;
	if (frame_random(seed) % 8 == 0)
		size -= frame_random(seed) % size;
	f->b[l3 + 4] = (uint8_t)(size >> 8);
	f->b[l3 + 5] = (uint8_t)size;
}

/* Any frame, mostly right; now and then a byte is changed or the end cut off. At least 14 bytes. */
static inline void flow_frame(struct frame *f, const struct flow_pool *p, uint64_t *seed)
{
	static const unsigned int tpid[] = {0, 0, 0, 0, 0x8100, 0x88a8, 0x9100};
	static const unsigned int other[] = {0x0806, 0x88cc, 0x0026};
	uint32_t r = frame_random(seed);
	unsigned int first = tpid[r % 7], second = first ? tpid[r / 7 % 7] : 0;
	uint32_t kind = r / 49 % 16;

	if (kind < 2) {
		put_ether(f, first, second, other[r / 784 % 3]);
		put_fill(f, 28);
	} else {
		put_ether(f, first, second, kind < 9 ? 0x0800 : 0x86dd);
		if (kind < 9)
			flow_v4(f, p, seed);
		else
			flow_v6(f, p, seed);
	}
	if (first) {
		f->b[14] = (uint8_t)(frame_random(seed) % 2 << 5);
		f->b[15] = (uint8_t)(6 + frame_random(seed) % 4);
		if (f->b[15] == 9)
			f->b[15] = 0;
	}
	if (frame_random(seed) % 5 == 0)
		f->b[12 + frame_random(seed) % (f->len - 12)] = (uint8_t)frame_random(seed);
	if (frame_random(seed) % 6 == 0)
		f->len = 14 + frame_random(seed) % (f->len - 13);
}

static inline void flow_prefix(struct xdpath_prefix *x, const struct flow_pool *p, uint8_t family,
			       uint32_t pick, uint64_t *seed)
{
	static const uint8_t len4[] = {0, 8, 15, 16, 24, 30, 32, 32};
	static const uint8_t len6[] = {0, 16, 32, 64, 65, 96, 128, 128};

	memset(x, 0, sizeof(*x));
	x->family = family;
	x->len = family == 4 ? len4[pick % 8] : len6[pick % 8];
	flow_address(p, x->addr, family == 4 ? 4 : 16, seed);
	for (uint32_t bit = x->len; bit < 128; bit++)
		x->addr[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
}

/* One port, or one of a few ranges that overlap. */
static inline void flow_ports(uint16_t port[2], const struct flow_pool *p, bool range,
			      uint64_t *seed)
{
	static const uint16_t some[][2] = {{0, 1023},	 {1024, 65535}, {53, 80},
					   {2000, 2010}, {2005, 2020},	{443, 2006},
					   {0, 65535},	 {80, 80},	{65534, 65535}};

	port[0] = port[1] = flow_port(p, seed);
	if (range)
		memcpy(port, some[frame_random(seed) % 9], sizeof(some[0]));
}

/*
 * A rule of a kind: rules of one kind name the same fields and prefix lengths. It may contradict
 * itself, as a user's may.
 */
static inline void flow_rule(struct xdpath_rule *r, const struct flow_pool *p, uint64_t kind,
			     uint64_t *seed)
{
	static const uint16_t ether[] = {0x0800, 0x86dd, 0x0806, 0x88cc};
	static const uint8_t flags[] = {0x02, 0x12, 0x3f, 0x10};
	uint32_t pick = frame_random(&kind);
	uint8_t family = pick & 1 ? 4 : 6;

	*r = (struct xdpath_rule){.prio = 100, .action = frame_random(seed) % 5, .ifindex = 1};
	if (frame_random(seed) % 4 == 0)
		r->prio = 98 + frame_random(seed) % 4;
	if (pick >> 1 & 1) {
		r->fields |= XDPATH_RF_SRC;
		flow_prefix(&r->src, p, family, pick >> 2, seed);
	}
	if (pick >> 5 & 1) {
		r->fields |= XDPATH_RF_DST;
		flow_prefix(&r->dst, p, family, pick >> 6, seed);
	}
	if (pick >> 9 & 1) {
		r->fields |= XDPATH_RF_PROTO;
		r->proto = flow_proto(seed);
	}
	if ((pick >> 10 & 3) == 0) {
		r->fields |= XDPATH_RF_SPORT;
		flow_ports(r->sport, p, pick >> 12 & 1 && !p->wide, seed);
	}
	if ((pick >> 13 & 1) == 0) {
		r->fields |= XDPATH_RF_DPORT;
		flow_ports(r->dport, p, pick >> 14 & 1, seed);
		if (p->wide && pick >> 14 & 1) {
			r->dport[0] = (uint16_t)(frame_random(seed) % 4000);
			r->dport[1] = (uint16_t)(r->dport[0] + frame_random(seed) % 4000);
		}
	}
	if ((pick >> 15 & 7) == 0) {
		r->fields |= XDPATH_RF_TCP_FLAGS;
		r->flags_mask = flags[pick >> 18 & 3];
		r->flags = (uint8_t)frame_random(seed) & r->flags_mask;
	}
	if ((pick >> 20 & 7) == 0) {
		r->fields |= XDPATH_RF_VLAN;
		r->vlan = frame_random(seed) % 4 ? 6 + frame_random(seed) % 3 : 0;
	}
	if ((pick >> 23 & 7) == 0) {
		r->fields |= XDPATH_RF_ETHER;
		r->ether = ether[frame_random(seed) % 4];
	}
	if ((pick >> 26 & 15) == 0) {
		r->fields |= XDPATH_RF_QUEUE;
		r->queue = frame_random(seed) % 2;
	}
}

#endif
