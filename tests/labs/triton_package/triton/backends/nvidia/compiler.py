"""The two functions that start ptxas. triton_compile.py replaces them: ptxas is not in the sandbox's reach."""


def get_ptxas_version(*arguments):
    raise RuntimeError("ptxas was asked for its version")


class CUDABackend:
    def make_cubin(self, *arguments):
        raise RuntimeError("ptxas was started")
