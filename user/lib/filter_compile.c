/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Expressions into one function: libpcap compiles each. Called by
 * filter_patch.c for a program, by the rule parser for a check.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/bpf.h>
#include <linux/filter.h>

/* Both headers have a struct of that name. */
#define bpf_insn pcap_bpf_insn
#include <pcap/pcap.h>
#undef bpf_insn

#include "filter.h"

/* Nothing is cut off: a match on the whole frame. */
#define SNAPLEN 262144

_Static_assert(sizeof(struct pcap_bpf_insn) == sizeof(struct sock_filter) &&
		       offsetof(struct pcap_bpf_insn, k) == offsetof(struct sock_filter, k),
	       "libpcap and the kernel mean the same classic BPF");

/* Why the expression is no good; long ones are cut so that the reason fits in. */
static int blame(struct xdpath_diag *diag, int err, const char *expr, const char *why)
{
	char text[128];
	size_t n = strlen(expr);
	const char *dots = n < sizeof(text) ? "" : "...";

	snprintf(text, sizeof(text), "%s", expr);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return xdpath_fail(diag, err == ENOMEM ? XDPATH_R_MEMORY : XDPATH_R_OPTIONS, err,
			   "filter \"%s%s\": %s", text, dots, why);
}

/* Direction, interface and the like: on a live Linux handle libpcap has a packet socket give them
 * by offsets below zero. */
static bool asks_beside_frame(const struct bpf_program *p)
{
	for (u_int i = 0; i < p->bf_len; i++)
		if (BPF_CLASS(p->bf_insns[i].code) == BPF_LD &&
		    BPF_MODE(p->bf_insns[i].code) == BPF_ABS && (int32_t)p->bf_insns[i].k < 0)
			return true;
	return false;
}

/* One expression, appended. */
static int add(pcap_t *pcap, const char *expr, uint32_t number, struct xdpath_code *code,
	       struct xdpath_diag *diag)
{
	struct bpf_program classic;
	char why[PCAP_ERRBUF_SIZE + 32];
	int err;

	if (pcap_compile(pcap, &classic, expr, 1, PCAP_NETMASK_UNKNOWN)) {
		snprintf(why, sizeof(why), "%s; see pcap-filter(7)", pcap_geterr(pcap));
		return blame(diag, EINVAL, expr, why);
	}
	err = -EOPNOTSUPP;
	if (!asks_beside_frame(&classic))
		err = xdpath_code_add(code, (const void *)classic.bf_insns, classic.bf_len, number);
	pcap_freecode(&classic);
	switch (err) {
	case 0: return 0;
	case -ELOOP:
		return blame(diag, EINVAL, expr,
			     "'protochain' is a loop, which cannot run in the kernel; use 'proto'");
	case -EOPNOTSUPP:
		return blame(diag, EINVAL, expr,
			     "only a packet socket knows direction and interface, an XDP program "
			     "sees the frame; leave that word out");
	case -ENOMEM: return blame(diag, ENOMEM, expr, "no memory; free some");
	default:
		return blame(diag, EINVAL, expr,
			     "libpcap made an instruction of it that xdpath does not know");
	}
}

int xdpath_filter_compile(const char *const *expr, uint32_t n, struct xdpath_code *out,
			  struct xdpath_diag *diag)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, SNAPLEN);
	int err = 0;

	*out = (struct xdpath_code){0};
	if (!pcap)
		return xdpath_fail(diag, XDPATH_R_MEMORY, ENOMEM, "filter: no memory; free some");
	xdpath_code_begin(out);
	for (uint32_t i = 0; i < n && !err; i++)
		err = add(pcap, expr[i], i, out, diag);
	if (!err && xdpath_code_end(out))
		err = xdpath_fail(diag, XDPATH_R_MEMORY, ENOMEM, "filter: no memory; free some");
	pcap_close(pcap);
	return err;
}

int xdpath_filter_check(const char *expr, struct xdpath_diag *diag)
{
	struct xdpath_code code;
	int err = xdpath_filter_compile(&expr, 1, &code, diag);

	xdpath_code_free(&code);
	return err;
}
