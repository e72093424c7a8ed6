from runpy import run_path

from setuptools import setup

# by path: the folder of setup.py is not where pip's builds look for modules
setup(
    cffi_modules=["build.py:ffibuilder"],
    cmdclass={"build_ext": run_path("compile_core.py")["BuildCore"]},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},  # one wheel for 3.11 and later
)
