/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What the files of the conformance suite share: how a test is written and judged, what was found
 * out about the kernel, the network it runs on.
 *
 * Each test runs in a child of the runner (main.c), in a network namespace of its own or on two
 * NICs that the runner was given, and returns CONF_OK, CONF_FAIL or CONF_SKIP. It cleans nothing
 * up: the child's end does, or the runner.
 */
#ifndef CONF_H
#define CONF_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONF_OK = 0, CONF_FAIL = 1, CONF_SKIP = 77 };

/*
 * How the receiving side's program is attached; ANY: it does not matter, generic is used. ZC: in
 * the driver, and sockets are bound for zero-copy. On NICs every test runs in the modes asked for.
 */
enum conf_mode { CONF_SKB = 1, CONF_DRV = 2, CONF_BOTH = 3, CONF_ANY = 4, CONF_ZC = 8 };

/* How this kernel behaves where kernels differ; found out by probe.c, never from a version. */
struct conf_kernel {
	bool sg;	       /* packets of several fragments (XDP_USE_SG) */
	bool reclaims_invalid; /* invalid TX descriptors come back on the completion ring */
	bool reclaims_lead;    /* so do good fragments before a bad one */
	bool drains_contd;     /* a bad fragment takes the rest of its packet with it */
	bool odd_verbatim;     /* a completion keeps bit 0 of the address */
	bool late_index;       /* the index of an unfinished call shows with the next call */
	bool zero_invalid;     /* length 0 is invalid (else: too short) */
	bool bad_ends_call;    /* sendto() returns at an invalid descriptor */
	bool again_when_more;  /* sendto() says EAGAIN when its budget left some behind */
	bool budget_settable;  /* XDP_MAX_TX_SKB_BUDGET */
	bool short_refused;    /* frames shorter than an Ethernet header: EBUSY, not sent */
	bool tx_metadata;      /* UMEMs with tx_metadata_len */
	bool sw_csum;	       /* XDP_UMEM_TX_SW_CSUM */
	bool unaligned_pages;  /* unaligned, copied: 4 KiB pages may be crossed */
	bool hugepages;	       /* 2 MiB pages could be reserved */
	uint32_t headroom_4k;  /* largest UMEM headroom taken for 4096-byte frames */
	uint32_t headroom_2k;  /* ... for 2048-byte frames */
	uint32_t tx_budget;    /* descriptors of one sendto() */
	uint32_t frags;	       /* most fragments of a packet sent */
};

/* Lives in memory that the runner shares with each child. */
struct conf {
	struct conf_kernel k;
	enum conf_mode mode;
	bool nic;	       /* dev[] are NICs, not a pair made for the test */
	char dev[2][IFNAMSIZ]; /* NET_A, NET_B */
	uint32_t patience_ms;  /* what should come at once has not come by then */
	bool long_run;
	bool all; /* also what leaves something behind in the kernel */
	uint64_t seed;
	uint8_t *huge; /* memory of 2 MiB pages, NULL if there is none */
	size_t huge_size;
	char text[600]; /* why it failed or was skipped; what a passed test has to tell */
};

extern struct conf *conf;

struct conf_test {
	const char *name;
	unsigned int modes; /* enum conf_mode, or-ed */
	int (*fn)(const void *arg);
	const void *arg;
	const char *what;     /* for the table: what is tested, short */
	int row;	      /* of the reference table, 0 none */
	unsigned int seconds; /* watchdog, 0 means the usual */
	const char *not_nic;  /* why it can not be run on NICs */
	const char *not_zc;   /* ... or not in zero-copy */
};

/* Tables end with a test without a name. */
extern const struct conf_test rows_tests[], stat_tests[], share_tests[], desc_tests[],
	errno_tests[], errno_bind_tests[], kernel_tests[], ring_tests[], process_tests[],
	mode_tests[], fuzz_tests[];

int conf_fail(const char *file, int line, const char *cond, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int conf_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int conf_no_frags(void); /* skip: needs packets of several fragments */
void conf_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Ends the test when cond does not hold; the rest is a format that says what was found. */
#define need(cond, ...)                                                           \
	do {                                                                      \
		if (!(cond))                                                      \
			return conf_fail(__FILE__, __LINE__, #cond, __VA_ARGS__); \
	} while (0)

/* Ends the test with what a part of it said, unless that was CONF_OK. */
#define attempt(expr)                 \
	do {                          \
		int said_ = (expr);   \
		if (said_ != CONF_OK) \
			return said_; \
	} while (0)

uint64_t conf_now_ms(void);
void conf_pause(void); /* some 100 us */

#define CONF_PATIENCE_MS conf->patience_ms

/* probe.c: fill conf->k; runs as a test does. */
int conf_probe(const void *arg);

/* ---- net.c: a veth pair in a namespace of its own, or the NICs ---- */

#define NET_A	   conf->dev[0] /* sends, mostly */
#define NET_B	   conf->dev[1] /* receives: the program is here */
#define NET_QUEUES 4U		/* of a veth */

/* A new namespace and the pair in it, both ends up, IPv6 off. NICs: MTU set, both have a link. */
int net_make(uint32_t mtu);
int net_up(const char *dev, bool up);
/* Skip: NET_B has fewer queues. A veth has NET_QUEUES. */
int net_queues(uint32_t n);
int net_mtu(const char *dev, uint32_t mtu);

enum net_prog { NET_REDIRECT, NET_HALF, NET_META, NET_BY_MAC, NET_TAIL };

/* Attach one of conf.bpf.c's programs in the test's mode. */
int net_attach(const char *dev, enum net_prog prog);
/* Put a socket into the slot of the programs' XSKMAP. */
int net_socket(uint32_t slot, int fd);
void net_set_tail(int delta);
int net_tail_error(void); /* what the helper said last */

/* ---- nic.c: two NICs that are wired to each other ---- */

/*
 * All by the runner: take the NICs into a namespace of their own, hold a program on both in
 * conf->mode, put back what a test has changed, let go. 0 or -errno; the text says more.
 */
int nic_take(void);
int nic_hold(void);
void nic_after(void);
void nic_release(void);
void nic_return(void);

/* By the tests: up, with this MTU and a link; exchange the program; set the rings. */
int nic_make(uint32_t mtu);
int nic_swap(const char *dev, int prog_fd);
struct nic_rings {
	uint32_t rx, tx, rx_max, tx_max;
};
int nic_rings(const char *dev, struct nic_rings *r);
int nic_set_rings(uint32_t rx, uint32_t tx);

#endif
