/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* One rule under way from text to value: rule_parse.c reads words, rule_value.c their values,
 * rule_check.c what they say together. */
#ifndef XDPATH_RULE_PARSE_H
#define XDPATH_RULE_PARSE_H

#include "rule_words.h"

#define RULE_SEEN_PRIO (1U << 31) /* beside XDPATH_RF_* */

struct parsing {
	struct xdpath_rule *r;
	struct xdpath_diag *diag;
	const char *at;			  /* what is not yet read */
	char words[XDPATH_RULE_TEXT_MAX]; /* those read, their quotes removed, each with its end */
	size_t used;
	uint32_t seen;
	int err; /* of the words themselves */
};

struct match {
	const char *word;
	uint32_t field;
	int (*read)(struct parsing *p, const char *key, const char *word);
	const char *value; /* what follows the word */
};

enum { MATCHES = 11 };
extern const struct match xdpath_rule_matches[MATCHES];

/* Fails with "KEY WORD: ..."; either may be NULL. */
__attribute__((format(printf, 4, 5))) int xdpath_rule_bad(struct parsing *p, const char *key,
							  const char *word, const char *fmt, ...);
/* The near name of a table as the beginning of a cure, or "". */
void xdpath_rule_near(char *out, size_t size, const struct rule_word *table, const char *word);
/* 0 to most, in digits only. */
int xdpath_rule_number(struct parsing *p, const char *key, const char *word, uint32_t most,
		       uint32_t *out);
/* -EINVAL with a diagnosis if the rule, read to its end, contradicts itself. */
int xdpath_rule_check(struct parsing *p);

#endif
