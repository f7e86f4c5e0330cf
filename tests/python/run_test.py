"""Runs of scenarios, steps, explanations, sweeps."""
import pathlib

import numpy as np
import pytest

import kvscope as kv

SCENARIOS = pathlib.Path(__file__).resolve().parents[2] / "apps" / "scenarios"


@pytest.fixture(scope="module")
def first_light():
    return kv.run(SCENARIOS / "first_light.json")


def test_the_table_of_a_step_maps_the_tokens_that_explain_names(first_light):
    step = first_light.step(6)
    assert step.lookup_table.dtype == np.uint32 and len(step.lookup_table) == len(step.batch) > 0
    row = 0
    explained = first_light.explain(step.batch[row], 0, step=6)
    assert str(step.lookup_table[row, 0]) in explained.text
    assert explained.links and explained.register in explained.text
    # "row" is not the link "rows per block", which comes before it
    assert explained["row"] == next(link.result for link in explained.links if link.name == "row")
    assert explained["rows"] == next(link.result for link in explained.links if link.name == "rows per block")


def test_steps_and_tokens_out_of_range_are_index_errors(first_light):
    with pytest.raises(kv.IndexError):
        first_light.step(10 ** 6)
    with pytest.raises(IndexError):
        first_light.step(-1)
    with pytest.raises(kv.IndexError):
        first_light.explain(99, 0)
    with pytest.raises(kv.InputError):
        first_light.explain(0, 0, kv="q")


def test_a_sweep_is_columns_with_a_row_for_each_combination(first_light):
    seen = []
    columns = first_light.sweep(page_size=[8, 16, 32], progress=lambda done, all_of: seen.append((done, all_of)))
    assert columns["page_size"] == [8, 16, 32] and seen == [(1, 3), (2, 3), (3, 3)]
    assert {len(column) for column in columns.values()} == {3}
    assert columns["steps"][1] == first_light.report["run"]["steps"]
    with pytest.raises(kv.InputError, match="cache.page_size"):
        first_light.sweep(pages=[1])


def test_a_sweep_draws_a_bar_where_it_is_asked_to(first_light, capsys):
    first_light.sweep(page_size=[8, 16, 32, 64], progress=True)
    lines = capsys.readouterr().err.split("\r")
    assert lines[1:] == [f"sweep [{'#' * n}{'-' * (30 - n)}] {done} of 4{end}"
                         for done, n, end in ((1, 7, ""), (2, 15, ""), (3, 22, ""), (4, 30, "\n"))]
    first_light.sweep(page_size=[8])  # no terminal: no bar
    first_light.sweep(page_size=[8], progress=False)
    assert capsys.readouterr().err == ""


def test_the_golden_of_a_run_passes_its_own_check(first_light):
    g = first_light.golden()
    kv.assert_close(g.o.astype(np.float32), g)


def test_a_scenario_is_a_dict_or_a_file(first_light):
    assert kv.run(first_light.scenario, golden=False).report["run"] == first_light.report["run"]
    with pytest.raises(kv.InputError):
        kv.run({"kvscope_scenario": 1, "unknown": 2})
    with pytest.raises(kv.InputError):
        kv.run("missing.json")


def test_an_exception_of_progress_ends_the_run():
    def stop(done, all_of):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        kv.run(SCENARIOS / "first_light.json", progress=stop)
