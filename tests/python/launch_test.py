"""Kernels on the virtual GPU: arguments, changes of arrays, reports, signals."""
import os
import pathlib
import signal
import sys
import threading
import time
import types
import warnings

import numpy as np
import pytest

import kvscope as kv

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "apps" / "examples"

RACE = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry race(.param .u64 out) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 tile[512];
  mov.u32 %r0, %tid.x;
  shl.b32 %r1, %r0, 2;
  mov.u32 %r2, tile;
  add.s32 %r1, %r1, %r2;
  st.shared.u32 [%r1], %r0;
  ld.shared.u32 %r3, [tile];
  ld.param.u64 %rd0, [out];
  mul.wide.u32 %rd1, %r0, 4;
  add.s64 %rd0, %rd0, %rd1;
  st.global.u32 [%rd0], %r3;
  ret;
}
"""
ENDLESS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry endless(.param .u64 out) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd0, [out];
LOOP:
  ld.global.u32 %r0, [%rd0];
  add.s32 %r0, %r0, 1;
  st.global.u32 [%rd0], %r0;
  bra LOOP;
}
"""
STRUCT = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry fill(.param .align 8 .b8 p[16]) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd0, [p];
  ld.param.u32 %r0, [p+8];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd1, %r1, 4;
  add.s64 %rd0, %rd0, %rd1;
  st.global.u32 [%rd0], %r0;
  ret;
}
"""
# typed(float*, int const*, long*) with its name in C++.
TYPED = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry _Z5typedPfPKiPl(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }
"""
HEADER = "struct Params { int* out; int value; float unused; };"
# One thread copies a box by TMA, waits for it, and every thread writes one element of the box.
BOX = """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry box(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 row) {
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<5>;
  .shared .align 128 .b8 tile[256];
  .shared .align 8 .b8 bar[8];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  mov.u32 %r2, bar;
  setp.ne.s32 %p0, %r0, 0;
  @%p0 bra READY;
  mbarrier.init.shared.b64 [%r2], 1;
  fence.proxy.async;
READY:
  bar.sync 0;
  @%p0 bra WAIT;
  mbarrier.arrive.expect_tx.shared.b64 %rd0, [%r2], 256;
  mov.b64 %rd1, map;
  cvta.param.u64 %rd1, %rd1;
  ld.param.u32 %r3, [row];
  mov.u32 %r4, 0;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r4, %r3}], [%r2];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;
  @!%p1 bra WAIT;
  shl.b32 %r5, %r0, 2;
  add.s32 %r5, %r5, %r1;
  ld.shared.u32 %r6, [%r5];
  ld.param.u64 %rd2, [out];
  mul.wide.u32 %rd3, %r0, 4;
  add.s64 %rd2, %rd2, %rd3;
  st.global.u32 [%rd2], %r6;
  ret;
}
"""


@pytest.fixture(scope="module")
def scale():
    return kv.load(EXAMPLES / "scale.ptx")["scale"]


def test_a_launch_writes_the_callers_array(scale):
    data = np.arange(64, dtype=np.float32)
    result = scale.launch(grid=2, block=32, args=[data, 2.5])
    assert result.clean and not result.reports and result.finished
    np.testing.assert_array_equal(data, np.arange(64, dtype=np.float32) * 2.5)
    assert result.counters["runs"] == result.steps > 0 and result.profile().by_line()


def test_an_access_outside_of_an_array_is_reported(scale):
    data = np.ones(60, np.float32)
    result = scale.launch(grid=2, block=32, args=[data, 2])
    assert not result.clean and result.reports[0].kind == "OUT_OF_BOUNDS"


def test_an_offset_begins_inside_the_array(scale):
    data = np.ones(64, np.float32)
    assert scale.launch(block=32, args=[kv.offset(data, 32), 3.0]).clean
    assert (data[:32] == 1).all() and (data[32:] == 3).all()
    with pytest.raises(kv.IndexError):
        scale.launch(block=32, args=[kv.offset(data, 65), 3.0])


def test_a_wrong_argument_is_named_with_the_signature(scale):
    data = np.ones(64, np.float32)
    with pytest.raises(kv.InputError, match="takes 2"):
        scale.launch(args=[data])
    with pytest.raises(kv.InputError, match="there is no parameter 'x'.*scale"):
        scale.launch(args={"x": data})
    with pytest.raises(kv.InputError, match="not an array"):
        scale.launch(args=[data, data])
    with pytest.raises(kv.InputError, match="contiguous"):
        scale.launch(args=[data[::-1], 1.0])
    with pytest.raises(kv.InputError, match="seed"):
        scale.launch(args=[data, 1.0], schedule="seed:0")
    with pytest.raises(kv.InputError, match="checks"):
        scale.launch(args=[data, 1.0], checks="rase")
    with pytest.raises(kv.GeometryError):
        scale.launch(block=4096, args=[data, 1.0])
    with pytest.raises(kv.InputError, match="no kernel"):
        kv.load(EXAMPLES / "scale.ptx")["decode"]


def test_a_file_that_is_no_ptx_is_named_with_the_next_step(tmp_path):
    program, source, ptx = tmp_path / "program", tmp_path / "k.cu", tmp_path / "windows.ptx"
    program.write_bytes(b"\x7fELF\x02\x01\x01\x00\xff")
    source.write_text("__global__ void k() {}\n")
    with pytest.raises(kv.InputError, match="is a compiled program or library .ELF., not PTX: .* nvcc -ptx"):
        kv.load(program)
    with pytest.raises(kv.InputError, match="is CUDA source: .*kv.compile"):
        kv.load(source)
    with pytest.raises(kv.InputError, match=r"name of a file, .*: write kv.load\('k.ptx'\)"):
        kv.Module("k.ptx")
    with pytest.raises(kv.InputError, match=r"name of a file, .*: write kv.compile\(open\('k.cu'\).read\(\)\)"):
        kv.Module("k.cu")
    ptx.write_bytes((EXAMPLES / "scale.ptx").read_bytes().replace(b"\n", b"\r\n"))
    assert kv.load(ptx).ptx == (EXAMPLES / "scale.ptx").read_text()


def test_a_module_is_a_collection_of_its_kernels():
    head = ".version 8.0\n.target sm_90\n.address_size 64\n"
    module = kv.Module(head + "".join(f".visible .entry {name}() {{\n  ret;\n}}\n" for name in ("fill", "_Z4copyPf")))
    assert (list(module), len(module)) == (["fill", "copy"], 2)
    assert [module[name].short_name for name in module] == ["fill", "copy"]
    assert "copy" in module and "_Z4copyPf" in module and "decode" not in module and 5 not in module
    with pytest.raises(kv.InputError, match="^there is no kernel 'decode': kernels are fill, copy$"):
        module["decode"]
    with pytest.raises(kv.InputError, match='^name is 0: pass a text, such as "decode"$'):
        module[0]


def test_a_module_without_kernels_names_templates():
    # What a compiler writes for a template that the source does not instantiate.
    module = kv.Module(".version 8.0\n.target sm_90\n.address_size 64\n")
    assert repr(module) == "<kvscope.Module without kernels>"
    assert (list(module), len(module), "f" in module) == ([], 0, False)
    with pytest.raises(kv.InputError, match=r"^there is no kernel 'f': kernels are none. A kernel of a template is "
                                            r"compiled if the source instantiates it, such as template __global__ "
                                            r"void decode<64>\(float\*\);$"):
        module["f"]


def test_parameters_that_only_nvcc_named_are_numbers_in_the_signature():
    text = (".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry _Z5scalePff(.param .u64 _Z5scalePff_param_0, "
            ".param .f32 _Z5scalePff_param_1) {\n  ret;\n}\n")
    kernel = kv.Module(text)["scale"]
    assert kernel.signature == "scale(.u64 0, .f32 1)"
    assert [p.ptx_name for p in kernel.parameters] == ["_Z5scalePff_param_0", "_Z5scalePff_param_1"]
    with pytest.raises(kv.InputError, match=r"1 arguments given, kernel scale\(.u64 0, .f32 1\) takes 2"):
        kernel.launch(args=[np.ones(1, np.float32)])


def test_an_array_that_is_read_only_is_not_changed(scale):
    data = np.ones(64, np.float32)
    data.flags.writeable = False
    with pytest.raises(kv.InputError, match="read-only"):
        scale.launch(grid=2, block=32, args=[data, 2.0])
    assert (data == 1).all()


def test_overlapping_arrays_are_rejected():
    data = np.ones(64, np.float32)
    kernel = kv.Module(RACE)["race"]
    assert kernel.launch(block=32, args=[data], checks="none").clean
    with pytest.raises(kv.InputError, match="0: |takes 1"):
        kernel.launch(args=[data[:32], data[16:48]])


def test_a_race_is_reported_and_none_without_checks():
    out = np.zeros(128, np.uint32)
    race = kv.Module(RACE)["race"]
    result = race.launch(block=128, args={"out": out})
    assert any(report.kind.startswith("RACE") for report in result.reports)
    assert not race.launch(block=128, args=[out], checks="none").reports


def test_names_of_parameters_come_from_the_source():
    ptx = (EXAMPLES / "scale.ptx").read_text()
    kernel = kv.Module(ptx, source=(EXAMPLES / "scale.cu").read_text())["scale"]
    assert [p.name for p in kernel.parameters] == ["data", "factor"]
    data = np.ones(32, np.float32)
    assert kernel.launch(block=32, args=dict(data=data, factor=4)).clean and (data == 4).all()


def test_a_struct_is_a_dict_a_record_or_bytes():
    plain = kv.Module(STRUCT)["fill"]
    out = np.zeros(32, np.int32)
    kernel = plain.with_struct("p", HEADER)
    assert kernel.launch(block=32, args={"p": {"out": out, "value": -7}}).clean and (out == -7).all()
    assert kernel.launch(block=32, args=[{"out": kv.offset(out, 0), "value": 9}]).clean and (out == 9).all()
    record = np.zeros((), np.dtype([("out", "u8"), ("value", "i4"), ("unused", "f4")]))
    assert not plain.launch(block=32, args=[record]).clean  # a null pointer
    assert not plain.launch(block=32, args=[bytes(16)]).clean
    wrong_values = ({"n": 1}, "no field 'n'"), ({"value": 2 ** 40}, "does not fit"), (b"12", "16 bytes"), (3, "struct")
    for wrong, words in wrong_values:
        with pytest.raises(kv.InputError, match=words):
            kernel.launch(args=[wrong])
    with pytest.raises(kv.InputError, match="with_struct"):
        plain.launch(args=[{"out": out}])
    with pytest.raises(kv.InputError, match="16"):
        plain.with_struct("p", "struct P { int a; };")


def test_a_tensor_map_copies_the_rows_of_its_box(tmp_path):
    data = np.arange(20 * 16, dtype=np.float32).reshape(20, 16)
    out = np.zeros(64, np.float32)
    box = kv.Module(BOX)["box"]
    result = box.launch(block=64, args=dict(map=kv.TensorMap(data, box=[16, 4]), out=out, row=18))
    assert result.clean, result
    np.testing.assert_array_equal(out, np.concatenate([data[18:].reshape(-1), np.zeros(32, np.float32)]))
    assert result.trace(tmp_path / "box.kvt") == 1 and (tmp_path / "box.kvt").stat().st_size > 0
    with pytest.raises(kv.GeometryError, match="256"):
        box.launch(block=64, args=dict(map=kv.TensorMap(data, box=[300, 1]), out=out, row=0))
    with pytest.raises(kv.InputError, match="not a tensor map"):
        box.launch(args=dict(map=bytes(128), out=kv.TensorMap(data, box=[16, 4]), row=0))


def test_schedules_and_threads_give_the_same_bytes(scale):
    out = []

    def launch():
        data = np.arange(64, dtype=np.float32)
        result = scale.launch(grid=2, block=32, args=[data, 0.1], schedule="seed:7")
        out.append((data.tobytes(), result.steps))
    threads = [threading.Thread(target=launch) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(out) == 8 and len(set(out)) == 1


def test_a_signal_stops_a_launch_and_changes_no_array():
    out = np.zeros(1, np.uint32)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    began = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        kv.Module(ENDLESS)["endless"].launch(args=[out], max_instructions=1 << 40)
    assert time.monotonic() - began < 5 and out[0] == 0


def test_a_module_runs_on_its_own_target_unless_another_is_given(tmp_path):
    text = RACE.replace("sm_90", "sm_100a")
    out = np.zeros(32, np.uint32)
    (tmp_path / "k.ptx").write_text(text)
    for module in (kv.Module(text), kv.load(tmp_path / "k.ptx"), kv.Module(RACE.replace("sm_90", "sm_75"))):
        assert module["race"].launch(block=32, args=[out], checks="none").clean
    with pytest.raises(kv.GeometryError, match="the module is for sm_100a, the virtual GPU is sm_90: pass --target 100"):
        kv.Module(text, target=90)["race"].launch(block=32, args=[out])


def test_errors_of_a_text_are_input_errors():
    with pytest.raises(kv.InputError, match="bad.ptx"):
        kv.Module("add.s32 %r1", "bad.ptx")
    with pytest.raises(kv.InputError):
        kv.load("missing.ptx")


@pytest.mark.parametrize("compiler", ["nvcc", "nvrtc"])
def test_compile_names_what_to_install_or_compiles(compiler):
    source = "#ifndef HIGHER\n#error HIGHER is missing\n#endif\n" + (EXAMPLES / "scale.cu").read_text()
    try:
        module = kv.compile(source, compiler=compiler, options=["-DHIGHER=1"])
    except kv.CompileError as error:
        assert compiler in str(error) and "pip install nvidia-cuda-nvrtc-cu12" in str(error)
        pytest.skip(str(error))
    kernel = module["scale"]
    assert [p.name for p in kernel.parameters] == ["data", "factor"]
    data = np.ones(32, np.float32)
    result = kernel.launch(block=32, args=dict(data=data, factor=2))
    assert result.clean and (data == 2).all() and "kernel.cu:" in result.profile().by_line()[0]["source"]
    with pytest.raises(kv.CompileError, match="HIGHER is missing"):
        kv.compile(source, compiler=compiler)


def test_without_a_choice_nvcc_is_taken_before_nvrtc(monkeypatch):
    chosen = []
    for name, finder in (("nvcc", "_nvcc"), ("nvrtc", "library")):
        monkeypatch.setattr(f"kvscope._compile.{finder}", lambda name=name: name)
        monkeypatch.setattr(f"kvscope._compile._by_{name}", lambda tool, *_: chosen.append(tool) or STRUCT)
    for compiler in (None, "nvcc", "nvrtc"):
        kv.compile("", compiler=compiler)
    monkeypatch.setattr("kvscope._compile._nvcc", lambda: None)
    kv.compile("")
    assert chosen == ["nvcc", "nvcc", "nvrtc", "nvrtc"]
    with pytest.raises(kv.CompileError, match="nvcc is not installed"):
        kv.compile("", compiler="nvcc")


def test_an_unknown_compiler_is_an_error():
    with pytest.raises(kv.InputError, match="nvrtc"):
        kv.compile("", compiler="gcc")


def test_without_triton_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton.runtime.driver", None)
    with pytest.raises(kv.CompileError, match="pip install triton"):
        kv.triton.activate()


def test_a_sampled_launch_runs_some_ctas_and_tells():
    y = np.ones(128, np.float32)
    kernel = kv.Module((EXAMPLES / "scale.ptx").read_text(encoding="utf-8"), "scale.ptx")["scale"]
    result = kernel.launch(grid=4, block=32, args=[y, 2.5], ctas="0,last")
    assert (result.ctas, result.grid_ctas) == (2, 4)
    assert "sampled: 2 of 4 CTAs ran" in repr(result)
    assert y[[0, 31, 32, 95, 96]].tolist() == [2.5, 2.5, 1, 1, 2.5]
    with pytest.raises(ValueError, match="'9' names no CTA of this grid, which has CTAs 0 to 3"):
        kernel.launch(grid=4, block=32, args=[y, 2.5], ctas="9")


def test_sums_of_matrix_instructions_are_those_of_fractions():
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
    import matrix_sums

    kernel = kv.Module(matrix_sums.ANY_KERNEL, "product.ptx")["product"]
    rng = np.random.default_rng(5)
    told_apart = set()
    for _ in range(24):
        # Powers of two apart, so that lower bits are dropped; no subnormal number, to which the test's formula does not apply.
        a, b = (np.float16(rng.uniform(1, 2, 16) * 2.0**rng.integers(-6, 1, 16) * rng.choice([-1, 1], 16)) for _ in range(2))
        c = np.float32(rng.uniform(-4, 4))
        got = {}
        for how in matrix_sums.NAMES:
            out = np.zeros(32, np.float32)
            result = kernel.launch(block=32, args=[out, matrix_sums.words_of(a, b, c)], sum=how)
            assert result.clean and result.sum == how
            assert out.tobytes() == np.full(32, matrix_sums.summed(how, c, a, b)).tobytes(), how
            got[how] = out[0].tobytes()
        told_apart.add(tuple(got[how] != got["seq"] for how in ("exact", "hopper")))
    assert (True, True) in told_apart
    out = np.zeros(32, np.float32)
    result = kernel.launch(block=32, args=[out, matrix_sums.words_of(a, b, c)])
    assert (result.sum, out[0]) == ("seq", matrix_sums.summed("seq", c, a, b))
    for wrong in ("ampere", 3, None):
        with pytest.raises(kv.InputError, match="sum is .*: pass one of seq, exact, hopper"):
            kernel.launch(block=32, args=[out, matrix_sums.words_of(a, b, c)], sum=wrong)


def test_jobs_give_the_results_of_one_thread_or_tell_why_not():
    kernel = kv.Module((EXAMPLES / "scale.ptx").read_text(encoding="utf-8"), "scale.ptx")["scale"]
    ys = [np.arange(128, dtype=np.float32) for _ in range(2)]
    one, several = (kernel.launch(grid=4, block=32, args=[y, 2.5], jobs=jobs) for y, jobs in zip(ys, (1, 3)))
    assert (one.threads, several.threads, several.one_thread) == (1, 3, "")
    assert ys[0].tobytes() == ys[1].tobytes() and repr(one) == repr(several) and one.counters == several.counters
    single = kernel.launch(grid=1, block=32, args=[ys[0], 2.5], jobs=3)
    assert (single.threads, single.one_thread) == (1, "it has one CTA")
    with pytest.raises(ValueError, match="jobs: 300 threads: 1 to 256"):
        kernel.launch(grid=4, block=32, args=[ys[0], 2.5], jobs=300)


def test_a_launch_of_triton_takes_sum_from_activate(monkeypatch):
    # In place of Triton: its driver, and a kernel that keeps the options it runs with.
    driver = types.SimpleNamespace(_active=None)
    driver.set_active = lambda gpu: setattr(driver, "_active", gpu)
    fake = types.SimpleNamespace(driver=driver, GPUTarget=lambda *target: target)
    monkeypatch.setattr(kv.triton, "_triton", lambda module: fake)
    seen = []

    class Kernel:
        def __getitem__(self, grid):
            return lambda *args: (seen.append(driver._active.options), driver._active.results.append("result"))

    assert kv.triton.launch(Kernel(), 1, checks="races") == "result"
    with kv.triton.activate(sum="exact", checks="init"):
        with kv.triton.activate(sum="hopper"):
            kv.triton.launch(Kernel(), 1)
        kv.triton.launch(Kernel(), 1, checks="races")
    with kv.triton.activate():
        kv.triton.launch(Kernel(), 1)
    assert [options.get("sum") for options in seen] == [None, "hopper", "exact", None]
    assert [options["checks"] for options in seen] == ["races", "all", "races", "all"]
    assert driver._active is None


def launch_notes(kernel, **options):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        kernel.launch(**options)
    assert all(one.category is kv.LaunchWarning and one.filename == __file__ for one in found)
    return [str(one.message) for one in found]


def test_a_launch_without_a_block_warns_if_the_kernel_has_threads(scale):
    """One thread computes one element, and the launch is clean."""
    data = np.ones(4, np.float32)
    assert launch_notes(scale, args=[data, 2.0]) == [
        "block is not given, so that a CTA has 1 thread: pass the threads that your program launches"]
    assert data.tolist() == [2, 1, 1, 1]
    assert launch_notes(scale, block=1, args=[data, 2.0]) == []
    assert launch_notes(kv.Module(TYPED)["typed"], args=[None, None, None]) == []  # no %tid


def test_an_array_of_f32_for_halves_warns_and_names_the_parameter_of_the_source():
    """A kernel reads f32 ones as bf16 0, 1, 0, 1, and the launch is clean."""
    ptx = TYPED.replace("_Z5typedPfPKiPl(.param .u64 a, .param .u64 b, ", "_Z5typedPK13__nv_bfloat16P7__half2(.param .u64 a, ")
    kernel = kv.Module(ptx, source="__global__ void typed(const __nv_bfloat16* x, __half2* pairs) {}")["typed"]
    ones = np.ones(4, np.float32)
    assert launch_notes(kernel, args=[ones.view(np.uint16), ones.astype(np.float16)]) == []
    assert launch_notes(kernel, args=[kv.bits(ones.view(np.uint16), "bf16"), ones.view(np.uint32)]) == []
    assert launch_notes(kernel, args=[ones, np.ones(4)]) == [
        "argument 0 (x) has elements of f32, but the kernel takes __nv_bfloat16 const*: pass bf16",
        "argument 1 (pairs) has elements of f64, but the kernel takes __half2*: pass f16"]


def test_an_array_of_other_elements_than_the_source_states_warns():
    """A table of int64, which NumPy makes of a list, read as int is [5, 0, 6, 0]."""
    kernel = kv.Module(TYPED)["typed"]
    f, i, l = np.ones(4, np.float32), np.ones(4, np.int32), np.ones(4, np.int64)
    assert launch_notes(kernel, args=[f, i, l]) == []
    assert launch_notes(kernel, args=dict(c=l.view(np.uint64), b=i.view(np.uint32), a=None)) == []
    assert launch_notes(kernel, args=[f.view(np.int32), l, f]) == [
        "argument 0 has elements of i32, but the kernel takes float*: pass f32",
        "argument 1 has elements of i64, but the kernel takes int const*: pass i32",
        "argument 2 has elements of f32, but the kernel takes long*: pass i64"]
    assert launch_notes(kernel, args=dict(a=f, b=kv.offset(l, 2), c=l)) == [
        "argument 1 has elements of i64, but the kernel takes int const*: pass i32"]
    # One memory under two types: each parameter has the type of its view.
    assert launch_notes(kernel, args=[f, f.view(np.int32), None]) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(kv.LaunchWarning):
            kernel.launch(args=[f, l, None])
