/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The steering program's own part of the rules: between steer_image.c and steer.c. */
#ifndef XDPATH_STEER_IMAGE_H
#define XDPATH_STEER_IMAGE_H

#include <xdpath/rule.h>

#include "internal.h"

/* Which slot a loaded program reads. -ENOENT: the kernel does not show its instructions. */
int xdpath_steer_slot(int prog_fd);
/* Our program's image with these rules' filters, which reads the slot. To be freed. */
int xdpath_steer_image(const struct xdpath_rules *rules, uint32_t slot, void **out, size_t *size,
		       struct xdpath_diag *diag);
/* Whether a program with the old rules' filters does not suit the new ones: 1, 0, or -ENOMEM. */
int xdpath_filters_differ(const struct xdpath_rules *old, const struct xdpath_rules *now);

#endif
