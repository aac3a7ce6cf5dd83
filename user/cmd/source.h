/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What the files of `source` share: the job as parsed (source_args.c), its report (source.c) and
 * its two engines (source_xsk in source.c, source_live.c).
 */
#ifndef XDPATH_SOURCE_H
#define XDPATH_SOURCE_H

#include "cli.h"
#include "packet.h"

/* The job, read only once source_parse() made it. */
struct source {
	const struct args *args;
	struct xdpath_port port;
	struct packet_spec spec;
	struct gen_plan plan;
	struct gen_pace pace;	 /* gap and gap_byte; both 0: as fast as can be */
	const char *dst_mac_why; /* "given", "neighbour" or "default" */
};

/* Check the options against each other and the device. Returns an exit code; not 0: it was told. */
int source_parse(struct source *s, const struct args *a);

/*
 * "1000", "10k", "1.5M" packets per second, "100kbps", "1Gbps" bits per second, into gap and
 * gap_byte. 0 or -EINVAL (no such number or unit), -ERANGE (out of 1 pps..1 Gpps, 10 kbps..1 Tbps).
 */
int source_parse_rate(const char *text, struct gen_pace *pace);

/* "from, to, sizes, MAC and where it comes from", for the line at the start. */
void source_describe(const struct source *s, char *buf, size_t len);

/* Send by the kernel's live-frame injection. Returns an exit code. */
int source_live(const struct source *s);

#endif
