"""Runs of scenarios, steps, explanations, sweeps."""
import json
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


@pytest.mark.parametrize("dim", [-1, 64, -2**63, 2**63 - 1])
@pytest.mark.parametrize("kind", ["k", "v"])
def test_tiles_of_dims_out_of_range_are_index_errors(first_light, kind, dim):
    assert first_light.tile(0, 0, dim=63, kv=kind) and first_light.tile(0, 0, dim=0, kv=kind)
    for function in (first_light.tile, first_light.explain):
        with pytest.raises(kv.IndexError, match=rf"dim {dim} is outside \[0, 64\): elements of a head"):
            function(0, 0, dim=dim, kv=kind)


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


def numbers_of(report):
    return {key: value for key, value in report["run"].items() if isinstance(value, (int, float)) and not isinstance(value, bool)}


SMALL = {"kvscope_scenario": 1, "model": {"layers": 2, "query_heads": 4, "kv_heads": 2, "head_size": 64},
         "cache": {"page_size": 16, "blocks": 64, "max_tokens": 64}, "requests": {"list": [{"prompt_tokens": 40, "generate_tokens": 3}]}}


def changed(name, value):
    """SMALL with a key as it is written by hand."""
    *folders, key = name.split(".")
    scenario = json.loads(json.dumps(SMALL))
    inner = scenario
    for folder in folders:
        inner = inner.setdefault(folder, {})
    inner[key] = value
    return scenario


@pytest.mark.parametrize("name,path,values", [
    ("page_size", "cache.page_size", [16, 48]),      # tile.BN is a whole number of pages
    ("head_size", "model.head_size", [64, 128]),     # value_size is the head size
    ("kind", "cache.kind", ["paged", "continuous"]),  # a continuous cache shares no prefixes
    ("tile.BN", "tile.BN", [16, 32]),                # in an object that the scenario leaves out
    ("layers", "model.layers", np.array([2, 3]))])
def test_a_sweep_runs_the_scenarios_that_a_person_would_write(name, path, values):
    columns = kv.run(SMALL, golden=False).sweep(**{name: values})
    for i, value in enumerate(np.asarray(values).tolist()):
        report = kv.run(changed(path, value), golden=False).report
        for figure, number in numbers_of(report).items():
            assert columns[figure][i] == number, (name, value, figure)


def test_a_sweep_of_a_model_that_is_a_presets_name_keeps_its_other_numbers():
    scenario = {**SMALL, "model": "llama-3.1-8b"}
    columns = kv.run(scenario, golden=False).sweep(kv_heads=[2, 8])
    for i, heads in enumerate([2, 8]):
        report = kv.run({**SMALL, "model": {"preset": "llama-3.1-8b", "kv_heads": heads}}, golden=False).report
        assert {name: columns[name][i] for name in numbers_of(report)} == numbers_of(report)
    both = kv.run(scenario, golden=False).sweep(kv_heads=[2], model=["llama-3.1-8b"])  # an object before its keys
    assert all(both[name][0] == columns[name][0] for name in numbers_of(report))


def test_arguments_of_a_sweep_that_mean_nothing_are_named(first_light):
    with pytest.raises(kv.InputError, match="page_size and cache.page_size are the same key"):
        first_light.sweep(**{"page_size": [8], "cache.page_size": [16]})
    for wrong in (16, "16", None):
        with pytest.raises(kv.InputError, match="page_size is .*: pass a list of values"):
            first_light.sweep(page_size=wrong)
    with pytest.raises(kv.InputError, match="no JSON"):
        first_light.sweep(page_size=[object()])


def test_a_scenario_with_a_byte_order_mark_is_swept_and_one_that_is_no_text_is_named(tmp_path):
    words = json.dumps({**SMALL, "name": "caf\u00e9"}, ensure_ascii=False)
    (tmp_path / "mark.json").write_bytes(b"\xef\xbb\xbf" + words.encode())
    assert kv.run(tmp_path / "mark.json", golden=False).sweep(page_size=[8, 16])["page_size"] == [8, 16]
    (tmp_path / "latin.json").write_bytes(words.encode("latin-1"))
    with pytest.raises(kv.InputError, match="latin.json"):
        kv.run(tmp_path / "latin.json")


def test_a_dict_may_have_numbers_of_numpy():
    scenario = changed("cache.page_size", np.int64(16))
    assert kv.run(scenario, golden=False).report == kv.run(SMALL, golden=False).report
