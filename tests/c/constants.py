#!/usr/bin/env python3
"""constants.py <c.h>: generators of bindings, which do not preprocess, see every constant of the header.

An enum without a name becomes one whose name changes with the next that is added; a macro that is made of other macros becomes nothing.
"""
import re
import sys

header = re.sub(r"/\*.*?\*/", "", open(sys.argv[1], encoding="utf-8").read(), flags=re.S)
header = re.sub(r" *\\\n *", " ", header)
macros = dict(re.findall(r"^#define (FARO_\w+) +(\S.*?) *$", header, flags=re.M))
wrong = [f"an enum without a name: {text.split(',')[0].strip()}" for text in re.findall(r"\benum\s*\{([^}]*)", header)]
wrong += [f"{name} is {value}" for name, value in macros.items() if not re.fullmatch(r"[-+()0-9xLU ]+", value)]
values = {name: eval(re.sub("[LU]", "", value)) for name, value in macros.items() if f"{name} is {value}" not in wrong}
expected = {"FARO_WAIT_NONE": -(2**63), "FARO_WAIT_FOREVER": 2**63 - 1}
wrong += [f"{name} is no {value}" for name, value in expected.items() if values.get(name) != value]
if "FARO_ABI_VERSION" not in macros:
    wrong.append("there is no FARO_ABI_VERSION: is this faro/c.h?")
sys.exit("\n".join(wrong) or None)
