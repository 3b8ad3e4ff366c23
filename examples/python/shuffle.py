#!/usr/bin/env python3
"""Two processes shuffle integers: each sends a million, and every one goes to the process that its value belongs to.

    shuffle.py [libfaro_c.so]      Python 3, ctypes alone; no copy of a row but those of the shuffle itself

What the functions do is said in faro/c.h.
"""

import ctypes
import os
import sys
from ctypes import (CFUNCTYPE, POINTER, byref, c_char_p, c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p,
                    pointer)

NODES, ROWS = 2, 1_000_000
END_OF_STREAM, FAILED = 4, 6
OK, QUERY_FAILED = 0, 21
NO_WAIT, FOREVER = -(2**63), 2**63 - 1
FINALIZER = 0


class QueryId(ctypes.Structure):
    _fields_ = [("counter", c_uint64), ("incarnation", c_uint64), ("issuer", c_uint32), ("reserved", c_uint32)]


class Sized(ctypes.Structure):
    """A struct that begins with its size."""

    _fields_ = [("size", c_uint32), ("version", c_uint32)]

    def __init__(self, **fields):
        super().__init__(size=ctypes.sizeof(self), **fields)


class Error(Sized):
    _fields_ = [("code", c_int32), ("category", c_int32), ("has_node", c_uint8), ("has_query", c_uint8),
                ("has_stage", c_uint8), ("reserved", c_uint8 * 5), ("node", c_uint32), ("stage", c_uint32),
                ("query", QueryId), ("message", c_char_p)]


class ShuffleSpec(Sized):
    _fields_ = [("query", QueryId), ("stage", c_uint32), ("row_bytes", c_uint32), ("senders", POINTER(c_uint32)),
                ("receivers", POINTER(c_uint32)), ("sender_count", c_uint32), ("receiver_count", c_uint32),
                ("format", c_char_p)]


class Rows(Sized):
    _fields_ = [("address", c_void_p), ("bytes", c_uint64), ("row_count", c_uint32), ("row_bytes", c_uint32),
                ("sender", c_uint32), ("reserved", c_uint32)]


PRODUCE = CFUNCTYPE(c_int32, c_void_p, c_void_p)
CONSUME = CFUNCTYPE(c_int32, c_void_p, c_void_p, POINTER(Rows))


class ExchangePart(Sized):
    _fields_ = [("shuffle", c_void_p), ("produce", PRODUCE), ("consume", CONSUME), ("context", c_void_p),
                ("ended", c_int32), ("reserved", c_int32)]


class Faro:
    """The library. A call that does not answer what was expected raises RuntimeError."""

    ARGUMENTS = {
        "config_set": [c_void_p, c_char_p, c_char_p],
        "listening_socket_bind": [c_char_p, POINTER(c_void_p)],
        "session_open": [c_void_p, c_void_p, c_void_p, POINTER(c_void_p)],
        "session_worker": [c_void_p, c_uint32, POINTER(c_void_p)],
        "session_begin_query": [c_void_p, POINTER(QueryId)],
        "worker_open_shuffle": [c_void_p, POINTER(ShuffleSpec), POINTER(c_void_p)],
        "worker_exchange": [c_void_p, POINTER(POINTER(ExchangePart)), c_size_t, c_int64],
        "sender_send_all": [c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, c_uint32, c_uint32, c_int32, c_int64,
                            POINTER(c_size_t)],
        "worker_end_query": [c_void_p, POINTER(QueryId), c_int32, c_char_p, c_int64],
        "session_close": [c_void_p],
        "last_error": [POINTER(Error)],
    }
    HANDLES = {"config_create": [], "listening_socket_address": [c_void_p]}
    DESTROY = ["config_destroy", "listening_socket_destroy", "shuffle_destroy", "session_destroy"]

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        for name, arguments in {**self.ARGUMENTS, **self.HANDLES, **dict.fromkeys(self.DESTROY, [c_void_p])}.items():
            function = getattr(self.library, "faro_" + name)
            function.argtypes = arguments
            function.restype = c_int32 if name in self.ARGUMENTS else c_void_p if name in self.HANDLES else None
        self.library.faro_listening_socket_address.restype = c_char_p

    def __getattr__(self, name):
        function = getattr(self.library, "faro_" + name)
        return function if name not in self.ARGUMENTS else lambda *arguments: self.expect((OK,), name, *arguments)

    def expect(self, answers, name, *arguments):
        answer = getattr(self.library, "faro_" + name)(*arguments)
        if answer not in answers:
            error = Error()
            self.library.faro_last_error(byref(error))
            raise RuntimeError(f"faro_{name} answers {answer}: {error.message.decode()}")
        return answer


def guarded(signature, failure, function):
    """A function that the library calls: where it raises, which ctypes would only print, it answers `failure`."""

    def call(*arguments):
        try:
            return function(*arguments)
        except Exception as error:
            print(f"{function.__name__}: {error!r}", file=sys.stderr)
            return failure

    return signature(call)


def shuffle(faro, worker, query, first):
    """Sends ROWS integers from `first` on, and receives at the same time; returns how many have come, and their sum."""
    handle = c_void_p()
    faro.worker_open_shuffle(worker, byref(ShuffleSpec(query=query, row_bytes=8)), byref(handle))
    rows = (c_uint64 * ROWS)(*range(first, first + ROWS))
    sent = count = total = 0

    def produce(_, shuffle):  # some thousand rows; those that find no room are sent by the next call
        nonlocal sent
        if sent == ROWS:
            return END_OF_STREAM
        end, first_unsent = min(sent + 4096, ROWS), c_size_t(sent)
        answer = faro.library.faro_sender_send_all(shuffle, rows, ctypes.sizeof(rows), sent, end, 0, 8, FINALIZER, NO_WAIT,
                                                   byref(first_unsent))
        sent = first_unsent.value
        return answer

    def consume(_, batch, received):
        nonlocal count, total
        values = (c_uint64 * received[0].row_count).from_address(received[0].address)  # where they lie: no copy
        count += len(values)
        total += sum(values)
        return OK

    part = ExchangePart(shuffle=handle, produce=guarded(PRODUCE, FAILED, produce),
                        consume=guarded(CONSUME, QUERY_FAILED, consume))
    faro.expect((END_OF_STREAM,), "worker_exchange", worker, byref(pointer(part)), 1, FOREVER)
    faro.shuffle_destroy(handle)
    return count, total


def run(faro, node, nodes, socket, of_query, tell):
    """One node. Node 0 begins the query and puts it into the pipe `of_query`; `tell` takes what has come."""
    config, session, worker, query = faro.config_create(), c_void_p(), c_void_p(), QueryId()
    for name, value in {"cluster.nodes": nodes, "cluster.node": str(node), "cluster.workers": "1"}.items():
        faro.config_set(config, name.encode(), value.encode())
    faro.session_open(config, socket, None, byref(session))
    faro.session_worker(session, 0, byref(worker))
    if node == 0:
        faro.session_begin_query(session, byref(query))
        os.write(of_query[1], bytes(query))
    else:
        query = QueryId.from_buffer_copy(os.read(of_query[0], ctypes.sizeof(query)))
    count, total = shuffle(faro, worker, query, node * ROWS)
    faro.worker_end_query(worker, byref(query), OK, None, FOREVER)
    faro.session_destroy(session)
    faro.config_destroy(config)
    os.write(tell, f"{count} {total}\n".encode())


def start(path, node, addresses, of_query, tell):
    """A process that binds its address, tells it, and runs when it was told those of all; returns its id and two pipes."""
    (of_address, to_parent), (of_nodes, to_child) = os.pipe(), os.pipe()
    child = os.fork()
    if child != 0:
        os.close(to_parent)
        os.close(of_nodes)
        addresses.append(os.fdopen(of_address).readline().strip())
        return child, to_child
    status = 1
    try:
        faro, socket = Faro(path), c_void_p()
        faro.listening_socket_bind(b"127.0.0.1:0", byref(socket))
        os.write(to_parent, faro.listening_socket_address(socket) + b"\n")
        os.close(to_parent)
        os.close(to_child)
        run(faro, node, os.fdopen(of_nodes).readline().strip(), socket, of_query, tell)
        status = 0
    except Exception as error:
        print(f"node {node}: {error}", file=sys.stderr)
    finally:
        os._exit(status)


def main(path="libfaro_c.so"):
    addresses, of_query, (results, tell) = [], os.pipe(), os.pipe()
    nodes = [start(path, node, addresses, of_query, tell) for node in range(NODES)]
    os.close(tell)
    for _, to_child in nodes:
        os.write(to_child, (",".join(addresses) + "\n").encode())
        os.close(to_child)
    statuses = [os.waitpid(child, 0)[1] for child, _ in nodes]
    received = [tuple(map(int, line.split())) for line in os.fdopen(results)]
    count, total = (sum(each) for each in zip(*received)) if received else (0, 0)
    expected = NODES * ROWS
    if any(statuses) or count != expected or total != expected * (expected - 1) // 2:
        sys.exit(f"wrong: {received} at nodes that ended with {statuses}")
    print(f"{count} rows, {' + '.join(str(part) for part, _ in received)}, sum {total}")


if __name__ == "__main__":
    main(*sys.argv[1:])
