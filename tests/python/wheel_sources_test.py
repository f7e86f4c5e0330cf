"""A wheel is compiled from fewer sources than the programs, and for fewer instruction sets. Both differences are checked here in the
libraries of the programs, in seconds: wheel_test.py makes a wheel, which takes minutes.

CMake states in KVSCOPE_PROGRAMS which sources a wheel is made without, separated by colons.
"""
import collections
import os
import pathlib
import re
import subprocess

import pytest

from kvscope import _core

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(_core.__file__).resolve().parents[3]
COMPILER = os.environ.get("CXX", "c++")
SETS = ("avx2", "avx512")  # of kvscope_each_instruction_set(): a wheel has one of them or none

Symbols = collections.namedtuple("Symbols", "defined undefined")


def run(*command, text=None):
    return subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True, check=True).stdout


# --- sources that a wheel is made without -----------------------------------------------------------------------------

def symbols_of(path):
    """{object: Symbols} of an archive or an object."""
    found = collections.defaultdict(lambda: Symbols(set(), set()))
    for line in run("nm", "-A", "-P", path).splitlines():
        place, name, kind = re.match(r"(.*?): (\S+) (\S)", line).groups()
        member = re.search(r"\[(.*)\]$", place)
        symbols = found[member[1] if member else pathlib.Path(place).name]
        (symbols.undefined if kind in "Uwv" else symbols.defined).add(name)
    return dict(found)


def needed(kept, left_out):
    """[(symbol, object that uses it, object that defines it)] of symbols that the objects `kept` do not have without `left_out`."""
    have = set().union(*(symbols.defined for symbols in kept.values()))
    owner = {name: place for place, symbols in left_out.items() for name in symbols.defined - have}
    return sorted((name, place, owner[name]) for place, symbols in kept.items() for name in symbols.undefined & owner.keys())


def archive_of(source):
    """The library of a source: that of the nearest folder above it that makes one."""
    for folder in source.relative_to(ROOT).parents:
        for archive in (BUILD / folder).glob("libkvscope_*.a"):
            return archive
    raise AssertionError(f"no library in {BUILD} is made from {source}")


def test_no_source_of_a_wheel_needs_one_that_it_is_made_without():
    programs = [pathlib.Path(path) for path in os.environ["KVSCOPE_PROGRAMS"].split(":")]
    assert len(programs) > 5, programs
    kept = {}
    for archive in [*(BUILD / "core").rglob("libkvscope_*.a"), *(BUILD / "gpu" / "virtual").rglob("libkvscope_*.a")]:
        kept.update({(archive, member): symbols for member, symbols in symbols_of(archive).items()})
    left_out = {}
    for source in programs:
        left_out[source.relative_to(ROOT)] = kept.pop((archive_of(source), f"{source.name}.o"))  # KeyError: not compiled separately
    module = symbols_of(_core.__file__)
    assert all(symbols.undefined for symbols in module.values())
    faults = needed({**{member: symbols for (_, member), symbols in kept.items()}, **module}, left_out)
    words = "\n".join(f"{place} needs {name}, which {owner} defines" for name, place, owner in faults)
    assert not faults, "a wheel is made without sources (PROGRAMS of kvscope_library) that it needs:\n" + \
        run("c++filt", text=words)


def test_a_source_that_is_needed_and_left_out_is_found(tmp_path):
    texts = {"kept": "int shared(); int missing(); template <int N> int twice() { return N; }\n"
                     "int user() { return shared() + missing() + twice<3>(); }",
             "other": "int shared() { return 1; }",
             "left_out": "int missing() { return 2; }\nint shared();\ntemplate <int N> int twice() { return N; }\n"
                         "int calls() { return shared() + twice<3>(); }"}
    objects = {}
    for name, text in texts.items():
        (tmp_path / f"{name}.cpp").write_text(text)
        run(COMPILER, "-c", tmp_path / f"{name}.cpp", "-o", tmp_path / f"{name}.o")
        objects.update(symbols_of(tmp_path / f"{name}.o"))
    left_out = {"left_out.o": objects.pop("left_out.o")}
    assert [(place, owner) for _, place, owner in needed(objects, left_out)] == [("kept.o", "left_out.o")]
    assert "missing" in needed(objects, left_out)[0][0]


# --- instruction sets that a wheel does not have ----------------------------------------------------------------------

def unguarded(text):
    """The instruction sets whose loops a source names although they were not compiled."""
    plain = re.sub(r"^\s*#\s*include\b.*$", "", text, flags=re.M)
    faults = []
    for name in SETS:
        others = [f"-DKVSCOPE_{one.upper()}" for one in SETS if one != name]
        if re.search(rf"\b{name}::(?!\s*\{{)", run(COMPILER, "-E", "-P", *others, "-x", "c++", "-", text=plain)):
            faults.append(name)
    return faults


def sources_with_sets():
    for folder in ("core", "gpu"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cpp", ".h") and re.search(r"\bavx(2|512)::", path.read_text(errors="replace")):
                yield path


def test_loops_of_an_instruction_set_are_named_only_where_it_was_compiled():
    sources = list(sources_with_sets())
    assert len(sources) > 3, sources
    faults = [f"{path.relative_to(ROOT)} names {name}:: although KVSCOPE_{name.upper()} is not defined"
              for path in sources for name in unguarded(path.read_text())]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("guards,expected", [(("defined(KVSCOPE_AVX2)", "defined(KVSCOPE_AVX512)"), []),
                                             (("defined(__x86_64__)", "defined(__x86_64__)"), ["avx2", "avx512"]),
                                             (("defined(KVSCOPE_AVX2)", "defined(KVSCOPE_AVX2)"), ["avx512"])])
def test_a_choice_among_sets_that_may_not_exist_is_found(guards, expected):
    text = f"""#include "a header that is not read"
const Sums& sums(Set set) {{
  switch (set) {{
#if {guards[0]}
    case Set::avx2: return *avx2::sums();  // not avx512::sums
#endif
#if {guards[1]}
    case Set::avx512: return *avx512::sums();
#endif
    default: return *baseline::sums();
  }}
}}
"""
    assert unguarded(text) == expected
