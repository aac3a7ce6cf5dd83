/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What probe and status both look at: a port, its programs, the holders of its queues. */
#ifndef XDPATH_INSPECT_H
#define XDPATH_INSPECT_H

#include <jansson.h>

#include "cli.h"
#include "prog_find.h"

enum { INSPECT_HOLDERS = 8 }; /* as many are named */

struct inspect_owner {
	int nholders;
	struct xdpath_process holder[INSPECT_HOLDERS];
	int rules; /* of our program: how many, or -errno */
};

struct inspect {
	struct xdpath_port port;
	int nprogs; /* -errno: could not be asked */
	struct xdpath_prog_info prog[XDPATH_PROGS_MAX];
	int state_err[XDPATH_PROGS_MAX]; /* of state[]; 0: it holds */
	struct xdpath_prog_state state[XDPATH_PROGS_MAX];
	struct inspect_owner owner[XDPATH_PROGS_MAX];
	uint32_t nqueues; /* looked at: all, or the first 256 */
	uint32_t ntaken;  /* of them held by an AF_XDP socket */
	int holder_err;	  /* -errno: the kernel tells nothing about queues */
	struct xdpath_holder holder[XDPATH_QUEUES];
};

/* 0 or -errno with diag filled (no such device). */
int inspect_port(struct inspect *in, const char *name, struct xdpath_diag *diag);

/* What became of a frame: its name in JSON, the words of the rules. */
extern const char *const verdict_key[XDPATH_V_COUNT];

/* A label and its value, aligned. */
void row(const char *label, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void print_programs(const struct inspect *in);
void print_queues(const struct inspect *in);
/* "pid 12 (name), by its lease"; buf must hold 80 bytes. */
const char *holder_text(const struct xdpath_holder *h, char *buf, size_t size);

/* A string that came from outside: never NULL for want of good UTF-8. */
json_t *json_text(const char *s);
json_t *json_programs(const struct inspect *in);
json_t *json_queues(const struct inspect *in);
/* Print the document with a newline and drop it; EXIT_DONE or EXIT_FAILED. */
int json_out(const char *verb, json_t *doc);

#endif
