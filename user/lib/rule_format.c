/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* A rule as text in its one canonical form, and how specific it is. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rule_words.h"

struct text {
	char *out;
	size_t size, used; /* used may pass size: then it did not fit */
};

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *fmt, ...)
{
	bool room = t->used < t->size;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(room ? t->out + t->used : NULL, room ? t->size - t->used : 0, fmt, ap);
	va_end(ap);
	t->used += n < 0 ? t->size : (size_t)n;
}

static void say_ether(struct text *t, uint32_t ether)
{
	const char *name = xdpath_rule_word_name(xdpath_rule_ethers, ether);

	if (name)
		say(t, "ether %s ", name);
	else
		say(t, "ether 0x%04x ", ether);
}

static void say_proto(struct text *t, uint32_t proto)
{
	const char *name = xdpath_rule_word_name(xdpath_rule_protos, proto);

	if (name)
		say(t, "proto %s ", name);
	else
		say(t, "proto %u ", proto);
}

static void say_prefix(struct text *t, const char *key, const struct xdpath_prefix *x)
{
	char addr[INET6_ADDRSTRLEN] = "";

	inet_ntop(x->family == 4 ? AF_INET : AF_INET6, x->addr, addr, sizeof(addr));
	say(t, "%s %s", key, addr);
	if (x->len == (x->family == 4 ? 32 : 128))
		say(t, " ");
	else
		say(t, "/%u ", x->len);
}

static void say_ports(struct text *t, const char *key, const uint16_t ports[2])
{
	if (ports[0] == ports[1])
		say(t, "%s %u ", key, ports[0]);
	else
		say(t, "%s %u-%u ", key, ports[0], ports[1]);
}

static void say_flags(struct text *t, const struct xdpath_rule *r)
{
	const char *before = "tcp-flags ";

	for (const struct rule_word *w = xdpath_rule_tcp_flags; w->name; w++) {
		if (!(r->flags_mask & w->value))
			continue;
		say(t, "%s%s%s", before, r->flags & w->value ? "" : "!", w->name);
		before = ",";
	}
	say(t, " ");
}

static void say_filter(struct text *t, const char *expr)
{
	say(t, "filter \"");
	for (; *expr; expr++)
		say(t, "%s%c", *expr == '"' || *expr == '\\' ? "\\" : "", *expr);
	say(t, "\" ");
}

static void say_action(struct text *t, const struct xdpath_rule *r)
{
	const char *name = xdpath_rule_word_name(xdpath_rule_actions, r->action);

	say(t, "action %s", name ? name : "?");
	if (r->action == XDPATH_RA_REDIRECT)
		say(t, " %s", r->dev);
	if (r->action == XDPATH_RA_MIRROR && r->snap != XDPATH_SNAP_MAX)
		say(t, " %u", r->snap);
}

int xdpath_rule_format(const struct xdpath_rule *r, char *out, size_t size)
{
	struct text t = {.out = out, .size = size};

	if (r->prio != XDPATH_RULE_PRIO)
		say(&t, "prio %u ", r->prio);
	if (r->fields & XDPATH_RF_ETHER)
		say_ether(&t, r->ether);
	if (r->fields & XDPATH_RF_VLAN)
		say(&t, "vlan %u ", r->vlan);
	if (r->fields & XDPATH_RF_PROTO)
		say_proto(&t, r->proto);
	if (r->fields & XDPATH_RF_SRC)
		say_prefix(&t, "src", &r->src);
	if (r->fields & XDPATH_RF_DST)
		say_prefix(&t, "dst", &r->dst);
	if (r->fields & XDPATH_RF_SPORT)
		say_ports(&t, "sport", r->sport);
	if (r->fields & XDPATH_RF_DPORT)
		say_ports(&t, "dport", r->dport);
	if (r->fields & XDPATH_RF_TCP_FLAGS)
		say_flags(&t, r);
	if (r->fields & XDPATH_RF_QUEUE)
		say(&t, "queue %u ", r->queue);
	if (r->fields & XDPATH_RF_FILTER)
		say_filter(&t, r->filter);
	say_action(&t, r);
	return t.used < t.size ? (int)t.used : -ENOSPC;
}

/* Bits fixed by a range: those of a port, less what its size leaves open. */
static uint32_t range_bits(const uint16_t range[2])
{
	uint32_t size = (uint32_t)(range[1] - range[0]) + 1, open = 0;

	while (1U << open < size)
		open++;
	return 16 - open;
}

uint32_t xdpath_rule_specificity(const struct xdpath_rule *r)
{
	uint32_t bits = 0;

	if (r->fields & XDPATH_RF_ETHER)
		bits += 16;
	if (r->fields & XDPATH_RF_VLAN)
		bits += 12;
	if (r->fields & XDPATH_RF_PROTO)
		bits += 8;
	if (r->fields & XDPATH_RF_SRC)
		bits += r->src.len;
	if (r->fields & XDPATH_RF_DST)
		bits += r->dst.len;
	if (r->fields & XDPATH_RF_SPORT)
		bits += range_bits(r->sport);
	if (r->fields & XDPATH_RF_DPORT)
		bits += range_bits(r->dport);
	if (r->fields & XDPATH_RF_TCP_FLAGS)
		bits += (uint32_t)__builtin_popcount(r->flags_mask);
	if (r->fields & XDPATH_RF_QUEUE)
		bits += 8;
	return bits;
}
