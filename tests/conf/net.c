// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * The network of a test: a namespace of its own with a veth pair, and the suite's XDP programs.
 * Called by the tests, in the test's process, which owns all of it: its end removes everything.
 * With NICs (nic.c) there is nothing to make, and programs are exchanged, not attached.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <libmnl/libmnl.h>
#include <xdpath/xdpath.h>

#include "net.h"
#include "conf.skel.h"

static struct conf_bpf *progs;

static void put_end(struct nlmsghdr *nlh, const char *name, uint32_t mtu)
{
	mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	mnl_attr_put_u32(nlh, IFLA_MTU, mtu);
	mnl_attr_put_u32(nlh, IFLA_NUM_RX_QUEUES, NET_QUEUES);
	mnl_attr_put_u32(nlh, IFLA_NUM_TX_QUEUES, NET_QUEUES);
}

/* Send one request, return what it is answered: 0 or -errno. */
int net_talk(const struct nlmsghdr *nlh)
{
	struct mnl_socket *nl = mnl_socket_open(NETLINK_ROUTE);
	char buf[8192];
	ssize_t n;
	int err = -EIO;

	if (!nl)
		return -errno;
	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) == 0 &&
	    mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) >= 0) {
		n = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		err = n > 0 && mnl_cb_run(buf, (size_t)n, nlh->nlmsg_seq, 0, NULL, NULL) >= 0
			      ? 0
			      : -errno;
	}
	mnl_socket_close(nl);
	return err;
}

static int make_veth(uint32_t mtu)
{
	char buf[1024] __attribute__((aligned(8)));
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nlattr *info, *data, *peer;

	memset(buf, 0, sizeof(buf));
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = RTM_NEWLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK;
	nlh->nlmsg_seq = 1;
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	put_end(nlh, NET_A, mtu);
	info = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(nlh, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(nlh, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(nlh, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	put_end(nlh, NET_B, mtu);
	mnl_attr_nest_end(nlh, peer);
	mnl_attr_nest_end(nlh, data);
	mnl_attr_nest_end(nlh, info);
	return net_talk(nlh);
}

int net_up(const char *dev, bool up)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	struct ifreq ifr = {0};

	strncpy(ifr.ifr_name, dev, IFNAMSIZ - 1);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, SIOCGIFFLAGS, &ifr) < 0)
		err = -errno;
	ifr.ifr_flags = (short)(up ? ifr.ifr_flags | IFF_UP : ifr.ifr_flags & ~IFF_UP);
	if (!err && ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		err = -errno;
	close(fd);
	return err;
}

int net_queues(uint32_t n)
{
	struct xdpath_port p;

	need(xdpath_port_query(&p, NET_B, NULL) == 0, "%s is gone", NET_B);
	return p.rx_queues >= n ? CONF_OK : conf_skip("%s has fewer than %u queues", NET_B, n);
}

int net_mtu(const char *dev, uint32_t mtu)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;
	struct ifreq ifr = {.ifr_mtu = (int)mtu};

	strncpy(ifr.ifr_name, dev, IFNAMSIZ - 1);
	err = fd < 0 || ioctl(fd, SIOCSIFMTU, &ifr) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return err;
}

/* Its frames would pollute the counts. A kernel without IPv6 has no such file. */
void net_ipv6_off(void)
{
	static const char *const path[] = {"/proc/sys/net/ipv6/conf/all/disable_ipv6",
					   "/proc/sys/net/ipv6/conf/default/disable_ipv6"};

	for (size_t i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		int fd = open(path[i], O_WRONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		if (write(fd, "1", 1) != 1)
			conf_note("%s: %s. ", path[i], strerror(errno));
		close(fd);
	}
}

int net_make(uint32_t mtu)
{
	int err;

	if (conf->nic)
		return nic_make(mtu);
	need(unshare(CLONE_NEWNET) == 0, "%s", strerror(errno));
	net_ipv6_off();
	err = make_veth(mtu);
	need(err == 0, "%s", strerror(-err));
	err = net_up(NET_A, true);
	need(err == 0, "%s", strerror(-err));
	err = net_up(NET_B, true);
	need(err == 0, "%s", strerror(-err));
	return CONF_OK;
}

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

int net_load(void)
{
	if (progs)
		return CONF_OK;
	libbpf_set_print(quiet);
	progs = conf_bpf__open_and_load();
	need(progs, "the suite's programs do not load: %s", strerror(errno));
	return CONF_OK;
}

int net_attach(const char *dev, enum net_prog which)
{
	const struct bpf_program *p;
	LIBBPF_OPTS(bpf_link_create_opts, o);
	int link;

	attempt(net_load());
	switch (which) {
	case NET_HALF: p = progs->progs.conf_half; break;
	case NET_META: p = progs->progs.conf_meta; break;
	case NET_BY_MAC: p = progs->progs.conf_by_mac; break;
	case NET_TAIL: p = progs->progs.conf_tail; break;
	default: p = progs->progs.conf_redirect; break;
	}
	progs->bss->half_count = progs->bss->meta_count = 0; /* NICs: the test before has counted */
	progs->bss->tail_error = 0;
	if (conf->nic)
		return nic_swap(dev, bpf_program__fd(p));
	o.flags = conf->mode == CONF_DRV ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
	/* the link is held until this process ends */
	link = bpf_link_create(bpf_program__fd(p), (int)if_nametoindex(dev), BPF_XDP, &o);
	need(link >= 0, "attach to %s: %s", dev, strerror(errno));
	return CONF_OK;
}

int net_socket(uint32_t slot, int fd)
{
	int err = bpf_map_update_elem(bpf_map__fd(progs->maps.conf_xsks), &slot, &fd, BPF_ANY);

	need(err == 0, "slot %u: %s", slot, strerror(errno));
	return CONF_OK;
}

void net_set_tail(int delta)
{
	progs->bss->tail_delta = delta;
}

int net_tail_error(void)
{
	return progs->bss->tail_error;
}
