/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The options of `source`, from text to a plan of frames. Called by source.c before anything is
 * opened. Every refusal is one line and exit code 2.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <libmnl/libmnl.h>

#include "internal.h"
#include "source.h"

#define VERB_NAME    "source"
#define SPORT	     1024
#define DPORT	     9 /* discard */
#define SIZE	     64U
#define NEIGH_USABLE (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT)

/* RFC 2544 and RFC 5180: kept for measurements, routed nowhere. */
static const char *const default_src[2] = {"198.18.0.1", "2001:2::1"};
static const char *const default_dst[2] = {"198.18.0.2", "2001:2::2"};
/* Locally administered: no device has it, no switch port is flooded but the unknown. */
static const uint8_t default_mac[6] = {0x02, 0, 0, 0, 0, 0x02};

/* A whole decimal number within [low, high]; `end` NULL: nothing may follow it. */
static int parse_number(const char *text, uint32_t low, uint32_t high, uint32_t *out, char **end)
{
	unsigned long long v;
	char *stop;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &stop, 10);
	if (!end && *stop)
		return -EINVAL;
	if (errno || v < low || v > high)
		return -ERANGE;
	if (end)
		*end = stop;
	*out = (uint32_t)v;
	return 0;
}

static int parse_range(const char *option, const char *text, uint32_t low, uint32_t high,
		       uint16_t *out)
{
	uint32_t v;

	if (!text)
		return EXIT_DONE;
	if (parse_number(text, low, high, &v, NULL))
		return fail(VERB_NAME, EXIT_USAGE, "%s %s: not a number from %u to %u; give one",
			    option, text, low, high);
	*out = (uint16_t)v;
	return EXIT_DONE;
}

int source_parse_rate(const char *text, struct gen_pace *pace)
{
	static const struct {
		const char *name;
		double factor;
		bool bits;
	} units[] = {
		{"", 1, false},	   {"k", 1e3, false},	 {"M", 1e6, false},    {"G", 1e9, false},
		{"bps", 1, true},  {"kbps", 1e3, true},	 {"Mbps", 1e6, true},  {"Gbps", 1e9, true},
		{"pps", 1, false}, {"kpps", 1e3, false}, {"Mpps", 1e6, false},
	};
	const double one = (double)(1U << GEN_FRACTION);
	size_t digits = strspn(text, "0123456789."), i;
	double v;
	char *end;

	v = strtod(text, &end);
	/* strtod alone would take "inf", "1e9" and "0x10" too. */
	if (digits == 0 || end != text + digits)
		return -EINVAL;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].name))
			break;
	if (i == sizeof(units) / sizeof(units[0]))
		return -EINVAL;
	v *= units[i].factor;
	pace->gap = 0;
	pace->gap_byte = 0;
	/* Rounded up: never above the rate, and a whole second holds no frame more. */
	if (units[i].bits) {
		if (v < 1e4 || v > 1e12)
			return -ERANGE;
		pace->gap_byte = (uint64_t)ceil(8e9 / v * one);
	} else {
		if (v < 1 || v > 1e9)
			return -ERANGE;
		pace->gap = (uint64_t)ceil(1e9 / v * one);
	}
	return 0;
}

static int parse_rate(struct source *s)
{
	const char *text = s->args->rate;
	int err = text ? source_parse_rate(text, &s->pace) : 0;

	if (err == -ERANGE)
		return fail(
			VERB_NAME, EXIT_USAGE,
			"--rate %s: out of range; give 1 to 1G packets/s, or 10kbps to 1000Gbps",
			text);
	if (err)
		return fail(
			VERB_NAME, EXIT_USAGE,
			"--rate %s: not a rate; give packets/s as 10000, 10k or 1.5M, or bits/s as "
			"100Mbps",
			text);
	return EXIT_DONE;
}

/* An address of either family: which one in *v6. */
static int parse_address(const char *option, const char *text, uint8_t out[16], bool *v6)
{
	*v6 = strchr(text, ':') != NULL;
	if (inet_pton(*v6 ? AF_INET6 : AF_INET, text, out) != 1)
		return fail(VERB_NAME, EXIT_USAGE,
			    "%s %s: not an address; give one as 198.18.0.2 or 2001:2::2", option,
			    text);
	return EXIT_DONE;
}

static int parse_addresses(struct source *s)
{
	const struct args *a = s->args;
	struct packet_spec *p = &s->spec;
	bool src6 = false, dst6 = false;
	int code = EXIT_DONE;

	if (a->src)
		code = parse_address("--src", a->src, p->src, &src6);
	if (!code && a->dst)
		code = parse_address("--dst", a->dst, p->dst, &dst6);
	if (code)
		return code;
	if (a->src && a->dst && src6 != dst6)
		return fail(VERB_NAME, EXIT_USAGE,
			    "--src %s --dst %s: one is IPv4, the other IPv6; give both of one kind",
			    a->src, a->dst);
	p->v6 = src6 || dst6;
	if (!a->src)
		inet_pton(p->v6 ? AF_INET6 : AF_INET, default_src[p->v6], p->src);
	if (!a->dst)
		inet_pton(p->v6 ? AF_INET6 : AF_INET, default_dst[p->v6], p->dst);
	return EXIT_DONE;
}

struct neighbour {
	bool found;
	uint8_t mac[6];
};

static int take_neighbour(const struct nlmsghdr *nlh, void *ctx)
{
	const struct ndmsg *nd = mnl_nlmsg_get_payload(nlh);
	struct neighbour *n = ctx;
	const struct nlattr *attr;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*nd) || !(nd->ndm_state & NEIGH_USABLE))
		return 0;
	mnl_attr_for_each (attr, nlh, sizeof(*nd)) {
		if (mnl_attr_get_type(attr) != NDA_LLADDR || mnl_attr_get_payload_len(attr) != 6)
			continue;
		memcpy(n->mac, mnl_attr_get_payload(attr), 6);
		n->found = true;
	}
	return 0;
}

/* The kernel's neighbour entry for the destination on this device. */
static bool ask_neighbour(const struct source *s, uint8_t mac[6])
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct neighbour n = {0};
	struct ndmsg *nd;

	nlh->nlmsg_type = RTM_GETNEIGH;
	nd = mnl_nlmsg_put_extra_header(nlh, sizeof(*nd));
	nd->ndm_family = s->spec.v6 ? AF_INET6 : AF_INET;
	nd->ndm_ifindex = s->port.ifindex;
	mnl_attr_put(nlh, NDA_DST, s->spec.v6 ? 16 : 4, s->spec.dst);
	if (xdpath_nl_talk(NETLINK_ROUTE, nlh, take_neighbour, &n, NULL, 0) || !n.found)
		return false;
	memcpy(mac, n.mac, 6);
	return true;
}

static int parse_macs(struct source *s)
{
	struct packet_spec *p = &s->spec;
	const char *text = s->args->dst_mac;
	unsigned int m[6];
	int end = 0;

	memcpy(p->src_mac, s->port.mac, 6);
	if (!text) {
		s->dst_mac_why = "neighbour";
		if (ask_neighbour(s, p->dst_mac))
			return EXIT_DONE;
		s->dst_mac_why = "default";
		memcpy(p->dst_mac, default_mac, 6);
		return EXIT_DONE;
	}
	s->dst_mac_why = "given";
	if (strspn(text, "0123456789abcdefABCDEF:") != strlen(text) ||
	    sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5],
		   &end) != 6 ||
	    text[end])
		return fail(VERB_NAME, EXIT_USAGE,
			    "--dst-mac %s: not a MAC address; give one as 02:00:00:00:00:02", text);
	for (int i = 0; i < 6; i++)
		p->dst_mac[i] = (uint8_t)m[i];
	return EXIT_DONE;
}

static int parse_ports(struct source *s)
{
	const struct args *a = s->args;
	struct packet_spec *p = &s->spec;
	int code;

	p->sport = SPORT;
	p->dport = DPORT;
	code = parse_range("--sport", a->sport, 1, 65535, &p->sport);
	if (!code)
		code = parse_range("--dport", a->dport, 1, 65535, &p->dport);
	if (!code)
		code = parse_range("--vlan", a->vlan, 1, 4094, &p->vlan);
	if (code)
		return code;
	p->flows = a->flows ? a->flows : 1;
	if (p->flows > GEN_PORT_SPAN)
		return fail(VERB_NAME, EXIT_USAGE,
			    "--flows %u: a flow is a source port, and there are %u; give fewer",
			    p->flows, GEN_PORT_SPAN);
	return EXIT_DONE;
}

static int refuse_size(const struct source *s, uint32_t shortest, uint32_t longest)
{
	return fail(
		VERB_NAME, EXIT_USAGE,
		"--size %s: %s frames%s on %s have %u to %u bytes, its MTU being %u; give a size "
		"in that range or raise the MTU",
		s->args->size, s->spec.v6 ? "IPv6" : "IPv4", s->spec.vlan ? " with a tag" : "",
		s->port.name, shortest, longest, s->port.mtu);
}

static int parse_sizes(struct source *s)
{
	const char *text = s->args->size;
	uint32_t shortest = packet_shortest(s->spec.v6, s->spec.vlan != 0), first, last;
	uint32_t longest = s->port.mtu + GEN_ETH + (s->spec.vlan ? GEN_TAG : 0);
	char *end;

	if (longest < shortest)
		return fail(VERB_NAME, EXIT_USAGE,
			    "%s: its MTU of %u holds no frame of %u bytes; raise the MTU",
			    s->port.name, s->port.mtu, shortest);
	if (!text) {
		first = shortest > SIZE ? shortest : longest < SIZE ? longest : SIZE;
		packet_sizes_range(&s->plan, first, first);
		return EXIT_DONE;
	}
	if (!strcmp(text, "imix")) {
		packet_sizes_imix(&s->plan, longest);
		return EXIT_DONE;
	}
	switch (parse_number(text, 0, UINT16_MAX * 2, &first, &end)) {
	case 0: break;
	case -ERANGE: return refuse_size(s, shortest, longest);
	default: goto bad;
	}
	last = first;
	if (*end == '-') {
		switch (parse_number(end + 1, 0, UINT16_MAX * 2, &last, NULL)) {
		case 0: break;
		case -ERANGE: return refuse_size(s, shortest, longest);
		default: goto bad;
		}
	} else if (*end) {
		goto bad;
	}
	if (first > last)
		goto bad;
	if (first < shortest || last > longest)
		return refuse_size(s, shortest, longest);
	packet_sizes_range(&s->plan, first, last);
	return EXIT_DONE;
bad:
	return fail(VERB_NAME, EXIT_USAGE,
		    "--size %s: not a size; give bytes of the frame as 64, 64-1514 or imix", text);
}

int source_parse(struct source *s, const struct args *a)
{
	struct xdpath_diag diag = {0};
	int code, err;

	memset(s, 0, sizeof(*s));
	s->args = a;
	code = parse_rate(s);
	if (!code)
		code = parse_addresses(s);
	if (!code)
		code = parse_ports(s);
	if (code)
		return code;
	err = xdpath_port_query(&s->port, a->dev[0], &diag);
	if (err)
		return fail_diag(VERB_NAME, &diag, err);
	code = parse_macs(s);
	if (code)
		return code;
	packet_plan(&s->plan, &s->spec);
	return parse_sizes(s);
}

static void describe_sizes(const struct gen_plan *p, char *buf, size_t len)
{
	if (p->size_span == 0)
		snprintf(buf, len, "imix up to %u", p->size_longest);
	else if (p->size_span == 1)
		snprintf(buf, len, "%u", p->size_first);
	else
		snprintf(buf, len, "%u-%u", p->size_first, p->size_longest);
}

void source_describe(const struct source *s, char *buf, size_t len)
{
	const struct packet_spec *p = &s->spec;
	int family = p->v6 ? AF_INET6 : AF_INET;
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN], sizes[40];
	const uint8_t *m = p->dst_mac;

	inet_ntop(family, p->src, src, sizeof(src));
	inet_ntop(family, p->dst, dst, sizeof(dst));
	describe_sizes(&s->plan, sizes, sizeof(sizes));
	snprintf(buf, len,
		 "UDP %s port %u -> %s port %u, %u flow%s, %s bytes a frame, to "
		 "%02x:%02x:%02x:%02x:%02x:%02x (%s)",
		 src, p->sport, dst, p->dport, p->flows, p->flows == 1 ? "" : "s", sizes, m[0],
		 m[1], m[2], m[3], m[4], m[5],
		 !strcmp(s->dst_mac_why, "neighbour") ? "the kernel's neighbour entry"
		 : !strcmp(s->dst_mac_why, "default") ? "default, no neighbour entry; see --dst-mac"
						      : "given");
}
