// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * `xdpath status`: what stands on the interfaces now, asked from the kernel. Needs no running
 * datapath and changes nothing.
 */
#include <errno.h>
#include <string.h>

#include "inspect.h"

#define VERB_NAME "status"

static void print_port(const struct inspect *in)
{
	const struct xdpath_port *p = &in->port;

	printf("%s (ifindex %d%s%s, %s, MTU %u, %u RX and %u TX queues)\n", p->name, p->ifindex,
	       p->driver[0] ? ", " : "", p->driver, p->flags & IFF_UP ? "up" : "down", p->mtu,
	       p->rx_queues, p->tx_queues);
	print_programs(in);
	print_queues(in);
}

static json_t *json_port(const struct inspect *in)
{
	const struct xdpath_port *p = &in->port;
	json_t *o = json_object();

	json_object_set_new(o, "name", json_text(p->name));
	json_object_set_new(o, "ifindex", json_integer(p->ifindex));
	json_object_set_new(o, "driver", p->driver[0] ? json_text(p->driver) : json_null());
	json_object_set_new(o, "up", json_boolean(p->flags & IFF_UP));
	json_object_set_new(o, "mtu_bytes", json_integer(p->mtu));
	json_object_set_new(o, "rx_queues", json_integer(p->rx_queues));
	json_object_set_new(o, "tx_queues", json_integer(p->tx_queues));
	json_object_set_new(o, "programs", json_programs(in));
	json_object_set_new(o, "queues_taken", json_queues(in));
	return o;
}

static void show(const struct inspect *in, json_t *list)
{
	if (list)
		json_array_append_new(list, json_port(in));
	else
		print_port(in);
}

/* Every interface that has something to tell. One that vanishes meanwhile is passed over. */
static int show_all(json_t *list)
{
	struct if_nameindex *all = if_nameindex();
	struct xdpath_diag diag;
	struct inspect in;
	int shown = 0, denied = 0, looked = 0;

	if (!all)
		return fail(VERB_NAME, EXIT_FAILED,
			    "interfaces: the kernel does not list them: %s; see whether `ip link` "
			    "works",
			    strerror(errno));
	for (struct if_nameindex *i = all; i->if_index; i++) {
		if (inspect_port(&in, i->if_name, &diag))
			continue;
		looked++;
		denied += in.nprogs < 0;
		if (in.nprogs <= 0 && !in.ntaken)
			continue;
		show(&in, list);
		shown++;
	}
	if_freenameindex(all);
	if (denied && denied == looked)
		return fail(VERB_NAME, EXIT_FAILED,
			    "XDP programs: the kernel does not tell about them: %s; run as root",
			    strerror(in.nprogs < 0 ? -in.nprogs : EPERM));
	if (!shown && !list)
		puts("nothing: no interface here has an XDP program or an AF_XDP socket");
	return EXIT_DONE;
}

int cmd_status(const struct args *a)
{
	json_t *list = a->json ? json_array() : NULL;
	struct xdpath_diag diag;
	struct inspect in;
	int err, code = EXIT_DONE;

	if (a->ndev) {
		err = inspect_port(&in, a->dev[0], &diag);
		if (err)
			code = fail_diag(VERB_NAME, &diag, err);
		else
			show(&in, list);
	} else {
		code = show_all(list);
	}
	if (code != EXIT_DONE)
		json_decref(list);
	else if (list)
		code = json_out(VERB_NAME, json_pack("{s:o}", "devices", list));
	return code;
}
