/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * bpf/parse.h, the source that the XDP program is made of, under libFuzzer and AddressSanitizer.
 * The frame is copied to memory of just its size: a read past its end is found. What is parsed is
 * used, or the compiler would leave the reads out. `make fuzz`.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../bpf/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Read by nobody, written where the compiler cannot know that. */
static volatile uint64_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xp_frame f;
	struct xp_headers h, again;
	struct xp_key k;
	uint32_t more;
	uint8_t *frame;
	enum xp_status st;

	if (size < 1 || size > 4096)
		return 0;
	more = data[0]; /* bytes in further fragments */
	size--;
	frame = malloc(size ? size : 1);
	if (!frame)
		return 0;
	memcpy(frame, data + 1, size);
	/* Half of them begin as IP, which chance alone takes long to find. */
	if (size > 20 && more & 2) {
		static const uint8_t v4[] = {0x08, 0x00, 0x45}, v6[] = {0x86, 0xdd, 0x60};

		memcpy(frame + 12, more & 4 ? v6 : v4, 3);
	}
	f = (struct xp_frame){.data = frame,
			      .end = frame + size,
			      .whole = (uint32_t)size + (more & 1 ? more * 64 : 0)};
	st = xp_key_of(&f, more, &h, &k);
	sink = k.meta ^ k.ports ^ k.addr[0] ^ k.addr[1] ^ k.addr[2] ^ k.addr[3] ^ h.l3 ^ h.l4 ^
	       h.rest ^ h.vlan;
	if (st == XP_OK && (h.l3 > size || h.l4 > size || h.rest > f.whole))
		abort();
	/* The key asks for more than the headers, never for less. */
	if (xp_parse(frame, frame + size, f.whole, &again) != XP_OK && st == XP_OK)
		abort();
	free(frame);
	return 0;
}
