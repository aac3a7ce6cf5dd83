/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Finding XDP programs, their maps, links and holders: between prog_find.c and prog.c. */
#ifndef XDPATH_PROG_FIND_H
#define XDPATH_PROG_FIND_H

#include "internal.h"

enum xdpath_map_index { MAP_META = 0, MAP_CONFIG, MAP_STATS, MAP_XSKS, MAP_COUNT };

/* The maps of one program that bear our names; whoever opened them closes the descriptors. */
struct xdpath_maps {
	int fd[MAP_COUNT]; /* -1: the program has none of that name */
	bool ours;	   /* the meta map says so */
	bool fresh;	   /* ... but nobody wrote magic and layout yet */
	bool layout_ok;	   /* all maps are there and of this library's layout */
	uint32_t layout;
	uint32_t owner_pid;
};

/* Open the maps of a program by their ids. 0 or -errno; on failure none is left open. */
int xdpath_maps_open(struct xdpath_maps *m, int prog_fd);
void xdpath_maps_close(struct xdpath_maps *m);

/* Descriptor of the bpf_link that holds the program on the interface; -ENOENT: no such link. */
int xdpath_link_find(int ifindex, uint32_t prog_id, uint32_t *link_id);
/*
 * Whether a bpf_link holds the interface's program in this mode, also one that is about to go and
 * is no longer found by its id: 1, 0, or -errno.
 */
int xdpath_held_by_link(int ifindex, enum xdpath_attach attach);
/* Whether the program is still the interface's in its mode. */
bool xdpath_prog_still_there(int ifindex, const struct xdpath_prog_info *in);
/* pid of a process that has the link open, 0 if none is to be found; its name goes to comm. */
int xdpath_link_holder(uint32_t link_id, char *comm, size_t size);

/* XDP_FLAGS_*_MODE of a mode, 0 for none. */
uint32_t xdpath_attach_flag(enum xdpath_attach a);

/* One phrase: name, id, mode, by what it is held; and what removes it. */
void xdpath_prog_describe(const struct xdpath_prog_info *in, char *out, size_t size);
void xdpath_prog_cure(const struct xdpath_prog_info *in, const char *ifname, char *out,
		      size_t size);

#endif
