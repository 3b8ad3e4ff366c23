"""Tests of lines.py."""

import unittest

import lines


class Lines(unittest.TestCase):
    def expect(self, code: int, path: str, text: str):
        self.assertEqual(lines.count(lines.language(path, text), text), code, text)

    def test_of_comments_and_blanks_are_no_code(self):
        self.expect(2, "a.cc", "// one\n\n  int a;  // two\n/* three\n   four */\n/* five */ int b;\n")
        self.expect(1, "A.java", "/** one\n * two\n */\nint a; /* three\n four */\n")
        self.expect(1, "a.sh", "#!/bin/bash\n# one\n\n  # two\necho a # three\n")
        self.expect(2, "run", "#!/usr/bin/env bash\nset -e\necho a\n")
        self.expect(2, "a.py", '#!/usr/bin/env python3\n"""One.\n\nTwo."""\n# three\na = 1  # four\n\nb = 2\n')

    def test_within_a_text_are_code(self):
        self.expect(3, "a.cc", 'auto a = "/*";\nauto b = "// \\" /*";\nint c;\n')
        self.expect(3, "a.cc", 'auto a = R"(\n// no comment\n)";\n')
        self.expect(3, "A.java", 'String a = """\n  // no comment\n  """;\n')
        self.expect(3, "a.cc", "char a = '\"'; /* one\ntwo */ char b = '\\'';\nint c = 1'000'000;  // '\n")
        self.expect(2, "a.py", 'a = """one\n# two"""\n')

    def test_of_python_that_document_are_no_code(self):
        self.expect(4, "a.py", 'class A:\n    """One.\n\n    Two."""\n\n    b = 1\n\n    def c(self):\n        """Three."""\n        return "d"\n')

    def test_of_other_kinds_are_not_counted(self):
        for path, text in (("CMakeLists.txt", "project(a)\n"), ("a.md", "a\n"), ("corpus/b", "a\n")):
            self.assertIsNone(lines.language(path, text))

    def test_are_of_the_product_or_not(self):
        product = ["native/ring/a.h", "native/command/main.cc", "jni/a.cc", "java/faro/src/main/java/A.java"]
        others = [
            "native/lab/bench/a.cc", "native/command/bench_full.cc", "java/faro/src/test/java/A.java",
            "java/lab/bench/src/main/java/A.java", "examples/sql/src/main/java/A.java", "tests/unit/a.cc", "run",
        ]  # fmt: skip
        self.assertEqual([lines.part_of(path) for path in product], ["product"] * len(product))
        self.assertEqual([lines.part_of(path) for path in others], ["laboratory and tests"] * len(others))

    def test_of_a_commit_that_is_none_are_refused(self):
        self.assertEqual(lines.main(["no-such-commit"]), 2)

    def test_are_summed_by_part_and_folder_and_compared(self):
        now = lines.counted([("native/ring/a.h", b"int a;\n"), ("native/ring/b.h", b"int b;\n"), ("tests/unit/c/d.cc", b"int d;\n")])
        before = lines.counted([("native/ring/a.h", b"int a;\n"), ("jni/e.cc", b"int e;\nint f;\n")])
        rows = [line.split() for line in lines.table(now, before).splitlines()]
        self.assertIn(["product", "3", "->", "2", "-1"], rows)
        self.assertIn(["native/ring", "1", "->", "2", "+1"], rows)
        self.assertIn(["jni", "2", "->", "0", "-2"], rows)
        self.assertIn(["tests/unit", "0", "->", "1", "+1"], rows)


if __name__ == "__main__":
    unittest.main()
