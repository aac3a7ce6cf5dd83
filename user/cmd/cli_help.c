/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Help: made from the tables of verbs, options and knobs. */
#include <stdio.h>

#include "cli_options.h"

void help_all(void)
{
	printf("usage: xdpath VERB [DEV] [options]\n\n");
	for (size_t i = 0; i < V_COUNT; i++)
		printf("  %-16s %s\n", verbs[i].synopsis, verbs[i].text);
	printf("\n  help [VERB]      options and examples of a verb\n"
	       "  help knobs       the knobs for --set and --config\n"
	       "  help rules       what -r, -f and steer take\n\n"
	       "Exit codes: 0 done, 1 failed, 2 usage, 3 a required mode or feature is not to be "
	       "had.\n");
}

void help_verb(const struct verb *v)
{
	char left[40];

	printf("usage: xdpath %s [options]\n  %s\n\noptions:\n", v->synopsis, v->text);
	for (size_t i = 0; i < noptions; i++) {
		const struct option_def *o = &options[i];

		if (!(o->verbs & VERB(v->id)))
			continue;
		snprintf(left, sizeof(left), "%s%c%s--%s%s%s", o->letter ? "-" : "",
			 o->letter ? o->letter : ' ', o->letter ? ", " : "   ", o->name,
			 o->arg && o->arg[0] != '[' ? " " : "", o->arg ? o->arg : "");
		printf("  %-26s %s\n", left, o->text);
	}
	printf("\nexamples:\n  %s\n", v->examples);
}

void help_knobs(void)
{
	struct xdpath_knobs k;
	const struct xdpath_knob *t;
	char value[32];
	size_t n;

	xdpath_knobs_defaults(&k);
	t = xdpath_knob_table(&n);
	printf("%-18s %-8s %-8s %s\n", "KNOB", "DEFAULT", "UNIT", "MEANING");
	for (size_t i = 0; i < n; i++) {
		xdpath_knob_print(&k, &t[i], value, sizeof(value));
		printf("%-18s %-8s %-8s %s\n", t[i].name, value, t[i].unit, t[i].text);
	}
}

void help_rules(void)
{
	fputs("rule   := [ \"prio\" N ] match* \"action\" action\n"
	      "match  := \"ether\" TYPE | \"vlan\" ID | \"proto\" NAME|N | \"src\" PREFIX | "
	      "\"dst\" PREFIX\n"
	      "        | \"sport\" P[-P] | \"dport\" P[-P] | \"tcp-flags\" SET | \"queue\" N | "
	      "\"filter\" \"EXPR\"\n"
	      "action := \"xsk\" | \"pass\" | \"drop\" | \"tx\" | \"redirect\" DEV | \"mirror\" "
	      "[SNAP]\n\n"
	      "A frame is for the first rule that it matches in all it says: by prio (lower first, "
	      "default\n100), then the most specific, then the oldest. What matches none, and what "
	      "is malformed or cut\noff, goes to the kernel, unless --all says otherwise.\n\n"
	      "  ether      behind the VLAN tags: ipv4, ipv6, arp, mpls, ... or 0x0800\n"
	      "  vlan       id of the outermost tag; an untagged frame has none\n"
	      "  proto      behind all IPv4 options and IPv6 extension headers: tcp, udp, 47, ...\n"
	      "  src, dst   10.0.0.0/8, fd00::1\n"
	      "  sport, dport   of TCP, UDP and SCTP; pieces of an IP packet behind the first have "
	      "none\n"
	      "  tcp-flags  syn,!ack: set those, clear those with !; of fin syn rst psh ack urg "
	      "ece "
	      "cwr\n"
	      "  queue      the receiving queue\n"
	      "  filter     tcpdump's syntax (pcap-filter(7)), in quotes, with no other match\n\n"
	      "  xsk        to the AF_XDP socket of the receiving queue; the kernel if there is "
	      "none\n"
	      "  pass       to the kernel\n"
	      "  drop       gone, counted\n"
	      "  tx         back out of the interface as it is\n"
	      "  redirect   out of another interface\n"
	      "  mirror     a copy of up to SNAP bytes (2048) for a reader, then on to the next "
	      "rule\n\n"
	      "A file holds one rule a line; # begins a comment. examples:\n"
	      "  proto udp dport 53 action xsk\n"
	      "  prio 10 src 192.0.2.0/24 action drop\n"
	      "  proto tcp tcp-flags syn,!ack dport 80-89 action mirror 128\n"
	      "  filter \"vlan 7 and icmp\" action pass\n",
	      stdout);
}
