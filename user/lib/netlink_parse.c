// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * What netlink answers mean: links, netdev features, queues, AF_XDP sockets, families.
 *
 * Called back by xdpath_nl_talk() for port.c and holder.c, and by the unit tests. Drivers and
 * kernels differ in what they send: every attribute is optional, checked for its length, and an
 * unknown one is passed over.
 */
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>

#include <linux/xdp_diag.h>

#include "netlink_parse.h"

bool xdpath_nl_u32(const struct nlattr *a, uint32_t *out)
{
	if (mnl_attr_get_payload_len(a) < sizeof(*out))
		return false;
	memcpy(out, mnl_attr_get_payload(a), sizeof(*out));
	return true;
}

bool xdpath_nl_uint(const struct nlattr *a, uint64_t *out)
{
	const void *v = mnl_attr_get_payload(a);
	uint32_t u32;
	uint16_t u16;

	switch (mnl_attr_get_payload_len(a)) {
	case 1: *out = *(const uint8_t *)v; return true;
	case 2:
		memcpy(&u16, v, sizeof(u16));
		*out = u16;
		return true;
	case 4:
		memcpy(&u32, v, sizeof(u32));
		*out = u32;
		return true;
	case 8: memcpy(out, v, sizeof(*out)); return true;
	default: return false;
	}
}

void xdpath_nl_str(const struct nlattr *a, char *out, size_t size)
{
	size_t len = strnlen(mnl_attr_get_payload(a), mnl_attr_get_payload_len(a));

	if (len >= size)
		len = size - 1;
	memcpy(out, mnl_attr_get_payload(a), len);
	out[len] = '\0';
}

static void parse_op(const struct nlattr *op, struct xdpath_nl_family *f)
{
	struct nlattr *a;
	uint64_t id;

	mnl_attr_for_each_nested (a, op) {
		if (mnl_attr_get_type(a) == CTRL_ATTR_OP_ID && xdpath_nl_uint(a, &id) && id < 64)
			f->ops |= 1ULL << id;
	}
}

int xdpath_nl_parse_family(const struct nlmsghdr *nlh, void *family)
{
	struct xdpath_nl_family *f = family;
	struct nlattr *a, *op;
	uint64_t id;

	mnl_attr_for_each (a, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(a) == CTRL_ATTR_FAMILY_ID && xdpath_nl_uint(a, &id))
			f->id = (uint16_t)id;
		if (mnl_attr_get_type(a) != CTRL_ATTR_OPS)
			continue;
		mnl_attr_for_each_nested (op, a) {
			parse_op(op, f);
		}
	}
	return 0;
}

/* IFLA_XDP_ATTACHED speaks of one mode or of several at once; then the best one is named. */
static void parse_xdp(const struct nlattr *nest, struct xdpath_port *p)
{
	uint32_t id = 0, native = 0, generic = 0, offload = 0;
	uint64_t attached = XDP_ATTACHED_NONE;
	struct nlattr *a;

	mnl_attr_for_each_nested (a, nest) {
		switch (mnl_attr_get_type(a)) {
		case IFLA_XDP_ATTACHED: xdpath_nl_uint(a, &attached); break;
		case IFLA_XDP_PROG_ID: xdpath_nl_u32(a, &id); break;
		case IFLA_XDP_DRV_PROG_ID: xdpath_nl_u32(a, &native); break;
		case IFLA_XDP_SKB_PROG_ID: xdpath_nl_u32(a, &generic); break;
		case IFLA_XDP_HW_PROG_ID: xdpath_nl_u32(a, &offload); break;
		default: break;
		}
	}
	switch (attached) {
	case XDP_ATTACHED_DRV: p->attached = XDPATH_ATTACH_NATIVE; break;
	case XDP_ATTACHED_SKB: p->attached = XDPATH_ATTACH_GENERIC; break;
	case XDP_ATTACHED_HW: p->attached = XDPATH_ATTACH_OFFLOAD; break;
	case XDP_ATTACHED_MULTI:
		p->attached = native	? XDPATH_ATTACH_NATIVE
			      : generic ? XDPATH_ATTACH_GENERIC
					: XDPATH_ATTACH_OFFLOAD;
		break;
	default: p->attached = XDPATH_ATTACH_NONE; break;
	}
	if (!id)
		id = native ? native : generic ? generic : offload;
	p->prog_id = p->attached == XDPATH_ATTACH_NONE ? 0 : id;
}

static void parse_linkinfo(const struct nlattr *nest, struct xdpath_port *p)
{
	struct nlattr *a;

	mnl_attr_for_each_nested (a, nest)
		if (mnl_attr_get_type(a) == IFLA_INFO_KIND)
			xdpath_nl_str(a, p->kind, sizeof(p->kind));
}

int xdpath_nl_parse_link(const struct nlmsghdr *nlh, void *link_facts)
{
	struct xdpath_link_facts *l = link_facts;
	struct xdpath_port *p = l->port;
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct nlattr *a;

	if (nlh->nlmsg_type != RTM_NEWLINK || mnl_nlmsg_get_payload_len(nlh) < sizeof(*ifi))
		return 0;
	p->ifindex = ifi->ifi_index;
	p->flags = ifi->ifi_flags;
	mnl_attr_for_each (a, nlh, sizeof(*ifi)) {
		switch (mnl_attr_get_type(a)) {
		case IFLA_IFNAME: xdpath_nl_str(a, p->name, sizeof(p->name)); break;
		case IFLA_MTU: xdpath_nl_u32(a, &p->mtu); break;
		case IFLA_LINK: xdpath_nl_u32(a, &p->peer_ifindex); break;
		case IFLA_NUM_RX_QUEUES: xdpath_nl_u32(a, &l->rx_queues); break;
		case IFLA_NUM_TX_QUEUES: xdpath_nl_u32(a, &l->tx_queues); break;
		case IFLA_CARRIER_UP_COUNT:
			l->carrier_ups_known = xdpath_nl_u32(a, &l->carrier_ups);
			break;
		case IFLA_CARRIER_DOWN_COUNT: xdpath_nl_u32(a, &l->carrier_downs); break;
		case IFLA_XDP: parse_xdp(a, p); break;
		case IFLA_LINKINFO: parse_linkinfo(a, p); break;
		case IFLA_ADDRESS:
			if (mnl_attr_get_payload_len(a) == sizeof(p->mac))
				memcpy(p->mac, mnl_attr_get_payload(a), sizeof(p->mac));
			break;
		default: break;
		}
	}
	return 0;
}

int xdpath_nl_parse_netdev(const struct nlmsghdr *nlh, void *port)
{
	struct xdpath_port *p = port;
	struct xdpath_port seen = {.zc_max_segs = 1};
	uint32_t ifindex = 0;
	struct nlattr *a;

	mnl_attr_for_each (a, nlh, sizeof(struct genlmsghdr)) {
		switch (mnl_attr_get_type(a)) {
		case XDPATH_NETDEV_A_DEV_IFINDEX: xdpath_nl_u32(a, &ifindex); break;
		case XDPATH_NETDEV_A_DEV_XDP_FEATURES:
			seen.features_known |= xdpath_nl_uint(a, &seen.xdp_features);
			break;
		case XDPATH_NETDEV_A_DEV_ZC_MAX_SEGS: xdpath_nl_u32(a, &seen.zc_max_segs); break;
		case XDPATH_NETDEV_A_DEV_RX_METADATA: xdpath_nl_uint(a, &seen.rx_metadata); break;
		case XDPATH_NETDEV_A_DEV_XSK_FEATURES: xdpath_nl_uint(a, &seen.xsk_features); break;
		default: break;
		}
	}
	if (ifindex != (uint32_t)p->ifindex || !seen.features_known)
		return 0;
	p->features_known = true;
	p->xdp_features = seen.xdp_features;
	p->rx_metadata = seen.rx_metadata;
	p->xsk_features = seen.xsk_features;
	/* The kernel leaves the attribute out where zero-copy is not to be had. */
	p->zc_max_segs = p->xdp_features & XDPATH_XDP_ACT_XSK_ZEROCOPY ? seen.zc_max_segs : 0;
	return 0;
}

int xdpath_nl_parse_queue(const struct nlmsghdr *nlh, void *queue_facts)
{
	struct xdpath_queue_facts *f = queue_facts;
	uint32_t id = UINT32_MAX, ifindex = 0, type = UINT32_MAX, napi = 0;
	bool xsk = false;
	struct nlattr *a;

	mnl_attr_for_each (a, nlh, sizeof(struct genlmsghdr)) {
		switch (mnl_attr_get_type(a)) {
		case XDPATH_NETDEV_A_QUEUE_ID: xdpath_nl_u32(a, &id); break;
		case XDPATH_NETDEV_A_QUEUE_IFINDEX: xdpath_nl_u32(a, &ifindex); break;
		case XDPATH_NETDEV_A_QUEUE_TYPE: xdpath_nl_u32(a, &type); break;
		case XDPATH_NETDEV_A_QUEUE_NAPI_ID: xdpath_nl_u32(a, &napi); break;
		case XDPATH_NETDEV_A_QUEUE_XSK: xsk = true; break;
		default: break;
		}
	}
	if (ifindex != (uint32_t)f->ifindex || id == UINT32_MAX || type > 1)
		return 0;
	if (type == 0)
		f->rx++;
	else
		f->tx++;
	if (id >= XDPATH_QUEUES)
		return 0;
	f->napi[type][id] = napi;
	if (xsk)
		f->taken[id / 64] |= 1ULL << (id % 64);
	return 0;
}

int xdpath_nl_parse_napi(const struct nlmsghdr *nlh, void *napi_facts)
{
	struct xdpath_napi_facts *f = napi_facts;
	bool defer = false, flush = false;
	uint32_t ifindex = 0;
	uint64_t value;
	struct nlattr *a;

	mnl_attr_for_each (a, nlh, sizeof(struct genlmsghdr)) {
		switch (mnl_attr_get_type(a)) {
		case XDPATH_NETDEV_A_NAPI_IFINDEX: xdpath_nl_u32(a, &ifindex); break;
		case XDPATH_NETDEV_A_NAPI_DEFER_HARD_IRQS: defer = xdpath_nl_uint(a, &value); break;
		case XDPATH_NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT:
			flush = xdpath_nl_uint(a, &value);
			break;
		default: break;
		}
	}
	if (ifindex != (uint32_t)f->ifindex)
		return 0;
	f->count++;
	f->settable += defer && flush;
	return 0;
}

int xdpath_nl_parse_xsk(const struct nlmsghdr *nlh, void *xsk_facts)
{
	struct xdpath_xsk_facts *f = xsk_facts;
	const struct xdp_diag_msg *msg = mnl_nlmsg_get_payload(nlh);
	struct xdp_diag_info info;
	struct nlattr *a;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*msg) || msg->xdiag_family != AF_XDP)
		return 0;
	mnl_attr_for_each (a, nlh, sizeof(*msg)) {
		if (mnl_attr_get_type(a) != XDP_DIAG_INFO ||
		    mnl_attr_get_payload_len(a) < sizeof(info))
			continue;
		memcpy(&info, mnl_attr_get_payload(a), sizeof(info));
		if (info.ifindex == (uint32_t)f->ifindex && info.queue_id == f->queue) {
			f->found = true;
			f->inode = msg->xdiag_ino;
		}
	}
	return 0;
}
