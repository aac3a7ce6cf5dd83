/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What every other header needs: version, return convention, modes, reasons, the diagnosis.
 *
 * int functions return 0 or -errno; they never set errno, print or exit. Burst functions return a
 * count and cannot fail. Destructors take NULL. Option structs begin with `size_t sz` (set it with
 * XDPATH_OPTS_INIT); a zero field means its default; non-zero bytes past what the library knows are
 * -EINVAL.
 */
#ifndef XDPATH_BASE_H
#define XDPATH_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XDPATH_VERSION "0.1.0"

#define XDPATH_API __attribute__((visibility("default")))

#define xdpath_likely(x)   __builtin_expect(!!(x), 1)
#define xdpath_unlikely(x) __builtin_expect(!!(x), 0)

#define XDPATH_CACHELINE 64

#ifdef __cplusplus
extern "C" {
#endif

/* How frames cross between NIC and UMEM, worst first: a larger value is a better mode. */
enum xdpath_mode {
	XDPATH_MODE_AUTO = 0,	  /* as a wish: the best to be had */
	XDPATH_MODE_GENERIC = 1,  /* generic XDP (in the stack), copied */
	XDPATH_MODE_COPY = 2,	  /* native XDP (in the driver), copied */
	XDPATH_MODE_ZEROCOPY = 3, /* native XDP, the NIC works in the UMEM itself */
};

/* "auto", "generic", "copy", "zero-copy". */
XDPATH_API const char *xdpath_mode_name(enum xdpath_mode mode);

/* Why something failed or came out worse than asked. */
enum xdpath_reason {
	XDPATH_R_NONE = 0,
	XDPATH_R_NO_DEVICE,	/* no interface of that name here */
	XDPATH_R_DEVICE_DOWN,	/* it is there, but set down */
	XDPATH_R_QUEUE_RANGE,	/* the device has no such queue */
	XDPATH_R_QUEUE_BUSY,	/* another socket holds the queue */
	XDPATH_R_PROG_CONFLICT, /* another XDP program is attached */
	XDPATH_R_NO_NATIVE,	/* the driver has no native XDP */
	XDPATH_R_NO_ZEROCOPY,	/* the driver (or this queue) does no zero-copy */
	XDPATH_R_NO_FRAGMENTS,	/* packets of several fragments are not to be had */
	XDPATH_R_MTU,		/* MTU against frame size, or refused by the driver */
	XDPATH_R_PERMISSION,	/* a capability is missing */
	XDPATH_R_MEMLOCK,	/* RLIMIT_MEMLOCK is too small for the UMEM */
	XDPATH_R_MEMORY,	/* no memory */
	XDPATH_R_HUGEPAGES,	/* none to be had: 4 KiB pages are used */
	XDPATH_R_GEOMETRY,	/* a size breaks one of the kernel's rules */
	XDPATH_R_KERNEL,	/* the kernel lacks the feature */
	XDPATH_R_REFUSED,	/* the kernel or driver said no, for a reason of its own */
	XDPATH_R_DEVICE_GONE,	/* the interface was removed while in use */
	XDPATH_R_OPTIONS,	/* the caller's options contradict each other */
};

/*
 * The diagnosis of one call. Filled on failure and on degraded success; the caller owns it.
 * `text` reads "WHAT: why; what to do" in one line without a newline.
 */
struct xdpath_diag {
	enum xdpath_reason reason;
	int err; /* positive errno, 0 if none */
	char text[400];
};

#define XDPATH_OPTS_INIT(type) ((type){.sz = sizeof(type)})

#ifdef __cplusplus
}
#endif
#endif
