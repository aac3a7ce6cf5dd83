// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * `xdpath attach` and `detach`: a program that stays when the command has ended, and its removal.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* "eth1: xdpath_steer (id 5) attached in native mode" and why it is no better one. */
static void tell_attached(const struct args *a, const struct xdpath_prog_info *in,
			  const struct xdpath_diag *d)
{
	printf("%s: %s (id %u) attached in %s mode%s%s\n", a->dev[0], in->name, in->id,
	       xdpath_attach_name(in->attach), in->dispatcher_id ? ", in a dispatcher" : "",
	       in->own ? "; it steers by itself" : "");
	if (d->text[0])
		printf("  not native: %s\n", d->text);
	if (in->dispatcher_id && !a->beside)
		printf("  beside others, as a dispatcher is in place\n");
	if (a->pin)
		printf("  pinned in %s; the pins stay until they are removed\n", a->pin);
	if (!in->own && !a->steer_given && !a->rules.n)
		printf("  no rule sends anything to user space yet; the kernel keeps everything\n");
}

int cmd_attach(const struct args *a)
{
	struct xdpath_attach_opts o = XDPATH_OPTS_INIT(struct xdpath_attach_opts);
	struct xdpath_diag d = {0};
	struct xdpath_prog_info in;
	struct xdpath_port p;
	int err = xdpath_port_query(&p, a->dev[0], &d);

	if (err)
		return fail_diag("attach", &d, err);
	o.attach = a->attach;
	o.steer = a->steer;
	o.rules = &a->rules;
	o.beside = a->beside;
	o.prio = a->prio;
	o.actions = a->actions;
	o.file = a->ndev > 1 ? a->dev[1] : NULL;
	o.section = a->section;
	o.name = a->prog_name;
	o.pin = a->pin;
	o.diag = &d;
	err = xdpath_prog_attach(&p, &o, &in);
	if (err)
		return fail_diag("attach", &d, err);
	tell_attached(a, &in, &d);
	return EXIT_DONE;
}

int cmd_detach(const struct args *a)
{
	struct xdpath_detach_opts o = XDPATH_OPTS_INIT(struct xdpath_detach_opts);
	struct xdpath_prog_info gone[XDPATH_PROGS_MAX];
	struct xdpath_diag d = {0};
	struct xdpath_port p;
	int n = xdpath_port_query(&p, a->dev[0], &d);

	if (n)
		return fail_diag("detach", &d, n);
	o.id = a->prog_id < UINT32_MAX ? (uint32_t)a->prog_id : UINT32_MAX; /* no such id */
	o.force = a->force;
	o.diag = &d;
	n = xdpath_prog_detach(&p, &o, gone);
	if (n < 0)
		return fail_diag("detach", &d, n);
	for (int i = 0; i < n; i++)
		printf("%s: %s (id %u, %s) detached\n", p.name, gone[i].name, gone[i].id,
		       xdpath_attach_name(gone[i].attach));
	if (!n)
		printf("%s: no XDP program was attached\n", p.name);
	return EXIT_DONE;
}
