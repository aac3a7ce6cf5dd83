/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A rule from its text, in one pass over its words.
 *
 * Called by whoever reads rules: rule_file.c, the command, applications. On failure nothing is
 * allocated and the diagnosis names the word at fault.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rule_parse.h"

#define EXAMPLE "`proto udp dport 53 action xsk`"

/* One word with shell-like quotes into p->words; NULL at the end, or with p->err. */
static const char *next_word(struct parsing *p)
{
	char *word = p->words + p->used, quote = 0;

	p->at += strspn(p->at, " \t");
	if (!*p->at)
		return NULL;
	for (; *p->at && (quote || !strchr(" \t", *p->at)); p->at++) {
		char c = *p->at;

		if (quote ? c == quote : c == '"' || c == '\'') {
			quote = quote ? 0 : c;
			continue;
		}
		if (quote == '"' && c == '\\' && (p->at[1] == '"' || p->at[1] == '\\'))
			c = *++p->at;
		p->words[p->used++] = c; /* never longer than the text, which fits */
	}
	p->words[p->used++] = '\0';
	if (quote)
		p->err = xdpath_rule_bad(p, NULL, word, "the quote before it has no end; add %c",
					 quote);
	return p->err ? NULL : word;
}

static int unknown_word(struct parsing *p, const char *word)
{
	struct xdpath_near near;

	if (xdpath_rule_word_find(xdpath_rule_protos, word))
		return xdpath_rule_bad(p, NULL, word, "no match by itself; write proto %s", word);
	if (xdpath_rule_word_find(xdpath_rule_ethers, word))
		return xdpath_rule_bad(p, NULL, word, "no match by itself; write ether %s", word);
	if (xdpath_rule_word_find(xdpath_rule_actions, word))
		return xdpath_rule_bad(p, NULL, word, "no match; end the rule with action %s",
				       word);
	if (strcmp(word, "port") == 0)
		return xdpath_rule_bad(p, NULL, word,
				       "sport and dport tell the directions; write one of them");
	if (strcmp(word, "host") == 0 || strcmp(word, "net") == 0)
		return xdpath_rule_bad(p, NULL, word,
				       "src and dst tell the directions; write one of them");
	xdpath_near_start(&near, word);
	for (int i = 0; i < MATCHES; i++)
		xdpath_near_offer(&near, xdpath_rule_matches[i].word);
	xdpath_near_offer(&near, "action");
	if (near.best)
		return xdpath_rule_bad(p, NULL, word, "no such match; did you mean %s?", near.best);
	return xdpath_rule_bad(
		p, NULL, word,
		"no such match; use ether, vlan, proto, src, dst, sport, dport, tcp-flags, "
		"queue, filter or action");
}

static int read_match(struct parsing *p, const char *word)
{
	const struct match *m = NULL;
	const char *value;

	for (int i = 0; i < MATCHES; i++)
		if (strcmp(xdpath_rule_matches[i].word, word) == 0)
			m = &xdpath_rule_matches[i];
	if (!m)
		return unknown_word(p, word);
	if (p->seen & m->field)
		return xdpath_rule_bad(p, m->word, NULL, "given twice; give it once");
	p->seen |= m->field;
	value = next_word(p);
	if (p->err)
		return p->err;
	if (!value)
		return xdpath_rule_bad(p, m->word, NULL, "its value is missing; give %s", m->value);
	return m->read(p, m->word, value);
}

static int read_device(struct parsing *p, const char *word)
{
	struct xdpath_rule *r = p->r;

	if (!word)
		return xdpath_rule_bad(p, "action redirect", NULL,
				       "its value is missing; name the device to send out of");
	r->ifindex = strlen(word) < sizeof(r->dev) ? (int)if_nametoindex(word) : 0;
	if (!r->ifindex)
		return xdpath_no_device(word, p->diag);
	snprintf(r->dev, sizeof(r->dev), "%s", word);
	return 0;
}

static int read_action(struct parsing *p)
{
	const char *word = next_word(p), *more;
	const struct rule_word *w = word ? xdpath_rule_word_find(xdpath_rule_actions, word) : NULL;
	char cure[64];
	int err = p->err;

	if (err)
		return err;
	if (!word)
		return xdpath_rule_bad(
			p, "action", NULL,
			"its value is missing; give xsk, pass, drop, tx, redirect or mirror");
	if (!w) {
		xdpath_rule_near(cure, sizeof(cure), xdpath_rule_actions, word);
		return xdpath_rule_bad(
			p, "action", word,
			"no such action; %sgive xsk, pass, drop, tx, redirect or mirror", cure);
	}
	p->r->action = (enum xdpath_rule_action)w->value;
	more = next_word(p);
	if (!p->err && p->r->action == XDPATH_RA_REDIRECT) {
		err = read_device(p, more);
		more = err ? NULL : next_word(p);
	} else if (!p->err && p->r->action == XDPATH_RA_MIRROR) {
		p->r->snap = XDPATH_SNAP_MAX;
		err = more ? xdpath_rule_number(p, "action mirror", more, XDPATH_SNAP_MAX,
						&p->r->snap)
			   : 0;
		if (!err && !p->r->snap)
			err = xdpath_rule_bad(p, "action mirror", more,
					      "nothing would be kept; give 1 to %u",
					      XDPATH_SNAP_MAX);
		more = err || !more ? NULL : next_word(p);
	}
	if (err || p->err)
		return err ? err : p->err;
	return more ? xdpath_rule_bad(p, NULL, more, "behind the action; put matches before it")
		    : 0;
}

static int parse(struct parsing *p)
{
	const char *word;
	int err;

	for (const char *c = p->at; *c; c++)
		if ((unsigned char)*c < ' ' && *c != '\t')
			return xdpath_rule_bad(p, NULL, p->at,
					       "holds a control character (0x%02x); write a rule "
					       "in one line of text",
					       (unsigned int)*c);
	if (strlen(p->at) >= XDPATH_RULE_TEXT_MAX)
		return xdpath_rule_bad(p, NULL, p->at, "too long; a rule has at most %u characters",
				       XDPATH_RULE_TEXT_MAX - 1);
	while ((word = next_word(p)) && strcmp(word, "action") != 0) {
		err = read_match(p, word);
		if (err)
			return err;
	}
	if (p->err)
		return p->err;
	if (!word && !p->used)
		return xdpath_rule_bad(p, "rule", NULL, "empty; write for example " EXAMPLE);
	if (!word)
		return xdpath_rule_bad(
			p, "rule", NULL,
			"it does not end with an action; write for example " EXAMPLE);
	p->r->fields = p->seen & ~RULE_SEEN_PRIO;
	err = read_action(p);
	return err ? err : xdpath_rule_check(p);
}

int xdpath_rule_parse(struct xdpath_rule *r, const char *text, struct xdpath_diag *diag)
{
	struct parsing p = {.r = r, .diag = diag, .at = text};
	int err;

	*r = (struct xdpath_rule){.prio = XDPATH_RULE_PRIO};
	err = parse(&p);
	if (err)
		xdpath_rule_clear(r);
	return err;
}

void xdpath_rule_clear(struct xdpath_rule *r)
{
	if (!r)
		return;
	free(r->filter);
	*r = (struct xdpath_rule){0};
}
