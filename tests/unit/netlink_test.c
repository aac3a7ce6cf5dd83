/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Netlink answers, constructed: what a kernel sends, what older or newer ones may, and what none
 * should. Messages lie in heap blocks of their exact size, so that a sanitizer build sees a read
 * past the end.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>

#include <linux/xdp_diag.h>

#include "netlink_parse.h"

enum { SEQ = 7, PORT = 4711, UNKNOWN_ATTR = 0x3ff0 };

static struct nlmsghdr *begin(char *buf, uint16_t type, size_t extra)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	nlh->nlmsg_type = type;
	nlh->nlmsg_seq = SEQ;
	nlh->nlmsg_pid = PORT;
	if (extra)
		memset(mnl_nlmsg_put_extra_header(nlh, extra), 0, extra);
	return nlh;
}

static struct nlmsghdr *begin_link(char *buf, int ifindex)
{
	struct nlmsghdr *nlh = begin(buf, RTM_NEWLINK, sizeof(struct ifinfomsg));
	struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);

	ifi->ifi_index = ifindex;
	ifi->ifi_flags = IFF_UP;
	return nlh;
}

static struct nlmsghdr *begin_genl(char *buf)
{
	return begin(buf, 20, sizeof(struct genlmsghdr));
}

static void put_u8_nest(struct nlmsghdr *nlh, uint8_t attached, uint16_t id_attr, uint32_t id)
{
	struct nlattr *n = mnl_attr_nest_start(nlh, IFLA_XDP);

	mnl_attr_put_u8(nlh, IFLA_XDP_ATTACHED, attached);
	if (id)
		mnl_attr_put_u32(nlh, id_attr, id);
	mnl_attr_nest_end(nlh, n);
}

/* A veth as the kernel describes it, with attributes that we do not know between. */
static struct nlmsghdr *veth_link(char *buf)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	struct nlmsghdr *nlh = begin_link(buf, 5);
	struct nlattr *n;

	mnl_attr_put_strz(nlh, IFLA_IFNAME, "d0");
	mnl_attr_put_u64(nlh, UNKNOWN_ATTR, 1);
	mnl_attr_put_u32(nlh, IFLA_MTU, 9000);
	mnl_attr_put(nlh, IFLA_ADDRESS, sizeof(mac), mac);
	mnl_attr_put_u32(nlh, IFLA_LINK, 6);
	mnl_attr_put_u32(nlh, IFLA_NUM_RX_QUEUES, 4);
	mnl_attr_put_u32(nlh, IFLA_NUM_TX_QUEUES, 3);
	n = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put(nlh, UNKNOWN_ATTR, 0, NULL);
	mnl_attr_put_strz(nlh, IFLA_INFO_KIND, "veth");
	mnl_attr_nest_end(nlh, n);
	put_u8_nest(nlh, XDP_ATTACHED_DRV, IFLA_XDP_PROG_ID, 77);
	return nlh;
}

/* Hand a message over in a block of exactly len bytes. */
static int consume(struct xdpath_nl_reply *r, const void *msg, size_t len)
{
	void *copy = malloc(len ? len : 1);
	int ret;

	assert_non_null(copy);
	memcpy(copy, msg, len);
	ret = xdpath_nl_consume(r, copy, len);
	free(copy);
	return ret;
}

static int give(int (*cb)(const struct nlmsghdr *, void *), void *ctx, const struct nlmsghdr *nlh)
{
	struct xdpath_nl_reply r = {.seq = SEQ, .portid = PORT, .cb = cb, .ctx = ctx};

	return consume(&r, nlh, nlh->nlmsg_len);
}

static void link_of_a_veth(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	struct xdpath_port p = {0};
	struct xdpath_link_facts l = {.port = &p};
	char buf[1024];

	(void)state;
	assert_int_equal(give(xdpath_nl_parse_link, &l, veth_link(buf)), 1);
	assert_string_equal(p.name, "d0");
	assert_int_equal(p.ifindex, 5);
	assert_int_equal(p.flags, IFF_UP);
	assert_int_equal(p.mtu, 9000);
	assert_memory_equal(p.mac, mac, sizeof(mac));
	assert_int_equal(p.peer_ifindex, 6);
	assert_string_equal(p.kind, "veth");
	assert_int_equal(l.rx_queues, 4);
	assert_int_equal(l.tx_queues, 3);
	assert_int_equal(p.attached, XDPATH_ATTACH_NATIVE);
	assert_int_equal(p.prog_id, 77);
}

static void link_with_odd_attributes(void **state)
{
	static const uint8_t infiniband[20] = {0xff};
	struct xdpath_port p = {.mtu = 1};
	struct xdpath_link_facts l = {.port = &p};
	char buf[1024];
	struct nlmsghdr *nlh = begin_link(buf, 9);

	(void)state;
	mnl_attr_put_u16(nlh, IFLA_MTU, 9000); /* too short: passed over */
	mnl_attr_put(nlh, IFLA_ADDRESS, sizeof(infiniband), infiniband);
	mnl_attr_put(nlh, IFLA_IFNAME, 20, "a-name-of-20-letters"); /* no NUL, too long */
	mnl_attr_put(nlh, IFLA_XDP, 0, NULL);
	mnl_attr_put(nlh, IFLA_LINKINFO, 2, "xy"); /* a nest too short for anything */
	mnl_attr_put_u32(nlh, IFLA_NUM_RX_QUEUES, 2);
	assert_int_equal(give(xdpath_nl_parse_link, &l, nlh), 1);
	assert_int_equal(p.mtu, 1);
	assert_int_equal(p.mac[0], 0);
	assert_string_equal(p.name, "a-name-of-20-le");
	assert_int_equal(p.attached, XDPATH_ATTACH_NONE);
	assert_string_equal(p.kind, "");
	assert_int_equal(l.rx_queues, 2);
}

static void link_too_short_or_of_another_kind(void **state)
{
	struct xdpath_port p = {0};
	struct xdpath_link_facts l = {.port = &p};
	char buf[256];
	struct nlmsghdr *nlh = begin(buf, RTM_NEWLINK, sizeof(struct ifinfomsg) - 4);

	(void)state;
	memset(mnl_nlmsg_get_payload(nlh), 0xff, mnl_nlmsg_get_payload_len(nlh));
	assert_int_equal(give(xdpath_nl_parse_link, &l, nlh), 1);
	assert_int_equal(p.ifindex, 0);
	nlh = begin_link(buf, 3);
	nlh->nlmsg_type = RTM_DELLINK;
	assert_int_equal(give(xdpath_nl_parse_link, &l, nlh), 1);
	assert_int_equal(p.ifindex, 0);
}

static void link_attach_modes(void **state)
{
	static const struct {
		uint8_t attached;
		uint16_t attr;
		enum xdpath_attach is;
	} c[] = {
		{XDP_ATTACHED_NONE, IFLA_XDP_PROG_ID, XDPATH_ATTACH_NONE},
		{XDP_ATTACHED_DRV, IFLA_XDP_PROG_ID, XDPATH_ATTACH_NATIVE},
		{XDP_ATTACHED_DRV, IFLA_XDP_DRV_PROG_ID, XDPATH_ATTACH_NATIVE},
		{XDP_ATTACHED_SKB, IFLA_XDP_SKB_PROG_ID, XDPATH_ATTACH_GENERIC},
		{XDP_ATTACHED_HW, IFLA_XDP_HW_PROG_ID, XDPATH_ATTACH_OFFLOAD},
		{XDP_ATTACHED_MULTI, IFLA_XDP_DRV_PROG_ID, XDPATH_ATTACH_NATIVE},
		{XDP_ATTACHED_MULTI, IFLA_XDP_SKB_PROG_ID, XDPATH_ATTACH_GENERIC},
		{XDP_ATTACHED_MULTI, IFLA_XDP_HW_PROG_ID, XDPATH_ATTACH_OFFLOAD},
		{200, IFLA_XDP_PROG_ID, XDPATH_ATTACH_NONE}, /* of a kernel to come */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct xdpath_port p = {0};
		struct xdpath_link_facts l = {.port = &p};
		char buf[256];
		struct nlmsghdr *nlh = begin_link(buf, 1);

		put_u8_nest(nlh, c[i].attached, c[i].attr, 42);
		assert_int_equal(give(xdpath_nl_parse_link, &l, nlh), 1);
		assert_int_equal(p.attached, c[i].is);
		assert_int_equal(p.prog_id, c[i].is == XDPATH_ATTACH_NONE ? 0 : 42);
	}
}

static struct nlmsghdr *netdev(char *buf, uint32_t ifindex, uint64_t features)
{
	struct nlmsghdr *nlh = begin_genl(buf);

	mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_DEV_IFINDEX, ifindex);
	mnl_attr_put_u64(nlh, XDPATH_NETDEV_A_DEV_XDP_FEATURES, features);
	mnl_attr_put(nlh, UNKNOWN_ATTR, 3, "new");
	return nlh;
}

static void netdev_features(void **state)
{
	struct xdpath_port p = {.ifindex = 4};
	char buf[512];
	struct nlmsghdr *nlh = netdev(buf, 4, 0x2b);

	(void)state;
	mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_DEV_ZC_MAX_SEGS, 8);
	mnl_attr_put_u64(nlh, XDPATH_NETDEV_A_DEV_RX_METADATA, 5);
	mnl_attr_put_u64(nlh, XDPATH_NETDEV_A_DEV_XSK_FEATURES, 3);
	assert_int_equal(give(xdpath_nl_parse_netdev, &p, nlh), 1);
	assert_true(p.features_known);
	assert_int_equal(p.xdp_features, 0x2b);
	assert_int_equal(p.zc_max_segs, 8);
	assert_int_equal(p.rx_metadata, 5);
	assert_int_equal(p.xsk_features, 3);
}

static void netdev_segments_follow_zero_copy(void **state)
{
	struct xdpath_port p = {.ifindex = 4};
	char buf[512];
	struct nlmsghdr *nlh = netdev(buf, 4, 0x23); /* native, no zero-copy */

	(void)state;
	mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_DEV_ZC_MAX_SEGS, 8);
	assert_int_equal(give(xdpath_nl_parse_netdev, &p, nlh), 1);
	assert_int_equal(p.zc_max_segs, 0);
	/* A kernel of 6.3 to 6.5 tells zero-copy and no number: one. */
	assert_int_equal(give(xdpath_nl_parse_netdev, &p, netdev(buf, 4, 0x2b)), 1);
	assert_int_equal(p.zc_max_segs, 1);
}

static void netdev_of_others_or_without_features(void **state)
{
	struct xdpath_port p = {.ifindex = 4};
	char buf[512];
	struct nlmsghdr *nlh;

	(void)state;
	assert_int_equal(give(xdpath_nl_parse_netdev, &p, netdev(buf, 5, 0x2b)), 1);
	assert_false(p.features_known);
	nlh = begin_genl(buf);
	mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_DEV_IFINDEX, 4);
	mnl_attr_put(nlh, XDPATH_NETDEV_A_DEV_XDP_FEATURES, 3, "abc");
	assert_int_equal(give(xdpath_nl_parse_netdev, &p, nlh), 1);
	assert_false(p.features_known);
	/* Numbers of a flexible width come as 4 bytes when they fit. */
	nlh = begin_genl(buf);
	mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_DEV_IFINDEX, 4);
	mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_DEV_XDP_FEATURES, 3);
	assert_int_equal(give(xdpath_nl_parse_netdev, &p, nlh), 1);
	assert_true(p.features_known);
	assert_int_equal(p.xdp_features, 3);
}

static struct nlmsghdr *queue(char *buf, uint32_t ifindex, uint32_t type, uint32_t id, bool xsk)
{
	struct nlmsghdr *nlh = begin_genl(buf);

	mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_QUEUE_ID, id);
	mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_QUEUE_TYPE, type);
	if (xsk)
		mnl_attr_put(nlh, XDPATH_NETDEV_A_QUEUE_XSK | NLA_F_NESTED, 0, NULL);
	mnl_attr_put_u32(nlh, UNKNOWN_ATTR, 0);
	mnl_attr_put_u32(nlh, XDPATH_NETDEV_A_QUEUE_IFINDEX, ifindex);
	return nlh;
}

static void queues_counted_and_taken(void **state)
{
	struct xdpath_queue_facts f = {.ifindex = 4};
	char buf[256];

	(void)state;
	give(xdpath_nl_parse_queue, &f, queue(buf, 4, 0, 0, false));
	give(xdpath_nl_parse_queue, &f, queue(buf, 4, 0, 1, true));
	give(xdpath_nl_parse_queue, &f, queue(buf, 4, 0, 255, true));
	give(xdpath_nl_parse_queue, &f, queue(buf, 4, 0, 256, true)); /* past our slots */
	give(xdpath_nl_parse_queue, &f, queue(buf, 4, 1, 70, true));
	give(xdpath_nl_parse_queue, &f, queue(buf, 5, 0, 2, true)); /* another device */
	give(xdpath_nl_parse_queue, &f, queue(buf, 4, 9, 2, true)); /* neither rx nor tx */
	give(xdpath_nl_parse_queue, &f, begin_genl(buf));	    /* empty */
	assert_int_equal(f.rx, 4);
	assert_int_equal(f.tx, 1);
	assert_int_equal(f.taken[0], 1ULL << 1);
	assert_int_equal(f.taken[1], 1ULL << 6);
	assert_int_equal(f.taken[2], 0);
	assert_int_equal(f.taken[3], 1ULL << 63);
}

static struct nlmsghdr *xsk(char *buf, uint8_t family, uint32_t ino, uint32_t ifindex, uint32_t q)
{
	struct xdp_diag_info info = {.ifindex = ifindex, .queue_id = q};
	struct nlmsghdr *nlh = begin(buf, SOCK_DIAG_BY_FAMILY, sizeof(struct xdp_diag_msg));
	struct xdp_diag_msg *msg = mnl_nlmsg_get_payload(nlh);

	msg->xdiag_family = family;
	msg->xdiag_ino = ino;
	mnl_attr_put_u32(nlh, UNKNOWN_ATTR, 0);
	mnl_attr_put(nlh, XDP_DIAG_INFO, sizeof(info), &info);
	return nlh;
}

static void sockets_found_by_queue(void **state)
{
	struct xdpath_xsk_facts f = {.ifindex = 4, .queue = 2};
	char buf[256];
	struct nlmsghdr *nlh;

	(void)state;
	give(xdpath_nl_parse_xsk, &f, xsk(buf, AF_XDP, 100, 4, 1));
	give(xdpath_nl_parse_xsk, &f, xsk(buf, AF_XDP, 101, 5, 2));
	give(xdpath_nl_parse_xsk, &f, xsk(buf, AF_INET, 102, 4, 2));
	nlh = begin(buf, SOCK_DIAG_BY_FAMILY, sizeof(struct xdp_diag_msg));
	((struct xdp_diag_msg *)mnl_nlmsg_get_payload(nlh))->xdiag_family = AF_XDP;
	mnl_attr_put_u32(nlh, XDP_DIAG_INFO, 4); /* half an info */
	give(xdpath_nl_parse_xsk, &f, nlh);
	assert_false(f.found);
	give(xdpath_nl_parse_xsk, &f, xsk(buf, AF_XDP, 103, 4, 2));
	assert_true(f.found);
	assert_int_equal(f.inode, 103);
}

static void family_and_its_commands(void **state)
{
	static const uint32_t ids[] = {1, 10, 14, 64, 4000000000U}; /* the last two do not fit */
	struct xdpath_nl_family f = {0};
	char buf[512];
	struct nlmsghdr *nlh = begin(buf, GENL_ID_CTRL, sizeof(struct genlmsghdr));
	struct nlattr *ops, *op;

	(void)state;
	mnl_attr_put_u16(nlh, CTRL_ATTR_FAMILY_ID, 31);
	ops = mnl_attr_nest_start(nlh, CTRL_ATTR_OPS);
	for (uint16_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		op = mnl_attr_nest_start(nlh, i + 1);
		mnl_attr_put_u32(nlh, CTRL_ATTR_OP_FLAGS, 0);
		mnl_attr_put_u32(nlh, CTRL_ATTR_OP_ID, ids[i]);
		mnl_attr_nest_end(nlh, op);
	}
	mnl_attr_nest_end(nlh, ops);
	assert_int_equal(give(xdpath_nl_parse_family, &f, nlh), 1);
	assert_int_equal(f.id, 31);
	assert_int_equal(f.ops, 1ULL << 1 | 1ULL << 10 | 1ULL << 14);
}

/* An NLMSG_ERROR; uncapped it repeats a request of `repeat` bytes behind its header. */
static struct nlmsghdr *refusal(char *buf, int err, size_t repeat, const char *text, size_t len)
{
	struct nlmsghdr *nlh = begin(buf, NLMSG_ERROR, sizeof(struct nlmsgerr));
	struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);

	e->error = err;
	e->msg.nlmsg_len = (uint32_t)(sizeof(e->msg) + repeat);
	if (repeat)
		memset(mnl_nlmsg_put_extra_header(nlh, repeat), 0xaa, repeat);
	else
		nlh->nlmsg_flags |= NLM_F_CAPPED;
	if (text) {
		nlh->nlmsg_flags |= NLM_F_ACK_TLVS;
		mnl_attr_put_u32(nlh, UNKNOWN_ATTR, 1);
		mnl_attr_put_u32(nlh, NLMSGERR_ATTR_OFFS, 16);
		mnl_attr_put(nlh, NLMSGERR_ATTR_MSG, len, text);
	}
	return nlh;
}

static int ended(const struct nlmsghdr *nlh, char *ext, size_t size)
{
	struct xdpath_nl_reply r = {.seq = SEQ, .portid = PORT, .ext = ext, .size = size};

	if (ext)
		ext[0] = '\0';
	return consume(&r, nlh, nlh->nlmsg_len);
}

static void refusals_carry_their_text(void **state)
{
	char buf[512], ext[16];

	(void)state;
	assert_int_equal(ended(refusal(buf, 0, 0, NULL, 0), ext, sizeof(ext)), 0);
	assert_string_equal(ext, "");
	assert_int_equal(ended(refusal(buf, -ERANGE, 0, "MTU", 4), ext, sizeof(ext)), -ERANGE);
	assert_string_equal(ext, "MTU");
	assert_int_equal(ended(refusal(buf, -ERANGE, 40, "MTU", 4), ext, sizeof(ext)), -ERANGE);
	assert_string_equal(ext, "MTU");
	/* A warning on success; a text without NUL; one longer than the buffer; no buffer. */
	assert_int_equal(ended(refusal(buf, 0, 0, "warn", 4), ext, sizeof(ext)), 0);
	assert_string_equal(ext, "warn");
	assert_int_equal(ended(refusal(buf, -EBUSY, 0, "longer than sixteen", 20), ext, 16),
			 -EBUSY);
	assert_string_equal(ext, "longer than six");
	ext[0] = ext[8] = 'z';
	assert_int_equal(ended(refusal(buf, -EBUSY, 0, "eight ch", 8), ext, 8), -EBUSY);
	assert_string_equal(ext, "eight c");
	assert_int_equal(ext[8], 'z'); /* exactly as long as the buffer: nothing behind it */
	assert_int_equal(ended(refusal(buf, -EBUSY, 0, "x", 2), NULL, 0), -EBUSY);
}

static void refusals_out_of_shape(void **state)
{
	char buf[512], ext[16];
	struct nlmsghdr *nlh = begin(buf, NLMSG_ERROR, 2);

	(void)state;
	assert_int_equal(ended(nlh, ext, sizeof(ext)), -EBADMSG);
	/* It claims to repeat more than there is: no text, but the error stands. */
	nlh = refusal(buf, -EINVAL, 8, "no", 3);
	((struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->msg.nlmsg_len = 0xfffffff0U;
	assert_int_equal(ended(nlh, ext, sizeof(ext)), -EINVAL);
	assert_string_equal(ext, "");
	nlh = begin(buf, NLMSG_OVERRUN, 0);
	assert_int_equal(ended(nlh, ext, sizeof(ext)), -ENOBUFS);
}

static int count(const struct nlmsghdr *nlh, void *ctx)
{
	(void)nlh;
	return ++*(int *)ctx > 2 ? -E2BIG : 0;
}

static struct nlmsghdr *done(char *buf, int err)
{
	struct nlmsghdr *nlh = begin(buf, NLMSG_DONE, sizeof(err));

	memcpy(mnl_nlmsg_get_payload(nlh), &err, sizeof(err));
	return nlh;
}

static void dumps_end_as_they_say(void **state)
{
	char buf[256];
	int seen = 0;
	struct xdpath_nl_reply r = {.seq = SEQ, .portid = PORT, .cb = count, .ctx = &seen};
	struct nlmsghdr *nlh = begin(buf, 20, 8);

	(void)state;
	assert_int_equal(consume(&r, nlh, nlh->nlmsg_len), 1);
	nlh->nlmsg_seq = SEQ + 1; /* an answer to somebody else's question */
	assert_int_equal(consume(&r, nlh, nlh->nlmsg_len), 1);
	nlh->nlmsg_seq = SEQ;
	nlh->nlmsg_pid = PORT + 1;
	assert_int_equal(consume(&r, nlh, nlh->nlmsg_len), 1);
	assert_int_equal(seen, 1);
	assert_int_equal(consume(&r, done(buf, 0), 20), 0);
	assert_int_equal(consume(&r, done(buf, -EOPNOTSUPP), 20), -EOPNOTSUPP);
	nlh = begin(buf, 20, 8);
	nlh->nlmsg_flags |= NLM_F_DUMP_INTR;
	assert_int_equal(consume(&r, nlh, nlh->nlmsg_len), 1);
	assert_int_equal(consume(&r, done(buf, 0), 20), -EINTR);
	nlh = begin(buf, 20, 8);
	assert_int_equal(consume(&r, nlh, nlh->nlmsg_len), -E2BIG); /* the callback's word */
	assert_int_equal(seen, 3);
}

/* Cut anywhere, a message is no message: nothing is parsed and more is waited for. */
static void cut_messages_are_left_out(void **state)
{
	char buf[1024];
	struct nlmsghdr *nlh = veth_link(buf);

	(void)state;
	for (size_t len = 0; len < nlh->nlmsg_len; len++) {
		struct xdpath_port p = {0};
		struct xdpath_link_facts l = {.port = &p};
		struct xdpath_nl_reply r = {.seq = SEQ,
					    .portid = PORT,
					    .cb = xdpath_nl_parse_link,
					    .ctx = &l};

		assert_int_equal(consume(&r, nlh, len), 1);
		assert_int_equal(p.ifindex, 0);
	}
}

/* Shorter by its own header: the attributes that are whole count, the one that is cut does not. */
static void shortened_messages_keep_their_head(void **state)
{
	char buf[1024];
	struct nlmsghdr *nlh = veth_link(buf);
	uint32_t full = nlh->nlmsg_len, first = NLMSG_HDRLEN + sizeof(struct ifinfomsg);

	(void)state;
	for (uint32_t len = first; len < full; len += MNL_ALIGNTO) {
		struct xdpath_port p = {0};
		struct xdpath_link_facts l = {.port = &p};

		nlh->nlmsg_len = len;
		assert_int_equal(give(xdpath_nl_parse_link, &l, nlh), 1);
		assert_int_equal(p.ifindex, 5);
		assert_string_equal(p.name, len >= first + 8 ? "d0" : "");
		assert_int_equal(p.attached, XDPATH_ATTACH_NONE); /* the last attribute is cut */
	}
}

/* Any one byte wrong: nothing is read past the end and every string still ends. */
static void wrong_bytes_do_no_harm(void **state)
{
	static const uint8_t wrong[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
	char buf[1024];
	struct nlmsghdr *nlh = veth_link(buf);
	uint32_t len = nlh->nlmsg_len;

	(void)state;
	for (uint32_t at = 0; at < len; at++) {
		for (size_t w = 0; w < sizeof(wrong); w++) {
			struct xdpath_port p = {0};
			struct xdpath_link_facts l = {.port = &p};
			struct xdpath_nl_reply r = {.seq = SEQ,
						    .portid = PORT,
						    .cb = xdpath_nl_parse_link,
						    .ctx = &l};
			char was = buf[at];

			buf[at] = (char)wrong[w];
			assert_true(consume(&r, buf, len) <= 1);
			assert_true(strnlen(p.name, sizeof(p.name)) < sizeof(p.name));
			assert_true(strnlen(p.kind, sizeof(p.kind)) < sizeof(p.kind));
			buf[at] = was;
		}
	}
}

/* Against the running kernel: the one interface that every namespace has. */
static void loopback_and_its_nearest_names(void **state)
{
	struct xdpath_diag d;
	struct xdpath_port p;

	(void)state;
	assert_int_equal(xdpath_port_query(&p, "lo", &d), 0);
	assert_string_equal(p.name, "lo");
	assert_true(p.flags & IFF_LOOPBACK);
	assert_true(p.rx_queues >= 1 && p.tx_queues >= 1);
	assert_int_equal(p.numa_node, -1);
	assert_true(p.netns != 0);
	assert_int_equal(xdpath_port_query(&p, "ol", &d), -ENODEV);
	assert_int_equal(d.reason, XDPATH_R_NO_DEVICE);
	assert_non_null(strstr(d.text, "ol: no such device here; did you mean lo?"));
	assert_int_equal(xdpath_port_query(&p, "no/such-thing", &d), -ENODEV);
	assert_null(strstr(d.text, "did you mean"));
	assert_int_equal(xdpath_port_query(&p, "", NULL), -ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_of_a_veth),
		cmocka_unit_test(link_with_odd_attributes),
		cmocka_unit_test(link_too_short_or_of_another_kind),
		cmocka_unit_test(link_attach_modes),
		cmocka_unit_test(netdev_features),
		cmocka_unit_test(netdev_segments_follow_zero_copy),
		cmocka_unit_test(netdev_of_others_or_without_features),
		cmocka_unit_test(queues_counted_and_taken),
		cmocka_unit_test(sockets_found_by_queue),
		cmocka_unit_test(family_and_its_commands),
		cmocka_unit_test(refusals_carry_their_text),
		cmocka_unit_test(refusals_out_of_shape),
		cmocka_unit_test(dumps_end_as_they_say),
		cmocka_unit_test(cut_messages_are_left_out),
		cmocka_unit_test(shortened_messages_keep_their_head),
		cmocka_unit_test(wrong_bytes_do_no_harm),
		cmocka_unit_test(loopback_and_its_nearest_names),
	};

	return cmocka_run_group_tests_name("netlink", tests, NULL, NULL);
}
