"""Modules that files with Triton kernels import for their host code, which is not run here: any attribute, any call.

Only the kernels are used. An object that a kernel itself would need fails in Triton's compiler, because it is no constexpr.
"""
import importlib.abc
import importlib.machinery
import sys
import types

MISSING = ("torch", "transformers", "sqlalchemy", "yaml", "packaging", "einops", "numpy", "vllm", "pandas", "tilelang")


class Anything:
    """Stands for any function, class or constant. As a decorator it returns what it decorates."""

    def __init__(self, name="anything", *arguments, **named):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name)

    def __call__(self, *arguments, **named):
        only_function = len(arguments) == 1 and not named and callable(arguments[0]) and not isinstance(arguments[0], Anything)
        return arguments[0] if only_function else Anything(self._name)

    def __getitem__(self, key):
        return Anything(self._name)

    def __iter__(self):
        return iter(())

    def __mro_entries__(self, bases):
        return (object,)

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __bool__(self):
        return False

    def __int__(self):
        return 0

    def __index__(self):
        return 0

    def __lt__(self, other):
        return False

    __gt__ = __ge__ = __le__ = __lt__

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


class _Module(types.ModuleType):
    __version__ = "2.8.0"
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in MISSING:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.append(_Finder())  # last: installed modules are used
