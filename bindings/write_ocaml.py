# SPDX-License-Identifier: MIT
"""The files for OCaml, the first of two steps of generation: descriptions of C functions and
structs for ctypes, numbers, records of answers, and a wrapper of each function. The second step is
bindings/ocaml/gen, in which ctypes makes stubs of the descriptions."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import pretty
import write_c
from write_python import _SENTINEL, _dtypes, _prefix

Json = dict[str, Any]

_WORDS = set(
    "and as assert begin class constraint do done downto else end exception external false for fun"
    " function functor if in include inherit initializer lazy let match method module mutable new"
    " nonrec object of open or private rec sig struct then to true try type val virtual when while"
    " with".split())
_SCALARS = {"int": "int", "unsigned int": "uint", "size_t": "size_t", "char": "char",
            **{f"{sign}int{bits}_t": f"{sign}int{bits}_t" for sign in ("", "u")
               for bits in (8, 16, 32, 64)}}
# Numbers that OCaml's int of 63 bits cannot have, and times that have a value for "for ever".
_WIDE = re.compile(r"token|incarnation|user|.*_ns|order_value|demand_bytes|keep_all")
# Functions that xmem.ml and managed.ml call themselves, because they drop handles or return what no
# wrapper can.
BY_HAND = {
    "xmem_get_last_error", "xmem_peek_last_error", "xmem_get_api", "xmem_release", "xmem_publish",
    "xmem_unsubscribe", "xmem_pool_close", "xmem_receive_any", "xmem_metadata_ptr",
    "xmem_metadata_mut", "xmem_image_plane", "xmem_tensor_check",
    "xmem_strings_get",
}
# Where they do not wait, xmem.ml keeps the runtime lock, because its release costs 0.1 us.
_ALSO_FAST = {"xmem_acquire", "xmem_receive", "xmem_receive_any", "xmem_publish"}
# After a signal the claims may have ended, so a second call would fail.
_ONCE = {"xmem_void_claims"}
# Their time is not a time to wait.
_NO_WAIT = {"xmem_set_ref_count", "xmem_offer"}


# ---- names and types


def _name(name: str) -> str:
    name = name.removeprefix("xmem_").lower()
    return name + "_" * (name in _WORDS)


def _bare(kind: str) -> str:
    return kind.replace("const ", "").strip()


def _struct(kind: str) -> str | None:
    found = re.fullmatch(r"struct (\w+) \*", _bare(kind))
    return found.group(1) if found else None


_UNMANAGED = {"xmem_server", "xmem_request", "xmem_caller"}  # handles without a kind in managed.ml


def _handles(api: Json) -> set[str]:
    return {each["type"].removeprefix("struct ") for each in api["handles"]} - _UNMANAGED


def _structs(api: Json) -> list[Json]:
    return [each for each in api["structs"] if each["name"] != "xmem_api"]


def _wide(name: str) -> bool:
    return bool(_WIDE.fullmatch(name.removeprefix("ret_")))


def _module(name: str) -> str:
    return name.removeprefix("xmem_").capitalize()


# ---- comments


def _said(text: str) -> str:
    """Prose in a comment of OCaml: no text begins or ends there, and odoc's signs mean nothing."""
    return re.sub(r"([{}\[\]@\\])", r"\\\1", text).replace('"', "'").replace("(*", "( *").replace(
        "*)", "* )")


def _comment(paragraphs: list[str], indent: str = "") -> str:
    lines: list[str] = []
    for text in paragraphs:
        if lines and not text.startswith(("\\", "- ")):
            lines.append("")
        lines += textwrap.wrap(text, 94 - len(indent), break_on_hyphens=False,
                               break_long_words=False)
    body = f"\n{indent}    ".join(lines).replace(f"\n{indent}    \n", "\n\n")
    return f"{indent}(** {body} *)\n"


def _doc(each: Json, indent: str = "") -> str:
    text = pretty.sentence(each.get("text"))
    return _comment([_said(text)], indent) if text else ""


# ---- step one: descriptions

_DESCRIPTIONS = """\
(* SPDX-License-Identifier: MIT *)
(* The C functions and structs for ctypes, which makes stubs of them (gen/gen.ml).
   Made by bindings/generate.py from the public headers. *)
open Ctypes

(* A stub takes an argument of type camlint through an int of C, which cuts a size. *)
let of_size = view nativeint ~read:Nativeint.to_int ~write:Nativeint.of_int
let const_char_p = typedef (ptr char) "const char *"
let const_void_p = typedef (ptr void) "const void *"
let const_int64_p = typedef (ptr int64_t) "const int64_t *"
let stream : unit ptr typ = typedef (ptr void) "struct CUstream_st *"
"""


def _field(kind: str) -> str:
    array = re.fullmatch(r"(.*?) ?\[(\d+)\]", kind)
    if array:
        return f"(array {array.group(2)} {_field(array.group(1))})"
    if kind.startswith("struct ") and not kind.endswith("*"):
        return kind.removeprefix("struct ")
    return _SCALARS.get(_bare(kind)) or ("(ptr char)" if "char" in kind else "(ptr void)")


def _described_struct(struct: Json) -> str:
    name = struct["name"]
    text = f"\ntype {name}\nlet {name} : {name} structure typ = structure \"{name}\"\n"
    for each in struct["fields"]:
        text += f"let {name}_{each['name']} = field {name} \"{each['name']}\""
        text += f" {_field(each['type'])}\n"
    text += f"let () = seal {name}; assert (sizeof {name} = {struct['bytes']})\n"
    for each in struct["fields"]:
        text += f"let () = assert (offsetof {name}_{each['name']} = {each['offset']})\n"
    return text + f"let const_{name}_p = typedef (ptr {name}) \"const struct {name} *\"\n"


def _argument(api: Json, kind: str) -> str:
    """The type of a parameter or result. OCaml's own int costs no block."""
    bare, struct = _bare(kind), _struct(kind)
    if bare in ("size_t", "uint32_t", "unsigned int"):
        return "camlint"
    if bare in _SCALARS or bare == "void":
        return _SCALARS.get(bare, "void")
    if struct in _handles(api):
        return struct
    if struct in _UNMANAGED:
        raise KeyError(struct)
    if struct == "CUstream_st":
        return "stream"
    if struct:
        return f"const_{struct}_p" if kind.startswith("const") else f"(ptr {struct})"
    named = {"const char *": "const_char_p", "const void *": "const_void_p", "void *": "(ptr void)",
             "const int64_t *": "const_int64_p", "uint64_t *": "(ptr uint64_t)",
             "struct xmem_subscription **": "(ptr xmem_subscription)",
             "const char **": "(ptr const_char_p)"}
    return named[kind]


def _described(api: Json) -> list[Json]:
    """The functions of managed handles, without a type that needs more of ctypes: a callback."""
    found = []
    for each in api["functions"]:
        try:
            for kind in [each["returns"], *(one["type"] for one in each["parameters"])]:
                _argument(api, kind)
            found.append(each)
        except KeyError:
            pass
    return found


def _slow(each: Json) -> bool:
    """May it wait, or ask the host, which can be stopped? Then it releases the runtime lock."""
    raises = each.get("raises", [])
    return bool({"ENOTCONN", "EINTR", "ETIMEDOUT"} & set(raises)) or (
        "timeout_ns" in [one["name"] for one in each["parameters"]] or
        each["name"] in ("xmem_unsubscribe", "xmem_pool_close"))


def descriptions(api: Json) -> str:
    """bindings/ocaml/types/descriptions.ml."""
    text = _DESCRIPTIONS
    for name in sorted(_handles(api)):
        text += f"let {name} : unit ptr typ = typedef (ptr void) \"struct {name} *\"\n"
    text += "".join(map(_described_struct, _structs(api)))
    functions = [each for each in _described(api) if each["name"] != "xmem_get_api"]
    for module, what, chosen in (
            ("Fast", "Functions that keep the runtime lock.",
             [x for x in functions if not _slow(x) or x["name"] in _ALSO_FAST]),
            ("Slow", "Functions that release it, because they can wait.",
             [x for x in functions if _slow(x)])):
        text += f"\n(* {what} *)\nmodule {module} (F : Cstubs.FOREIGN) = struct\n  open F\n"
        for each in chosen:
            kinds = ["of_size" if one["type"] == "size_t" else _argument(api, one["type"])
                     for one in each["parameters"]] or ["void"]
            line = (f"  let {_name(each['name'])} = foreign \"{each['name']}\""
                    f" ({' @-> '.join(kinds)} @-> returning {_argument(api, each['returns'])})")
            text += "\n".join(textwrap.wrap(line, 98, subsequent_indent="      ",
                                            initial_indent="  ", break_on_hyphens=False)) + "\n"
        text += "end\n"
    text += "\n(* The functions that make handles, and the numbers of the kinds in managed.ml. *)\n"
    kinds = ["xmem_pool", "xmem_subscription", "xmem_buffer"]
    makers = "".join(f'  "{each["name"]}", {kinds.index(_struct(each["returns"]))};\n'
                     for each in functions if _struct(each["returns"]) in kinds)
    return text + f"let makers = [\n{makers}]\n"


# ---- numbers

_CONSTANTS = """\
(* SPDX-License-Identifier: MIT *)
(** Numbers of the C API: flags, enums, errors.

    Made by bindings/generate.py from the public headers. *)
"""


def _variants(name: str, text: str, pairs: list[tuple[str, int, str]]) -> str:
    """A module whose type has a constructor for each number, and one for all others."""
    made = f"\n{_comment([text])}module {name} = struct\n  type t =\n"
    for word, _, said in pairs:
        made += f"    | {word}" + (f" (** {_said(said)} *)" if said and len(said) < 70 else "")
        made += "\n"
    made += "    | Other of int (** a number that has no name yet *)\n\n  let to_int = function\n"
    made += "".join(f"    | {word} -> {value}\n" for word, value, _ in pairs)
    made += "    | Other number -> number\n\n  let of_int = function\n"
    made += "".join(f"    | {value} -> {word}\n" for word, value, _ in pairs)
    return made + "    | number -> Other number\nend\n"


def _enum(each: Json) -> str:
    inside = [one for one in each["constants"] if one.get("text") != _SENTINEL]
    prefix = _prefix([one["name"] for one in inside])
    pairs = []
    for one in inside:
        word = one["name"].removeprefix(prefix).capitalize()
        pairs.append((word + "_" * (word in ("None", "Some")), one["value"],
                      pretty.sentence(one.get("text"))))
    said = pretty.sentence(each.get("text")) or f"What C calls enum {each['name']}."
    return _variants(_module(each["name"]), _said(said), pairs)


def constants(api: Json) -> str:
    """bindings/ocaml/src/constants.ml."""
    text = _CONSTANTS + _variants("Code", "Errors: the numbers of errno.", [
        (name, number, "") for number, name in
        {each["number"]: each["name"] for each in api["errors"]}.items()])
    for group in api["flags"]:
        name = group["prefix"].removeprefix("XMEM_").rstrip("_").capitalize()
        text += f"\n(** Flags: {group['prefix']}*. *)\nmodule {name} = struct\n"
        for each in group["constants"]:
            text += "\n" + _doc(each, "  ")
            text += f"  let {_name(each['name'].removeprefix(group['prefix']))}"
            text += f" = {each['value']:#x}\n"
        text += "end\n"
    text += "".join(map(_enum, api["enums"]))
    for each in api["constants"]:
        value = each["value"]
        if isinstance(value, int) and value >= 1 << 62:
            value = f"{value if value < 1 << 63 else value - (1 << 64)}L"
            value = f"({value})" if value.startswith("-") else value
        text += "\n" + _doc(each)
        text += f"let {_name(each['name'].removeprefix('XMEM_'))} = {value}\n"
    text += "\n(** The types of elements that have a name: name, number, bytes of one. *)\n"
    text += "let dtypes = [\n" + "".join(
        f'  "{each["name"]}", {each["number"]}, {each["bytes"]};\n' for each in _dtypes(api))
    return text + "]\n"


# ---- records of answers


def _answers(api: Json) -> list[Json]:
    """The structs that functions fill in, and those in them."""
    types = " ".join(one["type"] for each in [*_described(api), *api["callbacks"]]
                     for one in each["parameters"]
                     if one["name"].startswith("ret_") or each in api["callbacks"])
    found = [each for each in _structs(api) if f"struct {each['name']} *" in types]
    inner = [each for each in _structs(api) if any(
        f"struct {each['name']} [" in field["type"] for one in found for field in one["fields"])]
    return [*inner, *(each for each in found if each["name"] != "xmem_error")]


def _shape(struct: Json, field: Json) -> tuple[str, str]:
    """The type of a record's field, and how it is read from the struct, `it`."""
    value = f"(getf it D.{struct['name']}_{field['name']})"
    kind, count = field["kind"], field.get("count")
    base = _bare(field["type"].partition("[")[0])
    if kind in ("chars", "bytes"):
        return "string", f"C.text {value}" if kind == "chars" else f"C.bytes {value}"
    if kind == "pointer":
        return "nativeint", f"C.address {value}"
    if kind == "struct":
        name = base.removeprefix("struct ")
        return f"{_module(name)}.t array", f"C.array {_name(name)} {value}"
    wide = "Wide" if _wide(field["name"]) else ""
    read = f"C.{base}{wide and '_wide'}"
    plain = "int64" if wide else "int"
    if count:
        return f"{plain} array", f"C.array {read} {value}"
    return plain, f"{read} {value}"


def answers(api: Json) -> str:
    """bindings/ocaml/src/answers.ml."""
    text = _CONSTANTS.replace("Numbers of the C API: flags, enums, errors.",
                              "Records: the answers of C functions.")
    for struct in _answers(api):
        said = pretty.sentence(struct.get("text")) or f"struct {struct['name']}."
        text += f"\n{_comment([_said(said)])}module {_module(struct['name'])} = struct\n"
        text += "  type t = {\n"
        for field in write_c.shown(struct):
            text += f"    {_name(field['name'])} : {_shape(struct, field)[0]};\n"
            text += _doc(field, "      ")
        text += "  }\nend\n"
    return text


def _readers(api: Json) -> str:
    text = ""
    for struct in _answers(api):
        text += f"\nlet {_name(struct['name'])} it =\n  {{ Answers.{_module(struct['name'])}."
        text += ";\n    ".join(f"{_name(field['name'])} = {_shape(struct, field)[1]}"
                               for field in write_c.shown(struct)) + " }\n"
    return text


# ---- wrappers

_CALLS = """\
(* SPDX-License-Identifier: MIT *)
(* A wrapper of each C function. It takes managed handles and returns managed handles.
   Made by bindings/generate.py from the public headers. *)
open Ctypes
module C = Convert
module D = Xmem_descriptions.Descriptions
module M = Managed
module Fast = Managed.Fast
module Slow = Managed.Slow
"""
_CALLS_MLI = """\
(* SPDX-License-Identifier: MIT *)
(** The C API, function by function, on managed handles. A function that fails raises
    [Error.Error]. Times are in nanoseconds.

    Made by bindings/generate.py from the public headers. *)

val limbo :
  (Xmem_descriptions.Descriptions.xmem_limbo, [ `Struct ]) Ctypes.structured -> Answers.Limbo.t
(** The argument of the function that [Pool.limbo_hook] sets. *)
"""


class _Call:
    """The wrapper of one function: its parameters, their types, and the steps around the call."""

    def __init__(self, api: Json, each: Json) -> None:
        self.api, self.each = api, each
        self.short = each["name"].removeprefix("xmem_")
        self.checks: list[str] = []     # of parameters
        self.heads: list[str] = []      # parameters
        self.types: list[str] = []      # their types
        self.before: list[str] = []     # steps before the call
        self.given: list[str] = []      # what C is given
        self.kept: list[str] = []       # what has to live until C has returned
        self.result = ""                # what the wrapper returns, if not what C returns
        self.result_type = ""
        self.each_time = ""             # a step before each attempt
        for one in each["parameters"]:
            self._take(one)
        # An optional parameter precedes one that is not.
        for part in self.heads, self.types:
            part.sort(key=lambda x: not x.startswith("?"))
        if not self.heads or self.heads[-1].startswith("?"):
            self.heads.append("()")
            self.types.append("unit")

    def _check(self, kind: str, name: str) -> str:
        """The number, or an error if it is out of the range of its type."""
        of = {"uint32_t": "uint32", "unsigned int": "uint32", "int": "int32", "int32_t": "int32",
              "size_t": "size", "uint64_t": "size"}.get(kind)
        return f'(C.{of} "{self.short}" {name})' if of else ""

    def _add(self, head: str, kind: str, given: str) -> None:
        self.heads.append(head)
        self.types.append(kind)
        self.given.append(given)

    def _options(self, struct: Json) -> None:
        name = struct["name"]
        self.before.append(f"let o = make D.{name} in")
        self.before.append(f"setf o D.{name}_size (Unsigned.Size_t.of_int (sizeof D.{name}));")
        for field in write_c.shown(struct):
            key, kind = _name(field["name"]), field["type"]
            if key == "ret_slots":
                continue
            write = f"C.set o D.{name}_{field['name']}"
            if kind == "const char *":
                self.before.append(f"let {key} = C.c_text \"{self.short}\" {key} in")
                self.before.append(f"{write} (fun x -> x) {key};")
                self.kept.append(key)
                shown = "string"
            elif kind.endswith("*"):
                self.before.append(f"{write} ptr_of_raw_address {key};")
                shown = "nativeint"
            else:
                wide = _wide(field["name"])
                convert = f"C.to_{_bare(kind)}{'_wide' * wide}"
                check = "" if wide else self._check(_bare(kind), "n")
                self.before.append(f"{write} {check and f'(fun n -> {convert} {check})' or convert}"
                                   f" {key};")
                shown = "int64" if wide else "int"
            self.heads.append(f"?{key}")
            self.types.append(f"?{key}:{shown}")
            if key == "timeout_ns":
                self.before.append("let left = M.left (Option.value timeout_ns ~default:0L) in")
                self.each_time = f"setf o D.{name}_timeout_ns (left ()); "
        self.given.append("(addr o)")
        self.kept.append("o")

    def _take(self, one: Json) -> None:
        name, kind = _name(one["name"]), one["type"]
        bare, struct = _bare(kind), _struct(kind)
        structs = {each["name"]: each for each in _structs(self.api)}
        if struct in _handles(self.api):
            self._add(name, f"M.{_name(struct)}", f"(M.raw {name})")
            self.kept.append(name)
        elif struct in structs and name.startswith("ret_"):
            self.before.append(f"let o = make D.{struct} in")
            if structs[struct]["fields"][0]["name"] == "size":
                self.before.append(
                    f"setf o D.{struct}_size (Unsigned.Size_t.of_int (sizeof D.{struct}));")
            self.given.append("(addr o)")
            self.kept.append("o")
            self.result, self.result_type = f"{_name(struct)} o", f"Answers.{_module(struct)}.t"
        elif struct in structs:
            self._options(structs[struct])
        elif struct == "CUstream_st":
            self._add(f"~{name}", f"{name}:nativeint", f"(ptr_of_raw_address {name})")
        elif kind == "uint64_t *":
            self.before.append("let o = allocate uint64_t Unsigned.UInt64.zero in")
            self.given.append("o")
            self.kept.append("o")
            self.result, self.result_type = "C.uint64_t !@o", "int"
        elif kind == "const int64_t *":
            optional = "?" * (name == "strides")
            self.before.append(f"let {name} = C.int64s {'' if optional else '(Some '}{name}"
                               f"{'' if optional else ')'} in")
            self._add(optional + name, f"{optional and '?strides:'}int array", f"(C.start {name})")
            given = name if optional else f"(Some {name})"
            self.checks.append(f"C.check_length \"{self.short}\" ndim {given};")
            self.kept.append(name)
        elif kind == "const char *":
            self.before.append(f"let {name} = C.c_text \"{self.short}\" {name} in")
            self._add(name, "string option", f"(C.or_null {name})")
            self.kept.append(name)
        elif bare == "void *":
            self._add(name, "nativeint", f"(ptr_of_raw_address {name})")
        elif one["name"] == "timeout_ns":
            self._add("~timeout", "timeout:int64", "timeout")
        elif _wide(name) or bare == "int64_t":
            self._add(name, "int64", f"(C.to_{bare}_wide {name})")
        else:
            checked = self._check(bare, name) or name
            self._add(name, "int", f"(C.to_uint64_t {checked})" if bare == "uint64_t" else checked)

    def _outcome(self) -> tuple[str, str, str]:
        """When it has failed, what is returned, and the type of that."""
        kind, struct = self.each["returns"], _struct(self.each["returns"])
        short = self.each["name"].removeprefix("xmem_")
        if struct in _handles(self.api):
            first = _name(self.each["parameters"][0]["name"])
            parent = f" ~parent:{first}.pool" if self.each["parameters"][0]["type"].startswith(
                "struct xmem") and struct != "xmem_pool" else ""
            return "is_null r", f"M.with_gc M.{_name(struct).capitalize()}{parent} r", \
                f"M.{_name(struct)}"
        if kind == "const char *":
            return "", "C.text_of r", "string"
        if kind.endswith("*"):
            return "is_null r", "raw_address_of_ptr (to_voidp r)", "nativeint"
        if kind == "size_t":
            return "", "r", "int"
        if kind == "uint64_t":
            wide = _wide(short)
            return "", f"C.{kind}{'_wide' * wide} r", "int64" if wide else "int"
        if kind == "int64_t":
            return "r < 0L", "Int64.to_int r", "int"
        if kind == "void":
            return "", "r", "unit"
        said = pretty.sentence(self.each.get("result"))
        nothing = re.match(r"0[,;:]", said) or short.startswith("copy_") or \
            short in ("image_view",)
        if self.result and nothing:
            return "r < 0", self.result, self.result_type
        if self.result:
            return "r < 0", f"(r, {self.result})", f"int * {self.result_type}"
        return "r < 0", "()" if nothing else "r", "unit" if nothing else "int"

    def text(self) -> str:
        name, short = self.each["name"], _name(self.each["name"])
        module = "Slow" if _slow(self.each) else "Fast"
        failed, result, _ = self._outcome()
        call = f"{module}.{short} {' '.join(self.given) or '()'}"
        kept = "".join(f" M.keep {each};" for each in self.kept)
        waits = any(x["name"] == "timeout_ns" for x in self.each["parameters"]) and \
            name not in _NO_WAIT
        again = "EINTR" in self.each.get("raises", []) and name not in _ONCE
        lines = [f"let {short} {' '.join(self.heads)} =", 
                 *(f"  {x}" for x in [*self.checks, *self.before])]
        if self.each.get("drops") == "on success":
            handle = _name(self.each["parameters"][0]["name"])
            inner = call.replace(f"(M.raw {handle})", "raw")
            return "\n".join([*lines, f"  M.consume \"{short}\" {handle} (fun raw -> {inner})"])
        once = "M.once" if not again else "M.within timeout" if waits else "M.again"
        if not failed:
            lines.append(f"  let r = {call} in")
        else:
            closure = "fun timeout ->" if once.startswith("M.within") else "fun () ->"
            test = "M.negative64" if failed == "r < 0L" else \
                "is_null" if failed == "is_null r" else "M.negative"
            bound = "r" if re.search(r"\br\b", result) else "_"
            if "M.with_gc" in result:
                lines.append("  M.made @@ fun () ->")
            attempt = f"({closure} {self.each_time}{call})"
            lines.append(f"  let {bound} = {once} \"{short}\" {test} {attempt} in")
        lines = [y for x in lines for y in textwrap.wrap(
            x, 98, initial_indent="", subsequent_indent="    ", break_on_hyphens=False,
            drop_whitespace=True, break_long_words=False)]
        return "\n".join([*lines, *([f" {kept}"] if kept else []), f"  {result}"])

    def signature(self) -> str:
        short, kind = _name(self.each["name"]), self._outcome()[2]
        if self.each.get("drops"):
            kind = "unit"
        line = f"val {short} : {' -> '.join(self.types)} -> {kind}"
        said = [f"{_said(pretty.sentence(self.each['purpose']))}"]
        said += [_said(x) for x in pretty.unwrapped(self.each.get("text")) if x.strip()]
        for one in self.each["parameters"]:
            if one.get("text"):
                said.append(f"- {one['name']}: {_said(pretty.sentence(one['text']))}")
        if self.each.get("errors"):
            said += ["Errors:"] + [
                f"- {', '.join(x['names'])}: {_said(pretty.sentence(x.get('text')))}"
                for x in self.each["errors"] if x.get("text")]
        if self.each.get("ownership"):
            said.append("In C: " + _said(pretty.sentence(self.each["ownership"])))
        said.append(f"The page {self.each['name']}(3) of the manual says more. Since"
                    f" {self.each['since']}.")
        return "\n".join(textwrap.wrap(line.replace("M.", "Managed."), 98,
                                       subsequent_indent="  ", break_on_hyphens=False)) + \
            "\n" + _comment(said)


def _wrapped(api: Json) -> list[Json]:
    return [each for each in _described(api) if each["name"] not in BY_HAND]


def calls(api: Json) -> str:
    """bindings/ocaml/src/calls.ml."""
    return _CALLS + _readers(api) + "\n" + "\n\n".join(
        _Call(api, each).text() for each in _wrapped(api)) + "\n"


def interface(api: Json) -> str:
    """bindings/ocaml/src/calls.mli."""
    return _CALLS_MLI + "\n" + "\n".join(
        _Call(api, each).signature() for each in _wrapped(api))
