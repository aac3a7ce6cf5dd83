/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The maps of a program and the links that hold it, by their ids.
 *
 * Called by the other prog_*.c. Nothing depends on pins (there is no bpffs under `ip netns exec`)
 * and nothing is changed. Descriptors belong to the caller.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "prog_find.h"
#include "ruleset.h"

enum {
	MAPS_MOST = 64,	     /* of one program that are looked at */
	LINKS_MOST = 100000, /* a walk over ids that others add to must end */
};

static const struct {
	const char *name;
	uint32_t type, value_size, entries;
} expected[MAP_COUNT] = {
	[MAP_META] = {XDPATH_MAP_META, BPF_MAP_TYPE_ARRAY, sizeof(struct xdpath_meta),
		      XDPATH_LAYOUT},
	[MAP_CONFIG] = {XDPATH_MAP_CONFIG, BPF_MAP_TYPE_ARRAY, sizeof(struct xdpath_config), 1},
	[MAP_STATS] = {XDPATH_MAP_STATS, BPF_MAP_TYPE_PERCPU_ARRAY,
		       sizeof(struct xdpath_verdict_count), XDPATH_V_ENTRIES},
	[MAP_XSKS] = {XDPATH_MAP_XSKS, BPF_MAP_TYPE_XSKMAP, sizeof(uint32_t), XDPATH_QUEUES},
	[MAP_RULES] = {XDPATH_MAP_RULES, BPF_MAP_TYPE_ARRAY_OF_MAPS, sizeof(uint32_t),
		       XDPATH_SET_SLOTS},
	[MAP_SOURCE] = {XDPATH_MAP_SOURCE, BPF_MAP_TYPE_ARRAY_OF_MAPS, sizeof(uint32_t),
			XDPATH_SOURCE_SLOTS},
	[MAP_COUNTS] = {XDPATH_MAP_COUNTS, BPF_MAP_TYPE_PERCPU_ARRAY,
			sizeof(struct xdpath_count_page), XDPATH_COUNT_PAGES},
	[MAP_MIRROR] = {XDPATH_MAP_MIRROR, BPF_MAP_TYPE_ARRAY_OF_MAPS, sizeof(uint32_t), 1},
};

uint32_t xdpath_attach_flag(enum xdpath_attach a)
{
	switch (a) {
	case XDPATH_ATTACH_NATIVE: return XDP_FLAGS_DRV_MODE;
	case XDPATH_ATTACH_GENERIC: return XDP_FLAGS_SKB_MODE;
	case XDPATH_ATTACH_OFFLOAD: return XDP_FLAGS_HW_MODE;
	case XDPATH_ATTACH_NONE: break;
	}
	return 0;
}

void xdpath_maps_close(struct xdpath_maps *m)
{
	for (int i = 0; i < MAP_COUNT; i++) {
		if (m->fd[i] >= 0)
			close(m->fd[i]);
		m->fd[i] = -1;
	}
}

static bool as_expected(const struct bpf_map_info *info, int i)
{
	return info->type == expected[i].type && info->value_size == expected[i].value_size &&
	       info->max_entries == expected[i].entries;
}

/* Keep the map if it bears one of our names; sizes of the meta map go to *meta. */
static int keep_map(struct xdpath_maps *m, uint32_t id, struct bpf_map_info *meta)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	int fd = bpf_map_get_fd_by_id(id);
	int err, i;

	if (fd < 0)
		return fd;
	err = bpf_obj_get_info_by_fd(fd, &info, &len);
	for (i = 0; !err && i < MAP_COUNT; i++)
		if (m->fd[i] < 0 && !strcmp(info.name, expected[i].name))
			break;
	if (err || i == MAP_COUNT) {
		close(fd);
		return err;
	}
	m->fd[i] = fd;
	if (!as_expected(&info, i))
		m->layout_ok = false;
	if (i == MAP_META)
		*meta = info;
	return 0;
}

/* Zeros in the meta map: the map's own sizes speak. */
static int read_meta(struct xdpath_maps *m, const struct bpf_map_info *info)
{
	struct xdpath_meta meta;
	uint32_t zero = 0;
	int err;

	m->layout = info->max_entries;
	m->meta_id = info->id;
	if (info->type != BPF_MAP_TYPE_ARRAY || info->value_size != sizeof(meta)) {
		m->ours = true;
		return 0;
	}
	err = bpf_map_lookup_elem(m->fd[MAP_META], &zero, &meta);
	if (err)
		return err;
	m->fresh = !meta.magic && !meta.layout;
	m->ours = m->fresh || meta.magic == XDPATH_MAGIC;
	if (!m->fresh) {
		m->layout = meta.layout;
		m->owner_pid = meta.owner_pid;
		m->flags = meta.flags;
		m->own = m->ours && (meta.flags & XDPATH_META_OWN);
		if (meta.layout != XDPATH_LAYOUT)
			m->layout_ok = false;
	}
	return 0;
}

/* Of a user's own program: its XSKMAP, whatever it is called. */
static int find_xskmap(struct xdpath_maps *m, const uint32_t *ids, uint32_t n)
{
	struct bpf_map_info info;
	uint32_t len, found = 0;
	int fd, err = 0;

	if (m->fd[MAP_XSKS] >= 0)
		close(m->fd[MAP_XSKS]);
	m->fd[MAP_XSKS] = -1;
	for (uint32_t i = 0; !err && i < n; i++) {
		fd = bpf_map_get_fd_by_id(ids[i]);
		if (fd < 0)
			return fd;
		len = sizeof(info);
		memset(&info, 0, sizeof(info));
		err = bpf_obj_get_info_by_fd(fd, &info, &len);
		if (!err && info.type == BPF_MAP_TYPE_XSKMAP && !found++) {
			m->fd[MAP_XSKS] = fd;
			m->slots = info.max_entries;
		} else {
			close(fd);
		}
	}
	m->layout_ok = found == 1 && m->layout == XDPATH_LAYOUT;
	return err;
}

int xdpath_maps_open(struct xdpath_maps *m, int prog_fd)
{
	uint32_t ids[MAPS_MOST] = {0};
	struct bpf_prog_info info = {.nr_map_ids = MAPS_MOST, .map_ids = (uintptr_t)ids};
	struct bpf_map_info meta = {0};
	uint32_t len = sizeof(info), n;
	int err;

	*m = (struct xdpath_maps){.layout_ok = true, .slots = XDPATH_QUEUES};
	for (int i = 0; i < MAP_COUNT; i++)
		m->fd[i] = -1;
	err = bpf_obj_get_info_by_fd(prog_fd, &info, &len);
	n = info.nr_map_ids < MAPS_MOST ? info.nr_map_ids : MAPS_MOST;
	for (uint32_t i = 0; !err && i < n; i++)
		err = keep_map(m, ids[i], &meta);
	if (!err && m->fd[MAP_META] >= 0)
		err = read_meta(m, &meta);
	if (!err && m->own)
		err = find_xskmap(m, ids, n);
	if (err) {
		xdpath_maps_close(m);
		return err;
	}
	for (int i = 0; i < MAP_COUNT && !m->own; i++)
		if (m->fd[i] < 0)
			m->layout_ok = false;
	m->layout_ok = m->layout_ok && m->ours;
	return 0;
}

/* The next link after *id with its description; 0 at the end, 1, or -errno. *fd is the caller's. */
static int next_link(uint32_t *id, int *fd, struct bpf_link_info *info)
{
	for (int i = 0; i < LINKS_MOST; i++) {
		uint32_t len = sizeof(*info);
		int err = bpf_link_get_next_id(*id, id);

		if (err)
			return err == -ENOENT ? 0 : err;
		*fd = bpf_link_get_fd_by_id(*id);
		if (*fd == -ENOENT || *fd == -EAGAIN) /* going, or not yet there */
			continue;
		if (*fd < 0)
			return *fd;
		memset(info, 0, sizeof(*info));
		if (!bpf_obj_get_info_by_fd(*fd, info, &len))
			return 1;
		close(*fd);
	}
	return 0;
}

int xdpath_link_find(int ifindex, uint32_t prog_id, uint32_t *link_id)
{
	struct bpf_link_info info = {0};
	uint32_t id = 0;
	int fd = -1, more;

	while ((more = next_link(&id, &fd, &info)) > 0) {
		if (info.type == BPF_LINK_TYPE_XDP && info.prog_id == prog_id &&
		    info.xdp.ifindex == (uint32_t)ifindex) {
			*link_id = id;
			return fd;
		}
		close(fd);
	}
	return more ? more : -ENOENT;
}

int xdpath_components(uint32_t dispatcher_id, uint32_t *out, int most)
{
	struct bpf_link_info info = {0};
	uint32_t id = 0;
	int fd = -1, more, n = 0;

	while (n < most && (more = next_link(&id, &fd, &info)) != 0) {
		if (more < 0)
			return more;
		close(fd);
		if (info.type == BPF_LINK_TYPE_TRACING &&
		    info.tracing.target_obj_id == dispatcher_id)
			out[n++] = info.prog_id;
	}
	return n;
}

/*
 * Asked by a replacement that cannot happen: it expects a program that was never attached anywhere,
 * and the kernel tells a link (EBUSY) from that (EEXIST).
 */
int xdpath_held_by_link(int ifindex, enum xdpath_attach attach)
{
	static const struct bpf_insn pass[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_xdp_attach_opts, guard);
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "xdpath_none", "Dual BSD/GPL", pass,
			       sizeof(pass) / sizeof(pass[0]), NULL);
	int err;

	if (fd < 0)
		return fd;
	guard.old_prog_fd = fd;
	err = bpf_xdp_detach(ifindex, xdpath_attach_flag(attach), &guard);
	close(fd);
	if (err == -EBUSY)
		return 1;
	return err == -EEXIST ? 0 : err;
}

bool xdpath_prog_still_there(int ifindex, const struct xdpath_prog_info *in)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);
	uint32_t component[XDPATH_PROGS_MAX], id;
	int n;

	if (bpf_xdp_query(ifindex, 0, &q))
		return false;
	id = in->attach == XDPATH_ATTACH_NATIVE	   ? q.drv_prog_id
	     : in->attach == XDPATH_ATTACH_OFFLOAD ? q.hw_prog_id
						   : q.skb_prog_id;
	if (!in->dispatcher_id)
		return in->id == id;
	n = id ? xdpath_components(id, component, XDPATH_PROGS_MAX) : 0;
	while (n > 0)
		if (component[--n] == in->id)
			return true;
	return false;
}
