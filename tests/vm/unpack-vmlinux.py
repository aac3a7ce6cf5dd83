#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
"""unpack-vmlinux.py BZIMAGE VMLINUX: take the ELF kernel out of a bzImage. QEMU boots it by PVH, so the
decompressor does not run under emulation. Called by prepare.sh."""
import struct
import subprocess
import sys

TOOLS = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zX": "xz", b"\x1f\x8b\x08\x00": "gzip"}


def main():
    with open(sys.argv[1], "rb") as f:
        image = f.read()
    # Linux boot protocol: setup sectors at 1f1, offset and length of the payload at 248
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = ((image[0x1F1] or 4) + 1) * 512 + offset
    payload = image[start:start + length]
    tool = TOOLS.get(payload[:4])
    if not tool:
        sys.exit(f"unpack-vmlinux.py: {sys.argv[1]}: compression {payload[:4].hex()} is not known here")
    # The payload ends with its size, which the tools take for garbage: their status says nothing.
    run = subprocess.run([tool, "-dc"], input=payload, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if run.stdout[:4] != b"\x7fELF":
        sys.exit(f"unpack-vmlinux.py: {sys.argv[1]}: no ELF inside")
    with open(sys.argv[2], "wb") as f:
        f.write(run.stdout)


main()
