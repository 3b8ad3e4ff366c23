#!/usr/bin/env python3
"""A TaskManager that keeps something of each fault is seen, and the threads of the tasks that it happens to run are not."""
import types
import unittest

import churn
import cluster

COUNTED = {"descriptors": 160, "threads": 65, "mappings": 430, "KiB": 500_000, "links": 4 << 20}


def report(*counts):
    """What is said of a survivor that had these, one after the other."""
    said = churn.Churn(types.SimpleNamespace(netty=False, transport="shm", liveness="default", seed=1), None)
    said.survivor = types.SimpleNamespace(name="taskmanager-1")
    said.job = types.SimpleNamespace(restarts=lambda: len(counts))
    said.survivor_has = [{**COUNTED, **each} for each in counts]
    said.mappings_left = said.survivor_has[-1]["mappings"]
    return said.report()


class ReportTest(unittest.TestCase):
    def test_what_stays_the_same_is_told(self):
        self.assertIn("descriptors 160 to 160", report(*[{}] * 20))

    def test_what_grows_with_each_fault_is_named(self):
        for name, step in (("descriptors", 3), ("threads", 2), ("mappings", 13), ("KiB", 13_000), ("links", 589_952)):
            with self.assertRaisesRegex(cluster.Wrong, f"there are more \\['{name}'\\] in taskmanager-1"):
                report(*({name: COUNTED[name] + step * i} for i in range(20)))

    def test_addresses_that_a_collection_frees_are_not(self):
        said = report(*({"mappings": 430 + 13 * i} for i in range(19)), {"mappings": 430})
        self.assertIn("to 430, KiB", said)

    def test_threads_of_tasks_come_and_go(self):
        self.assertIn("threads 65 to 65", report(*({"threads": 65 + i % 3 * 18} for i in range(20))))

    def test_pools_may_grow_until_they_are_full(self):
        self.assertIn("threads 65 to 65", report(*({"threads": min(65, 40 + 5 * i)} for i in range(20))))

    def test_few_recoveries_are_not_compared(self):
        self.assertIn("too few", report(*[{}] * (churn.WARM_RECOVERIES + 2 * churn.COUNTS - 1)))


if __name__ == "__main__":
    unittest.main()
