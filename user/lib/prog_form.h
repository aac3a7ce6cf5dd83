/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What the forms of attachment share: a program loaded and not yet attached, what a refusal means,
 * libxdp's dispatcher. Between prog.c (run), prog_keep.c (kept), prog_beside.c, prog_detach.c and
 * prog_replace.c.
 */
#ifndef XDPATH_PROG_FORM_H
#define XDPATH_PROG_FORM_H

#include "prog_find.h"

struct bpf_object;
struct bpf_program;

/* Where a program comes from: all zero is the steering program that this library carries. */
struct xdpath_image {
	const void *data; /* an ELF image in memory */
	size_t size;
	const char *file;	    /* or a user's own object, ... */
	const char *section, *name; /* ... and which of its programs; NULL: the only one */
};

/* One program on its way into the kernel. */
struct xdpath_load {
	struct bpf_object *obj;
	struct bpf_program *prog;
	bool own; /* a user's, not the steering program */
	/* once in the kernel: */
	struct xdpath_maps maps;
	int fd; /* owned by obj */
	uint32_t id;
};

/* Read the image and choose the program; nothing is in the kernel yet. 0 or -errno with diag; on
 * failure there is nothing to close. */
int xdpath_load_open(struct xdpath_load *l, const struct xdpath_image *im, struct xdpath_diag *d);
/* The image that this library carries. */
const void *xdpath_load_ours(size_t *size);
/* Into the kernel. */
int xdpath_load_finish(struct xdpath_load *l, struct xdpath_diag *d);
/* It is in the kernel (by us or by libxdp): its descriptor and id. 0 or -errno. */
int xdpath_load_identify(struct xdpath_load *l);
/* The same, and its maps; mark a user's own as such, write
 * the meta map (flags: XDPATH_META_RUN or 0) and, into ours, the steering. */
int xdpath_load_configure(struct xdpath_load *l, enum xdpath_steer steer, uint32_t flags,
			  struct xdpath_diag *d);
/* Maps that are not moved elsewhere are closed too. */
void xdpath_load_close(struct xdpath_load *l);
/* Whether it is the object's map of that name, of which the kernel keeps 15 characters. */
bool xdpath_same_map_name(const char *a, const char *b);

int xdpath_write_meta(const struct xdpath_maps *m, uint32_t flags);
int xdpath_write_steer(const struct xdpath_maps *m, enum xdpath_steer steer);

/* What libbpf and libxdp would print becomes part of the diagnosis. Not for two threads at once. */
struct xdpath_quiet {
	void *bpf, *xdp; /* the print functions before */
};
void xdpath_quiet_begin(struct xdpath_quiet *q);
void xdpath_quiet_end(const struct xdpath_quiet *q);
/* The first thing said since, without the library's name; "" if nothing. */
const char *xdpath_quiet_said(void);

/* prog_fail.c: an attachment refused with `err` (positive) and the kernel's own words, if any. */
int xdpath_fail_attach(struct xdpath_diag *d, const char *dev, enum xdpath_attach mode, int err,
		       const char *ext);
/* A program in the way, by name, and why it is. */
int xdpath_fail_taken(struct xdpath_diag *d, const char *dev, const struct xdpath_prog_info *in,
		      const char *why);
/* Whether a worse mode may help. */
bool xdpath_fail_is_of_mode(enum xdpath_reason r);

/* prog_beside.c */
struct xdpath_beside_opts {
	uint32_t prio;	  /* 0: the program's own */
	uint32_t actions; /* chain actions, bit 1 << XDP_*; 0: the program's own */
	enum xdpath_attach attach;
};
/* Attach the opened (not finished) program through libxdp; it is in the kernel then. */
int xdpath_beside_attach(struct xdpath_load *l, const struct xdpath_port *p,
			 const struct xdpath_beside_opts *o, struct xdpath_diag *d);
/* Take the program out of the dispatcher, which goes with its last. */
int xdpath_beside_detach(const struct xdpath_port *p, const struct xdpath_prog_info *in,
			 struct xdpath_diag *d);
/*
 * Users of a program that stays in a dispatcher for as long as it is used (XDPATH_META_RUN) share a
 * lock. 0 and *fd; -EAGAIN: somebody is just taking it out. xdpath_beside_last(): true for the last
 * user, who is to take it out and then close *fd; the file is gone.
 */
int xdpath_beside_share(const struct xdpath_port *p, int *fd);
bool xdpath_beside_last(const struct xdpath_port *p, int fd);
/* Remove the lock's file if nobody has it. */
void xdpath_beside_sweep(const struct xdpath_port *p);

#endif
