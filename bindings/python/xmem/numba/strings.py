# SPDX-License-Identifier: MIT
"""The types of strings in kernels, and how numba-cuda finds what it counts in them.

``string_view`` looks at characters of somebody else, and nobody counts it. ``managed_string`` is
a string that a kernel has made: numba-cuda puts calls of NRT_incref and NRT_decref for it into the
code. The layouts are those of xmem/device/string.cuh, which are cuDF's.
"""
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.descriptor import cuda_target
from numba.cuda.extending import models, register_model

from . import runtime


class StringView(types.Type):
    """The type of ``string_view``, which is its only instance."""

    def __init__(self) -> None:
        super().__init__(name="string_view")


class UDFString(types.Type):
    """The type of the member ``udf_string`` of a managed string."""

    def __init__(self) -> None:
        super().__init__(name="udf_string")


class ManagedString(types.Type):
    """The type of ``managed_string``, which is its only instance."""

    def __init__(self) -> None:
        super().__init__(name="managed_string")


string_view = StringView()
udf_string = UDFString()
managed_string = ManagedString()


@register_model(StringView)
class string_view_model(models.StructModel):
    _members = (("p", types.voidptr), ("bytes", types.int32), ("char_pos", types.int32),
                ("byte_pos", types.int32))

    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, self._members)


@register_model(UDFString)
class udf_string_model(models.StructModel):
    _members = (("m_data", types.voidptr), ("m_bytes", types.int32), ("m_capacity", types.int32))

    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, self._members)


@register_model(ManagedString)
class managed_string_model(models.StructModel):
    _members = (("meminfo", types.voidptr), ("udf_string", udf_string))

    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, self._members)

    def has_nrt_meminfo(self) -> bool:
        return True

    def get_nrt_meminfo(self, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        runtime.provide(builder.module)
        udf_str_and_meminfo = cgutils.create_struct_proxy(managed_string)(
            cuda_target.target_context, builder, value=value)
        return udf_str_and_meminfo.meminfo
