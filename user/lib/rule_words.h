/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The names in a rule's text: one table each, read by the parser and printed by rule_format.c. */
#ifndef XDPATH_RULE_WORDS_H
#define XDPATH_RULE_WORDS_H

#include <xdpath/rule.h>

#include "internal.h"

enum {
	RULE_ICMP = 1,
	RULE_TCP = 6,
	RULE_UDP = 17,
	RULE_ICMPV6 = 58,
	RULE_SCTP = 132,
	RULE_IPV4 = 0x0800,
	RULE_IPV6 = 0x86dd,
};

/* The first name of a value is its canonical one; a NULL name ends a table. */
struct rule_word {
	const char *name;
	uint32_t value;
};

extern const struct rule_word xdpath_rule_ethers[], xdpath_rule_protos[], xdpath_rule_actions[];
extern const struct rule_word xdpath_rule_tcp_flags[]; /* lowest bit first */

const struct rule_word *xdpath_rule_word_find(const struct rule_word *table, const char *name);
/* The canonical name of a value, or NULL. */
const char *xdpath_rule_word_name(const struct rule_word *table, uint32_t value);

/* Headers that IPv6 strings together and the parser passes over: never its upper protocol. */
bool xdpath_rule_proto_is_ext(uint8_t proto);
/* Ports are read of these: their headers begin with two of them. */
bool xdpath_rule_proto_has_ports(uint8_t proto);

#endif
