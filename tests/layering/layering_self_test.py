#!/usr/bin/python3
"""Breaks each rule of layering_test.py once, in a tree of its own, and checks that file, line and rule are named; then
writes what only looks like a fault and checks that nothing is said. A checker that never fires looks like a clean tree.
"""
import os
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import layering_test  # noqa: E402

HEADER = "// What it is.\n#pragma once\n"

# (rule, file, its text, the line that is at fault)
BROKEN = [
    ("folder order", "core/base/a.h", HEADER + '#include "core/cache/b.h"\n', 3),
    ("folder order", "core/attention/a.cpp", '#include "core/golden/b.h"\n', 1),
    ("folder order", "core/attention/a.cpp", '\n  #  include "core/pipeline/b.h"\n', 2),
    ("folder order", "core/misc/a.cpp", "", 1),
    ("folder order", "gpu/virtual/isa/a.cpp", '#include "gpu/virtual/machine/b.h"\n', 1),
    ("virtual GPU alone", "gpu/virtual/machine/a.cpp", '#include "core/cache/b.h"\n', 1),
    ("virtual GPU alone", "gpu/virtual/machine/copies/a.cpp", '#include "core/tma/b.h"\n', 1),
    ("virtual GPU alone", "gpu/virtual/machine/matrix/a.cpp", '#include "core/fragment/b.h"\n', 1),
    ("driver alone", "gpu/launch/a.cpp", '#include "gpu/driver/b.h"\n', 1),
    ("core alone", "core/golden/a.cpp", '#include "viz/view/b.h"\n', 1),
    ("core alone", "core/golden/a.cpp", '#include "tests/core/golden/b.h"\n', 1),
    ("core without CUDA", "core/tma/a.cpp", "#include <cuda.h>\n", 1),
    ("core without CUDA", "core/tma/a.cpp", "#include <cuda_runtime.h>\n", 1),
    ("core without CUDA", "core/tma/a.cpp", "#include <cuda/barrier>\n", 1),
    ("core without Qt", "core/trace/a.cpp", "#include <QString>\n", 1),
    ("core without Qt", "core/trace/a.cpp", "#include <QtCore/QObject>\n", 1),
    ("viz draws events", "viz/view/a.cpp", '#include "core/cache/b.h"\n', 1),
    ("folder order", "viz/geometry/a.cpp", '#include "viz/view/b.h"\n', 1),
    ("playback without Qt", "viz/playback/a.cpp", "#include <QtCore/QPointF>\n", 1),
    ("wrapped library", "viz/window/a.cpp", "#include <gif_lib.h>\n", 1),
    ("file length", "viz/view/a.cpp", "int x;\n" * 601, 601),
    ("viz draws events", "viz/model/a.cpp", '#include "gpu/launch/b.h"\n', 1),
    ("geometry without painting", "viz/geometry/a.cpp", "#include <QPainter>\n", 1),
    ("geometry without painting", "viz/geometry/a.cpp", "#include <QtWidgets/QWidget>\n", 1),
    ("folder order", "gpu/launch/a.cpp", '#include "gpu/verify/b.h"\n', 1),
    ("folder order", "gpu/bench/a.cpp", '#include "gpu/hardware/b.h"\n', 1),
    ("gpu below the programs", "gpu/hardware/a.cpp", '#include "apps/common/b.h"\n', 1),
    ("gpu below the programs", "gpu/verify/a.cpp", '#include "viz/model/b.h"\n', 1),
    ("device code shares no formula", "gpu/kernels/x/kernel.cu", '#include "core/layout/swizzle.h"\n', 1),
    ("device code shares no formula", "gpu/kernels/x/params.h", HEADER + '#include "core/cache/a.h"\n', 3),
    ("wrapped library", "core/scenario/a.cpp", "#include <nlohmann/json.hpp>\n", 1),
    ("wrapped library", "core/base/json.h", HEADER + "#include <nlohmann/json.hpp>\n", 3),
    ("wrapped library", "core/golden/a.cpp", "#include <zip.h>\n", 1),
    ("wrapped library", "core/trace/a.cpp", "#include <sqlite3.h>\n", 1),
    ("wrapped library", "core/golden/a.cpp", "#include <zlib.h>\n", 1),
    ("wrapped library", "apps/kvscope/a.cpp", "#include <CLI/CLI.hpp>\n", 1),
    ("wrapped library", "apps/kvscope/a.cpp", '#include "apps/common/cli.h"\n', 1),
    ("tests apart", "core/base/a.cpp", "#include <gtest/gtest.h>\n", 1),
    ("tests apart", "apps/kvscope/a.cpp", "#include <rapidcheck.h>\n", 1),
    ("detail stays inside", "core/cache/a.cpp", '#include "core/tma/detail/b.h"\n', 1),
    ("detail stays inside", "core/tma/a.h", HEADER + '#include "core/tma/detail/b.h"\n', 3),
    ("detail stays inside", "tests/core/cache/a_test.cpp", '#include "core/tma/detail/b.h"\n', 1),
    ("detail stays inside", "gpu/virtual/check/a.cpp", '#include "gpu/virtual/machine/warp/detail/b.h"\n', 1),
    ("include path", "core/base/a.cpp", '#include "index.h"\n', 1),
    ("include path", "core/base/a.cpp", '#include "../layout/swizzle.h"\n', 1),
    ("own header first", "core/base/a.cpp", '// What.\n#include <vector>\n#include "core/base/a.h"\n', 2),
    ("own header first", "core/base/c.cpp", '#include <vector>\n#include "core/base/detail/c.h"\n', 1),
    ("pragma once", "core/base/a.h", "// What it is.\nint f();\n", 1),
    ("no machine paths", "docs/a.md", "one\nrun it in /" + "work/main\n", 2),
    ("no machine paths", "core/base/a.cpp", "// see shared" + "/spec/x.md\n", 1),
    ("no machine paths", "tests/a_test.cpp", "// see shared" + "/design/x.md\n", 1),
    ("no machine paths", "apps/demo.sh", "cp a /" + "root/b\n", 1),
    ("nothing half done", "core/base/a.cpp", "int x;  // TO" + "DO: more\n", 1),
    ("nothing half done", "docs/a.md", "FIX" + "ME\n", 1),
    ("nothing half done", "core/base/a.cpp", "int x;\n#if" + " 0\n#endif\n", 2),
    ("clang 14", "core/base/a.cpp", "auto keys = std::views::" + "keys(map);\n", 1),
    ("line length", "core/base/a.h", HEADER + "// " + "x" * 118 + "\n", 3),
    ("file length", "core/base/a.cpp", "\n" * 601, 601),
    ("file length", "apps/kvscope/main.cpp", "\n" * 101, 101),
    ("file length", "apps/kvscope-viewer/main.cpp", "\n" * 101, 101),
    ("top level", "notes.txt", "", 1),
    ("one name one type", "viz/view/b.h", HEADER + "namespace kvscope::viz {\nclass Prepared final : public X {\n", 4),
    ("readme lists files", "core/base/a.h", HEADER, 1),
    ("readme lists files", "gpu/launch/a.h", HEADER, 1),
    ("readme lists files", "core/layout/README.md", "# layout\n\n- `gone.h` what it was\n", 3),
    ("readme lists files", "core/layout/README.md", "# layout\n\n- `listed.h` of another folder\n", 3),
    ("readme lists files", "gpu/launch/README.md", "# launch\n\n- `b.h/.cpp` the second does not exist\n", 3),
    ("diagrams name folders", "docs/ARCHITECTURE.md", "### gpu\n\n```\ntext -> machine\n  +-- warp  lanes\n```\n", 3),
    ("diagrams name folders", "docs/ARCHITECTURE.md",
     "### gpu\n\n```\ntext -> machine\n  +-- warp  lanes\n  +-- tensor  cells\n  +-- rows  gone\n```\n", 3),
    ("diagrams name folders", "docs/ARCHITECTURE.md",
     "### gpu\n\n```\n-> machine\n  +-- warp  lanes\n  +-- tensor  cells\n```\n", 3),
]

# Additional files of the tree for a rule about two files.
BESIDE = {"diagrams name folders": {"gpu/virtual/text/a.cpp": "", "gpu/virtual/machine/warp/a.cpp": "",
                                    "gpu/virtual/machine/tensor/detail/a.cpp": ""},
          "own header first": {"core/base/a.h": HEADER, "core/base/detail/c.h": HEADER},
          "one name one type": {"viz/view/a.h": HEADER + "namespace kvscope::viz {\nstruct Prepared {\n"},
          "readme lists files": {"core/base/README.md": "# base\n\n- `listed.h` what\n", "core/base/listed.h": HEADER,
                                 "gpu/README.md": "# gpu\n\n- `launch/b.h` what\n",
                                 "gpu/launch/b.h": HEADER}}

# What only looks like a fault.
SOUND = {
    "core/base/b.h": HEADER,
    "core/base/b.cpp": '// What.\n#include "core/base/b.h"\n\n#include <vector>\n',
    "core/pipeline/a.cpp": '#include "core/base/b.h"\n#include "core/golden/b.h"\n#include <vector>\n'
                           '#include "core/pipeline/c.h"\n',
    "core/base/json.cpp": "#include <nlohmann/json.hpp>\n",
    "core/base/q.cpp": "#include <queue>\n#include <cmath>\n#include <zipper.h>\n",
    "core/base/long.cpp": "\n" * 600,
    "core/base/words.cpp": "// networks, workshop/work, shared memory, a shared_ptr, TODOS, kWorkRoot\n"
                           "#if 01\n#endif\n",
    "apps/common/cli.h": HEADER + "#include <CLI/CLI.hpp>\n",
    "apps/kvscope/command_run.cpp": '#include "apps/common/cli.h"\n',
    "apps/kvscope-viewer/command_line.cpp": '#include "apps/common/cli.h"\n',
    "apps/gpu-check/main.cpp": '#include "apps/common/cli.h"\n#include "gpu/hardware/a.h"\n',
    "gpu/hardware/a.cpp": '#include "core/base/index.h"\n#include "gpu/launch/device.h"\n',
    "viz/geometry/a.cpp": '#include "core/trace/events.h"\n#include <QRectF>\n',
    "viz/view/a.cpp": "#include <QPainter>\n",
    "viz/view/c.h": HEADER + "namespace kvscope::viz {\nclass Canvas;\nstruct Cell {\n  struct Inner {\n",
    "viz/view/d.h": HEADER + "namespace kvscope::viz {\nclass Canvas {\nclass Inner {\n",
    "viz/model/a.h": HEADER + "namespace kvscope {\nstruct Cell { int a; };\n",
    "gpu/kernels/x/kernel.cu": '#include "core/base/index.h"\n#include <cuda.h>\n',
    "core/staging/a.cpp": '#include "core/staging/lds/detail/b.h"\n',
    "core/staging/lds/detail/b.h": HEADER + '#include "core/staging/detail/c.h"\n',
    "tests/core/staging/lds/a_test.cpp": '#include "core/staging/lds/detail/b.h"\n',
    "tests/core/base/a_test.cpp": '#include <gtest/gtest.h>\n#include <sqlite3.h>\n'
                                  'auto data = root / "../shared' + '/data";\n',
    # A README that names no header lists nothing; patterns, pairs and files of folders below or above are names too.
    "core/trace/README.md": "# trace\n\nIn short: `recorder` and `event`.\n",
    "core/trace/events.h": HEADER,
    "core/smem/README.md": "# smem\n\n- `banks.h/.cpp`, `deep/*_map.h`, `core/base/b.h`, `<kernel>/params.h`\n",
    "core/smem/banks.h": HEADER,
    "core/smem/banks.cpp": "",
    "core/smem/deep/one_map.h": HEADER,
    "core/smem/copy/params.h": HEADER,
    "tests/README.md": "# tests\n\n- `property.h`\n",
    "tests/property.h": HEADER,
    "tests/core/base/fixture.h": HEADER,
    "tests/fuzz/corpus/x/1": "TO" + "DO /" + "work",
    "build/dev/junk.h": "TO" + "DO",
    "docs/picture.png": "\0TO" + "DO",
    # Arrows of other sections name no folders, and internal headers are in no diagram.
    "docs/ARCHITECTURE.md": "```\nrequest -> pages\n```\n\n### core\n\n```\nbase -+-> pipeline\n      +-> smem -> trace -> "
                            "staging\n```\n\n### apps\n\n```\nx -> y\n```\n",
}


def faults_of(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        return layering_test.all_faults(root)


class Layering(unittest.TestCase):
    def test_names_file_line_rule_and_next_step_of_each_broken_rule(self):
        for rule, path, text, line in BROKEN:
            with self.subTest(rule=rule, path=path, text=text[:80]):
                faults = faults_of({path: text, **BESIDE.get(rule, {})})
                self.assertEqual([fault.rule for fault in faults], [rule])
                self.assertTrue(path.startswith(faults[0].path), faults[0])
                self.assertEqual(faults[0].line, line)
                self.assertGreater(len(faults[0].next_step), 10)

    def test_breaks_every_rule_that_the_checker_knows(self):
        with open(layering_test.__file__, encoding="utf-8") as file:
            known = set(re.findall(r'(?:fault\(|Fault\(\w+(?:\s*\+\s*\w+)?, [^,]+, |Fault\("core/" \+ name, 1, )'
                                   r'"([\w ]+)"', file.read()))
        self.assertEqual(known, {rule for rule, *_ in BROKEN})

    def test_says_nothing_of_what_only_looks_like_a_fault(self):
        self.assertEqual(faults_of(SOUND), [])

    def test_reports_all_faults_of_one_file(self):
        faults = faults_of({"core/base/a.h": '#include "core/cache/b.h"\n#include <QString>\n// TO' + "DO\n"})
        self.assertEqual(sorted(fault.rule for fault in faults),
                         ["core without Qt", "folder order", "nothing half done", "pragma once"])


if __name__ == "__main__":
    unittest.main()
