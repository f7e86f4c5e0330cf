"""Every function of libcudart that writes through a pointer: null returns cudaErrorInvalidValue and does not end the program.

The functions and their parameters are read from gpu/driver/face_*.cpp, so that a new function is tested without a new line here.
"""

import ctypes
import pathlib
import re
import sys
import unittest

LIBRARY = None  # set by main
FACES = sorted((pathlib.Path(__file__).resolve().parents[3] / "gpu/driver").glob("face_*.cpp"))
INVALID_VALUE = 1

# Documented as optional.
MAY_BE_NULL = {
    "cudaDeviceGetStreamPriorityRange": {"least", "greatest"},
    "cudaFuncGetParamInfo": {"size"},
    "cudaGetDriverEntryPoint": {"found"},
    "cudaGetDriverEntryPointByVersion": {"found"},
    "cudaGraphExecUpdate": {"info"},
    "cudaGraphGetNodes": {"nodes"},
    "cudaStreamGetCaptureInfo": {"id", "graph"},
    "cudaStreamGetCaptureInfo_v2": {"id", "graph"},
}
# Arrays of pointers that a function only reads.
INPUTS = {"arguments"}
# Outputs that the declaration does not tell from an input.
UNTYPED = {"cudaMemPoolGetAttribute": {"value"}, "__cudaPopCallConfiguration": {"stream"}}


def parameters_of(text, start):
    """The parameters of the declaration whose first parenthesis is at `start`."""
    depth, out = 0, [""]
    for character in text[start:]:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return [" ".join(p.split()) for p in out]
        if character == "," and depth == 1:
            out.append("")
        elif depth > 1 or character != "(":
            out[-1] += character


def output_name(function, parameter):
    """The name of a parameter that the function writes through; None if it does not."""
    match = re.fullmatch(r"(const char\*\*|(?!const )[\w:]+(?: long long)?\*{1,2}) ?(\w*)", parameter)
    if match is None or match[2] in INPUTS:
        return None
    if match[1] in ("void*", "char*") and match[2] not in UNTYPED.get(function, {"text"}):
        return None
    return match[2] or "(unnamed)"


def functions():
    """Each function with the names of its parameters: those that it writes through, None for the others."""
    for face in FACES:
        text = face.read_text()
        for match in re.finditer(r"^KVSCOPE_CUDA int (\w+)\(", text, re.M):
            names = [output_name(match[1], p) for p in parameters_of(text, match.end() - 1)]
            if any(names):
                yield match[1], names


def status(function, arguments):
    call = getattr(LIBRARY, function)
    call.restype = ctypes.c_int
    return call(*[ctypes.c_void_p(a) for a in arguments])


class NullOutputs(unittest.TestCase):
    def test_a_null_output_is_an_invalid_value(self):
        places = [ctypes.create_string_buffer(4096) for _ in range(8)]
        tested = 0
        for function, names in functions():
            for null, name in enumerate(names):
                if name is None or name in MAY_BE_NULL.get(function, ()):
                    continue
                tested += 1
                arguments = [ctypes.addressof(places[i]) if n and i != null else 0 for i, n in enumerate(names)]
                with self.subTest(function=function, output=name):
                    print(function, name, file=sys.stderr, flush=True)  # the last line names a call that ends the program
                    self.assertEqual(status(function, arguments), INVALID_VALUE)
        self.assertGreater(tested, 50)

    def test_optional_outputs_may_be_null(self):
        place = ctypes.create_string_buffer(8)
        self.assertEqual(status("cudaDeviceGetStreamPriorityRange", [0, 0]), 0)
        self.assertEqual(status("cudaStreamGetCaptureInfo_v2", [0, ctypes.addressof(place), 0, 0]), 0)

    def test_the_optional_outputs_are_parameters(self):
        known = {function: set(filter(None, names)) for function, names in functions()}
        for function, names in MAY_BE_NULL.items():
            self.assertLessEqual(names, known[function], function)


if __name__ == "__main__":
    LIBRARY = ctypes.CDLL(sys.argv.pop())
    unittest.main()
