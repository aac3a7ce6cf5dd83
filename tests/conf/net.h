/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Between net.c and nic.c. */
#ifndef CONF_NET_H
#define CONF_NET_H

#include "conf.h"

struct nlmsghdr;

int net_talk(const struct nlmsghdr *nlh); /* one request; 0 or -errno */
void net_ipv6_off(void);
int net_load(void); /* the suite's programs */

#endif
