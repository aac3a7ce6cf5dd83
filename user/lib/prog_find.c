/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What is attached to an interface: programs by netlink, their maps and links by id.
 *
 * Called by prog.c and, through xdpath_prog_query(), by the verbs. Nothing depends on pins (there
 * is no bpffs under `ip netns exec`) and nothing is changed. Descriptors belong to the caller.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "prog_find.h"

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
		       sizeof(struct xdpath_verdict_count), XDPATH_V_COUNT},
	[MAP_XSKS] = {XDPATH_MAP_XSKS, BPF_MAP_TYPE_XSKMAP, sizeof(uint32_t), XDPATH_QUEUES},
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
		if (meta.layout != XDPATH_LAYOUT)
			m->layout_ok = false;
	}
	return 0;
}

int xdpath_maps_open(struct xdpath_maps *m, int prog_fd)
{
	uint32_t ids[MAPS_MOST] = {0};
	struct bpf_prog_info info = {.nr_map_ids = MAPS_MOST, .map_ids = (uintptr_t)ids};
	struct bpf_map_info meta = {0};
	uint32_t len = sizeof(info);
	int err;

	*m = (struct xdpath_maps){.fd = {-1, -1, -1, -1}, .layout_ok = true};
	err = bpf_obj_get_info_by_fd(prog_fd, &info, &len);
	for (uint32_t i = 0; !err && i < info.nr_map_ids && i < MAPS_MOST; i++)
		err = keep_map(m, ids[i], &meta);
	if (!err && m->fd[MAP_META] >= 0)
		err = read_meta(m, &meta);
	if (err) {
		xdpath_maps_close(m);
		return err;
	}
	for (int i = 0; i < MAP_COUNT; i++)
		if (m->fd[i] < 0)
			m->layout_ok = false;
	m->layout_ok = m->layout_ok && m->ours;
	return 0;
}

int xdpath_link_find(int ifindex, uint32_t prog_id, uint32_t *link_id)
{
	uint32_t id = 0;

	for (int i = 0; i < LINKS_MOST; i++) {
		struct bpf_link_info info = {0};
		uint32_t len = sizeof(info);
		int fd, err = bpf_link_get_next_id(id, &id);

		if (err)
			return err;
		fd = bpf_link_get_fd_by_id(id);
		if (fd == -ENOENT || fd == -EAGAIN) /* going, or not yet there */
			continue;
		if (fd < 0)
			return fd;
		err = bpf_obj_get_info_by_fd(fd, &info, &len);
		if (!err && info.type == BPF_LINK_TYPE_XDP && info.prog_id == prog_id &&
		    info.xdp.ifindex == (uint32_t)ifindex) {
			*link_id = id;
			return fd;
		}
		close(fd);
	}
	return -ENOENT;
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

	if (bpf_xdp_query(ifindex, 0, &q))
		return false;
	return in->id == (in->attach == XDPATH_ATTACH_NATIVE ? q.drv_prog_id : q.skb_prog_id);
}

/* Complete an entry that has id and mode. -ENOENT: the program is gone. */
static int describe_program(int ifindex, struct xdpath_prog_info *out)
{
	struct bpf_prog_info info = {0};
	struct xdpath_maps m;
	uint32_t len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(out->id);
	int link, err;

	if (fd < 0)
		return fd;
	err = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (!err)
		snprintf(out->name, sizeof(out->name), "%s", info.name);
	if (!err)
		err = xdpath_maps_open(&m, fd);
	close(fd);
	if (err)
		return err;
	out->is_xdpath = m.ours;
	out->layout_ok = m.layout_ok;
	out->layout = m.ours ? m.layout : 0;
	out->owner_pid = m.ours ? m.owner_pid : 0;
	xdpath_maps_close(&m);
	link = xdpath_link_find(ifindex, out->id, &out->link_id);
	if (link >= 0)
		close(link);
	return 0;
}

int xdpath_prog_query(int ifindex, struct xdpath_prog_info out[XDPATH_PROGS_MAX])
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);
	struct {
		enum xdpath_attach attach;
		uint32_t id;
	} found[XDPATH_PROGS_MAX];
	int n = 0, err;

	err = bpf_xdp_query(ifindex, 0, &q);
	if (err)
		return err;
	found[0].attach = XDPATH_ATTACH_NATIVE;
	found[0].id = q.drv_prog_id;
	found[1].attach = XDPATH_ATTACH_GENERIC;
	found[1].id = q.skb_prog_id;
	found[2].attach = XDPATH_ATTACH_OFFLOAD;
	found[2].id = q.hw_prog_id;
	for (size_t i = 0; i < XDPATH_PROGS_MAX; i++) {
		if (!found[i].id)
			continue;
		out[n] = (struct xdpath_prog_info){.attach = found[i].attach, .id = found[i].id};
		err = describe_program(ifindex, &out[n]);
		/* Without privilege the id is all there is to know: still worth telling. */
		if (err && err != -EPERM && err != -ENOENT)
			return err;
		if (err != -ENOENT)
			n++;
	}
	return n;
}

/* Whether descriptor `name` of the process is the link. */
static bool fd_is_link(int pid, const char *name, uint32_t link_id)
{
	char path[64], target[32], line[80];
	unsigned int id;
	bool hit = false;
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", pid, name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	if (!strstr(target, "bpf_link") && !strstr(target, "bpf-link"))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", pid, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!hit && fgets(line, sizeof(line), f))
		hit = sscanf(line, "link_id: %u", &id) == 1 && id == link_id;
	fclose(f);
	return hit;
}

static bool process_has_link(int pid, uint32_t link_id)
{
	char path[64];
	struct dirent *e;
	bool hit = false;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	if (!d)
		return false;
	while (!hit && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]))
			hit = fd_is_link(pid, e->d_name, link_id);
	closedir(d);
	return hit;
}

static void read_comm(int pid, char *comm, size_t size)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(comm, (int)size, f))
		comm[strcspn(comm, "\n")] = '\0';
	fclose(f);
}

int xdpath_link_holder(uint32_t link_id, char *comm, size_t size)
{
	struct dirent *e;
	DIR *d = opendir("/proc");
	int pid = 0;

	comm[0] = '\0';
	if (!d)
		return 0;
	while (!pid && (e = readdir(d))) {
		int candidate = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;

		if (candidate > 0 && process_has_link(candidate, link_id))
			pid = candidate;
	}
	closedir(d);
	if (pid)
		read_comm(pid, comm, size);
	return pid;
}

void xdpath_prog_describe(const struct xdpath_prog_info *in, char *out, size_t size)
{
	if (in->link_id)
		snprintf(out, size, "%s (id %u, %s, by bpf_link %u)", in->name, in->id,
			 xdpath_attach_name(in->attach), in->link_id);
	else
		snprintf(out, size, "%s (id %u, %s, by netlink)",
			 in->name[0] ? in->name : "unnamed", in->id,
			 xdpath_attach_name(in->attach));
}

void xdpath_prog_cure(const struct xdpath_prog_info *in, const char *ifname, char *out, size_t size)
{
	static const char *const word[] = {
		[XDPATH_ATTACH_NONE] = "xdp",
		[XDPATH_ATTACH_NATIVE] = "xdpdrv",
		[XDPATH_ATTACH_GENERIC] = "xdpgeneric",
		[XDPATH_ATTACH_OFFLOAD] = "xdpoffload",
	};
	char comm[16];
	int pid = in->link_id ? xdpath_link_holder(in->link_id, comm, sizeof(comm)) : 0;

	if (pid)
		snprintf(out, size, "end process %d (%s), which holds it", pid, comm);
	else if (in->link_id)
		snprintf(out, size, "bpftool link detach id %u", in->link_id);
	else if (!strcmp(in->name, "xdp_dispatcher"))
		snprintf(out, size, "xdp-loader unload %s --all", ifname);
	else
		snprintf(out, size, "ip link set dev %s %s off", ifname, word[in->attach]);
}
