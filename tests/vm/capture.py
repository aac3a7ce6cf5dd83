#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
"""capture.py TAP FILE: what the guest sends on a tap, into a pcap file. QEMU's own capture refuses NICs of
several queues. Called by boot.sh in the taps' namespace; runs until it is ended."""
import socket
import struct
import sys
import time

SOL_PACKET, PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE = 263, 23, 33


def main():
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    s.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    s.bind((sys.argv[1], 3))  # ETH_P_ALL
    with open(sys.argv[2], "wb", buffering=0) as f:
        f.write(struct.pack("=IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65536, 1))
        while True:
            try:
                frame = s.recv(65536)
            except OSError:  # the tap is down as yet
                continue
            now = time.time()
            f.write(struct.pack("=IIII", int(now), int(now % 1 * 1e6), len(frame), len(frame)) + frame)


main()
