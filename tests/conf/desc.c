// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * The rows about single descriptors (8 to 11, 25 to 29), by hand: lists of valid and invalid ones,
 * written to the TX ring as they are. What must arrive follows from the list and from how this
 * kernel goes on after a bad one.
 */
#include "raw.h"

#define C XDP_PKT_CONTD
#define L 3072U
#define M 4096U

struct setup {
	uint32_t chunk;
	bool unaligned, huge, several;
};

static int open_pair(const struct setup *s, struct raw *tx, struct raw *rx)
{
	const struct raw_opts to = {.chunk = s->chunk,
				    .huge = s->huge,
				    .several = s->several,
				    .umem_flags = s->unaligned ? XDP_UMEM_UNALIGNED_CHUNK_FLAG : 0};
	const struct raw_opts ro = {.several = s->several};

	if (s->huge && !conf->k.hugepages)
		return conf_skip("no 2 MiB pages could be reserved (vm.nr_hugepages)");
	if (s->several && !conf->k.sg)
		return conf_no_frags();
	return raw_pair(tx, rx, &to, &ro, s->several ? 9000 : 1500);
}

struct item {
	uint64_t addr; /* in the UMEM */
	uint32_t len, options;
	bool good;
};

/* Send a list; packets whose items are all good must arrive, numbered by their first item. All
 * items of the others count as invalid. */
static int run_list(struct raw *tx, struct raw *rx, const struct item *list, uint32_t n)
{
	struct xdp_desc d[64], in[64], lost[64], lead[64];
	struct flow f = {0};
	uint32_t want[64], nwant = 0, nlost = 0, nlead = 0, got = 0, k, number;
	uint64_t until = conf_now_ms() + CONF_PATIENCE_MS;
	struct end_stats st;
	bool several = false;

	for (uint32_t i = 0; i < n; i++)
		d[i] = (struct xdp_desc){list[i].addr, list[i].len, list[i].options};
	for (uint32_t i = 0; i < n; i += k) {
		bool good = true;

		several = several || d[i].options & C;
		/* where nothing is drained, a bad one is the end, and the next a beginning */
		for (k = 0; i + k < n && (k == 0 || (d[i + k - 1].options & C &&
						     (conf->k.drains_contd || good)));
		     k++)
			good = good && list[i + k].good;
		for (uint32_t j = i; !good && j < i + k; j++)
			lost[nlost++] = d[j];
		for (uint32_t j = i; !good && list[j].good; j++)
			lead[nlead++] = d[j];
		if (!good)
			continue;
		flow_write(&tx->e, &d[i], k, &f, i);
		want[nwant++] = i;
	}
	raw_submit(tx, d, n);
	need(tx->e.kick(&tx->e) == 0, "the ring is not emptied");
	while (got < nwant) {
		uint32_t m = rx->e.recv(&rx->e, in, 64);

		xdpath_for_each_packet (p, k, in, m) {
			need(got < nwant, "more than %u packets came", nwant);
			f.len = 0;
			for (uint32_t i = want[got]; i < n; i++) {
				f.len += d[i].len;
				if (!(d[i].options & C))
					break;
			}
			attempt(flow_check(&rx->e, p, k, &f, &number));
			need(number == want[got], "item %u came, not %u", number, want[got]);
			got++;
		}
		rx->e.give(&rx->e, in, m);
		need(conf_now_ms() < until, "%u of %u packets came", got, nwant);
	}
	if (!conf->k.reclaims_invalid)
		raw_forget(tx, lost, nlost);
	else if (several && !conf->k.reclaims_lead)
		raw_forget(tx, lead, nlead);
	attempt(flow_drain(&tx->e));
	need(rx->e.recv(&rx->e, in, 64) == 0, "more than %u packets came", nwant);
	attempt(end_stats(&tx->e, &st));
	if (conf->k.drains_contd || !several) /* else kernels count differently */
		need(st.tx_invalid == nlost, "tx_invalid_descs %llu, not %u",
		     (unsigned long long)st.tx_invalid, nlost);
	conf_note("%u received, tx_invalid_descs %llu", got, (unsigned long long)st.tx_invalid);
	attempt(tx->e.audit(&tx->e));
	return rx->e.audit(&rx->e);
}

/* Rows 8 to 11: one fragment each. */
static int inv_desc(const void *arg)
{
	const struct setup *s = arg;
	const bool any_page = s->unaligned && (s->huge || conf->k.unaligned_pages);
	struct raw tx = {0}, rx;
	uint64_t size;

	attempt(open_pair(s, &tx, &rx));
	size = tx.size;
	{
		const struct item list[] = {
			{0, 64, 0, true}, /* address zero is legal */
			{s->chunk, 64, 0, true},
			{(uint64_t)-2, 64, 0, false},	  /* wraps */
			{0, 9001, 0, false},		  /* longer than a frame */
			{size - 64, 64, 0, true},	  /* ends with the UMEM */
			{size, 64, 0, false},		  /* begins where it ends */
			{size - 32, 64, 0, false},	  /* across its end */
			{8 * 4096 - 32, 64, 0, any_page}, /* across a 4096-byte boundary */
			{6144 - 32, 64, 0, s->unaligned || s->chunk == 4096}, /* a 2048-byte one */
			{2 * s->chunk, 64, 0, true},
		};

		return run_list(&tx, &rx, list, 10);
	}
}

/* Rows 27 and 28: several fragments. Items 4 to 11 are one bad packet where a bad fragment takes
 * the rest with it; elsewhere 10 and 11 are a good one. */
static int inv_desc_frags(const void *arg)
{
	const struct setup *s = arg;
	struct raw tx, rx;

	attempt(open_pair(s, &tx, &rx));
	{
		const struct item list[] = {
			{0 * 4096, 64, 0, true},
			{1 * 4096, L, C, true},
			{2 * 4096, L, C, true},
			{3 * 4096, 0, 0, false}, /* nothing in the last fragment */
			{4 * 4096, L, C, true},
			{tx.size, L, C, false}, /* outside */
			{5 * 4096, L, C, true},
			{6 * 4096, 9001, C, false}, /* longer than a frame */
			{7 * 4096, L, C, true},
			{8 * 4096, L, 0xffff, false}, /* unknown options, "goes on" among them */
			{9 * 4096, M, C, true},
			{10 * 4096, M, 0, true}, /* would be good by itself with the one before */
			{12 * 4096, M, C, true},
			{13 * 4096, M, 0, true}, /* 8192 bytes */
			{14 * 4096, L, C, true},
			{16 * 4096 - 32, 64, 0, s->unaligned}, /* across a frame's end */
			{17 * 4096, 64, 0, true},
		};

		return run_list(&tx, &rx, list, 17);
	}
}

/* Row 29. */
static int too_many_frags(const void *arg)
{
	const uint32_t most = conf->k.frags, nitems = 2 * most + 3;
	struct item list[64];
	struct raw tx, rx;
	uint32_t n = 0;

	attempt(open_pair(arg, &tx, &rx));
	need(nitems + 1 <= 64, "%u fragments in a packet", most);
	list[n++] = (struct item){0, 64, 0, true};
	for (uint32_t i = 0; i < most; i++, n++) /* exactly as many as go */
		list[n] = (struct item){n * 4096, 64, i + 1 < most ? C : 0, true};
	/* one more is too much: the next, where it goes with them, else the last that announces it
	 */
	for (uint32_t i = 0; i < most; i++, n++)
		list[n] = (struct item){n * 4096, 64, C, i + 1 < most || conf->k.drains_contd};
	list[n] = (struct item){n * 4096, 64, 0, !conf->k.drains_contd};
	n++;
	list[n] = (struct item){n * 4096, 64, 0, true};
	n++;
	return run_list(&tx, &rx, list, n);
}

/* Rows 25 and 26: streams from and into unaligned memory. */
static int unaligned_flow(const void *arg)
{
	const struct setup *s = arg;
	struct flow f = {.count = s->several ? 1024 : 4096,
			 .len = s->several ? 8900 : 64,
			 .odd_off = 4096 - 32,
			 .data_at = 256};
	const struct raw_opts to = {.huge = s->huge,
				    .several = s->several,
				    .umem_flags = XDP_UMEM_UNALIGNED_CHUNK_FLAG};
	struct raw_opts ro = to;
	struct raw tx, rx;

	if (s->huge && !conf->k.hugepages)
		return conf_skip("no 2 MiB pages could be reserved (vm.nr_hugepages)");
	if (s->several && !conf->k.sg)
		return conf_no_frags();
	if (!s->huge && !conf->k.unaligned_pages)
		f.odd_off = 100;
	f.batch = 32;
	ro.post = 256;
	ro.post_step = 4096 + 40; /* frames begin anywhere */
	attempt(raw_pair(&tx, &rx, &to, &ro, s->several ? 9000 : 1500));
	tx.tx_step = 2; /* odd ones reach into the next frame */
	return flow_run(&tx.e, &rx.e, &f);
}

#define SETUP(...)            \
	&(const struct setup) \
	{                     \
		__VA_ARGS__   \
	}
#define TEST(number, name_, what_, fn_, why, ...)                                      \
	{                                                                              \
		.row = (number), .name = (name_), .modes = CONF_BOTH, .what = (what_), \
		.fn = (fn_), .arg = SETUP(__VA_ARGS__), .not_zc = (why)                \
	}
#define DESC(number, name, what, fn, ...) TEST(number, name, what, fn, NULL, __VA_ARGS__)
#define SMALL_PAGES(number, name, what, fn, ...)                                                \
	TEST(number, name, what, fn, "it is chance whether two pages are one piece to the NIC", \
	     __VA_ARGS__)

const struct conf_test desc_tests[] = {
	DESC(8, "ALIGNED_INV_DESC", "10 descriptors, 5 of them bad", inv_desc, .chunk = 4096),
	DESC(9, "ALIGNED_INV_DESC_2K_FRAME_SIZE", "10 descriptors, 6 of them bad", inv_desc,
	     .chunk = 2048),
	DESC(10, "UNALIGNED_INV_DESC", "2 MiB pages", inv_desc, .chunk = 4096, .unaligned = true,
	     .huge = true),
	SMALL_PAGES(10, "UNALIGNED_INV_DESC_4K_PAGES", "4 KiB pages", inv_desc, .chunk = 4096,
		    .unaligned = true),
	DESC(11, "UNALIGNED_INV_DESC_4001_FRAME_SIZE", "2 MiB pages, the UMEM ends inside a page",
	     inv_desc, .chunk = 4001, .unaligned = true, .huge = true),
	SMALL_PAGES(11, "UNALIGNED_INV_DESC_4001_4K_PAGES",
		    "4 KiB pages, the UMEM ends inside a page", inv_desc, .chunk = 4001,
		    .unaligned = true),
	DESC(25, "SEND_RECEIVE_UNALIGNED", "2 MiB pages, odd packets across a page's end",
	     unaligned_flow, .huge = true),
	SMALL_PAGES(25, "SEND_RECEIVE_UNALIGNED_4K_PAGES",
		    "4 KiB pages, odd packets across a page's end", unaligned_flow, .huge = false),
	DESC(26, "SEND_RECEIVE_UNALIGNED_9K_PACKETS", "2 MiB pages, 1024 packets of 8900 bytes",
	     unaligned_flow, .huge = true, .several = true),
	SMALL_PAGES(26, "SEND_RECEIVE_UNALIGNED_9K_4K_PAGES",
		    "4 KiB pages, 1024 packets of 8900 bytes", unaligned_flow, .several = true),
	DESC(27, "ALIGNED_INV_DESC_MULTI_BUFF", "17 descriptors of several fragments",
	     inv_desc_frags, .chunk = 4096, .several = true),
	DESC(28, "UNALIGNED_INV_DESC_MULTI_BUFF", "the same, unaligned, 2 MiB pages",
	     inv_desc_frags, .chunk = 4096, .unaligned = true, .huge = true, .several = true),
	SMALL_PAGES(28, "UNALIGNED_INV_DESC_MULTI_BUFF_4K", "the same, unaligned, 4 KiB pages",
		    inv_desc_frags, .chunk = 4096, .unaligned = true, .several = true),
	DESC(29, "TOO_MANY_FRAGS", "as many as go, and one more", too_many_frags, .chunk = 4096,
	     .several = true),
	{0},
};
