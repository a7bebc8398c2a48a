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
from numba.cuda.core.errors import TypingError
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


@lower_cast(StringView, ManagedString)
@lower_cast(types.StringLiteral, ManagedString)
def refuse(context: Any, builder: Any, fromty: Any, toty: Any, value: Any) -> Any:
    """A conversion would allocate, and numba drops no reference to the result of one."""
    raise TypingError("xmem.numba: a new string is wanted here: str(row), make_string(literal)")


def _is_string(given: Any) -> bool:
    return isinstance(given, (*_STRINGS, types.StringLiteral))


def _operands(context: Any, builder: Any, sig: Any, args: Any) -> list[ir.Value]:
    """The arguments of a shim for those of a call: addresses of views, and numbers."""
    found = []
    for given, value in zip(sig.args, args):
        if _is_string(given):
            value = context.cast(builder, value, given, string_view)
            value = builder.bitcast(cgutils.alloca_once_value(builder, value), _POINTER)
        found.append(value)
    return found


# ---- Calls ----

def _make(name: str) -> Callable[..., Any]:
    """The lowering of an operation that returns a new string."""
    def lowering(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        operands = _operands(context, builder, sig, args)
        managed = cgutils.create_struct_proxy(managed_string)(context, builder)
        outputs = [builder.bitcast(managed._get_ptr_by_name(member), _POINTER)
                   for member in ("meminfo", "udf_string")]
        runtime.call(builder, name, outputs + operands)
        return impl_ret_new_ref(context, builder, managed_string, managed._getvalue())
    return lowering


def _number(context: Any, builder: Any, name: str, sig: Any, args: Any) -> ir.Value:
    out = cgutils.alloca_once(builder, _INT)
    runtime.call(builder, name, [out, *_operands(context, builder, sig, args)])
    return builder.load(out)


def _answer(name: str) -> Callable[..., Any]:
    """The lowering of an operation that returns an int32 or a bool."""
    def lowering(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        found = _number(context, builder, name, sig, args)
        return context.cast(builder, found, types.int32, sig.return_type)
    return lowering


def _compare(sign: str) -> Callable[..., Any]:
    """The lowering of a comparison, by the order of the two strings: below, at or above 0."""
    def lowering(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        found = _number(context, builder, "compare", sig, args)
        return builder.icmp_signed(sign, found, ir.Constant(_INT, 0))
    return lowering


def _slice(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    given = context.make_helper(builder, sig.args[1], args[1])
    own = signature(managed_string, sig.args[0], types.intp, types.intp)
    return _make("slice")(context, builder, own, [args[0], given.start, given.stop])


# ---- The table ----

#: Functions of strings: (function, lowering, type of the result, number of strings).
_FUNCTIONS = [
    (operator.add, _make("concat"), managed_string, 2),
    (operator.iadd, _make("concat"), managed_string, 2),
    (len, _answer("length"), types.int32, 1),
    (operator.contains, _answer("contains"), types.boolean, 2),
    *((compared, _compare(sign), types.boolean, 2) for compared, sign in (
        (operator.eq, "=="), (operator.ne, "!="), (operator.lt, "<"), (operator.le, "<="),
        (operator.gt, ">"), (operator.ge, ">="))),
]
#: Methods of strings: (name, lowering, type of the result, number of arguments, all strings).
_METHODS = [
    ("__str__", _make("copy"), managed_string, 0),
    ("upper", _make("upper"), managed_string, 0),
    ("lower", _make("lower"), managed_string, 0),
    ("replace", _make("replace"), managed_string, 2),
    *(row for side in ("strip", "lstrip", "rstrip") for row in (
        (side, _make(side), managed_string, 0), (side, _make(f"{side}_set"), managed_string, 1))),
    *((search, _answer(search), types.int32, 1) for search in ("find", "rfind", "count")),
    ("startswith", _answer("startswith"), types.boolean, 1),
    ("endswith", _answer("endswith"), types.boolean, 1),
]


def _strings(args: Any, kws: Any, count: int) -> bool:
    return not kws and len(args) == count and all(map(_is_string, args))


def _add_function(function: Any, lowering: Any, result: Any, count: int) -> None:
    class Typing(AbstractTemplate): 
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            # Two literals are numba's own.
            own = _strings(args, kws, count) and any(isinstance(arg, _STRINGS) for arg in args)
            return signature(result, *[string_view] * count) if own else None

    typings.register_global(function)(Typing)
    lower(function, *[string_view] * count)(lowering)


def _method_typing(name: str, results: dict[int, Any]) -> type:
    class Typing(AbstractTemplate): 
        key = f"xmem.{name}"
        prefer_literal = True

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


for string in string_view, managed_string:      # numba answers "is not" by it
    lower(operator.is_, string, types.none)(
        lambda context, builder, sig, args: _answer("is_null")(
            context, builder, signature(types.boolean, sig.args[0]), args[:1]))


# ---- Subscripts ----

@typings.register_global(operator.getitem)
class _Slicing(AbstractTemplate):
    key = operator.getitem

    def generic(self, args: Any, kws: Any) -> Any:
        if (not kws and isinstance(args[0], _STRINGS) and isinstance(args[1], types.SliceType)
                and not args[1].has_step):
            return signature(managed_string, string_view, args[1])
        return None


lower(operator.getitem, string_view, types.slice2_type)(_slice)


@lower(operator.setitem, types.CPointer(managed_string), types.Integer, managed_string)
def setitem(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """An array has a reference of its own to what it has."""
    array, index, value = args
    context.nrt.incref(builder, managed_string, value)
    builder.store(value, builder.gep(array, [index]))


# ---- Functions that kernels import ----

@intrinsic
def make_string(typingctx: Any, string: Any) -> Any:
    """A new string with the characters of a string or literal."""
    if not _is_string(string):
        return None
    return managed_string(string_view), _make("copy")


@intrinsic
def NRT_decref(typingctx: Any, string: Any) -> Any:
    """Drop a reference that numba does not know of, such as that of an array."""
    if not isinstance(string, ManagedString):
        return None

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        context.nrt.decref(builder, managed_string, args[0])
        return context.get_dummy_value()
    return types.none(managed_string), codegen
