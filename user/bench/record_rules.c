/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What stands in a packet's way in the kernel: netfilter rules of this network namespace, counted.
 * Called by record.c. Loads no module, changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libmnl/libmnl.h>

#include "internal.h"
#include "record_in.h"

/* linux/netfilter_ipv4/ip_tables.h and ip6_tables.h: one layout, one number, two levels. */
#define XT_SO_GET_INFO 64
#define XT_HOOKS       5
struct xt_info {
	char name[32];
	unsigned int valid_hooks, hook_entry[XT_HOOKS], underflow[XT_HOOKS], num_entries, size;
};

static int count_rule(const struct nlmsghdr *nlh, void *ctx)
{
	uint64_t *n = ctx;

	if ((nlh->nlmsg_type & 0xff) == NFT_MSG_NEWRULE)
		(*n)++;
	return 0;
}

static int count_nftables(uint64_t *n)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));

	*n = 0;
	nlh->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	g->nfgen_family = AF_UNSPEC;
	g->version = NFNETLINK_V0;
	return xdpath_nl_talk(NETLINK_NETFILTER, nlh, count_rule, n, NULL, 0);
}

/*
 * Entries of one legacy table beyond those an empty one has: a policy for each hook it is called
 * from and the mark of its end.
 */
static int count_table(int family, const char *name, uint64_t *n)
{
	struct xt_info info = {.name = ""};
	socklen_t len = sizeof(info);
	unsigned int own;
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW), err = 0;

	if (fd < 0)
		return -errno;
	snprintf(info.name, sizeof(info.name), "%.31s", name);
	if (getsockopt(fd, family == AF_INET ? SOL_IP : SOL_IPV6, XT_SO_GET_INFO, &info, &len) < 0)
		err = -errno;
	close(fd);
	own = (unsigned int)__builtin_popcount(info.valid_hooks) + 1;
	if (!err && info.num_entries > own)
		*n += info.num_entries - own;
	return err;
}

static int count_legacy(uint64_t *n)
{
	static const struct {
		int family;
		const char *path;
	} list[] = {{AF_INET, "/proc/self/net/ip_tables_names"},
		    {AF_INET6, "/proc/self/net/ip6_tables_names"}};
	char name[64];
	int err = 0;

	*n = 0;
	for (size_t i = 0; i < 2 && !err; i++) {
		FILE *f = fopen(list[i].path, "re"); /* absent: no such tables were ever used */

		while (f && !err && fgets(name, sizeof(name), f)) {
			name[strcspn(name, "\n")] = '\0';
			err = count_table(list[i].family, name, n);
		}
		if (f)
			fclose(f);
	}
	return err;
}

static json_t *count(int err, uint64_t n)
{
	return err ? NULL : json_integer((json_int_t)n);
}

void record_rules(json_t *o)
{
	uint64_t nft, legacy;
	int nft_err = count_nftables(&nft), legacy_err = count_legacy(&legacy);
	json_t *tracked = record_number("/proc/sys/net/netfilter/nf_conntrack_count");

	if (nft_err == -EPROTONOSUPPORT || nft_err == -EINVAL || nft_err == -EOPNOTSUPP) {
		nft = 0; /* not built in or not loaded: then there are none */
		nft_err = 0;
	}
	record_put(o, "netfilter_rules", nft_err || legacy_err ? NULL : count(0, nft + legacy),
		   "nftables: %s; iptables: %s", nft_err ? strerror(-nft_err) : "counted",
		   legacy_err ? strerror(-legacy_err) : "counted");
	record_put(o, "nftables_rules", count(nft_err, nft), "%s", strerror(-nft_err));
	record_put(o, "iptables_entries", count(legacy_err, legacy), "%s", strerror(-legacy_err));
	record_put(o, "tracked_connections", tracked,
		   "no connection tracking (module nf_conntrack is not loaded)");
}
