#!/usr/bin/env python3
"""Prints what is wrong with JSON documents by a JSON Schema; nothing if all is
right.

    validate_json.py SCHEMA DOCUMENT ...

Exit code 3: there is no jsonschema here (Debian: python3-jsonschema).
"""
import json
import sys

try:
    import jsonschema
except ImportError:
    sys.exit(3)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    validator_class = jsonschema.validators.validator_for(schema)
    validator_class.check_schema(schema)
    validator = validator_class(schema)
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        for error in list(validator.iter_errors(document))[:5]:
            place = "/".join(str(part) for part in error.absolute_path)
            print(f"/{place}: {error.message[:500]}")


main()
