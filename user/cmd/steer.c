/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * `xdpath steer`: the rules of the program that is attached to a device, by whomever: added,
 * removed, swapped as a whole, listed with their counters.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "inspect.h"
#include "rule_list.h"

#define VERB_NAME "steer"
#define HOW	  "add RULE..., del ID|RULE..., list, flush or load -f FILE"

/* One `steer`: what is to be done to the rules in force. */
struct change {
	const char *dev;
	struct xdpath_rules rules; /* to be added, or the whole new set */
	uint32_t *id;		   /* to be removed */
	uint32_t nids;
	uint32_t before, after; /* rules in force */
	uint32_t first;		/* id of the first one added, 0 none */
};

/* ---- words to rules ------------------------------------------------------------------------- */

/* A word as it must stand in a rule's text. */
static size_t put_word(char *out, size_t size, const char *word)
{
	bool quote = !*word || strpbrk(word, " \t\"'");
	size_t n = 0;

#define PUT(c) (n + 1 < size ? (void)(out[n++] = (c)) : (void)n++)
	if (quote)
		PUT('"');
	for (; *word; word++) {
		if (quote && (*word == '"' || *word == '\\'))
			PUT('\\');
		PUT(*word);
	}
	if (quote)
		PUT('"');
	PUT(' ');
#undef PUT
	return n;
}

static int take_rule(const char *text, struct xdpath_rules *out)
{
	struct xdpath_diag d = {0};
	struct xdpath_rule r;
	int err = xdpath_rule_parse(&r, text, &d);

	if (!err)
		err = xdpath_rules_add(out, &r, &d);
	if (!err)
		return 0;
	xdpath_rule_clear(&r);
	return fail_diag(VERB_NAME, &d, err);
}

/* `add proto udp action xsk`, the words of one rule, or `add 'proto udp action xsk' 'RULE'...` */
static int take_rules(const struct args *a, struct xdpath_rules *out)
{
	char text[2 * XDPATH_RULE_TEXT_MAX] = "";
	size_t n = 0;
	int code = 0;

	if (a->nwords > 1 && strpbrk(a->words[1], " \t")) {
		for (int i = 1; !code && i < a->nwords; i++)
			code = take_rule(a->words[i], out);
		return code;
	}
	for (int i = 1; i < a->nwords && n < sizeof(text); i++)
		n += put_word(text + n, sizeof(text) - n, a->words[i]);
	if (n >= sizeof(text))
		return fail(VERB_NAME, EXIT_USAGE,
			    "%.40s: the rule is too long; it has at most %u characters",
			    a->words[0], XDPATH_RULE_TEXT_MAX - 1);
	text[n ? n - 1 : 0] = '\0';
	return take_rule(text, out);
}

static bool is_number(const char *s)
{
	return *s && !s[strspn(s, "0123456789")];
}

/* `del 3 7`, or a rule as it was added. */
static int take_victims(const struct args *a, struct change *c)
{
	unsigned long n;

	if (a->nwords < 2)
		return fail(VERB_NAME, EXIT_USAGE,
			    "del: what? give ids or a rule; `xdpath steer %s list` shows both",
			    a->dev[0]);
	if (!is_number(a->words[1]))
		return take_rules(a, &c->rules);
	c->id = calloc((size_t)a->nwords, sizeof(*c->id));
	if (!c->id)
		return fail(VERB_NAME, EXIT_FAILED, "no memory; free some");
	for (int i = 1; i < a->nwords; i++) {
		n = is_number(a->words[i]) ? strtoul(a->words[i], NULL, 10) : 0;
		if (!n || n > UINT32_MAX)
			return fail(VERB_NAME, EXIT_USAGE,
				    "del %.40s: no id of a rule; `xdpath steer %s list` shows them",
				    a->words[i], a->dev[0]);
		c->id[c->nids++] = (uint32_t)n;
	}
	return 0;
}

/* ---- changes, made to the rules in force under the lock ----------------------------------------
 */

static int add_rules(void *ctx, struct xdpath_rules *rules, struct xdpath_diag *diag)
{
	struct change *c = ctx;
	uint32_t at;
	int err;

	c->before = rules->n;
	err = xdpath_rules_join(rules, &c->rules, &at, diag);
	c->after = rules->n;
	if (!err && c->after > c->before)
		c->first = rules->rule[c->before].id;
	return err;
}

static int no_rule(const struct change *c, const char *what, struct xdpath_diag *d)
{
	return xdpath_fail(
		d, XDPATH_R_OPTIONS, ENOENT,
		"del %.200s: no such rule is in force; `xdpath steer %s list` shows them", what,
		c->dev);
}

/* Two rules are the same if they read the same. */
static uint32_t id_of(const struct xdpath_rules *rules, const char *text)
{
	char other[XDPATH_RULE_TEXT_MAX];

	for (uint32_t i = 0; i < rules->n; i++)
		if (xdpath_rule_format(&rules->rule[i], other, sizeof(other)) > 0 &&
		    strcmp(text, other) == 0)
			return rules->rule[i].id;
	return 0;
}

static int del_rules(void *ctx, struct xdpath_rules *rules, struct xdpath_diag *diag)
{
	struct change *c = ctx;
	char text[XDPATH_RULE_TEXT_MAX];

	c->before = rules->n;
	for (uint32_t i = 0; i < c->nids; i++) {
		snprintf(text, sizeof(text), "%u", c->id[i]);
		if (xdpath_rules_del(rules, c->id[i]))
			return no_rule(c, text, diag);
	}
	for (uint32_t i = 0; i < c->rules.n; i++) {
		xdpath_rule_format(&c->rules.rule[i], text, sizeof(text));
		if (xdpath_rules_del(rules, id_of(rules, text)))
			return no_rule(c, text, diag);
	}
	c->after = rules->n;
	return 0;
}

/* Of the whole set; a rule that stays keeps its id, and so its counters. */
static int swap_rules(void *ctx, struct xdpath_rules *rules, struct xdpath_diag *diag)
{
	struct change *c = ctx;

	c->before = rules->n;
	c->after = c->rules.n;
	return xdpath_rules_replace(rules, &c->rules, diag);
}

static int tell_change(const struct args *a, const struct change *c)
{
	json_t *o;

	if (a->json) {
		o = json_pack("{s:s, s:I, s:I}", "device", c->dev, "rules_before",
			      (json_int_t)c->before, "rules", (json_int_t)c->after);
		if (c->first)
			json_object_set_new(o, "first_id", json_integer(c->first));
		return json_out(VERB_NAME, o);
	}
	printf("%s: %u rule%s, before %u", c->dev, c->after, c->after == 1 ? "" : "s", c->before);
	if (c->first)
		printf("; added from id %u on", c->first);
	putchar('\n');
	return EXIT_DONE;
}

static int apply(const struct args *a, const struct xdpath_port *p, struct change *c,
		 xdpath_steer_change_fn what)
{
	struct xdpath_diag d = {0};
	int err = xdpath_steer_change(p, what, c, &d);

	if (err)
		return fail_diag(VERB_NAME, &d, err);
	return tell_change(a, c);
}

/* ---- list ----------------------------------------------------------------------------------- */

static void list_text(const struct xdpath_rules *rules, const uint32_t *order,
		      const struct xdpath_rule_count *count)
{
	char text[XDPATH_RULE_TEXT_MAX];

	printf("%8s %14s %16s  %s\n", "ID", "PACKETS", "BYTES", "RULE");
	for (uint32_t i = 0; i < rules->n; i++) {
		xdpath_rule_format(&rules->rule[order[i]], text, sizeof(text));
		printf("%8u %14" PRIu64 " %16" PRIu64 "  %s\n", rules->rule[order[i]].id,
		       count[order[i]].packets, count[order[i]].bytes, text);
	}
}

static int list_json(const char *dev, uint32_t id, const struct xdpath_rules *rules,
		     const uint32_t *order, const struct xdpath_rule_count *count)
{
	json_t *o = json_object(), *list = json_array();
	char text[XDPATH_RULE_TEXT_MAX];

	for (uint32_t i = 0; i < rules->n; i++) {
		const struct xdpath_rule *r = &rules->rule[order[i]];

		xdpath_rule_format(r, text, sizeof(text));
		json_array_append_new(list,
				      json_pack("{s:I, s:o, s:I, s:I}", "id", (json_int_t)r->id,
						"rule", json_text(text), "packets",
						(json_int_t)count[order[i]].packets, "bytes",
						(json_int_t)count[order[i]].bytes));
	}
	json_object_set_new(o, "device", json_string(dev));
	json_object_set_new(o, "program", json_integer(id));
	json_object_set_new(o, "rules", list);
	return json_out(VERB_NAME, o);
}

/* In the order in which they are tried. */
static int list(const struct args *a, const struct xdpath_port *p, struct change *c)
{
	struct xdpath_rule_count *count = NULL;
	struct xdpath_rules rules = {0};
	struct xdpath_diag d = {0};
	uint32_t id = 0, *order;
	int err = xdpath_steer_find(p, &id, &d), code = EXIT_DONE;

	(void)c;
	if (err)
		return fail_diag(VERB_NAME, &d, err);
	err = xdpath_steer_get(id, &rules, &count);
	order = err ? NULL : calloc(rules.n + 1, sizeof(*order));
	if (!order) {
		free(count);
		xdpath_rules_clear(&rules);
		return fail(VERB_NAME, EXIT_FAILED,
			    "%s: the rules of program %u cannot be read: %s; see `xdpath status "
			    "%s`",
			    p->name, id, strerror(err ? -err : ENOMEM), p->name);
	}
	xdpath_rules_order(&rules, order);
	if (a->json)
		code = list_json(p->name, id, &rules, order, count);
	else if (rules.n)
		list_text(&rules, order, count);
	else
		printf("%s: no rules\n", p->name);
	free(order);
	free(count);
	xdpath_rules_clear(&rules);
	return code;
}

/* ---- the verb ------------------------------------------------------------------------------- */

static int add(const struct args *a, const struct xdpath_port *p, struct change *c)
{
	int code = 0;

	c->rules = a->rules; /* -f */
	if (a->nwords > 1)
		code = take_rules(a, &c->rules);
	else if (!a->rules_given)
		code = fail(
			VERB_NAME, EXIT_USAGE,
			"add: no rule; write for example `xdpath steer %s add proto udp dport 53 "
			"action xsk`",
			p->name);
	if (!code)
		code = apply(a, p, c, add_rules);
	return code;
}

static int del(const struct args *a, const struct xdpath_port *p, struct change *c)
{
	int code = take_victims(a, c);

	return code ? code : apply(a, p, c, del_rules);
}

static int load(const struct args *a, const struct xdpath_port *p, struct change *c)
{
	if (!a->rules_given)
		return fail(VERB_NAME, EXIT_USAGE,
			    "load: no file; name it by -f FILE, or -f - for standard input");
	c->rules = a->rules;
	return apply(a, p, c, swap_rules);
}

static int flush(const struct args *a, const struct xdpath_port *p, struct change *c)
{
	return apply(a, p, c, swap_rules);
}

static const struct deed {
	const char *name;
	bool words, file; /* takes rules or ids as words; takes -f */
	int (*run)(const struct args *a, const struct xdpath_port *p, struct change *c);
} deeds[] = {
	{"add", true, true, add},	{"del", true, false, del},   {"list", false, false, list},
	{"flush", false, false, flush}, {"load", false, true, load},
};

/* What is to be done, or NULL with *code. */
static const struct deed *choose(const struct args *a, int *code)
{
	const struct deed *d = NULL;

	for (size_t i = 0; a->nwords && i < sizeof(deeds) / sizeof(deeds[0]); i++)
		if (strcmp(deeds[i].name, a->words[0]) == 0)
			d = &deeds[i];
	if (!a->nwords)
		*code = fail(VERB_NAME, EXIT_USAGE, "%s: what is to be done? give " HOW, a->dev[0]);
	else if (!d)
		*code = fail(VERB_NAME, EXIT_USAGE, "%.40s: cannot be done; give " HOW,
			     a->words[0]);
	else if (a->nwords > 1 && !d->words)
		*code = fail(VERB_NAME, EXIT_USAGE, "%.40s: nothing follows %s; give " HOW,
			     a->words[1], d->name);
	else if (a->rules_given && !d->file)
		*code = fail(VERB_NAME, EXIT_USAGE, "-f: %s takes no file; give " HOW, d->name);
	else
		return d;
	return NULL;
}

int cmd_steer(const struct args *a)
{
	const struct deed *deed;
	struct xdpath_diag d = {0};
	struct change c = {0};
	struct xdpath_port p;
	int code = 0, err;

	deed = choose(a, &code);
	if (!deed)
		return code;
	err = xdpath_port_query(&p, a->dev[0], &d);
	if (err)
		return fail_diag(VERB_NAME, &d, err);
	c.dev = p.name;
	code = deed->run(a, &p, &c);
	free(c.id);
	xdpath_rules_clear(&c.rules);
	return code;
}
