/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What a carrier is, for the library and the command. */
#ifndef XDPATH_CARRIER_H
#define XDPATH_CARRIER_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef IFF_LOWER_UP
#define IFF_LOWER_UP (1U << 16)
#endif

/* LOWER_UP goes at once with a reset, RUNNING comes late with the link's return: both count. */
static inline bool xdpath_has_carrier(uint32_t flags)
{
	return (flags & IFF_LOWER_UP) && (flags & IFF_RUNNING);
}

#endif
