"""What pages.py finds in made-up projects, and what it does not complain about."""

import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))

from pages import WORDS, Project, read_words, slug

DESIGN = "# The design\n\n#### INV-1\nRows arrive.\n\n#### HC-6\nThe right to send.\n"


class PagesTest(unittest.TestCase):
    def mistakes(self, files, words=""):
        with TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in {"native/DESIGN.md": DESIGN, **files}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            (root / "words").write_text(words)
            project = Project(root)
            return [str(mistake) for mistake in project.mistakes(read_words(root / "words"))]

    def assert_mistake(self, expected, files, words=""):
        self.assertEqual([expected], self.mistakes(files, words))

    def test_good_pages_have_no_mistake(self):
        files = {
            "README.md": "# A `b_c`, *d*\n[a](native/DESIGN.md#hc-6) [b](native) [c](#a-b_c-d) [d](https://x.org/y)\n",
            "native/ring/ring.h": "// native/DESIGN.md#hc-6, DESIGN.md HC-6, INV-1, README.md\n",
            "native/ring/README.md": '<a id="x"></a>\n[up](../DESIGN.md) [x](#x) `[no](link)`\n```\n[no](link)\n# no\n```\n',
            "build/release/README.md": "[built](nowhere.md)\n",
        }
        self.assertEqual([], self.mistakes(files))

    def test_a_link_to_a_file_that_is_not_there(self):
        expected = "docs/a.md:2: the link b.md leads nowhere: docs/b.md does not exist"
        self.assert_mistake(expected, {"docs/a.md": "\n[b](b.md)\n"})

    def test_a_link_to_an_anchor_that_is_not_there(self):
        expected = "a.md:1: the link native/DESIGN.md#hc-7 leads nowhere: native/DESIGN.md has no anchor #hc-7"
        self.assert_mistake(expected, {"a.md": "[b](native/DESIGN.md#hc-7)\n"})
        self.assert_mistake("a.md:1: the link #b leads nowhere: a.md has no anchor #b", {"a.md": "[b](#b)\n"})

    def test_a_picture_that_is_not_there(self):
        self.assert_mistake("a.md:1: the link p.svg leads nowhere: p.svg does not exist", {"a.md": "![p](p.svg)\n"})

    def test_a_link_out_of_the_project(self):
        self.assert_mistake("a.md:1: the link ../b.md leads out of the project", {"a.md": "[b](../b.md)\n"})

    def test_a_heading_in_code_is_no_anchor(self):
        expected = "a.md:4: the link #b leads nowhere: a.md has no anchor #b"
        self.assert_mistake(expected, {"a.md": "```\n# b\n```\n[b](#b)\n"})

    def test_a_citation_of_a_rule_that_is_not_there(self):
        self.assert_mistake("native/a.h:1: HC-7 is no heading of native/DESIGN.md", {"native/a.h": "// (HC-7)\n"})
        self.assert_mistake("a.md:1: INV-2 is no heading of native/DESIGN.md", {"a.md": "Rule INV-2.\n"})

    def test_a_source_that_names_a_page_that_is_not_there(self):
        expected = "native/ring/a.h:1: wire/PAGE.md leads nowhere: wire/PAGE.md does not exist"
        self.assert_mistake(expected, {"native/ring/a.h": "// wire/PAGE.md has the bytes\n"})

    def test_a_source_that_names_an_anchor_that_is_not_there(self):
        expected = "a.h:1: native/DESIGN.md#hc-7 leads nowhere: native/DESIGN.md has no anchor #hc-7"
        self.assert_mistake(expected, {"a.h": "// native/DESIGN.md#hc-7\n"})

    def test_a_page_that_names_a_source_that_is_not_there(self):
        files = {"native/ring/ring.h": "", "native/README.md": "`ring/ring.h` `ring.h` `native/ring/ring.h`\n`ring/rng.h`\n"}
        self.assert_mistake("native/README.md:2: ring/rng.h does not exist", files)

    def test_a_word_that_is_not_used_here(self):
        words = "# a comment\n[everywhere]\n\\bwhilst\\b => while\n"
        self.assert_mistake('a.cc:2: "Whilst": while', {"a.cc": "\n// Whilst it waits\n// meanwhilst\n"}, words)

    def test_a_word_that_is_not_used_in_pages(self):
        files = {"a.md": "whilst\n`whilst`\n```\nwhilst\n```\n", "a.cc": "// whilst\n"}
        self.assert_mistake('a.md:1: "whilst": while', files, "[pages]\nwhilst => while\n")

    def test_a_word_that_is_not_used_below_the_session(self):
        words = "[below the session]\n\\bnodes\\b => ask the layer above\n"
        files = {
            f"native/{folder}/a.cc": "nodes\n"
            for folder in ("base", "command", "lab/bench", "links", "node", "session", "transport/tcp")
        }
        expected = [f'native/{folder}/a.cc:1: "nodes": ask the layer above' for folder in ("links", "transport/tcp")]
        self.assertEqual(expected, self.mistakes({**files, "native/links/README.md": "nodes\n"}, words))

    def test_a_comment_that_leans_on_the_one_above(self):
        for begin, said in (
            ("The same", "The same of a node."),
            ("As", "As run."),
            ("Of", "Of the node."),
            ("Likewise", "Likewise."),
        ):
            expected = f'a comment begins "{begin}": say what it is about, it is read alone'
            self.assert_mistake(f"a.h:2: {expected}", {"a.h": f"int a;\n/// {said}\nint b;\n"})
            self.assert_mistake(f"a.cc:1: {expected}", {"a.cc": f"  // {said}\n"})
            self.assert_mistake(f"a.c:1: {expected}", {"a.c": f"/* {said} */\n"})
            self.assert_mistake(f"A.java:2: {expected}", {"A.java": f"/**\n * {said}\n */\n"})
            self.assert_mistake(f"A.java:3: {expected}", {"A.java": f"// End.\n}}\n/** {said} */\n"})
            self.assert_mistake(f"A.java:2: {expected}", {"A.java": f"/* End. */\n/** {said} */\n"})

    def test_a_comment_that_stands_alone(self):
        files = {
            "a.h": "/// Frees it.\n/// The same holds for b.\n/// As long as it lives\nint a;\n// As if it were.\nint b;\n",
            "A.java": "/**\n * Frees it.\n *\n * Of the two, the first.\n */\nint x; // Of a.\n",
            "a.md": "The same.\n",
            "a.py": "# As above\n",
        }
        self.assertEqual([], self.mistakes(files))

    def test_a_line_that_is_too_wide(self):
        for name in ("native/include/faro/a.h", "java/faro/src/main/java/A.java"):
            self.assert_mistake(f"{name}:2: 101 columns: at most 100", {name: "\n" + "x" * 101 + "\n" + "…" * 100 + "\n"})
        self.assertEqual([], self.mistakes({"native/base/a.h": "x" * 101, "java/faro/src/test/java/A.java": "x" * 101}))

    def test_headings_that_are_the_same_are_counted(self):
        self.assertEqual([], self.mistakes({"a.md": "# b\n# b\n[1](#b) [2](#b-1)\n"}))
        self.assertEqual(1, len(self.mistakes({"a.md": "# b\n# b\n[3](#b-2)\n"})))

    def test_anchors_are_those_of_github(self):
        self.assertEqual("one-rows-way", slug("One row's way"))
        self.assertEqual("who-may-say-what", slug("*Who* may say `what`"))
        self.assertEqual("run-it--now", slug("Run it — now"))

    def test_the_words_of_the_project_can_be_read(self):
        self.assertTrue(all(read_words(WORDS).values()))


if __name__ == "__main__":
    unittest.main()
