"""Delivery to nodes: what `faro-lab bench delivery`, `skew` and `ring-memory` measure, and what `faro plan` says."""

import json

from contestant import Contestant, Result
from programs import FARO, FARO_LAB, Command

KIB = 1024


class DeliveryWays(Contestant):
    """The ways of a case of `faro-lab bench delivery`, in turns within one run: each is a contestant."""

    product = "Faro"
    needs = {FARO_LAB: "./run build"}
    version_command = (FARO_LAB, "--version")
    expected_seconds = 15
    ways = {
        "worker": "delivery to workers", "node": "delivery to nodes", "all": "delivery to nodes, all receive",
        "absent": "one receives when the others have ended", "without": "one takes no part", "holding": "one holds every batch",
        "handed_on": "two memcpy of each row, by two threads", "copies": "two memcpy of each row, by one thread",
        "replicate": "replicated", "same_memory": "replicated, rings of the same memory together",
    }  # fmt: skip

    def command(self, workload: str, parameters: dict) -> Command:
        words = [FARO_LAB, "bench", "delivery", "--case", parameters["part"], "--rows", parameters["rows"]]
        words += ["--processes", parameters["processes"], "--workers", parameters["workers"]]
        words += ["--hold-ns", parameters["hold_ns"]] if "hold_ns" in parameters else []
        words += ["--set", f"transport={parameters['transport']}"] if "transport" in parameters else []
        words += ["--set", f"ring.bytes={parameters['ring_bytes']}"] if "ring_bytes" in parameters else []
        return Command([*words, "--repetitions", 1, "--json"])

    def results(self, workload: str, parameters: dict, output: str) -> list[tuple[dict, Result]]:
        report = json.loads(output)

        def result(way: dict) -> Result:
            values = {**way["runs"][-1], "bytes_to_others": way["bytes_to_others"]}
            if parameters["part"] == "wide":
                moved = report["rows"] * report["row_bytes"]
                values |= {"bytes_per_second": moved / values["seconds"], "bytes_per_cpu_second": moved / values["cpu_seconds"]}
            return Result(values, way["verified"], way["count"], way["checksum"], f"delivery-{way['name']}")

        return [(parameters, result(way)) for way in report["ways"]]


class Skew(Contestant):
    """How many times the mean the most loaded unit gets, counted."""

    product = "Faro"
    needs = {FARO_LAB: "./run build"}
    version_command = (FARO_LAB, "--version")

    def command(self, workload: str, parameters: dict) -> Command:
        flags = ["--rows", parameters["rows"], "--part", parameters["part_of_one_key"], "--units", parameters["units"]]
        return Command([FARO_LAB, "bench", "skew", *flags, "--json"])

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        (units,) = json.loads(output)["units"]
        return Result({"most_rows_times_mean": units["most_times_mean"]}, None)


class RingMemory(Contestant):
    """What an open cluster takes, its rings and all of it, and what `faro plan` says that it takes. Its name says where lanes end."""

    product = "Faro"
    needs = {FARO_LAB: "./run build"}
    version_command = (FARO_LAB, "--version")

    def __init__(self, name: str, label: str, ends: str):
        super().__init__(name, label)
        self.ends = ends

    def command(self, workload: str, parameters: dict) -> Command:
        flags = ["--processes", parameters["processes"], "--workers", parameters["workers"]]
        return Command([FARO_LAB, "bench", "ring-memory", *flags, "--set", f"lane.ends={self.ends}", "--json"])

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        (shape,) = json.loads(output)["shapes"]
        values = {name: shape[name] for name in ("ring_bytes", "taken_bytes", "planned_bytes")}
        return Result({**values, "rings_of_planned": shape["ring_bytes"] / shape["planned_ring_bytes"]}, None)


class Plan(RingMemory):
    """What `faro plan` says of a cluster; it fails where that does not fit on this machine."""

    needs = {FARO: "./run build"}
    version_command = (FARO, "--version")

    def command(self, workload: str, parameters: dict) -> Command:
        flags = ["--nodes", parameters["processes"], "--workers", parameters["workers"], "--transport", "tcp"]
        return Command([FARO, "plan", *flags, "--set", f"lane.ends={self.ends}", "--json"])

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        plan = json.loads(output)
        lane = plan["ring_bytes"] * plan["rings_per_lane"] * parameters["workers"]  # of each worker
        values = {
            "links": plan["cluster"]["links"],
            "frames_to_others": plan["node"]["outgoing_ring_bytes"] / lane,
            "frames_to_own_node": plan["node"]["local_ring_bytes"] / lane,
            "planned_bytes": plan["node"]["open_bytes"],
        }
        return Result(values, None)


LABELS = {f"delivery-{way}": text for way, text in DeliveryWays.ways.items()}
