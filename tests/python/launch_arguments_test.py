"""Numbers as arguments of kernels, by the exact rounding of fractions; and values that are given twice."""
import dataclasses
import fractions
import math

import numpy as np
import pytest

import kvscope as kv
from kvscope import _core
from launch_test import BOX

# Copies the 24 bytes of its struct behind the pointer to the pointer.
COPY = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .align 8 .b8 p[32]) {
  .reg .b64 %rd<5>;
  ld.param.u64 %rd0, [p];
  ld.param.u64 %rd1, [p+8];
  ld.param.u64 %rd2, [p+16];
  ld.param.u64 %rd3, [p+24];
  st.global.u64 [%rd0], %rd1;
  st.global.u64 [%rd0+8], %rd2;
  st.global.u64 [%rd0+16], %rd3;
  ret;
}
"""
HEADER = "struct P { void* out; double f64; float f32; __half f16; __nv_bfloat16 bf16; unsigned u32; int s32; };"
FIELDS = {"f64": (0, 8), "f32": (8, 4), "f16": (12, 2), "bf16": (14, 2)}
FORMATS = {"f64": (11, 52), "f32": (8, 23), "f16": (5, 10), "bf16": (8, 7)}  # bits of exponent and mantissa


def nearest(value, exponent_bits, mantissa_bits):
    """The bit pattern nearest to a finite number, ties to even; None where that is infinity."""
    sign = 1 if math.copysign(1, value) < 0 else 0
    exact, bias = abs(fractions.Fraction(value)), (1 << exponent_bits - 1) - 1
    exponent = 1 - bias  # of subnormals
    while exact >= fractions.Fraction(2) ** (exponent + 1):
        exponent += 1
    step = fractions.Fraction(2) ** (exponent - mantissa_bits)
    units = round(exact / step)  # ties to even
    code = (exponent - 1 + bias << mantissa_bits) + units  # a carry goes to the exponent
    return None if code >= (1 << exponent_bits) - 1 << mantissa_bits else sign << exponent_bits + mantissa_bits | code


@pytest.fixture(scope="module")
def copy():
    return kv.Module(COPY)["copy"].with_struct("p", HEADER)


def stored(copy, name, value):
    out = np.zeros(24, np.uint8)
    assert copy.launch(args=[{"out": out, name: value}]).clean
    begin, size = FIELDS[name]
    assert not out[:begin].any() and not out[begin + size:].any()
    return int.from_bytes(out[begin:begin + size].tobytes(), "little")


TIES = [1 + 2**-8 + 2**-40, 1 + 2**-8, 1 + 3 * 2**-8 - 2**-40, 1 + 2**-11 + 2**-40, 1 + 2**-24 + 2**-50, 1 + 2**-24]
RANGE = [0.0, 1.0, 2.0**-25, 2.0**-24 * 1.5, 2.0**-134, 2.0**-133 * 1.5, 2.0**-150, 5e-324, 65504.0, 65519.999, 65520.0, 3.3895313892515355e38,
         3.3961775292304957e38, 3.4028234663852886e38, 3.4028235677973366e38, 1.7e308]


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_are_rounded_once_to_the_type_of_the_parameter(copy, name):
    for value in [*TIES, *RANGE, 3, True, np.float32(0.1), np.float64(0.1)]:
        for signed in (value, -value) if not isinstance(value, bool) else (value,):
            wanted = nearest(float(signed), *FORMATS[name])
            if wanted is None:
                with pytest.raises(kv.InputError, match=f"p.{name} is .*past the largest {name}"):
                    stored(copy, name, signed)
            else:
                assert stored(copy, name, signed) == wanted, (name, signed)


@pytest.mark.parametrize("name", FORMATS)
def test_infinities_and_nan_keep_their_sign(copy, name):
    exponent, mantissa = FORMATS[name]
    infinity = (1 << exponent) - 1 << mantissa
    sign = 1 << exponent + mantissa
    assert [stored(copy, name, value) for value in (math.inf, -math.inf)] == [infinity, sign | infinity]
    quiet = infinity | 1 << mantissa - 1
    assert [stored(copy, name, math.copysign(math.nan, sign)) for sign in (1, -1)] == [quiet, sign | quiet]


@pytest.mark.parametrize("args", [{"p": 1, 0: 2}, {0: 1, "p": 2}, {"0": 1, 0: 2}])
def test_a_parameter_that_is_named_twice_is_named(copy, args):
    with pytest.raises(kv.InputError, match=r"parameter 0 \(P p\) has a value already: .* names it again"):
        copy.launch(args=args)


def test_fields_of_a_union_that_are_set_twice_are_named():
    kernel = kv.Module(COPY)["copy"].with_struct("p", "struct P { void* out; float real; int rest[5]; };")
    fields = kernel.parameters[0].fields
    real, whole = "u.real", "u.whole"  # as debug information of the compiler has them
    union = (fields[0], (real, *fields[1][1:]), (whole, fields[1][1], 4, "s32", False, "int"), *fields[2:])
    kernel.parameters[0] = dataclasses.replace(kernel.parameters[0], fields=union)
    out = np.zeros(24, np.uint8)
    assert kernel.launch(args=[{"out": out, whole: 3, "rest[1]": 7}]).clean and out[0] == 3 and out[8] == 7
    with pytest.raises(kv.InputError, match=f"parameter p.{whole} overlaps parameter p.{real}, which has a value already"):
        kernel.launch(args=[{"out": out, real: 1.5, whole: 3}])
    with pytest.raises(kv.InputError, match="takes a number of type .s32, not None"):
        kernel.launch(args=[{"out": out, "rest[1]": None}])


def test_a_tensor_map_that_reaches_past_its_field_is_named():
    box = kv.Module(BOX.replace("map[128]", "map[192]"))["box"]
    kernel = box.with_struct("map", "struct alignas(64) M { unsigned long long map[16]; int after[16]; };")
    data, out = np.zeros((20, 16), np.float32), np.zeros(64, np.float32)
    one = kv.TensorMap(data, box=[16, 4])
    for field, more, words in (("map[8]", {}, "overlaps parameter map.map[9]"), ("map", {"map[3]": 5}, "overlaps parameter map.map,"),
                               ("mop", {}, "no field 'mop'")):
        with pytest.raises(kv.InputError, match=words.replace("[", "\\[")):
            kernel.launch(block=64, args=dict(map={field: one, **more}, out=out, row=0))
    assert kernel.launch(block=64, args=dict(map={"map": one, "after[0]": 5}, out=out, row=0)).clean


@pytest.mark.parametrize("elements", [1.5, np.float32(1), "1", None, True, [1]])
def test_an_offset_that_is_no_whole_number_is_named(copy, elements):
    out = np.zeros(64, np.uint8)
    assert copy.launch(args=[{"out": kv.offset(out, np.int8(8)), "u32": 3}]).clean and out[24] == 3
    with pytest.raises(kv.InputError, match="parameter p.out: the offset is .*: pass a whole number of elements"):
        copy.launch(args=[{"out": kv.offset(out, elements)}])
    box = kv.Module(BOX)["box"]
    with pytest.raises(kv.InputError, match="parameter map: the offset is "):
        box.launch(block=64, args=dict(map=kv.TensorMap(np.zeros((20, 16), np.float32), box=[16, 4], offset=elements), out=out, row=0))


@pytest.mark.parametrize("name, least", [("max_memory", 1), ("max_instructions", 1), ("max_reports", 0)])
def test_a_limit_below_its_range_is_named(copy, name, least):
    """An allocation named the rest of the memory, and max_reports=-1 was taken."""
    out = np.zeros(64, np.uint8)
    for low in (least - 1, -1, -(1 << 31), 1 << 63):
        with pytest.raises(kv.InputError, match=f"{name}: is {low}: pass a whole number from {least} to "):
            copy.launch(args=[{"out": out}], **{name: low})
    most = {"max_memory": 64 + 4096, "max_instructions": 100, "max_reports": 0}
    assert copy.launch(args=[{"out": out}], **{name: most[name]}).clean


@pytest.mark.parametrize("cluster", [0, -1, (1, 0), (1, 1, -2), (-1, -1)])
def test_a_cluster_without_ctas_is_named(copy, cluster):
    args = [{"out": np.zeros(24, np.uint8)}]
    assert copy.launch(cluster=(1, 1), args=args).clean
    with pytest.raises(kv.InputError, match="cluster is .*: pass numbers of at least 1"):
        copy.launch(cluster=cluster, args=args)
    options = {"grid": [1, 1, 1], "block": [1, 1, 1], "schedule": "late", "sum": "seq", "checks": [],
               "cluster": [int(n) for n in [*np.atleast_1d(cluster), 1, 1][:3]]}
    with pytest.raises(kv.GeometryError, match="cluster: .*: each extent is at least 1, or all are 0"):
        _core.launch(copy._module._core, copy.name, options, [], [(bytes(32), [])])
