/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The knobs: one table from which help, validation, files and printing are made.
 * A knob is listed once its policy exists.
 */
#ifndef XDPATH_KNOB_H
#define XDPATH_KNOB_H

#include <xdpath/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum xdpath_poll_mode { XDPATH_POLL_BLOCK = 0, XDPATH_POLL_SPIN = 1 };

#define XDPATH_KNOB_AUTO UINT32_MAX /* a value of "auto" */

/* A set of values, all of them uint32_t: numbers, or the ordinal of a word. */
struct xdpath_knobs {
	uint32_t umem_frames, umem_frame_size, umem_headroom, umem_hugepages;
	uint32_t ring_rx, ring_tx, ring_fill, ring_comp;
	uint32_t open_wait_ms, open_quirks;
	uint32_t rx_batch;
	uint32_t poll_mode; /* enum xdpath_poll_mode */
	uint32_t tx_kick_budget, tx_stall_us;
};

enum xdpath_knob_flags {
	XDPATH_KNOB_LIVE = 1,
	XDPATH_KNOB_REOPEN = 2,
	XDPATH_KNOB_POW2 = 4,
	XDPATH_KNOB_CAN_AUTO = 8
};

struct xdpath_knob {
	const char *name;
	const char *unit;
	const char *text;
	const char *origin;	  /* where the default comes from */
	const char *const *words; /* NULL-terminated for a word knob, else NULL */
	uint32_t min, max, def;
	uint32_t flags;
	size_t offset; /* in struct xdpath_knobs */
};

XDPATH_API const struct xdpath_knob *xdpath_knob_table(size_t *n);
XDPATH_API void xdpath_knobs_defaults(struct xdpath_knobs *k);
/* Set KEY to VALUE; -ENOENT unknown key (diag: the nearest), -EINVAL or -ERANGE bad value (diag:
 * the range). */
XDPATH_API int xdpath_knob_set(struct xdpath_knobs *k, const char *key, const char *value,
			       struct xdpath_diag *diag);
/* The value as text, into buf. */
XDPATH_API void xdpath_knob_print(const struct xdpath_knobs *k, const struct xdpath_knob *kn,
				  char *buf, size_t len);
/* Read a file of KEY = VALUE lines (# comments); -errno, diag names file and line. All or nothing.
 */
XDPATH_API int xdpath_knobs_load(struct xdpath_knobs *k, const char *path,
				 struct xdpath_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
