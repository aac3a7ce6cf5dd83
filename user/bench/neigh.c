/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Route and neighbour lookups; see neigh.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netdb.h>
#include <string.h>
#include <time.h>

#include <libmnl/libmnl.h>

#include "internal.h"
#include "neigh.h"

#define USABLE	(NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT)
#define WAIT_MS 500U

static uint16_t size_of(const struct neigh_addr *a)
{
	return a->family == AF_INET6 ? 16 : 4;
}

static const char *text_of(const struct neigh_addr *a, char out[INET6_ADDRSTRLEN])
{
	return inet_ntop(a->family, &a->v6, out, INET6_ADDRSTRLEN);
}

int neigh_parse(const char *text, struct neigh_addr *out, struct xdpath_diag *d)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM},
			*ai = NULL;

	memset(out, 0, sizeof(*out));
	if (getaddrinfo(text, NULL, &hints, &ai) || !ai)
		return xdpath_fail(
			d, XDPATH_R_OPTIONS, EINVAL,
			"\"%.60s\": not an address; give the peer's IPv4 or IPv6 address, "
			"as 10.0.0.2 or fe80::2",
			text);
	out->family = ai->ai_family;
	if (ai->ai_family == AF_INET6)
		out->v6 = ((struct sockaddr_in6 *)ai->ai_addr)->sin6_addr;
	else
		out->v4 = ((struct sockaddr_in *)ai->ai_addr)->sin_addr;
	freeaddrinfo(ai);
	return 0;
}

struct route {
	struct neigh_addr *hop;
	uint32_t oif;
	uint8_t type;
};

static int take_route(const struct nlmsghdr *nlh, void *ctx)
{
	const struct rtmsg *rt = mnl_nlmsg_get_payload(nlh);
	struct route *r = ctx;
	const struct nlattr *a;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*rt))
		return 0;
	r->type = rt->rtm_type;
	mnl_attr_for_each (a, nlh, sizeof(*rt)) {
		if (mnl_attr_get_type(a) == RTA_OIF && mnl_attr_get_payload_len(a) == 4)
			r->oif = mnl_attr_get_u32(a);
		else if (mnl_attr_get_type(a) == RTA_GATEWAY &&
			 mnl_attr_get_payload_len(a) == size_of(r->hop))
			memcpy(&r->hop->v6, mnl_attr_get_payload(a), size_of(r->hop));
	}
	return 0;
}

static int ask_route(uint32_t oif, const struct neigh_addr *peer, struct route *r)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct rtmsg *rt;

	nlh->nlmsg_type = RTM_GETROUTE;
	rt = mnl_nlmsg_put_extra_header(nlh, sizeof(*rt));
	rt->rtm_family = (uint8_t)peer->family;
	rt->rtm_dst_len = (uint8_t)(size_of(peer) * 8);
	mnl_attr_put(nlh, RTA_DST, size_of(peer), &peer->v6);
	if (oif)
		mnl_attr_put_u32(nlh, RTA_OIF, oif);
	return xdpath_nl_talk(NETLINK_ROUTE, nlh, take_route, r, NULL, 0);
}

int neigh_route(const char *dev, const struct neigh_addr *peer, struct neigh_addr *hop,
		struct xdpath_diag *d)
{
	uint32_t ifindex = if_nametoindex(dev);
	struct route r = {.hop = hop};
	char name[IF_NAMESIZE] = "?", peer_text[INET6_ADDRSTRLEN];
	bool scoped = peer->family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&peer->v6);
	int err;

	text_of(peer, peer_text);
	if (!ifindex)
		return xdpath_no_device(dev, d);
	*hop = *peer;
	err = ask_route(scoped ? ifindex : 0, peer, &r); /* as any program would be routed */
	if (!err && r.type == RTN_LOCAL)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "%s: an address of this host itself; give the peer's",
				   peer_text);
	if (!err && r.oif != ifindex)
		return xdpath_fail(
			d, XDPATH_R_OPTIONS, EINVAL,
			"%s: is reached through %s, not through %s; give that device, or "
			"an address behind %s",
			peer_text, if_indextoname(r.oif, name) ? name : "another device", dev, dev);
	if (err || r.type != RTN_UNICAST)
		return xdpath_fail(d, XDPATH_R_REFUSED, ENETUNREACH,
				   "%s: no route to it through %s (%s); give %s an address of the "
				   "peer's network (`ip address add ... dev %s`)",
				   peer_text, dev, err ? strerror(-err) : "not a unicast address",
				   dev, dev);
	return 0;
}

struct entry {
	bool found;
	uint8_t mac[6];
};

static int take_entry(const struct nlmsghdr *nlh, void *ctx)
{
	const struct ndmsg *nd = mnl_nlmsg_get_payload(nlh);
	struct entry *e = ctx;
	const struct nlattr *a;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*nd) || !(nd->ndm_state & USABLE))
		return 0;
	mnl_attr_for_each (a, nlh, sizeof(*nd)) {
		if (mnl_attr_get_type(a) != NDA_LLADDR || mnl_attr_get_payload_len(a) != 6)
			continue;
		memcpy(e->mac, mnl_attr_get_payload(a), 6);
		e->found = true;
	}
	return 0;
}

static bool ask_entry(uint32_t ifindex, const struct neigh_addr *hop, uint8_t mac[6])
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct entry e = {0};
	struct ndmsg *nd;

	nlh->nlmsg_type = RTM_GETNEIGH;
	nd = mnl_nlmsg_put_extra_header(nlh, sizeof(*nd));
	nd->ndm_family = (uint8_t)hop->family;
	nd->ndm_ifindex = (int)ifindex;
	mnl_attr_put(nlh, NDA_DST, size_of(hop), &hop->v6);
	if (xdpath_nl_talk(NETLINK_ROUTE, nlh, take_entry, &e, NULL, 0) || !e.found)
		return false;
	memcpy(mac, e.mac, 6);
	return true;
}

int neigh_mac(const char *dev, const struct neigh_addr *hop, uint8_t mac[6], struct xdpath_diag *d)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	uint64_t until = xdpath_now_ms() + WAIT_MS;
	uint32_t ifindex = if_nametoindex(dev);
	char text[INET6_ADDRSTRLEN];

	while (!ask_entry(ifindex, hop, mac)) {
		if (xdpath_now_ms() >= until)
			return xdpath_fail(d, XDPATH_R_REFUSED, EHOSTUNREACH,
					   "%s: no MAC address of %s is known; see `ip neighbour "
					   "show dev %s`, is it an Ethernet device?",
					   dev, text_of(hop, text), dev);
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int take_counters(const struct nlmsghdr *nlh, void *ctx)
{
	struct if_counters *out = ctx;
	struct rtnl_link_stats64 st;
	const struct nlattr *a;

	mnl_attr_for_each (a, nlh, sizeof(struct ifinfomsg)) {
		if (mnl_attr_get_type(a) != IFLA_STATS64)
			continue;
		memset(&st, 0, sizeof(st));
		memcpy(&st, mnl_attr_get_payload(a),
		       mnl_attr_get_payload_len(a) < sizeof(st) ? mnl_attr_get_payload_len(a)
								: sizeof(st));
		out->packets_in = st.rx_packets;
		out->bytes_in = st.rx_bytes;
		out->packets_out = st.tx_packets;
		out->bytes_out = st.tx_bytes;
	}
	return 0;
}

int neigh_if_counters(uint32_t ifindex, struct if_counters *out)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;

	memset(out, 0, sizeof(*out));
	nlh->nlmsg_type = RTM_GETLINK;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_family = AF_UNSPEC;
	ifi->ifi_index = (int)ifindex;
	return xdpath_nl_talk(NETLINK_ROUTE, nlh, take_counters, out, NULL, 0);
}
