// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * Another steering program in the place of the one that is attached, with the same maps: rules with
 * a filter need one, and so does an upgrade. Called by steer.c and the verbs.
 *
 * By link and by netlink the kernel swaps them between two packets. A dispatcher is rebuilt with
 * both in it and then without the old one.
 */
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <xdp/libxdp.h>

#include "prog_form.h"

enum { MAPS_MOST = 64 };

/* One replacement under way. */
struct replacing {
	struct xdpath_port port;
	struct xdpath_prog_info old;
	int old_fd;
	struct xdpath_load l;
	const struct xdpath_replace_opts *o;
};

static int fail_replace(const struct replacing *r, int err, const char *why)
{
	char what[96];

	xdpath_prog_describe(&r->old, what, sizeof(what));
	return xdpath_fail(r->o->diag, err == EPERM ? XDPATH_R_PERMISSION : XDPATH_R_REFUSED, err,
			   "replace %s on %s: %s; `xdpath status %s` shows what is in place", what,
			   r->port.name, why, r->port.name);
}

static int look_up(struct replacing *r, int ifindex, uint32_t id)
{
	struct xdpath_prog_info in[XDPATH_PROGS_MAX];
	int n;

	r->old.id = id;
	r->port.ifindex = ifindex;
	if (!if_indextoname((unsigned int)ifindex, r->port.name))
		return xdpath_fail(r->o->diag, XDPATH_R_NO_DEVICE, ENODEV,
				   "replace program %u: no interface %d here; see `ip link`", id,
				   ifindex);
	n = xdpath_prog_query(ifindex, in);
	for (int i = 0; i < n; i++)
		if (in[i].id == id)
			r->old = in[i];
	if (n < 0 || !r->old.attach)
		return fail_replace(r, n < 0 ? -n : ENOENT, n < 0 ? strerror(-n) : "it is gone");
	if (!r->old.is_xdpath || r->old.own || !r->old.layout_ok)
		return fail_replace(r, EPROTO, "is no steering program of this version");
	r->old_fd = bpf_prog_get_fd_by_id(id);
	return r->old_fd < 0 ? fail_replace(r, -r->old_fd, strerror(-r->old_fd)) : 0;
}

/* ---- the same maps ---- */

static bool fits(const struct bpf_map *m, const struct bpf_map_info *info)
{
	return info->type == bpf_map__type(m) && info->key_size == bpf_map__key_size(m) &&
	       info->value_size == bpf_map__value_size(m) &&
	       info->max_entries == bpf_map__max_entries(m);
}

static int use_map(const struct replacing *r, int fd)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	struct bpf_map *m;
	int err = bpf_obj_get_info_by_fd(fd, &info, &len);

	if (err)
		return fail_replace(r, -err, strerror(-err));
	bpf_object__for_each_map(m, r->l.obj)
	{
		if (bpf_map__is_internal(m) || !xdpath_same_map_name(bpf_map__name(m), info.name))
			continue;
		if (!fits(m, &info))
			return fail_replace(r, EPROTO, "the new program's maps are of other sizes");
		err = bpf_map__reuse_fd(m, fd);
		return err ? fail_replace(r, -err, strerror(-err)) : 0;
	}
	return 0; /* the new program has no such map */
}

/* Those of the old program, then those given, which prevail. */
static int use_maps(const struct replacing *r)
{
	uint32_t ids[MAPS_MOST] = {0};
	struct bpf_prog_info info = {.nr_map_ids = MAPS_MOST, .map_ids = (uintptr_t)ids};
	uint32_t len = sizeof(info);
	int err = bpf_obj_get_info_by_fd(r->old_fd, &info, &len);

	if (err)
		return fail_replace(r, -err, strerror(-err));
	for (uint32_t i = 0; !err && i < info.nr_map_ids && i < MAPS_MOST; i++) {
		int fd = bpf_map_get_fd_by_id(ids[i]);

		if (fd < 0)
			return fail_replace(r, -fd, strerror(-fd));
		err = use_map(r, fd);
		close(fd);
	}
	for (uint32_t i = 0; !err && i < r->o->nmaps; i++)
		err = use_map(r, r->o->maps[i]);
	return err;
}

/* ---- in its place ---- */

static int swap_link(const struct replacing *r)
{
	LIBBPF_OPTS(bpf_link_update_opts, uo);
	uint32_t link_id;
	int fd = xdpath_link_find(r->port.ifindex, r->old.id, &link_id), err;

	if (fd < 0)
		return fail_replace(r, -fd, "its link is gone");
	uo.flags = BPF_F_REPLACE;
	uo.old_prog_fd = (uint32_t)r->old_fd;
	err = bpf_link_update(fd, r->l.fd, &uo);
	close(fd);
	if (err == -ENOLINK)
		return fail_replace(r, ENOLINK, "somebody has detached it");
	return err ? fail_replace(r, -err, strerror(-err)) : 0;
}

static int swap_netlink(const struct replacing *r)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, ao);
	int err;

	ao.old_prog_fd = r->old_fd;
	err = bpf_xdp_attach(r->port.ifindex, r->l.fd, xdpath_attach_flag(r->old.attach), &ao);
	if (err == -EEXIST)
		return fail_replace(r, EEXIST, "another program is in its place");
	return err ? fail_replace(r, -err, strerror(-err)) : 0;
}

/* Where it stood in the dispatcher's order. */
static void read_order(const struct replacing *r, struct xdpath_beside_opts *out)
{
	struct xdp_multiprog *mp = xdp_multiprog__get_from_ifindex(r->port.ifindex);
	struct xdp_program *x = NULL;

	if (libxdp_get_error(mp))
		return;
	while ((x = xdp_multiprog__next_prog(x, mp)))
		if (xdp_program__id(x) == r->old.id)
			break;
	if (x)
		out->prio = xdp_program__run_prio(x);
	for (unsigned int action = XDP_ABORTED; x && action <= XDP_REDIRECT; action++)
		if (xdp_program__chain_call_enabled(x, (enum xdp_action)action))
			out->actions |= 1U << action;
	xdp_multiprog__close(mp);
}

/* The new one is in before the old one goes: no packet passes by unlooked at. */
static int swap_beside(struct replacing *r)
{
	struct xdpath_beside_opts bo = {.attach = r->old.attach};
	struct xdpath_prog_info made = {.attach = r->old.attach};
	int err;

	read_order(r, &bo);
	err = xdpath_beside_attach(&r->l, &r->port, &bo, r->o->diag);
	if (err)
		return err;
	err = xdpath_beside_detach(&r->port, &r->old, r->o->diag);
	if (err && !xdpath_load_identify(&r->l)) {
		made.id = r->l.id;
		xdpath_beside_detach(&r->port, &made, NULL);
	}
	return err;
}

static int swap(struct replacing *r)
{
	int err;

	if (r->old.dispatcher_id)
		return swap_beside(r);
	err = xdpath_load_finish(&r->l, r->o->diag);
	if (!err)
		err = xdpath_load_identify(&r->l);
	if (err)
		return err;
	return r->old.link_id ? swap_link(r) : swap_netlink(r);
}

int xdpath_prog_replace(int ifindex, uint32_t id, const struct xdpath_replace_opts *o,
			uint32_t *new_id)
{
	struct replacing r = {.old_fd = -1, .o = o};
	struct xdpath_image im;
	struct xdpath_quiet quiet;
	int err;

	if (!o || xdpath_opts_check(o, o->sz, sizeof(*o)))
		return -EINVAL;
	im = (struct xdpath_image){.data = o->image, .size = o->size};
	xdpath_quiet_begin(&quiet);
	err = look_up(&r, ifindex, id);
	if (!err)
		err = xdpath_load_open(&r.l, &im, o->diag);
	if (!err) {
		err = use_maps(&r);
		if (!err)
			err = swap(&r);
		if (!err)
			err = xdpath_load_identify(&r.l);
		*new_id = err ? 0 : r.l.id;
		xdpath_load_close(&r.l);
	}
	xdpath_quiet_end(&quiet);
	if (r.old_fd >= 0)
		close(r.old_fd);
	return err;
}
