"""MkDocs hooks: the pages as they are in the repository become pages of the site.

The sources are written for GitHub. Four things differ on the site, and are changed here in memory:

- README.md of the repository is the site's first page.
- A link from docs/ to a file outside, such as ../core/README.md, leads to a copy of that file below tree/. The files that such a
  page links to are added too. A link to a file that does not exist is left as it is, and `mkdocs build --strict` reports it.
- A fenced block with a file name behind its language (```json small.json) gets that name as its title.
- Lists follow CommonMark (nested text indented to the item's text); Python-Markdown needs 4 spaces and an empty line before a list.
"""
import os
import pathlib
import posixpath
import re

from mkdocs.structure.files import File, InclusionLevel

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"(\]\()([^)\s#]+)([^)\s]*\))")
ATTRIBUTE = re.compile(r'((?:src|srcset|href)=")([^"#]+)(")')
FENCE = re.compile(r"( *)(```+)(\w*) *(\S*)\s*$")
ITEM = re.compile(r"( *)([-*]|\d+\.)( +)(?=\S)")


def site_path(path):
    """Where the site has a file of the repository; path from its root, with slashes."""
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return path[len("docs/"):]
    path = re.sub(r"(^|/)\.", r"\1", path)  # MkDocs leaves out names that begin with a dot
    return "tree/" + path + ("" if "." in posixpath.basename(path) else ".txt")  # LICENSE: shown, not downloaded


def linked(folder, target):
    """The file of the repository that a link leads to, from its root, or None. A folder stands for its README.md."""
    if "://" in target or target.startswith(("/", "mailto:")):
        return None
    path = posixpath.normpath(posixpath.join(folder, target))
    if (ROOT / path).is_dir():
        path = posixpath.join(path, "README.md")
    return path if not path.startswith("..") and (ROOT / path).is_file() else None


def outside_fences(lines):
    """(number, line) of each line that is text, not code."""
    fence = None
    for number, line in enumerate(lines):
        found = FENCE.match(line)
        if found and fence is None:
            fence = found[2]
        elif fence is not None and line.strip() == fence:
            fence = None
        elif fence is None:
            yield number, line


def links_of(path):
    text = (ROOT / path).read_text(encoding="utf-8").split("\n")
    for _, line in outside_fences(text):
        for pattern in (LINK, ATTRIBUTE):
            for found in pattern.finditer(line):
                target = linked(posixpath.dirname(path), found[2])
                if target is not None:
                    yield target


def on_files(files, config):
    """Adds README.md and every file outside docs/ that a page links to, directly or through another such file."""
    todo = ["README.md"] + ["docs/" + file.src_uri for file in files.documentation_pages()]
    seen = set(todo)
    while todo:
        for target in links_of(todo.pop()):
            if target not in seen:
                seen.add(target)
                todo += [target] if target.endswith(".md") else []
    for path in sorted(seen):
        if path.startswith("docs/"):
            continue
        level = InclusionLevel.INCLUDED if path == "README.md" else InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, site_path(path), abs_src_path=str(ROOT / path), inclusion=level))
    return files


def with_lists(lines):
    """Nested text of list items indented by 4 spaces a level, and an empty line before a list."""
    out, levels, fence, shift = [], [], None, 0  # levels: (column of the marker, column of the item's text)
    for line in lines:
        found = FENCE.match(line)
        if fence is not None:
            out.append((" " * max(0, shift) + line) if shift >= 0 else line[-shift:])
            if line.strip() == fence:
                fence = None
            continue
        indent = len(line) - len(line.lstrip(" "))
        item = ITEM.match(line)
        if not line.strip():
            out.append(line)
            continue
        before = out[-1].strip() if out else ""
        sibling = False  # the next item of a list
        if not before or item or found:
            while levels and indent < levels[-1][1] and not (item and indent == levels[-1][0]):
                levels.pop()
            if item and levels and indent == levels[-1][0]:
                levels.pop()
                sibling = True
        interrupts = item and item[2] in ("-", "*", "1.")  # CommonMark: only these end a paragraph
        if item and (not before or sibling or interrupts) and (indent < 4 or levels):
            if before and not levels and not sibling:
                out.append("")
            out.append(" " * 4 * len(levels) + item[2] + " " + line[item.end():])
            levels.append((indent, item.end()))
            continue
        if item and item[2].endswith(".") and (indent < 4 or levels):
            line = line.replace(".", "\\.", 1)  # a number at the end of a sentence, first in its line
        shift = 4 * len(levels) - (levels[-1][1] if levels else 0)
        if found:
            fence = found[2]
        if levels and indent >= levels[-1][1]:
            out.append(" " * 4 * len(levels) + line[levels[-1][1]:])
        else:
            out.append(line)
    return out


def on_page_markdown(markdown, page, config, files):
    path = os.path.relpath(page.file.abs_src_path, ROOT).replace(os.sep, "/")
    here = posixpath.dirname(page.file.src_uri)

    def on_site(found):
        target = linked(posixpath.dirname(path), found[2])
        return found[0] if target is None else \
            found[1] + posixpath.relpath(site_path(target), here or ".") + found[3]

    lines = markdown.split("\n")
    text = set(number for number, _ in outside_fences(lines))
    for number, line in enumerate(lines):
        if number in text:
            line = ATTRIBUTE.sub(on_site, LINK.sub(on_site, line))
            lines[number] = line.replace("<details>", '<details markdown="1">')
        elif (found := FENCE.match(line)) and found[4]:
            lines[number] = f'{found[1]}{found[2]}{found[3]} title="{found[4]}"'
    return "\n".join(with_lists(lines))
