// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * `xdpath probe`: what kernel, driver, device and queue can do, and why not better. Asks, and
 * changes nothing; with --try it opens each mode on queue 0 and closes it again.
 */
#include <errno.h>
#include <string.h>

#include "probe.h"

#define VERB_NAME "probe"

const struct feature features[] = {
	{"af-xdp", "AF_XDP sockets", XDPATH_K_AF_XDP, F_KERNEL, -1},
	{"need-wakeup", "kick only when the kernel sleeps", XDPATH_K_NEED_WAKEUP, F_KERNEL, -1},
	{"unaligned", "chunks of any size and place", XDPATH_K_UNALIGNED, F_KERNEL, -1},
	{"shared-umem", "one UMEM for several queues and devices", XDPATH_K_SHARED_UMEM, F_KERNEL,
	 -1},
	{"fragments", "packets of several fragments (XDP_USE_SG)", XDPATH_K_MULTI_BUFFER, F_KERNEL,
	 -1},
	{"tx-budget", "frames per kick settable in copy mode", XDPATH_K_TX_BUDGET, F_KERNEL, -1},
	{"tx-metadata", "requests with a packet to send", XDPATH_K_TX_METADATA, F_KERNEL, -1},
	{"busy-poll", "SO_PREFER_BUSY_POLL", XDPATH_K_BUSY_POLL, F_KERNEL, -1},
	{"netdev", "device features by netlink", XDPATH_K_NETDEV, F_KERNEL, -1},
	{"queue-get", "... queues, and whether they are taken", XDPATH_K_QUEUE_GET, F_KERNEL, -1},
	{"napi-set", "... interrupt deferral per NAPI", XDPATH_K_NAPI_SET, F_KERNEL, -1},
	{"sock-diag", "holders of sockets by sock_diag", XDPATH_K_SOCK_DIAG, F_KERNEL, -1},
	{"native", "XDP in the driver", XDPATH_XDP_ACT_BASIC, F_XDP, -1},
	{"redirect", "... redirect, to AF_XDP too", XDPATH_XDP_ACT_REDIRECT, F_XDP, -1},
	{"multi-buffer", "... packets of several buffers", XDPATH_XDP_ACT_RX_SG, F_XDP,
	 XDPATH_K_MULTI_BUFFER},
	{"transmit", "... takes redirected frames (now)", XDPATH_XDP_ACT_NDO_XMIT, F_XDP, -1},
	{"transmit-multi-buffer", "... of several buffers", XDPATH_XDP_ACT_NDO_XMIT_SG, F_XDP, -1},
	{"offload", "XDP in the NIC itself", XDPATH_XDP_ACT_HW_OFFLOAD, F_XDP, -1},
	{"zero-copy", "the NIC works in the UMEM itself", XDPATH_XDP_ACT_XSK_ZEROCOPY, F_XDP, -1},
	{"zero-copy-multi-buffer", "... packets of several fragments", 0, F_SEGS,
	 XDPATH_K_MULTI_BUFFER},
	{"rx-timestamp", "receive time from the NIC", 1 << 0, F_RXMD, -1},
	{"rx-hash", "flow hash from the NIC", 1 << 1, F_RXMD, -1},
	{"rx-vlan", "stripped VLAN tag from the NIC", 1 << 2, F_RXMD, -1},
	{"tx-timestamp", "send time from the NIC", 1 << 0, F_XSK, XDPATH_K_TX_METADATA},
	{"tx-checksum", "checksums by the NIC", 1 << 1, F_XSK, XDPATH_K_TX_METADATA},
	{"launch-time", "send at a given time", 1 << 2, F_XSK, XDPATH_K_TX_METADATA},
};

const size_t nfeatures = sizeof(features) / sizeof(features[0]);

static bool device_has(const struct feature *f, const struct xdpath_port *p)
{
	switch (f->source) {
	case F_XDP: return p->xdp_features & f->bit;
	case F_SEGS: return p->zc_max_segs > 1;
	case F_RXMD: return p->rx_metadata & f->bit;
	case F_XSK: return p->xsk_features & f->bit;
	case F_KERNEL: break;
	}
	return false;
}

int feature_have(const struct feature *f, const struct xdpath_kernel *k,
		 const struct xdpath_port *p)
{
	if (f->source == F_KERNEL)
		return k->point[f->bit];
	if (!p || !p->features_known)
		return -ENODATA;
	if (!device_has(f, p))
		return 0;
	return f->also >= 0 ? k->point[f->also] : 1;
}

static const struct feature *find_feature(const char *name, size_t len)
{
	for (size_t i = 0; i < nfeatures; i++)
		if (strlen(features[i].name) == len && strncmp(features[i].name, name, len) == 0)
			return &features[i];
	return NULL;
}

static int unknown_feature(const char *name, size_t len)
{
	char list[640] = "";
	size_t at = 0;

	for (size_t i = 0; i < nfeatures && at < sizeof(list); i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", i ? ", " : "",
				       features[i].name);
	return fail(VERB_NAME, EXIT_USAGE, "--require %.*s: no such feature; known are: %s",
		    (int)len, name, list);
}

/* One of the list, looked up before anything else: a typing error must not read as "missing". */
static int check_names(const char *require, bool have_dev)
{
	for (const char *s = require; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
		size_t len = strcspn(s, ",");
		const struct feature *f = find_feature(s, len);

		if (!f)
			return unknown_feature(s, len);
		if (f->source != F_KERNEL && !have_dev)
			return fail(VERB_NAME, EXIT_USAGE,
				    "--require %s: a feature of a device, and none is named; "
				    "say `xdpath probe DEV --require %s`",
				    f->name, f->name);
	}
	return EXIT_DONE;
}

int probe_require(const char *require, const struct probe *pr, bool have_dev)
{
	for (const char *s = require; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
		const struct feature *f = find_feature(s, strcspn(s, ","));
		const char *where = f->source == F_KERNEL ? "kernel" : pr->in.port.name;
		int have = feature_have(f, &pr->kernel, have_dev ? &pr->in.port : NULL);

		if (have == 0)
			return fail(VERB_NAME, EXIT_MISSING,
				    "%s: %s is required and not there; `xdpath probe%s%s` lists "
				    "what is",
				    where, f->name, have_dev ? " " : "",
				    have_dev ? pr->in.port.name : "");
		if (have == -EPERM)
			return fail(VERB_NAME, EXIT_MISSING,
				    "%s: %s is required and could not be asked for without "
				    "privilege; run as root",
				    where, f->name);
		if (have < 0)
			return fail(VERB_NAME, EXIT_MISSING,
				    "%s: %s is required and this kernel does not tell (%s); "
				    "`xdpath probe DEV --try` tries the modes",
				    where, f->name, strerror(-have));
	}
	return EXIT_DONE;
}

static int probe_all(struct probe *pr, json_t *list)
{
	struct if_nameindex *all = if_nameindex();
	struct xdpath_diag diag;

	if (!all)
		return fail(VERB_NAME, EXIT_FAILED,
			    "interfaces: the kernel does not list them: %s; see whether `ip link` "
			    "works",
			    strerror(errno));
	if (!list) {
		show_kernel(&pr->kernel);
		putchar('\n');
		printf("%-16s %-14s %7s %9s  %-10s %s\n", "interface", "driver", "queues", "MTU",
		       "best mode", "why not better");
	}
	for (struct if_nameindex *i = all; i->if_index; i++) {
		if (inspect_port(&pr->in, i->if_name, &diag))
			continue; /* went away meanwhile */
		probe_judge(pr);
		if (list)
			json_array_append_new(list, json_device(pr));
		else
			show_line(pr);
	}
	if_freenameindex(all);
	return EXIT_DONE;
}

static int probe_one(struct probe *pr, const struct args *a, json_t *list)
{
	struct xdpath_diag diag;
	int err = inspect_port(&pr->in, a->dev[0], &diag);

	if (err)
		return fail_diag(VERB_NAME, &diag, err);
	xdpath_nic_query(&pr->nic, &pr->in.port);
	probe_judge(pr);
	if (a->try_modes)
		probe_try(pr, &a->knobs);
	if (list) {
		json_array_append_new(list, json_device(pr));
	} else {
		show_kernel(&pr->kernel);
		putchar('\n');
		show_device(pr);
	}
	return EXIT_DONE;
}

int cmd_probe(const struct args *a)
{
	bool have_dev = a->ndev > 0;
	struct probe pr = {0};
	json_t *list = NULL;
	int code;

	if (a->try_modes && !have_dev)
		return fail(VERB_NAME, EXIT_USAGE,
			    "--try: no interface is named; say which one: "
			    "`xdpath probe DEV --try`");
	code = check_names(a->require, have_dev);
	if (code != EXIT_DONE)
		return code;
	xdpath_kernel_query(&pr.kernel);
	if (a->json)
		list = json_array();
	code = have_dev ? probe_one(&pr, a, list) : probe_all(&pr, list);
	if (code != EXIT_DONE) {
		json_decref(list);
		return code;
	}
	if (list)
		code = json_out(VERB_NAME, json_pack("{s:o, s:o}", "kernel",
						     json_kernel(&pr.kernel), "devices", list));
	if (code == EXIT_DONE)
		code = probe_require(a->require, &pr, have_dev);
	if (code == EXIT_DONE && a->try_modes && probe_best(&pr) == XDPATH_MODE_AUTO)
		code = fail(VERB_NAME, EXIT_MISSING,
			    "%s: no mode could be opened; the reasons stand with each mode above",
			    pr.in.port.name);
	return code;
}
