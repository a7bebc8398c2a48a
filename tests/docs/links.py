#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: MIT
"""Checks the pages of the documentation site: each link within the site leads to a page, and to a
place in it that exists; the public names of C and Python have entries; and the pages have what the
site promises. Links to other sites are listed only: a test needs no network.

    tests/docs/links.py FOLDER       the HTML of the site
"""

import ast
import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

TOP = Path(__file__).resolve().parents[2]


class Page(HTMLParser):
    """The links of a page, and the places in it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], set()
        self.text = path.read_text()
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        self.places |= {told[key] for key in ("id", "name") if told.get(key)}
        self.links += [told[key] for key in ("href", "src", "data") if told.get(key)]


def check_links(root, pages):
    """Complaints about links, and the addresses at other sites."""
    wrong, outside = [], set()
    for path, page in pages.items():
        for link in page.links:
            to = urlsplit(link)
            if to.scheme or to.netloc:
                outside.add(link.partition("#")[0])
                continue
            target = (path.parent / unquote(to.path)).resolve() if to.path else path
            if not target.is_relative_to(root) or not target.is_file():
                wrong.append(f"{path.name} has a link to {link}, and there is no such file")
            elif to.fragment and target in pages and \
                    unquote(to.fragment) not in pages[target].places:
                wrong.append(f"{path.name} has a link to {link}, and the page has no such place")
    return wrong, outside


def check_names(pages):
    """Complaints about public names without an entry."""
    places = set().union(*(page.places for page in pages.values()))
    api = json.loads((TOP / "bindings" / "api.json").read_text())
    names = [f"c.{each['name']}" for key in ("functions", "structs", "enums", "macros", "constants",
                                             "callbacks") for each in api[key]]
    names += [f"c.{each['name']}" for group in api["flags"] for each in group["constants"]]
    names += [f"c.{group['name']}.{each['name']}" for group in api["enums"]
              for each in group["constants"]]
    for module in ("xmem", "xmem.torch"):
        package = ast.parse((TOP / "bindings/python" / module.replace(".", "/") /
                             "__init__.py").read_text())
        (public,) = [ast.literal_eval(each.value) for each in package.body
                     if isinstance(each, ast.Assign) and each.targets[0].id == "__all__"]
        names += [f"{module}.{name}" for name in public if name != "dtypes"]
    names += ["xmem.BufferPool.acquire_cpu", "xmem.BufferGuard.publish", "xmem.Subscription.lost"]
    return len(names), [f"{name} has no entry" for name in names if name not in places]


def main(folder):
    root = Path(folder).resolve()
    pages = {path: Page(path) for path in sorted(root.rglob("*.html"))}
    links, outside = check_links(root, pages)
    count, names = check_names(pages)
    for each in links + names:
        print(f"FAIL {each}")
    print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links, "
          f"{count} names, and {len(outside)} addresses at other sites:", *sorted(outside))
    return bool(links or names or len(pages) < 40 or count < 300)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
