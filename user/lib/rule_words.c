/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The names in a rule's text. Called by the parser and by rule_format.c. */
#include <string.h>

#include "../../bpf/parse.h"
#include "rule_words.h"

/* Of IANA's "IEEE 802 numbers" those that are met on wires. */
const struct rule_word xdpath_rule_ethers[] = {
	{"ipv4", RULE_IPV4},
	{"ip", RULE_IPV4},
	{"ip4", RULE_IPV4},
	{"ipv6", RULE_IPV6},
	{"ip6", RULE_IPV6},
	{"arp", 0x0806},
	{"rarp", 0x8035},
	{"mpls", 0x8847},
	{"mpls-mcast", 0x8848},
	{"pppoe", 0x8864},
	{"pppoe-disc", 0x8863},
	{"lldp", 0x88cc},
	{"eapol", 0x888e},
	{"macsec", 0x88e5},
	{"ptp", 0x88f7},
	{"slow", 0x8809},
	{"lacp", 0x8809},
	{"pause", 0x8808},
	{"cfm", 0x8902},
	{"nsh", 0x894f},
	{"trill", 0x22f3},
	{"profinet", 0x8892},
	{"ethercat", 0x88a4},
	{"goose", 0x88b8},
	{"roce", 0x8915},
	{"fcoe", 0x8906},
	{"aoe", 0x88a2},
	{"loopback", 0x9000},
	{NULL, 0},
};

/* IANA's protocol numbers; the system's list (/etc/protocols) adds the rest. */
const struct rule_word xdpath_rule_protos[] = {
	{"icmp", RULE_ICMP},
	{"tcp", RULE_TCP},
	{"udp", RULE_UDP},
	{"icmpv6", RULE_ICMPV6},
	{"icmp6", RULE_ICMPV6},
	{"ipv6-icmp", RULE_ICMPV6},
	{"sctp", RULE_SCTP},
	{"igmp", 2},
	{"ipip", 4},
	{"gre", 47},
	{"esp", 50},
	{"ah", 51},
	{"ospf", 89},
	{"pim", 103},
	{"vrrp", 112},
	{NULL, 0},
};

const struct rule_word xdpath_rule_actions[] = {
	{"xsk", XDPATH_RA_XSK},
	{"pass", XDPATH_RA_PASS},
	{"drop", XDPATH_RA_DROP},
	{"tx", XDPATH_RA_TX},
	{"redirect", XDPATH_RA_REDIRECT},
	{"mirror", XDPATH_RA_MIRROR},
	{NULL, 0},
};

/* RFC 9293, RFC 3168. */
const struct rule_word xdpath_rule_tcp_flags[] = {
	{"fin", 0x01}, {"syn", 0x02}, {"rst", 0x04}, {"psh", 0x08}, {"ack", 0x10},
	{"urg", 0x20}, {"ece", 0x40}, {"cwr", 0x80}, {NULL, 0},
};

const struct rule_word *xdpath_rule_word_find(const struct rule_word *table, const char *name)
{
	for (; table->name; table++)
		if (strcmp(table->name, name) == 0)
			return table;
	return NULL;
}

const char *xdpath_rule_word_name(const struct rule_word *table, uint32_t value)
{
	for (; table->name; table++)
		if (table->value == value)
			return table->name;
	return NULL;
}

bool xdpath_rule_proto_is_ext(uint8_t proto)
{
	return xp_is_ext(proto);
}

bool xdpath_rule_proto_has_ports(uint8_t proto)
{
	return proto == RULE_TCP || proto == RULE_UDP || proto == RULE_SCTP;
}
