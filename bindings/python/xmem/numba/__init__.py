# SPDX-License-Identifier: MIT
"""Strings in kernels that numba-cuda compiles."""
from .operations import NRT_decref
from .strings import (ManagedString, StringView, UDFString, managed_string, string_view,
                      udf_string)

ManagedUDFString = ManagedString
managed_udf_string = managed_string

__all__ = ["ManagedString", "ManagedUDFString", "NRT_decref", "StringView", "UDFString",
           "managed_string", "managed_udf_string", "string_view", "udf_string"]
