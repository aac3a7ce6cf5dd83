/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What happens to the devices of a running datapath: link events as they come, and once a second
 * what raises none (queue counts, the XDP program). Each change is told in one line on stderr, and
 * either the datapath goes on or it ends.
 */
#ifndef XDPATH_EVENTS_H
#define XDPATH_EVENTS_H

#include "run.h"

struct events {
	int fd; /* rtnetlink link events; -1 none */
	bool opening;
	struct {
		char name[IFNAMSIZ];
		uint32_t flags, mtu, queues, prog_id, meta_id;
		bool down_untold, blinked, no_carrier;
		uint64_t unserved; /* packets without a socket before the start */
		bool unserved_told;
		bool stuck[XDPATH_QUEUES]; /* told: TX of this queue stands still */
	} port[XDPATH_PORTS_MAX];
};

/* Before the datapath is opened, so that nothing is missed. 0 or -errno. */
int events_open(struct events *e);
/* What holds now, once it is open. True if the datapath must end. */
bool events_start(struct events *e, const struct run *r);
/* Link events are there to be read. True if the datapath must end. */
bool events_read(struct events *e, const struct run *r);
/* Once a second. True if the datapath must end. */
bool events_tick(struct events *e, const struct run *r);

#endif
