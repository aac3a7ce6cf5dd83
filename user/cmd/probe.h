/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What probe found out: filled by probe.c and probe_mode.c, shown by probe_show.c. */
#ifndef XDPATH_PROBE_H
#define XDPATH_PROBE_H

#include "ethtool.h"
#include "inspect.h"
#include "kernel.h"
#include "quirk.h"

/* Where a feature is looked up. */
enum feature_source {
	F_KERNEL, /* bit: enum xdpath_kernel_point */
	F_XDP,	  /* bit of xdp_features */
	F_SEGS,	  /* more than one fragment in zero-copy */
	F_RXMD,	  /* bit of rx_metadata */
	F_XSK,	  /* bit of xsk_features */
};

struct feature {
	const char *name; /* for --require and JSON */
	const char *text;
	uint64_t bit;
	enum feature_source source;
	int also; /* a kernel point needed as well, -1 none */
};

extern const struct feature features[];
extern const size_t nfeatures;

/* 1 yes, 0 no, -errno not known. p is NULL when no device was named. */
int feature_have(const struct feature *f, const struct xdpath_kernel *k,
		 const struct xdpath_port *p);

/* One mode, what stands against it ("" nothing), and what came of trying it. */
struct mode_view {
	enum xdpath_mode mode;
	char against[256];
	bool tried, obtained;
	struct xdpath_diag diag;
	bool link_reset;  /* obtained: opening took the carrier away */
	char notice[300]; /* ... and what to know, "" nothing */
};

#define MODES 3 /* zero-copy, copy, generic: best first */

struct probe {
	struct xdpath_kernel kernel;
	struct inspect in;
	struct xdpath_nic nic; /* of the one device named */
	struct mode_view view[MODES];
};

/* A fault of kernels from one version to before another. */
#define VERSION(major, minor, patch) ((major)*1000000ULL + (minor)*1000ULL + (patch))

struct known_fault {
	const char *key; /* a stable name */
	uint64_t from, before;
	const char *text, *source;
};

/* probe_known.c: the one after `last` (NULL: the first) for this release ("6.16.12-x"), or NULL. */
const struct known_fault *known_next(const struct known_fault *last, const char *release);

/* probe_mode.c: judge the modes by facts; open each one really (changes nothing that stays). */
void probe_judge(struct probe *pr);
void probe_try(struct probe *pr, const struct xdpath_knobs *knobs);
/* The best mode nothing speaks against, or AUTO if there is none. */
enum xdpath_mode probe_best(const struct probe *pr);

/* probe.c: EXIT_DONE if all features of the list (known names) are there, else the first that is
 * not is said. */
int probe_require(const char *require, const struct probe *pr, bool have_dev);

/* probe_show.c */
void show_kernel(const struct xdpath_kernel *k);
void show_line(const struct probe *pr);
void show_device(const struct probe *pr);
json_t *json_kernel(const struct xdpath_kernel *k);
json_t *json_device(const struct probe *pr);

#endif
