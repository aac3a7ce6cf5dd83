// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * Two NICs that are wired to each other, in place of a veth pair. The runner takes them into a
 * network namespace of its own, where nobody else sends, and holds the library's program on both
 * for as long as it tests in one mode: drivers reset for seconds when a program comes or goes, not
 * when one is exchanged, and some send in zero-copy only while there is one. Sockets are each
 * test's own.
 *
 * The namespace dies with the runner; the kernel then puts the NICs back into the first one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <libmnl/libmnl.h>

#include "end.h"
#include "net.h"
#include "prog_find.h" /* the library's inside */

#define LINK_MS 15000U

static struct nic {
	struct xdpath_prog *prog; /* the library's */
	int prog_fd, link_fd;
	int promisc;		/* a packet socket: gone with the runner */
	struct nic_rings rings; /* as they were */
	int mtu;
	bool up;
} nic[2];
static int home = -1, away = -1; /* network namespaces */

static int control(const char *dev, unsigned long call, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	strncpy(ifr->ifr_name, dev, IFNAMSIZ - 1);
	if (fd < 0 || ioctl(fd, call, ifr) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

static short flags_of(const char *dev)
{
	struct ifreq ifr = {0};

	return control(dev, SIOCGIFFLAGS, &ifr) ? 0 : ifr.ifr_flags;
}

/* ---- rings ---- */

int nic_rings(const char *dev, struct nic_rings *r)
{
	struct ethtool_ringparam p = {.cmd = ETHTOOL_GRINGPARAM};
	struct ifreq ifr = {.ifr_data = (void *)&p};
	int err = control(dev, SIOCETHTOOL, &ifr);

	*r = (struct nic_rings){p.rx_pending, p.tx_pending, p.rx_max_pending, p.tx_max_pending};
	return err;
}

static int set_rings(const char *dev, uint32_t rx, uint32_t tx)
{
	struct ethtool_ringparam p = {.cmd = ETHTOOL_GRINGPARAM};
	struct ifreq ifr = {.ifr_data = (void *)&p};
	int err = control(dev, SIOCETHTOOL, &ifr);

	if (err || (p.rx_pending == rx && p.tx_pending == tx))
		return err;
	p.cmd = ETHTOOL_SRINGPARAM;
	p.rx_pending = rx;
	p.tx_pending = tx;
	return control(dev, SIOCETHTOOL, &ifr);
}

int nic_set_rings(uint32_t rx, uint32_t tx)
{
	int err = set_rings(NET_A, rx, tx);

	return err ? err : set_rings(NET_B, rx, tx);
}

/* ---- there and back ---- */

/* From the namespace this thread is in to another one. */
static int move(const char *dev, int ns)
{
	char buf[256] __attribute__((aligned(8))) = {0};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;

	nlh->nlmsg_type = RTM_NEWLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	nlh->nlmsg_seq = 1;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_index = (int)if_nametoindex(dev);
	mnl_attr_put_u32(nlh, IFLA_NET_NS_FD, (uint32_t)ns);
	return ifi->ifi_index ? net_talk(nlh) : -ENODEV;
}

/* All that comes shall be seen, whatever address it has. */
static int promiscuous(const char *dev)
{
	struct packet_mreq m = {.mr_ifindex = (int)if_nametoindex(dev),
				.mr_type = PACKET_MR_PROMISC};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m)) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

static int fetch(int i)
{
	const char *dev = conf->dev[i];
	struct ifreq ifr = {0};
	int err;

	need(control(dev, SIOCGIFFLAGS, &ifr) == 0, "%s: no such interface", dev);
	nic[i].up = ifr.ifr_flags & IFF_UP;
	need(control(dev, SIOCGIFADDR, &ifr) != 0,
	     "%s has an address, so it is in use; take it off to test with it", dev);
	need(control(dev, SIOCGIFMTU, &ifr) == 0, "%s: no MTU", dev);
	nic[i].mtu = ifr.ifr_mtu;
	err = move(dev, away);
	need(err == 0, "%s can not be moved: %s", dev, strerror(-err));
	need(setns(away, CLONE_NEWNET) == 0, "%s", strerror(errno));
	nic[i].promisc = promiscuous(dev);
	need(nic[i].promisc >= 0, "%s: promiscuous: %s", dev, strerror(-nic[i].promisc));
	nic_rings(dev, &nic[i].rings);
	err = net_up(dev, true);
	need(err == 0, "%s: up: %s", dev, strerror(-err));
	return CONF_OK;
}

int nic_take(void)
{
	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	need(home >= 0 && unshare(CLONE_NEWNET) == 0, "%s", strerror(errno));
	away = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	need(away >= 0, "%s", strerror(errno));
	net_ipv6_off();
	for (int i = 0; i < 2; i++) {
		need(setns(home, CLONE_NEWNET) == 0, "%s", strerror(errno));
		attempt(fetch(i));
	}
	return CONF_OK;
}

void nic_return(void)
{
	if (away < 0 || setns(away, CLONE_NEWNET) < 0)
		return;
	for (int i = 0; i < 2; i++) {
		if (nic[i].promisc > 0)
			close(nic[i].promisc);
		if (if_nametoindex(conf->dev[i]) == 0)
			continue;
		net_mtu(conf->dev[i], (uint32_t)nic[i].mtu);
		if (move(conf->dev[i], home) == 0 && setns(home, CLONE_NEWNET) == 0 && nic[i].up)
			net_up(conf->dev[i], true);
		setns(away, CLONE_NEWNET);
	}
	setns(home, CLONE_NEWNET);
}

/* ---- the program ---- */

static int hold(int i)
{
	struct xdpath_prog_opts po = XDPATH_OPTS_INIT(struct xdpath_prog_opts);
	struct xdpath_diag d = {0};
	struct xdpath_port p;
	uint32_t link_id;
	int err = xdpath_port_query(&p, conf->dev[i], &d);

	need(err == 0, "%s", d.text);
	po.attach = end_attach();
	po.steer = XDPATH_STEER_L2;
	po.diag = &d;
	err = xdpath_prog_open(&nic[i].prog, &p, &po);
	if (err)
		return conf_skip("%s", d.text);
	nic[i].prog_fd = bpf_prog_get_fd_by_id(xdpath_prog_id(nic[i].prog));
	nic[i].link_fd = xdpath_link_find(p.ifindex, xdpath_prog_id(nic[i].prog), &link_id);
	need(nic[i].prog_fd >= 0 && nic[i].link_fd >= 0, "%s: the program's link is not found",
	     conf->dev[i]);
	return CONF_OK;
}

int nic_hold(void)
{
	attempt(net_load());
	for (int i = 0; i < 2; i++)
		attempt(hold(i));
	return CONF_OK;
}

void nic_release(void)
{
	for (int i = 0; i < 2; i++) {
		if (!nic[i].prog)
			continue;
		close(nic[i].prog_fd);
		close(nic[i].link_fd);
		xdpath_prog_close(nic[i].prog);
		nic[i].prog = NULL;
	}
}

int nic_swap(const char *dev, int prog_fd)
{
	int link = nic[strcmp(dev, NET_B) == 0].link_fd;

	need(bpf_link_update(link, prog_fd, NULL) == 0, "%s: %s", dev, strerror(errno));
	return CONF_OK;
}

void nic_after(void)
{
	for (int i = 0; i < 2; i++) {
		bpf_link_update(nic[i].link_fd, nic[i].prog_fd, NULL);
		set_rings(conf->dev[i], nic[i].rings.rx, nic[i].rings.tx);
	}
}

static int has_link(const char *dev)
{
	uint64_t until = conf_now_ms() + LINK_MS;

	while (!(flags_of(dev) & IFF_RUNNING)) {
		need(conf_now_ms() < until, "%s has no link; wire the two to each other", dev);
		conf_pause();
	}
	return CONF_OK;
}

int nic_make(uint32_t mtu)
{
	for (int i = 0; i < 2; i++) {
		struct ifreq ifr = {0};
		int err = net_up(conf->dev[i], true);

		need(err == 0, "%s: up: %s", conf->dev[i], strerror(-err));
		err = control(conf->dev[i], SIOCGIFMTU, &ifr);
		if (!err && ifr.ifr_mtu != (int)mtu)
			err = net_mtu(conf->dev[i], mtu);
		if (err)
			return conf_skip("%s does not take MTU %u with the program there: %s",
					 conf->dev[i], mtu, strerror(-err));
	}
	attempt(has_link(NET_A));
	return has_link(NET_B);
}
