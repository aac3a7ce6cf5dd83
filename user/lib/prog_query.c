/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What is attached to an interface and who holds it: programs by netlink, those in a dispatcher by
 * its links, holders by /proc.
 *
 * Called by the forms of attachment and, through xdpath_prog_query(), by the verbs. Changes
 * nothing.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "prog_find.h"

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
	out->own = m.own;
	out->meta_id = m.ours ? m.meta_id : 0;
	xdpath_maps_close(&m);
	if (out->dispatcher_id)
		return 0;
	link = xdpath_link_find(ifindex, out->id, &out->link_id);
	if (link >= 0)
		close(link);
	return 0;
}

/* Without privilege the id is all there is to know: still worth telling. */
static int add(int ifindex, struct xdpath_prog_info *out, int *n, struct xdpath_prog_info what)
{
	int err;

	if (*n == XDPATH_PROGS_MAX)
		return 0;
	out[*n] = what;
	err = describe_program(ifindex, &out[*n]);
	if (err && err != -EPERM && err != -ENOENT)
		return err;
	if (err != -ENOENT)
		(*n)++;
	return 0;
}

static int add_components(int ifindex, struct xdpath_prog_info *out, int *n)
{
	struct xdpath_prog_info what = {.attach = out[*n - 1].attach,
					.dispatcher_id = out[*n - 1].id};
	uint32_t id[XDPATH_PROGS_MAX];
	int have = xdpath_components(what.dispatcher_id, id, XDPATH_PROGS_MAX), err = 0;

	if (have < 0)
		return have == -EPERM ? 0 : have;
	for (int i = 0; !err && i < have; i++) {
		what.id = id[i];
		err = add(ifindex, out, n, what);
	}
	return err;
}

int xdpath_prog_query(int ifindex, struct xdpath_prog_info out[XDPATH_PROGS_MAX])
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);
	int n = 0, before, err;

	err = bpf_xdp_query(ifindex, 0, &q);
	if (err)
		return err;
	const struct xdpath_prog_info found[] = {
		{.attach = XDPATH_ATTACH_NATIVE, .id = q.drv_prog_id},
		{.attach = XDPATH_ATTACH_GENERIC, .id = q.skb_prog_id},
		{.attach = XDPATH_ATTACH_OFFLOAD, .id = q.hw_prog_id},
	};
	for (size_t i = 0; !err && i < sizeof(found) / sizeof(found[0]); i++) {
		before = n;
		if (found[i].id)
			err = add(ifindex, out, &n, found[i]);
		if (!err && n > before && !strcmp(out[before].name, XDPATH_DISPATCHER))
			err = add_components(ifindex, out, &n);
	}
	return err ? err : n;
}

int xdpath_prog_first(const struct xdpath_prog_info *in, int n)
{
	int first = -1;

	for (int i = n; i-- > 0;)
		if (in[i].attach != XDPATH_ATTACH_OFFLOAD &&
		    (first < 0 || in[i].is_xdpath || !in[first].is_xdpath))
			first = i;
	return first;
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

int xdpath_link_holders(uint32_t link_id, struct xdpath_process *out, int most)
{
	struct dirent *e;
	DIR *d = opendir("/proc");
	int n = 0;

	if (!d)
		return 0;
	while (n < most && (e = readdir(d))) {
		int pid = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;

		if (pid <= 0 || !process_has_link(pid, link_id))
			continue;
		out[n] = (struct xdpath_process){.pid = pid};
		xdpath_command_name(pid, out[n].comm, sizeof(out[n].comm));
		n++;
	}
	closedir(d);
	return n;
}

void xdpath_prog_describe(const struct xdpath_prog_info *in, char *out, size_t size)
{
	if (in->link_id)
		snprintf(out, size, "%s (id %u, %s, by bpf_link %u)", in->name, in->id,
			 xdpath_attach_name(in->attach), in->link_id);
	else
		snprintf(out, size, "%s (id %u, %s, by %s)", in->name[0] ? in->name : "unnamed",
			 in->id, xdpath_attach_name(in->attach),
			 in->dispatcher_id ? "dispatcher" : "netlink");
}

void xdpath_prog_cure(const struct xdpath_prog_info *in, const char *ifname, char *out, size_t size)
{
	static const char *const word[] = {
		[XDPATH_ATTACH_NONE] = "xdp",
		[XDPATH_ATTACH_NATIVE] = "xdpdrv",
		[XDPATH_ATTACH_GENERIC] = "xdpgeneric",
		[XDPATH_ATTACH_OFFLOAD] = "xdpoffload",
	};
	struct xdpath_process by;

	if (in->link_id && xdpath_link_holders(in->link_id, &by, 1))
		snprintf(out, size, "end process %d (%s), which holds it", by.pid, by.comm);
	else if (in->link_id)
		snprintf(out, size, "bpftool link detach id %u", in->link_id);
	else if (in->dispatcher_id)
		snprintf(out, size, "xdp-loader unload %s -i %u", ifname, in->id);
	else if (!strcmp(in->name, XDPATH_DISPATCHER))
		snprintf(out, size, "xdp-loader unload %s --all", ifname);
	else
		snprintf(out, size, "ip link set dev %s %s off", ifname, word[in->attach]);
}
