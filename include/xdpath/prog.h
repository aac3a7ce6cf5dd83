/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The steering program on a port: loaded, attached, found again, given sockets.
 *
 * Run form: a bpf_link with an explicit mode flag, held by this process and gone with it, however
 * it dies. A second process finds the program by its id, its maps by theirs, opens the same link
 * and holds it too.
 */
#ifndef XDPATH_PROG_H
#define XDPATH_PROG_H

#include <xdpath/port.h>
#include <xdpath/shared.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One attached XDP program, as the kernel tells it. */
struct xdpath_prog_info {
	enum xdpath_attach attach;
	uint32_t id;
	char name[16];
	uint32_t link_id;   /* 0: attached by netlink, stays after its owner */
	bool is_xdpath;	    /* carries our xdpath_meta map */
	bool layout_ok;	    /* ... of this library's layout */
	uint32_t layout;    /* ... its layout */
	uint32_t owner_pid; /* ... who loaded it, 0 unknown */
};

#define XDPATH_PROGS_MAX 3 /* native, generic, offload */

/* List what is attached to an interface. Returns the count (0..3) or -errno. */
XDPATH_API int xdpath_prog_query(int ifindex, struct xdpath_prog_info out[XDPATH_PROGS_MAX]);

struct xdpath_prog_opts {
	size_t sz;
	enum xdpath_attach attach; /* NATIVE or GENERIC; required */
	enum xdpath_steer steer;   /* what reaches user space when we load the program */
	bool steer_explicit;	   /* the user asked for it: a program already attached that steers
				      otherwise is refused, not used silently */
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
XDPATH_API uint32_t xdpath_prog_id(const struct xdpath_prog *g);

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
