/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The values in a rule's text: one reader for each match. Called by rule_parse.c, which knows the
 * words. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"
#include "rule_parse.h"

/* Text from outside, for a message: cut short, what is no ASCII text replaced. */
static void clean(char *out, size_t size, const char *word)
{
	size_t n = 0;

	for (; *word && n < size - 1; word++)
		out[n++] = (unsigned char)*word < ' ' || (unsigned char)*word > '~' ? '?' : *word;
	if (*word)
		memcpy(out + n - 3, "...", 3);
	out[n] = '\0';
}

/* "KEY WORD: ..."; either may be NULL. */
__attribute__((format(printf, 4, 5))) int xdpath_rule_bad(struct parsing *p, const char *key,
							  const char *word, const char *fmt, ...)
{
	char shown[48] = "", text[256];
	va_list ap;

	if (word)
		clean(shown, sizeof(shown), *word ? word : "\"\"");
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return xdpath_fail(p->diag, XDPATH_R_OPTIONS, EINVAL, "%s%s%s: %s", key ? key : "",
			   key && word ? " " : "", shown, text);
}

/* The near name of a table, as the beginning of a cure. */
void xdpath_rule_near(char *out, size_t size, const struct rule_word *table, const char *word)
{
	struct xdpath_near near;

	xdpath_near_start(&near, word);
	for (; table->name; table++)
		xdpath_near_offer(&near, table->name);
	snprintf(out, size, "%s%s%s", near.best ? "did you mean " : "", near.best ? near.best : "",
		 near.best ? "? " : "");
}

static int read_number(const char *word, uint32_t most, uint32_t *out)
{
	uint64_t n = 0;

	for (const char *c = word; *c || c == word; c++) {
		if (!isdigit((unsigned char)*c))
			return -EINVAL;
		n = n * 10 + (uint64_t)(*c - '0');
		if (n > most)
			return -ERANGE;
	}
	*out = (uint32_t)n;
	return 0;
}

int xdpath_rule_number(struct parsing *p, const char *key, const char *word, uint32_t most,
		       uint32_t *out)
{
	int err = read_number(word, most, out);

	if (err == -ERANGE)
		return xdpath_rule_bad(p, key, word, "out of range; give 0 to %u", most);
	return err ? xdpath_rule_bad(p, key, word, "not a number; give 0 to %u", most) : 0;
}

static int read_prio(struct parsing *p, const char *key, const char *word)
{
	return xdpath_rule_number(p, key, word, 65535, &p->r->prio);
}

static int read_vlan(struct parsing *p, const char *key, const char *word)
{
	uint32_t n = 0;
	int err = xdpath_rule_number(p, key, word, 4095, &n);

	p->r->vlan = (uint16_t)n;
	return err;
}

static int read_queue(struct parsing *p, const char *key, const char *word)
{
	return xdpath_rule_number(p, key, word, XDPATH_QUEUES - 1, &p->r->queue);
}

static int read_ether_number(struct parsing *p, const char *key, const char *word)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(word, &end, 16);
	if (!isxdigit((unsigned char)word[2]) || *end || errno || n > 0xffff)
		return xdpath_rule_bad(p, key, word, "no such number; give 0x0600 to 0xffff");
	if (n < 0x600)
		return xdpath_rule_bad(
			p, key, word,
			"below 0x0600 it is a frame's length, not its type; give 0x0600 to "
			"0xffff");
	if (n == 0x8100 || n == 0x88a8 || n == 0x9100)
		return xdpath_rule_bad(
			p, key, word,
			"a VLAN tag is passed over, the type is what follows it; use vlan ID");
	p->r->ether = (uint16_t)n;
	return 0;
}

static int read_ether(struct parsing *p, const char *key, const char *word)
{
	const struct rule_word *w = xdpath_rule_word_find(xdpath_rule_ethers, word);
	char cure[64];

	if (word[0] == '0' && word[1] == 'x')
		return read_ether_number(p, key, word);
	if (w) {
		p->r->ether = (uint16_t)w->value;
		return 0;
	}
	if (isdigit((unsigned char)word[0]))
		return xdpath_rule_bad(p, key, word,
				       "a number begins with 0x here; write for example 0x0800");
	if (xdpath_rule_word_find(xdpath_rule_protos, word))
		return xdpath_rule_bad(p, key, word, "a protocol, not an EtherType; write proto %s",
				       word);
	xdpath_rule_near(cure, sizeof(cure), xdpath_rule_ethers, word);
	return xdpath_rule_bad(p, key, word,
			       "no such EtherType; %sgive ipv4, ipv6, arp, mpls, ... or 0x0800",
			       cure);
}

/* Names of the system's own list. */
static bool system_proto(const char *word, uint32_t *out)
{
	struct protoent e, *found = NULL;
	char buf[1024];

	if (getprotobyname_r(word, &e, buf, sizeof(buf), &found) || !found || found->p_proto < 0 ||
	    found->p_proto > 255)
		return false;
	*out = (uint32_t)found->p_proto;
	return true;
}

static int read_proto(struct parsing *p, const char *key, const char *word)
{
	const struct rule_word *w = xdpath_rule_word_find(xdpath_rule_protos, word);
	uint32_t n = 0;
	char cure[64];
	int err = read_number(word, 255, &n);

	if (err == -ERANGE)
		return xdpath_rule_bad(p, key, word, "out of range; give a name or 0 to 255");
	if (err && w) {
		n = w->value;
	} else if (err && xdpath_rule_word_find(xdpath_rule_ethers, word)) {
		return xdpath_rule_bad(p, key, word, "an EtherType, not a protocol; write ether %s",
				       word);
	} else if (err && !system_proto(word, &n)) {
		xdpath_rule_near(cure, sizeof(cure), xdpath_rule_protos, word);
		return xdpath_rule_bad(p, key, word,
				       "no such protocol; %sgive tcp, udp, icmp, ... or 0 to 255",
				       cure);
	}
	p->r->proto = (uint8_t)n;
	return 0;
}

/* Zero the bits past the length; true if any was set. */
static bool cut_prefix(struct xdpath_prefix *x)
{
	bool any = false;

	for (uint32_t bit = x->len; bit < 128; bit++) {
		uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		any |= (x->addr[bit / 8] & mask) != 0;
		x->addr[bit / 8] &= (uint8_t)~mask;
	}
	return any;
}

static int read_prefix(struct parsing *p, const char *key, const char *word,
		       struct xdpath_prefix *x)
{
	char addr[64], right[INET6_ADDRSTRLEN];
	const char *slash = strchr(word, '/');
	size_t n = slash ? (size_t)(slash - word) : strlen(word);
	uint32_t most, len;
	int family;

	snprintf(addr, sizeof(addr), "%.*s", (int)(n < sizeof(addr) ? n : sizeof(addr)), word);
	family = strchr(addr, ':') ? AF_INET6 : AF_INET;
	if (n >= sizeof(addr) || inet_pton(family, addr, x->addr) != 1)
		return xdpath_rule_bad(
			p, key, word,
			"not an address; give one like 10.0.0.1 or fd00::1, with /LENGTH for a "
			"prefix");
	x->family = family == AF_INET ? 4 : 6;
	most = len = family == AF_INET ? 32 : 128;
	if (slash && read_number(slash + 1, most, &len))
		return xdpath_rule_bad(p, key, word, "no length of an IPv%u prefix; give /0 to /%u",
				       x->family, most);
	x->len = (uint8_t)len;
	if (!cut_prefix(x))
		return 0;
	inet_ntop(family, x->addr, right, sizeof(right));
	return xdpath_rule_bad(p, key, word,
			       "bits are set behind the first %u; write %s/%u, or %s for one host",
			       len, right, len, addr);
}

static int read_src(struct parsing *p, const char *key, const char *word)
{
	return read_prefix(p, key, word, &p->r->src);
}

static int read_dst(struct parsing *p, const char *key, const char *word)
{
	return read_prefix(p, key, word, &p->r->dst);
}

static int read_ports(struct parsing *p, const char *key, const char *word, uint16_t out[2])
{
	const char *dash = strchr(word, '-');
	uint32_t first = 0, last = 0;
	char part[16];
	int err;

	if (dash && dash - word < (ptrdiff_t)sizeof(part)) {
		snprintf(part, sizeof(part), "%.*s", (int)(dash - word), word);
		err = read_number(part, 65535, &first);
		if (!err)
			err = read_number(dash + 1, 65535, &last);
	} else {
		err = read_number(word, 65535, &first);
		last = first;
	}
	if (err)
		return xdpath_rule_bad(p, key, word,
				       "%s; give a port of 0 to 65535, or a range like 1000-2000",
				       err == -ERANGE ? "out of range" : "no port");
	if (first > last)
		return xdpath_rule_bad(p, key, word, "the range runs backwards; write %u-%u", last,
				       first);
	out[0] = (uint16_t)first;
	out[1] = (uint16_t)last;
	return 0;
}

static int read_sport(struct parsing *p, const char *key, const char *word)
{
	return read_ports(p, key, word, p->r->sport);
}

static int read_dport(struct parsing *p, const char *key, const char *word)
{
	return read_ports(p, key, word, p->r->dport);
}

/* One flag of a set, n characters long. */
static int read_flag(struct parsing *p, const char *key, const char *word, const char *one,
		     size_t n)
{
	const struct rule_word *w;
	bool clear = n && *one == '!';
	char name[16], cure[64];

	snprintf(name, sizeof(name), "%.*s", (int)(n - clear), one + clear);
	w = xdpath_rule_word_find(xdpath_rule_tcp_flags, name);
	if (!w) {
		xdpath_rule_near(cure, sizeof(cure), xdpath_rule_tcp_flags, name);
		return xdpath_rule_bad(
			p, key, word,
			"\"%.*s\" is no flag; %sjoin fin, syn, rst, psh, ack, urg, ece, cwr by "
			"commas, ! before one that must be clear",
			n < 16 ? (int)n : 16, one, cure);
	}
	if (p->r->flags_mask & w->value)
		return xdpath_rule_bad(p, key, word,
				       "%s is named twice; name it once, set or clear", name);
	p->r->flags_mask |= (uint8_t)w->value;
	if (!clear)
		p->r->flags |= (uint8_t)w->value;
	return 0;
}

static int read_tcp_flags(struct parsing *p, const char *key, const char *word)
{
	const char *one = word;
	size_t n;
	int err;

	for (;; one += n + 1) {
		n = strcspn(one, ",");
		err = read_flag(p, key, word, one, n);
		if (err || !one[n])
			return err;
	}
}

static int read_filter(struct parsing *p, const char *key, const char *word)
{
	if (!word[strspn(word, " \t")])
		return xdpath_rule_bad(p, key, "\"\"",
				       "empty; give an expression like \"udp port 53\"");
	p->r->filter = strdup(word);
	if (!p->r->filter)
		return xdpath_fail(p->diag, XDPATH_R_MEMORY, ENOMEM,
				   "filter: no memory; free some");
	return xdpath_filter_check(word, p->diag);
}

const struct match xdpath_rule_matches[MATCHES] = {
	{"prio", RULE_SEEN_PRIO, read_prio, "a number, 0 to 65535"},
	{"ether", XDPATH_RF_ETHER, read_ether, "ipv4, ipv6, arp, ... or 0x0800"},
	{"vlan", XDPATH_RF_VLAN, read_vlan, "a tag's id, 0 to 4095"},
	{"proto", XDPATH_RF_PROTO, read_proto, "tcp, udp, icmp, ... or a number"},
	{"src", XDPATH_RF_SRC, read_src, "an address or prefix"},
	{"dst", XDPATH_RF_DST, read_dst, "an address or prefix"},
	{"sport", XDPATH_RF_SPORT, read_sport, "a port or range"},
	{"dport", XDPATH_RF_DPORT, read_dport, "a port or range"},
	{"tcp-flags", XDPATH_RF_TCP_FLAGS, read_tcp_flags, "flags like syn,!ack"},
	{"queue", XDPATH_RF_QUEUE, read_queue, "a receiving queue, 0 to 255"},
	{"filter", XDPATH_RF_FILTER, read_filter, "a quoted expression like \"udp port 53\""},
};
