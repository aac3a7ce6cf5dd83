// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * A program from its image into the kernel, its maps set up: ours, or a user's own object with an
 * XSKMAP. Called by every form of attachment; what it opened belongs to the struct xdpath_load.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "prog_form.h"
#include "steer.skel.h"

/* ---- what the libraries say ---- */

static __thread char said[160];

__attribute__((format(printf, 1, 0))) static void hear(const char *format, va_list ap)
{
	char text[sizeof(said)], *at = text;

	if (said[0])
		return;
	vsnprintf(text, sizeof(text), format, ap);
	if (!strncmp(at, "libbpf: ", 8))
		at += 8;
	at[strcspn(at, "\n")] = '\0';
	/* they only tell what is not there to be used */
	if (strstr(at, "skipping unrecognized data section"))
		return;
	snprintf(said, sizeof(said), "%s", at);
}

__attribute__((format(printf, 2, 0))) static int hear_bpf(enum libbpf_print_level level,
							  const char *format, va_list ap)
{
	if (level == LIBBPF_WARN)
		hear(format, ap);
	return 0;
}

__attribute__((format(printf, 2, 0))) static int hear_xdp(enum libxdp_print_level level,
							  const char *format, va_list ap)
{
	if (level == LIBXDP_WARN)
		hear(format, ap);
	return 0;
}

void xdpath_quiet_begin(struct xdpath_quiet *q)
{
	said[0] = '\0';
	q->bpf = (void *)libbpf_set_print(hear_bpf);
	q->xdp = (void *)libxdp_set_print(hear_xdp);
}

void xdpath_quiet_end(const struct xdpath_quiet *q)
{
	libbpf_set_print((libbpf_print_fn_t)q->bpf);
	libxdp_set_print((libxdp_print_fn_t)q->xdp);
}

const char *xdpath_quiet_said(void)
{
	return said;
}

/* ---- which program of an object ---- */

static bool is_xdp(const struct bpf_program *p)
{
	enum bpf_prog_type type = bpf_program__type(p);

	/* older objects have sections of names that libbpf no longer knows */
	return type == BPF_PROG_TYPE_XDP ||
	       (type == BPF_PROG_TYPE_UNSPEC && !strncmp(bpf_program__section_name(p), "xdp", 3));
}

static bool is_meant(const struct bpf_program *p, const struct xdpath_image *im)
{
	return is_xdp(p) && (!im->section || !strcmp(bpf_program__section_name(p), im->section)) &&
	       (!im->name || !strcmp(bpf_program__name(p), im->name));
}

static int fail_choice(const struct xdpath_load *l, const struct xdpath_image *im, int found,
		       struct xdpath_diag *d)
{
	struct bpf_program *p;
	char have[160] = "";
	size_t n = 0;

	bpf_object__for_each_program(p, l->obj) if (is_xdp(p) && n < sizeof(have)) n +=
		(size_t)snprintf(have + n, sizeof(have) - n, "%s%s (%s)", n ? ", " : "",
				 bpf_program__name(p), bpf_program__section_name(p));
	if (!have[0])
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "%s: has no XDP program; give an object that has one, in "
				   "section \"xdp\" or \"xdp.frags\"",
				   im->file);
	if (found)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "%s: has several XDP programs; name one of %s by -n NAME or -s "
				   "SECTION",
				   im->file, have);
	return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
			   "%s: no XDP program \"%s\"; it has %s (-n NAME, -s SECTION)", im->file,
			   im->name ? im->name : im->section, have);
}

static int choose(struct xdpath_load *l, const struct xdpath_image *im, struct xdpath_diag *d)
{
	struct bpf_program *p;
	int found = 0;

	bpf_object__for_each_program(p, l->obj) if (is_meant(p, im))
	{
		l->prog = p;
		found++;
	}
	if (found != 1)
		return fail_choice(l, im, found, d);
	bpf_object__for_each_program(p, l->obj) if (p != l->prog)
		bpf_program__set_autoload(p, false);
	if (bpf_program__type(l->prog) == BPF_PROG_TYPE_UNSPEC)
		bpf_program__set_type(l->prog, BPF_PROG_TYPE_XDP);
	return 0;
}

static int check_xskmap(const struct xdpath_load *l, const char *file, struct xdpath_diag *d)
{
	const struct bpf_map *m;
	int n = 0;

	bpf_object__for_each_map(m, l->obj) n += bpf_map__type(m) == BPF_MAP_TYPE_XSKMAP;
	if (n == 1)
		return 0;
	if (!n)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "%s: has no XSKMAP, so no frame can reach a socket; give it one",
				   file);
	return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
			   "%s: has %d XSKMAPs, so it is not clear where sockets go; leave one",
			   file, n);
}

static int open_file(struct xdpath_load *l, const char *file, struct xdpath_diag *d)
{
	struct stat st;
	int err;

	if (stat(file, &st) < 0 || access(file, R_OK) < 0)
		return xdpath_fail(d, XDPATH_R_OPTIONS, errno, "%s: %s; give a BPF object file",
				   file, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "%s: is no regular file; give a BPF object file", file);
	l->obj = bpf_object__open_file(file, NULL);
	if (l->obj)
		return 0;
	err = errno;
	return xdpath_fail(d, XDPATH_R_OPTIONS, err,
			   "%s: is no BPF object: %s; compile it with `clang -target bpf -g -O2`",
			   file, said[0] ? said : strerror(err));
}

const void *xdpath_load_ours(size_t *size)
{
	return steer_bpf__elf_bytes(size);
}

int xdpath_load_open(struct xdpath_load *l, const struct xdpath_image *im, struct xdpath_diag *d)
{
	LIBBPF_OPTS(bpf_object_open_opts, oo);
	const void *data = im->data;
	size_t size = im->size;
	int err = 0;

	oo.object_name = "xdpath";
	*l = (struct xdpath_load){.own = im->file != NULL, .fd = -1};
	for (int i = 0; i < MAP_COUNT; i++)
		l->maps.fd[i] = -1;
	if (l->own) {
		err = open_file(l, im->file, d);
	} else {
		if (!data)
			data = xdpath_load_ours(&size);
		l->obj = bpf_object__open_mem(data, size, &oo);
		if (!l->obj)
			err = xdpath_fail(d, XDPATH_R_KERNEL, errno,
					  "the steering program: libbpf refuses it: %s; update "
					  "libbpf",
					  said[0] ? said : strerror(errno));
	}
	if (!err)
		err = choose(l, im, d);
	/* the steering program as it is installed is no user's own */
	if (!err && bpf_object__find_map_by_name(l->obj, XDPATH_MAP_META))
		l->own = false;
	if (!err && l->own)
		err = check_xskmap(l, im->file, d);
	if (err)
		xdpath_load_close(l);
	return err;
}

/* ---- into the kernel ---- */

int xdpath_load_finish(struct xdpath_load *l, struct xdpath_diag *d)
{
	int err = bpf_object__load(l->obj);
	const char *name = bpf_program__name(l->prog);

	if (!err)
		return 0;
	if (err == -EPERM)
		return xdpath_fail(d, XDPATH_R_PERMISSION, EPERM,
				   "load %s: not permitted; run as root (CAP_BPF and "
				   "CAP_NET_ADMIN)",
				   name);
	if (err == -ENOMEM)
		return xdpath_fail(d, XDPATH_R_MEMORY, ENOMEM, "load %s: no memory; free some",
				   name);
	if (l->own)
		return xdpath_fail(d, XDPATH_R_OPTIONS, -err,
				   "load %s: the kernel refuses it: %s; `bpftool prog load FILE "
				   "/sys/fs/bpf/x` shows its reasons",
				   name, said[0] ? said : strerror(-err));
	return xdpath_fail(d, XDPATH_R_KERNEL, -err,
			   "load the steering program: %s; use fewer or simpler filters if rules "
			   "have any, else a kernel of 5.18 or later with BPF and AF_XDP",
			   said[0] ? said : strerror(-err));
}

/* A user's own program gets our meta map too: by that it is found again. */
static int mark_own(struct xdpath_load *l)
{
	LIBBPF_OPTS(bpf_map_create_opts, mo);
	struct xdpath_meta meta = {.magic = XDPATH_MAGIC,
				   .layout = XDPATH_LAYOUT,
				   .owner_pid = (uint32_t)getpid(),
				   .flags = XDPATH_META_OWN};
	uint32_t zero = 0;
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, XDPATH_MAP_META, sizeof(zero), sizeof(meta),
				XDPATH_LAYOUT, &mo);
	int err;

	if (fd < 0)
		return fd;
	err = bpf_map_update_elem(fd, &zero, &meta, BPF_ANY);
	if (!err)
		err = bpf_prog_bind_map(l->fd, fd, NULL);
	close(fd);
	return err;
}

int xdpath_write_meta(const struct xdpath_maps *m, uint32_t flags)
{
	struct xdpath_meta meta = {.magic = XDPATH_MAGIC,
				   .layout = XDPATH_LAYOUT,
				   .owner_pid = (uint32_t)getpid(),
				   .flags = flags | (m->own ? XDPATH_META_OWN : 0)};
	uint32_t zero = 0;

	return bpf_map_update_elem(m->fd[MAP_META], &zero, &meta, BPF_ANY);
}

int xdpath_write_steer(const struct xdpath_maps *m, enum xdpath_steer steer)
{
	struct xdpath_config config = {.steer = steer};
	uint32_t zero = 0;

	return bpf_map_update_elem(m->fd[MAP_CONFIG], &zero, &config, BPF_ANY);
}

int xdpath_load_identify(struct xdpath_load *l)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	int err;

	l->fd = bpf_program__fd(l->prog);
	err = bpf_obj_get_info_by_fd(l->fd, &info, &len);
	l->id = info.id;
	return err;
}

int xdpath_load_configure(struct xdpath_load *l, enum xdpath_steer steer, uint32_t flags,
			  struct xdpath_diag *d)
{
	int err = xdpath_load_identify(l);

	if (!err && l->own)
		err = mark_own(l);
	if (!err)
		err = xdpath_maps_open(&l->maps, l->fd);
	if (!err && !l->own && !l->maps.layout_ok)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EPROTO,
				   "%s: has map layout %u, this library's is %d; give an object of "
				   "this version",
				   bpf_program__name(l->prog), l->maps.layout, XDPATH_LAYOUT);
	if (!err && !l->maps.layout_ok)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "%s: does not use the object's XSKMAP; give a program that "
				   "redirects to it",
				   bpf_program__name(l->prog));
	if (!err)
		err = xdpath_write_meta(&l->maps, flags);
	if (!err && !l->own)
		err = xdpath_write_steer(&l->maps, steer);
	if (err)
		return xdpath_fail(d, err == -EPERM ? XDPATH_R_PERMISSION : XDPATH_R_REFUSED, -err,
				   "maps of %s: %s; run as root, and try again",
				   bpf_program__name(l->prog), strerror(-err));
	return 0;
}

void xdpath_load_close(struct xdpath_load *l)
{
	xdpath_maps_close(&l->maps);
	bpf_object__close(l->obj);
	l->obj = NULL;
}

bool xdpath_same_map_name(const char *a, const char *b)
{
	return !strncmp(a, b, BPF_OBJ_NAME_LEN - 1);
}
