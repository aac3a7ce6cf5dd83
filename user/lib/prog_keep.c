// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * The kept form: a program attached by netlink, or beside others through libxdp, which stays when
 * its loader has gone. Called by the attach verb. Nothing is owned afterwards: what is attached is
 * found again by its id.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include <xdpath/steer.h>

#include "filter.h"
#include "prog_form.h"

/* One xdpath_prog_attach() under way. */
struct keeping {
	const struct xdpath_port *port;
	struct xdpath_attach_opts o;
	struct xdpath_load l;
	bool beside;
	void *image;	/* ours with the rules' filters, or NULL */
	bool pins_made; /* the folder of the pins is ours */
};

/* Something is in place, which is in the way or a dispatcher to join. */
static int look(struct keeping *k)
{
	struct xdpath_prog_info there[XDPATH_PROGS_MAX];
	int n = xdpath_prog_query(k->port->ifindex, there);
	int first = n > 0 ? xdpath_prog_first(there, n) : -1;
	char what[96];

	k->beside = k->o.beside;
	if (n < 0)
		return xdpath_fail_attach(k->o.diag, k->port->name, k->o.attach, -n, "");
	if (first < 0)
		return 0;
	if (there[first].is_xdpath && there[first].layout_ok && !there[first].link_id) {
		xdpath_prog_describe(&there[first], what, sizeof(what));
		return xdpath_fail(
			k->o.diag, XDPATH_R_PROG_CONFLICT, EEXIST,
			"attach to %s: %s is attached already; `xdpath steer %s` changes "
			"its rules, `xdpath detach %s` removes it",
			k->port->name, what, k->port->name, k->port->name);
	}
	if (there[first].is_xdpath || strcmp(there[first].name, XDPATH_DISPATCHER) != 0)
		return xdpath_fail_taken(k->o.diag, k->port->name, &there[first], "is in place");
	k->beside = true;
	return 0;
}

/* ---- pins ---- */

static int pin_path(const struct keeping *k, char *out, size_t size)
{
	int n = snprintf(out, size, "%s/%s", k->o.pin, bpf_program__name(k->l.prog));

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static void unpin(const struct keeping *k)
{
	char path[256];

	if (!pin_path(k, path, sizeof(path)))
		bpf_program__unpin(k->l.prog, path);
	bpf_object__unpin_maps(k->l.obj, k->o.pin);
	if (k->pins_made)
		rmdir(k->o.pin); /* if nothing else is in it */
}

static int pin(struct keeping *k)
{
	char path[256];
	int err = pin_path(k, path, sizeof(path));

	k->pins_made = access(k->o.pin, F_OK) < 0;
	if (!err)
		err = bpf_object__pin_maps(k->l.obj, k->o.pin);
	if (!err) {
		err = bpf_program__pin(k->l.prog, path);
		if (err)
			bpf_object__unpin_maps(k->l.obj, k->o.pin);
	}
	if (err && k->pins_made)
		rmdir(k->o.pin);
	if (!err)
		return 0;
	return xdpath_fail(k->o.diag, XDPATH_R_OPTIONS, -err,
			   "pin to %s: %s; give a new folder on a bpffs (`mount -t bpf bpf "
			   "/sys/fs/bpf`)",
			   k->o.pin, xdpath_quiet_said()[0] ? xdpath_quiet_said() : strerror(-err));
}

/* ---- attach ---- */

static bool has_rules(const struct keeping *k)
{
	return k->o.rules && k->o.rules->n;
}

static int attach_netlink(struct keeping *k)
{
	uint32_t flags = xdpath_attach_flag(k->o.attach) | XDP_FLAGS_UPDATE_IF_NOEXIST;
	char ext[160] = "";
	int err = xdpath_nl_set_xdp(k->port->ifindex, k->l.fd, flags, ext, sizeof(ext));

	return err ? xdpath_fail_attach(k->o.diag, k->port->name, k->o.attach, -err, ext) : 0;
}

static void undo_beside(const struct keeping *k)
{
	const struct xdpath_prog_info in = {.id = k->l.id, .attach = k->o.attach};

	xdpath_beside_detach(k->port, &in, NULL);
}

/* What a loaded program needs before it is left alone. */
static int fill_in(struct keeping *k)
{
	int err = xdpath_load_configure(&k->l, k->o.steer, 0, k->o.diag);

	if (!err && has_rules(k))
		err = xdpath_steer_begin(k->l.id, k->o.rules, k->o.diag);
	if (!err && k->o.pin)
		err = pin(k);
	return err;
}

/* libxdp loads while it attaches: what the program needs is written right after. */
static int put_beside(struct keeping *k)
{
	const struct xdpath_beside_opts bo = {.attach = k->o.attach,
					      .prio = k->o.prio,
					      .actions = k->o.actions};
	int err = xdpath_beside_attach(&k->l, k->port, &bo, k->o.diag);

	if (err)
		return err;
	err = fill_in(k);
	if (err)
		undo_beside(k);
	return err;
}

/* Everything is in place before the first packet meets the program. */
static int put_alone(struct keeping *k)
{
	int err = xdpath_load_finish(&k->l, k->o.diag);

	if (!err)
		err = fill_in(k);
	if (err)
		return err;
	err = attach_netlink(k);
	if (err && k->o.pin)
		unpin(k);
	return err;
}

/* What is to be loaded; filters are part of the program. */
static int choose_image(struct keeping *k, struct xdpath_image *im)
{
	int err = 0;

	*im = (struct xdpath_image){.file = k->o.file, .section = k->o.section, .name = k->o.name};
	if (k->o.file || !has_rules(k))
		return 0;
	im->data = xdpath_load_ours(&im->size);
	if (!k->image)
		err = xdpath_filter_image(im->data, im->size, k->o.rules, &k->image, k->o.diag);
	im->data = k->image;
	return err;
}

static int attach_in(struct keeping *k, enum xdpath_attach mode, struct xdpath_prog_info *out)
{
	struct xdpath_image im;
	struct xdpath_prog_info there[XDPATH_PROGS_MAX];
	int err, n;

	k->o.attach = mode;
	err = look(k);
	if (!err && !k->beside && (k->o.prio || k->o.actions))
		err = xdpath_fail(k->o.diag, XDPATH_R_OPTIONS, EINVAL,
				  "attach to %s: a priority and chain actions mean something only "
				  "beside other programs; add --beside",
				  k->port->name);
	if (!err)
		err = choose_image(k, &im);
	if (!err)
		err = xdpath_load_open(&k->l, &im, k->o.diag);
	if (err)
		return err;
	if (k->l.own && (k->o.steer || has_rules(k)))
		err = xdpath_fail(k->o.diag, XDPATH_R_OPTIONS, EINVAL,
				  "attach to %s: %s steers by itself; leave --all and rules away",
				  k->port->name, k->o.file);
	else if (k->o.file && has_rules(k)) /* its filters would have to be written into it */
		err = xdpath_fail(k->o.diag, XDPATH_R_OPTIONS, EINVAL,
				  "attach to %s: %s is attached without rules; put them in by "
				  "`xdpath steer %s`",
				  k->port->name, k->o.file, k->port->name);
	else
		err = k->beside ? put_beside(k) : put_alone(k);
	xdpath_load_close(&k->l);
	if (err)
		return err;
	n = xdpath_prog_query(k->port->ifindex, there);
	for (int i = 0; i < n; i++)
		if (there[i].id == k->l.id) {
			*out = there[i];
			return 0;
		}
	return xdpath_fail(k->o.diag, XDPATH_R_PROG_CONFLICT, EBUSY,
			   "attach to %s: the program was removed again at once, by someone else; "
			   "see `bpftool net show dev %s`",
			   k->port->name, k->port->name);
}

static int check(const struct xdpath_port *p, const struct xdpath_attach_opts *o)
{
	if (!p || !o || xdpath_opts_check(o, o->sz, sizeof(*o)))
		return -EINVAL;
	if ((unsigned int)o->attach > XDPATH_ATTACH_GENERIC ||
	    (unsigned int)o->steer > XDPATH_STEER_L2)
		return xdpath_fail(o->diag, XDPATH_R_OPTIONS, EINVAL,
				   "attach to %s: mode %u or steering %u is unknown; take one of "
				   "enum xdpath_attach and enum xdpath_steer",
				   p->name, (unsigned int)o->attach, (unsigned int)o->steer);
	if (!o->file && (o->section || o->name))
		return xdpath_fail(o->diag, XDPATH_R_OPTIONS, EINVAL,
				   "attach to %s: a section or name chooses a program of a file; "
				   "name the file too",
				   p->name);
	return 0;
}

int xdpath_prog_attach(const struct xdpath_port *p, const struct xdpath_attach_opts *o,
		       struct xdpath_prog_info *out)
{
	struct keeping k = {.port = p};
	struct xdpath_diag first = {0};
	struct xdpath_quiet quiet;
	enum xdpath_attach mode;
	int err = check(p, o);

	if (err)
		return err;
	memcpy(&k.o, o, o->sz < sizeof(k.o) ? o->sz : sizeof(k.o));
	mode = o->attach ? o->attach : XDPATH_ATTACH_NATIVE;
	if (!o->attach)
		k.o.diag = &first;
	xdpath_quiet_begin(&quiet);
	err = attach_in(&k, mode, out);
	if (err && !o->attach && xdpath_fail_is_of_mode(first.reason)) {
		k.o.diag = o->diag;
		xdpath_quiet_end(&quiet); /* what was said of native mode is in `first` */
		xdpath_quiet_begin(&quiet);
		err = attach_in(&k, XDPATH_ATTACH_GENERIC, out);
	}
	xdpath_quiet_end(&quiet);
	free(k.image);
	if (o->diag && !o->attach && (!err || k.o.diag == &first))
		*o->diag = first; /* why it failed, or why it is generic */
	return err;
}
