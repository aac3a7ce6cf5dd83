/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The UMEM: packet memory shared with the kernel, a memfd so that it can be passed on.
 *
 * One UMEM may serve several queues of several ports. It is carved into frame caches, one for each
 * thread; the caches' ledger bytes never share a cache line.
 */
#ifndef XDPATH_UMEM_H
#define XDPATH_UMEM_H

#include <xdpath/frame.h>

#ifdef __cplusplus
extern "C" {
#endif

enum xdpath_hugepages { XDPATH_HUGE_AUTO = 0, XDPATH_HUGE_OFF = 1, XDPATH_HUGE_ON = 2 };

struct xdpath_umem_opts {
	size_t sz;
	uint32_t frames;     /* frames, all caches together; required, >= 64 */
	uint32_t frame_size; /* bytes: 2048 or 4096; 0 means 4096 */
	uint32_t headroom; /* bytes the kernel leaves free before a received packet, beside its 256
			    */
	enum xdpath_hugepages hugepages; /* AUTO: tried, 4 KiB pages else; ON: an error else */
	struct xdpath_diag
		*diag; /* NULL or filled; XDPATH_R_HUGEPAGES on success without hugepages */
};

struct xdpath_umem;

/*
 * Allocate and map; nothing is registered with the kernel yet, a socket does that. The kernel is
 * entered. Errors: -EINVAL (geometry: diag names the field), -ENOMEM. Any kernel with memfd (3.17).
 * Source: Documentation/networking/af_xdp.rst.
 */
XDPATH_API int xdpath_umem_create(struct xdpath_umem **out, const struct xdpath_umem_opts *o);

/* Unmap and free; every socket on it must be closed before. NULL is fine. */
XDPATH_API void xdpath_umem_destroy(struct xdpath_umem *u);

/*
 * Carve the next `frames` frames (rounded up to a multiple of 64) into a cache of its own, owned by
 * the UMEM. -ENOSPC when fewer are left.
 */
XDPATH_API int xdpath_umem_carve(struct xdpath_umem *u, uint32_t frames,
				 struct xdpath_frames **out);

XDPATH_API uint8_t *xdpath_umem_area(const struct xdpath_umem *u);
XDPATH_API uint64_t xdpath_umem_size(const struct xdpath_umem *u); /* bytes */
XDPATH_API uint32_t xdpath_umem_frame_size(const struct xdpath_umem *u);
XDPATH_API uint32_t xdpath_umem_headroom(const struct xdpath_umem *u);
XDPATH_API uint32_t xdpath_umem_page_size(const struct xdpath_umem *u); /* bytes, as obtained */

/* Bytes of a received packet that fit one frame: frame size - 256 - headroom. */
XDPATH_API uint32_t xdpath_umem_rx_room(const struct xdpath_umem *u);

#ifdef __cplusplus
}
#endif
#endif
