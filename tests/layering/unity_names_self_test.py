#!/usr/bin/python3
"""Defines a name twice in each way that a compiler rejects, and checks that unity_names_test.py finds it; then writes what may be
repeated, and checks that nothing is reported."""
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import unity_names_test  # noqa: E402


def source(text, namespace="kvscope"):
    return f"#include <x>\n\nnamespace {namespace} {{\nnamespace {{\n\n{text}\n\n}}  // namespace\n}}  // namespace {namespace}\n"


# (name, text of one source, text of the other)
TWICE = [
    ("kMost", "constexpr int kMost = 3;", "constexpr double kMost{4};"),
    ("kB", "constexpr std::int64_t kA = std::int64_t{1} << 30, kB = 2;", "constexpr int kB = 1;"),
    ("kNames", 'constexpr const char* kNames[] = {"a", "}"};', 'constexpr std::array<int, 2> kNames = {{\n    {1},\n}};'),
    ("Rows", "struct Rows {\n  int n = 0;\n};", "class Rows final : public Base {\n};"),
    ("Kind", "enum class Kind : std::uint8_t { a, b };", "using Kind = int;"),
    ("Extents", "using Extents = std::vector<int>;", "using Extents = std::vector<long>;"),
    ("show", "int show(const Command& command) {\n  return 1;\n}", "void show(const Command& c) {\n  // {\n}"),
    ("show", "int show(int n = 3) {\n  return n;\n}", "int show(int) {\n  return 0;\n}"),
    ("show", "int show(const QRectF& rect, double side) {\n  return 1;\n}", "int show(QRectF rect, double size) {\n  return 0;\n}"),
    ("table", "std::vector<int> table() {\n  return {};\n}", "[[nodiscard]] auto table() {\n  return 1;\n}"),
    ("sum", "template <class T>\nT sum(std::span<const T> x) {\n  return {};\n}",
     "template <class T>\nT sum(std::span<const T> values) {\n  return {};\n}"),
    ("at", "double at(\n    const std::map<int, long>& m,\n    int i) {\n  return 0;\n}", "int at(const std::map<int, long>& n, int k) {}"),
    ("flat", "bool flat = false;", "bool flat(int n) {\n  return n == 0;\n}"),
    ("operator<", "bool operator<(const A& a, const A& b) {\n  return true;\n}", "bool operator<(const A& x, const A& y) {\n  return false;\n}"),
]

# Texts of two sources that may be compiled together.
APART = [
    ("int show(const A& a) {\n  return 1;\n}", "int show(const B& b) {\n  return 2;\n}"),
    ("using golden::Bundle;", "using golden::Bundle;"),
    ("using Extents = std::vector<int>;", "using Extents = std::vector<int>;"),
    ("namespace fs = std::filesystem;", "namespace fs = std::filesystem;"),
    ("struct Row;\nint size_of(int n);", "struct Row;\nint size_of(int n);"),
    ("// constexpr int kMost = 3;\nint a = 0;", "/* constexpr int kMost = 3; */ int b = 0;"),
    ('const char* text_a = R"(\nint same = 1;\n)";', 'const char* text_b = R"(\nint same = 1;\n)";'),
    ("int first() {\n  constexpr int kLocal = 1;\n  return kLocal;\n}", "int second() {\n  constexpr int kLocal = 1;\n  return kLocal;\n}"),
    ("#define ONE 1\nint c = ONE;", "#define ONE 1\nint d = ONE;"),
    ("A::A(int n) : n_(n) {\n}", "A::A(int n) : n_(n) {\n}"),
    ("template <int N>\nint of(int x) {\n  return N;\n}", "template <class T>\nint of(int x) {\n  return 0;\n}"),
]


def faults(first, second, build="kvscope_library(base)\n", first_folder="core/base", first_name="a.cpp"):
    with tempfile.TemporaryDirectory() as root:
        for path, text in {"core/base/CMakeLists.txt": build, "core/tma/CMakeLists.txt": "kvscope_library(tma)\n",
                           f"{first_folder}/{first_name}": first, "core/base/deep/b.cpp": second}.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        return list(unity_names_test.all_faults(root))


class UnityNames(unittest.TestCase):
    def test_finds_each_name_that_is_defined_twice(self):
        for name, first, second in TWICE:
            with self.subTest(name=name, first=first):
                found = faults(source(first), source("int unrelated = 0;\n" + second))
                self.assertEqual([(f.name, f.path, f.other, f.line, f.other_line) for f in found],
                                 [(name, "core/base/deep/b.cpp", "core/base/a.cpp", 7, 6)])

    def test_reports_nothing_for_what_may_be_repeated(self):
        for first, second in APART:
            with self.subTest(first=first):
                self.assertEqual(faults(source(first), source(second)), [])

    def test_names_meet_only_in_one_library_and_one_namespace(self):
        text = "constexpr int kMost = 3;"
        self.assertEqual(len(faults(source(text), source(text))), 1)
        self.assertEqual(faults(source(text), source(text, "kvscope::golden")), [])
        self.assertEqual(faults(source(text), source(text), first_folder="core/tma"), [])
        self.assertEqual(faults(source(text), f"namespace kvscope {{\n{text}\n}}\n"), [])

    def test_a_name_of_a_header_is_not_repeated_in_a_source(self):
        header = "namespace kvscope {\n\nstruct Column {\n  int n = 0;\n};\nstruct Row;\nint size_of(const Row& row);\n\n}  // namespace kvscope\n"
        for text, found in [("struct Column {\n  int wide = 0;\n};", 1), ("struct Row {\n};", 0), ("struct Columns {\n};", 0),
                            ("std::function<Column(int)> column(int n) {\n  return {};\n}", 0)]:
            with self.subTest(text=text):
                self.assertEqual([(f.name, f.path, f.line, f.other, f.other_line)
                                  for f in faults(header, source(text), first_name="a.h")],
                                 [("Column", "core/base/deep/b.cpp", 6, "core/base/a.h", 3)] * found)

    def test_sources_that_are_always_compiled_separately_may_repeat_names(self):
        build = "kvscope_library(base)\nset_target_properties(kvscope_base PROPERTIES UNITY_BUILD OFF)\n"
        text = source("constexpr int kMost = 3;")
        self.assertEqual(faults(text, text, build), [])


if __name__ == "__main__":
    unittest.main()
