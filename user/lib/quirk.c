/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The table of drivers' faults, and the check against it. Called by negotiate.c and socket.c before
 * anything is opened, and by probe, which lists what applies.
 *
 * An entry belongs here only if neither the kernel's answers nor a try tell of it; it goes when a
 * fact does. It may refuse what the driver would accept, never allow what it refuses.
 */
#include <errno.h>
#include <string.h>

#include "quirk.h"

#define VLAN_TAG 4U

static const struct xdpath_quirk quirks[] = {
	{
		/*
		 * The descriptor's options are 0 on both halves: no XDP_PKT_CONTD, so that two
		 * halves look like two packets.
		 */
		.key = "rx-buffer-in-kib",
		.driver = "igb",
		.what = "zero-copy cuts a received packet in two, unmarked, where it is longer "
			"than "
			"the room in a frame rounded down to whole KiB (1024 bytes of a 2048-byte "
			"frame)",
		.done = "zero-copy is refused where a packet does not fit: 2048-byte frames, or an "
			"MTU "
			"above 3054 with 4096-byte ones",
		.seen = "Linux 7.3.4 on QEMU 10's igb; real hardware not tried",
		.verify =
			"send packets of 1025 bytes to `xdpath sink DEV --all=l2 --mode zero-copy "
			"--set umem.frame_size=2048 --set open.quirks=0`: twice as many arrive",
		.rx_granule = 1024,
		.rx_least = 1522,
	},
};

const struct xdpath_quirk *xdpath_quirk_next(const struct xdpath_quirk *last, const char *driver)
{
	const struct xdpath_quirk *q = last ? last + 1 : quirks;

	for (; q < quirks + sizeof(quirks) / sizeof(quirks[0]); q++)
		if (strcmp(q->driver, driver) == 0)
			return q;
	return NULL;
}

int xdpath_quirk_check(const struct xdpath_port *p, enum xdpath_mode mode, uint32_t rx_room,
		       struct xdpath_diag *d)
{
	const struct xdpath_quirk *q = NULL;

	while (mode == XDPATH_MODE_ZEROCOPY && (q = xdpath_quirk_next(q, p->driver))) {
		uint32_t room = q->rx_granule ? rx_room - rx_room % q->rx_granule : rx_room;
		uint32_t need = p->mtu + XDPATH_ETH_MIN + VLAN_TAG;

		if ((need > q->rx_least ? need : q->rx_least) <= room)
			continue;
		return xdpath_fail(
			d, XDPATH_R_NO_FRAGMENTS, EOPNOTSUPP,
			"%s: zero-copy of the driver %s would cut packets above %u bytes in "
			"two (%s); use umem.frame_size=4096 and umem.headroom=0%s, or "
			"--mode copy",
			p->name, p->driver, room, q->key,
			need > q->rx_least ? ", a smaller MTU" : "");
	}
	return 0;
}
