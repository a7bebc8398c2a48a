# SPDX-License-Identifier: MIT
"""The operations on strings: their types, and the calls of shims that they become.

An operand is a ``string_view``, a ``managed_string`` or a literal. Each shim takes string_views by
address, so operands of the other types are viewed first. A view borrows: it adds no reference.
"""
from __future__ import annotations

import operator
from typing import Any, Callable

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.imputils import impl_ret_new_ref
from numba.cuda.cudadecl import registry as typings
from numba.cuda.cudaimpl import lower, lower_cast
from numba.cuda.extending import intrinsic
from numba.cuda.typing.templates import AbstractTemplate, AttributeTemplate, signature

from . import runtime
from .strings import (ManagedString, StringView, UDFString, managed_string, string_view,
                      udf_string)

_STRINGS = (StringView, ManagedString)
_INT = ir.IntType(32)
_POINTER = cgutils.voidptr_t


# ---- Operands ----

@lower_cast(ManagedString, StringView)
def view_managed(context: Any, builder: Any, fromty: Any, toty: Any, value: Any) -> Any:
    managed = cgutils.create_struct_proxy(managed_string)(context, builder, value=value)
    string = cgutils.create_struct_proxy(udf_string)(context, builder, value=managed.udf_string)
    view = cgutils.create_struct_proxy(string_view)(context, builder)
    view.p, view.bytes = string.m_data, string.m_bytes
    view.char_pos = view.byte_pos = context.get_constant(types.int32, 0)
    return view._getvalue()


@lower_cast(types.StringLiteral, StringView)
def view_literal(context: Any, builder: Any, fromty: Any, toty: Any, value: Any) -> Any:
    text = fromty.literal_value
    view = cgutils.create_struct_proxy(string_view)(context, builder)
    view.p = context.insert_string_const_addrspace(builder, text)
    view.bytes = context.get_constant(types.int32, len(text.encode()))
    view.char_pos = view.byte_pos = context.get_constant(types.int32, 0)
    return view._getvalue()


def _is_string(given: Any) -> bool:
    return isinstance(given, (*_STRINGS, types.StringLiteral))


def _operands(context: Any, builder: Any, sig: Any, args: Any) -> list[ir.Value]:
    """What a shim takes for the arguments of a call: addresses of views, and numbers."""
    found = []
    for given, value in zip(sig.args, args):
        if _is_string(given):
            value = context.cast(builder, value, given, string_view)
            value = builder.bitcast(cgutils.alloca_once_value(builder, value), _POINTER)
        found.append(value)
    return found


# ---- Calls ----

def _call(builder: Any, name: str, args: list[ir.Value]) -> None:
    """Call a shim. Its status is always 0: memory that there is not gives a null string."""
    runtime.link()
    kind = ir.FunctionType(_INT, [arg.type for arg in args])
    builder.call(cgutils.get_or_insert_function(builder.module, kind, f"xmem_{name}_shim"), args)


def _make(name: str) -> Callable[..., Any]:
    """The lowering of an operation that returns a new string."""
    def lowering(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        operands = _operands(context, builder, sig, args)
        managed = cgutils.create_struct_proxy(managed_string)(context, builder)
        outputs = [builder.bitcast(managed._get_ptr_by_name(member), _POINTER)
                   for member in ("meminfo", "udf_string")]
        _call(builder, name, outputs + operands)
        return impl_ret_new_ref(context, builder, managed_string, managed._getvalue())
    return lowering


def _number(context: Any, builder: Any, name: str, sig: Any, args: Any) -> ir.Value:
    out = cgutils.alloca_once(builder, _INT)
    _call(builder, name, [out, *_operands(context, builder, sig, args)])
    return builder.load(out)


def _answer(name: str) -> Callable[..., Any]:
    """The lowering of an operation that returns an int32 or a bool."""
    def lowering(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        found = _number(context, builder, name, sig, args)
        return context.cast(builder, found, types.int32, sig.return_type)
    return lowering


# ---- The table ----

#: Functions of strings: (function, lowering, type of the result, number of strings).
_FUNCTIONS = [
    (operator.add, _make("concat"), managed_string, 2),
    (operator.iadd, _make("concat"), managed_string, 2),
    (str, _make("copy"), managed_string, 1),
    (len, _answer("length"), types.int32, 1),
]
#: Methods of strings: (name, lowering, type of the result, number of arguments, all strings).
_METHODS = [
    ("upper", _make("upper"), managed_string, 0),
]


def _strings(args: Any, kws: Any, count: int) -> bool:
    return not kws and len(args) == count and all(map(_is_string, args))


def _add_function(function: Any, lowering: Any, result: Any, count: int) -> None:
    class Typing(AbstractTemplate):     # type: ignore[misc]
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            # Two literals are numba's own.
            own = _strings(args, kws, count) and any(isinstance(arg, _STRINGS) for arg in args)
            return signature(result, *[string_view] * count) if own else None

    typings.register_global(function)(Typing)
    lower(function, *[string_view] * count)(lowering)


def _method_typing(name: str, results: dict[int, Any]) -> type:
    class Typing(AbstractTemplate):     # type: ignore[misc]
        key = f"xmem.{name}"

        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) not in results or not _strings(args, kws, len(args)):
                return None
            return signature(results[len(args)], *[string_view] * len(args), recvr=self.this)

    return Typing


def _add_methods() -> None:
    found: dict[str, dict[int, Any]] = {}
    for name, lowering, result, count in _METHODS:
        found.setdefault(name, {})[count] = result
        for receiver in (string_view, managed_string):
            lower(f"xmem.{name}", receiver, *[string_view] * count)(lowering)
    resolve = {f"resolve_{name}": lambda self, this, typing=_method_typing(name, results):
               types.BoundFunction(typing, this) for name, results in found.items()}
    for string in _STRINGS:
        typings.register_attr(type("Methods", (AttributeTemplate,), {"key": string, **resolve}))


for row in _FUNCTIONS:
    _add_function(*row)
_add_methods()


# ---- Arrays of strings ----

@lower(operator.setitem, types.CPointer(managed_string), types.Integer, managed_string)
def setitem(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """An array has a reference of its own to what it has."""
    array, index, value = args
    context.nrt.incref(builder, managed_string, value)
    builder.store(value, builder.gep(array, [index]))


# ---- What kernels call that is no method ----

@intrinsic
def NRT_decref(typingctx: Any, string: Any) -> Any:
    """Drop a reference that numba does not know of, such as that of an array."""
    if not isinstance(string, ManagedString):
        return None

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        context.nrt.decref(builder, managed_string, args[0])
        return context.get_dummy_value()
    return types.none(managed_string), codegen
