#!/usr/bin/env python3
"""Two processes send each other Arrow batches at the same time: over Faro, Arrow Flight, or sockets with pickle.

    batches.py CARRIER --batches N --rows N [--library libfaro_c.so] [--ring 256KiB]     CARRIER: shm, tcp, flight, pickle

A batch has a column each of int64, float64 and strings. Each process makes some before the clock starts, and sends N in a thread of
its own while another one receives. Every batch of a first round is compared with what was sent; in the second one, which is timed,
rows are counted and one column is added up. Prints a line of JSON. Needs pyarrow.

  shm, tcp  a batch is one row: the buffers of Arrow's IPC as pieces (faro_sender_send_parts), received into memory that Arrow then
            reads (faro_receiver_receive_into)
  flight    DoPut, over loopback
  pickle    a TCP socket of loopback, pickle protocol 5 with out-of-band buffers, gathered by sendmsg and read into place
"""

import argparse
import ctypes
import json
import pickle
import socket
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as flight

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples/python"))
import shuffle as by_faro  # noqa: E402  the C ABI by ctypes

SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.float64()), ("name", pa.string())])
DISTINCT = 4  # batches that a process makes
BUFFERS_AT_ONCE = 64  # of one sendmsg; the kernel takes 1024


def batches_of(node: int, rows: int) -> list[pa.RecordBatch]:
    made = []
    for number in range(DISTINCT):
        keys = range((node * DISTINCT + number) * rows, (node * DISTINCT + number + 1) * rows)
        columns = [pa.array(keys, SCHEMA.field(0).type), pa.array([key * 0.5 for key in keys]), pa.array([f"row {key}" for key in keys])]
        made.append(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
    return made


class Pieces:
    """Where Arrow's IPC writes: nothing is copied but small headers."""

    closed = False

    def __init__(self):
        self.buffers: list[pa.Buffer] = []

    def write(self, piece) -> int:
        self.buffers.append(pa.py_buffer(piece))
        return len(piece)

    def tell(self) -> int:
        return sum(buffer.size for buffer in self.buffers)

    def flush(self):
        pass

    close = flush

    def readable(self):
        return False

    def writable(self):
        return True

    seekable = readable


class Piece(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t))


class Library(by_faro.Faro):
    ARGUMENTS = {
        **by_faro.Faro.ARGUMENTS,
        "sender_send_parts": [
            ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32), ctypes.c_size_t, ctypes.POINTER(Piece), ctypes.c_size_t, ctypes.c_int64,
        ],
        "sender_finish": [ctypes.c_void_p, ctypes.c_int64],
        "receiver_receive_into": [
            ctypes.c_void_p, ctypes.c_void_p, ALLOCATE, ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(by_faro.Rows),
        ],
    }  # fmt: skip
    HANDLES = {**by_faro.Faro.HANDLES, "batch_create": []}
    DESTROY = [*by_faro.Faro.DESTROY, "batch_destroy"]


def rows_of(rows: by_faro.Rows, given: dict[int, pa.Buffer]):
    """A row that is larger than a frame lies in memory that was given for it; others, in the ring, are copied."""
    if memory := given.pop(rows.address, None):
        yield memory
        return
    at, end = rows.address, rows.address + rows.bytes
    while at < end:
        length = rows.row_bytes or ctypes.c_uint32.from_address(at).value
        at += 0 if rows.row_bytes else 4
        yield pa.py_buffer(ctypes.string_at(at, length))
        at += length


class Faro:
    """Of each process worker 0 sends, and worker 1 receives: threads of their own, as the other carriers have."""

    def __init__(self, transport: str, node: int, library: str, ring_bytes: str | None):
        self.settings = {"transport": transport, **({"ring.bytes": ring_bytes} if ring_bytes else {})}
        self.node = node
        self.faro = Library(library)
        self.socket = ctypes.c_void_p()
        self.faro.listening_socket_bind(b"127.0.0.1:0", ctypes.byref(self.socket))
        self.address = self.faro.listening_socket_address(self.socket).decode()
        self.session, self.sender, self.receiver = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.query, self.stage = by_faro.QueryId(), 0

    def connect(self, addresses: list[str]) -> str:
        config = self.faro.config_create()
        settings = {"cluster.nodes": ",".join(addresses), "cluster.node": self.node, "cluster.workers": 2}
        for name, value in {**settings, **self.settings}.items():
            self.faro.config_set(config, name.encode(), str(value).encode())
        self.faro.session_open(config, self.socket, None, ctypes.byref(self.session))
        for index, worker in enumerate((self.sender, self.receiver)):
            self.faro.session_worker(self.session, index, ctypes.byref(worker))
        if self.node == 0:
            self.faro.session_begin_query(self.session, ctypes.byref(self.query))
        return bytes(self.query).hex()

    def begin(self, of_first: str):
        """`of_first`: what node 0's connect has answered."""
        self.query = by_faro.QueryId.from_buffer_copy(bytes.fromhex(of_first))

    def _open(self, worker, stage: int) -> ctypes.c_void_p:
        senders, receivers = (ctypes.c_uint32 * 2)(0, 2), (ctypes.c_uint32 * 2)(1, 3)
        spec = by_faro.ShuffleSpec(
            query=self.query, stage=stage, senders=senders, sender_count=2, receivers=receivers, receiver_count=2
        )
        opened = ctypes.c_void_p()
        self.faro.worker_open_shuffle(worker, ctypes.byref(spec), ctypes.byref(opened))
        return opened

    def send(self, stage: int, batches):
        opened = self._open(self.sender, stage)
        pieces = Pieces()
        writer = pa.ipc.new_stream(pa.PythonFile(pieces, mode="w"), SCHEMA)
        writer.write_batch(pa.RecordBatch.from_pylist([], SCHEMA))  # with the schema, which both know
        to = (ctypes.c_uint32 * 1)(1 - self.node)
        for batch in batches:
            pieces.buffers.clear()
            writer.write_batch(batch)
            row = (Piece * len(pieces.buffers))(*((buffer.address, buffer.size) for buffer in pieces.buffers))
            self.faro.sender_send_parts(opened, to, 1, row, len(row), by_faro.FOREVER)
        self.faro.sender_finish(opened, by_faro.FOREVER)
        self.faro.shuffle_destroy(opened)

    def receive(self, stage: int, take):
        opened, batch, rows, given = self._open(self.receiver, stage), self.faro.batch_create(), by_faro.Rows(), {}

        def allocate(_, count, room):
            memory = pa.allocate_buffer(count)  # aligned to 64 bytes
            given[memory.address] = memory
            room[0] = count
            return memory.address

        call = ALLOCATE(allocate)
        arguments = (opened, batch, call, None, by_faro.FOREVER, ctypes.byref(rows))
        while self.faro.expect((by_faro.OK, by_faro.END_OF_STREAM), "receiver_receive_into", *arguments) == by_faro.OK:
            for row in rows_of(rows, given):
                take(pa.ipc.read_record_batch(pa.ipc.read_message(row), SCHEMA))
        self.faro.batch_destroy(batch)
        self.faro.shuffle_destroy(opened)

    def end(self, worker):
        self.faro.worker_end_query(worker, ctypes.byref(self.query), by_faro.OK, None, by_faro.FOREVER)

    def end_sending(self):
        self.end(self.sender)

    def end_receiving(self):
        self.end(self.receiver)

    def close(self):
        self.faro.session_destroy(self.session)


class Flight(flight.FlightServerBase):
    def __init__(self, node: int):
        super().__init__("grpc://127.0.0.1:0")
        self.node, self.address = node, f"grpc://127.0.0.1:{self.port}"
        self.came, self.take, self.done, self.problem = threading.Event(), None, threading.Event(), None

    def do_put(self, context, descriptor, reader, writer):
        self.came.wait()  # for who takes
        try:
            for chunk in reader:
                self.take(chunk.data)
        except Exception as problem:
            self.problem = problem
        self.done.set()

    def connect(self, addresses: list[str]) -> str:
        self.client = flight.FlightClient(addresses[1 - self.node])
        return ""

    def begin(self, of_first: str):
        pass

    def send(self, stage: int, batches):
        writer, _ = self.client.do_put(flight.FlightDescriptor.for_path(str(stage)), SCHEMA)
        for batch in batches:
            writer.write_batch(batch)
        writer.close()

    def receive(self, stage: int, take):
        self.take = take
        self.came.set()
        self.done.wait()
        self.came.clear()
        self.done.clear()
        if self.problem:
            raise self.problem

    end_sending = end_receiving = lambda self: None

    def close(self):
        self.client.close()
        self.shutdown()


class Pickle:
    LENGTH = struct.Struct("<Q")

    def __init__(self, node: int):
        self.node = node
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = str(self.listener.getsockname()[1])

    def connect(self, addresses: list[str]) -> str:
        if self.node == 0:
            self.peer = socket.create_connection(("127.0.0.1", int(addresses[1])))
        else:
            self.peer = self.listener.accept()[0]
        self.peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return ""

    def begin(self, of_first: str):
        pass

    def send(self, stage: int, batches):
        for batch in batches:
            buffers: list[pickle.PickleBuffer] = []
            pickled = pickle.dumps(batch, protocol=5, buffer_callback=buffers.append)
            parts = [memoryview(pickled), *(buffer.raw() for buffer in buffers)]
            head = b"".join(self.LENGTH.pack(count) for count in (len(parts), *(part.nbytes for part in parts)))
            self._send_all([memoryview(head), *parts])
        self._send_all([memoryview(self.LENGTH.pack(0))])

    def _send_all(self, parts: list[memoryview]):
        while parts:
            sent = self.peer.sendmsg(parts[:BUFFERS_AT_ONCE])
            while parts and sent >= parts[0].nbytes:
                sent -= parts.pop(0).nbytes
            if sent:
                parts[0] = parts[0][sent:]

    def receive(self, stage: int, take):
        while count := self._number():
            lengths = [self._number() for _ in range(count)]
            pickled, *buffers = (self._read(length) for length in lengths)
            take(pickle.loads(pickled, buffers=buffers))

    def _number(self) -> int:
        return self.LENGTH.unpack(self._read(self.LENGTH.size))[0]

    def _read(self, count: int) -> pa.Buffer:
        buffer = pa.allocate_buffer(count)
        into = memoryview(buffer)
        while into.nbytes:
            came = self.peer.recv_into(into)
            if came == 0:
                raise EOFError("the peer has closed its socket")
            into = into[came:]
        return buffer

    end_sending = end_receiving = lambda self: None

    def close(self):
        self.peer.close()


def run_node(flags):
    """One process; it says where it listens, and does what standard input says."""
    carriers = {"flight": Flight, "pickle": Pickle}
    kind = carriers.get(flags.carrier)
    carrier = kind(flags.node) if kind else Faro(flags.carrier, flags.node, flags.library, flags.ring)
    own, expected = batches_of(flags.node, flags.rows), batches_of(1 - flags.node, flags.rows)
    tell = lambda text: print(text, flush=True)  # noqa: E731
    tell(carrier.address)
    tell(carrier.connect(sys.stdin.readline().split()))
    carrier.begin(sys.stdin.readline().strip())
    with ThreadPoolExecutor(1) as receiving:
        for stage, is_checked in enumerate((True, False)):
            sys.stdin.readline()  # both are there
            got = {"batches": 0, "rows": 0, "sum": 0, "equal": True}

            def take(batch):
                if is_checked:
                    got["equal"] &= batch.equals(expected[got["batches"] % DISTINCT])
                got["batches"] += 1
                got["rows"] += batch.num_rows
                got["sum"] += pc.sum(batch.column(0)).as_py()

            cpu = time.process_time()
            received = receiving.submit(carrier.receive, stage, take)
            carrier.send(stage, (own[number % DISTINCT] for number in range(flags.batches)))
            received.result()
            tell(json.dumps({**got, "cpu_seconds": time.process_time() - cpu}))
        receiving.submit(carrier.end_receiving)
        carrier.end_sending()
    carrier.close()


def expected_of(node: int, flags) -> dict:
    """What a node gets: that of the other one."""
    sums = [sum(range(first * flags.rows, (first + 1) * flags.rows)) for first in range((1 - node) * DISTINCT, (2 - node) * DISTINCT)]
    total = sum(sums[number % DISTINCT] for number in range(flags.batches))
    return {"batches": flags.batches, "rows": flags.batches * flags.rows, "sum": total, "equal": True}


def run_both(flags, arguments: list[str]) -> dict:
    def start(node):
        words = [sys.executable, __file__, *arguments, "--node", str(node)]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    nodes = [start(0), start(1)]

    def answers() -> list[str]:
        lines = [node.stdout.readline() for node in nodes]
        if not all(lines):
            raise SystemExit("a process has ended before its end")
        return [line.strip() for line in lines]

    def say(text: str):
        for node in nodes:
            node.stdin.write(text + "\n")
            node.stdin.flush()

    try:
        say(" ".join(answers()))
        say(answers()[0])
        verified = True
        for _ in range(2):
            begin = time.monotonic()
            say("")
            told = [json.loads(line) for line in answers()]
            seconds = time.monotonic() - begin
            cpu = sum(one.pop("cpu_seconds") for one in told)
            verified &= told == [expected_of(node, flags) for node in range(2)]
        verified &= not any([node.wait(30) for node in nodes])
    finally:
        for node in nodes:
            node.kill()
    row_bytes = sum(buffer.size for column in batches_of(0, flags.rows)[0].columns for buffer in column.buffers() if buffer)
    moved = 2 * flags.batches * row_bytes
    return {
        "seconds": seconds, "cpu_seconds": cpu, "bytes_per_second": moved / seconds, "bytes_per_cpu_second": moved / cpu,
        "verified": verified, "count": sum(one["rows"] for one in told), "checksum": sum(one["sum"] for one in told),
        "version": pa.__version__,
    }  # fmt: skip


def main(arguments: list[str]):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("carrier", choices=("shm", "tcp", "flight", "pickle"))
    parser.add_argument("--batches", type=int, required=True)
    parser.add_argument("--rows", type=int, required=True, help="of a batch")
    parser.add_argument("--library", default="libfaro_c.so")
    parser.add_argument("--ring", help="Faro's ring.bytes")
    parser.add_argument("--node", type=int, help="one of the two processes, started by this program")
    flags = parser.parse_args(arguments)
    if flags.node is not None:
        return run_node(flags)
    print(json.dumps(run_both(flags, arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
