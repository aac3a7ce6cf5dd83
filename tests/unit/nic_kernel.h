/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A kernel that answers for one of the NICs of nics.h, as its interface eth7, by rtnetlink, the
 * netdev family, sock_diag and ethtool. Whoever includes it asks here and not the real one:
 * libmnl's sockets, ioctl() and two calls of libbpf are replaced. Its answers are CONSTRUCTED, not
 * recorded.
 */
#ifndef XDPATH_TEST_NIC_KERNEL_H
#define XDPATH_TEST_NIC_KERNEL_H

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <libmnl/libmnl.h>

#include <linux/xdp_diag.h>

#include "netlink_parse.h"
#include "nics.h"

enum { NETDEV_ID = 27, PORT_ID = 4711, DEV_PAD = 2 };

/* ---- netlink ----------------------------------------------------------------------------------
 */

struct mnl_socket {
	int fd, peer, bus;
};

struct mnl_socket *mnl_socket_open2(int bus, int flags)
{
	struct mnl_socket *nl = calloc(1, sizeof(*nl));
	int fd[2];

	if (!nl || socketpair(AF_UNIX, SOCK_DGRAM | flags, 0, fd) < 0) {
		free(nl);
		return NULL;
	}
	*nl = (struct mnl_socket){.fd = fd[0], .peer = fd[1], .bus = bus};
	return nl;
}

int mnl_socket_close(struct mnl_socket *nl)
{
	close(nl->fd);
	close(nl->peer);
	free(nl);
	return 0;
}

int mnl_socket_setsockopt(const struct mnl_socket *nl, int type, void *buf, socklen_t len)
{
	(void)nl, (void)type, (void)buf, (void)len;
	return 0;
}

int mnl_socket_bind(struct mnl_socket *nl, unsigned int groups, pid_t pid)
{
	(void)nl, (void)groups, (void)pid;
	return 0;
}

int mnl_socket_get_fd(const struct mnl_socket *nl)
{
	return nl->fd;
}

unsigned int mnl_socket_get_portid(const struct mnl_socket *nl)
{
	(void)nl;
	return PORT_ID;
}

ssize_t mnl_socket_recvfrom(const struct mnl_socket *nl, void *buf, size_t size)
{
	return recv(nl->fd, buf, size, 0);
}

static struct nlmsghdr *begin(char *buf, const struct nlmsghdr *req, uint16_t type, size_t extra)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	nlh->nlmsg_type = type;
	nlh->nlmsg_seq = req->nlmsg_seq;
	nlh->nlmsg_pid = PORT_ID;
	memset(mnl_nlmsg_put_extra_header(nlh, extra), 0, extra);
	return nlh;
}

static void reply(const struct mnl_socket *nl, const struct nlmsghdr *nlh)
{
	if (send(nl->peer, nlh, nlh->nlmsg_len, 0) != (ssize_t)nlh->nlmsg_len)
		abort();
}

/* An acknowledgement, or a refusal. */
static void end(const struct mnl_socket *nl, const struct nlmsghdr *req, int err)
{
	char buf[256];
	struct nlmsghdr *nlh = begin(buf, req, NLMSG_ERROR, sizeof(struct nlmsgerr));
	struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);

	nlh->nlmsg_flags = NLM_F_CAPPED;
	e->error = err;
	e->msg = *req;
	reply(nl, nlh);
}

static void end_dump(const struct mnl_socket *nl, const struct nlmsghdr *req)
{
	char buf[64];

	reply(nl, begin(buf, req, NLMSG_DONE, sizeof(int)));
}

static void put_u64(struct nlmsghdr *nlh, uint16_t type, uint64_t v)
{
	mnl_attr_put(nlh, DEV_PAD, 0, NULL); /* as the kernel aligns them */
	mnl_attr_put_u64(nlh, type, v);
}

static void answer_link(const struct mnl_socket *nl, const struct nlmsghdr *req)
{
	static const uint8_t mac[6] = {0x00, 0x1b, 0x21, 0, 0, 7};
	const struct nlattr *name = mnl_nlmsg_get_payload_offset(req, sizeof(struct ifinfomsg));
	char buf[1024];
	struct nlmsghdr *nlh;
	struct ifinfomsg *ifi;

	if (mnl_attr_get_type(name) != IFLA_IFNAME || strcmp(mnl_attr_get_str(name), NIC_NAME)) {
		end(nl, req, -ENODEV);
		return;
	}
	nlh = begin(buf, req, RTM_NEWLINK, sizeof(*ifi));
	ifi = mnl_nlmsg_get_payload(nlh);
	ifi->ifi_index = NIC_IFINDEX;
	ifi->ifi_flags = machine.up ? IFF_UP | IFF_RUNNING : 0;
	mnl_attr_put_strz(nlh, IFLA_IFNAME, NIC_NAME);
	mnl_attr_put_u32(nlh, IFLA_MTU, 1500);
	mnl_attr_put_u32(nlh, IFLA_NUM_TX_QUEUES, machine.nic->most);
	mnl_attr_put_u32(nlh, IFLA_NUM_RX_QUEUES, machine.nic->most);
	mnl_attr_put(nlh, IFLA_ADDRESS, sizeof(mac), mac);
	reply(nl, nlh);
	end(nl, req, 0);
}

static void answer_family(const struct mnl_socket *nl, const struct nlmsghdr *req)
{
	char buf[256];
	struct nlmsghdr *nlh;

	if (machine.no_netdev) {
		end(nl, req, -ENOENT);
		return;
	}
	nlh = begin(buf, req, GENL_ID_CTRL, sizeof(struct genlmsghdr));
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, XDPATH_NETDEV_FAMILY);
	mnl_attr_put_u16(nlh, CTRL_ATTR_FAMILY_ID, NETDEV_ID);
	reply(nl, nlh);
	end(nl, req, 0);
}

static void answer_netdev(const struct mnl_socket *nl, const struct nlmsghdr *req)
{
	const struct nic *n = machine.nic;
	char buf[256];
	struct nlmsghdr *nlh = begin(buf, req, NETDEV_ID, sizeof(struct genlmsghdr));

	machine.asked++;
	mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_DEV_IFINDEX, NIC_IFINDEX);
	put_u64(nlh, XDPATH_NETDEV_A_DEV_XDP_FEATURES,
		n->xdp | (machine.native_id ? n->xdp_later : 0));
	put_u64(nlh, XDPATH_NETDEV_A_DEV_RX_METADATA, n->rxmd);
	put_u64(nlh, XDPATH_NETDEV_A_DEV_XSK_FEATURES, n->xskf);
	if (n->xdp & ZEROCOPY && !machine.no_segs)
		mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_DEV_ZC_MAX_SEGS, n->segs);
	reply(nl, nlh);
	end(nl, req, 0);
}

static uint32_t napi_of(uint32_t type, uint32_t id)
{
	return 8193 + id + (machine.nic->napis == NAPI_EACH ? type * machine.nic->queues : 0);
}

static uint32_t napi_count(void)
{
	return machine.nic->queues * (machine.nic->napis == NAPI_EACH ? 2 : 1);
}

static void answer_napis(const struct mnl_socket *nl, const struct nlmsghdr *req)
{
	char buf[256];

	if (machine.no_queue_get) { /* both came at the same time */
		end(nl, req, -EOPNOTSUPP);
		return;
	}
	for (uint32_t i = 0; machine.up && i < napi_count(); i++) {
		struct nlmsghdr *nlh = begin(buf, req, NETDEV_ID, sizeof(struct genlmsghdr));

		nlh->nlmsg_flags = NLM_F_MULTI;
		mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_NAPI_ID, 8193 + i);
		mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_NAPI_IFINDEX, NIC_IFINDEX);
		if (!machine.no_napi_set) {
			mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_NAPI_DEFER_HARD_IRQS, 0);
			mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT, 0);
		}
		reply(nl, nlh);
	}
	end_dump(nl, req);
}

static void answer_queues(const struct mnl_socket *nl, const struct nlmsghdr *req)
{
	char buf[256];

	if (machine.no_queue_get) {
		end(nl, req, -EOPNOTSUPP);
		return;
	}
	for (uint32_t i = 0; machine.up && i < 2 * machine.nic->queues; i++) {
		struct nlmsghdr *nlh = begin(buf, req, NETDEV_ID, sizeof(struct genlmsghdr));
		uint32_t id = i / 2, type = i % 2;

		nlh->nlmsg_flags = NLM_F_MULTI;
		mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_QUEUE_IFINDEX, NIC_IFINDEX);
		mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_QUEUE_TYPE, type);
		mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_QUEUE_ID, id);
		if (type == 0 || machine.nic->napis != NAPI_RX)
			mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_QUEUE_NAPI_ID, napi_of(type, id));
		if (id < machine.taken)
			mnl_attr_put(nlh, XDPATH_NETDEV_A_QUEUE_XSK, 0, NULL);
		reply(nl, nlh);
	}
	end_dump(nl, req);
}

ssize_t mnl_socket_sendto(const struct mnl_socket *nl, const void *buf, size_t len)
{
	const struct nlmsghdr *req = buf;
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(req);

	if (nl->bus == NETLINK_ROUTE && req->nlmsg_type == RTM_GETLINK)
		answer_link(nl, req);
	else if (nl->bus == NETLINK_GENERIC && req->nlmsg_type == GENL_ID_CTRL)
		answer_family(nl, req);
	else if (nl->bus == NETLINK_GENERIC && genl->cmd == XDPATH_NETDEV_CMD_DEV_GET)
		answer_netdev(nl, req);
	else if (nl->bus == NETLINK_GENERIC && genl->cmd == XDPATH_NETDEV_CMD_QUEUE_GET)
		answer_queues(nl, req);
	else if (nl->bus == NETLINK_GENERIC && genl->cmd == XDPATH_NETDEV_CMD_NAPI_GET)
		answer_napis(nl, req);
	else if (nl->bus == NETLINK_SOCK_DIAG && !machine.no_sock_diag)
		end_dump(nl, req); /* sockets of other namespaces are not listed */
	else
		end(nl, req, nl->bus == NETLINK_SOCK_DIAG ? -ENOENT : -EOPNOTSUPP);
	return (ssize_t)len;
}

/* ---- ethtool and programs ---------------------------------------------------------------------
 */

static int answer_ethtool(void *data)
{
	const struct nic *n = machine.nic;
	struct ethtool_drvinfo *d = data;
	struct ethtool_ringparam *r = data;
	struct ethtool_channels *c = data;
	struct ethtool_value *v = data;
	struct ethtool_coalesce *w = data;
	uint32_t cmd;

	memcpy(&cmd, data, sizeof(cmd));
	switch (cmd) {
	case ETHTOOL_GDRVINFO:
		snprintf(d->driver, sizeof(d->driver), "%s", n->driver);
		snprintf(d->version, sizeof(d->version), "6.12.0");
		snprintf(d->bus_info, sizeof(d->bus_info), "%s", n->bus);
		return 0;
	case ETHTOOL_GRINGPARAM:
		r->rx_pending = r->tx_pending = n->ring;
		r->rx_max_pending = r->tx_max_pending = n->rings_max;
		return 0;
	case ETHTOOL_GFLAGS: v->data = ETH_FLAG_RXVLAN | (n->lro ? ETH_FLAG_LRO : 0); return 0;
	case ETHTOOL_GCHANNELS:
		if (!n->channels || machine.no_channels)
			break;
		c->max_combined = n->most;
		c->combined_count = n->queues;
		return 0;
	case ETHTOOL_GCOALESCE:
		if (!n->rx_usecs)
			break;
		w->rx_coalesce_usecs = w->tx_coalesce_usecs = n->rx_usecs;
		return 0;
	default: break;
	}
	errno = EOPNOTSUPP;
	return -1;
}

int ioctl(int fd, unsigned long request, ...)
{
	struct ifreq *ifr;
	va_list ap;

	(void)fd;
	va_start(ap, request);
	ifr = va_arg(ap, struct ifreq *);
	va_end(ap);
	if (request == SIOCETHTOOL && strcmp(ifr->ifr_name, NIC_NAME) == 0)
		return answer_ethtool(ifr->ifr_data);
	errno = ENOTTY;
	return -1;
}

int bpf_xdp_query(int ifindex, int flags, struct bpf_xdp_query_opts *opts)
{
	(void)flags;
	if (ifindex != NIC_IFINDEX)
		return -ENODEV;
	opts->drv_prog_id = machine.native_id;
	return 0;
}

/* As without privilege: the id is all there is to know. */
int bpf_prog_get_fd_by_id(__u32 id)
{
	(void)id;
	return -EPERM;
}

#endif
