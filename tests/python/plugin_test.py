"""The pytest plugin: its shapes, and its report."""
import numpy as np

import kvscope as kv
from kvscope.pytest_plugin import SHAPES, make_problem


def test_shapes_have_the_edges_of_a_page():
    for shape in SHAPES:
        lengths = make_problem(shape).about["key_lengths"]
        assert max(lengths) == 4096 or lengths == [0, 1, shape.page_size - 1, shape.page_size, shape.page_size + 1]


def test_a_problem_is_read_only_where_sequences_have_tokens():
    g = kv.golden(make_problem(SHAPES[0]))
    assert np.isfinite(g.o).all() and (g.lse[0] == -np.inf).all()


def test_a_mismatch_is_in_the_report(pytester):
    pytester.makepyfile("""
        import numpy as np
        import kvscope as kv

        def test_wrong(paged_problem):
            g = kv.golden(paged_problem)
            kv.assert_close(1.01 * g.o.astype(np.float32), g, keep="kept")
    """)
    # In a process of its own: a second session in this one would load NumPy a second time.
    result = pytester.runpytest_subprocess("-p", "kvscope.pytest_plugin", "--kvscope-report=report.html", "-k",
                                           "page16 or mha")
    result.assert_outcomes(failed=2)
    page = (pytester.path / "report.html").read_text()
    assert "2 rejected outputs" in page and "test_wrong[page16]" in page and "diagnosis" in page
    assert page.count("<svg") == 2 and "by head" in page
    result.stdout.fnmatch_lines(["*kvscope diagnose kept/golden.safetensors*"])
