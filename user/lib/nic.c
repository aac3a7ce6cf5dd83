/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What a buyer of a NIC asks for beyond a port's facts: queues it could have, interrupt delay,
 * NAPIs. Called by probe only. Changes nothing.
 */
#include "ethtool.h"
#include "netlink_parse.h"

/* One NAPI for both ways of a queue: driving it by busy-poll moves both. */
static int shared(const struct xdpath_queue_facts *f)
{
	int ret = -1;

	for (uint32_t q = 0; q < XDPATH_QUEUES; q++) {
		if (!f->napi[0][q] || !f->napi[1][q])
			continue;
		if (f->napi[0][q] != f->napi[1][q])
			return 0;
		ret = 1;
	}
	return ret;
}

void xdpath_nic_query(struct xdpath_nic *n, const struct xdpath_port *p)
{
	struct xdpath_napi_facts napi = {.ifindex = p->ifindex};
	struct xdpath_queue_facts queues = {.ifindex = p->ifindex};
	int err;

	*n = (struct xdpath_nic){.napi_shared = -1};
	xdpath_ethtool_details(n, p->name);
	err = xdpath_nl_napis(&napi);
	n->napis = err ? err : (int)napi.count;
	n->napi_settings = napi.count && napi.settable == napi.count;
	if (xdpath_nl_queues(&queues) == 0)
		n->napi_shared = shared(&queues);
}
