/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * `--lab`: two hosts made for one measurement. This process moves into a network namespace of its
 * own, a child with `serve` has another, and a veth pair joins them. The namespaces have no names
 * and no files: they are gone with the two processes, however these end.
 */
#ifndef BENCH_LAB_HOSTS_H
#define BENCH_LAB_HOSTS_H

#include "session.h"

#define LAB_DEV	   "xdpath0"
#define LAB_PEER   "10.77.0.2"
#define LAB_PEER_6 "fd77::2"

struct lab_hosts;

/*
 * To be called before any thread is made. queues: of each end, 1..64; mtu 0: 1500. `serve` is what
 * the child serves with (dev, ready and ctx are set here). 0 or -errno with a diagnosis; the far
 * end listens then.
 */
int lab_hosts_open(struct lab_hosts **out, uint32_t queues, uint32_t mtu,
		   const struct serve_opts *serve, struct xdpath_diag *d);
void lab_hosts_close(struct lab_hosts *h); /* NULL is fine */

#endif
