/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The steering program on a port: loaded, attached, found again, given sockets. Three forms:
 *
 * run: a bpf_link with an explicit mode flag, held by this process and gone with it, however it
 * dies. A second process finds the program by its id, its maps by theirs, opens the same link and
 * holds it too.
 * kept: by netlink; stays until it is detached. Runs join it.
 * beside: in libxdp's dispatcher, with others.
 */
#ifndef XDPATH_PROG_H
#define XDPATH_PROG_H

#include <xdpath/port.h>
#include <xdpath/rule.h>
#include <xdpath/shared.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One attached XDP program, as the kernel tells it. */
struct xdpath_prog_info {
	enum xdpath_attach attach;
	uint32_t id;
	char name[16];
	uint32_t link_id;	/* 0: attached by netlink, stays after its owner */
	uint32_t dispatcher_id; /* 0, or the dispatcher of libxdp that it runs in */
	bool is_xdpath;		/* carries our xdpath_meta map */
	bool layout_ok;		/* ... of this library's layout */
	uint32_t layout;	/* ... its layout */
	uint32_t owner_pid;	/* ... who loaded it, 0 unknown */
	bool own;		/* ... a user's own program: it steers by itself */
	uint32_t meta_id; /* ... its xdpath_meta map: programs that share it succeed each other */
};

#define XDPATH_PROGS_MAX 16 /* native, generic, offload, and what runs in dispatchers */

/*
 * List what is attached to an interface; programs in a dispatcher come after it. Returns the count
 * (0..XDPATH_PROGS_MAX) or -errno.
 */
XDPATH_API int xdpath_prog_query(int ifindex, struct xdpath_prog_info out[XDPATH_PROGS_MAX]);

struct xdpath_prog_opts {
	size_t sz;
	enum xdpath_attach attach; /* NATIVE or GENERIC; required */
	enum xdpath_steer steer;   /* what reaches user space when we load the program */
	bool steer_explicit;	   /* the user asked for it: a program already attached that steers
				      otherwise is refused, not used silently */
	bool beside;		   /* beside other programs, through libxdp's dispatcher; so it is
				      done too where a dispatcher is in place */
	struct xdpath_diag *diag;
};

struct xdpath_prog;

/*
 * Attach the steering program, or join an xdpath program that is there already in the same mode.
 * Enters the kernel. Errors:
 *  -EBUSY/-EEXIST  another program is attached (diag: its name, id, mode, how to remove it)
 *  -EOPNOTSUPP     the driver has no native XDP;  -ERANGE/-ENOSPC/-EINVAL  the driver refuses by
 *                  MTU, queues, ... (diag carries the kernel's extack text)
 *  -EPERM          CAP_NET_ADMIN or CAP_BPF missing
 * Kernel 5.9 (bpf_link for XDP). Source: tools/lib/bpf, net/core/dev.c.
 */
XDPATH_API int xdpath_prog_open(struct xdpath_prog **out, const struct xdpath_port *p,
				const struct xdpath_prog_opts *o);

/* Let go. The last holder's close detaches the program. NULL is fine. */
XDPATH_API void xdpath_prog_close(struct xdpath_prog *g);

/* Put a bound socket into, or take it out of, the slot of a receiving queue (0..255). 0 or -errno.
 */
XDPATH_API int xdpath_prog_set_socket(struct xdpath_prog *g, uint32_t queue, int fd);
XDPATH_API int xdpath_prog_clear_socket(struct xdpath_prog *g, uint32_t queue);

/* Verdicts summed over CPUs. 0 or -errno. */
XDPATH_API int xdpath_prog_counters(const struct xdpath_prog *g,
				    struct xdpath_verdict_count out[XDPATH_V_COUNT]);

/* True if the program was there before: its steering holds, ours was not written. */
XDPATH_API bool xdpath_prog_joined(const struct xdpath_prog *g);
XDPATH_API enum xdpath_steer xdpath_prog_steer(const struct xdpath_prog *g);
XDPATH_API uint32_t xdpath_prog_id(const struct xdpath_prog *g); /* as it was when opened */
/* Stays the same when the program is replaced in place; see struct xdpath_prog_info. */
XDPATH_API uint32_t xdpath_prog_meta_id(const struct xdpath_prog *g);
/* Queues that the program can serve: 256, or what a user's own has room for. */
XDPATH_API uint32_t xdpath_prog_slots(const struct xdpath_prog *g);

/* ---- kept: attached by one process, used by others ---- */

struct xdpath_attach_opts {
	size_t sz;
	enum xdpath_attach attach; /* NATIVE or GENERIC; NONE: the better one to be had */
	enum xdpath_steer steer;   /* what no rule decides */
	const struct xdpath_rules *rules;
	bool beside;	  /* as in struct xdpath_prog_opts */
	uint32_t prio;	  /* ... order among others, lower first; 0: the program's own */
	uint32_t actions; /* ... bits 1 << XDP_*: after these the next one runs; 0: the program's
			     own */
	const char *file; /* a user's own object with an XSKMAP; NULL: the steering program */
	const char *section, *name; /* ... which of its programs; NULL: the only one */
	const char *pin;	    /* pin program and maps in this folder of a bpffs */
	struct xdpath_diag *diag;
};

/*
 * Attach a program that stays until xdpath_prog_detach(), by netlink or beside others. *out tells
 * what is in place then; with attach NONE diag tells why it is generic, if it is. Enters the
 * kernel. Errors: -EEXIST: an xdpath program is attached already; else those of xdpath_prog_open(),
 * -EINVAL for a file that will not do; nothing is changed then.
 */
XDPATH_API int xdpath_prog_attach(const struct xdpath_port *p, const struct xdpath_attach_opts *o,
				  struct xdpath_prog_info *out);

struct xdpath_detach_opts {
	size_t sz;
	uint32_t id; /* this one; 0: all that are xdpath's */
	bool force;  /* also what is not */
	struct xdpath_diag *diag;
};

/*
 * Take programs off in whatever form and mode they are, and restore what a run that crashed left
 * changed on the device. Enters the kernel. Returns how many went (0: none was there), told in out,
 * or -errno: -EPERM: foreign and not forced (nothing was changed), or no permission; -ENOENT: no
 * program of that id.
 */
XDPATH_API int xdpath_prog_detach(const struct xdpath_port *p, const struct xdpath_detach_opts *o,
				  struct xdpath_prog_info out[XDPATH_PROGS_MAX]);

struct xdpath_replace_opts {
	size_t sz;
	const void *image; /* of a steering program, ELF; NULL: the library's own */
	size_t size;
	const int *
		maps; /* descriptors of maps to use in place of the old program's, by their names */
	uint32_t nmaps;
	struct xdpath_diag *diag;
};

/*
 * Put a steering program in the place of the xdpath program `id` of an interface, whatever its
 * form, with the same maps: sockets, rules and counters stay. No packet is lost by link and by
 * netlink; in a dispatcher both run for a moment, and what both leave to the kernel is counted
 * twice. Enters the kernel. Errors: -ENOENT: gone; -EPROTO: not of this layout, or maps of other
 * sizes; -EEXIST, -ENOLINK: someone else was faster; then the old program is still in place.
 */
XDPATH_API int xdpath_prog_replace(int ifindex, uint32_t id, const struct xdpath_replace_opts *o,
				   uint32_t *new_id);

/* What an xdpath program does, read from outside. */
struct xdpath_prog_state {
	enum xdpath_steer steer;
	struct xdpath_verdict_count verdict[XDPATH_V_COUNT]; /* summed over CPUs */
};

/*
 * Read the maps of the xdpath program with this id (xdpath_prog_query); changes nothing. Enters the
 * kernel. -ENOENT: gone, or not xdpath's; -EPROTO: another layout; -EPERM: CAP_BPF is missing.
 */
XDPATH_API int xdpath_prog_read(uint32_t id, struct xdpath_prog_state *out);

#ifdef __cplusplus
}
#endif
#endif
