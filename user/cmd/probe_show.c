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

/* What is surely not there, in one line. */
static void show_lacks(const struct xdpath_kernel *k)
{
	char list[400] = "";
	size_t at = 0;

	for (size_t i = 0; i < nfeatures && at < sizeof(list); i++)
		if (features[i].source == F_KERNEL && feature_have(&features[i], k, NULL) == 0)
			at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", at ? ", " : "",
					       features[i].name);
	row("this kernel lacks", "%s", at ? list : "none of these");
}

void show_kernel(const struct xdpath_kernel *k)
{
	const struct known_fault *f = NULL;

	printf("kernel %s\n", k->release);
	show_features(k, NULL);
	show_lacks(k);
	while ((f = known_next(f, k->release)))
		row("known fault", "%s; %s; a distribution may carry the repair", f->text,
		    f->source);
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

static void show_channels(const struct xdpath_nic *n)
{
	static const char *const name[] = {"combined", "RX", "TX"};
	const struct xdpath_channels *c[] = {&n->combined, &n->rx, &n->tx};
	char text[128] = "";
	size_t at = 0;

	for (int i = 0; i < 3; i++)
		if (c[i]->most)
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "%s%s %u of at most %u", at ? ", " : "", name[i],
					       c[i]->now, c[i]->most);
	row("channels", "%s", at ? text : "not told by the driver");
}

static void show_delay(const struct xdpath_nic *n)
{
	if (!n->coalescing_known) {
		row("interrupt delay", "not told by the driver");
		return;
	}
	row("interrupt delay", "RX %u us or %u frames%s, TX %u us or %u frames%s", n->rx_usecs,
	    n->rx_frames, n->rx_adaptive ? " (adaptive)" : "", n->tx_usecs, n->tx_frames,
	    n->tx_adaptive ? " (adaptive)" : "");
}

static void show_napi(const struct xdpath_nic *n)
{
	if (n->napis < 0) {
		row("NAPIs", "not known: this kernel does not list them; deferral is set for the "
			     "device");
		return;
	}
	if (!n->napis) {
		row("NAPIs", "none listed: nothing to busy-poll (yet)");
		return;
	}
	row("NAPIs", "%d; deferral is set for %s", n->napis,
	    n->napi_settings ? "each (netlink)" : "the device (sysfs)");
	row("NAPI of RX and TX", "%s",
	    n->napi_shared > 0	  ? "one for both ways of a queue"
	    : n->napi_shared == 0 ? "one for each way: busy-poll of RX does not move TX"
				  : "TX's not told: busy-poll of RX may not move TX");
}

static void show_quirks(const struct xdpath_port *p)
{
	const struct xdpath_quirk *q = NULL;

	while ((q = xdpath_quirk_next(q, p->driver))) {
		row("known fault", "%s: %s", q->key, q->what);
		row("", "so: %s (open.quirks)", q->done);
		row("", "seen: %s", q->seen);
		row("", "to see it: %s", q->verify);
	}
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
			row(xdpath_mode_name(v->mode), "obtained%s",
			    v->link_reset ? "; opening resets the link (no carrier for a while)"
					  : "");
		else if (v->tried)
			row(xdpath_mode_name(v->mode), "refused: %s", v->diag.text);
		else if (v->against[0])
			row(xdpath_mode_name(v->mode), "no: %s", v->against);
		else
			row(xdpath_mode_name(v->mode), "nothing speaks against it");
		if (v->notice[0])
			row("", "%s", v->notice);
	}
}

void show_device(const struct probe *pr)
{
	const struct xdpath_port *p = &pr->in.port;

	printf("%s (ifindex %d%s%s)\n", p->name, p->ifindex, p->kind[0] ? ", " : "", p->kind);
	show_hardware(p);
	show_channels(&pr->nic);
	show_delay(&pr->nic);
	show_napi(&pr->nic);
	show_features(&pr->kernel, p);
	if (p->zc_max_segs)
		row("zero-copy packets", "of at most %u fragment%s", p->zc_max_segs,
		    p->zc_max_segs == 1 ? "" : "s");
	print_programs(&pr->in);
	print_queues(&pr->in);
	show_quirks(p);
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
	json_t *o = json_object(), *faults = json_array();
	const struct known_fault *f = NULL;

	json_object_set_new(o, "release", json_text(k->release));
	json_object_set_new(o, "features", json_features(k, NULL));
	while ((f = known_next(f, k->release)))
		json_array_append_new(faults, json_pack("{s:s, s:s, s:s}", "key", f->key, "text",
							f->text, "source", f->source));
	json_object_set_new(o, "known_faults", faults);
	return o;
}

static json_t *json_u32(uint32_t v)
{
	return json_integer(v);
}

static json_t *json_channels(const struct xdpath_nic *n)
{
	if (!n->channels_known)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "combined", json_u32(n->combined.now),
			 "combined_max", json_u32(n->combined.most), "rx", json_u32(n->rx.now),
			 "rx_max", json_u32(n->rx.most), "tx", json_u32(n->tx.now), "tx_max",
			 json_u32(n->tx.most));
}

static json_t *json_delay(const struct xdpath_nic *n)
{
	if (!n->coalescing_known)
		return json_null();
	return json_pack("{s:o, s:o, s:b, s:o, s:o, s:b}", "rx_usecs", json_u32(n->rx_usecs),
			 "rx_frames", json_u32(n->rx_frames), "rx_adaptive", n->rx_adaptive,
			 "tx_usecs", json_u32(n->tx_usecs), "tx_frames", json_u32(n->tx_frames),
			 "tx_adaptive", n->tx_adaptive);
}

static json_t *json_napi(const struct xdpath_nic *n)
{
	if (n->napis < 0)
		return json_null();
	return json_pack("{s:i, s:b, s:o}", "count", n->napis, "settings_each", n->napi_settings,
			 "rx_tx_shared",
			 n->napi_shared < 0 ? json_null() : json_boolean(n->napi_shared));
}

static json_t *json_quirks(const struct xdpath_port *p)
{
	const struct xdpath_quirk *q = NULL;
	json_t *list = json_array();

	while ((q = xdpath_quirk_next(q, p->driver)))
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "key", q->key,
						      "what", q->what, "done", q->done, "seen",
						      q->seen, "verify", q->verify));
	return list;
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
		json_object_set_new(o, "errno", v->tried ? json_integer(v->diag.err) : json_null());
		json_object_set_new(o, "reason", good ? json_null() : json_text(why));
		json_object_set_new(o, "link_reset",
				    good && v->tried ? json_boolean(v->link_reset) : json_null());
		json_object_set_new(o, "notice", v->notice[0] ? json_text(v->notice) : json_null());
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
	json_object_set_new(o, "channels", json_channels(&pr->nic));
	json_object_set_new(o, "interrupt_delay", json_delay(&pr->nic));
	json_object_set_new(o, "napi", json_napi(&pr->nic));
	json_object_set_new(o, "features", json_features(&pr->kernel, p));
	json_object_set_new(o, "zero_copy_max_fragments",
			    p->features_known ? json_integer(p->zc_max_segs) : json_null());
	json_object_set_new(o, "programs", json_programs(&pr->in));
	json_object_set_new(o, "queues_taken", json_queues(&pr->in));
	json_object_set_new(o, "quirks", json_quirks(p));
	json_object_set_new(o, "best_mode",
			    best == XDPATH_MODE_AUTO ? json_null()
						     : json_string(xdpath_mode_name(best)));
	json_object_set_new(o, "modes", json_modes(pr));
	return o;
}
