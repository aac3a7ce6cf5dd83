/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What a set of rules says about a frame: the reference that the engine in bpf/ is held against.
 * One rule after the other, in the order of xdpath_rules_order(); as plain as can be.
 *
 *   uint32_t order[rules.n], n;
 *   const struct xdpath_rule *mirrors[rules.n];
 *   xdpath_rules_order(&rules, order);
 *   i = rule_match(&rules, order, frame, len, queue, mirrors, &n);
 *
 * i: index into rules.rule of the rule that decides, UINT32_MAX if none does (mirrors alone decide
 * nothing). mirrors[0..n): the mirror rules met before it, in their order; both may be NULL.
 *
 * - A frame that xp_parse() does not find XP_OK meets no rule, a filter neither. Nor does one whose
 *   TCP (20 bytes), UDP (8) or SCTP (12) header does not end within both the frame and its IP
 *   packet: padding is no header.
 * - A piece of an IP packet behind the first one has no ports and no TCP flags: rules that want
 *   them do not match it, all others may. The first piece has them.
 * - `ether` is behind the tags, `vlan` the id of the outermost one; without a tag no `vlan`
 * matches.
 * - Filters are asked of rule_filter, if set; without it they match nothing.
 */
#ifndef XDPATH_TEST_RULE_MATCH_H
#define XDPATH_TEST_RULE_MATCH_H

#include <string.h>

#include <xdpath/rule.h>

#include "../../bpf/parse.h"

enum { RM_TCP = 6, RM_UDP = 17, RM_SCTP = 132 };

static int (*rule_filter)(const char *expr, const uint8_t *frame, uint32_t len)
	__attribute__((unused));

/* All that rules ask of a frame. */
struct rule_facts {
	struct xp_headers h;
	uint32_t queue;
	int vlan; /* -1: no tag */
	const uint8_t *src, *dst;
	bool has_ports, has_flags;
	uint16_t sport, dport;
	uint8_t flags;
};

static inline bool rule_upper_facts(struct rule_facts *f, const uint8_t *frame, uint32_t len)
{
	const uint8_t *ip = frame + f->h.l3, *up = frame + f->h.l4;
	uint32_t piece, ip_end, need;

	switch (f->h.proto) {
	case RM_TCP: need = 20; break;
	case RM_UDP: need = 8; break;
	case RM_SCTP: need = 12; break;
	default: return true; /* nothing in it can be asked for */
	}
	if (f->h.ip == 4) {
		piece = xp_be16(ip + 6) & 0x1fff;
		ip_end = f->h.l3 + xp_be16(ip + 2);
	} else {
		/* a fragment header is the last before the upper one */
		piece = f->h.fragment ? xp_be16(up - 6) & 0xfff8 : 0;
		ip_end = xp_be16(ip + 4) ? f->h.l3 + 40U + xp_be16(ip + 4) : len;
	}
	if (piece)
		return true;
	if (f->h.l4 + need > len || f->h.l4 + need > ip_end)
		return false;
	f->has_ports = true;
	f->sport = xp_be16(up);
	f->dport = xp_be16(up + 2);
	f->has_flags = f->h.proto == RM_TCP;
	f->flags = f->has_flags ? up[13] : 0;
	return true;
}

/* False: for the kernel, whatever the rules say. */
static inline bool rule_facts(struct rule_facts *f, const uint8_t *frame, uint32_t len,
			      uint32_t queue)
{
	memset(f, 0, sizeof(*f));
	if (xp_parse(frame, frame + len, len, &f->h) != XP_OK)
		return false;
	f->queue = queue;
	f->vlan = f->h.vlans ? xp_be16(frame + 14) & 0xfff : -1;
	if (!f->h.ip)
		return true;
	f->src = frame + f->h.l3 + (f->h.ip == 4 ? 12 : 8);
	f->dst = f->src + (f->h.ip == 4 ? 4 : 16);
	return rule_upper_facts(f, frame, len);
}

static inline bool rule_in_prefix(const struct xdpath_prefix *p, uint8_t ip, const uint8_t *addr)
{
	if (p->family != ip)
		return false;
	for (uint32_t bit = 0; bit < p->len; bit++)
		if ((addr[bit / 8] ^ p->addr[bit / 8]) >> (7 - bit % 8) & 1)
			return false;
	return true;
}

static inline bool rule_fits(const struct xdpath_rule *r, const struct rule_facts *f,
			     const uint8_t *frame, uint32_t len)
{
	if (r->fields & XDPATH_RF_ETHER && f->h.ethertype != r->ether)
		return false;
	if (r->fields & XDPATH_RF_VLAN && f->vlan != r->vlan)
		return false;
	if (r->fields & XDPATH_RF_PROTO && !(f->h.ip && f->h.proto == r->proto))
		return false;
	if (r->fields & XDPATH_RF_SRC && !rule_in_prefix(&r->src, f->h.ip, f->src))
		return false;
	if (r->fields & XDPATH_RF_DST && !rule_in_prefix(&r->dst, f->h.ip, f->dst))
		return false;
	if (r->fields & XDPATH_RF_SPORT &&
	    !(f->has_ports && f->sport >= r->sport[0] && f->sport <= r->sport[1]))
		return false;
	if (r->fields & XDPATH_RF_DPORT &&
	    !(f->has_ports && f->dport >= r->dport[0] && f->dport <= r->dport[1]))
		return false;
	if (r->fields & XDPATH_RF_TCP_FLAGS &&
	    !(f->has_flags && (f->flags & r->flags_mask) == r->flags))
		return false;
	if (r->fields & XDPATH_RF_QUEUE && f->queue != r->queue)
		return false;
	if (r->fields & XDPATH_RF_FILTER && !(rule_filter && rule_filter(r->filter, frame, len)))
		return false;
	return true;
}

static inline uint32_t rule_match(const struct xdpath_rules *l, const uint32_t *order,
				  const uint8_t *frame, uint32_t len, uint32_t queue,
				  const struct xdpath_rule **mirrors, uint32_t *nmirrors)
{
	struct rule_facts f;
	uint32_t n = 0, hit = UINT32_MAX;

	if (rule_facts(&f, frame, len, queue))
		for (uint32_t i = 0; hit == UINT32_MAX && i < l->n; i++) {
			const struct xdpath_rule *r = &l->rule[order[i]];

			if (!rule_fits(r, &f, frame, len))
				continue;
			if (r->action != XDPATH_RA_MIRROR)
				hit = order[i];
			else if (mirrors)
				mirrors[n++] = r;
		}
	if (nmirrors)
		*nmirrors = n;
	return hit;
}

#endif
