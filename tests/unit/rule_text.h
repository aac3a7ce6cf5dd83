/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Rules from text that must be right. Include after cmocka.h, in one file of a program. */
#ifndef XDPATH_TEST_RULE_TEXT_H
#define XDPATH_TEST_RULE_TEXT_H

#include <netdb.h>
#include <time.h>

#include <xdpath/rule.h>

#include "frames.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* In place of the C library's: libpcap asks it for the hosts of an expression, rubbish among them.
 */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **res)
{
	(void)node, (void)service, (void)hints, (void)res;
	return EAI_NONAME;
}

static uint64_t seed = 88172645463325252ULL;

static inline uint32_t below(uint32_t n)
{
	return frame_random(&seed) % n;
}

static inline double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static inline struct xdpath_rule parsed(const char *text)
{
	struct xdpath_diag d = {0};
	struct xdpath_rule r;

	if (xdpath_rule_parse(&r, text, &d))
		fail_msg("\"%s\": %s", text, d.text);
	return r;
}

static inline void add(struct xdpath_rules *l, const char *text)
{
	struct xdpath_rule r = parsed(text);

	assert_int_equal(xdpath_rules_add(l, &r, NULL), 0);
}

#endif
