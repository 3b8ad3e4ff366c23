#!/usr/bin/env python3
"""verified.py FILE...: each is what `faro bench two-stage --json` says, and every result in it is verified. Prints them."""
import json
import sys

for file in sys.argv[1:]:
    with open(file) as opened:
        results = [(contest, result) for contest in json.load(opened)["contests"] for result in contest["results"]]
    if not results or not all(result["verified"] for _, result in results):
        sys.exit(f"{file}: not verified")
    for _, result in results:
        transports = sorted({link["transport"] for node in result["nodes"] for link in node["links"]})
        print(f"{file.rsplit('/', 1)[-1]}: verified, over {' '.join(transports)}")
