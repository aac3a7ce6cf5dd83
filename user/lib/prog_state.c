// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * An attached xdpath program read from outside: by its id to its maps and to what they hold.
 * Called by status and probe. Every descriptor is closed again: reading never keeps a program
 * alive.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "prog_find.h"

int xdpath_verdicts_read(int fd, struct xdpath_verdict_count out[XDPATH_V_COUNT])
{
	struct xdpath_verdict_count *per_cpu;
	int cpus = libbpf_num_possible_cpus(), err = 0;

	if (cpus < 0)
		return cpus;
	per_cpu = calloc((size_t)cpus, sizeof(*per_cpu));
	if (!per_cpu)
		return -ENOMEM;
	for (uint32_t v = 0; !err && v < XDPATH_V_COUNT; v++) {
		out[v] = (struct xdpath_verdict_count){0};
		err = bpf_map_lookup_elem(fd, &v, per_cpu);
		for (int c = 0; !err && c < cpus; c++) {
			out[v].packets += per_cpu[c].packets;
			out[v].bytes += per_cpu[c].bytes;
		}
	}
	free(per_cpu);
	return err;
}

int xdpath_prog_read(uint32_t id, struct xdpath_prog_state *out)
{
	struct xdpath_config config = {0};
	struct xdpath_maps m;
	uint32_t zero = 0;
	int fd, err;

	*out = (struct xdpath_prog_state){0};
	fd = bpf_prog_get_fd_by_id(id);
	if (fd < 0)
		return fd;
	err = xdpath_maps_open(&m, fd);
	close(fd);
	if (err)
		return err;
	if (!m.layout_ok)
		err = m.ours ? -EPROTO : -ENOENT;
	if (!err)
		err = bpf_map_lookup_elem(m.fd[MAP_CONFIG], &zero, &config);
	if (!err)
		err = xdpath_verdicts_read(m.fd[MAP_STATS], out->verdict);
	out->steer = config.steer;
	xdpath_maps_close(&m);
	return err;
}
