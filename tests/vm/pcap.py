#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
"""pcap.py FILE count | hex [FROM]: frames of a capture that may still be growing. Called by guest.sh."""
import struct
import sys


def frames(path, start=24):
    """Each whole frame from a place in the file on; the last one may be half-written."""
    with open(path, "rb") as f:
        f.seek(start)
        data = f.read()
    at = 0
    while at + 16 <= len(data):
        length = struct.unpack_from("=I", data, at + 8)[0]
        if at + 16 + length > len(data):
            return
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def main():
    if sys.argv[2] == "count":
        print(sum(1 for _ in frames(sys.argv[1])))
        return
    skip = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    for number, frame in enumerate(frames(sys.argv[1])):
        if number >= skip:
            print(frame.hex())


if __name__ == "__main__":
    main()
