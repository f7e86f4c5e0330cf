"""@jit, and the parameters of a kernel as Triton's JITFunction describes them."""
import inspect

from .language import constexpr


class Parameter:
    def __init__(self, parameter):
        self.name = parameter.name
        self.default = parameter.default
        self.is_constexpr = parameter.annotation is constexpr or "constexpr" in str(parameter.annotation)


class JITFunction:
    def __init__(self, function):
        self.fn = function
        self.__name__ = function.__name__
        self.params = [Parameter(one) for one in inspect.signature(function).parameters.values()]
        self.arg_names = [one.name for one in self.params]


def jit(function):
    return JITFunction(function)
