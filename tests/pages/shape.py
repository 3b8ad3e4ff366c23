"""Checks that no class is too large to understand, and that the public API does not grow.

    shape.py [FOLDER]     prints each mistake as file: what; exit code 1 if there is one

  - No class has more than 40 methods or 18 fields, in C++ and in Java. Overloads count each; static fields, types that have no
    methods, records of Java, and what Ctags does not see (`~X() override`) do not count.
  - The public headers have exactly as many functions, and verbs to send a row, as shape.list says, which may only become fewer.

Universal Ctags reads the sources.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

from pages import print_all

METHODS, FIELDS = 40, 18
LIST = Path(__file__).parent / "shape.list"
FOLDERS = ("native", "jni", "java", "examples")
SKIPPED_FOLDERS = {"build", "target", "test"}
HEADERS = "native/include/faro/"
# Public headers that are not about sessions, workers and shuffles: values that these take and return, and the ABI of C.
OTHER_HEADERS = {
    "c.h", "cancellation.h", "config.h", "hash.h", "log.h", "metrics.h", "outcome.h", "query.h", "status.h", "wait.h",
}
# What is counted by itself, by header.
APART = {
    "endpoint.h": "channel_functions", "nodes.h": "node_functions", "aggregate.h": "operator_functions",
    "columns.h": "column_functions", "join.h": "operator_functions",
}  # fmt: skip
SENDING = re.compile(r"(try_)?(send|broadcast|multicast|claim|write|put|push)(_\w+)?")
TYPES = ("class", "struct", "union", "interface", "enum")
CTAGS = (
    "ctags", "-R", "--languages=C++,Java", "--langmap=C++:.h.cc", "--kinds-C++=+p", "--fields=+aenK",
    "--fields-C++=+{properties}", "--output-format=json", "-f", "-", ".",
)  # fmt: skip


class Type:
    """A class, struct or interface, and what is declared directly in it."""

    def __init__(self, tag, is_public):
        self.tag, self.name, self.is_public = tag, tag["name"], is_public
        self.methods = []  # tags
        self.fields = 0


class Sources:
    """The types and functions of all sources below a folder."""

    def __init__(self, root):
        with TemporaryDirectory() as copy:
            for path in self._files(root):
                to = copy / path.relative_to(root)
                to.parent.mkdir(parents=True, exist_ok=True)
                # Ctags loses a field behind `alignas`.
                to.write_text(re.sub(r"alignas\([^)]*\)", "", path.read_text(encoding="utf-8")))
            printed = subprocess.run(CTAGS, cwd=copy, check=True, capture_output=True, text=True).stdout
        self.types = defaultdict(dict)  # file -> qualified name -> Type
        self.functions = defaultdict(list)  # file -> tags of functions that belong to no type
        tags = [json.loads(line) for line in printed.splitlines()]
        for tag in sorted(tags, key=lambda tag: (tag["kind"] not in TYPES, len(tag.get("scope", "")))):
            self._add(tag, tag["path"].removeprefix("./"))

    @staticmethod
    def _files(root):
        for folder in FOLDERS:
            for path in sorted((root / folder).rglob("*")):
                if path.suffix in (".h", ".cc", ".java") and not SKIPPED_FOLDERS & set(path.relative_to(root).parts):
                    yield path

    def _add(self, tag, file):
        types = self.types[file]
        scope = tag.get("scope", "")
        owner = types.get(scope)
        if tag["name"].startswith("__anon") and tag["kind"] not in TYPES:
            return  # a lambda
        is_static = "static" in tag.get("properties", "") or re.search(rf"\bstatic\b.*\b{re.escape(tag['name'])}\b", tag["pattern"])
        match tag["kind"]:
            case kind if kind in TYPES:
                separator = "." if file.endswith(".java") else "::"
                is_public = "detail" not in scope and (owner is None or owner.is_public and tag.get("access") == "public")
                types[scope + separator + tag["name"] if scope else tag["name"]] = Type(tag, is_public)
            case "prototype" | "function" | "method" if owner is None:
                self.functions[file].append(tag)
            case "prototype" | "function" | "method" if tag["line"] <= owner.tag["end"]:  # else its body alone
                owner.methods.append(tag)
            case "member" | "field" if owner is not None and owner.tag["kind"] != "interface" and not is_static:
                owner.fields += 1

    def public_functions(self, file):
        """Their names, overloads each; without constructors, destructors, operators."""
        for each in self.types[file].values():
            for tag in each.methods if each.is_public else ():
                if tag.get("access") == "public" and re.fullmatch(r"(?!operator\b)\w+", tag["name"]) and tag["name"] != each.name:
                    yield tag["name"]
        for tag in self.functions[file]:
            if tag.get("scopeKind") == "namespace" and not re.search("detail|__anon", tag["scope"]):
                yield tag["name"]


def read_limits(path):
    lines = (line.split("#")[0].split() for line in path.read_text(encoding="utf-8").splitlines())
    return {words[0]: int(words[1]) for words in lines if words}


def mistakes(root, limits):
    sources = Sources(root)
    functions = []
    apart = dict.fromkeys(APART.values(), 0)
    for file in sorted(sources.types):
        if file.startswith(HEADERS) and Path(file).name not in OTHER_HEADERS:
            found = list(sources.public_functions(file))
            if Path(file).name in APART:
                apart[APART[Path(file).name]] += len(found)
            else:
                functions.extend(found)
        for each in sources.types[file].values():
            if each.methods and (len(each.methods) > METHODS or each.fields > FIELDS):
                sizes = f"{len(each.methods)} methods and {each.fields} fields"
                yield f"{file}: {each.name} has {sizes}: at most {METHODS} and {FIELDS}"
    verbs = {name for name in functions if SENDING.fullmatch(name)}
    counts = {"public_functions": len(functions), "verbs_to_send": len(verbs), **apart}
    for what, count in counts.items():
        if count > limits[what]:
            yield f"native/include/faro: {count} {what}: at most {limits[what]}"
        elif count < limits[what]:
            yield f"native/include/faro: only {count} {what} now: write that into shape.list"


def main(arguments):
    root = Path(arguments[0]) if arguments else Path(__file__).parents[2]
    return print_all(list(mistakes(root, read_limits(LIST))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
