/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Rules: which frames go where. Text, value and list; nothing here enters the kernel, except that a
 * device named by `redirect` is looked up.
 *
 *   rule   := [ "prio" N ] match* "action" action
 *   match  := "ether" TYPE | "vlan" ID | "proto" NAME|N | "src" PREFIX | "dst" PREFIX
 *           | "sport" P[-P] | "dport" P[-P] | "tcp-flags" SET | "queue" N | "filter" "EXPR"
 *   action := "xsk" | "pass" | "drop" | "tx" | "redirect" DEV | "mirror" [SNAP]
 *
 * First by priority (lower first), then the most specific, then the oldest. What matches nothing
 * goes to the kernel.
 */
#ifndef XDPATH_RULE_H
#define XDPATH_RULE_H

#include <net/if.h>

#include <xdpath/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define XDPATH_RULES_MAX     10000U /* in one set */
#define XDPATH_RULE_PRIO     100U   /* the default; 0..65535 */
#define XDPATH_RULE_TEXT_MAX 1024U  /* bytes of one rule's text, its end included */
#define XDPATH_SNAP_MAX	     2048U  /* bytes a mirror keeps of a frame; the default */

/* Which of a rule's matches are given. */
enum xdpath_rule_field {
	XDPATH_RF_ETHER = 1 << 0,
	XDPATH_RF_VLAN = 1 << 1,
	XDPATH_RF_PROTO = 1 << 2,
	XDPATH_RF_SRC = 1 << 3,
	XDPATH_RF_DST = 1 << 4,
	XDPATH_RF_SPORT = 1 << 5,
	XDPATH_RF_DPORT = 1 << 6,
	XDPATH_RF_TCP_FLAGS = 1 << 7,
	XDPATH_RF_QUEUE = 1 << 8,
	XDPATH_RF_FILTER = 1 << 9, /* alone in its rule */
};

enum xdpath_rule_action {
	XDPATH_RA_XSK = 0,	/* the socket of the receiving queue; the kernel if it has none */
	XDPATH_RA_PASS = 1,	/* the kernel */
	XDPATH_RA_DROP = 2,	/* gone, counted */
	XDPATH_RA_TX = 3,	/* back out of the interface it came in by, as it is */
	XDPATH_RA_REDIRECT = 4, /* out of another interface */
	XDPATH_RA_MIRROR = 5,	/* a copy for a reader, then on to the next matching rule */
};

struct xdpath_prefix {
	uint8_t family;	  /* 4 or 6 */
	uint8_t len;	  /* bits */
	uint8_t addr[16]; /* network order; bits past len are zero */
};

struct xdpath_rule {
	uint32_t id;	 /* unique in its list, never reused there; given by xdpath_rules_add() */
	uint32_t prio;	 /* lower first */
	uint32_t fields; /* XDPATH_RF_* */
	uint16_t ether;	 /* EtherType behind the VLAN tags, host order */
	uint16_t vlan;	 /* id of the outermost tag, 0..4095 */
	uint8_t proto;	 /* the upper protocol */
	uint8_t flags, flags_mask; /* TCP flags: (seen & mask) == flags */
	struct xdpath_prefix src, dst;
	uint16_t sport[2], dport[2]; /* first and last */
	uint32_t queue;
	char *filter; /* tcpdump syntax; owned by the rule */
	enum xdpath_rule_action action;
	uint32_t snap;	    /* mirror */
	char dev[IFNAMSIZ]; /* redirect */
	int ifindex;	    /* ... looked up when parsed */
};

/*
 * Read one rule. 0, or -EINVAL with a diagnosis that names the word at fault, -ENODEV for an
 * unknown device, -ENOMEM. On success r->filter may be allocated: xdpath_rule_clear().
 */
XDPATH_API int xdpath_rule_parse(struct xdpath_rule *r, const char *text, struct xdpath_diag *diag);
XDPATH_API void xdpath_rule_clear(struct xdpath_rule *r);
/* The rule's text in the canonical form; parsing it gives the same rule. Bytes written, or -ENOSPC.
 */
XDPATH_API int xdpath_rule_format(const struct xdpath_rule *r, char *out, size_t size);
/* Bits that the rule fixes: the more, the more specific. A filter's count is 0. */
XDPATH_API uint32_t xdpath_rule_specificity(const struct xdpath_rule *r);

/* A list in the order in which the rules were added. Zero is an empty one. */
struct xdpath_rules {
	struct xdpath_rule *rule;
	uint32_t n, room, next_id;
};

/* Takes the rule over (its filter too) when it succeeds. -EEXIST: the same matches and priority are
 * there already; -ENOSPC past XDPATH_RULES_MAX; -ENOMEM. */
XDPATH_API int xdpath_rules_add(struct xdpath_rules *l, struct xdpath_rule *r,
				struct xdpath_diag *diag);
/* Removes the rule of this id. -ENOENT. */
XDPATH_API int xdpath_rules_del(struct xdpath_rules *l, uint32_t id);
/* Reads a whole file, one rule a line, `#` comments; "-" is standard input. Adds all or nothing;
 * the diagnosis names file and line. */
XDPATH_API int xdpath_rules_load(struct xdpath_rules *l, const char *path,
				 struct xdpath_diag *diag);
/* The rules of `by`, which is empty then, in place of the old ones. A rule that is in both keeps
 * its id. -ENOMEM, and nothing is changed. */
XDPATH_API int xdpath_rules_replace(struct xdpath_rules *l, struct xdpath_rules *by,
				    struct xdpath_diag *diag);
XDPATH_API void xdpath_rules_clear(struct xdpath_rules *l);
/* Indexes of the rules in the order in which they are tried, into order[l->n]. */
XDPATH_API void xdpath_rules_order(const struct xdpath_rules *l, uint32_t *order);

#ifdef __cplusplus
}
#endif
#endif
