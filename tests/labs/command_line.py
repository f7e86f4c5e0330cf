"""The command line of the tests of the labs: --kvscope PROGRAM, flags of one test, and the words that unittest takes."""
import argparse
import os
import sys
import unittest


def parse(*flags, required=True):
    """(options, other words) of the script that runs. `flags` are options without a value, such as "--update"."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvscope", required=required, type=os.path.abspath)
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    return parser.parse_known_args()


def only(*flags, required=True):
    """The options of a script that takes no other words."""
    options, others = parse(*flags, required=required)
    if others:
        sys.exit(f"{' '.join(others)}: unknown")
    return options


def run_tests(module=None, name="KVSCOPE", others=None, program=None):
    """Sets the variable `name` of a module, by default the script, to the program, and runs the script's tests."""
    if program is None:
        options, others = parse()
        program = options.kvscope
    setattr(module or sys.modules["__main__"], name, program)
    unittest.main(module="__main__", argv=[sys.argv[0], *others])
