/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What a run changes on a device, and how it is put back.
 *
 * Promiscuity is a membership of a packet socket: the kernel drops it with us. RX VLAN stripping
 * and LRO are device-wide settings, so their old values are saved in
 * /run/xdpath/device/<netns>-<ifindex> before they are changed. Users share a lock on that file;
 * the last one restores. A file that nobody has locked was left by a crash: the next run restores
 * from it first.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

#define DEVICE_DIR XDPATH_RUN_DIR "/device"
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif
#define OFFLOADS ((uint32_t)(ETH_FLAG_RXVLAN | ETH_FLAG_LRO))

struct xdpath_device {
	int promisc_fd, state_fd;
	int ifindex;
	char path[96];
};

static int ethtool_flags(const char *name, uint32_t cmd, uint32_t *flags)
{
	struct ethtool_value v = {.cmd = cmd, .data = *flags};
	struct ifreq ifr = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ifr.ifr_data = (void *)&v;
	if (ioctl(fd, SIOCETHTOOL, &ifr) < 0)
		err = -errno;
	*flags = v.data;
	close(fd);
	return err;
}

/* Turn the bits of `mask` to `want`; others stay. */
static int set_offloads(const char *name, uint32_t mask, uint32_t want)
{
	uint32_t flags = 0;
	int err = ethtool_flags(name, ETHTOOL_GFLAGS, &flags);

	if (err)
		return err;
	want = (flags & ~mask) | (want & mask);
	return want == flags ? 0 : ethtool_flags(name, ETHTOOL_SFLAGS, &want);
}

static int hold_promisc(struct xdpath_device *d)
{
	struct packet_mreq mr = {.mr_ifindex = d->ifindex, .mr_type = PACKET_MR_PROMISC};

	d->promisc_fd =
		socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); /* protocol 0: receives nothing */
	if (d->promisc_fd < 0)
		return -errno;
	if (setsockopt(d->promisc_fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &mr, sizeof(mr)) < 0)
		return -errno;
	return 0;
}

/* Never used twice, unlike the inode and the ifindex that name the file. */
static uint64_t netns_cookie(void)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) < 0)
		cookie = 0; /* before 5.14 */
	close(fd);
	return cookie;
}

/*
 * The file says which bits a run turned off, on which device of which namespace: "MASK NAME
 * COOKIE", numbers in hex. A file that means another device has nothing to restore here.
 * name: NULL for a device that was held all the time, which may have been renamed.
 */
static uint32_t read_state(int fd, const char *name)
{
	char line[64] = "", of[IFNAMSIZ] = "";
	unsigned long long cookie = 0;
	unsigned int mask = 0;

	if (pread(fd, line, sizeof(line) - 1, 0) > 0)
		sscanf(line, "%x %15s %llx", &mask, of, &cookie);
	return (!name || strcmp(of, name) == 0) && cookie == netns_cookie() ? mask & OFFLOADS : 0;
}

static int write_state(int fd, const char *name, uint32_t mask)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%x %s %llx\n", mask, name,
			 (unsigned long long)netns_cookie());

	if (ftruncate(fd, 0) < 0 || pwrite(fd, line, (size_t)n, 0) != n)
		return -errno;
	return 0;
}

/*
 * Open the state file with a shared lock; *first when no other run uses the device. An exclusive
 * lock tells that, and is then turned into a shared one once the file is written.
 */
static int open_state(struct xdpath_device *d, bool *first)
{
	for (int tries = 0; tries < 50; tries++) {
		mkdir(XDPATH_RUN_DIR, 0755);
		mkdir(DEVICE_DIR, 0755);
		d->state_fd = open(d->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		if (d->state_fd < 0) {
			if (errno == ENOENT)
				continue;
			return -errno;
		}
		*first = flock(d->state_fd, LOCK_EX | LOCK_NB) == 0;
		if ((*first || flock(d->state_fd, LOCK_SH | LOCK_NB) == 0) &&
		    xdpath_lock_is_file(d->state_fd, d->path))
			return 0;
		close(d->state_fd);
		d->state_fd = -1;
		usleep(2000); /* another run is just starting or ending */
	}
	return -EBUSY;
}

static int hold_offloads(struct xdpath_device *d, const struct xdpath_port *p)
{
	uint32_t flags = 0, off;
	bool first = false;
	int err;

	err = ethtool_flags(p->name, ETHTOOL_GFLAGS, &flags);
	if (err == -EOPNOTSUPP)
		return 0; /* the device has no such settings: nothing to turn off */
	if (err)
		return err;
	err = open_state(d, &first);
	if (err)
		return err;
	if (!first)
		return 0;			/* turned off already; the last of us restores */
	off = read_state(d->state_fd, p->name); /* not empty: a crashed run had these on */
	off |= flags & OFFLOADS;
	err = write_state(d->state_fd, p->name, off);
	if (!err)
		err = set_offloads(p->name, off, 0);
	if (err == -EOPNOTSUPP || err == -EINVAL)
		err = 0; /* "on [fixed]": said by probe, and frames then come as the device gives
			    them */
	flock(d->state_fd, LOCK_SH);
	return err;
}

/* What a crashed run left turned off, put back by a run that has no wish of its own. */
static void restore_leftover(const char *path, const struct xdpath_port *p)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint32_t off;

	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && xdpath_lock_is_file(fd, path)) {
		off = read_state(fd, p->name);
		set_offloads(p->name, off, off);
		unlink(path);
	}
	close(fd);
}

static void state_path(const struct xdpath_port *p, char *out, size_t size)
{
	snprintf(out, size, DEVICE_DIR "/%llu-%d", (unsigned long long)p->netns, p->ifindex);
}

void xdpath_device_restore(const struct xdpath_port *p)
{
	char path[96];

	state_path(p, path, sizeof(path));
	restore_leftover(path, p);
	rmdir(DEVICE_DIR);
	rmdir(XDPATH_RUN_DIR);
}

int xdpath_device_hold(struct xdpath_device **out, const struct xdpath_port *p, bool promisc,
		       bool plain_rx, struct xdpath_diag *diag)
{
	struct xdpath_device *d = calloc(1, sizeof(*d));
	int err = 0;

	*out = NULL;
	if (!d)
		return -ENOMEM;
	d->promisc_fd = d->state_fd = -1;
	d->ifindex = p->ifindex;
	state_path(p, d->path, sizeof(d->path));
	if (promisc)
		err = hold_promisc(d);
	if (err) {
		xdpath_fail(diag, XDPATH_R_PERMISSION, -err,
			    "%s: promiscuous mode refused: %s; run as root (CAP_NET_RAW)", p->name,
			    strerror(-err));
	} else if (!plain_rx) {
		restore_leftover(d->path, p);
	} else {
		err = hold_offloads(d, p);
		if (err)
			xdpath_fail(diag, XDPATH_R_REFUSED, -err,
				    "%s: RX VLAN stripping and LRO could not be turned off: %s; "
				    "`ethtool -K %s rxvlan off lro off` shows the driver's reason",
				    p->name, strerror(-err), p->name);
	}
	if (err) {
		xdpath_device_release(d);
		return err;
	}
	*out = d;
	return 0;
}

void xdpath_device_release(struct xdpath_device *d)
{
	char name[IFNAMSIZ];
	uint32_t off;

	if (!d)
		return;
	if (d->promisc_fd >= 0)
		close(d->promisc_fd);
	if (d->state_fd >= 0) {
		if (flock(d->state_fd, LOCK_EX | LOCK_NB) == 0) { /* we are the last */
			if (if_indextoname((unsigned int)d->ifindex, name)) {
				off = read_state(d->state_fd, NULL);
				set_offloads(name, off, off);
			}
			unlink(d->path);
		}
		close(d->state_fd);
		rmdir(DEVICE_DIR);
		rmdir(XDPATH_RUN_DIR);
	}
	free(d);
}
