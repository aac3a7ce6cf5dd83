// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * The rare half of the hot path: packets of several fragments, descriptors that break a rule,
 * completions that name no frame of ours. Called by the inlines of pkt.h only, on the thread that
 * owns the queue and its cache. Nothing here enters the kernel.
 *
 * Whatever the rings hold, each loop is bounded by the burst or by XDPATH_PKT_FRAGS_MAX, and each
 * address is held against the ledger before it is used.
 */
#include <xdpath/pkt.h>

#define ETH_TYPE_AT 12U /* of the frame: behind the two MAC addresses */
#define VLAN_LEN    4U
#define VLAN_TAGS   2U /* most tags on a frame: 802.1ad outside, 802.1Q inside */

/* ---- receive ----------------------------------------------------------------------------------
 */

/* Move the frame of a received fragment to the application; false and counted if that is not on. */
static bool rx_take(struct xdpath_queue *q, const struct xdp_desc *d)
{
	struct xdpath_frames *f = q->frames;
	uint64_t frame = xdpath_frame_index(f, d->addr);

	if (!xdpath_frame_mine(f, frame) || f->owner[frame] != XDPATH_FILL) {
		xdpath_count(&q->n.rx_bad, 1);
		return false;
	}
	f->owner[frame] = XDPATH_RX;
	return true;
}

/* Take k fragments at d. With `drop`, or if one is bad, all go back to the cache: false. */
static bool rx_accept(struct xdpath_queue *q, const struct xdp_desc *d, uint32_t k, bool drop)
{
	uint32_t taken =
		0; /* a bit for each fragment: only what was taken here may be given back */

	for (uint32_t i = 0; i < k; i++) {
		if (!rx_take(q, &d[i])) {
			drop = true;
			continue;
		}
		taken |= 1U << i;
		if (xdpath_frag_crosses(&d[i], q->frame_mask)) {
			xdpath_count(&q->n.rx_bad, 1);
			drop = true;
		}
	}
	for (uint32_t i = 0; drop && i < k; i++)
		if (taken & 1U << i)
			xdpath_frame_put(q->frames, d[i].addr);
	return !drop;
}

/*
 * Copy the packet at the head of the RX ring to out, the ring is left as it is. Returns its
 * fragments, or 0 when its end is not there yet. *whole is false for more fragments than we take,
 * or than the ring can hold: such a packet must not be waited for.
 */
static uint32_t rx_peek(struct xdpath_cons *r, struct xdp_desc *out, bool *whole)
{
	const struct xdp_desc *ring = r->entries;
	uint32_t avail = xdpath_cons_avail(r, XDPATH_PKT_FRAGS_MAX), n;

	*whole = true;
	for (n = 0; n < avail && n < XDPATH_PKT_FRAGS_MAX; n++) {
		out[n] = xdpath_read_desc(&ring[(r->cons + n) & r->mask]);
		out[n].options &= XDP_PKT_CONTD; /* other bits are the kernel's own, not for TX */
		if (!out[n].options)
			return n + 1;
	}
	if (n < XDPATH_PKT_FRAGS_MAX && n < r->size)
		return 0;
	*whole = false;
	return n;
}

/* Drop one more fragment of a packet that was too long; false when none is there. */
static bool rx_skip(struct xdpath_queue *q)
{
	struct xdpath_cons *r = &q->rx;
	const struct xdp_desc *ring = r->entries;
	struct xdp_desc d;

	if (xdpath_cons_avail(r, 1) == 0)
		return false;
	d = xdpath_read_desc(&ring[r->cons++ & r->mask]);
	rx_accept(q, &d, 1, true);
	q->rx_skipping = d.options & XDP_PKT_CONTD;
	return true;
}

uint32_t xdpath_rx_burst_rare(struct xdpath_queue *q, struct xdp_desc *out, uint32_t done,
			      uint32_t max)
{
	uint64_t packets = 0, bytes = 0, refused = 0;
	uint32_t k;
	bool whole;

	/* What was refused counts against `max` too, so that a ring of rubbish cannot hold us. */
	for (uint32_t seen = done; seen < max; seen += k) {
		if (q->rx_skipping) {
			k = rx_skip(q);
			if (k == 0)
				break;
			continue;
		}
		k = rx_peek(&q->rx, out + done, &whole);
		if (k == 0)
			break;
		q->rx.cons += k;
		q->rx_skipping = !whole;
		if (!rx_accept(q, out + done, k, !whole)) {
			refused++;
			continue;
		}
		packets++;
		bytes += xdpath_pkt_len(out + done, k);
		done += k;
	}
	xdpath_count(&q->n.rx_packets, packets);
	xdpath_count(&q->n.rx_bytes, bytes);
	xdpath_count(&q->n.rx_refused, refused);
	xdpath_cons_release(&q->rx);
	return done;
}

/* ---- send -------------------------------------------------------------------------------------
 */

/* References that TX descriptors hold on a frame of ours, 0 if it is not in TX. */
static uint32_t tx_refs(const struct xdpath_frames *f, uint64_t addr)
{
	uint64_t i = xdpath_frame_index(f, addr);

	return xdpath_frame_mine(f, i) && f->owner[i] > XDPATH_TX ? f->owner[i] - XDPATH_TX : 0;
}

/* One more descriptor names the frame; false when the byte can count no more. */
static bool tx_ref(struct xdpath_frames *f, uint64_t addr)
{
	uint32_t refs = tx_refs(f, addr);

	if (refs >= XDPATH_TX_REFS_MAX)
		return false;
	f->owner[xdpath_frame_index(f, addr)] = (uint8_t)(XDPATH_TX + refs + 1);
	return true;
}

/* Take back one reference on a frame in TX; the last one frees the frame. */
static void tx_unref(struct xdpath_frames *f, uint64_t addr)
{
	uint64_t i = xdpath_frame_index(f, addr);

	if (--f->owner[i] > XDPATH_TX)
		return;
	f->owner[i] = XDPATH_FREE;
	f->stack[f->count++] = i << f->shift;
}

/* The kernel's rules for one descriptor, and the ledger's: may the application send this frame? */
static bool tx_frag_ok(const struct xdpath_queue *q, const struct xdp_desc *d)
{
	/* XDP_TX_METADATA is refused like an unknown bit: no metadata area is registered, and the
	 * kernel would stick at such a descriptor for ever (EINVAL on each kick). */
	if (d->len == 0 || d->options & ~(uint32_t)XDP_PKT_CONTD ||
	    xdpath_frag_crosses(d, q->frame_mask))
		return false;
	if (xdpath_frame_is_app(q->frames, d->addr) || tx_refs(q->frames, d->addr) > 0)
		return true;
	xdpath_frame_wrong(q->frames, "send", d->addr);
	return false;
}

/* Bytes that VLAN tags add to what the MTU allows. */
static uint32_t tx_tag_bytes(const struct xdpath_queue *q, const struct xdp_desc *d)
{
	const uint8_t *p = xdpath_data(q, d);
	uint32_t tags = 0;

	for (uint32_t at = ETH_TYPE_AT; tags < VLAN_TAGS && at + 2 <= d->len; at += VLAN_LEN) {
		uint32_t type = (uint32_t)p[at] << 8 | p[at + 1];

		if (type != 0x8100 && type != 0x88a8) /* 802.1Q, 802.1ad */
			break;
		tags++;
	}
	return tags * VLAN_LEN;
}

enum tx_fault { TX_GOOD, TX_INVALID, TX_TOO_BIG, TX_TOO_SHORT };

/* The rule that a packet of k fragments breaks. */
static enum tx_fault tx_judge(const struct xdpath_queue *q, const struct xdp_desc *d, uint32_t k)
{
	uint64_t len = 0;

	for (uint32_t i = 0; i < k; i++) {
		if (!tx_frag_ok(q, &d[i]))
			return TX_INVALID;
		len += d[i].len;
	}
	/* More than the ring holds would wait for room for ever. */
	if (k > q->tx_max_frags || k > q->tx.size)
		return TX_TOO_BIG;
	if (len < XDPATH_ETH_MIN)
		return TX_TOO_SHORT;
	if (len > q->tx_max_len && len > (uint64_t)q->tx_max_len + tx_tag_bytes(q, d))
		return TX_TOO_BIG;
	return TX_GOOD;
}

/* Give back what is still the application's of a refused packet: each frame once, however often it
 * is named; what another packet has in TX stays there. */
static void tx_refuse(struct xdpath_queue *q, const struct xdp_desc *d, uint32_t k,
		      enum tx_fault why)
{
	for (uint32_t i = 0; i < k; i++)
		if (xdpath_frame_is_app(q->frames, d[i].addr))
			xdpath_frame_put(q->frames, d[i].addr);
	xdpath_count(why == TX_TOO_BIG	   ? &q->n.tx_too_big
		     : why == TX_TOO_SHORT ? &q->n.tx_too_short
					   : &q->n.tx_invalid,
		     1);
}

/* Write a good packet to the ring; false, and nothing changed, when a frame has its fill of
 * references. Frames that were the application's are then free. */
static bool tx_write(struct xdpath_queue *q, const struct xdp_desc *d, uint32_t k)
{
	struct xdpath_prod *r = &q->tx;
	struct xdp_desc *ring = r->entries;

	for (uint32_t i = 0; i < k; i++) {
		if (!tx_ref(q->frames, d[i].addr)) {
			while (i-- > 0)
				tx_unref(q->frames, d[i].addr);
			return false;
		}
		ring[(r->prod + i) & r->mask] = d[i];
	}
	r->prod += k;
	q->tx_outstanding += k;
	q->tx_unkicked += k;
	xdpath_count(&q->n.tx_packets, 1);
	xdpath_count(&q->n.tx_bytes, xdpath_pkt_len(d, k));
	return true;
}

uint32_t xdpath_tx_burst_rare(struct xdpath_queue *q, const struct xdp_desc *d, uint32_t n)
{
	uint32_t i, k;

	for (i = 0; i < n; i += k) {
		enum tx_fault why;

		k = xdpath_pkt_frags(d + i, n - i);
		if (k == 0) { /* it ends inside a packet: the kernel would wait for the rest */
			k = n - i;
			tx_refuse(q, d + i, k, TX_INVALID);
			continue;
		}
		why = tx_judge(q, d + i, k);
		if (why == TX_GOOD && xdpath_prod_room(&q->tx, k) < k)
			break;
		if (why == TX_GOOD && !tx_write(q, d + i, k))
			why = TX_INVALID;
		if (why != TX_GOOD)
			tx_refuse(q, d + i, k, why);
	}
	xdpath_prod_submit(&q->tx);
	return i;
}

/* ---- release, completions ---------------------------------------------------------------------
 */

void xdpath_release_rare(struct xdpath_queue *q, const struct xdp_desc *d, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		xdpath_frame_put(q->frames, d[i].addr);
}

void xdpath_reap_rare(struct xdpath_queue *q, uint32_t n)
{
	struct xdpath_cons *r = &q->comp;
	const uint64_t *ring = r->entries;
	uint32_t good = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = xdpath_read_addr(&ring[r->cons++ & r->mask]);

		/* Kernels complete what they refused, whatever its address says, and may complete
		 * one descriptor several times. */
		if (tx_refs(q->frames, addr) == 0)
			continue;
		tx_unref(q->frames, addr);
		good++;
	}
	xdpath_tx_done(q, good);
	xdpath_count(&q->n.comp_bad, n - good);
}
