"""Counts lines that are neither blank nor comment: of the product, and of the laboratory and the tests.

    lines.py [COMMIT]     of the tree at hand, by folder; with a commit of this repository also its lines, and the difference

The product is native/ without native/lab, jni/ and java/*/src/main; everything else in C++, Java, Python and shell is laboratory and
tests. What stands in files of other kinds (CMake, SQL, pages) is not counted. A docstring of Python is a comment.
"""

import io
import re
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("product", "laboratory and tests")
_PRODUCT = re.compile(r"native/|jni/|java/[^/]+/src/main/")
# Also where the laboratory's commands stood before it had a program of its own: moving them is no difference.
_LABORATORY = re.compile(r"native/lab/|native/command/(bench_|simulate_|soak_|seed_ranges|node_flags|progress_line|standard_bench)")
# Literals come first, so that what looks like a comment inside of them is none.
_C_TOKENS = re.compile(
    r'R"(?P<mark>[^\s()\\]*)\(.*?\)(?P=mark)"|"""(?:\\.|.)*?"""|"(?:\\.|[^"\\\n])*"|' r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|(?P<comment>//[^\n]*|/\*.*?\*/)",
    re.DOTALL,
)
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING}


def language(path: str, text: str) -> str | None:
    """None if its lines are not counted."""
    first = text.split("\n", 1)[0]
    if path.endswith((".cc", ".h", ".c", ".def", ".java")):
        return "c"
    if path.endswith(".py") or re.match(r"#!.*python", first):
        return "python"
    return "shell" if path.endswith(".sh") or re.match(r"#!.*\b(ba)?sh\b", first) else None


def count(kind: str, text: str) -> int:
    """Lines of code."""
    return {"c": _count_c, "python": _count_python, "shell": _count_shell}[kind](text)


def _count_c(text: str) -> int:
    def without(found: re.Match) -> str:
        return "\n" * found[0].count("\n") if found["comment"] else found[0]

    return _filled(_C_TOKENS.sub(without, text))


def _count_shell(text: str) -> int:
    return _filled(re.sub(r"^\s*#.*", "", text, flags=re.MULTILINE))


def _count_python(text: str) -> int:
    lines = set()
    tokens = [one for one in tokenize.generate_tokens(io.StringIO(text).readline) if one.type not in (tokenize.NL, tokenize.COMMENT)]
    for before, one, after in zip([None, *tokens], tokens, [*tokens[1:], None]):
        alone = (before is None or before.type in _NO_CODE) and after is not None and after.type in _NO_CODE
        if one.type not in _NO_CODE and not (one.type == tokenize.STRING and alone):
            lines.update(range(one.start[0], one.end[0] + 1))
    return len(lines)


def _filled(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip())


def part_of(path: str) -> str:
    return PARTS[0] if _PRODUCT.match(path) and not _LABORATORY.match(path) else PARTS[1]


def folder_of(path: str) -> str:
    """By which it is listed: native/session, java/faro, tests/unit."""
    if _LABORATORY.match(path):
        return "native/lab"
    return "/".join(Path(path).parts[:-1][:2]) or "."


def counted(files) -> Counter:
    """By part and folder, of pairs of path and bytes."""
    lines = Counter()
    for path, content in files:
        text = content.decode("utf-8", errors="replace")
        if kind := language(path, text):
            lines[part_of(path), folder_of(path)] += count(kind, text)
    return lines


def at_hand(root: Path):
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0")
    return ((path, (root / path).read_bytes()) for path in listed if (root / path).is_file())


def of_commit(root: Path, commit: str):
    with tarfile.open(fileobj=io.BytesIO(_git(root, "archive", "--format=tar", commit))) as archive:
        for member in archive:
            if member.isfile():
                yield member.name, archive.extractfile(member).read()


def _git(root: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", root, *words], check=True, stdout=subprocess.PIPE).stdout


def table(now: Counter, before: Counter | None = None) -> str:
    rows = []
    for part in PARTS:
        folders = sorted({folder for one, folder in [*now, *(before or ())] if one == part})
        keys = [(part, folder) for folder in folders]
        rows.append(_row(part, sum(now[key] for key in keys), before and sum(before[key] for key in keys)))
        rows += [_row(f"  {folder}", now[key], before and before[key]) for key, folder in zip(keys, folders)]
    return "".join(rows)


def _row(what: str, now: int, before: int | None) -> str:
    return f"{what:<34} {now:>8,}\n" if before is None else f"{what:<34} {before:>8,} -> {now:>8,} {now - before:>+8,}\n"


def main(arguments: list[str]) -> int:
    if len(arguments) > 1 or arguments[:1] == ["--help"]:
        print(__doc__.strip())
        return 0 if arguments[:1] == ["--help"] else 2
    try:
        before = counted(of_commit(ROOT, arguments[0])) if arguments else None
    except subprocess.CalledProcessError:
        print(f"lines.py: no commit '{arguments[0]}' in this repository", file=sys.stderr)  # git has said why
        return 2
    print(table(counted(at_hand(ROOT)), before), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
