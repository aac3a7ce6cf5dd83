/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The file by which an experiment is resumed: JSON lines, first the plan, then one for each run. A
 * line that was not written to its end is cut off; a file that is not this plan's is left alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "internal.h"
#include "tune_in.h"

struct kept {
	uint32_t block, setting;
	struct tune_sample s;
	off_t at; /* where its line begins */
};

struct tune_log {
	FILE *f;
	const char *path;
	struct kept *kept;
	size_t n, room, next;
	off_t end; /* of the last whole line */
};

static int bad_file(const struct tune_log *l, struct xdpath_diag *d, const char *why)
{
	return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
			   "%.200s: %s; give another --resume file, or the options it was begun "
			   "with",
			   l->path, why);
}

static int failed(const struct tune_log *l, struct xdpath_diag *d, const char *what)
{
	int err = errno ? errno : EIO;

	return xdpath_fail(d, XDPATH_R_OPTIONS, err,
			   "%.200s: %s: %s; name a file that can be written", l->path, what,
			   strerror(err));
}

static char *header_text(const struct tune_plan *p)
{
	json_t *j = NULL;
	char hash[17], *text = NULL;

	if (tune_plan_hash(p, hash) == 0)
		j = json_pack("{s:i, s:s, s:o}", "tune", 1, "hash", hash, "plan",
			      tune_plan_json(p));
	if (j)
		text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	return text;
}

static int check_header(const struct tune_log *l, const char *line, const struct tune_plan *p,
			struct xdpath_diag *d)
{
	json_t *j = json_loads(line, 0, NULL);
	const char *theirs = json_string_value(json_object_get(j, "hash"));
	bool ours = json_integer_value(json_object_get(j, "tune")) == 1 && theirs;
	char hash[17];
	int err = tune_plan_hash(p, hash);

	if (err)
		err = xdpath_fail(d, XDPATH_R_MEMORY, -err, "%.200s: no memory; free some",
				  l->path);
	else if (!ours)
		err = bad_file(l, d, "holds no runs of an experiment");
	else if (strcmp(theirs, hash) != 0)
		err = bad_file(l, d, "holds the runs of another plan");
	json_decref(j);
	return err;
}

static bool parse_run(const char *line, struct kept *k)
{
	json_t *j = json_loads(line, 0, NULL);
	json_t *block = json_object_get(j, "block"), *setting = json_object_get(j, "setting");
	bool ok = json_is_integer(block) && json_is_integer(setting);

	k->block = (uint32_t)json_integer_value(block);
	k->setting = (uint32_t)json_integer_value(setting);
	for (int g = 0; g < TUNE_GOALS; g++) {
		json_t *v = json_object_get(j, tune_goal_name((enum tune_goal)g));

		k->s.value[g] = json_is_number(v) ? json_number_value(v) : NAN;
	}
	json_decref(j);
	return ok;
}

static int add_run(struct tune_log *l, const char *line, off_t at, struct xdpath_diag *d)
{
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		struct kept *more = realloc(l->kept, room * sizeof(*more));

		if (!more)
			return xdpath_fail(d, XDPATH_R_MEMORY, ENOMEM,
					   "%.200s: no memory; free some", l->path);
		l->kept = more;
		l->room = room;
	}
	l->kept[l->n].at = at;
	if (!parse_run(line, &l->kept[l->n++]))
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "%.200s: line %zu is no run; mend or remove it", l->path,
				   l->n + 1);
	return 0;
}

/* Cut what follows, and go on behind it. */
static int cut(struct tune_log *l, off_t at, struct xdpath_diag *d)
{
	l->end = at;
	errno = 0;
	if (fflush(l->f) || ftruncate(fileno(l->f), at) || fseeko(l->f, at, SEEK_SET))
		return failed(l, d, "could not be cut behind its last whole line");
	return 0;
}

static int put_line(struct tune_log *l, const char *text, struct xdpath_diag *d)
{
	errno = 0;
	if (!text || fprintf(l->f, "%s\n", text) < 0 || fflush(l->f))
		return failed(l, d, "could not be written");
	return 0;
}

/* What is there already. A first line without an end is only taken for ours if it is a part of it:
 * it is going to be overwritten. */
static int load(struct tune_log *l, const struct tune_plan *p, struct xdpath_diag *d)
{
	char *line = NULL, *header = header_text(p);
	bool first = true;
	size_t size = 0;
	ssize_t len;
	int err = 0;

	while (!err && (len = getline(&line, &size, l->f)) > 0) {
		if (line[len - 1] != '\n') {
			if (first && (!header || strncmp(header, line, (size_t)len) != 0))
				err = bad_file(l, d, "holds no runs of an experiment");
			break;
		}
		err = first ? check_header(l, line, p, d) : add_run(l, line, l->end, d);
		first = false;
		l->end += len;
	}
	if (!err && ferror(l->f))
		err = failed(l, d, "could not be read");
	if (!err)
		err = cut(l, l->end, d);
	if (!err && first) {
		err = put_line(l, header, d);
		l->end = ftello(l->f);
	}
	free(line);
	free(header);
	return err;
}

int tune_log_open(struct tune_log **out, const struct tune_plan *p, struct xdpath_diag *d)
{
	struct tune_log *l;
	int fd, err;

	*out = NULL;
	if (!p->resume)
		return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		return xdpath_fail(d, XDPATH_R_MEMORY, ENOMEM, "%.200s: no memory; free some",
				   p->resume);
	l->path = p->resume;
	fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	l->f = fd >= 0 ? fdopen(fd, "r+") : NULL;
	if (!l->f) {
		err = failed(l, d, "could not be opened");
		if (fd >= 0)
			close(fd);
	} else if (flock(fd, LOCK_EX | LOCK_NB)) {
		err = xdpath_fail(d, XDPATH_R_OPTIONS, EBUSY,
				  "%.200s: another experiment is writing it; wait for its end, or "
				  "give another --resume file",
				  l->path);
	} else {
		err = load(l, p, d);
	}
	if (err)
		tune_log_close(l);
	else
		*out = l;
	return err;
}

void tune_log_close(struct tune_log *l)
{
	if (!l)
		return;
	if (l->f)
		fclose(l->f);
	free(l->kept);
	free(l);
}

int tune_log_holds(struct tune_log *l, uint32_t n, struct xdpath_diag *d)
{
	int err;

	if (!l || l->next == l->n)
		return 0;
	if (l->n - l->next >= n)
		return 1;
	err = cut(l, l->kept[l->next].at, d);
	l->n = l->next;
	return err;
}

int tune_log_take(struct tune_log *l, uint32_t block, uint32_t setting, struct tune_sample *s,
		  struct xdpath_diag *d)
{
	const struct kept *k = &l->kept[l->next];

	if (k->block != block || k->setting != setting)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "%.200s: line %zu is not the run that this plan makes there; "
				   "give another --resume file",
				   l->path, l->next + 2);
	*s = k->s;
	l->next++;
	return 0;
}

int tune_log_keep(struct tune_log *l, uint32_t block, uint32_t setting, const struct tune_sample *s,
		  struct xdpath_diag *d)
{
	json_t *j;
	char *text;
	int err;

	if (!l)
		return 0;
	j = json_pack("{s:i, s:i, s:I}", "block", block, "setting", setting, "unix_s",
		      (json_int_t)time(NULL));
	for (int g = 0; g < TUNE_GOALS; g++)
		if (isfinite(s->value[g]))
			json_object_set_new(j, tune_goal_name((enum tune_goal)g),
					    json_real(s->value[g]));
	text = json_dumps(j, JSON_COMPACT);
	err = put_line(l, text, d);
	free(text);
	json_decref(j);
	return err;
}
