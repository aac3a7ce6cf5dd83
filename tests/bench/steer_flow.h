/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Between steer.c and steer.bpf.c. */
#ifndef XDPATH_BENCH_STEER_FLOW_H
#define XDPATH_BENCH_STEER_FLOW_H

#include <linux/types.h>

#define BENCH_FLOWS 10000

struct bench_flow {
	__u64 addr;  /* source and destination as in the frame */
	__u32 ports; /* likewise */
	__u32 proto;
};

#endif
