/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Classic BPF as libpcap makes it, into eBPF that an XDP program runs. Called by filter_compile.c.
 *
 * A load is done by packet pointer where it lies in the first fragment, else by
 * bpf_xdp_load_bytes(), which knows them all; what lies past the frame's end is no match, as
 * libpcap says. Each load takes the packet pointer anew: a pointer that was kept would carry what
 * is known of its range, and the verifier would walk the rest once for each range. The way by
 * helper stands behind the program, out of the way of the other.
 */
#include <errno.h>
#include <stdlib.h>

#include <linux/bpf.h>
#include <linux/filter.h>

#include "filter.h"

/* Offsets past this are out of reach of the verifier's packet pointers and of the helper. */
#define OFFSET_MAX 0xffff
/* A classic program longer than this is not even looked at. */
#define CLASSIC_MAX (1U << 20)

/* Who is who. A helper call spoils r0 to r5. Upper halves of A and X are always zero. */
enum reg {
	R_RET = BPF_REG_0,
	R_1 = BPF_REG_1, /* index of a load by index */
	R_2 = BPF_REG_2, /* end of a load */
	R_3 = BPF_REG_3,
	R_4 = BPF_REG_4,
	R_CTX = BPF_REG_6,
	R_A = BPF_REG_7,
	R_X = BPF_REG_8,
	R_END = BPF_REG_9, /* data_end */
	R_FP = BPF_REG_10,
};

/* Words on the stack. `from` is where the verifier keeps no bounds: it would walk all that follows
 * once for each. */
#define STACK_FROM	-4
#define STACK_LOADED	-8		   /* what the helper brings */
#define STACK_MEM(slot) (-12 - 4 * (slot)) /* M[] */

/* Where a jump goes before it is resolved: a kind, and for some the classic instruction. */
enum target {
	T_NONE = 0,
	T_NEXT = 1U << 24, /* no match: behind this program */
	T_END = 2U << 24,  /* the verdict stands */
	T_INSN = 3U << 24, /* | classic instruction */
	T_HELP = 4U << 24, /* | classic load: its way by helper */
	T_BACK = 5U << 24, /* | classic load: where that returns to */
	T_KIND = 0xffU << 24,
};

/* The program at hand. */
struct translation {
	struct xdpath_code *c;
	const struct sock_filter *f;
	uint32_t n, number, begin; /* begin: its first eBPF instruction */
	struct place {
		bool reached;
		uint32_t at, help, back;
	} * place; /* per classic instruction */
};

static bool grow(struct xdpath_code *c)
{
	uint32_t room = c->room ? 2 * c->room : 512;
	void *p = realloc(c->insn, room * sizeof(*c->insn));

	if (!p)
		return false;
	c->insn = p;
	p = realloc(c->target, room * sizeof(*c->target));
	if (!p)
		return false;
	c->target = p;
	c->room = room;
	return true;
}

static void put(struct xdpath_code *c, struct bpf_insn in, uint32_t target)
{
	if (c->n == c->room && !grow(c)) {
		c->nomem = true;
		return;
	}
	c->insn[c->n] = in;
	c->target[c->n++] = target;
}

static void op(struct xdpath_code *c, uint32_t code, int dst, int src, int off, int32_t imm)
{
	put(c,
	    (struct bpf_insn){.code = (uint8_t)code,
			      .dst_reg = (uint8_t)(dst & 15),
			      .src_reg = (uint8_t)(src & 15),
			      .off = (int16_t)off,
			      .imm = imm},
	    T_NONE);
}

static void mov(struct xdpath_code *c, int dst, int src)
{
	op(c, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

static void mov_imm(struct xdpath_code *c, int dst, uint32_t imm)
{
	op(c, BPF_ALU | BPF_MOV | BPF_K, dst, 0, 0, (int32_t)imm);
}

static void add_imm(struct xdpath_code *c, int dst, int32_t imm)
{
	op(c, BPF_ALU64 | BPF_ADD, dst, 0, 0, imm);
}

static void call(struct xdpath_code *c, enum bpf_func_id helper)
{
	op(c, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

static void jump(struct xdpath_code *c, uint32_t code, int dst, int src, uint32_t imm, uint32_t to)
{
	put(c,
	    (struct bpf_insn){.code = (uint8_t)code,
			      .dst_reg = (uint8_t)(dst & 15),
			      .src_reg = (uint8_t)(src & 15),
			      .imm = (int32_t)imm},
	    to);
}

static void go(struct xdpath_code *c, uint32_t to)
{
	jump(c, BPF_JMP | BPF_JA, 0, 0, 0, to);
}

static uint32_t bytes(uint16_t code)
{
	return BPF_SIZE(code) == BPF_W ? 4 : BPF_SIZE(code) == BPF_H ? 2 : 1;
}

static bool is_packet_load(uint16_t code)
{
	if (code == (BPF_LDX | BPF_MSH | BPF_B))
		return true;
	return BPF_CLASS(code) == BPF_LD && BPF_SIZE(code) <= BPF_B &&
	       (BPF_MODE(code) == BPF_ABS || BPF_MODE(code) == BPF_IND);
}

static int load_reg(uint16_t code)
{
	return BPF_CLASS(code) == BPF_LD ? R_A : R_X;
}

/* It never matches, and nothing behind it is reached by it: a load out of reach, a division by 0.
 */
static bool is_never(const struct sock_filter *f)
{
	if (is_packet_load(f->code))
		return f->k > OFFSET_MAX - bytes(f->code);
	return BPF_CLASS(f->code) == BPF_ALU && BPF_SRC(f->code) == BPF_K && !f->k &&
	       (BPF_OP(f->code) == BPF_DIV || BPF_OP(f->code) == BPF_MOD);
}

/* A load from the packet: the straight way. */
static void load(struct translation *t, uint32_t i)
{
	const struct sock_filter *f = &t->f[i];
	int size = (int)bytes(f->code), dst = load_reg(f->code);
	struct xdpath_code *c = t->c;

	if (BPF_MODE(f->code) == BPF_IND) {
		mov(c, R_1, R_X);
		add_imm(c, R_1, (int32_t)f->k);
		jump(c, BPF_JMP | BPF_JGT | BPF_K, R_1, 0, OFFSET_MAX - (uint32_t)size, T_NEXT);
	}
	op(c, BPF_LDX | BPF_MEM | BPF_W, R_2, R_CTX, offsetof(struct xdp_md, data), 0);
	if (BPF_MODE(f->code) == BPF_IND)
		op(c, BPF_ALU64 | BPF_ADD | BPF_X, R_2, R_1, 0, 0);
	add_imm(c, R_2, size + (BPF_MODE(f->code) == BPF_IND ? 0 : (int32_t)f->k));
	jump(c, BPF_JMP | BPF_JGT | BPF_X, R_2, R_END, 0, T_HELP | i);
	op(c, BPF_LDX | BPF_MEM | BPF_SIZE(f->code), dst, R_2, -size, 0);
	t->place[i].back = c->n;
	if (size > 1)
		op(c, BPF_ALU | BPF_END | BPF_TO_BE, dst, 0, 0, 8 * size);
	if (BPF_MODE(f->code) == BPF_MSH) {
		op(c, BPF_ALU | BPF_AND | BPF_K, dst, 0, 0, 0xf);
		op(c, BPF_ALU | BPF_LSH | BPF_K, dst, 0, 0, 2);
	}
}

/* The same by helper. */
static void load_by_helper(struct translation *t, uint32_t i)
{
	const struct sock_filter *f = &t->f[i];
	struct xdpath_code *c = t->c;

	t->place[i].help = c->n;
	if (BPF_MODE(f->code) == BPF_IND)
		mov(c, R_2, R_1);
	else
		mov_imm(c, R_2, f->k);
	mov(c, R_1, R_CTX);
	mov(c, R_3, R_FP);
	add_imm(c, R_3, STACK_LOADED);
	mov_imm(c, R_4, bytes(f->code));
	call(c, BPF_FUNC_xdp_load_bytes);
	jump(c, BPF_JMP | BPF_JNE | BPF_K, R_RET, 0, 0, T_NEXT);
	op(c, BPF_LDX | BPF_MEM | BPF_SIZE(f->code), load_reg(f->code), R_FP, STACK_LOADED, 0);
	go(c, T_BACK | i);
}

/* A load from elsewhere. */
static int load_other(struct xdpath_code *c, const struct sock_filter *f)
{
	int dst = load_reg(f->code);

	switch (BPF_MODE(f->code)) {
	case BPF_IMM: mov_imm(c, dst, f->k); return 0;
	case BPF_MEM:
		if (f->k >= BPF_MEMWORDS)
			return -EINVAL;
		op(c, BPF_LDX | BPF_MEM | BPF_W, dst, R_FP, STACK_MEM((int)f->k), 0);
		return 0;
	case BPF_LEN:
		mov(c, R_1, R_CTX);
		call(c, BPF_FUNC_xdp_get_buff_len);
		op(c, BPF_ALU | BPF_MOV | BPF_X, dst, R_RET, 0, 0);
		return 0;
	default: return -EINVAL;
	}
}

static int alu(struct xdpath_code *c, const struct sock_filter *f)
{
	bool x = BPF_SRC(f->code) == BPF_X;

	switch (BPF_OP(f->code)) {
	case BPF_NEG: op(c, BPF_ALU | BPF_NEG, R_A, 0, 0, 0); return 0;
	case BPF_DIV:
	case BPF_MOD:
		if (x)
			jump(c, BPF_JMP32 | BPF_JEQ | BPF_K, R_X, 0, 0, T_NEXT);
		break;
	case BPF_LSH:
	case BPF_RSH: /* a shift by 32 and more leaves nothing; eBPF looks at five bits only */
		if (!x && f->k >= 32)
			return -EINVAL;
		if (x) {
			op(c, BPF_JMP32 | BPF_JLT | BPF_K, R_X, 0, 1, 32);
			mov_imm(c, R_A, 0);
		}
		break;
	case BPF_ADD:
	case BPF_SUB:
	case BPF_MUL:
	case BPF_AND:
	case BPF_OR:
	case BPF_XOR: break;
	default: return -EINVAL;
	}
	op(c, f->code, R_A, x ? R_X : 0, 0, x ? 0 : (int32_t)f->k);
	return 0;
}

/* To `yes` or `no`; the next classic instruction follows at once. */
static int branch(struct translation *t, uint32_t i)
{
	const struct sock_filter *f = &t->f[i];
	uint32_t test = BPF_OP(f->code), yes = i + 1 + f->jt, no = i + 1 + f->jf;
	uint32_t opposite = 0;

	switch (test) {
	case BPF_JA: go(t->c, T_INSN | (i + 1 + f->k)); return 0;
	case BPF_JEQ: opposite = BPF_JNE; break;
	case BPF_JGT: opposite = BPF_JLE; break;
	case BPF_JGE: opposite = BPF_JLT; break;
	case BPF_JSET: break;
	default: return -EINVAL;
	}
	if (yes == i + 1 && opposite) {
		test = opposite;
		yes = no;
		no = i + 1;
	}
	jump(t->c, BPF_JMP32 | test | BPF_SRC(f->code), R_A, BPF_SRC(f->code) == BPF_X ? R_X : 0,
	     BPF_SRC(f->code) == BPF_X ? 0 : f->k, T_INSN | yes);
	if (no != i + 1)
		go(t->c, T_INSN | no);
	return 0;
}

static int ret(struct translation *t, const struct sock_filter *f)
{
	if (BPF_RVAL(f->code) == BPF_A)
		jump(t->c, BPF_JMP32 | BPF_JEQ | BPF_K, R_A, 0, 0, T_NEXT);
	else if (BPF_RVAL(f->code) != BPF_K)
		return -EINVAL;
	else if (!f->k) {
		go(t->c, T_NEXT);
		return 0;
	}
	mov_imm(t->c, R_RET, t->number + 1);
	go(t->c, T_END);
	return 0;
}

static int one(struct translation *t, uint32_t i)
{
	const struct sock_filter *f = &t->f[i];
	struct xdpath_code *c = t->c;

	if (is_never(f)) {
		go(c, T_NEXT);
		return 0;
	}
	if (is_packet_load(f->code)) {
		load(t, i);
		return 0;
	}
	switch (BPF_CLASS(f->code)) {
	case BPF_LD:
	case BPF_LDX: return load_other(c, f);
	case BPF_ST:
	case BPF_STX:
		if (f->k >= BPF_MEMWORDS)
			return -EINVAL;
		op(c, BPF_STX | BPF_MEM | BPF_W, R_FP, BPF_CLASS(f->code) == BPF_ST ? R_A : R_X,
		   STACK_MEM((int)f->k), 0);
		return 0;
	case BPF_ALU: return alu(c, f);
	case BPF_JMP: return branch(t, i);
	case BPF_RET: return ret(t, f);
	default: /* BPF_MISC */
		if (BPF_MISCOP(f->code) == BPF_TAX)
			mov(c, R_X, R_A);
		else if (BPF_MISCOP(f->code) == BPF_TXA)
			mov(c, R_A, R_X);
		else
			return -EINVAL;
		return 0;
	}
}

/* Jumps go forward only, so one pass finds what is reached: the verifier refuses anything else. */
static int reach(struct translation *t)
{
	t->place[0].reached = true;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct sock_filter *f = &t->f[i];
		uint64_t to[2] = {i + 1ULL, i + 1ULL};

		if (!t->place[i].reached || BPF_CLASS(f->code) == BPF_RET || is_never(f))
			continue;
		if (f->code == (BPF_JMP | BPF_JA)) {
			if ((int32_t)f->k < 0)
				return -ELOOP;
			to[0] += f->k;
			to[1] += f->k;
		} else if (BPF_CLASS(f->code) == BPF_JMP) {
			to[0] += f->jt;
			to[1] += f->jf;
		}
		if (to[0] >= t->n || to[1] >= t->n)
			return -EINVAL;
		t->place[to[0]].reached = true;
		t->place[to[1]].reached = true;
	}
	return 0;
}

/* Only if the number is at least `from`. A and X begin as zero; so do the words of M[] that are
 * read. */
static void enter(struct translation *t)
{
	uint32_t read = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		uint16_t code = t->f[i].code;

		if (t->place[i].reached && BPF_MODE(code) == BPF_MEM && t->f[i].k < BPF_MEMWORDS &&
		    (BPF_CLASS(code) == BPF_LD || BPF_CLASS(code) == BPF_LDX))
			read |= 1U << t->f[i].k;
	}
	op(t->c, BPF_LDX | BPF_MEM | BPF_W, R_1, R_FP, STACK_FROM, 0);
	jump(t->c, BPF_JMP32 | BPF_JGT | BPF_K, R_1, 0, t->number, T_NEXT);
	mov_imm(t->c, R_A, 0);
	mov_imm(t->c, R_X, 0);
	for (int slot = 0; slot < BPF_MEMWORDS; slot++)
		if (read >> slot & 1)
			op(t->c, BPF_STX | BPF_MEM | BPF_W, R_FP, R_X, STACK_MEM(slot), 0);
}

/* All jumps of this program but those to the end. */
static void resolve(struct translation *t)
{
	struct xdpath_code *c = t->c;

	for (uint32_t i = t->begin; i < c->n; i++) {
		uint32_t what = c->target[i] & ~T_KIND, to;

		switch (c->target[i] & T_KIND) {
		case T_NEXT: to = c->n; break;
		case T_INSN: to = t->place[what].at; break;
		case T_HELP: to = t->place[what].help; break;
		case T_BACK: to = t->place[what].back; break;
		default: continue;
		}
		c->insn[i].off = (int16_t)((int64_t)to - i - 1);
		c->target[i] = T_NONE;
	}
}

void xdpath_code_begin(struct xdpath_code *c)
{
	mov(c, R_CTX, R_1);
	op(c, BPF_STX | BPF_MEM | BPF_W, R_FP, R_2, STACK_FROM, 0);
	op(c, BPF_LDX | BPF_MEM | BPF_W, R_END, R_CTX, offsetof(struct xdp_md, data_end), 0);
}

int xdpath_code_add(struct xdpath_code *c, const struct sock_filter *f, uint32_t n, uint32_t number)
{
	struct translation t = {.c = c, .f = f, .n = n, .number = number, .begin = c->n};
	int err;

	if (!n || n > CLASSIC_MAX)
		return -EINVAL;
	t.place = calloc(n, sizeof(*t.place));
	if (!t.place)
		return -ENOMEM;
	err = reach(&t);
	if (!err)
		enter(&t);
	for (uint32_t i = 0; i < n && !err; i++) {
		t.place[i].at = c->n;
		if (t.place[i].reached)
			err = one(&t, i);
	}
	for (uint32_t i = 0; i < n && !err; i++)
		if (t.place[i].reached && is_packet_load(f[i].code) && !is_never(&f[i]))
			load_by_helper(&t, i);
	if (c->nomem)
		err = -ENOMEM;
	if (!err)
		resolve(&t);
	free(t.place);
	return err;
}

int xdpath_code_end(struct xdpath_code *c)
{
	mov_imm(c, R_RET, 0);
	if (c->nomem)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++)
		if (c->target[i] == T_END)
			c->insn[i].off = (int16_t)(c->n - i - 1);
	return 0;
}

void xdpath_code_free(struct xdpath_code *c)
{
	free(c->insn);
	free(c->target);
	*c = (struct xdpath_code){0};
}
