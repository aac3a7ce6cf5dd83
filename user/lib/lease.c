/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Leases: who of us holds a queue, or is changing an interface's rules. A file
 * /run/xdpath/lease/<netns inode>-<ifindex>-q<N> (or -rules), locked by its holder, "PID NAME"
 * inside. The lock goes with the process, so a lease outlives nobody; a file without a lock is a
 * crash's left-over and is taken over. datapath.c and steer_change.c take them, holder.c asks.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

#define LEASE_DIR XDPATH_RUN_DIR "/lease"

struct xdpath_lease {
	int fd;
	char path[96];
};

static void lease_path(char *path, size_t size, uint64_t netns, int ifindex, uint32_t queue)
{
	char what[16] = "rules";

	if (queue != XDPATH_LEASE_RULES)
		snprintf(what, sizeof(what), "q%u", queue);
	snprintf(path, size, LEASE_DIR "/%llu-%d-%s", (unsigned long long)netns, ifindex, what);
}

static int read_holder(int fd, char *who, size_t size)
{
	char line[64] = "", name[48] = "";
	int pid = 0;

	if (pread(fd, line, sizeof(line) - 1, 0) > 0)
		sscanf(line, "%d %47s", &pid, name);
	if (who && size)
		snprintf(who, size, "%s", name);
	return pid;
}

/* Another run may remove the empty directory between our mkdir and open: try again. */
static int open_lease(const char *path)
{
	int fd = -1;

	for (int tries = 0; tries < 10; tries++) {
		mkdir(XDPATH_RUN_DIR, 0755);
		mkdir(LEASE_DIR, 0755);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		if (fd >= 0 || errno != ENOENT)
			break;
	}
	return fd < 0 ? -errno : fd;
}

bool xdpath_lock_is_file(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

int xdpath_lease_take(struct xdpath_lease **out, uint64_t netns, int ifindex, uint32_t queue,
		      const char *who, int *pid, char *held_by, size_t size)
{
	char path[96], line[64];
	struct xdpath_lease *l;
	int fd, n, err;

	*out = NULL;
	lease_path(path, sizeof(path), netns, ifindex, queue);
	for (int tries = 0;; tries++) {
		fd = open_lease(path);
		if (fd < 0)
			return fd;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			err = errno == EWOULDBLOCK ? -EBUSY : -errno;
			n = read_holder(fd, held_by, size);
			if (pid)
				*pid = n;
			close(fd);
			if (n == 0 && tries < 10) { /* someone is just sweeping or writing it */
				usleep(1000);
				continue;
			}
			return err;
		}
		if (xdpath_lock_is_file(fd, path))
			break;
		close(fd);
		if (tries == 10)
			return -EBUSY;
	}
	n = snprintf(line, sizeof(line), "%d %s\n", getpid(), who ? who : "xdpath");
	l = malloc(sizeof(*l));
	if (!l || ftruncate(fd, 0) < 0 || pwrite(fd, line, (size_t)n, 0) != n) {
		err = l ? -errno : -ENOMEM;
		unlink(path);
		close(fd);
		free(l);
		return err;
	}
	l->fd = fd;
	memcpy(l->path, path, sizeof(path));
	*out = l;
	return 0;
}

/* Left by a crash, perhaps in a namespace that is gone and whose inode is another's now. */
static void sweep_one(int dir, const char *name)
{
	struct stat a, b;
	int fd = openat(dir, name, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &a) == 0 &&
	    fstatat(dir, name, &b, 0) == 0 && a.st_ino == b.st_ino)
		unlinkat(dir, name, 0);
	close(fd);
}

void xdpath_leases_sweep(void)
{
	DIR *d = opendir(LEASE_DIR);
	const struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			sweep_one(dirfd(d), e->d_name);
	closedir(d);
}

void xdpath_lease_drop(struct xdpath_lease *l)
{
	if (!l)
		return;
	unlink(l->path);
	close(l->fd);
	free(l);
	rmdir(LEASE_DIR); /* both only when empty */
	rmdir(XDPATH_RUN_DIR);
}

int xdpath_lease_holder(uint64_t netns, int ifindex, uint32_t queue, char *who, size_t size)
{
	char path[96];
	int fd, pid = 0;

	lease_path(path, sizeof(path), netns, ifindex, queue);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		pid = read_holder(fd, who, size);
	close(fd);
	return pid;
}
