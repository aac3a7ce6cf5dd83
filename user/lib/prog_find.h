/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Finding XDP programs, their maps, links and holders: between prog_find.c, prog_query.c and the
 * forms of attachment. */
#ifndef XDPATH_PROG_FIND_H
#define XDPATH_PROG_FIND_H

#include "internal.h"

enum xdpath_map_index {
	MAP_META = 0,
	MAP_CONFIG,
	MAP_STATS,
	MAP_XSKS,
	MAP_RULES,
	MAP_SOURCE,
	MAP_COUNTS,
	MAP_MIRROR,
	MAP_COUNT
};

/* The maps of one program that bear our names; whoever opened them closes the descriptors. */
struct xdpath_maps {
	int fd[MAP_COUNT]; /* -1: the program has none of that name */
	bool ours;	   /* the meta map says so */
	bool fresh;	   /* ... but nobody wrote magic and layout yet */
	bool layout_ok;	   /* all maps are there and of this library's layout */
	bool own;	   /* a user's own program: it has our meta map and an XSKMAP, no more */
	uint32_t layout;
	uint32_t owner_pid;
	uint32_t flags;	  /* XDPATH_META_* */
	uint32_t meta_id; /* of the meta map, 0 none */
	uint32_t slots;	  /* of the XSKMAP */
};

/* Open the maps of a program by their ids. 0 or -errno; on failure none is left open. */
int xdpath_maps_open(struct xdpath_maps *m, int prog_fd);
void xdpath_maps_close(struct xdpath_maps *m);

/* Descriptor of the bpf_link that holds the program on the interface; -ENOENT: no such link. */
int xdpath_link_find(int ifindex, uint32_t prog_id, uint32_t *link_id);
/* Ids of the programs that run in the dispatcher. The count, at most `most`, or -errno. */
int xdpath_components(uint32_t dispatcher_id, uint32_t *id, int most);
/*
 * Whether a bpf_link holds the interface's program in this mode, also one that is about to go and
 * is no longer found by its id: 1, 0, or -errno.
 */
int xdpath_held_by_link(int ifindex, enum xdpath_attach attach);
/* Whether the program is still the interface's in its mode. */
bool xdpath_prog_still_there(int ifindex, const struct xdpath_prog_info *in);

struct xdpath_process {
	int pid;
	char comm[16];
};

/* Processes that have the link open, at most `most`. Returns the count, 0 if none is to be found.
 */
int xdpath_link_holders(uint32_t link_id, struct xdpath_process *out, int most);

#define XDPATH_DISPATCHER "xdp_dispatcher" /* libxdp's program that runs others in turn */

/* prog_state.c: the verdicts in a map of counters, summed over CPUs. 0 or -errno. */
int xdpath_verdicts_read(int fd, struct xdpath_verdict_count out[XDPATH_V_COUNT]);

/* XDP_FLAGS_*_MODE of a mode, 0 for none. */
uint32_t xdpath_attach_flag(enum xdpath_attach a);

/*
 * Of what is attached, the program that a run has to do with: xdpath's, else whatever else is in
 * the way. -1: none (what is in the NIC is in nobody's way).
 */
int xdpath_prog_first(const struct xdpath_prog_info *in, int n);

/* One phrase: name, id, mode, by what it is held; and what removes it. */
void xdpath_prog_describe(const struct xdpath_prog_info *in, char *out, size_t size);
void xdpath_prog_cure(const struct xdpath_prog_info *in, const char *ifname, char *out,
		      size_t size);

#endif
