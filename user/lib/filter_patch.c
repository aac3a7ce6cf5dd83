/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Filters into an XDP object: the code is written over the function that the object keeps free for
 * it, in the ELF image, before anybody opens it. Maps, relocations and types stay as they are.
 * Called by user/lib/prog*.c.
 *
 *	r0 = MAGIC			stays
 *	if r0 == MAGIC goto code	was the first of the free instructions; the verifier knows
 *					that it is taken, so it walks none of
 *	goto +0 ...			the rest, and the kernel removes them
 *	code: ...			the last one is the last of the free instructions
 *	what the compiler put behind	stays: it returns r0
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gelf.h>
#include <linux/bpf.h>

#include <xdpath/shared.h>

#include "filter.h"

#define INSN_SIZE sizeof(struct bpf_insn)

/* The function in the file: where it begins, and how many instructions it has. */
static bool find_function(Elf *elf, uint64_t *at, uint64_t *n)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh, text;
	GElf_Sym sym;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_SYMTAB)
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
			const char *name = elf_strptr(elf, sh.sh_link, sym.st_name);

			if (GELF_ST_TYPE(sym.st_info) != STT_FUNC || !name ||
			    strcmp(name, XDPATH_FILTER_FUNC) != 0)
				continue;
			if (!gelf_getshdr(elf_getscn(elf, sym.st_shndx), &text) ||
			    sym.st_value > text.sh_size ||
			    sym.st_size > text.sh_size - sym.st_value)
				return false;
			*at = text.sh_offset + sym.st_value;
			*n = sym.st_size / INSN_SIZE;
			return true;
		}
	}
	return false;
}

static bool is_free(const struct bpf_insn *in)
{
	static const struct bpf_insn jump_to_next = {.code = BPF_JMP | BPF_JA};

	return !memcmp(in, &jump_to_next, INSN_SIZE);
}

/* The first of them, in an object as it was built: it jumps over the others. Another jump than
 * ours, so that nothing is written twice. */
static bool is_skip(const struct bpf_insn *in)
{
	return in->code == (BPF_JMP | BPF_JGE | BPF_K) && in->imm == XDPATH_FILTER_MAGIC;
}

static bool is_magic(const struct bpf_insn *in)
{
	return in->imm == XDPATH_FILTER_MAGIC && in->dst_reg == BPF_REG_0 &&
	       in->code == (BPF_ALU64 | BPF_MOV | BPF_K);
}

/* The function in the image. -EINVAL: not an object of this machine; -ENOENT: not in it. */
static int look_up(const void *image, size_t size, uint64_t *at, uint64_t *n)
{
	int err = -EINVAL;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_memory((char *)image, size); /* reads only */
	if (elf && elf_kind(elf) == ELF_K_ELF) {
		const char *ident = elf_getident(elf, NULL);
		bool ours = ident && ident[EI_CLASS] == ELFCLASS64 &&
			    (ident[EI_DATA] == ELFDATA2LSB) ==
				    (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

		err = !ours ? -EINVAL : find_function(elf, at, n) ? 0 : -ENOENT;
	}
	elf_end(elf);
	if (!err && (*at > size || *n > (size - *at) / INSN_SIZE))
		err = -EINVAL;
	return err;
}

/*
 * The first free instruction, and how many: those behind the magic one. The compiler may have put
 * something in front of it. -ENOENT: no such function, or nothing is free in it.
 */
static int find_free(const void *image, size_t size, uint64_t *at, uint32_t *room)
{
	uint64_t n = 0, magic = 0, i;
	struct bpf_insn in = {0};
	int err = look_up(image, size, at, &n);

	*room = 0;
	if (err)
		return err;
	for (; magic < n; magic++) {
		memcpy(&in, (const char *)image + *at + magic * INSN_SIZE, INSN_SIZE);
		if (is_magic(&in))
			break;
	}
	for (i = magic + 1; i < n; i++) {
		memcpy(&in, (const char *)image + *at + i * INSN_SIZE, INSN_SIZE);
		if (!is_free(&in) && !(i == magic + 1 && is_skip(&in)))
			break;
		*room = (uint32_t)(i - magic);
	}
	*at += (magic + 1) * INSN_SIZE;
	return *room ? 0 : -ENOENT;
}

static int fail(struct xdpath_diag *diag, int err)
{
	if (err == -ENOENT)
		return xdpath_fail(
			diag, XDPATH_R_OPTIONS, ENOENT,
			"filter: this XDP object has no free function " XDPATH_FILTER_FUNC
			" to write it into; use xdpath's own object");
	if (err == -ENOMEM)
		return xdpath_fail(diag, XDPATH_R_MEMORY, ENOMEM, "filter: no memory; free some");
	return xdpath_fail(diag, XDPATH_R_OPTIONS, EINVAL,
			   "filter: not a BPF object file of this machine; build it anew");
}

int xdpath_filter_patch(void *image, size_t size, const struct xdpath_code *code,
			struct xdpath_diag *diag)
{
	struct bpf_insn skip = {.code = BPF_JMP | BPF_JEQ | BPF_K, .imm = XDPATH_FILTER_MAGIC};
	uint32_t room;
	uint64_t at;
	char *first;
	int err = find_free(image, size, &at, &room);

	if (err)
		return fail(diag, err);
	if (code->n > room || code->n > INT16_MAX)
		return xdpath_fail(diag, XDPATH_R_OPTIONS, E2BIG,
				   "filter: the filters need %u instructions, the program has room "
				   "for %u; use fewer or shorter ones",
				   code->n, room);
	first = (char *)image + at;
	skip.off = (int16_t)(room - code->n - 1);
	if (code->n < room)
		memcpy(first, &skip, INSN_SIZE);
	memcpy(first + (room - code->n) * INSN_SIZE, code->insn, code->n * INSN_SIZE);
	return 0;
}

/* The expressions among the rules; *out to be freed. */
static int collect(const struct xdpath_rules *rules, const char ***out, uint32_t *n)
{
	uint32_t *order = calloc(rules->n + 1, sizeof(*order));

	*n = 0;
	*out = calloc(rules->n + 1, sizeof(**out));
	if (!*out || !order) {
		free(order);
		return -ENOMEM;
	}
	xdpath_rules_order(rules, order);
	for (uint32_t i = 0; i < rules->n; i++) {
		const struct xdpath_rule *r = &rules->rule[order[i]];

		if (r->fields & XDPATH_RF_FILTER)
			(*out)[(*n)++] = r->filter;
	}
	free(order);
	return 0;
}

int xdpath_filter_image(const void *image, size_t size, const struct xdpath_rules *rules,
			void **out, struct xdpath_diag *diag)
{
	struct xdpath_code code = {0};
	const char **expr;
	uint32_t n, unused;
	uint64_t at;
	int err = collect(rules, &expr, &n);

	*out = malloc(size);
	if (err || !*out) {
		err = fail(diag, -ENOMEM);
	} else {
		memcpy(*out, image, size);
		if (n || find_free(image, size, &at, &unused) != -ENOENT) {
			err = xdpath_filter_compile(expr, n, &code, diag);
			if (!err)
				err = xdpath_filter_patch(*out, size, &code, diag);
		}
	}
	xdpath_code_free(&code);
	free(expr);
	if (err) {
		free(*out);
		*out = NULL;
	}
	return err;
}
