/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Faults of kernels that no question brings to light without traffic: told by version, as a warning
 * only; nothing is decided by them. A distribution may carry the repair. Called by probe.
 */
#include <stdio.h>

#include "probe.h"

static const struct known_fault faults[] = {
	{"busy-poll-copy", VERSION(6, 13, 0), VERSION(6, 15, 0),
	 "busy-poll of AF_XDP in copy mode finds no NAPI and polls nothing; zero-copy is well",
	 "broken by commit 86e25f40aa1e (6.13), repaired by b95ed5517354 (6.15)"},
	{"copy-completion-early", VERSION(4, 18, 0), VERSION(6, 17, 0),
	 "copy mode may complete a frame before it is sent, where several sockets share a UMEM or "
	 "the device is busy",
	 "repaired by commit 30f241fcf52a (6.17, and in 6.16.y)"},
	{"copy-completion-crash", VERSION(6, 16, 0), VERSION(6, 18, 0),
	 "the first repair of copy-completion-early can crash the kernel when a copied frame loops "
	 "into its own stack (virtual devices)",
	 "seen on 6.16.12, repaired in October 2025 (6.18, later 6.17.y)"},
};

const struct known_fault *known_next(const struct known_fault *last, const char *release)
{
	const struct known_fault *f = last ? last + 1 : faults;
	unsigned int major = 0, minor = 0, patch = 0;

	if (sscanf(release, "%u.%u.%u", &major, &minor, &patch) < 2)
		return NULL;
	for (; f < faults + sizeof(faults) / sizeof(faults[0]); f++)
		if (VERSION(major, minor, patch) >= f->from &&
		    VERSION(major, minor, patch) < f->before)
			return f;
	return NULL;
}
