/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Netlink answers of real drivers, recorded, and what is read out of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>

#include "netlink_parse.h"

/*
 * The payload of what Linux 7.3.4 (Debian 7.3.4+deb13-amd64) sent under
 * QEMU 10.0.2 on 2026-11-30, igb with `ethtool -L combined 2`, virtio_net with one queue. Their
 * ifindexes were 2 and 4.
 */
static const char *const igb_dev =
	"0101000008000100020000000c0003000b000000000000000c00050000000000000000000c00060000000000"
	"000000000800040001000000";
static const char *const virtio_dev =
	"0101000008000100040000000c0003002b000000000000000c00050000000000000000000c00060000000000"
	"000000000800040001000000";
static const char *const igb_dev_attached =
	"0101000008000100030000000c0003004f000000000000000c00050000000000000000000c00060000000000"
	"000000000800040001000000"; /* ifindex 3 */
static const char *const virtio_dev_attached =
	"0101000008000100050000000c0003006f000000000000000c00050000000000000000000c00060000000000"
	"000000000800040001000000"; /* ifindex 5 */
/* With a program attached and 2 of its 4 queues bound by AF_XDP: 4 RX queues are in use. */
static const char *const virtio_queue_attached[] = {
	"0a010000080001000000000008000300000000000800020005000000080004000520000004000780",
	"0a010000080001000100000008000300000000000800020005000000080004000620000004000780",
	"0a0100000800010002000000080003000000000008000200050000000800040007200000",
	"0a0100000800010003000000080003000000000008000200050000000800040008200000",
	"0a01000008000100000000000800030001000000080002000500000004000780",
	"0a01000008000100010000000800030001000000080002000500000004000780",
};
static const char *const igb_queue[] = {
	"0a0100000800010000000000080003000000000008000200020000000800040001200000",
	"0a0100000800010001000000080003000000000008000200020000000800040002200000",
	"0a0100000800010000000000080003000100000008000200020000000800040003200000",
	"0a0100000800010001000000080003000100000008000200020000000800040004200000",
};
static const char *const virtio_queue[] = {
	"0a0100000800010000000000080003000000000008000200040000000800040009200000",
	"0a010000080001000000000008000300010000000800020004000000",
};
static const char *const igb_napi[] = {
	"0b0100000800020004200000080001000200000008000300220000000800080000000000080005000000000008"
	"000700000000000800060000000000",
	"0b0100000800020003200000080001000200000008000300210000000800080000000000080005000000000008"
	"000700000000000800060000000000",
	"0b0100000800020002200000080001000200000008000300200000000800080000000000080005000000000008"
	"000700000000000800060000000000",
	"0b01000008000200012000000800010002000000080003001f0000000800080000000000080005000000000008"
	"000700000000000800060000000000",
};
static const char *const virtio_napi =
	"0b01000008000200092000000800010004000000080008000000000008000500000000000800070000000000"
	"0800060000000000";

/* As one answer of a conversation. */
static int give_recorded(int (*cb)(const struct nlmsghdr *, void *), void *ctx, const char *hex)
{
	struct xdpath_nl_reply r = {.seq = 7, .portid = 4711, .cb = cb, .ctx = ctx};
	char buf[512];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	size_t len = strlen(hex) / 2;
	uint8_t *p = mnl_nlmsg_put_extra_header(nlh, len);

	nlh->nlmsg_type = 20;
	nlh->nlmsg_seq = r.seq;
	nlh->nlmsg_pid = r.portid;
	for (size_t i = 0; i < len; i++) {
		char two[3] = {hex[2 * i], hex[2 * i + 1], 0};

		p[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return xdpath_nl_consume(&r, nlh, nlh->nlmsg_len);
}

static void recorded_device_features(void **state)
{
	struct xdpath_port igb = {.ifindex = 2}, virtio = {.ifindex = 4};

	(void)state;
	assert_int_equal(give_recorded(xdpath_nl_parse_netdev, &igb, igb_dev), 1);
	assert_true(igb.features_known);
	assert_int_equal(igb.xdp_features, XDPATH_XDP_ACT_BASIC | XDPATH_XDP_ACT_REDIRECT |
						   XDPATH_XDP_ACT_XSK_ZEROCOPY);
	assert_int_equal(igb.zc_max_segs, 1);
	assert_int_equal(igb.rx_metadata, 0);
	assert_int_equal(igb.xsk_features, 0);
	assert_int_equal(give_recorded(xdpath_nl_parse_netdev, &virtio, virtio_dev), 1);
	assert_int_equal(virtio.xdp_features, igb.xdp_features | XDPATH_XDP_ACT_RX_SG);
	assert_int_equal(virtio.zc_max_segs, 1);
	assert_int_equal(give_recorded(xdpath_nl_parse_netdev, &igb, virtio_dev), 1);
	assert_false(igb.xdp_features & XDPATH_XDP_ACT_RX_SG); /* another's: passed over */
}

/* Both take redirected frames only while a program is attached; virtio_net also opens queues. */
static void recorded_with_a_program_attached(void **state)
{
	struct xdpath_port igb = {.ifindex = 3}, virtio = {.ifindex = 5};
	struct xdpath_queue_facts q = {.ifindex = 5};
	uint64_t xmit = XDPATH_XDP_ACT_NDO_XMIT | XDPATH_XDP_ACT_NDO_XMIT_SG;

	(void)state;
	assert_int_equal(give_recorded(xdpath_nl_parse_netdev, &igb, igb_dev_attached), 1);
	assert_int_equal(igb.xdp_features & xmit, xmit);
	assert_int_equal(give_recorded(xdpath_nl_parse_netdev, &virtio, virtio_dev_attached), 1);
	assert_int_equal(virtio.xdp_features & xmit, xmit);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(give_recorded(xdpath_nl_parse_queue, &q, virtio_queue_attached[i]),
				 1);
	assert_int_equal(q.rx, 4);
	assert_int_equal(q.tx, 2);
	assert_int_equal(q.taken[0], 3);
}

static void recorded_queues_and_napis(void **state)
{
	struct xdpath_queue_facts igb = {.ifindex = 2}, virtio = {.ifindex = 4};
	struct xdpath_napi_facts n = {.ifindex = 2};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(give_recorded(xdpath_nl_parse_queue, &igb, igb_queue[i]), 1);
		assert_int_equal(give_recorded(xdpath_nl_parse_napi, &n, igb_napi[i]), 1);
	}
	assert_int_equal(igb.rx, 2);
	assert_int_equal(igb.tx, 2);
	assert_int_equal(igb.napi[0][0], 0x2001);
	assert_int_equal(igb.napi[1][1], 0x2004);
	assert_int_equal(igb.taken[0], 0);
	assert_int_equal(give_recorded(xdpath_nl_parse_napi, &n, virtio_napi), 1); /* another's */
	assert_int_equal(n.count, 4);
	assert_int_equal(n.settable, 4);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(give_recorded(xdpath_nl_parse_queue, &virtio, virtio_queue[i]), 1);
	assert_int_equal(virtio.rx, 1);
	assert_int_equal(virtio.tx, 1);
	assert_int_equal(virtio.napi[0][0], 0x2009);
	assert_int_equal(virtio.napi[1][0], 0); /* virtio_net tells none for TX */
	n = (struct xdpath_napi_facts){.ifindex = 4};
	assert_int_equal(give_recorded(xdpath_nl_parse_napi, &n, virtio_napi), 1);
	assert_int_equal(n.count, 1);
	assert_int_equal(n.settable, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_device_features),
		cmocka_unit_test(recorded_with_a_program_attached),
		cmocka_unit_test(recorded_queues_and_napis),
	};

	return cmocka_run_group_tests_name("recorded", tests, NULL, NULL);
}
