// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/* How probe's findings look, as text and as JSON. Called by probe.c; asks the kernel nothing. */
#include <errno.h>
#include <string.h>

#include "probe.h"

static const char *yes_no(int have)
{
	if (have == -EPERM)
		return "needs root";
	return have < 0 ? "not known" : have ? "yes" : "no";
}

static void show_features(const struct xdpath_kernel *k, const struct xdpath_port *p)
{
	for (size_t i = 0; i < nfeatures; i++) {
		const struct feature *f = &features[i];

		if ((f->source == F_KERNEL) == (p == NULL))
			row(f->name, "%-10s %s", yes_no(feature_have(f, k, p)), f->text);
	}
}

void show_kernel(const struct xdpath_kernel *k)
{
	printf("kernel %s\n", k->release);
	show_features(k, NULL);
}

void show_line(const struct probe *pr)
{
	const struct xdpath_port *p = &pr->in.port;
	enum xdpath_mode best = probe_best(pr);
	const char *why = pr->view[MODES - 1].against; /* none: what bars even the last */

	for (int i = 0; i < MODES; i++)
		if (pr->view[i].mode == best)
			why = i ? pr->view[i - 1].against : "";
	printf("%-16s %-14s %3u/%-3u %9u  %-10s %s%s\n", p->name, p->driver[0] ? p->driver : "-",
	       p->rx_queues, p->tx_queues, p->mtu,
	       best == XDPATH_MODE_AUTO ? "none" : xdpath_mode_name(best),
	       p->flags & IFF_UP ? "" : "set down; ", why);
}

static void show_hardware(const struct xdpath_port *p)
{
	row("driver", "%s%s%s", p->driver[0] ? p->driver : "none told", p->driver[0] ? " " : "",
	    p->driver_version);
	row("bus", "%s", p->bus[0] ? p->bus : "none");
	if (p->numa_node >= 0)
		row("NUMA node", "%d", p->numa_node);
	else
		row("NUMA node", "not known");
	row("MAC", "%02x:%02x:%02x:%02x:%02x:%02x", p->mac[0], p->mac[1], p->mac[2], p->mac[3],
	    p->mac[4], p->mac[5]);
	row("MTU", "%u bytes", p->mtu);
	row("link", "%s%s", p->flags & IFF_UP ? "up" : "set down",
	    !(p->flags & IFF_UP)       ? ""
	    : (p->flags & IFF_RUNNING) ? ", carrier"
				       : ", no carrier");
	row("queues", "%u RX, %u TX", p->rx_queues, p->tx_queues);
	if (p->rings_known)
		row("NIC rings", "RX %u of at most %u, TX %u of at most %u slots", p->ring_rx,
		    p->ring_rx_max, p->ring_tx, p->ring_tx_max);
	else
		row("NIC rings", "not told by the driver");
	row("RX VLAN stripping", "%s", p->rxvlan ? "on" : "off");
	row("LRO", "%s", p->lro ? "on" : "off");
	if (p->peer_ifindex)
		row("peer or lower", "ifindex %u", p->peer_ifindex);
}

static void show_modes(const struct probe *pr)
{
	const struct xdpath_port *p = &pr->in.port;
	bool tried = pr->view[0].tried;
	enum xdpath_mode best = probe_best(pr);

	row(tried ? "best mode obtained" : "best mode", "%s%s%s",
	    best == XDPATH_MODE_AUTO ? "none" : xdpath_mode_name(best),
	    !tried && best && !(p->flags & IFF_UP) ? ", once the interface is up" : "",
	    !tried && !p->features_known ? " (the kernel tells no features: --try finds out)" : "");
	for (int i = 0; i < MODES; i++) {
		const struct mode_view *v = &pr->view[i];

		if (v->tried && v->obtained)
			row(xdpath_mode_name(v->mode), "obtained");
		else if (v->tried)
			row(xdpath_mode_name(v->mode), "refused: %s", v->diag.text);
		else if (v->against[0])
			row(xdpath_mode_name(v->mode), "no: %s", v->against);
		else
			row(xdpath_mode_name(v->mode), "nothing speaks against it");
	}
}

void show_device(const struct probe *pr)
{
	const struct xdpath_port *p = &pr->in.port;

	printf("%s (ifindex %d%s%s)\n", p->name, p->ifindex, p->kind[0] ? ", " : "", p->kind);
	show_hardware(p);
	show_features(&pr->kernel, p);
	if (p->zc_max_segs)
		row("zero-copy packets", "of at most %u fragment%s", p->zc_max_segs,
		    p->zc_max_segs == 1 ? "" : "s");
	print_programs(&pr->in);
	print_queues(&pr->in);
	show_modes(pr);
}

static json_t *json_have(int have)
{
	return have < 0 ? json_null() : json_boolean(have);
}

static json_t *json_features(const struct xdpath_kernel *k, const struct xdpath_port *p)
{
	json_t *o = json_object();

	for (size_t i = 0; i < nfeatures; i++)
		if ((features[i].source == F_KERNEL) == (p == NULL))
			json_object_set_new(o, features[i].name,
					    json_have(feature_have(&features[i], k, p)));
	return o;
}

json_t *json_kernel(const struct xdpath_kernel *k)
{
	json_t *o = json_object();

	json_object_set_new(o, "release", json_text(k->release));
	json_object_set_new(o, "features", json_features(k, NULL));
	return o;
}

static json_t *json_modes(const struct probe *pr)
{
	json_t *list = json_array();

	for (int i = 0; i < MODES; i++) {
		const struct mode_view *v = &pr->view[i];
		const char *why = v->tried ? v->diag.text : v->against;
		bool good = v->tried ? v->obtained : !v->against[0];
		json_t *o = json_object();

		json_object_set_new(o, "mode", json_string(xdpath_mode_name(v->mode)));
		json_object_set_new(o, "expected", json_boolean(!v->against[0]));
		json_object_set_new(o, "obtained",
				    v->tried ? json_boolean(v->obtained) : json_null());
		json_object_set_new(o, "reason", good ? json_null() : json_text(why));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *json_text_or_null(const char *s)
{
	return s[0] ? json_text(s) : json_null();
}

static void json_hardware(json_t *o, const struct xdpath_port *p)
{
	char mac[18];

	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", p->mac[0], p->mac[1], p->mac[2],
		 p->mac[3], p->mac[4], p->mac[5]);
	json_object_set_new(o, "name", json_text(p->name));
	json_object_set_new(o, "ifindex", json_integer(p->ifindex));
	json_object_set_new(o, "kind", json_text_or_null(p->kind));
	json_object_set_new(o, "driver", json_text_or_null(p->driver));
	json_object_set_new(o, "driver_version", json_text_or_null(p->driver_version));
	json_object_set_new(o, "bus", json_text_or_null(p->bus));
	json_object_set_new(o, "numa_node",
			    p->numa_node >= 0 ? json_integer(p->numa_node) : json_null());
	json_object_set_new(o, "mac", json_string(mac));
	json_object_set_new(o, "mtu_bytes", json_integer(p->mtu));
	json_object_set_new(o, "up", json_boolean(p->flags & IFF_UP));
	json_object_set_new(o, "carrier", json_boolean(p->flags & IFF_RUNNING));
	json_object_set_new(o, "rx_queues", json_integer(p->rx_queues));
	json_object_set_new(o, "tx_queues", json_integer(p->tx_queues));
	json_object_set_new(o, "rings",
			    p->rings_known ? json_pack("{s:I, s:I, s:I, s:I}", "rx_slots",
						       (json_int_t)p->ring_rx, "rx_slots_max",
						       (json_int_t)p->ring_rx_max, "tx_slots",
						       (json_int_t)p->ring_tx, "tx_slots_max",
						       (json_int_t)p->ring_tx_max)
					   : json_null());
	json_object_set_new(o, "rx_vlan_stripping", json_boolean(p->rxvlan));
	json_object_set_new(o, "lro", json_boolean(p->lro));
	json_object_set_new(o, "peer_ifindex",
			    p->peer_ifindex ? json_integer(p->peer_ifindex) : json_null());
}

json_t *json_device(const struct probe *pr)
{
	const struct xdpath_port *p = &pr->in.port;
	enum xdpath_mode best = probe_best(pr);
	json_t *o = json_object();

	json_hardware(o, p);
	json_object_set_new(o, "features", json_features(&pr->kernel, p));
	json_object_set_new(o, "zero_copy_max_fragments",
			    p->features_known ? json_integer(p->zc_max_segs) : json_null());
	json_object_set_new(o, "programs", json_programs(&pr->in));
	json_object_set_new(o, "queues_taken", json_queues(&pr->in));
	json_object_set_new(o, "best_mode",
			    best == XDPATH_MODE_AUTO ? json_null()
						     : json_string(xdpath_mode_name(best)));
	json_object_set_new(o, "modes", json_modes(pr));
	return o;
}
