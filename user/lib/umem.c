/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The UMEM's memory and its carving into frame caches. datapath.c creates it, sockets register it.
 *
 * Memory is a memfd, so that it can be passed to another process. Hugepages are tried in this
 * order: reserved ones, then collapsing ordinary pages before registration (afterwards the kernel
 * says EAGAIN), then 4 KiB pages.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define HUGE_PAGE    (2UL << 20)
#define KERNEL_ROOM  256U	   /* the kernel's own headroom before a received packet */
#define TAIL_RESERVE (320U + 128U) /* what recent kernels keep for tail and smallest packet */
#define COLLAPSE_MS  100U	   /* spent on collapsing pages */
#define FRAMES_MAX   (1U << 24)	   /* 64 GiB of 4 KiB frames */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* 6.1 */
#endif
#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21U << 26)
#endif

struct xdpath_umem {
	uint8_t *area;
	size_t size;
	int fd;
	uint32_t frame_size, shift, headroom, page_size;
	uint32_t frames, carved;
	uint8_t *owner; /* the ledger */
	struct xdpath_frames **caches;
	uint32_t ncaches;
};

static int check_geometry(const struct xdpath_umem_opts *o, uint32_t frame_size)
{
	uint32_t limit = frame_size - KERNEL_ROOM - TAIL_RESERVE;

	if (frame_size != 2048 && frame_size != 4096)
		return xdpath_fail(
			o->diag, XDPATH_R_GEOMETRY, EINVAL,
			"umem.frame_size %u: the kernel takes a power of two from 2048 up "
			"to its page size; set 2048 or 4096",
			frame_size);
	if (o->headroom > limit)
		return xdpath_fail(
			o->diag, XDPATH_R_GEOMETRY, EINVAL,
			"umem.headroom %u: a frame of %u bytes leaves room for at most %u; "
			"lower it or raise umem.frame_size",
			o->headroom, frame_size, limit);
	if (o->frames < 64 || o->frames > FRAMES_MAX)
		return xdpath_fail(o->diag, XDPATH_R_GEOMETRY, EINVAL,
				   "umem.frames %u: out of range; set 64 to %u", o->frames,
				   FRAMES_MAX);
	return 0;
}

static bool map_reserved_hugepages(struct xdpath_umem *u, size_t want)
{
	size_t size = (want + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	int fd = memfd_create("xdpath-umem", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
	void *p;

	if (fd < 0)
		return false;
	if (ftruncate(fd, (off_t)size) == 0) {
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
		if (p != MAP_FAILED) {
			*u = (struct xdpath_umem){.area = p,
						  .size = size,
						  .fd = fd,
						  .page_size = HUGE_PAGE};
			return true;
		}
	}
	close(fd);
	return false;
}

/* Ordinary pages at a 2 MiB boundary, so that they can be collapsed. */
static int map_pages(struct xdpath_umem *u, size_t want)
{
	size_t size = (want + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1), span = size + HUGE_PAGE;
	int fd = memfd_create("xdpath-umem", MFD_CLOEXEC), err;
	uint8_t *hole, *base;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	hole = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (hole == MAP_FAILED) {
		close(fd);
		return -ENOMEM;
	}
	base = (uint8_t *)(((uintptr_t)hole + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
	if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		munmap(hole, span);
		close(fd);
		return -ENOMEM;
	}
	if (base > hole)
		munmap(hole, (size_t)(base - hole));
	munmap(base + size, HUGE_PAGE - (size_t)(base - hole));
	*u = (struct xdpath_umem){.area = base,
				  .size = size,
				  .fd = fd,
				  .page_size = (uint32_t)sysconf(_SC_PAGESIZE)};
	return 0;
}

/*
 * Collapse to 2 MiB pages, from the start, until `until` (ms): a datapath that opens slowly is
 * worse than one with TLB misses. Returns the bytes collapsed; *err says why not all, 0 if time was
 * up.
 */
static size_t collapse(struct xdpath_umem *u, uint64_t until, int *err)
{
	size_t at;

	*err = 0;
	for (at = 0; at < u->size; at += HUGE_PAGE) {
		if (xdpath_now_ms() >= until)
			return at;
		for (size_t i = 0; i < HUGE_PAGE;
		     i += u->page_size) /* only touched pages collapse */
			*(volatile uint8_t *)(u->area + at + i) = 0;
		if (madvise(u->area + at, HUGE_PAGE, MADV_COLLAPSE) < 0) {
			*err = errno;
			return at;
		}
	}
	u->page_size = HUGE_PAGE;
	return at;
}

static int map_area(struct xdpath_umem *u, const struct xdpath_umem_opts *o, size_t want)
{
	bool must = o->hugepages == XDPATH_HUGE_ON;
	size_t done;
	int err;

	if (o->hugepages != XDPATH_HUGE_OFF && map_reserved_hugepages(u, want))
		return 0;
	err = map_pages(u, want);
	if (err)
		return xdpath_fail(o->diag, XDPATH_R_MEMORY, -err,
				   "UMEM of %zu MiB: %s; lower umem.frames or the ring sizes",
				   want >> 20, strerror(-err));
	if (o->hugepages == XDPATH_HUGE_OFF)
		return 0;
	done = collapse(u, must ? UINT64_MAX : xdpath_now_ms() + COLLAPSE_MS, &err);
	if (done == u->size)
		return 0;
	if (must) {
		xdpath_fail(o->diag, XDPATH_R_HUGEPAGES, ENOMEM,
			    "umem.hugepages=1: none are reserved and collapsing pages says \"%s\"; "
			    "reserve some (sysctl vm.nr_hugepages=%zu) or set auto",
			    strerror(err), u->size / HUGE_PAGE);
		munmap(u->area, u->size);
		close(u->fd);
		return -ENOMEM;
	}
	xdpath_fail(o->diag, XDPATH_R_HUGEPAGES, err,
		    "UMEM: %zu of %zu MiB on 2 MiB pages: none are reserved (vm.nr_hugepages), and "
		    "collapsing the rest %s%s",
		    done >> 20, u->size >> 20, err ? "says " : "took too long",
		    err ? strerror(err) : "");
	return 0;
}

int xdpath_umem_create(struct xdpath_umem **out, const struct xdpath_umem_opts *o)
{
	uint32_t frame_size;
	struct xdpath_umem *u;
	int err;

	*out = NULL;
	if (!o || xdpath_opts_check(o, o->sz, sizeof(*o)))
		return -EINVAL;
	frame_size = o->frame_size ? o->frame_size : 4096;
	err = check_geometry(o, frame_size);
	if (err)
		return err;
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	err = map_area(u, o, (size_t)o->frames * frame_size);
	if (err) {
		free(u);
		return err;
	}
	u->frame_size = frame_size;
	u->shift = (uint32_t)__builtin_ctz(frame_size);
	u->headroom = o->headroom;
	u->frames = (uint32_t)(u->size >> u->shift);
	u->owner = aligned_alloc(XDPATH_CACHELINE, u->frames);
	if (!u->owner) {
		xdpath_umem_destroy(u);
		return -ENOMEM;
	}
	memset(u->owner, XDPATH_FREE, u->frames);
	*out = u;
	return 0;
}

void xdpath_umem_destroy(struct xdpath_umem *u)
{
	if (!u)
		return;
	for (uint32_t i = 0; i < u->ncaches; i++) {
		free(u->caches[i]->stack);
		free(u->caches[i]);
	}
	free(u->caches);
	free(u->owner);
	munmap(u->area, u->size);
	close(u->fd);
	free(u);
}

int xdpath_umem_carve(struct xdpath_umem *u, uint32_t frames, struct xdpath_frames **out)
{
	struct xdpath_frames **grown, *f;
	size_t line = (sizeof(*f) + XDPATH_CACHELINE - 1) & ~(size_t)(XDPATH_CACHELINE - 1);

	*out = NULL;
	frames = (frames + 63) & ~63U; /* whole lines of the ledger */
	if (frames == 0 || frames > u->frames - u->carved)
		return -ENOSPC;
	grown = realloc(u->caches, (u->ncaches + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	u->caches = grown;
	f = aligned_alloc(XDPATH_CACHELINE, line);
	if (!f)
		return -ENOMEM;
	*f = (struct xdpath_frames){.owner = u->owner,
				    .shift = u->shift,
				    .total = u->frames,
				    .first = u->carved,
				    .end = u->carved + frames};
	/* room for every frame: whatever comes home, the stack cannot overflow */
	f->stack = aligned_alloc(XDPATH_CACHELINE, (size_t)u->frames * sizeof(uint64_t));
	if (!f->stack) {
		free(f);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < frames; i++) /* the lowest address on top */
		f->stack[i] = (uint64_t)(f->end - 1 - i) << u->shift;
	f->count = frames;
	u->carved += frames;
	u->caches[u->ncaches++] = f;
	*out = f;
	return 0;
}

uint8_t *xdpath_umem_area(const struct xdpath_umem *u)
{
	return u->area;
}

uint64_t xdpath_umem_size(const struct xdpath_umem *u)
{
	return u->size;
}

uint32_t xdpath_umem_frame_size(const struct xdpath_umem *u)
{
	return u->frame_size;
}

uint32_t xdpath_umem_headroom(const struct xdpath_umem *u)
{
	return u->headroom;
}

uint32_t xdpath_umem_page_size(const struct xdpath_umem *u)
{
	return u->page_size;
}

uint32_t xdpath_umem_rx_room(const struct xdpath_umem *u)
{
	return u->frame_size - KERNEL_ROOM - u->headroom;
}
