"""Prints where the package triton is, in five lines; the third and the last may be empty:

    this Python                                          /usr/bin/python3.11
    its standard library                                 /usr/lib/python3.11
    its libpython, where that is outside of /usr/lib
    the package                                          .../site-packages/triton
    what pip wrote about it, for its entry points        .../site-packages/triton-3.9.0.dist-info

`kvscope lab` runs this file as a program, outside the sandbox. It imports nothing of triton, and prints nothing where the
package is missing or is not a folder.
"""
import glob
import importlib.machinery
import os
import sys
import sysconfig


def shared_library():
    name = sysconfig.get_config_var("INSTSONAME") or ""
    path = os.path.join(sysconfig.get_config_var("LIBDIR") or "", name)
    outside = not path.startswith(("/usr/lib/", "/usr/lib64/", "/lib/"))
    return os.path.realpath(path) if ".so" in name and outside and os.path.isfile(path) else ""


found = importlib.machinery.PathFinder.find_spec("triton", [folder for folder in sys.path if os.path.isabs(folder)])
if found is not None and found.submodule_search_locations and found.origin:
    python = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    package = os.path.realpath(os.path.dirname(found.origin))
    facts = sorted(glob.glob(os.path.join(glob.escape(os.path.dirname(package)), "triton-*.dist-info")))
    print(python, os.path.dirname(os.path.realpath(os.__file__)), shared_library(), package, *facts[-1:], sep="\n")
