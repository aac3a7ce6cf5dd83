#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
"""Frames of given shapes from one interface to another, compared byte for byte and in order.

frames.py [OPTIONS] NS:DEV NS:DEV SHAPE...

Called by tests/netns/test_shapes.sh: both interfaces are hosts of a lab, between them is what is
tested. A few frames are under way at a time; a frame that is not the next one expected, or that
does not come in time, is a failure: exit 1 and a line for each of the first faults. The
last line says "N sent, N came". Every frame carries its number in its source address, so that even
one of 14 bytes is known from the others.

SHAPE is KIND:LENGTHS, LENGTHS are A, A-B or A-B/STEP, with commas; all in bytes, with the Ethernet
header and all tags:
  plain vlan qinq mpls    to a foreign address, ethertype 88b5 inside
  broadcast multicast     as plain, to that address
  types                   one frame each of ethertypes odd and common, whose content does not fit them
  flows                   UDP of 32 flows in turn: order is kept within each, not between them
OPTIONS
  --back       the other way too, afterwards
  --mtu N      the egress takes so much, and 4 more for a VLAN tag (8 for two): what is longer must
               not come; the last line says "N sent, N came, N longer"
  --window N   frames under way, default 16
  --repeat N   all shapes so often, default 1
  --wait S     how long a frame is waited for, default 2 seconds
"""
import argparse
import collections
import ctypes
import os
import random
import socket
import struct
import sys
import time

SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 263, 8, 23
SO_RCVBUFFORCE, SO_SNDBUFFORCE, CLONE_NEWNET = 33, 32, 0x40000000
TP_STATUS_VLAN_VALID, TP_STATUS_VLAN_TPID_VALID = 1 << 4, 1 << 6
MARK = b"\x02\x5e"  # how source addresses of ours begin
FOREIGN, BROADCAST, MULTICAST = b"\x02\x00\x00\x00\x00\x99", b"\xff" * 6, b"\x01\x00\x5e\x01\x02\x03"
TAG_OF = {"vlan": "8100 6123", "qinq": "88a8 2345 8100 0fff", "mpls": "8847 000641ff 0007d140"}
# 802.3 lengths, IPv4, ARP, RARP, IPX, IPv6, pause, LACP, LLDP, PTP, FCoE, loopback, jumbo LLC, the last
TYPES = (0x0000, 0x0001, 0x002e, 0x05dc, 0x05ff, 0x0600, 0x0800, 0x0806, 0x8035, 0x8137, 0x86dd, 0x8808,
         0x8809, 0x88cc, 0x88f7, 0x8906, 0x9000, 0x8870, 0xffff)
FLOWS = 32


def open_packet(where):
    """A packet socket on NS:DEV; the process is in that namespace afterwards."""
    ns, dev = where.split(":")
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{ns}", "rb") as f:
        if libc.setns(f.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), ns)
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20)
    s.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 32 << 20)
    s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    s.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    s.bind((dev, 3))  # ETH_P_ALL
    return s


def receive(s):
    """One frame as it was on the wire: the kernel puts the outer tag aside."""
    frame, aux, flags, _ = s.recvmsg(1 << 17, 64)
    if flags & socket.MSG_TRUNC:
        return b""
    for level, kind, data in aux:
        if level == SOL_PACKET and kind == PACKET_AUXDATA:
            status, _, _, _, _, tci, tpid = struct.unpack("=IIIHHHH", data[:20])
            if status & TP_STATUS_VLAN_VALID:
                if not status & TP_STATUS_VLAN_TPID_VALID:
                    tpid = 0x8100
                frame = frame[:12] + struct.pack(">HH", tpid, tci) + frame[12:]
    return frame


def lengths(text):
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        yield from range(int(first), int(last or first) + 1, int(step or 1))


class Maker:
    """Makes frames; numbers them on."""

    def __init__(self):
        self.number = 0
        self.noise = random.Random(1).randbytes(1 << 17)

    def frame(self, to, inside, length):
        """`length` bytes, or as many more as the headers need; below 14 there is no whole header."""
        head = to + MARK + struct.pack(">I", self.number) + inside
        at = self.number * 7 % 4096
        self.number += 1
        return head[:length] if length < 14 else head + self.noise[at:at + max(0, length - len(head))]

    def udp(self, flow, length):
        size = max(length, 42) - 14
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, size, flow, 0, 64, 17, 0, b"\x0a\x4d\x01\x01",
                         b"\x0a\x4d\x02" + bytes([flow]))
        words = sum(struct.unpack(">10H", ip))
        words = (words & 0xffff) + (words >> 16)
        ip = ip[:10] + struct.pack(">H", ~((words & 0xffff) + (words >> 16)) & 0xffff) + ip[12:]
        return self.frame(FOREIGN, b"\x08\x00" + ip + struct.pack(">HHHH", 1000 + flow, 9, size - 20, 0), length)

    def shapes(self, shapes):
        """Yield (flow, tags, frame)."""
        for shape in shapes:
            kind, _, span = shape.partition(":")
            for i, n in enumerate(lengths(span)):
                if kind == "flows":
                    yield i % FLOWS, 0, self.udp(i % FLOWS, n)
                elif kind == "types":
                    for t in TYPES:
                        yield 0, 0, self.frame(FOREIGN, struct.pack(">H", t), n)
                elif kind in TAG_OF:
                    inside = bytes.fromhex(TAG_OF[kind]) + (b"\x88\xb5" if kind != "mpls" else b"")
                    yield 0, {"vlan": 1, "qinq": 2}.get(kind, 0), self.frame(FOREIGN, inside, n)
                elif kind in ("plain", "broadcast", "multicast"):
                    to = {"plain": FOREIGN, "broadcast": BROADCAST, "multicast": MULTICAST}[kind]
                    yield 0, 0, self.frame(to, b"\x88\xb5", n)
                else:
                    sys.exit(f"frames.py: unknown shape '{shape}'; see its head")


class Way:
    """One direction: what is under way, what came."""

    def __init__(self, name, out, into, a):
        self.name, self.out, self.into, self.a = name, out, into, a
        self.expected = collections.defaultdict(collections.deque)
        self.flow_of = {}
        self.under_way = self.sent = self.came = self.longer = self.faults = 0

    def fault(self, text):
        self.faults += 1
        if self.faults <= 5:
            print(f"{self.name}: {text}")

    def send(self, flow, tags, frame):
        self.out.send(frame)
        self.sent += 1
        if self.a.mtu and len(frame) > self.a.mtu + 14 + 4 * tags:
            self.longer += 1
            return
        self.flow_of[frame[8:12]] = flow
        self.expected[flow].append(frame)
        self.under_way += 1

    def take(self):
        """Wait for a frame of ours, compare it. False if none comes."""
        until = time.monotonic() + self.a.wait
        while True:
            self.into.settimeout(max(0.001, until - time.monotonic()))
            try:
                frame = receive(self.into)
            except TimeoutError:
                return False
            if frame[6:8] == MARK:
                break
            if time.monotonic() > until:
                return False
        self.came += 1
        flow = self.flow_of.get(frame[8:12])
        if flow is None:
            self.fault(f"came and should not: {len(frame)} bytes, {frame[:24].hex(' ')}")
            return True
        self.under_way -= 1
        want = self.expected[flow].popleft() if self.expected[flow] else b""
        if frame != want:
            at = next((i for i, (x, y) in enumerate(zip(frame, want)) if x != y), min(len(frame), len(want)))
            self.fault(f"expected {len(want)} bytes {want[:24].hex(' ')}, got {len(frame)} bytes "
                       f"{frame[:24].hex(' ')}, first different at {at}")
        return True

    def run(self, shapes):
        maker = Maker()
        for _ in range(self.a.repeat):
            for flow, tags, frame in maker.shapes(shapes):
                self.send(flow, tags, frame)
                while self.under_way >= self.a.window and not self.faults:
                    if not self.take():
                        self.fault(f"{self.under_way} did not come")
                if self.faults:
                    return
        while self.under_way and not self.faults:
            if not self.take():
                left = [len(f) for q in self.expected.values() for f in q]
                self.fault(f"did not come: frames of {left[:8]} bytes")
        # what was to be dropped would have come by now, or with the last
        self.into.settimeout(0.05)
        try:
            while True:
                frame = receive(self.into)
                if frame[6:8] == MARK:
                    self.came += 1
                    self.fault(f"came and should not: {len(frame)} bytes, {frame[:24].hex(' ')}")
        except TimeoutError:
            pass


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--back", action="store_true")
    p.add_argument("--mtu", type=int, default=0)
    p.add_argument("--window", type=int, default=16)
    p.add_argument("--repeat", type=int, default=1)
    p.add_argument("--wait", type=float, default=2.0)
    p.add_argument("ends", nargs=2)
    p.add_argument("shapes", nargs="+")
    a = p.parse_args()
    one, two = open_packet(a.ends[0]), open_packet(a.ends[1])
    ways = [Way("there", one, two, a)] + ([Way("back", two, one, a)] if a.back else [])
    for way in ways:
        try:
            way.run(a.shapes)
        except OSError as e:
            way.fault(f"frame {way.sent}: {e}")
    total = [sum(getattr(w, n) for w in ways) for n in ("sent", "came", "longer")]
    print(f"{total[0]} sent, {total[1]} came" + (f", {total[2]} longer" if a.mtu else ""))
    return any(w.faults for w in ways)


sys.exit(main())
