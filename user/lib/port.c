// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * A port's facts, gathered from rtnetlink, the netdev family, ethtool and sysfs.
 *
 * Called by datapath.c and by every verb before it touches a device. Changes nothing, owns nothing:
 * the caller's struct is filled and that is all.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <libmnl/libmnl.h>

#include "ethtool.h"
#include "netlink_parse.h"

#ifndef ALTIFNAMSIZ
#define ALTIFNAMSIZ 128
#endif

const char *xdpath_attach_name(enum xdpath_attach a)
{
	switch (a) {
	case XDPATH_ATTACH_NONE: return "none";
	case XDPATH_ATTACH_NATIVE: return "native";
	case XDPATH_ATTACH_GENERIC: return "generic";
	case XDPATH_ATTACH_OFFLOAD: return "offload";
	}
	return "unknown";
}

int xdpath_no_device(const char *name, struct xdpath_diag *diag)
{
	struct if_nameindex *all = if_nameindex();
	struct xdpath_near near;
	int err;

	xdpath_near_start(&near, name);
	for (struct if_nameindex *i = all; i && i->if_index; i++)
		xdpath_near_offer(&near, i->if_name);
	err = xdpath_fail(diag, XDPATH_R_NO_DEVICE, ENODEV,
			  "%.60s: no such device here; %s%s%s`ip link` lists them", name,
			  near.best ? "did you mean " : "", near.best ? near.best : "",
			  near.best ? "? " : "");
	if_freenameindex(all);
	return err;
}

static int query_link(const char *name, struct xdpath_link_facts *l)
{
	char buf[512];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;
	size_t len = strlen(name);
	int err;

	if (!len || len >= ALTIFNAMSIZ)
		return -ENODEV;
	nlh->nlmsg_type = RTM_GETLINK;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_family = AF_UNSPEC;
	mnl_attr_put_strz(nlh, len < IFNAMSIZ ? IFLA_IFNAME : IFLA_ALT_IFNAME, name);
	err = xdpath_nl_talk(NETLINK_ROUTE, nlh, xdpath_nl_parse_link, l, NULL, 0);
	/* A name with "/" or a long one on an old kernel is -EINVAL: no such device either. */
	if (err == -EINVAL)
		return -ENODEV;
	return !err && !l->port->ifindex ? -ENODEV : err;
}

int xdpath_port_link(int ifindex, uint32_t *flags, uint32_t *carrier_downs)
{
	struct xdpath_port p = {0};
	struct xdpath_link_facts l = {.port = &p};
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;
	int err;

	nlh->nlmsg_type = RTM_GETLINK;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_family = AF_UNSPEC;
	ifi->ifi_index = ifindex;
	err = xdpath_nl_talk(NETLINK_ROUTE, nlh, xdpath_nl_parse_link, &l, NULL, 0);
	if (err)
		return err;
	*flags = p.flags;
	if (carrier_downs)
		*carrier_downs = l.carrier_downs;
	return 0;
}

static void query_netdev(struct xdpath_port *p)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;
	int family = xdpath_nl_family(XDPATH_NETDEV_FAMILY);

	if (family < 0)
		return;
	nlh->nlmsg_type = (uint16_t)family;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = XDPATH_NETDEV_CMD_DEV_GET;
	genl->version = 1;
	mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_DEV_IFINDEX, (uint32_t)p->ifindex);
	xdpath_nl_talk(NETLINK_GENERIC, nlh, xdpath_nl_parse_netdev, p, NULL, 0);
}

/* All of a kind that the netdev family lists for an interface. */
static int dump_netdev(uint8_t cmd, uint16_t attr, int ifindex,
		       int (*cb)(const struct nlmsghdr *, void *), void *facts)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;
	int family = xdpath_nl_family(XDPATH_NETDEV_FAMILY);

	if (family < 0)
		return family;
	nlh->nlmsg_type = (uint16_t)family;
	nlh->nlmsg_flags = NLM_F_DUMP;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = 1;
	mnl_attr_put_u32(nlh, attr, (uint32_t)ifindex);
	return xdpath_nl_talk(NETLINK_GENERIC, nlh, cb, facts, NULL, 0);
}

int xdpath_nl_queues(struct xdpath_queue_facts *f)
{
	return dump_netdev(XDPATH_NETDEV_CMD_QUEUE_GET, XDPATH_NETDEV_A_QUEUE_IFINDEX, f->ifindex,
			   xdpath_nl_parse_queue, f);
}

int xdpath_nl_napis(struct xdpath_napi_facts *f)
{
	return dump_netdev(XDPATH_NETDEV_CMD_NAPI_GET, XDPATH_NETDEV_A_NAPI_IFINDEX, f->ifindex,
			   xdpath_nl_parse_napi, f);
}

/* Queues in use: the driver's channels, else what the core lists, else the most there can be. */
static void settle_queues(struct xdpath_link_facts *l, uint32_t rx, uint32_t tx)
{
	struct xdpath_queue_facts f = {.ifindex = l->port->ifindex};

	if (!(rx && tx) && xdpath_nl_queues(&f) == 0) {
		rx = rx ? rx : f.rx;
		tx = tx ? tx : f.tx;
	}
	l->port->rx_queues = rx ? rx : l->rx_queues;
	l->port->tx_queues = tx ? tx : l->tx_queues;
}

static bool read_line(const char *path, char *out, int size)
{
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(out, size, f);

	if (f)
		fclose(f);
	if (ok)
		out[strcspn(out, "\n")] = '\0';
	return ok;
}

/*
 * By the PCI address where there is one: a thread that changed its network namespace still sees the
 * /sys/class/net of the old one, and there the name may be another device's.
 */
static int numa_node(const struct xdpath_port *p)
{
	char path[128], line[32];

	if (p->bus[0] && !strchr(p->bus, '/')) {
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", p->bus);
		if (read_line(path, line, sizeof(line)))
			return atoi(line);
	}
	snprintf(path, sizeof(path), "/sys/class/net/%s/ifindex", p->name);
	if (!read_line(path, line, sizeof(line)) || atoi(line) != p->ifindex)
		return -1;
	snprintf(path, sizeof(path), "/sys/class/net/%s/device/numa_node", p->name);
	return read_line(path, line, sizeof(line)) ? atoi(line) : -1;
}

int xdpath_port_query(struct xdpath_port *p, const char *name, struct xdpath_diag *diag)
{
	struct xdpath_link_facts l = {.port = p};
	uint32_t rx, tx;
	struct stat ns;
	int err;

	*p = (struct xdpath_port){.numa_node = -1};
	if (diag)
		*diag = (struct xdpath_diag){0};
	err = query_link(name, &l);
	if (err == -ENODEV)
		return xdpath_no_device(name, diag);
	if (err)
		return xdpath_fail(diag, XDPATH_R_REFUSED, -err,
				   "%s: the kernel does not tell about it by rtnetlink: %s; "
				   "see whether `ip link show %s` works",
				   name, strerror(-err), name);
	if (stat("/proc/thread-self/ns/net", &ns) < 0) {
		err = errno;
		return xdpath_fail(diag, XDPATH_R_REFUSED, err,
				   "%s: network namespace unknown: /proc/thread-self/ns/net: %s; "
				   "mount /proc",
				   name, strerror(err));
	}
	p->netns = ns.st_ino;
	p->carrier_downs = l.carrier_downs;
	p->carrier_seen = !l.carrier_ups_known || l.carrier_ups || (p->flags & IFF_RUNNING);
	query_netdev(p);
	xdpath_ethtool_query(p, &rx, &tx);
	settle_queues(&l, rx, tx);
	p->numa_node = numa_node(p);
	return 0;
}
