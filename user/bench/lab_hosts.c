/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Two hosts in two namespaces; see lab_hosts.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libmnl/libmnl.h>

#include "internal.h"
#include "lab_hosts.h"

#define READY_SECONDS 10

struct lab_hosts {
	pid_t pid;
	int tie; /* our end of the socket pair: closed, the child ends */
};

/* The two ends alike but for the last digit. */
static const uint8_t macs[2][6] = {{0x02, 0x77, 0, 0, 0, 1}, {0x02, 0x77, 0, 0, 0, 2}};
static const char *const v4[2] = {"10.77.0.1", LAB_PEER}, *const v6[2] = {"fd77::1", LAB_PEER_6};

/* ---- rtnetlink ------------------------------------------------------------------------------ */

static int talk(struct nlmsghdr *nlh)
{
	return xdpath_nl_talk(NETLINK_ROUTE, nlh, NULL, NULL, NULL, 0);
}

static void put_link(struct nlmsghdr *nlh, int end, uint32_t queues, uint32_t mtu)
{
	mnl_attr_put_strz(nlh, IFLA_IFNAME, LAB_DEV);
	mnl_attr_put(nlh, IFLA_ADDRESS, 6, macs[end]);
	mnl_attr_put_u32(nlh, IFLA_NUM_TX_QUEUES, queues);
	mnl_attr_put_u32(nlh, IFLA_NUM_RX_QUEUES, queues);
	mnl_attr_put_u32(nlh, IFLA_MTU, mtu);
}

/* The pair at once, its far end in the child's namespace from the start. */
static int make_pair(uint32_t queues, uint32_t mtu, pid_t child)
{
	char buf[1024];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nlattr *info, *data, *peer;
	struct ifinfomsg *ifi;

	nlh->nlmsg_type = RTM_NEWLINK;
	nlh->nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL;
	mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	put_link(nlh, 0, queues, mtu);
	info = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(nlh, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(nlh, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(nlh, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	put_link(nlh, 1, queues, mtu);
	mnl_attr_put_u32(nlh, IFLA_NET_NS_PID, (uint32_t)child);
	mnl_attr_nest_end(nlh, peer);
	mnl_attr_nest_end(nlh, data);
	mnl_attr_nest_end(nlh, info);
	return talk(nlh);
}

static int link_up(int ifindex)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;

	nlh->nlmsg_type = RTM_NEWLINK;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_family = AF_UNSPEC;
	ifi->ifi_index = ifindex;
	ifi->ifi_flags = ifi->ifi_change = IFF_UP;
	return talk(nlh);
}

static int add_address(int ifindex, int family, const char *text)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	uint16_t size = family == AF_INET6 ? 16 : 4;
	struct ifaddrmsg *ifa;
	uint8_t addr[16];

	inet_pton(family, text, addr);
	nlh->nlmsg_type = RTM_NEWADDR;
	nlh->nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL;
	ifa = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifa));
	ifa->ifa_family = (uint8_t)family;
	ifa->ifa_prefixlen = family == AF_INET6 ? 64 : 24;
	ifa->ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0;
	ifa->ifa_index = (uint32_t)ifindex;
	mnl_attr_put(nlh, IFA_LOCAL, size, addr);
	mnl_attr_put(nlh, IFA_ADDRESS, size, addr);
	return talk(nlh);
}

/* Known for good: no question about it falls into a run. */
static int add_neighbour(int ifindex, int family, const char *text, const uint8_t mac[6])
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ndmsg *nd;
	uint8_t addr[16];

	inet_pton(family, text, addr);
	nlh->nlmsg_type = RTM_NEWNEIGH;
	nlh->nlmsg_flags = NLM_F_CREATE | NLM_F_REPLACE;
	nd = mnl_nlmsg_put_extra_header(nlh, sizeof(*nd));
	nd->ndm_family = (uint8_t)family;
	nd->ndm_ifindex = ifindex;
	nd->ndm_state = NUD_PERMANENT;
	mnl_attr_put(nlh, NDA_DST, family == AF_INET6 ? 16 : 4, addr);
	mnl_attr_put(nlh, NDA_LLADDR, 6, mac);
	return talk(nlh);
}

/* ---- a host --------------------------------------------------------------------------------- */

static void put_sysctl(const char *name, const char *value)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/default/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return; /* no IPv6, or not to be set: a few more frames, which the counts show */
	(void)!write(fd, value, strlen(value));
	close(fd);
}

/*
 * A network namespace of our own, and /sys as it looks from there: what is read of devices must be
 * of these. The old /sys will do where mounting is not allowed; then some facts are not told.
 */
static int move_out(void)
{
	if (unshare(CLONE_NEWNET))
		return -errno;
	if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 0;
	(void)!mount("sysfs", "/sys", "sysfs", 0, NULL);
	return 0;
}

/* Nothing but the test on the link: the kernel asks for no router and reports no group late. */
static void keep_quiet(void)
{
	put_sysctl("accept_ra", "0");
	put_sysctl("autoconf", "0");
	put_sysctl("router_solicitations", "0");
	put_sysctl("addr_gen_mode", "1");
	put_sysctl("accept_dad", "0");
	put_sysctl("dad_transmits", "0");
	put_sysctl("mldv1_unsolicited_report_interval", "1");
	put_sysctl("mldv2_unsolicited_report_interval", "1");
}

static int settle_in(int end)
{
	int ifindex = (int)if_nametoindex(LAB_DEV), lo = (int)if_nametoindex("lo"), err;

	if (!ifindex)
		return -ENODEV;
	if (lo && (err = link_up(lo)))
		return err;
	if ((err = link_up(ifindex)) || (err = add_address(ifindex, AF_INET, v4[end])) ||
	    (err = add_neighbour(ifindex, AF_INET, v4[1 - end], macs[1 - end])))
		return err;
	err = add_address(ifindex, AF_INET6, v6[end]);
	if (!err)
		err = add_neighbour(ifindex, AF_INET6, v6[1 - end], macs[1 - end]);
	return err == -EOPNOTSUPP || err == -EAFNOSUPPORT || err == -EACCES ? 0 : err;
}

/* ---- the child ------------------------------------------------------------------------------ */

static void told(void *ctx)
{
	const int *tie = ctx;
	int ok = 0;

	if (send(*tie, &ok, sizeof(ok), MSG_NOSIGNAL) < 0)
		_exit(1); /* nobody waits for us any more */
}

static void tell_failure(int tie, int err, const struct xdpath_diag *d)
{
	struct {
		int err;
		char text[400];
	} msg = {.err = err};

	snprintf(msg.text, sizeof(msg.text), "%s", d->text);
	if (send(tie, &msg, sizeof(msg), MSG_NOSIGNAL) < 0)
		_exit(1);
}

/* The far end's whole life. It ends when the tie is cut, by us or by our death. */
static void child(int tie, pid_t parent, const struct serve_opts *serve)
{
	struct serve_opts o = *serve;
	struct xdpath_diag d = {0};
	char go;
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGINT, SIG_IGN); /* the terminal's goes to both; we end by the tie */
	err = move_out();
	if (err) {
		xdpath_fail(&d, XDPATH_R_PERMISSION, -err, "network namespace: %s; run as root",
			    strerror(-err));
		tell_failure(tie, err, &d);
		_exit(1);
	}
	keep_quiet();
	go = 1;
	if (send(tie, &go, 1, MSG_NOSIGNAL) != 1 || recv(tie, &go, 1, 0) != 1)
		_exit(1);
	err = settle_in(1);
	if (err)
		xdpath_fail(&d, XDPATH_R_REFUSED, -err, "the far host's device: %s",
			    strerror(-err));
	o.dev = LAB_DEV;
	o.ready = told;
	o.ctx = &tie;
	if (!err)
		err = session_serve(&o, tie, &d);
	if (err)
		tell_failure(tie, err, &d);
	_exit(err ? 1 : 0);
}

/* ---- this process --------------------------------------------------------------------------- */

/* What the child says next: 1 byte that it has its namespace, or an int: 0 ready, else an error. */
static int listen_to(int tie, size_t want, struct xdpath_diag *d)
{
	struct {
		int err;
		char text[400];
	} msg = {0};
	ssize_t n = recv(tie, &msg, sizeof(msg), 0);

	if (n == (ssize_t)want && (want == 1 || msg.err == 0))
		return 0;
	if (n == sizeof(msg) && msg.text[0]) {
		msg.text[sizeof(msg.text) - 1] = '\0';
		return xdpath_fail(d, XDPATH_R_REFUSED, msg.err < 0 ? -msg.err : EIO, "--lab: %s",
				   msg.text);
	}
	return xdpath_fail(d, XDPATH_R_REFUSED, EIO,
			   "--lab: the far host did not come up; try again, as root");
}

static int build(struct lab_hosts *h, uint32_t queues, uint32_t mtu, struct xdpath_diag *d)
{
	const char go = 1;
	int err = listen_to(h->tie, 1, d);

	if (err)
		return err;
	err = move_out();
	if (err)
		return xdpath_fail(d, XDPATH_R_PERMISSION, -err,
				   "--lab: no network namespace: %s; run as root", strerror(-err));
	keep_quiet();
	err = make_pair(queues, mtu ? mtu : 1500, h->pid);
	if (!err)
		err = settle_in(0);
	if (err)
		return xdpath_fail(d, XDPATH_R_REFUSED, -err,
				   "--lab: a veth pair with %u queues and MTU %u: %s; is there a "
				   "veth driver (`modprobe veth`)?",
				   queues, mtu ? mtu : 1500, strerror(-err));
	if (send(h->tie, &go, 1, MSG_NOSIGNAL) != 1)
		return xdpath_fail(d, XDPATH_R_REFUSED, EPIPE,
				   "--lab: the far host ended; try again");
	return listen_to(h->tie, sizeof(int), d);
}

int lab_hosts_open(struct lab_hosts **out, uint32_t queues, uint32_t mtu,
		   const struct serve_opts *serve, struct xdpath_diag *d)
{
	struct timeval wait = {.tv_sec = READY_SECONDS};
	struct lab_hosts *h;
	pid_t self = getpid();
	int pair[2], err;

	if (queues < 1 || queues > 64)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL, "--lab: %u queues; give 1 to 64",
				   queues);
	h = calloc(1, sizeof(*h));
	if (!h || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		free(h);
		return xdpath_fail(d, XDPATH_R_MEMORY, ENOMEM, "--lab: no memory; free some");
	}
	fflush(NULL); /* or the child would print it again */
	h->pid = fork();
	if (h->pid == 0) {
		close(pair[0]);
		child(pair[1], self, serve);
	}
	close(pair[1]);
	h->tie = pair[0];
	setsockopt(h->tie, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	err = h->pid < 0 ? xdpath_fail(d, XDPATH_R_REFUSED, errno,
				       "--lab: no process: %s; try again", strerror(errno))
			 : build(h, queues, mtu, d);
	if (err) {
		lab_hosts_close(h);
		return err;
	}
	*out = h;
	return 0;
}

void lab_hosts_close(struct lab_hosts *h)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	int waited = 0;

	if (!h)
		return;
	close(h->tie);
	while (h->pid > 0 && waitpid(h->pid, NULL, WNOHANG) == 0) {
		if (++waited == 300) /* 3 s: its device may need them */
			kill(h->pid, SIGKILL);
		nanosleep(&pause, NULL);
	}
	free(h);
}
