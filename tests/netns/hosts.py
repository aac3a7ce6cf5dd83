#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
"""What ordinary programs on the hosts of a lab send and receive, counted; for tests/netns/test_steer.sh.

hosts.py udp-send ADDR PORT N [ADDR PORT N]...   N datagrams to each, at most 20000 a second
hosts.py udp-on ADDR PORT                        at most 5000 a second until SIGTERM; prints how many
hosts.py udp-count PORT...                       until SIGTERM; prints how many came on each
hosts.py tcp-send ADDR PORT BYTES                prints bytes and digest of what it sent
hosts.py tcp-take PORT                           one connection; prints bytes and digest of what came

Those that receive print "ready" once they can.
"""
import hashlib
import random
import select
import signal
import socket
import sys
import time

SO_RCVBUFFORCE = 33


def on_term():
    """A list that is no longer empty once we were told to end."""
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(1))
    return told


def udp_to(addr, port):
    s = socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((addr, int(port)))
    return s


def send_slowly(s, i, rate):
    """A few at a time, never more to make up for lost time: a burst would overrun the device."""
    if i % 8 == 0:
        time.sleep(8 / rate)
    try:
        s.send(bytes(32))
    except ConnectionRefusedError:  # the answer to an earlier one: nobody listens
        s.send(bytes(32))


def udp_send(*to):
    for addr, port, n in zip(to[::3], to[1::3], to[2::3]):
        s = udp_to(addr, port)
        for i in range(int(n)):
            send_slowly(s, i, 20000)


def udp_on(addr, port):
    s, told, sent = udp_to(addr, port), on_term(), 0
    while not told:
        send_slowly(s, sent, 5000)
        sent += 1
    print(sent, flush=True)


def udp_count(*ports):
    told, came, sockets = on_term(), {}, []
    for port in ports:
        s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        s.bind(("::", int(port)))
        came[s] = 0
        sockets.append(s)
    print("ready", flush=True)
    while True:
        last = bool(told)
        ready, _, _ = select.select(sockets, [], [], 0.2)
        for s in ready:
            s.recv(2048)
            came[s] += 1
        if last and not ready:  # and nothing more came since
            break
    print(*came.values(), flush=True)


def tcp_send(addr, port, size):
    data = random.Random(7).randbytes(1 << 20)
    digest, left = hashlib.sha256(), int(size)
    with socket.create_connection((addr, int(port)), timeout=20) as s:
        while left:
            part = data[:min(left, len(data))]
            s.sendall(part)
            digest.update(part)
            left -= len(part)
    print(size, digest.hexdigest(), flush=True)


def tcp_take(port):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends with the connection
    with socket.create_server(("::", int(port)), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        print("ready", flush=True)
        server.settimeout(20)
        s, _ = server.accept()
        s.settimeout(20)
        digest, size = hashlib.sha256(), 0
        while part := s.recv(1 << 18):
            digest.update(part)
            size += len(part)
    print(size, digest.hexdigest(), flush=True)


def main():
    verbs = {"udp-send": udp_send, "udp-on": udp_on, "udp-count": udp_count, "tcp-send": tcp_send,
             "tcp-take": tcp_take}
    if len(sys.argv) < 3 or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    verbs[sys.argv[1]](*sys.argv[2:])


main()
