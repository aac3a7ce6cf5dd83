/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The device for the record: driver, queues, rings, offloads, coalescing, and where its packets are
 * worked on (interrupt CPUs, RPS, RFS, XPS). Called by record.c.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/mount.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ethtool.h"
#include "record_in.h"
#include "usage_in.h"

#define IRQS_MAX 256U

int record_sysfs(void)
{
	int fs = (int)syscall(SYS_fsopen, "sysfs", 1 /* FSOPEN_CLOEXEC */), fd = -1, err;

	if (fs < 0)
		return -errno;
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY);
	err = errno;
	close(fs);
	return fd < 0 ? -err : fd;
}

bool record_mask_list(const char *mask, char *out, size_t size)
{
	uint32_t cpus = 0, at = 0;
	size_t len = strcspn(mask, "\n");
	long first = -1;

	out[0] = '\0';
	if (strspn(mask, "0123456789abcdefABCDEF,") < len || !len)
		return false;
	/* from the last digit on, four CPUs each; one more round closes the last range */
	for (size_t i = len + 1; i-- > 0;) {
		char digit[2] = {i ? mask[i - 1] : '0', '\0'};
		unsigned long bits = strtoul(digit, NULL, 16);

		if (digit[0] == ',')
			continue;
		for (uint32_t b = 0; b < 4; b++, cpus++) {
			if (bits >> b & 1 && first < 0)
				first = (long)cpus;
			if (bits >> b & 1 || first < 0 || at >= size)
				continue;
			at += (uint32_t)snprintf(out + at, size - at,
						 (long)cpus - 1 > first ? "%s%ld-%u" : "%s%ld",
						 at ? "," : "", first, cpus - 1);
			first = -1;
		}
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

/* One file of each queue of a kind ("rx-", "tx-"), in order: {"rx-0": "0-3", ...}. Masks become
 * lists, numbers stay. NULL: there is no such file. */
static json_t *per_queue(int sysfs, const char *dev, const char *kind, const char *file, bool mask)
{
	char path[320], line[1024], list[256], *name[1024] = {NULL};
	json_t *o = NULL;
	struct dirent *e;
	size_t n = 0;
	int fd;
	DIR *d;

	snprintf(path, sizeof(path), "class/net/%s/queues", dev);
	fd = openat(sysfs, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	while (d && (e = readdir(d)) && n < 1024)
		if (strncmp(e->d_name, kind, strlen(kind)) == 0 && (name[n] = strdup(e->d_name)))
			n++;
	qsort(name, n, sizeof(name[0]), compare);
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", name[i], file);
		if (record_read(dirfd(d), path, line, sizeof(line))) {
			line[strcspn(line, "\n")] = '\0';
			o = o ? o : json_object();
			if (mask && record_mask_list(line, list, sizeof(list)))
				json_object_set_new(o, name[i], json_string(list));
			else if (!mask)
				json_object_set_new(o, name[i],
						    json_integer(strtoll(line, NULL, 10)));
		}
		free(name[i]);
	}
	if (d)
		closedir(d);
	return o;
}

static void record_steering(json_t *o, const char *dev)
{
	int sysfs = record_sysfs();
	const char *why = sysfs < 0 ? strerror(-sysfs) : "the driver has no such setting";

	record_put(o, "rps", sysfs < 0 ? NULL : per_queue(sysfs, dev, "rx-", "rps_cpus", true),
		   "%s", why);
	record_put(o, "rfs", sysfs < 0 ? NULL : per_queue(sysfs, dev, "rx-", "rps_flow_cnt", false),
		   "%s", why);
	record_put(o, "xps", sysfs < 0 ? NULL : per_queue(sysfs, dev, "tx-", "xps_cpus", true),
		   "%s", sysfs < 0 ? why : "one TX queue, or the kernel has no XPS");
	if (sysfs >= 0)
		close(sysfs);
	record_put(o, "rfs_entries", record_number("/proc/sys/net/core/rps_sock_flow_entries"),
		   "told in the first network namespace only");
	record_put(o, "tcp_autocorking", record_number("/proc/sys/net/ipv4/tcp_autocorking"),
		   "not told by /proc");
	record_put(o, "busy_read_us", record_number("/proc/sys/net/core/busy_read"),
		   "told in the first network namespace only");
	record_put(o, "default_qdisc", record_line(AT_FDCWD, "/proc/sys/net/core/default_qdisc"),
		   "told in the first network namespace only");
}

/* CPUs that serve each interrupt of the device: {"39": "0"}. */
static void record_irqs(json_t *o, const char *dev)
{
	uint32_t irq[IRQS_MAX], n = usage_irqs(dev, irq, IRQS_MAX);
	json_t *list = n ? json_object() : NULL;
	char path[96], number[16];

	for (uint32_t i = 0; i < n; i++) {
		json_t *cpus;

		snprintf(path, sizeof(path), "/proc/irq/%u/effective_affinity_list", irq[i]);
		cpus = record_line(AT_FDCWD, path);
		if (!cpus || !json_string_length(cpus)) {
			json_decref(cpus);
			snprintf(path, sizeof(path), "/proc/irq/%u/smp_affinity_list", irq[i]);
			cpus = record_line(AT_FDCWD, path);
		}
		snprintf(number, sizeof(number), "%u", irq[i]);
		json_object_set_new(list, number, cpus ? cpus : json_null());
	}
	record_put(o, "irq_cpus", list, "the device has no interrupt of its own");
}

static bool ask(int fd, const char *dev, void *data)
{
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", dev);
	ifr.ifr_data = data;
	return ioctl(fd, SIOCETHTOOL, &ifr) == 0;
}

/* How many features the kernel knows, 0 if the driver does not tell. */
static uint32_t feature_count(int fd, const char *dev)
{
	union {
		struct ethtool_sset_info info;
		uint32_t room[8]; /* one length behind it */
	} q = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << ETH_SS_FEATURES}};

	if (!ask(fd, dev, &q) || !q.info.sset_mask)
		return 0;
	return q.info.data[0] < 4096 ? q.info.data[0] : 4096;
}

/* Names of all features that are on, by the kernel's own list of names. */
static json_t *features(int fd, const char *dev)
{
	uint32_t n = feature_count(fd, dev);
	struct ethtool_gstrings *names = calloc(1, sizeof(*names) + (size_t)n * ETH_GSTRING_LEN);
	struct ethtool_gfeatures *on =
		calloc(1, sizeof(*on) + (n + 31) / 32 * sizeof(on->features[0]));
	json_t *list = NULL;

	if (names && on && n) {
		names->cmd = ETHTOOL_GSTRINGS;
		names->string_set = ETH_SS_FEATURES;
		names->len = n;
		on->cmd = ETHTOOL_GFEATURES;
		on->size = (n + 31) / 32;
		if (ask(fd, dev, names) && ask(fd, dev, on))
			list = json_array();
	}
	for (uint32_t i = 0; list && i < n; i++) {
		const char *name = (const char *)names->data + (size_t)i * ETH_GSTRING_LEN;
		size_t len = strnlen(name, ETH_GSTRING_LEN);

		if (on->features[i / 32].active >> i % 32 & 1 && len)
			json_array_append_new(list, json_stringn(name, len));
	}
	free(names);
	free(on);
	return list;
}

static void record_nic(json_t *o, const struct xdpath_port *p)
{
	struct xdpath_nic nic = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	xdpath_ethtool_details(&nic, p->name);
	record_put(o, "coalescing",
		   nic.coalescing_known
			   ? json_pack("{s:i, s:i, s:b, s:b}", "rx_usecs", (int)nic.rx_usecs,
				       "tx_usecs", (int)nic.tx_usecs, "rx_adaptive",
				       nic.rx_adaptive, "tx_adaptive", nic.tx_adaptive)
			   : NULL,
		   "not told by the driver");
	record_put(o, "offloads", fd < 0 ? NULL : features(fd, p->name), "not told by the driver");
	if (fd >= 0)
		close(fd);
}

static void no_device(json_t *o, const char *why)
{
	static const char *const keys[] = {"driver",	"bus",	    "queues", "rings",
					   "mtu_bytes", "offloads", "xps",    "rps",
					   "rfs",	"irq_cpus", "xdp",    "coalescing"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		record_put(o, keys[i], NULL, "%s", why);
}

void record_device(json_t *o, const char *dev)
{
	struct xdpath_diag d = {0};
	struct xdpath_port p;

	if (xdpath_port_query(&p, dev, &d)) {
		no_device(o, d.text);
		return;
	}
	json_object_set_new(o, "device", json_string(p.name));
	record_put(o, "driver", p.driver[0] ? json_string(p.driver) : NULL, "it names none");
	record_put(o, "bus", p.bus[0] ? json_string(p.bus) : NULL, "a virtual device has none");
	json_object_set_new(o, "mtu_bytes", json_integer(p.mtu));
	json_object_set_new(o, "queues",
			    json_pack("{s:i, s:i}", "rx", (int)p.rx_queues, "tx",
				      (int)p.tx_queues));
	record_put(o, "rings",
		   p.rings_known
			   ? json_pack("{s:i, s:i}", "rx", (int)p.ring_rx, "tx", (int)p.ring_tx)
			   : NULL,
		   "not told by the driver");
	json_object_set_new(o, "xdp", json_string(xdpath_attach_name(p.attached)));
	record_nic(o, &p);
	record_irqs(o, p.name);
	record_steering(o, p.name);
}
