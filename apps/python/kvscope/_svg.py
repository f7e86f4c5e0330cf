"""Drawings as SVG: shapes in roles, which a light or a dark theme colors.

    d = Drawing(400, "A problem")
    d.box(20, 60, 40, 24, fill="owner0", select="block 7")
    d.text(24, 76, "7", role="ink0", mono=True)
    d.svg()                 # the colors follow the notebook's theme; theme="light" or "dark" fixes them

All lengths are in pixels. Text is escaped: names may come from files. The colors are those of the viewer's themes.
"""
from __future__ import annotations

import html
import re
from typing import Iterable, Sequence

OWNERS = 8
HEATS = 6  # error / allowed error: 0, up to 1/4, up to 1, up to 4, up to 64, more
RAMPS = 6  # from few to many
HEAT_LIMITS = (0.0, 0.25, 1.0, 4.0, 64.0)

_DARK = {"surface": "#121419", "card": "#1a1d24", "border": "#2c303a", "text": "#eaecf1", "quiet": "#9aa1b0",
         "good": "#7fdba8", "free": "#252932", "line": "#6c7284", "accent": "#ffcf5c", "shared": "#9650d0",
         "cached": "#4a5161", "warning": "#ff7b72", "black": "#101216", "white": "#ffffff",
         "heat0": "#252932", "heat1": "#27445f", "heat2": "#2f7da6", "heat3": "#d8943a", "heat4": "#e2603f",
         "heat5": "#ff4d6d",
         "ramp0": "#232a36", "ramp1": "#2a3d55", "ramp2": "#325476", "ramp3": "#3d6f9c", "ramp4": "#568fc4",
         "ramp5": "#8fbcea"}
_DARK_OWNERS = ("#76a1e2", "#d2933d", "#61d69a", "#cc5a6e", "#1896a6", "#a6d35e", "#e39ec7", "#987950")
_LIGHT = {"surface": "#f3f4f7", "card": "#ffffff", "border": "#d9dde4", "text": "#1b1f27", "quiet": "#5d6675",
          "good": "#14764a", "free": "#eceef2", "line": "#787878", "accent": "#a86300", "shared": "#8f54cf",
          "cached": "#bfc6d2", "warning": "#c22f2a", "black": "#101216", "white": "#ffffff",
          "heat0": "#eceef2", "heat1": "#c6dbef", "heat2": "#6baed6", "heat3": "#f0a13c", "heat4": "#d9502e",
          "heat5": "#99132f",
         "ramp0": "#eef3f9", "ramp1": "#d3e2f1", "ramp2": "#a9c8e4", "ramp3": "#73a5d0", "ramp4": "#3f7fb8",
         "ramp5": "#1b5690"}
_LIGHT_OWNERS = ("#1e67ab", "#d69122", "#50bb79", "#bb3b5e", "#1f8b97", "#92c143", "#cf86b8", "#7c5c3c")


def _luminance(color: str) -> float:
    """Relative luminance of WCAG 2."""
    def linear(byte: int) -> float:
        c = byte / 255
        return c / 12.92 if c <= 0.03928 else float(((c + 0.055) / 1.055) ** 2.4)
    red, green, blue = (linear(int(color[i:i + 2], 16)) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    """WCAG 2 contrast ratio of two colors "#rrggbb", 1 to 21."""
    high, low = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def ink_on(fill: str) -> str:
    """Black or white, whichever reads better on `fill`."""
    return max(("#101216", "#ffffff"), key=lambda ink: contrast(ink, fill))


def _palette(plain: dict[str, str], owners: Sequence[str]) -> dict[str, str]:
    colors = dict(plain)
    colors.update({f"owner{i}": color for i, color in enumerate(owners)})
    for role in ("shared", "cached", *(f"owner{i}" for i in range(OWNERS)), *(f"heat{i}" for i in range(HEATS)),
                 *(f"ramp{i}" for i in range(RAMPS))):
        colors[f"ink-{role}"] = ink_on(colors[role])
    return colors


PALETTES = {"light": _palette(_LIGHT, _LIGHT_OWNERS), "dark": _palette(_DARK, _DARK_OWNERS)}
THEMES = ("auto", "light", "dark")

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # not allowed in XML


def escape(words: object) -> str:
    """Text for SVG and HTML; characters that XML cannot hold become U+FFFD."""
    return html.escape(_UNPRINTABLE.sub("\ufffd", str(words)))


def text_width(words: str, size: float, mono: bool = False) -> float:
    """An upper estimate of the width of a line [px]: the font of the reader is not known."""
    return len(words) * size * (0.62 if mono else 0.56)


def fit(words: object, width: float, size: float, mono: bool = False) -> str:
    """The words on one line, cut with an ellipsis if they are wider than `width` [px]."""
    line = " ".join(str(words).split())
    most = int(width / text_width("m", size, mono))
    return line if len(line) <= most else line[:max(most - 1, 0)] + "\u2026"


def wrap(words: object, width: float, size: float, mono: bool = False) -> list[str]:
    """The words in lines of at most `width` [px]; a longer word is cut."""
    lines = [""]
    for word in str(words).split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size, mono) > width:
            lines.append("")
            longer = word
        lines[-1] = fit(longer, width, size, mono)
    return lines


def owner_role(number: int) -> str:
    """The color of a sequence or copy; beyond eight, colors repeat with another pattern (owner_pattern)."""
    return f"owner{number % OWNERS}"


def owner_pattern(number: int) -> str:
    return ("", "dots", "rows", "columns")[number // OWNERS % 4]


def heat_role(ratio: float) -> str:
    """The color of an error that is `ratio` times the allowed one; NaN counts as the largest."""
    below = sum(1 for limit in HEAT_LIMITS if ratio > limit) if ratio == ratio else HEATS - 1
    return f"heat{below}"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def ramp_role(value: float, low: float, high: float) -> str:
    """The color of a value between `low` and `high`, in equal parts."""
    share = 0.0 if high <= low else (value - low) / (high - low)
    return f"ramp{min(RAMPS - 1, max(0, int(share * RAMPS)))}"


class Drawing:
    """A card with a title, on which shapes are put. The height grows with what is drawn."""

    def __init__(self, width: float, title: str, subtitle: str = "", role: str = "text") -> None:
        self.width, self.height = width, 0.0
        self.title = title
        self._parts: list[str] = []
        self._roles: set[str] = set()
        self.top = 44.0  # below the title
        title = fit(title, width * 0.6, 15)
        self.text(18, 27, title, role=role, size=15, bold=True)
        if subtitle:
            left = 18 + text_width(title, 15) + 14
            self.text(left, 27, fit(subtitle, width - left - 14, 12), role="quiet")

    def _use(self, role: str) -> str:
        self._roles.add(role)
        return role

    def _grow(self, bottom: float) -> None:
        self.height = max(self.height, bottom + 14)

    def box(self, x: float, y: float, width: float, height: float, *, fill: str = "free", stroke: str = "",
            line: float = 1.0, radius: float = 2.5, pattern: str = "", tip: str = "", select: str = "") -> None:
        """A rectangle. pattern: "", "hatch", "dots", "rows" or "columns". tip: shown under the mouse. select: the
        object that a click selects in the notebook widget, such as "block 7"."""
        classes = f"f-{self._use(fill)}" if fill else "none"
        if stroke:
            classes += f" s-{self._use(stroke)}"
        data = f' data-select="{escape(select)}"' if select else ""
        inside = f"<title>{escape(tip)}</title>" if tip else ""
        self._parts.append(f'<rect class="{classes}" x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" '
                           f'height="{_number(height)}" rx="{_number(min(radius, width / 3, height / 3))}"'
                           f'{f" stroke-width={chr(34)}{_number(line)}{chr(34)}" if stroke else ""}{data}>{inside}'
                           "</rect>")
        if pattern and width >= 3 and height >= 3:
            self._pattern(x, y, width, height, pattern, f"ink-{fill}" if f"ink-{fill}" in PALETTES["dark"] else "text")
        self._grow(y + height)

    def _pattern(self, x: float, y: float, width: float, height: float, kind: str, role: str) -> None:
        """Lines inside a rectangle, without <pattern>: its ids would be shared by all drawings of a page."""
        step, path, dash = 5.0, [], ""
        if kind == "hatch":
            at = step
            while at < width + height:
                path.append(f"M{_number(x + max(0.0, at - height))} {_number(y + min(at, height))}"
                            f"L{_number(x + min(at, width))} {_number(y + max(0.0, at - width))}")
                at += step
        elif kind == "dots":
            dash = ' stroke-dasharray="1 4"'
        if kind in ("dots", "rows"):
            left = 2.0 if dash else 0.0
            path = [f"M{_number(x + left)} {_number(y + step * (i + .5))}h{_number(width - left)}"
                    for i in range(int(height // step))]
        elif kind == "columns":
            path = [f"M{_number(x + step * (i + .5))} {_number(y)}v{_number(height)}" for i in range(int(width // step))]
        if path:
            self._parts.append(f'<path class="none s-{self._use(role)}" stroke-opacity="0.35"{dash} '
                               f'pointer-events="none" d="{"".join(path)}"/>')

    def text(self, x: float, y: float, words: object, *, role: str = "text", size: float = 12, anchor: str = "start",
             mono: bool = False, bold: bool = False) -> None:
        """One line with its baseline at `y`. anchor: "start", "middle" or "end"."""
        classes = f"f-{self._use(role)}" + (" m" if mono else "")
        more = (f' text-anchor="{anchor}"' if anchor != "start" else "") + (' font-weight="600"' if bold else "")
        self._parts.append(f'<text class="{classes}" x="{_number(x)}" y="{_number(y)}" font-size="{_number(size)}"'
                           f'{more}>{escape(words)}</text>')
        self._grow(y + size / 3)

    def path(self, points: Iterable[tuple[float, float]], *, role: str = "line", line: float = 1.5, dash: str = "",
             arrow: bool = False, curve: bool = False) -> None:
        """Lines from point to point; arrow: a head at the last one; curve: one S-shaped curve from the first point to
        the last."""
        at = list(points)
        if curve:
            (x0, y0), (x1, y1) = at[0], at[-1]
            middle = (y0 + y1) / 2
            d = (f"M{_number(x0)} {_number(y0)}C{_number(x0)} {_number(middle)} {_number(x1)} {_number(middle)} "
                 f"{_number(x1)} {_number(y1)}")
            before = (x1, middle)
        else:
            d = "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in at)
            before = at[-2]
        more = f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(f'<path class="none s-{self._use(role)}" stroke-width="{_number(line)}" '
                           f'pointer-events="none"{more} d="{d}"/>')
        if arrow:
            (x0, y0), (x1, y1) = before, at[-1]
            length = max(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 1e-6)
            ux, uy = (x1 - x0) / length, (y1 - y0) / length
            corners = [(x1, y1), (x1 - 7 * ux - 3.5 * uy, y1 - 7 * uy + 3.5 * ux),
                       (x1 - 7 * ux + 3.5 * uy, y1 - 7 * uy - 3.5 * ux)]
            shape = "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in corners) + "Z"
            self._parts.append(f'<path class="f-{self._use(role)}" pointer-events="none" d="{shape}"/>')
        self._grow(max(y for _, y in at))

    def key(self, x: float, y: float, entries: Iterable[tuple[str, str, str]]) -> None:
        """A legend in one line at `y`: (fill, pattern, words) of each entry; it wraps at the right edge."""
        left = x
        for fill, pattern, words in entries:
            wide = 18 + text_width(words, 11) + 14
            if left > x and left + wide > self.width - 14:
                left, y = x, y + 18
            self.box(left, y - 10, 12, 12, fill=fill, pattern=pattern, stroke="border")
            self.text(left + 18, y, words, role="quiet", size=11)
            left += wide

    def note(self, words: str) -> None:
        """A remark below all that is drawn, such as what was left out."""
        for line in wrap(words, self.width - 36, 11):
            self.text(18, self.height + 8, line, role="quiet", size=11)

    def svg(self, theme: str = "auto") -> str:
        """The drawing as SVG text. theme: "light", "dark", or "auto", the theme of the notebook or of the system."""
        if theme not in THEMES:
            raise ValueError(f"theme is {theme!r}: pass one of {', '.join(THEMES)}")
        name = f"svg.kvscope-{theme}"
        if theme == "auto":
            dark = self._style("svg.kvscope-auto", "dark")
            style = (self._style(name, "light") + "@media (prefers-color-scheme:dark){" + dark + "}"
                     + self._style("[data-jp-theme-light=true] " + name, "light")
                     + self._style("[data-jp-theme-light=false] " + name, "dark")
                     + self._style(".vscode-dark " + name, "dark") + self._style(".vscode-light " + name, "light"))
        else:
            style = self._style(name, theme)
        wide, high = _number(self.width), _number(self.height)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" class="kvscope-{theme}" role="img" '
                f'aria-label="{escape(self.title)}" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
                f'style="max-width:100%;height:auto">'
                f"<style>{style}</style>"
                f'<rect class="f-card s-border" x="0.5" y="0.5" width="{_number(self.width - 1)}" '
                f'height="{_number(self.height - 1)}" rx="8"/>{"".join(self._parts)}</svg>')

    def _style(self, scope: str, theme: str) -> str:
        colors = PALETTES[theme]
        fonts = (f"{scope} text{{font-family:Inter,'Helvetica Neue',Arial,sans-serif;white-space:pre}}"
                 f"{scope} .m{{font-family:'JetBrains Mono','DejaVu Sans Mono',Menlo,monospace}}"
                 f"{scope} .none{{fill:none}}")
        used = "".join(f"{scope} .f-{role}{{fill:{colors[role]}}}{scope} .s-{role}{{stroke:{colors[role]}}}"
                       for role in sorted(self._roles | {"card", "border"}))
        return fonts + used
