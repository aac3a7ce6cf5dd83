/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What is in the steering program itself and not in its maps: the filters, and which slot of
 * xdpath_rules it reads (see xdpath/shared.h). Called by steer.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "filter.h"
#include "steer.skel.h"
#include "steer_image.h"

enum { INSNS_MOST = 1 << 20 };

static bool is_slot(const struct bpf_insn *i)
{
	return i->code == (BPF_ALU64 | BPF_MOV | BPF_K) && (i->imm & ~1) == XDPATH_SLOT_MAGIC;
}

int xdpath_steer_slot(int prog_fd)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info), n;
	struct bpf_insn *insn;
	int err = bpf_obj_get_info_by_fd(prog_fd, &info, &len), slot = -ENOENT;

	n = info.xlated_prog_len / sizeof(*insn);
	if (err || !n || n > INSNS_MOST)
		return err ? err : -ENOENT;
	insn = calloc(n, sizeof(*insn));
	if (!insn)
		return -ENOMEM;
	info = (struct bpf_prog_info){.xlated_prog_insns = (uintptr_t)insn,
				      .xlated_prog_len = n * (uint32_t)sizeof(*insn)};
	err = bpf_obj_get_info_by_fd(prog_fd, &info, &len);
	for (uint32_t i = 0; !err && i < n; i++)
		if (is_slot(&insn[i]))
			slot = insn[i].imm & 1;
	free(insn);
	return err ? err : slot;
}

/* The text of filter i of a list, in the order in which they are tried. */
static const char *filter_at(const struct xdpath_rules *l, const uint32_t *order, uint32_t n)
{
	for (uint32_t i = 0; i < l->n; i++) {
		const struct xdpath_rule *r = &l->rule[order[i]];

		if (r->fields & XDPATH_RF_FILTER && !n--)
			return r->filter;
	}
	return NULL;
}

int xdpath_filters_differ(const struct xdpath_rules *old, const struct xdpath_rules *now)
{
	uint32_t *a = calloc(old->n + 1, sizeof(*a)), *b = calloc(now->n + 1, sizeof(*b));
	int differ = a && b ? 0 : -ENOMEM;

	if (!differ) {
		xdpath_rules_order(old, a);
		xdpath_rules_order(now, b);
	}
	for (uint32_t i = 0; !differ; i++) {
		const char *x = filter_at(old, a, i), *y = filter_at(now, b, i);

		if (!y) /* what is left over of the old ones is not asked */
			break;
		differ = !x || strcmp(x, y) != 0;
	}
	free(a);
	free(b);
	return differ;
}

int xdpath_steer_image(const struct xdpath_rules *rules, uint32_t slot, void **out, size_t *size,
		       struct xdpath_diag *diag)
{
	const void *ours = steer_bpf__elf_bytes(size);
	int err = xdpath_filter_image(ours, *size, rules, out, diag);

	/* Instructions stand at multiples of eight. */
	for (size_t at = 0; !err && at + sizeof(struct bpf_insn) <= *size; at += 8) {
		struct bpf_insn i;

		memcpy(&i, (char *)*out + at, sizeof(i));
		if (!is_slot(&i) || i.off || i.src_reg)
			continue;
		i.imm = (int32_t)(XDPATH_SLOT_MAGIC | slot);
		memcpy((char *)*out + at, &i, sizeof(i));
	}
	return err;
}
