#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
"""What was captured outside the guest, from a place in the file on: nothing of the project judges itself.

wire.py source PCAP START COUNT FIRST LAST MAC
    what `xdpath source -c COUNT --size FIRST-LAST --dst-mac MAC` promises: each number once, the size that
    belongs to it, addresses, both checksums, zeros behind the stamp
wire.py same PCAP START PCAP START
    the same frames in the same order, and some at all
wire.py turned PCAP START PCAP START
    those of the second are those of the first with MACs, addresses and ports exchanged, and nothing else

Called by guest tests. Exit 1 and a line for each of the first faults.
"""
import struct
import sys

from pcap import frames


def total(data):
    data += b"\0" * (len(data) % 2)
    n = sum(struct.unpack(f">{len(data) // 2}H", data))
    while n >> 16:
        n = (n & 0xffff) + (n >> 16)
    return n


def fault(frame, number, first, last, mac):
    """What is wrong with the frame of that number, or nothing."""
    size = first + number % (last - first + 1)
    if len(frame) != size:
        return f"has {len(frame)} bytes, not {size}"
    if frame[:6] != mac or frame[12:14] != b"\x08\x00":
        return "is not addressed as asked for"
    ip, udp = frame[14:34], frame[34:]
    if ip[:2] != b"\x45\0" or struct.unpack(">H", ip[2:4])[0] != size - 14 or ip[9] != 17:
        return f"has a wrong IP header: {ip.hex()}"
    if ip[12:] != bytes((198, 18, 0, 1, 198, 18, 0, 2)) or total(ip) != 0xffff:
        return f"has wrong addresses or a wrong checksum: {ip.hex()}"
    if struct.unpack(">H", udp[2:4])[0] != 9 or struct.unpack(">H", udp[4:6])[0] != len(udp):
        return f"has a wrong UDP header: {udp[:8].hex()}"
    if udp[6:8] != b"\0\0" and total(ip[12:] + struct.pack(">HH", 17, len(udp)) + udp) != 0xffff:
        return "has a wrong UDP checksum"
    if any(udp[24:]):
        return "is not zero behind the stamp"
    return ""


def source(sent, count, first, last, mac):
    faults, seen = [], set()
    for frame in sent:
        if len(frame) < 60:
            faults.append(f"a frame of {len(frame)} bytes: {frame.hex()}")
            continue
        number = struct.unpack(">Q", frame[42:50])[0]
        why = fault(frame, number, first, last, mac)
        if why:
            faults.append(f"frame {number} {why}")
        if number in seen or number >= count:
            faults.append(f"frame {number} came {'twice' if number in seen else 'and was not asked for'}")
        seen.add(number)
    if len(seen) != count:
        faults.append(f"{len(seen)} of {count} numbers; missing: {sorted(set(range(count)) - seen)[:10]}")
    return faults


def turned(f):
    return f[6:12] + f[:6] + f[12:26] + f[30:34] + f[26:30] + f[36:38] + f[34:36] + f[38:]


def same(want, got):
    faults = [f"frame {i}: {w.hex()[:140]}, then {g.hex()[:140]}"
              for i, (w, g) in enumerate(zip(want, got)) if w != g]
    if len(want) != len(got) or not want:
        faults.append(f"{len(want)} frames, then {len(got)}")
    return faults


def main():
    what, path, start = sys.argv[1], sys.argv[2], int(sys.argv[3])
    one = list(frames(path, start))
    if what == "source":
        count, first, last = map(int, sys.argv[4:7])
        faults = source(one, count, first, last, bytes.fromhex(sys.argv[7].replace(":", "")))
    else:
        two = list(frames(sys.argv[4], int(sys.argv[5])))
        faults = same([turned(f) for f in one] if what == "turned" else one, two)
    for text in faults[:5]:
        print(text)
    return bool(faults)


sys.exit(main())
