// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * Talking to the kernel by netlink: one request, its answers, the reason of a refusal.
 *
 * Called by port.c, holder.c, prog.c and the verbs. A socket lives for one request, so nothing is
 * shared between threads. What the answers mean is netlink_parse.c's business.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>

#include <libmnl/libmnl.h>

#include "netlink_parse.h"

enum {
	BUF_START = 32 * 1024,
	BUF_MOST = 1024 * 1024, /* a link with hundreds of functions stays far below */
	DATAGRAMS_MOST = 4096,	/* of one answer: no loop here goes on for ever */
	WAIT_SECONDS = 5,
};

static void keep_extack(struct xdpath_nl_reply *r, const struct nlmsghdr *nlh, unsigned int offset)
{
	struct nlattr *a;

	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS) || !r->ext || !r->size)
		return;
	mnl_attr_for_each (a, nlh, offset)
		if (mnl_attr_get_type(a) == NLMSGERR_ATTR_MSG)
			xdpath_nl_str(a, r->ext, r->size);
}

/* NLMSG_ERROR: an acknowledgement is an error of 0. */
static int ended_by_error(struct xdpath_nl_reply *r, const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);
	size_t offset = sizeof(*e);

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*e))
		return -EBADMSG;
	/* An error repeats the whole request unless it is capped; the text stands behind it. */
	if (e->error && !(nlh->nlmsg_flags & NLM_F_CAPPED) && e->msg.nlmsg_len > sizeof(e->msg))
		offset += e->msg.nlmsg_len - sizeof(e->msg);
	if (offset < mnl_nlmsg_get_payload_len(nlh))
		keep_extack(r, nlh, offset);
	return e->error <= 0 ? e->error : -e->error;
}

/* NLMSG_DONE: carries the dump's own error, where there was one. */
static int ended_by_done(struct xdpath_nl_reply *r, const struct nlmsghdr *nlh)
{
	int err = 0;

	if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(err)) {
		memcpy(&err, mnl_nlmsg_get_payload(nlh), sizeof(err));
		keep_extack(r, nlh, sizeof(err));
	}
	if (err < 0)
		return err;
	return r->interrupted ? -EINTR : 0;
}

/* libmnl's own check takes a length of 2^31 or more for a small one. */
static bool whole(const struct nlmsghdr *nlh, int left)
{
	return left >= (int)sizeof(*nlh) && nlh->nlmsg_len >= sizeof(*nlh) &&
	       nlh->nlmsg_len <= (uint32_t)left && MNL_ALIGN(nlh->nlmsg_len) <= (uint32_t)left;
}

int xdpath_nl_consume(struct xdpath_nl_reply *r, const void *buf, size_t len)
{
	const struct nlmsghdr *nlh = buf;
	int left = len > BUF_MOST ? BUF_MOST : (int)len;

	for (; whole(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		int err;

		if (!mnl_nlmsg_seq_ok(nlh, r->seq) || !mnl_nlmsg_portid_ok(nlh, r->portid))
			continue;
		if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
			r->interrupted = true;
		if (nlh->nlmsg_type == NLMSG_ERROR)
			return ended_by_error(r, nlh);
		if (nlh->nlmsg_type == NLMSG_DONE)
			return ended_by_done(r, nlh);
		if (nlh->nlmsg_type == NLMSG_OVERRUN)
			return -ENOBUFS;
		if (nlh->nlmsg_type < NLMSG_MIN_TYPE || !r->cb)
			continue;
		err = r->cb(nlh, r->ctx);
		if (err < 0)
			return err;
	}
	return 1;
}

/* The next datagram, whole: its size is asked first. */
static ssize_t receive(struct mnl_socket *nl, char **buf, size_t *size)
{
	int fd = mnl_socket_get_fd(nl);
	ssize_t n;

	do {
		n = recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	if ((size_t)n > BUF_MOST)
		return -EMSGSIZE;
	if ((size_t)n > *size) {
		char *bigger = realloc(*buf, (size_t)n);

		if (!bigger)
			return -ENOMEM;
		*buf = bigger;
		*size = (size_t)n;
	}
	n = mnl_socket_recvfrom(nl, *buf, *size);
	return n < 0 ? -errno : n;
}

static int converse(struct mnl_socket *nl, struct nlmsghdr *nlh, struct xdpath_nl_reply *r)
{
	size_t size = BUF_START;
	char *buf;
	int ret = 1;

	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	buf = calloc(1, size);
	if (!buf)
		return -ENOMEM;
	for (int i = 0; ret > 0 && i < DATAGRAMS_MOST; i++) {
		ssize_t n = receive(nl, &buf, &size);

		ret = n < 0 ? (int)n : xdpath_nl_consume(r, buf, (size_t)n);
	}
	free(buf);
	return ret > 0 ? -EOVERFLOW : ret;
}

int xdpath_nl_talk(int protocol, struct nlmsghdr *nlh, int (*cb)(const struct nlmsghdr *, void *),
		   void *ctx, char *ext, size_t size)
{
	struct xdpath_nl_reply r = {.seq = 1, .cb = cb, .ctx = ctx, .ext = ext, .size = size};
	struct timeval wait = {.tv_sec = WAIT_SECONDS};
	struct mnl_socket *nl;
	int one = 1, ret;

	if (ext && size)
		ext[0] = '\0';
	nl = mnl_socket_open2(protocol, SOCK_CLOEXEC);
	if (!nl)
		return -errno;
	/* Before 4.12 there are no texts, and no harm in asking. */
	mnl_socket_setsockopt(nl, NETLINK_EXT_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(nl, NETLINK_CAP_ACK, &one, sizeof(one));
	setsockopt(mnl_socket_get_fd(nl), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0) {
		ret = -errno;
	} else {
		r.portid = mnl_socket_get_portid(nl);
		nlh->nlmsg_seq = r.seq;
		nlh->nlmsg_flags |= NLM_F_REQUEST;
		/* A dump ends by itself; everything else ends with its acknowledgement. */
		if ((nlh->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
			nlh->nlmsg_flags |= NLM_F_ACK;
		ret = converse(nl, nlh, &r);
	}
	mnl_socket_close(nl);
	return ret;
}

int xdpath_nl_set_xdp(int ifindex, int fd, uint32_t flags, char *ext, size_t size)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;
	struct nlattr *xdp;

	nlh->nlmsg_type = RTM_SETLINK;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_family = AF_UNSPEC;
	ifi->ifi_index = ifindex;
	xdp = mnl_attr_nest_start(nlh, IFLA_XDP);
	mnl_attr_put_u32(nlh, IFLA_XDP_FD, (uint32_t)fd);
	mnl_attr_put_u32(nlh, IFLA_XDP_FLAGS, flags);
	mnl_attr_nest_end(nlh, xdp);
	return xdpath_nl_talk(NETLINK_ROUTE, nlh, NULL, NULL, ext, size);
}

int xdpath_nl_family_query(const char *name, struct xdpath_nl_family *out)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;
	int err;

	if (strlen(name) >= GENL_NAMSIZ)
		return -ENOENT;
	nlh->nlmsg_type = GENL_ID_CTRL;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = CTRL_CMD_GETFAMILY;
	genl->version = 1;
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, name);
	*out = (struct xdpath_nl_family){0};
	err = xdpath_nl_talk(NETLINK_GENERIC, nlh, xdpath_nl_parse_family, out, NULL, 0);
	if (err)
		return err;
	return out->id ? 0 : -ENOENT;
}

int xdpath_nl_family(const char *name)
{
	struct xdpath_nl_family f;
	int err = xdpath_nl_family_query(name, &f);

	return err ? err : f.id;
}
