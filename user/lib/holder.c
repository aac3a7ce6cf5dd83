// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * Who holds an AF_XDP queue: xdpath's lease, else the socket found by sock_diag and its owner found
 * in /proc, else the bare fact from the netdev family.
 *
 * Called when a bind says EBUSY, and by probe and status. A source that the kernel lacks is passed
 * over; only when none can be asked is that an error.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libmnl/libmnl.h>

#include <linux/xdp_diag.h>

#include "netlink_parse.h"

bool xdpath_command_name(int pid, char *out, size_t size)
{
	char path[64], line[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	line[strcspn(line, "\n")] = '\0';
	/* A process names itself: nothing of it may reach a terminal as a control sequence. */
	for (char *c = line; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	snprintf(out, size, "%.*s", (int)size - 1, line);
	return true;
}

/* True if a descriptor of the process is the socket. */
static bool has_socket(const char *pid, const char *link, size_t len)
{
	char dir[32], target[64];
	struct dirent *e;
	bool found = false;
	DIR *d;

	snprintf(dir, sizeof(dir), "/proc/%.10s/fd", pid);
	d = opendir(dir);
	if (!d)
		return false;
	while (!found && (e = readdir(d)) != NULL) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target));

		found = n == (ssize_t)len && memcmp(target, link, len) == 0;
	}
	closedir(d);
	return found;
}

static int find_pid(uint64_t inode)
{
	char link[32];
	int len = snprintf(link, sizeof(link), "socket:[%llu]", (unsigned long long)inode);
	DIR *proc = opendir("/proc");
	struct dirent *e;
	int pid = 0;

	if (!proc)
		return 0;
	while (!pid && (e = readdir(proc)) != NULL)
		if (isdigit((unsigned char)e->d_name[0]) &&
		    has_socket(e->d_name, link, (size_t)len))
			pid = atoi(e->d_name);
	closedir(proc);
	return pid;
}

int xdpath_nl_sockets(struct xdpath_xsk_facts *f)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct xdp_diag_req *req;

	nlh->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	nlh->nlmsg_flags = NLM_F_DUMP;
	req = mnl_nlmsg_put_extra_header(nlh, sizeof(*req));
	req->sdiag_family = AF_XDP;
	req->xdiag_show = XDP_SHOW_INFO;
	return xdpath_nl_talk(NETLINK_SOCK_DIAG, nlh, xdpath_nl_parse_xsk, f, NULL, 0);
}

int xdpath_queue_holder(const struct xdpath_port *p, uint32_t queue, struct xdpath_holder *out)
{
	struct xdpath_xsk_facts x = {.ifindex = p->ifindex, .queue = queue};
	struct xdpath_queue_facts q = {.ifindex = p->ifindex};
	char who[sizeof(out->comm)] = "";
	int pid, diag, netdev;

	*out = (struct xdpath_holder){0};
	pid = xdpath_lease_holder(p->netns, p->ifindex, queue, who, sizeof(who));
	/* Our own lease says that we asked for the queue, not that we got it. */
	if (pid && pid != getpid()) {
		out->taken = out->by_lease = true;
		out->pid = pid;
		if (!xdpath_command_name(pid, out->comm, sizeof(out->comm)))
			snprintf(out->comm, sizeof(out->comm), "%s", who);
		return 0;
	}
	diag = xdpath_nl_sockets(&x);
	if (diag == 0 && x.found) {
		out->taken = true;
		out->pid = find_pid(x.inode);
		if (out->pid)
			xdpath_command_name(out->pid, out->comm, sizeof(out->comm));
		return 0;
	}
	netdev = xdpath_nl_queues(&q);
	/* Nothing counted: the interface is down, and its queues are not listed. */
	if (netdev == 0 && q.rx + q.tx == 0)
		netdev = -ENETDOWN;
	if (netdev == 0 && queue < XDPATH_QUEUES)
		out->taken = q.taken[queue / 64] >> (queue % 64) & 1;
	return diag && netdev ? diag : 0;
}
