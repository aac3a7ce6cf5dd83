/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Rules that contradict themselves are refused: one that can never match would be taken for one
 * that never did. Called by rule_parse.c. */
#include <stdio.h>

#include "rule_parse.h"

static const char *name_of(uint32_t fields)
{
	for (int i = 0; i < MATCHES; i++)
		if (xdpath_rule_matches[i].field & fields)
			return xdpath_rule_matches[i].word;
	return "";
}

/* 4, 6, or 0 when the rule does not say. */
static uint8_t family_of(const struct xdpath_rule *r)
{
	if (r->fields & XDPATH_RF_SRC)
		return r->src.family;
	if (r->fields & XDPATH_RF_DST)
		return r->dst.family;
	if (!(r->fields & XDPATH_RF_ETHER))
		return 0;
	return r->ether == RULE_IPV4 ? 4 : r->ether == RULE_IPV6 ? 6 : 0;
}

static int check_ether(struct parsing *p)
{
	const uint32_t ip_only = XDPATH_RF_PROTO | XDPATH_RF_SRC | XDPATH_RF_DST | XDPATH_RF_SPORT |
				 XDPATH_RF_DPORT | XDPATH_RF_TCP_FLAGS;
	const struct xdpath_rule *r = p->r;
	const char *name = xdpath_rule_word_name(xdpath_rule_ethers, r->ether);
	uint8_t family = family_of(r);
	char number[8];

	if (!(r->fields & XDPATH_RF_ETHER) || !(r->fields & ip_only))
		return 0;
	snprintf(number, sizeof(number), "0x%04x", r->ether);
	if (r->ether != RULE_IPV4 && r->ether != RULE_IPV6)
		return xdpath_rule_bad(
			p, name_of(r->fields & ip_only), NULL,
			"only IP has it, and ether %s is not IP; leave one of them out",
			name ? name : number);
	if (family && family != (r->ether == RULE_IPV4 ? 4 : 6))
		return xdpath_rule_bad(p, "ether", name,
				       "the address is of IPv%u; write ether ipv%u or leave it out",
				       family, family);
	return 0;
}

static int check_proto(struct parsing *p)
{
	struct xdpath_rule *r = p->r;
	const char *name = xdpath_rule_word_name(xdpath_rule_protos, r->proto);
	uint8_t family = family_of(r);
	char number[8];

	if (r->fields & XDPATH_RF_TCP_FLAGS && !(r->fields & XDPATH_RF_PROTO)) {
		r->fields |= XDPATH_RF_PROTO;
		r->proto = RULE_TCP;
	}
	if (!(r->fields & XDPATH_RF_PROTO))
		return 0;
	snprintf(number, sizeof(number), "%u", r->proto);
	name = name ? name : number;
	if (r->fields & XDPATH_RF_TCP_FLAGS && r->proto != RULE_TCP)
		return xdpath_rule_bad(p, "tcp-flags", NULL,
				       "protocol %s has none; write proto tcp", name);
	if (r->fields & (XDPATH_RF_SPORT | XDPATH_RF_DPORT) &&
	    !xdpath_rule_proto_has_ports(r->proto))
		return xdpath_rule_bad(p, name_of(r->fields & (XDPATH_RF_SPORT | XDPATH_RF_DPORT)),
				       NULL,
				       "protocol %s has no ports; write proto tcp, udp or sctp",
				       name);
	if (r->proto == RULE_ICMP && family == 6)
		return xdpath_rule_bad(p, "proto", name,
				       "is of IPv4, and the rule of IPv6; write proto icmpv6");
	if (r->proto == RULE_ICMPV6 && family == 4)
		return xdpath_rule_bad(p, "proto", name,
				       "is of IPv6, and the rule of IPv4; write proto icmp");
	if (xdpath_rule_proto_is_ext(r->proto) && family == 6)
		return xdpath_rule_bad(
			p, "proto", name,
			"in IPv6 an extension header, never the upper protocol; leave it out");
	return 0;
}

int xdpath_rule_check(struct parsing *p)
{
	struct xdpath_rule *r = p->r;
	char text[XDPATH_RULE_TEXT_MAX];
	int err;

	if (r->fields & XDPATH_RF_FILTER && r->fields != XDPATH_RF_FILTER)
		return xdpath_rule_bad(
			p, name_of(r->fields & ~(uint32_t)XDPATH_RF_FILTER), NULL,
			"a filter stands alone in its rule; write it in the expression");
	if (r->fields & XDPATH_RF_SRC && r->fields & XDPATH_RF_DST &&
	    r->src.family != r->dst.family)
		return xdpath_rule_bad(p, "dst", NULL,
				       "of IPv%u, while src is of IPv%u; give both of one",
				       r->dst.family, r->src.family);
	err = check_ether(p);
	if (!err)
		err = check_proto(p);
	if (!err && xdpath_rule_format(r, text, sizeof(text)) < 0)
		err = xdpath_rule_bad(p, "filter", NULL,
				      "too long; a rule has at most %u characters",
				      XDPATH_RULE_TEXT_MAX - 1);
	return err;
}
