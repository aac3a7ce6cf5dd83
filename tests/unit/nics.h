/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * NICs that the test machine has not: what their drivers tell, and what is to come of it.
 *
 * CONSTRUCTED, put together from the drivers' sources of Linux 6.12, but for igb and virtio_net:
 * these two are RECORDED from Linux 7.3.4 (Debian 7.3.4+deb13-amd64) under QEMU 10.0.2 on
 * 2026-11-30, the raw replies stand in
 * recorded_test.c. nic_kernel.h answers with it, nic_test.c
 * compares with it.
 */
#ifndef XDPATH_TEST_NICS_H
#define XDPATH_TEST_NICS_H

#include <xdpath/xdpath.h>

#define NATIVE	 (XDPATH_XDP_ACT_BASIC | XDPATH_XDP_ACT_REDIRECT)
#define TRANSMIT (XDPATH_XDP_ACT_NDO_XMIT | XDPATH_XDP_ACT_NDO_XMIT_SG)
#define ZEROCOPY XDPATH_XDP_ACT_XSK_ZEROCOPY
#define RX_SG	 XDPATH_XDP_ACT_RX_SG

/* Which queues tell their NAPI. */
enum napis {
	NAPI_SHARED, /* one for both ways of a queue */
	NAPI_EACH,   /* one for each way */
	NAPI_RX,     /* only RX queues do */
};

/* What the driver tells. */
struct nic {
	const char *driver, *bus;
	uint32_t queues;	  /* in use, RX and TX */
	bool channels;		  /* `ethtool -l` answers */
	uint32_t most;		  /* the most queues there can be (IFLA_NUM_*_QUEUES) */
	uint32_t ring, rings_max; /* slots, RX and TX */
	bool lro;
	uint64_t xdp, xdp_later; /* at rest; beside those once a program is attached */
	uint32_t segs;		 /* of a packet in zero-copy */
	uint64_t rxmd, xskf;
	enum napis napis;
	uint32_t rx_usecs; /* `ethtool -c` answers where it is not 0 */
	uint32_t faults;   /* entries of the quirk table that apply */
	/* what is to come of it */
	enum xdpath_mode best;
	const char *zero_copy, *copy; /* what stands against these modes, "" nothing */
	const char *features;	      /* the device's features that are there */
};

static const struct nic nics[] = {
	{.driver = "r8169",
	 .bus = "ffff:03:00.0",
	 .queues = 1,
	 .most = 1,
	 .ring = 256,
	 .rings_max = 256,
	 .best = XDPATH_MODE_GENERIC,
	 .zero_copy = "the driver r8169 has no native XDP",
	 .copy = "the driver r8169 has no native XDP",
	 .features = " "},
	{.driver = "ixgbe",
	 .bus = "ffff:04:00.0",
	 .queues = 4,
	 .channels = true,
	 .most = 64,
	 .ring = 512,
	 .rings_max = 4096,
	 .lro = true,
	 .rx_usecs = 1,
	 .xdp = NATIVE | ZEROCOPY,
	 .xdp_later = TRANSMIT,
	 .segs = 1,
	 .best = XDPATH_MODE_ZEROCOPY,
	 .zero_copy = "",
	 .copy = "",
	 .features = " native redirect zero-copy "},
	{.driver = "bnx2x",
	 .bus = "ffff:05:00.0",
	 .queues = 4,
	 .channels = true,
	 .most = 16,
	 .ring = 4078,
	 .rings_max = 4078,
	 .best = XDPATH_MODE_GENERIC,
	 .zero_copy = "the driver bnx2x has no native XDP",
	 .copy = "the driver bnx2x has no native XDP",
	 .features = " "},
	{.driver = "i40e",
	 .bus = "ffff:06:00.0",
	 .queues = 8,
	 .channels = true,
	 .most = 384,
	 .ring = 512,
	 .rings_max = 4096,
	 .xdp = NATIVE | ZEROCOPY | RX_SG,
	 .xdp_later = TRANSMIT,
	 .segs = 8,
	 .best = XDPATH_MODE_ZEROCOPY,
	 .zero_copy = "",
	 .copy = "",
	 .features = " native redirect multi-buffer zero-copy zero-copy-multi-buffer "},
	{.driver = "mlx5_core",
	 .bus = "ffff:07:00.0",
	 .queues = 8,
	 .channels = true,
	 .most = 512,
	 .ring = 1024,
	 .rings_max = 8192,
	 .xdp = NATIVE | ZEROCOPY | RX_SG | TRANSMIT,
	 .segs = 1,
	 .rxmd = 7,
	 .xskf = 3,
	 .best = XDPATH_MODE_ZEROCOPY,
	 .zero_copy = "",
	 .copy = "",
	 .features = " native redirect multi-buffer transmit transmit-multi-buffer zero-copy "
		     "rx-timestamp rx-hash rx-vlan tx-timestamp tx-checksum "},
	{.driver = "igb",
	 .bus = "0000:01:00.0",
	 .queues = 2,
	 .channels = true,
	 .most = 8,
	 .ring = 256,
	 .rings_max = 4096,
	 .xdp = NATIVE | ZEROCOPY,
	 .xdp_later = TRANSMIT,
	 .segs = 1,
	 .napis = NAPI_EACH,
	 .rx_usecs = 3,
	 .faults = 1,
	 .best = XDPATH_MODE_ZEROCOPY,
	 .zero_copy = "",
	 .copy = "",
	 .features = " native redirect zero-copy "},
	{.driver = "virtio_net",
	 .bus = "0000:00:05.0",
	 .queues = 1,
	 .channels = true,
	 .most = 1,
	 .ring = 256,
	 .rings_max = 256,
	 .xdp = NATIVE | ZEROCOPY | RX_SG,
	 .xdp_later = TRANSMIT,
	 .segs = 1,
	 .napis = NAPI_RX,
	 .best = XDPATH_MODE_ZEROCOPY,
	 .zero_copy = "",
	 .copy = "",
	 .features = " native redirect multi-buffer zero-copy "},
};

enum { R8169, IXGBE, BNX2X, I40E, MLX5, IGB, VIRTIO };

/* The machine: which NIC is its eth7, and how old or odd its kernel is. */
static struct {
	const struct nic *nic;
	bool up;
	bool no_netdev;	    /* before 6.3 */
	bool no_segs;	    /* before 6.6 */
	bool no_queue_get;  /* before 6.8 */
	bool no_channels;   /* ethtool -l is refused */
	bool no_napi_set;   /* before 6.13 */
	bool no_sock_diag;  /* built without */
	uint32_t taken;	    /* queues 0 to taken-1 have an AF_XDP socket */
	uint32_t native_id; /* of a program that is attached and cannot be looked at */
	uint32_t asked;	    /* requests for the netdev family's facts */
} machine;

#define NIC_NAME    "eth7"
#define NIC_IFINDEX 70007

#endif
