#!/usr/bin/env python3
"""Tests of conformance.py: what counts as a difference, and that a run is resumed."""
import json
import os
import tempfile
import unittest

import conformance


def run_of(ended=True, netty_requests=0, requests=0, **outcomes):
    return {"outcomes": outcomes, "errors": {}, "ended": ended, "why": "exit code 0", "seconds": 1,
            "counts": {"netty_requests": netty_requests, "requests": requests, "buffers": 0, "bytes": 0}}


class FakeRunner:
    """Gives runs in order, Netty's and Faro's by turns."""

    def __init__(self, *runs):
        self.runs = list(runs)

    def run(self, _listed, _side, _attempt):
        return self.runs.pop(0)


LISTED = conformance.Listed("a.B", "one", 1, set())


def compared(*runs, explained=None, repeats=2):
    return conformance.compare(LISTED, FakeRunner(*runs), explained or {}, repeats)


class Differences(unittest.TestCase):
    def test_the_same_is_none(self):
        result = compared(run_of(a="passed", b="failed", netty_requests=3), run_of(a="passed", b="failed", requests=2))
        self.assertFalse(result["differs"])
        self.assertEqual(result["problems"], [])

    def test_a_test_that_always_fails_over_faro_alone_is_one(self):
        result = compared(*[run_of(a="passed"), run_of(a="failed")] * 3)
        self.assertTrue(result["differs"])
        self.assertIn("failed over Netty 0 times of 3, over Faro 3 times: a", result["problems"])

    def test_a_test_that_fails_over_netty_as_often_is_none(self):
        result = compared(run_of(a="passed"), run_of(a="failed"), run_of(a="failed"), run_of(a="passed"),
                          run_of(a="passed"), run_of(a="passed"))
        self.assertFalse(result["differs"])
        self.assertIn("failed over Netty 1 times of 3, over Faro 1 times: a", result["problems"])

    def test_fewer_tests_are_one(self):
        self.assertTrue(compared(run_of(a="passed", b="passed"), run_of(a="passed"))["differs"])

    def test_tests_that_are_skipped_over_faro_alone_are_one(self):
        self.assertTrue(compared(run_of(a="passed"), run_of(a="skipped"))["differs"])

    def test_a_class_that_never_ends_over_faro_is_one(self):
        self.assertTrue(compared(*[run_of(a="passed"), run_of(ended=False, a="passed")] * 3)["differs"])

    def test_a_class_without_tests_over_netty_is_one(self):
        self.assertTrue(compared(run_of(ended=False), run_of(ended=False))["differs"])

    def test_remote_exchanges_that_none_was_over_faro_are_one(self):
        self.assertTrue(compared(run_of(a="passed", netty_requests=1), run_of(a="passed"))["differs"])

    def test_requests_over_netty_in_a_run_over_faro_are_one(self):
        self.assertTrue(compared(run_of(a="passed"), run_of(a="passed", requests=9, netty_requests=1))["differs"])

    def test_an_explained_one_is_none(self):
        explained = {("B", "fails over Faro: a"): "it looks for Netty's words"}
        result = compared(run_of(a="passed"), run_of(a="failed"), explained=explained)
        self.assertFalse(result["differs"])
        self.assertIn("it looks for Netty's words", result["problems"][0])


class Words(unittest.TestCase):
    def test_what_is_the_same_is_told_with_its_requests(self):
        result = compared(run_of(a="passed", netty_requests=3), run_of(a="passed", requests=2))
        self.assertEqual(conformance.verdict(result), "same, 2 requests")
        self.assertTrue(conformance.line_of(result).endswith("  same, 2 requests"))
        self.assertEqual(conformance.verdict(compared(run_of(a="passed"), run_of(a="passed"))), "same, 0 requests")
        self.assertEqual(conformance.verdict(compared(run_of(a="passed"), run_of(a="passed", requests=1))), "same, 1 request")

    def test_a_class_of_which_no_test_passes_is_not_the_same(self):
        for outcomes in ({"a": "skipped"}, {"a": "failed"}, {"a": "skipped", "b": "failed"}):
            result = compared(run_of(**outcomes), run_of(requests=5, **outcomes))
            self.assertEqual(conformance.verdict(result), "nothing: no test passes")

    def test_a_difference_is_one_whatever_passes(self):
        self.assertEqual(conformance.verdict(compared(run_of(a="passed"), run_of(a="skipped"))), "DIFFERS")

    def test_the_last_line_says_of_which_classes_nothing_is_known_and_which_were_local(self):
        said = conformance.summary([compared(run_of(a="passed", netty_requests=3), run_of(a="passed", requests=2)),
                                    compared(run_of(a="passed"), run_of(a="passed")),
                                    {**compared(run_of(a="skipped"), run_of(a="skipped")), "class": "x.Skipped"}], "2.3.0")
        self.assertEqual(said, "2 classes of Flink 2.3.0: 2 tests pass over Faro as over Netty; 2 subpartitions were requested "
                               "over Faro, by all classes but 1; no test passes of Skipped")


class Files(unittest.TestCase):
    def test_every_list_is_well_formed_and_has_quick_ones_only_if_they_are_few(self):
        for name in os.listdir(conformance.HERE):
            if name.startswith("classes-"):
                listed = conformance.read_list(os.path.join(conformance.HERE, name))
                self.assertGreater(len(listed), 20)
                self.assertLess(len(conformance.chosen(listed, [], True)), 10)
        conformance.read_explained(os.path.join(conformance.HERE, "explained"))

    def test_the_list_of_2_3_has_every_class_that_is_to_be_run(self):
        listed = conformance.read_list(os.path.join(conformance.HERE, "classes-2.3.0"))
        # 6 without a cluster, 2 and 19 in clusters, 6 unaligned, 4 of processes, 23 of which two are among the first.
        self.assertEqual(len(listed), 6 + 2 + 19 + 6 + 4 + 21)

    def test_what_has_passed_with_the_same_build_is_not_run_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results")
            with open(path, "w", encoding="utf-8") as file:
                for name, tested, differs in (("a", "x", False), ("b", "y", False), ("c", "x", True)):
                    file.write(json.dumps({"class": name, "tested": tested, "differs": differs}) + "\n")
            self.assertEqual(list(conformance.read_resumed(path, "x")), ["a"])

    def test_results_of_a_run_that_was_ended_are_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results")
            with open(path, "w", encoding="utf-8") as file:
                file.write("passed\ta\t\nfailed\tb\tan error\n")
            self.assertEqual(conformance.read_results(path), ({"a": "passed", "b": "failed"}, {"b": "an error"}, False))

    def test_counts_of_all_processes_are_added_up(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("1", "2"):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(conformance.struct.pack("=4q", 1, 2, 3, 4))
            self.assertEqual(conformance.read_counts(folder), {"netty_requests": 2, "requests": 4, "buffers": 6, "bytes": 8})


if __name__ == "__main__":
    unittest.main()
