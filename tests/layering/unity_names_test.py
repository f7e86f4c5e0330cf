#!/usr/bin/python3
"""Checks that sources of one library can be compiled together: no name of its unnamed namespaces is defined twice, or in a header of the
library too.

    unity_names_test.py ROOT

KVSCOPE_UNITY compiles several sources of a library as one translation unit, so that they share their unnamed namespaces. Which
sources meet depends on the batch: release takes 24, the Python wheel 40. This check takes all sources of a library together, in a
second and without a compiler. Functions may be overloaded; the same parameter types are a fault. Prints one line a fault,
"file:line: 'name' is defined in file:line too: next step", and exits 1 when there is one.

It reads what clang-format writes: a namespace opens and closes on a line of its own, and its members begin in column 0.
unity_names_self_test.py checks what it finds and what it must not.
"""
import os
import re
import sys
from collections import namedtuple

# What an unnamed namespace declares. `parameters`: the types of a function's parameters, or None for any other name.
Name = namedtuple("Name", "namespace name parameters line")
Fault = namedtuple("Fault", "path line name other other_line")

TOPS = ("core", "gpu", "viz", "apps")
APART = re.compile(r"UNITY_BUILD OFF")  # in a CMakeLists.txt: its sources are always compiled separately

SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])+\'', re.S)
OPENS = re.compile(r"(?:inline )?namespace\s*([\w:]*)\s*\{$")
VALUE = re.compile(r"(?<![=!<>])=(?!=)")
TYPE = re.compile(r"(?:enum class|enum struct|enum|struct|class|union)\s+(\w+)")


def without_text(source):
    """The source without comments, and with empty strings; lines keep their numbers."""
    return SKIPPED.sub(lambda m: ("" if m[0].startswith("/") else '""') + "\n" * m[0].count("\n"), source)


def without_brackets(text, left, right):
    """`text` without what is between these brackets, which may be nested."""
    out, depth = [], 0
    for c in text:
        depth += c == left
        if depth == 0:
            out.append(c)
        depth -= c == right
    return "".join(out)


def parts_of(text):
    """The text at its commas that are in no bracket."""
    parts, depth, part = [], 0, ""
    for c in text + ",":
        depth += c in "(<[{"
        depth -= c in ")>]}"
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    return parts


def parameter_types(text):
    """The types of a parameter list without its parentheses: "const Op* op, const Row& row, int n = 3" -> ("const Op*", "Row", "int")."""
    types = []
    for part in parts_of(text):
        part = VALUE.split(part)[0].strip()
        # A name follows its type: after a space, &, * or >.
        kind = re.sub(r"\s+", " ", re.sub(r"(?<=[\w>&*])(?:\s+|(?<=[>&*]))(?!(?:const|int|long|char|unsigned)$)\w+$", "", part))
        types.append(re.sub(r"^const (.*[^*&])&$", r"\1", kind).strip())  # a call cannot choose between T and const T&
    return tuple(types) if types != [""] else ()


def names_of(namespace, line, declaration):
    """The Names of a whole declaration; none for one that adds no name, such as a using-declaration."""
    text = re.sub(r"\s+", " ", without_brackets(re.sub(r"\[\[.*?\]\]", "", declaration), "{", "}")).strip(" ;")
    template = ""
    while text.startswith("template"):
        depth, end = 0, text.index("<")
        for end in range(end, len(text)):
            depth += text[end] == "<"
            depth -= text[end] == ">"
            if depth == 0:
                break
        template += text[8:end + 1].strip()
        text = re.sub(r"^\s*requires .*?\s(?=\w+ \w+\()", "", text[end + 1:]).strip()
    alias = re.match(r"using (\w+) =(.*)", text)
    if alias:  # the same alias twice is legal
        return [Name(namespace, alias[1], ("=" + re.sub(r"\s", "", alias[2]),), line)]
    if text.startswith(("using ", "namespace ", "static_assert", "friend ", "extern ")):
        return []
    found = TYPE.match(text)
    if found and "(" not in without_brackets(text, "<", ">"):
        forward = ";" in declaration and "{" not in declaration
        specialized = re.match(r"[\w ]+<", text[found.start(1):])
        return [] if forward or specialized else [Name(namespace, found[1], None, line)]
    head = VALUE.split(text)[0] if "operator" not in text else text
    calls = re.finditer(r"(operator\s*(?:\(\)|\S+?)|\w+(?:::\w+)*)\s*\(", head)
    called = next((c for c in calls if head.count("<", 0, c.start()) == head.count(">", 0, c.start())), None)  # no std::function<R(A)>
    if called:
        if "::" in called[1] or "{" not in declaration:  # a member, or a declaration without its body
            return []
        depth = 0
        for end in range(called.end() - 1, len(head)):
            depth += head[end] == "("
            depth -= head[end] == ")"
            if depth == 0:
                break
        return [Name(namespace, called[1].replace(" ", ""), (template, *parameter_types(head[called.end():end])), line)]
    text = text.replace("<<", "")  # no bracket
    variables = [re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", VALUE.split(part)[0]) for part in parts_of(text)]  # double a = 1, b = 2;
    return [Name(namespace, variable[1], None, line) for variable in variables if variable]


def names_in(source, unnamed=True):
    """The names that unnamed namespaces of a source declare, or those that its named namespaces define."""
    open_namespaces, held, begin = [], "", 0
    for number, text in enumerate(without_text(source).split("\n"), 1):
        opened = OPENS.match(text.rstrip())
        if not held and opened:
            open_namespaces.append(opened[1])
        elif not held and text.rstrip() == "}" and open_namespaces:
            open_namespaces.pop()
        elif open_namespaces and ("" in open_namespaces) == unnamed and (held or (text.strip() and text[0] not in "#} ")):
            begin = begin if held else number
            held += text + "\n"
            whole = held.count("{") == held.count("}") and held.count("(") == held.count(")")
            if whole and re.search(r"[;}]\s*$", held):
                yield from names_of("::".join(name for name in open_namespaces if name), begin, held)
                held = ""


def libraries(root):
    """(folder, sources and headers) of each folder with a CMakeLists.txt whose sources may be compiled together."""
    found = {}
    for top in TOPS:
        for folder, below, files in os.walk(os.path.join(root, top)):
            below.sort()
            library = folder
            while not os.path.exists(os.path.join(library, "CMakeLists.txt")) and library != root:
                library = os.path.dirname(library)
            sources = [os.path.relpath(os.path.join(folder, name), root) for name in sorted(files) if name.endswith((".cpp", ".h"))]
            found.setdefault(library, []).extend(sources)
    for library, sources in found.items():
        build = os.path.join(library, "CMakeLists.txt")
        if sources and os.path.exists(build):
            with open(build, encoding="utf-8") as file:
                if not APART.search(file.read()):
                    yield os.path.relpath(library, root), sources


def faults_of(sources):
    """The faults of a library's sources, given as {path: text}. A source may see any header of its library."""
    seen = {}
    for path, text in sources.items():
        if path.endswith(".h"):
            for name in names_in(text, unnamed=False):
                seen.setdefault((name.namespace, name.name), []).append((path, name))
    for path, text in sources.items():
        if path.endswith(".h"):
            continue
        for name in names_in(text):
            earlier = seen.setdefault((name.namespace, name.name), [])
            for other_path, other in earlier:
                both_functions = name.parameters is not None and other.parameters is not None
                same = name.parameters == other.parameters
                alias = both_functions and any(p.startswith("=") for p in name.parameters + other.parameters)
                if other_path != path and (not same if alias else same or not both_functions):
                    yield Fault(path, name.line, name.name, other_path, other.line)
                    break
            earlier.append((path, name))


def all_faults(root):
    for _, paths in libraries(root):
        texts = {}
        for path in paths:
            with open(os.path.join(root, path), encoding="utf-8") as file:
                texts[path] = file.read()
        yield from faults_of(texts)


def main():
    root = sys.argv[1]
    faults = list(all_faults(root))
    for fault in faults:
        print(f"{fault.path}:{fault.line}: '{fault.name}' is defined in {fault.other}:{fault.other_line} too, and both sources may be "
              "compiled as one: give one of them another name")
    print(f"{len(faults)} faults in {sum(len(sources) for _, sources in libraries(root))} sources and headers")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
