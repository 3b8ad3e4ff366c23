#!/usr/bin/env python3
"""What SumsJob has to give is worked out rightly, and a record that is lost, comes twice or elsewhere is seen."""
import collections
import unittest

import cluster


def lines_of(numbers):
    """What the job gives for these, a line each."""
    seen = [collections.Counter(), collections.Counter()]
    lines = []
    for number in numbers:
        before = []
        for counter, keys in zip(seen, (cluster.FIRST_KEYS, cluster.SECOND_KEYS)):
            before.append(counter[number % keys])
            counter[number % keys] += 1
        lines.append([number % cluster.LAST_KEYS, 1, number, *before])
    return lines


class DifferenceTest(unittest.TestCase):
    def test_there_is_none_in_what_the_job_gives(self):
        for records in (0, 1, 50, 101, 4321):
            self.assertIsNone(cluster.difference(records, lines_of(range(records))))
            self.assertIsNone(cluster.difference(records, lines_of(reversed(range(records)))))

    def test_a_record_that_is_lost_or_comes_twice_is_one(self):
        numbers = list(range(1000))
        self.assertIn("sums are", cluster.difference(1000, lines_of(numbers[:-1])))
        self.assertIn("sums are", cluster.difference(1000, lines_of(numbers + [7])))

    def test_a_record_in_the_place_of_another_is_one(self):
        lines = lines_of(range(1000))
        lines[3][2] += 1
        lines[4][2] -= 1
        self.assertIn("sums of 3", cluster.difference(1000, lines))

    def test_state_that_an_exchange_has_lost_is_one(self):
        lines = lines_of(range(1000))
        lines[999][4] = 0
        self.assertIn("sums are", cluster.difference(1000, lines))


class TaskManagerTest(unittest.TestCase):
    def test_it_is_known_by_its_name_and_its_port(self):
        one = cluster.TaskManager(1, None)
        self.assertTrue(one.is_named_in("'127.0.0.1:20001 [ taskmanager-1 ] '"))
        self.assertTrue(one.is_named_in("connection to /127.0.0.1:20001)"))
        self.assertFalse(one.is_named_in("taskmanager-11 at localhost:20011"))


class Heap(unittest.TestCase):
    def test_objects_are_counted_by_the_whole_name_of_their_class(self):
        printed = """ num     #instances         #bytes  class name (module)
-------------------------------------------------------
   1:          7          100  [Lio.faro.flink.Link;
   2:          3           60  io.faro.flink.Link
   3:          9           90  io.faro.flink.Links (java.base@17)
"""
        self.assertEqual(cluster.objects(printed, "io.faro.flink.Link", "io.faro.flink.Links", "a.B"),
                         {"io.faro.flink.Link": 3, "io.faro.flink.Links": 9, "a.B": 0})


if __name__ == "__main__":
    unittest.main()
