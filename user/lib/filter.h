/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * tcpdump expressions as code of the XDP program itself. libpcap turns an expression into classic
 * BPF (filter_compile.c), that becomes eBPF whose every load is checked (filter_translate.c), and
 * that is written over a function the object file keeps free for it (filter_patch.c), before the
 * object is opened. Called by user/lib/prog*.c and by whoever reads rules.
 */
#ifndef XDPATH_FILTER_H
#define XDPATH_FILTER_H

#include <xdpath/rule.h>

#include "internal.h"

struct bpf_insn;
struct sock_filter;

#define XDPATH_FILTER_FUNC "xp_filter" /* see XDPATH_FILTER_MAGIC */

/* eBPF: takes and gives what xdpath/shared.h says of filters; ends by running off its end. Zero is
 * an empty one. */
struct xdpath_code {
	struct bpf_insn *insn;
	uint32_t *target; /* per instruction, where it jumps to until that is resolved; see
			     filter_translate.c */
	uint32_t n, room;
	bool nomem;
};

/* 0, or -EINVAL with libpcap's word about the expression. May ask the resolver for host names. */
int xdpath_filter_check(const char *expr, struct xdpath_diag *diag);

/*
 * One function of n filters, numbered in this order. With n = 0 none matches. To be freed by
 * xdpath_code_free() in any case. -EINVAL as above, -ENOMEM.
 */
int xdpath_filter_compile(const char *const *expr, uint32_t n, struct xdpath_code *out,
			  struct xdpath_diag *diag);

/*
 * Write the code into the function kept free in an ELF image that the caller may write to; nothing
 * else in it changes, and nothing at all on failure. -ENOENT: it has no such function, or it has
 * been written already; -E2BIG: too long, the diagnosis has both figures; -EINVAL: not an object of
 * this machine.
 */
int xdpath_filter_patch(void *image, size_t size, const struct xdpath_code *code,
			struct xdpath_diag *diag);

/*
 * All of it: a copy of the image (to be freed) in which the filters among the rules are in force.
 * A filter's rank is its rule's place in xdpath_rules_order(). Without filters, an image that has
 * no function for them is copied as it is.
 */
int xdpath_filter_image(const void *image, size_t size, const struct xdpath_rules *rules,
			void **out, struct xdpath_diag *diag);

/* filter_translate.c: */
void xdpath_code_begin(struct xdpath_code *c);
/*
 * Append one classic program, the filter of this number. -ELOOP: it jumps backwards; -EINVAL: no
 * valid program; -ENOMEM.
 */
int xdpath_code_add(struct xdpath_code *c, const struct sock_filter *f, uint32_t n,
		    uint32_t number);
int xdpath_code_end(struct xdpath_code *c); /* 0 or -ENOMEM */
void xdpath_code_free(struct xdpath_code *c);

#endif
