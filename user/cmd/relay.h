/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* From an RX ring to a TX ring of the same worker without copying: what forward and reflect share.
 */
#ifndef XDPATH_RELAY_H
#define XDPATH_RELAY_H

#include "run.h"

/* Rewrites the packets of a burst in place, before they are sent. */
typedef void (*relay_change_fn)(const struct xdpath_queue *q, const struct xdp_desc *d, uint32_t n);

/* run's `prepare`: the workers' own state. */
int relay_prepare(struct run *r);
/* run's `finish` */
void relay_finish(struct run *r);

/* A round: worker w's socket i to its peer; `change` may be NULL. Returns fragments handled. */
uint32_t relay(const struct run *r, struct xdpath_worker *w, uint32_t i, relay_change_fn change);

#endif
