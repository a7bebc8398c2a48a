# SPDX-License-Identifier: MIT
"""Manual pages, made of api.json and man/api. Section 3 has a page for each function; a function
that refers to another one for its parameters shares that one's page. Section 7 has a page for each
header: the header's description of its topic, its functions and its structs. man/api/PAGE.txt has
the NOTES of a page, for example man/api/xmem_publish.3.txt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pretty
from comments import Complaint, paragraphs

Json = dict[str, Any]
Pages = dict[str, str]
Notes = dict[str, Any]


# The rules of xmem.h for parameters about which a function's comment says nothing.
_GENERAL = {
    "options": "NULL stands for options that are all zero.",
    "timeout_ns": "Nanoseconds to wait. 0 does not wait, and XMEM_FOREVER waits without end.",
}
_ANSWER = "The answer. Its size field is set before the call. Unchanged after an error."


def _safe(text: str) -> str:
    """Text as roff takes it."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("^", "\\(ha")
    text = text.replace("`", "\\(ga").replace("~", "\\(ti")
    text = re.sub(r"(?<!\S)\*(\w+)\*", r"\\fI\1\\fR", text)  # a word that is being defined
    text = re.sub(r"@([a-z]\w*)", r"\\fI\1\\fR", text)  # a parameter
    return "\\&" + text if text.startswith((".", "\\(aq")) else text


def _prose(value: Any) -> str:
    """Paragraphs. Lines that begin with a tab stay as they are. A paragraph that begins with one
    word as a sentence has that as its heading."""
    text, table, blank = "", False, False
    for line in pretty.unwrapped(value):
        if not line:
            blank = True
            continue
        if line.startswith("\t") != table:
            text += ".fi\n.RE\n.PP\n" if table else ".RS 4\n.nf\n"
            table = not table
        elif blank or not text:
            heading = None if table else re.match(r"([A-Z][a-z]+)\. (?=[A-Z])", line)
            between = ".sp\n" if table else ".PP\n"
            text += f".SS {heading[1]}\n" if heading else between if text else ""
            line = line[heading.end():] if heading else line
        text += _safe(line[1:].expandtabs(8) if table else line) + "\n"
        blank = False
    return text + (".fi\n.RE\n" if table else "")


def _title(name: str, section: int, api: Json) -> str:
    return ('.\\" SPDX-License-Identifier: MIT\n.\\" Made by bindings/generate.py.\n'
            f'.TH {name} {section} "" "xmem {api["version"]}" "xmem"\n')


def prototype(function: Json) -> tuple[str, list[str]]:
    """The declaration of a function: before its parameters, and these."""
    return (pretty.declare(function["returns"], function["name"]),
            [pretty.declare(each["type"], each["name"]) for each in function["parameters"]])


def _declaration(function: Json) -> str:
    head, parameters = prototype(function)
    lines, room = [head + "("], 78
    for index, each in enumerate(parameters or ["void"]):
        last = index + 1 >= len(parameters)
        word = each + (");" if last else ", ")
        if len(lines[-1]) + len(word) > room:
            lines[-1] = lines[-1].rstrip()
            lines.append("        ")
        lines[-1] += word
    return "".join(_safe(line) + "\n" for line in lines)


def split_result(function: Json) -> tuple[list[str], list[Json]]:
    """The result of a function, and the list of its errors. Errors in a sentence become entries of
    the list, unless the sentence has more than names and causes."""
    lines = pretty.unwrapped(function.get("result"))
    errors = function.get("errors", [])
    found = re.search(r"(?<![A-Z0-9_])-?E[A-Z0-9]{2,}\b", lines[0]) if lines else None
    if not found:
        return lines, errors
    rest = lines[0][found.start():]
    inline = [each for each in errors if re.search(rf"\b{each['names'][0]}\b", rest)]
    for each in inline:
        for text in (pretty.sentence(each.get("text")), *each["names"]):
            rest = rest.replace(text, "", 1)
    if re.search(r"[a-z]", re.sub(r"\b(and|or|also)\b", "", rest)):
        return lines, [each for each in errors if each not in inline]
    head = re.sub(r"(\W|\b(and|or)\b)*$", "", lines[0][:found.start()])
    return [head + ".", *lines[1:]], errors


def _errors(listed: list[Json], header: str) -> str:
    text = ".SH ERRORS\n" if listed else ""
    rules = f"See xmem(7) and {header_page(header)}(7)."
    for each in listed:
        names = ", ".join(each["names"])
        said = pretty.sentence(each.get("text")) or rules
        text += f".TP\n.B {_safe(names)}\n{_safe(said)}\n"
    return text


def _section(name: str, value: Any) -> str:
    said = pretty.sentence(value)
    return f".SH {name}\n{_safe(said[:1].upper() + said[1:])}.\n" if said else ""


def result_sentence(lines: list[str]) -> list[str]:
    """The result of a function, as a sentence of its own."""
    lines = [re.sub(r"([;,]? (or|and)|:)$", ".", line) for line in lines]
    return [lines[0][:1].upper() + lines[0][1:], *lines[1:]] if lines else lines


def read_notes(folder: Path) -> Notes:
    """The notes of each page, by the name of the page: the files of man/api."""
    return {path.stem: pretty.prose(paragraphs(path.read_text().split("\n")))
            for path in sorted(folder.glob("*"))}


def _notes(page: str, notes: Notes) -> str:
    return ".SH NOTES\n" + _prose(notes[page]) if page in notes else ""


def general_rule(parameter: Json, api: Json) -> str:
    """The general rule for a parameter, or nothing."""
    name = parameter["name"]
    sized = any(parameter["type"] == f"struct {each['name']} *"
                and each["fields"][0]["name"] == "size" for each in api["structs"])
    return _ANSWER if sized and name.startswith("ret_") else _GENERAL.get(name, "")


def _page(function: Json, siblings: list[Json], api: Json, notes: Notes) -> str:
    group = [function, *siblings]
    names = ", ".join(each["name"] for each in group)
    purpose = pretty.sentence(function["purpose"])
    text = _title(function["name"], 3, api) + f".SH NAME\n{_safe(names)} \\- "
    text += _safe(purpose[:1].lower() + purpose[1:].rstrip(".?!")) + "\n"
    text += ".SH SYNOPSIS\n.nf\n.B #include <xmem.h>\n.PP\n"
    text += ".PP\n".join(_declaration(each) for each in group) + ".fi\n"
    text += ".SH DESCRIPTION\n"
    for each in group:
        if each is not function:
            text += f".SS {each['name']}\n"
        text += _safe(pretty.sentence(each["purpose"])) + "\n"
        if each.get("text"):
            text += ".PP\n" + _prose(each["text"])
    for each in function["parameters"]:
        said = pretty.sentence(each.get("text")) or general_rule(each, api)
        if said:
            text += f".TP\n.I {each['name']}\n{_safe(said)}\n"
    result, errors = split_result(function)
    if result:
        text += ".SH RETURN VALUE\n" + _prose(result_sentence(result))
    text += _errors(errors, function["header"])
    text += _section("OWNERSHIP", function.get("ownership"))
    text += _section("THREADS", function["threads"])
    text += _notes(f"{function['name']}.3", notes)
    later = "; " + pretty.sentence(function["later"]) if "later" in function else ""
    text += f".SH HISTORY\n{_safe('Since xmem ' + function['since'] + later)}.\n"
    others = [each for each in function.get("errors_as", []) if each != function["name"]]
    others = [f".BR {_safe(each)} (3),\n" for each in others]
    return (text + ".SH SEE ALSO\n" + "".join(others)
            + f".BR {header_page(function['header'])} (7)\n")


def header_page(header: str) -> str:
    """The name of a header's page: xmem, xmem_claims."""
    return header.removesuffix(".h").replace("/", "_")


def _topic(header: Json) -> str:
    return pretty.sentence(header["text"]).split(". ")[0].rstrip(".")


def _overview(header: Json, api: Json, notes: Notes) -> str:
    """The page of a header: its description of the topic, and its contents."""
    name = header_page(header["name"])
    text = _title(name, 7, api) + f".SH NAME\n{name} \\- {_safe(_topic(header))}\n"
    text += ".SH SYNOPSIS\n.nf\n.B #include <xmem.h>\n.fi\n.SH DESCRIPTION\n"
    text += _prose(header["text"])
    if name == "xmem":
        text += ".SH TOPICS\n"
        for each in api["headers"]:
            if each is not header:
                text += f".TP\n.BR {header_page(each['name'])} (7)\n{_safe(_topic(each))}.\n"
    mine = [each for each in api["functions"] if each["header"] == header["name"]]
    if mine:
        text += ".SH FUNCTIONS\n"
    for each in mine:
        text += f".TP\n.BR {each['name']} (3)\n{_safe(pretty.sentence(each['purpose']))}\n"
    structs = [each for each in api["structs"] if each["header"] == header["name"]]
    if structs:
        text += ".SH STRUCTS\n"
    for struct in structs:
        text += f".SS struct {struct['name']}\n"
        text += _prose(struct["text"]) if "text" in struct else ""
        for field in struct["fields"]:
            said = pretty.sentence(field.get("text"))
            text += f".TP\n.I {_safe(pretty.declare(field['type'], field['name']))}\n"
            text += (_safe(said) if said else "\\&") + "\n"
    text += _notes(f"{name}.7", notes)
    others = [header_page(each["name"]) for each in api["headers"]]
    text += ".SH SEE ALSO\n" + ",\n".join(f".BR {each} (7)" for each in others if each != name)
    return text + "\n"


def pages(api: Json, notes: Notes) -> Pages:
    """All pages, by the names of their files. Notes for a page that does not exist, or that is only
    a reference to another page, are an error."""
    siblings: dict[str, list[Json]] = {}
    for each in api["functions"]:
        if "parameters_as" in each:
            siblings.setdefault(each["parameters_as"], []).append(each)
    found: Pages = {}
    for each in api["functions"]:
        text = f".so man3/{each['parameters_as']}.3\n" if "parameters_as" in each else \
            _page(each, siblings.get(each["name"], []), api, notes)
        found[f"{each['name']}.3"] = text
    for header in api["headers"]:
        name = header_page(header["name"])
        found[f"{name}.7"] = _overview(header, api, notes)
    for page in notes:
        if page not in found:
            raise Complaint(f"man/api/{page}.txt: there is no page {page}")
        if found[page].startswith(".so "):
            raise Complaint(f"man/api/{page}.txt: {page} only refers to another page")
    return found
