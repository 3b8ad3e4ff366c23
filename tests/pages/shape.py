"""Checks that no class is too large to understand, and that the public API does not grow.

    shape.py [FOLDER]     prints each mistake as file: what; exit code 1 if there is one

  - No class has more than 40 methods or 18 fields, in C++ and in Java. Overloads count each; static fields and types that
    have no methods do not count.
  - The public headers have no more functions, and no more verbs to send a row, than shape.list says.

shape.list also names the classes that are still too large, with their sizes. All its numbers may only become smaller.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

METHODS, FIELDS = 40, 18
LIST = Path(__file__).parent / "shape.list"
FOLDERS = ("native", "jni", "java", "examples")
SKIPPED_FOLDERS = {"build", "target", "test"}
# Public headers that are not about sessions, workers and shuffles: values that these take and return, and the ABI of C.
OTHER_HEADERS = {
    "c.h", "c_handles.h", "cancellation.h", "config.h", "hash.h", "log.h", "metrics.h", "outcome.h", "query.h", "status.h",
    "wait.h",
}
SENDING = re.compile(r"(try_)?(send|broadcast|multicast|claim|write|put|push)(_\w+)?")

NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|\"{3}.*?\"{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.DOTALL
)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
TOKEN = re.compile(r"\d[\w.']*|\w+|::|\S")
CLOSING = {"(": ")", "[": "]", "{": "}"}
TYPES = ("class", "struct", "union", "interface", "record", "enum", "namespace")


@dataclass
class Scope:
    """A namespace or a type, and what is declared directly in it."""

    kind: str
    name: str
    is_public: bool = True  # as seen from outside of all that encloses it
    methods: list = field(default_factory=list)  # (name, whether it is public)
    fields: int = 0
    inner: list = field(default_factory=list)


class Source:
    """Reads the declarations of a file. It is no compiler: it looks at brackets, and at what stands before them."""

    def __init__(self, text, is_java):
        text = re.sub(r"(?<=\d)'(?=\d)", "", text)
        text = NOT_CODE.sub(lambda found: '""' if found.group().endswith('"') else " ", text)
        if not is_java:
            text = PREPROCESSOR.sub("", text)
        self.tokens = TOKEN.findall(text)
        self.is_java = is_java
        self.at = 0
        self.root = Scope("namespace", "")
        self._read_body(self.root)

    def types(self, scope=None):
        for inner in (scope or self.root).inner:
            if inner.kind != "namespace":
                yield inner
            yield from self.types(inner)

    def _next(self):
        token = self.tokens[self.at] if self.at < len(self.tokens) else ""
        self.at += 1
        return token

    def _skip_to(self, closing):
        """Behind the bracket that closes the one just read."""
        while token := self._next():
            if token == closing:
                return
            if token in CLOSING:
                self._skip_to(CLOSING[token])

    def _read_body(self, scope):
        is_public = self.is_java or scope.kind != "class"
        head = []
        if self.is_java and scope.kind == "enum":
            self._skip_constants()
        while token := self._next():
            if token == "}":
                return
            if token in "([":
                begin = self.at - 1
                self._skip_to(CLOSING[token])
                head += self.tokens[begin : self.at]
            elif token == ":" and head[-1:] in (["public"], ["protected"], ["private"]):
                is_public = head[-1] == "public"
                head = []
            elif token == ";":
                self._declare(scope, head, is_public)
                head = []
            elif token == "{":
                if self._opens_expression(head):
                    self._skip_to("}")
                    head = [] if top_level(head)[-1:] == ["requires"] else [*head, "{}"]  # what it constrains follows
                elif (kind := self._type_in(head)) is not None:
                    self._read_type(scope, kind, head, is_public)
                    head = [] if self.is_java or kind == "namespace" else ["type"]  # `struct {…} a;` declares a
                else:
                    self._skip_to("}")
                    self._declare(scope, head, is_public)
                    head = []
            else:
                head.append(token)
        if head == ["type"]:
            head = []

    def _skip_constants(self):
        while token := self._next():
            if token in CLOSING:
                self._skip_to(CLOSING[token])
            elif token == ";":
                return
            elif token == "}":
                self.at -= 1
                return

    def _opens_expression(self, head):
        """Whether a brace behind this is not a body: that of a requires, an initial value, or a member's in a constructor."""
        plain = top_level(head)
        if plain[-1:] == ["requires"]:
            return True
        if self._type_in(head) is not None:
            return False
        if "=" in plain and ("()" not in plain or plain.index("=") < plain.index("()")):
            return "operator" not in plain
        if "()" not in plain:
            return not self.is_java and plain[:1] != ["extern"] and plain != []
        behind = plain[len(plain) - plain[::-1].index("()") :] if not self.is_java else []
        begins_members = ":" in plain[plain.index("()") :]
        return begins_members and bool(behind or plain[-1:] == [","]) and re.fullmatch(r"\w+|>", plain[-1]) is not None

    def _type_in(self, head):
        plain = top_level(head)
        if plain[:2] == ["extern", '""'] or plain[:1] == ["extern"] and len(plain) <= 3:
            return "namespace"
        if "=" in plain:
            return None
        before = plain[: plain.index("()")] if "()" in plain and "record" not in plain else plain
        kinds = [token for token in before if token in TYPES]
        return None if not kinds or "()" in plain and "record" not in plain and "interface" not in kinds else kinds[0]

    def _read_type(self, scope, kind, head, is_public):
        plain = top_level(head)
        names = []
        for token in plain[plain.index(kind) + 1 :] if kind in plain else []:  # not in `extern "C"`
            if token in (":", "extends", "implements", "permits", "()"):
                break
            if re.fullmatch(r"\w+", token) and token not in TYPES and token != "final":
                names.append(token)
        if kind == "namespace":
            name = "::".join(names)
            visible = scope.is_public and name != "" and "detail" not in names
        else:
            name = names[-1] if names else ""
            visible = scope.is_public and (is_public or scope.kind == "namespace")
        inner = Scope(kind, name, visible)
        scope.inner.append(inner)
        if kind == "enum" and not self.is_java:
            return self._skip_to("}")
        self._read_body(inner)

    def _declare(self, scope, head, is_public):
        plain = top_level(head)
        if not plain or plain[0] in ("using", "typedef", "friend", "static_assert", "package", "import"):
            return
        if plain == ["type"] or plain == ["static"] or plain[0] in TYPES and len(plain) == 2 or "friend" in plain:
            return
        value = plain.index("=") if "=" in plain else len(plain)
        is_function = "operator" in plain or "()" in plain[:value]
        if is_function and "operator" not in plain:
            call = head_of_call(head)
            is_function = call[1:2] != ["*"]  # a pointer to a function is a field
        if is_function:
            scope.methods.append((name_of_function(plain), is_public))
        elif scope.kind not in ("namespace", "interface") and "static" not in plain[:value]:
            scope.fields += 1 + plain.count(",")


def top_level(head):
    """The tokens of a declaration without annotations and attributes, and what is inside of its brackets and <>."""
    plain = []
    at = 0
    while at < len(head):
        token = head[at]
        if token in ("(", "["):
            end = closing_of(head, at)
            if token == "[":
                pass  # of an attribute or an array
            elif plain[-1:] == ["requires"]:
                pass  # what it requires stands behind it
            elif plain[-1:] in (["alignas"], ["noexcept"], ["explicit"], ["decltype"], ["__attribute__"]):
                plain.pop()
            else:
                plain.append("()")
            at = end
        elif token == "@" and head[at + 1 : at + 2] != ["interface"]:
            at += 1
            while head[at + 1 : at + 2] == ["."]:
                at += 2
            if head[at + 1 : at + 2] == ["("]:
                at = closing_of(head, at + 1)
        elif token == "<" and plain[-1:] != ["operator"] and "=" not in plain and angle_end(head, at):
            at = angle_end(head, at)
            if plain[-1:] == ["template"]:
                plain.pop()
        else:
            plain.append(token)
        at += 1
    return plain


def closing_of(head, at):
    depth = 0
    for i in range(at, len(head)):
        depth += (head[i] in "([") - (head[i] in ")]")
        if depth == 0:
            return i
    return len(head) - 1


def angle_end(head, at):
    """The > that closes this <; 0: there is none."""
    depth = 0
    i = at
    while i < len(head):
        if head[i] in ("(", "["):
            i = closing_of(head, i)
        depth += (head[i] == "<") - (head[i] == ">")
        if depth == 0:
            return i
        i += 1
    return 0


def head_of_call(head):
    """From the first bracket that stands behind a name on."""
    for i, token in enumerate(head):
        if token == "(" and i > 0 and head[i - 1] not in ("alignas", "noexcept", "explicit", "decltype", "__attribute__"):
            return head[i:]
    return []


def name_of_function(plain):
    """As far as it takes to tell: "" for an operator, "~X" for a destructor, "X::f" for what was declared elsewhere."""
    if "operator" in plain:
        return ""
    at = plain.index("()")
    name = plain[at - 1] if at > 0 else ""
    before = plain[at - 2] if at > 1 else ""
    return before + name if before in ("~", "::") else name


@dataclass(frozen=True)
class Limits:
    """What shape.list says: sizes of classes that are too large, and of the public API."""

    classes: dict  # (file, name) -> (methods, fields)
    functions: int
    verbs_to_send: int


def read_limits(path):
    classes, numbers = {}, {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split("#")[0].split()
        if len(words) == 4:
            classes[words[0], words[1]] = (int(words[2]), int(words[3]))
        elif len(words) == 2:
            numbers[words[0]] = int(words[1])
        elif words:
            raise SystemExit(f"{path}:{number}: neither FILE CLASS METHODS FIELDS nor NAME NUMBER")
    return Limits(classes, numbers["public_functions"], numbers["verbs_to_send"])


def sources(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root)
            if path.suffix in (".h", ".cc", ".java") and not SKIPPED_FOLDERS & set(name.parts):
                yield name.as_posix(), Source(path.read_text(encoding="utf-8"), path.suffix == ".java")


def public_functions(source):
    """Of what users see, overloads each; without constructors, destructors, operators."""
    scopes = [source.root]
    while scopes:
        scope = scopes.pop()
        scopes += [inner for inner in scope.inner if inner.is_public]
        for name, is_public in scope.methods:
            if is_public and scope.name != "" and name not in ("", scope.name) and name[0] not in "~:":
                yield name


def mistakes(root, limits):
    left = dict(limits.classes)
    functions = []
    for name, source in sources(root):
        if name.startswith("native/include/faro/") and Path(name).name not in OTHER_HEADERS:
            functions += public_functions(source)
        for scope in source.types():
            size = (len(scope.methods), scope.fields)
            known = left.pop((name, scope.name), None)
            is_large = size[0] > 0 and (size[0] > METHODS or size[1] > FIELDS)
            if is_large and known is None:
                yield f"{name}: {scope.name} has {size[0]} methods and {size[1]} fields: at most {METHODS} and {FIELDS}"
            elif is_large and (size[0] > known[0] or size[1] > known[1]):
                yield f"{name}: {scope.name} has {size[0]} methods and {size[1]} fields: it had {known[0]} and {known[1]}"
            elif known is not None and not is_large:
                yield f"{name}: {scope.name} is small enough now: remove it from shape.list"
            elif known is not None and size != known:
                yield f"{name}: {scope.name} is smaller now: write {size[0]} {size[1]} into shape.list"
    for name, scope in left:
        yield f"{name}: {scope} is gone: remove it from shape.list"
    counted = {
        "public_functions": (len(functions), limits.functions),
        "verbs_to_send": (len({name for name in functions if SENDING.fullmatch(name)}), limits.verbs_to_send),
    }
    for what, (count, limit) in counted.items():
        if count > limit:
            yield f"native/include/faro: {count} {what}: at most {limit}"
        elif count < limit:
            yield f"native/include/faro: only {count} {what} now: write that into shape.list"


def main(arguments):
    root = Path(arguments[0]) if arguments else Path(__file__).parents[2]
    found = list(mistakes(root, read_limits(LIST)))
    for mistake in found:
        print(mistake)
    if found:
        print(f"{len(found)} mistakes (tests/pages/README.md)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
