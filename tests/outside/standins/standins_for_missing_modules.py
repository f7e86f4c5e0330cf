"""Modules that files with Triton kernels import for their host code, which is not run here: any attribute, any call.

Only the kernels are used. An object that a kernel itself needs fails in Triton's compiler, because it is no constexpr.
The package is imported file by file: its `__init__.py` files, which would start the host side, are read, not run.
"""
import ast
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import types

MISSING = ("torch", "transformers", "sqlalchemy", "yaml", "packaging", "einops", "vllm", "pandas", "tilelang")


class Anything:
    """Stands for any function, class or constant. As a decorator it returns what it decorates."""

    def __init__(self, name="anything", *arguments, **named):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name)

    def __call__(self, *arguments, **named):
        decorates = len(arguments) == 1 and not named and callable(arguments[0])
        return arguments[0] if decorates and not isinstance(arguments[0], Anything) else Anything(self._name)

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


class _Package(types.ModuleType):
    """A folder with an `__init__.py` that is not run: a name is imported from where that file imports it."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        with open(self.__init_file__, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and name in [one.asname or one.name for one in node.names]:
                here = self.__name__.split(".")
                base = ".".join(here[:len(here) + 1 - node.level]) + "." if node.level else ""
                source = (base + (node.module or "")).rstrip(".")
                original = next(one.name for one in node.names if (one.asname or one.name) == name)
                if source != self.__name__:
                    value = getattr(importlib.import_module(source), original)
                    setattr(self, name, value)  # an import of a submodule of that name would have set it to the module
                    return value
        try:
            return importlib.import_module(f"{self.__name__}.{name}")
        except ModuleNotFoundError:
            return Anything(name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name in self.names or name.split(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


class _Packages(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Folders of the package below `base`."""

    def __init__(self, base, first):
        self.base, self.first = base, first

    def find_spec(self, name, path=None, target=None):
        init = os.path.join(self.base, *name.split("."), "__init__.py")
        if name.split(".")[0] != self.first or not os.path.exists(init):
            return None
        spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
        spec.submodule_search_locations = [os.path.dirname(init)]
        return spec

    def create_module(self, spec):
        module = _Package(spec.name)
        module.__init_file__ = os.path.join(spec.submodule_search_locations[0], "__init__.py")
        return module

    def exec_module(self, module):
        pass


def use(base, first, replaced):
    """Before the package `first` below the folder `base` is imported; `replaced` are modules of it that are not run."""
    sys.meta_path[:0] = [_Finder(replaced), _Packages(base, first)]
    sys.meta_path.append(_Finder(MISSING))  # last: installed modules are used
