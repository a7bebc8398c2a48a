# SPDX-License-Identifier: MIT
"""The documentation site. site.mk puts all sources into one folder, as links: the pages of
docs/site, those of docs/, and what is made of bindings/api.json, of man/ and of the programs."""

import enum
import inspect
import json
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

TOP = Path(__file__).resolve().parents[2]
API = json.loads((TOP / "bindings" / "api.json").read_text())

project = "xmem"
version = release = API["version"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.graphviz"]
root_doc = "index"
toc_object_entries = False       # they are too wide for the sidebar
html_theme = "alabaster"
html_theme_options = {"page_width": "1160px", "sidebar_width": "240px", "nosidebar": False,
                      "description": "Large buffers, shared between processes"}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
html_show_copyright = html_show_sourcelink = html_copy_source = False
graphviz_output_format = "svg"
highlight_language = "none"
myst_heading_anchors = 3        # as GitHub makes them
default_role = "code"
nitpicky = True
nitpick_ignore_regex = [("c:identifier", "(?!xmem_).*"), ("py:.*", ".*")]
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": "Error,OSError,object,int,Enum"}
autodoc_typehints = "signature"
autodoc_mock_imports = ["torch", "onnxruntime", "numpy"]

# A word that the sources write as code, and the page or the entry that it names.
PAGES = {"README.md": "README", "CONTRIBUTING.md": "CONTRIBUTING", "CHANGELOG.md": "CHANGELOG",
         "docs/abi/": "abi", "examples/": "examples", "examples/README.md": "examples"}
PAGES |= {f"docs/{path.name}": path.stem for path in (TOP / "docs").glob("*.md")}
PAGES |= {f"docs/abi/{path.name}": "abi" for path in (TOP / "docs" / "abi").glob("*.txt")}
PAGES |= {f"{prefix}{each['name']}": "api/" + each["name"].removesuffix(".h").replace("/", "_")
          for each in API["headers"] for prefix in ("include/", "")}
NAMES = {each["name"] for key in ("functions", "structs", "enums", "constants", "macros")
         for each in API[key]}
NAMES |= {constant["name"] for key in ("enums", "flags") for each in API[key]
          for constant in each["constants"]}


def link_names(app, doctree):
    """Make links of the words in PAGES and of the names of the C API."""
    for word in list(doctree.findall(nodes.literal)):
        if isinstance(word.parent, (nodes.reference, addnodes.pending_xref)):
            continue
        text = word.astext()
        name = re.sub(r"^struct |\(\)$", "", text)
        target = {"refdoc": app.env.docname, "refexplicit": True, "refwarn": True}
        if text in PAGES:
            target |= {"refdomain": "std", "reftype": "doc", "reftarget": "/" + PAGES[text]}
        elif name in NAMES:
            target |= {"refdomain": "c", "reftype": "any", "reftarget": name}
        else:
            continue
        link = addnodes.pending_xref("", **target)
        word.replace_self(link)
        link += word


def parameters(obj):
    """The names of the parameters of a function or class."""
    try:
        return set(inspect.signature(obj).parameters)
    except (TypeError, ValueError):
        return set()


def mark_up(app, what, name, obj, options, lines):
    """Docstrings are plain text. An indented block is code, and the parameters are a list."""
    names, found = parameters(obj), []
    code = item = False
    for above, line in zip(["", *lines], lines):
        told = re.match(r"([a-z_]+(?:, [a-z_]+)*): ", line)
        if code and not line:
            found.append("")
        elif line.startswith("    ") and (code or not above):
            found += [line] if code else ["::", "", line]
            code = True
        elif told and names.issuperset(told[1].split(", ")):
            code, item = False, True
            found += ["", f"- *{told[1]}*: {line[told.end():]}"]
        else:
            ends = line.startswith(("Raises", "Returns", "Threads"))
            code, item = False, item and bool(line) and not ends
            found += ["", line] if ends else ["  " + line.strip() if item else line.strip()]
    lines[:] = found


def shorten(app, what, name, obj, options, signature, returns):
    """The constructor of an enum is of no use to readers."""
    is_enum = inspect.isclass(obj) and issubclass(obj, enum.Enum)
    return ("", None) if is_enum else (signature, returns)


def setup(app):
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-process-docstring", mark_up)
    app.connect("doctree-read", link_names)
