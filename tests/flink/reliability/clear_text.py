#!/usr/bin/env python3
"""With security.ssl.internal nothing that TaskManagers exchange is on the network in clear; without, it is, and is seen.

Reads all packets of the loopback of this network namespace while a job sends texts that all have a part in common.
"""
import argparse
import os
import socket
import subprocess
import threading

import cluster

MARKER = b"I-do-not-travel-in-clear"
ALL_PROTOCOLS = 3
PASSWORD = "of-a-test"


class Capture:
    """Counts packets of the loopback, and those with the marker, until it is closed."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)  # SO_RCVBUFFORCE
        self.socket.bind(("lo", 0))
        self.socket.settimeout(0.2)
        self.packets = self.bytes = self.marked = self.dropped = 0
        self.ends = False
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self):
        while not self.ends:
            try:
                packet = self.socket.recv(1 << 17)
            except socket.timeout:
                continue
            self.packets += 1
            self.bytes += len(packet)
            self.marked += MARKER in packet

    def close(self):
        self.ends = True
        self.thread.join()
        statistics = self.socket.getsockopt(263, 6, 8)  # SOL_PACKET, PACKET_STATISTICS
        self.dropped = int.from_bytes(statistics[4:8], "little")
        self.socket.close()


def keys(folder):
    """A keystore for all, and Flink's settings of it."""
    os.makedirs(folder, exist_ok=True)
    store = os.path.join(folder, "internal.p12")
    if not os.path.exists(store):
        subprocess.run(["keytool", "-genkeypair", "-alias", "flink", "-keyalg", "RSA", "-keysize", "2048", "-dname", "CN=flink",
                        "-validity", "30", "-storetype", "PKCS12", "-keystore", store, "-storepass", PASSWORD], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    settings = {"security.ssl.internal.enabled": "true"}
    for kind in ("keystore", "truststore"):
        settings[f"security.ssl.internal.{kind}"] = store
        settings[f"security.ssl.internal.{kind}-password"] = PASSWORD
    settings["security.ssl.internal.key-password"] = PASSWORD
    return settings


def captured(arguments, name, more):
    """What is on the network while a job runs over tcp."""
    folder = os.path.join(arguments.folder, f"clear_text-{'netty-' if arguments.netty else ''}{name}")
    with cluster.Cluster(folder, {**cluster.settings_of(arguments), **more}) as flink:
        flink.start(2)
        capture = Capture()
        try:
            flink.submit(records=200_000, rate=40_000, parallelism=4).finish(300)
        finally:
            capture.close()
        if not arguments.netty and set(flink.transports()) != {"tcp"}:
            raise cluster.Wrong(f"links are {flink.transports()}")
    return capture


def run(arguments):
    arguments.transport = "tcp"
    without = captured(arguments, "without", {})
    if not without.marked:
        raise cluster.Wrong("nothing is seen in clear without SSL either")
    ssl = captured(arguments, "with", keys(os.path.join(arguments.folder, "keys")))
    if ssl.marked:
        raise cluster.Wrong(f"with security.ssl.internal {ssl.marked} of {ssl.packets} packets are in clear")
    if ssl.dropped or ssl.bytes < without.bytes // 2:
        raise cluster.Wrong(f"not all was seen: {ssl.bytes} bytes, {ssl.dropped} packets were missed")
    return (f"text is in {without.marked} of {without.packets} packets without SSL, "
            f"in none of {ssl.packets} ({ssl.bytes / 1e6:.0f} MB) with it")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests/flink/reliability/run clear_text")
    cluster.add_arguments(parser)
    cluster.end(lambda: run(parser.parse_args()))
