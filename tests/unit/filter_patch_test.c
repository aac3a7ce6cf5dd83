/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * user/lib/filter_patch.c: code lands in the right place of an object and nowhere else, whatever
 * the object is; the steering program takes it. That last part needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/libbpf.h>
#include <elf.h>

#include <xdpath/shared.h>

#include "filter_run.h"
#include "steer.skel.h"

static struct xdpath_diag diag;

#define ROOM 400

/* As clang makes it: another function and a word of its own in front, a tail behind. */
static struct object {
	Elf64_Ehdr eh;
	struct bpf_insn before[3], head, magic, room[ROOM], tail[2];
	Elf64_Sym sym[3];
	char str[64];
	Elf64_Shdr sh[4];
} object;

static void make_object(void)
{
	struct object *o = &object;
	uint32_t at = offsetof(struct object, head) - offsetof(struct object, before);
	uint32_t text = offsetof(struct object, sym) - offsetof(struct object, before);

	*o = (struct object){0};
	memcpy(o->eh.e_ident, ELFMAG, SELFMAG);
	o->eh.e_ident[EI_CLASS] = ELFCLASS64;
	o->eh.e_ident[EI_DATA] =
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	o->eh.e_ident[EI_VERSION] = EV_CURRENT;
	o->eh.e_type = ET_REL;
	o->eh.e_machine = 247; /* EM_BPF */
	o->eh.e_version = EV_CURRENT;
	o->eh.e_ehsize = sizeof(o->eh);
	o->eh.e_shentsize = sizeof(o->sh[0]);
	o->eh.e_shnum = 4;
	o->eh.e_shoff = offsetof(struct object, sh);
	o->eh.e_shstrndx = 3;
	memcpy(o->str, "\0other\0xp_filter", 17);
	o->before[2] = insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	o->head = insn(BPF_ALU | BPF_MOV | BPF_X, 2, 2, 0, 0);
	o->magic = insn(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDPATH_FILTER_MAGIC);
	o->room[0] = insn(BPF_JMP | BPF_JGE | BPF_K, 0, 0, ROOM - 1, XDPATH_FILTER_MAGIC);
	for (uint32_t i = 1; i < ROOM; i++)
		o->room[i] = insn(BPF_JMP | BPF_JA, 0, 0, 0, 0);
	o->tail[1] = insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	o->sym[1] = (Elf64_Sym){1, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 0, 1, 0, at};
	o->sym[2] = (Elf64_Sym){7, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 0, 1, at, text - at};
	o->sh[1] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
				.sh_offset = offsetof(struct object, before),
				.sh_size = text,
				.sh_addralign = 8};
	o->sh[2] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				.sh_link = 3,
				.sh_offset = offsetof(struct object, sym),
				.sh_size = sizeof(o->sym),
				.sh_addralign = 8,
				.sh_entsize = sizeof(o->sym[0])};
	o->sh[3] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct object, str),
				.sh_size = sizeof(o->str),
				.sh_addralign = 1};
}

/* A code of n instructions: r0 = 1, n times. */
static struct xdpath_code make_code(uint32_t n)
{
	static struct bpf_insn in[ROOM + 1];

	for (uint32_t i = 0; i < n; i++)
		in[i] = insn(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1);
	return (struct xdpath_code){.insn = in, .n = n};
}

/* Right-aligned, a jump to it in front, all else as it was. */
static void test_patch(void **state)
{
	static const uint32_t size[] = {1, 2, ROOM - 2, ROOM - 1, ROOM};
	static struct object want;

	(void)state;
	for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		uint32_t n = size[i];
		struct xdpath_code code = make_code(n);

		make_object();
		want = object;
		memcpy(want.room + ROOM - n, code.insn, n * sizeof(*code.insn));
		if (n < ROOM)
			want.room[0] = insn(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, (int)(ROOM - n - 1),
					    XDPATH_FILTER_MAGIC);
		assert_int_equal(xdpath_filter_patch(&object, sizeof(object), &code, &diag), 0);
		assert_memory_equal(&object, &want, sizeof(object));
		/* not twice */
		assert_int_equal(xdpath_filter_patch(&object, sizeof(object), &code, &diag),
				 -ENOENT);
		assert_memory_equal(&object, &want, sizeof(object));
	}
}

static void refused(int err, const char *words)
{
	struct xdpath_code code = make_code(2);
	static struct object before;

	before = object;
	assert_int_equal(xdpath_filter_patch(&object, sizeof(object), &code, &diag), err);
	assert_memory_equal(&object, &before, sizeof(object));
	says(&diag, words);
}

static void test_patch_refuses(void **state)
{
	struct xdpath_code code = make_code(ROOM + 1);

	(void)state;
	make_object();
	assert_int_equal(xdpath_filter_patch(&object, sizeof(object), &code, &diag), -E2BIG);
	says(&diag, "need 401 instructions, the program has room for 400;");
	make_object();
	object.magic.imm++;
	refused(-ENOENT, "no free function xp_filter");
	make_object();
	object.magic.dst_reg = 3;
	refused(-ENOENT, "no free function xp_filter");
	make_object();
	object.magic.code = BPF_JMP | BPF_JEQ | BPF_K;
	refused(-ENOENT, "no free function xp_filter");
	make_object();
	object.str[8] = 'y';
	refused(-ENOENT, "no free function xp_filter");
	make_object();
	object.eh.e_ident[EI_DATA] ^= 3;
	refused(-EINVAL, "not a BPF object file");
	make_object();
	object.eh.e_ident[0] = 'x';
	refused(-EINVAL, "not a BPF object file");
	make_object();
	object.sh[1].sh_offset = 1ULL << 40;
	refused(-EINVAL, "not a BPF object file");
	make_object();
	object.sym[2].st_size = -1ULL;
	refused(-ENOENT, "no free function xp_filter");
}

/* Whatever a file holds: no read or write outside it (for the sanitizers), no crash. */
static void test_patch_survives(void **state)
{
	struct xdpath_code code = make_code(2);

	(void)state;
	for (size_t size = 0; size < sizeof(object); size += dice(8) ? 1 + dice(64) : 1) {
		char *image = malloc(size + 1);

		assert_non_null(image);
		make_object();
		memcpy(image, &object, size);
		assert_int_not_equal(xdpath_filter_patch(image, size, &code, &diag), 0);
		free(image);
	}
	for (int i = 0; i < 20000; i++) {
		static const size_t part[][2] = {{0, sizeof(Elf64_Ehdr)},
						 {offsetof(struct object, sym),
						  sizeof(object.sym) + sizeof(object.str)},
						 {offsetof(struct object, sh), sizeof(object.sh)}};
		const size_t *p = PICK(part);

		make_object();
		for (uint32_t n = 1 + dice(3); n; n--)
			((uint8_t *)&object)[p[0] + dice((uint32_t)p[1])] = (uint8_t)dice(256);
		xdpath_filter_patch(&object, sizeof(object), &code, &diag);
	}
}

/* ---- the steering program ----------------------------------------------------------------------
 */

static void add_rule(struct xdpath_rules *l, const char *text)
{
	struct xdpath_rule r;

	assert_int_equal(xdpath_rule_parse(&r, text, &diag), 0);
	assert_int_equal(xdpath_rules_add(l, &r, &diag), 0);
}

static void must_load(const void *image, size_t size)
{
	struct bpf_object *obj = bpf_object__open_mem(image, size, NULL);

	assert_non_null(obj);
	assert_int_equal(bpf_object__load(obj), 0);
	bpf_object__close(obj);
}

/* As clang made it, filled nearly to its end: the kernel takes it, and nothing else has changed. */
static void test_steering_program(void **state)
{
	size_t size, first = 0, last = 0;
	const uint8_t *ours = steer_bpf__elf_bytes(&size);
	struct xdpath_rules l = {0};
	uint8_t *image;
	char text[96];

	(void)state;
	need_kernel();
	libbpf_set_print(NULL);
	add_rule(&l, "proto udp dport 53 action xsk");
	assert_int_equal(xdpath_filter_image(ours, size, &l, (void **)&image, &diag), 0);
	must_load(image, size);
	free(image);
	for (int i = 1; i < 30; i++) {
		snprintf(text, sizeof(text),
			 "filter \"udp port %d and host 10.0.0.%d\" action drop", i, i);
		add_rule(&l, text);
	}
	assert_int_equal(xdpath_filter_image(ours, size, &l, (void **)&image, &diag), 0);
	for (size_t i = 0; i < size; i++) {
		if (image[i] == ours[i])
			continue;
		first = first ? first : i;
		last = i;
	}
	assert_in_range(last - first, 3800 * 8, (XDPATH_FILTER_INSNS - 1) * 8);
	must_load(image, size);
	free(image);
	for (int i = 30; i < 40; i++) {
		snprintf(text, sizeof(text),
			 "filter \"udp port %d and host 10.0.0.%d\" action drop", i, i);
		add_rule(&l, text);
	}
	assert_int_equal(xdpath_filter_image(ours, size, &l, (void **)&image, &diag), -E2BIG);
	assert_null(image);
	says(&diag, "the program has room for 4095;");
	xdpath_rules_clear(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patch),
		cmocka_unit_test(test_patch_refuses),
		cmocka_unit_test(test_patch_survives),
		cmocka_unit_test(test_steering_program),
	};

	return cmocka_run_group_tests_name("filter_patch", tests, NULL, NULL);
}
