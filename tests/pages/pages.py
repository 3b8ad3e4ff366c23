"""Checks the pages of the project and what its sources say of them.

    pages.py [FOLDER]     prints each mistake as file:line: what; exit code 1 if there is one

  - Every relative link of a Markdown page leads to a file or folder that exists, and to an anchor of it.
  - Every page that a source or a script names (native/wire/README.md, DESIGN.md#hc-6) exists, with that anchor.
  - Every source file that a page names (`ring/producer.h`) exists.
  - Every INV-n and HC-n that is cited anywhere is a heading of native/DESIGN.md.
  - No file, or no page, uses a word of words.list, which says what to write instead. Nor does any source below the session
    use a word that is only for those above.
  - No comment of a source begins by leaning on the one above it ("The same …", "As X …", "Of the …"): an editor shows it alone.
  - No line of a public header or of the Java modules is wider than 100 columns.
"""

import re
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

DESIGN = "native/DESIGN.md"
OWN = "tests/pages/"  # whose files are about mistakes
WORDS = Path(__file__).parent / "words.list"
SKIPPED_FOLDERS = {".git", "target", "__pycache__", "corpus"}
# With "": scripts, which have no suffix.
TEXT_SUFFIXES = {".h", ".c", ".cc", ".java", ".md", ".py", ".sh", ".cmake", ".txt", ".def", ".in", ".map", ".xml", ""}

FENCE = re.compile(r"\s*(```|~~~)")
HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
ANCHOR = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\s*\[[^\]]+\]:\s*(\S+)|(?:href|src)=\"([^\"]+)\"")
# Modules that know nothing of numbered nodes; base/ reads the settings of all, lab/ and command/ stand above all.
BELOW_THE_SESSION = re.compile(r"native/(?!(?:base|c|command|include|lab|node|session|shuffle)/).*\.(?:h|cc)")
# What a line of a comment says, and how a comment must not begin. ("As if", "as long as" and the like lean on nothing.)
COMMENT = re.compile(r"\s*(?://[/!]?<?|/\*\*?|\*(?!/))(?:\s+(.*)|$)")
LEANING = re.compile(r"(?:The same|Of|As(?! (?:if|long|many|much|soon) )|Likewise|Ditto)\b")
PUBLIC = re.compile(r"native/include/.*\.h|java/[\w-]+/src/main/.*\.java")
COLUMNS = 100
INLINE_CODE = re.compile(r"`[^`]*`")
CITED = re.compile(r"\b(?:INV|HC)-\d+\b")
NAMED_SOURCE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:h|cc|def|java|py))`")
NAMED_PAGE = re.compile(r"(?<![\w$.{}/<>:+-])((?:[\w-]+/)*[A-Z][A-Za-z]*\.md)(#[\w-]+)?")


@dataclass(frozen=True, order=True)
class Mistake:
    file: str
    line: int
    what: str

    def __str__(self):
        return f"{self.file}:{self.line}: {self.what}"


def slug(heading):
    """The anchor that GitHub makes of a heading."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"<[^>]*>", "", text).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


class Page:
    """A Markdown page: its anchors, and its lines of prose (without code)."""

    def __init__(self, text):
        self.anchors = set()
        self.prose = []  # (line number, text)
        self.sources = []  # (line number, name of a source file)
        times = Counter()
        fenced = False
        for number, line in enumerate(text.splitlines(), 1):
            is_fence = FENCE.match(line) is not None
            fenced ^= is_fence
            if fenced or is_fence:
                continue
            self.anchors.update(ANCHOR.findall(line))
            if heading := HEADING.match(line):
                name = slug(heading.group(2))
                self.anchors.add(f"{name}-{times[name]}" if times[name] else name)
                times[name] += 1
            self.sources.extend((number, source) for source in NAMED_SOURCE.findall(line))
            self.prose.append((number, INLINE_CODE.sub("", line)))

    def links(self):
        for number, line in self.prose:
            for found in LINK.finditer(line):
                yield number, next(part for part in found.groups() if part)


class Project:
    def __init__(self, root):
        self.root = Path(root).resolve()
        self.files = {}  # by path from the root: the text
        self.pages = {}
        for path in sorted(self._text_files(self.root)):
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            name = path.relative_to(self.root).as_posix()
            self.files[name] = text
            if path.suffix == ".md":
                self.pages[name] = Page(text)

    def _text_files(self, folder):
        for path in folder.iterdir():
            if path.is_symlink():
                continue
            if path.is_dir():
                is_built = folder == self.root and path.name.startswith("build")
                is_hidden = path.name.startswith(".") and path.name != ".ci"
                if not (is_built or is_hidden or path.name in SKIPPED_FOLDERS):
                    yield from self._text_files(path)
            elif path.suffix in TEXT_SUFFIXES:
                yield path

    def mistakes(self, words):
        found = (
            self._links(),
            self._named_pages(),
            self._named_sources(),
            self._citations(),
            self._words(words),
            self._leaning_comments(),
            self._wide_lines(),
        )
        return sorted({mistake for kind in found for mistake in kind})

    def _why_not(self, path, anchor):
        """Why a link to that path (from the root) leads nowhere; None if it does not."""
        target = self.root / path
        if not target.exists():
            return f"{path} does not exist"
        if not anchor:
            return None
        if path not in self.pages:
            return f"{path} is no page, and has no anchor #{anchor}"
        return None if anchor in self.pages[path].anchors else f"{path} has no anchor #{anchor}"

    def _lines(self):
        """Of all files but those of OWN: file, line number, text."""
        for name, text in self.files.items():
            if not name.startswith(OWN):
                yield from ((name, line, part) for line, part in enumerate(text.splitlines(), 1))

    def _below_the_session(self):
        return (each for each in self._lines() if BELOW_THE_SESSION.fullmatch(each[0]))

    def _prose(self):
        return ((name, line, part) for name, page in self.pages.items() for line, part in page.prose)

    @staticmethod
    def _places(name, path):
        """Where what a file calls so may be: from the root, from native/, or beside the file or above it."""
        return [Path(place) / path for place in (".", "native", *Path(name).parents)]

    def _links(self):
        for name, page in self.pages.items():
            for line, link in page.links():
                if re.match(r"[a-z][a-z0-9+.-]*:", link):
                    continue  # https:, mailto:
                path, _, anchor = link.partition("#")
                target = (self.root / name).parent / path if path else self.root / name
                try:
                    inside = target.resolve().relative_to(self.root).as_posix()
                except ValueError:
                    yield Mistake(name, line, f"the link {link} leads out of the project")
                    continue
                if why := self._why_not(inside, anchor):
                    yield Mistake(name, line, f"the link {link} leads nowhere: {why}")

    def _named_pages(self):
        prose = ((name, line, LINK.sub("]", part)) for name, line, part in self._prose() if not name.startswith(OWN))
        sources = (each for each in self._lines() if each[0] not in self.pages)
        for name, line, part in chain(prose, sources):
            for path, anchor in NAMED_PAGE.findall(part):
                whys = [self._why_not(place.as_posix(), anchor[1:]) for place in self._places(name, path)]
                if None not in whys:
                    why = next((w for w in whys if "does not exist" not in w), f"{path} does not exist")
                    yield Mistake(name, line, f"{path}{anchor} leads nowhere: {why}")

    def _named_sources(self):
        for name, page in self.pages.items():
            for line, source in page.sources:
                # Without a folder also below the page.
                if any((self.root / place).exists() for place in self._places(name, source)):
                    continue
                beside = Path(name).parent.as_posix()
                below = "" if beside == "." else beside + "/"
                if "/" in source or not any(f.startswith(below) and f.endswith("/" + source) for f in self.files):
                    yield Mistake(name, line, f"{source} does not exist")

    def _citations(self):
        design = self.pages.get(DESIGN)
        known = design.anchors if design else set()
        for name, line, part in self._lines():
            for cited in CITED.findall(part):
                if cited.lower() not in known:
                    yield Mistake(name, line, f"{cited} is no heading of {DESIGN}")

    def _leaning_comments(self):
        goes_on = False  # whether a comment has begun above the line
        for name, line, part in self._lines():
            comment = COMMENT.match(part) if name.endswith((".h", ".c", ".cc", ".java")) else None
            if comment is None or line == 1 or part.lstrip().startswith("/*"):
                goes_on = False
            said = comment.group(1) if comment else None
            if not said:
                continue
            if not goes_on and (begin := LEANING.match(said)):
                yield Mistake(name, line, f'a comment begins "{begin.group()}": say what it is about, it is read alone')
            goes_on = True

    def _wide_lines(self):
        for name, line, part in self._lines():
            if len(part) > COLUMNS and PUBLIC.fullmatch(name):
                yield Mistake(name, line, f"{len(part)} columns: at most {COLUMNS}")

    def _words(self, words):
        for lines, unused in (
            (self._lines(), words["everywhere"]),
            (self._below_the_session(), words["below the session"]),
            (self._prose(), words["pages"]),
        ):
            for name, line, part in lines:
                for word, instead in unused:
                    if found := word.search(part):
                        yield Mistake(name, line, f'"{found.group()}": {instead}')


def read_words(path):
    """The words that the project does not use, and what it says instead: everywhere, in sources of modules below the session,
    and in pages (outside code)."""
    words = {"everywhere": [], "below the session": [], "pages": []}
    section = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if heading := re.fullmatch(r"\[(.+)\]", line):
            section = words.get(heading.group(1))
            continue
        word, separator, instead = line.partition(" => ")
        if not separator or section is None:
            raise SystemExit(f"{path}:{number}: not of the form: word => what to write; below one of {', '.join(words)}, in []")
        section.append((re.compile(word.strip(), re.IGNORECASE), instead.strip()))
    return words


def print_all(mistakes):
    """Returns the exit code: 1 if there are any."""
    for mistake in mistakes:
        print(mistake)
    if mistakes:
        print(f"{len(mistakes)} mistakes (tests/pages/README.md)")
    return 1 if mistakes else 0


def main(arguments):
    root = Path(arguments[0]) if arguments else Path(__file__).parents[2]
    return print_all(Project(root).mistakes(read_words(WORDS)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
