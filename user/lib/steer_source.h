/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Rules as they were written, kept in the kernel beside the set made of them, so that any process
 * can list them. Between steer_source.c and steer.c.
 */
#ifndef XDPATH_STEER_SOURCE_H
#define XDPATH_STEER_SOURCE_H

#include "ruleset.h"

/* The counters of a rule stand at `place`; they stood at `base` when it got them. */
struct steer_counter {
	uint16_t place;
	struct xdpath_rule_count base;
};

struct steer_source {
	struct xdpath_rules rules;
	struct steer_counter *counter; /* of each rule */
	uint64_t generation;	       /* the same in the set made of it */
};

/* Make a map that holds it. The descriptor, or -errno. */
int xdpath_source_write(const struct steer_source *s);
/* Read one. 0, -ENOMEM, -EBADMSG for what is none. To be freed by xdpath_source_free(). */
int xdpath_source_read(int fd, struct steer_source *out);
void xdpath_source_free(struct steer_source *s);

#endif
