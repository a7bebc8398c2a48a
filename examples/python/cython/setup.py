# SPDX-License-Identifier: MIT
"""Builds the example: pip install Cython setuptools, then python setup.py build_ext --inplace."""
import xmem
from Cython.Build import cythonize
from setuptools import Extension, setup

setup(name="inverter", ext_modules=cythonize([
    Extension("inverter", ["inverter.pyx"], language="c++", include_dirs=[xmem.get_include()])]))
