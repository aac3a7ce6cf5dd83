/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The knob table and all that is made from it: parsing, ranges, printing, files. The command's help
 * and `--set` come from here; a datapath reads the plain values.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const char *const words_hugepages[] = {"auto", "0", "1", NULL};
static const char *const words_poll[] = {"block", "spin", NULL};

#define AT(field) offsetof(struct xdpath_knobs, field)
#define R	  XDPATH_KNOB_REOPEN
#define L	  XDPATH_KNOB_LIVE
#define AUTO	  XDPATH_KNOB_CAN_AUTO
#define POW2	  XDPATH_KNOB_POW2

static const struct xdpath_knob table[] = {
	{"umem.frames", "frames", "frames for each queue",
	 "fill + RX + 2 x TX: every ring full at once", NULL, 64, 1U << 20, XDPATH_KNOB_AUTO,
	 R | AUTO, AT(umem_frames)},
	{"umem.frame_size", "bytes", "size of a frame: 2048 or 4096",
	 "one page holds 1500 byte packets", NULL, 2048, 4096, 4096, R | POW2, AT(umem_frame_size)},
	{"umem.headroom", "bytes", "left free before a packet, beside the kernel's 256",
	 "nobody needs it yet", NULL, 0, 3392, 0, R, AT(umem_headroom)},
	{"umem.hugepages", "", "auto tries them, 0 does not, 1 insists",
	 "fewer TLB misses where there are any", words_hugepages, 0, 2, 0, R, AT(umem_hugepages)},
	{"ring.rx", "slots", "RX ring of a socket", "kernel samples", NULL, 64, 65536, 2048,
	 R | POW2, AT(ring_rx)},
	{"ring.tx", "slots", "TX ring of a socket", "kernel samples", NULL, 64, 65536, 2048,
	 R | POW2, AT(ring_tx)},
	{"ring.fill", "slots",
	 "fill ring; auto: 2048 in copy mode, the NIC's RX ring + ring.rx in zero-copy",
	 "more only cools the cache in copy mode", NULL, 64, 65536, XDPATH_KNOB_AUTO,
	 R | POW2 | AUTO, AT(ring_fill)},
	{"ring.comp", "slots", "completion ring", "as ring.tx", NULL, 64, 65536, 2048, R | POW2,
	 AT(ring_comp)},
	{"open.wait_ms", "ms", "how long a busy queue, then the carrier, is waited for",
	 "the kernel releases a queue late, drivers reset", NULL, 0, 60000, 3000, R,
	 AT(open_wait_ms)},
	{"open.quirks", "", "1 heeds known faults of drivers (`xdpath probe DEV`), 0 does not",
	 "0 is for a look whether the fault is there", NULL, 0, 1, 1, R, AT(open_quirks)},
	{"rx.batch", "packets", "most taken at once; never waits to fill",
	 "r8169 thread 2011: at most 64", NULL, 1, XDPATH_BURST_MAX, 64, L, AT(rx_batch)},
	{"poll.mode", "", "how a worker waits: block or spin", "block costs nothing when idle",
	 words_poll, 0, 1, XDPATH_POLL_BLOCK, L, AT(poll_mode)},
	{"tx.kick_budget", "frames",
	 "frames one kick may send in copy mode; auto: 64 where the kernel can",
	 "32 is the kernel's own; 64 halves the system calls", NULL, 32, 65536, XDPATH_KNOB_AUTO,
	 R | AUTO, AT(tx_kick_budget)},
	{"tx.stall_us", "us", "how long a full egress may hold back the RX ring",
	 "a burst's length", NULL, 0, 10000000, 1000, L, AT(tx_stall_us)},
};

#define KNOBS (sizeof(table) / sizeof(table[0]))

const struct xdpath_knob *xdpath_knob_table(size_t *n)
{
	*n = KNOBS;
	return table;
}

static uint32_t *value_of(struct xdpath_knobs *k, const struct xdpath_knob *kn)
{
	return (uint32_t *)(void *)((char *)k + kn->offset);
}

void xdpath_knobs_defaults(struct xdpath_knobs *k)
{
	for (size_t i = 0; i < KNOBS; i++)
		*value_of(k, &table[i]) = table[i].def;
}

static int unknown_key(const char *key, struct xdpath_diag *diag)
{
	struct xdpath_near near;

	xdpath_near_start(&near, key);
	for (size_t i = 0; i < KNOBS; i++)
		xdpath_near_offer(&near, table[i].name);
	return xdpath_fail(diag, XDPATH_R_OPTIONS, ENOENT,
			   "%s: no such knob; %s%s%s`xdpath help knobs` lists them", key,
			   near.best ? "did you mean " : "", near.best ? near.best : "",
			   near.best ? "? " : "");
}

static int set_word(struct xdpath_knobs *k, const struct xdpath_knob *kn, const char *value,
		    struct xdpath_diag *diag)
{
	char all[64] = "";
	size_t used = 0;

	for (uint32_t i = 0; kn->words[i]; i++) {
		if (strcmp(kn->words[i], value) == 0) {
			*value_of(k, kn) = i;
			return 0;
		}
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
					 kn->words[i]);
	}
	return xdpath_fail(diag, XDPATH_R_OPTIONS, EINVAL,
			   "%s: \"%s\" is none of its values; set one of %s", kn->name, value, all);
}

static int set_number(struct xdpath_knobs *k, const struct xdpath_knob *kn, const char *value,
		      struct xdpath_diag *diag)
{
	const char *or_auto = kn->flags & AUTO ? ", or auto" : "";
	unsigned long long v;
	char *end;

	if ((kn->flags & AUTO) && strcmp(value, "auto") == 0) {
		*value_of(k, kn) = XDPATH_KNOB_AUTO;
		return 0;
	}
	errno = 0;
	v = strtoull(value, &end, 10);
	if (!isdigit((unsigned char)value[0]) || *end)
		return xdpath_fail(diag, XDPATH_R_OPTIONS, EINVAL,
				   "%s: \"%s\" is not a number; set %u to %u %s%s", kn->name, value,
				   kn->min, kn->max, kn->unit, or_auto);
	if (errno || v < kn->min || v > kn->max)
		return xdpath_fail(diag, XDPATH_R_OPTIONS, ERANGE,
				   "%s: %s is out of range; set %u to %u %s%s", kn->name, value,
				   kn->min, kn->max, kn->unit, or_auto);
	if ((kn->flags & POW2) && (v & (v - 1)))
		return xdpath_fail(diag, XDPATH_R_GEOMETRY, EINVAL,
				   "%s: %s is not a power of two, which the kernel demands; set "
				   "one from %u to %u",
				   kn->name, value, kn->min, kn->max);
	*value_of(k, kn) = (uint32_t)v;
	return 0;
}

int xdpath_knob_set(struct xdpath_knobs *k, const char *key, const char *value,
		    struct xdpath_diag *diag)
{
	for (size_t i = 0; i < KNOBS; i++)
		if (strcmp(table[i].name, key) == 0)
			return table[i].words ? set_word(k, &table[i], value, diag)
					      : set_number(k, &table[i], value, diag);
	return unknown_key(key, diag);
}

void xdpath_knob_print(const struct xdpath_knobs *k, const struct xdpath_knob *kn, char *buf,
		       size_t len)
{
	uint32_t v = *(const uint32_t *)(const void *)((const char *)k + kn->offset);

	if (kn->words)
		snprintf(buf, len, "%s", kn->words[v]);
	else if (v == XDPATH_KNOB_AUTO && (kn->flags & AUTO))
		snprintf(buf, len, "auto");
	else
		snprintf(buf, len, "%u", v);
}

static char *strip(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	end = s + strlen(s);
	while (end > s && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return s;
}

static int load_line(struct xdpath_knobs *k, char *line, const char *path, unsigned int number,
		     struct xdpath_diag *diag)
{
	struct xdpath_diag why = {0};
	char *key, *eq;
	int err;

	line[strcspn(line, "#")] = '\0';
	key = strip(line);
	if (!*key)
		return 0;
	eq = strchr(key, '=');
	if (!eq)
		return xdpath_fail(diag, XDPATH_R_OPTIONS, EINVAL,
				   "%s:%u: no \"=\" in \"%.60s\"; write KEY = VALUE", path, number,
				   key);
	*eq = '\0';
	err = xdpath_knob_set(k, strip(key), strip(eq + 1), &why);
	if (err)
		return xdpath_fail(diag, why.reason, -err, "%.120s:%u: %.250s", path, number,
				   why.text);
	return 0;
}

int xdpath_knobs_load(struct xdpath_knobs *k, const char *path, struct xdpath_diag *diag)
{
	struct xdpath_knobs copy = *k;
	unsigned int number = 0;
	char *line = NULL;
	size_t size = 0;
	FILE *f = fopen(path, "re");
	int err = 0;

	if (!f)
		return xdpath_fail(diag, XDPATH_R_OPTIONS, errno,
				   "%s: %s; name a file of KEY = VALUE lines", path,
				   strerror(errno));
	while (!err && getline(&line, &size, f) >= 0)
		err = load_line(&copy, line, path, ++number, diag);
	if (!err && ferror(f))
		err = xdpath_fail(
			diag, XDPATH_R_OPTIONS, EIO,
			"%s: could not be read to its end; name a file of KEY = VALUE lines", path);
	free(line);
	fclose(f);
	if (!err)
		*k = copy;
	return err;
}
