// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * Port facts by the ethtool ioctls: every driver has some of them, down to the oldest kernels.
 *
 * Called by port.c. A driver that lacks an answer is normal (lo, bridges): the fact stays unknown.
 */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ethtool.h"

static bool ask(int fd, const char *name, void *data)
{
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ifr.ifr_data = data;
	return ioctl(fd, SIOCETHTOOL, &ifr) == 0;
}

/* The kernel's strings fill their field and may lack the final NUL. */
static void copy_text(char *to, size_t size, const char *from, size_t len)
{
	snprintf(to, size, "%.*s", (int)strnlen(from, len), from);
}

static void ask_driver(int fd, struct xdpath_port *p)
{
	struct ethtool_drvinfo d = {.cmd = ETHTOOL_GDRVINFO};

	if (!ask(fd, p->name, &d))
		return;
	copy_text(p->driver, sizeof(p->driver), d.driver, sizeof(d.driver));
	copy_text(p->driver_version, sizeof(p->driver_version), d.version, sizeof(d.version));
	/* Drivers without a bus write "N/A" or "tap" here; an address has digits. */
	if (strpbrk(d.bus_info, "0123456789"))
		copy_text(p->bus, sizeof(p->bus), d.bus_info, sizeof(d.bus_info));
}

static void ask_rings(int fd, struct xdpath_port *p)
{
	struct ethtool_ringparam r = {.cmd = ETHTOOL_GRINGPARAM};

	if (!ask(fd, p->name, &r))
		return;
	p->rings_known = true;
	p->ring_rx = r.rx_pending;
	p->ring_tx = r.tx_pending;
	p->ring_rx_max = r.rx_max_pending;
	p->ring_tx_max = r.tx_max_pending;
}

void xdpath_ethtool_query(struct xdpath_port *p, uint32_t *rx, uint32_t *tx)
{
	struct ethtool_channels c = {.cmd = ETHTOOL_GCHANNELS};
	struct ethtool_value flags = {.cmd = ETHTOOL_GFLAGS};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*rx = *tx = 0;
	if (fd < 0)
		return;
	ask_driver(fd, p);
	ask_rings(fd, p);
	if (ask(fd, p->name, &flags)) {
		p->rxvlan = flags.data & ETH_FLAG_RXVLAN;
		p->lro = flags.data & ETH_FLAG_LRO;
	}
	if (ask(fd, p->name, &c)) {
		*rx = c.rx_count + c.combined_count;
		*tx = c.tx_count + c.combined_count;
	}
	close(fd);
}

void xdpath_ethtool_details(struct xdpath_nic *n, const char *name)
{
	struct ethtool_channels c = {.cmd = ETHTOOL_GCHANNELS};
	struct ethtool_coalesce w = {.cmd = ETHTOOL_GCOALESCE};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	n->channels_known = ask(fd, name, &c);
	n->combined = (struct xdpath_channels){c.combined_count, c.max_combined};
	n->rx = (struct xdpath_channels){c.rx_count, c.max_rx};
	n->tx = (struct xdpath_channels){c.tx_count, c.max_tx};
	n->coalescing_known = ask(fd, name, &w);
	n->rx_usecs = w.rx_coalesce_usecs;
	n->rx_frames = w.rx_max_coalesced_frames;
	n->tx_usecs = w.tx_coalesce_usecs;
	n->tx_frames = w.tx_max_coalesced_frames;
	n->rx_adaptive = w.use_adaptive_rx_coalesce;
	n->tx_adaptive = w.use_adaptive_tx_coalesce;
	close(fd);
}
