"""An SVG of rectangles, text, lines and arrows that fits light and dark pages: its colors follow `prefers-color-scheme`.

finish() raises if a text leaves the canvas or its box, or overlaps another text: diagrams are checked when they are generated.
Widths of text are estimated generously, because a reader's browser chooses the font. Units are pixels at scale 1.
"""
import math
from xml.sax.saxutils import escape

SANS = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
MONO = "'JetBrains Mono', ui-monospace, Consolas, 'DejaVu Sans Mono', monospace"
SMALL, NORMAL, LARGE = 13, 15, 18  # the sizes of text
SANS_WIDTH, MONO_WIDTH = 0.58, 0.605  # of a character, in ems

# name: (light fill, light stroke, dark fill, dark stroke). Hues of Okabe and Ito, distinguishable with color blindness.
COLORS = {
    "plain": ("#ffffff", "#8b93a1", "#1f232b", "#7d8695"),
    "panel": ("#f4f5f8", "#d5d9e0", "#1b1e25", "#343943"),
    "gray": ("#dfe2e8", "#6b7382", "#343943", "#949dab"),
    "blue": ("#d3e6f8", "#0b67ad", "#143450", "#6cb6f5"),
    "orange": ("#fbe4c2", "#a86400", "#47320b", "#f0b24b"),
    "green": ("#cdeedb", "#08784a", "#10402a", "#5fd39a"),
    "red": ("#fad7d0", "#b93317", "#4d1d14", "#ff8f73"),
    "purple": ("#e8dbf4", "#733a99", "#37244a", "#c79bea"),
}
BACKGROUND, INK, DIM = ("#ffffff", "#14161c"), ("#1b1f27", "#e9ebf0"), ("#525b69", "#aab2bf")


def number(value):
    """At most one decimal, without a trailing zero."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def width_of(text, size, mono=False, bold=False):
    return len(text) * size * (MONO_WIDTH if mono else SANS_WIDTH * (1.06 if bold else 1))


class Drawing:
    def __init__(self, width, height, title, description):
        self.size, self.parts, self.texts = (width, height), [], []
        self.title, self.description = title, description

    def rect(self, x, y, w, h, color="plain", radius=5, dashed=False):
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<rect class="{color}" x="{number(x)}" y="{number(y)}" width="{number(w)}" height="{number(h)}" '
                          f'rx="{radius}"{dash}/>')

    def text(self, x, y, text, size=NORMAL, anchor="start", color="ink", mono=False, bold=False, within=None):
        """One line with its baseline at y. color: ink, dim, or a name of COLORS. within: the width that it must fit into."""
        width = width_of(text, size, mono, bold)
        if within is not None and width > within:
            raise ValueError(f"{self.title}: '{text}' is {width:.0f} wide, its box {within:.0f}")
        left = x - width * {"start": 0, "middle": 0.5, "end": 1}[anchor]
        self.texts.append((left, y - 0.8 * size, left + width, y + 0.25 * size, text))
        style = f"{color if color in ('ink', 'dim') else 't-' + color}{' mono' if mono else ''}{' bold' if bold else ''}"
        place = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.parts.append(f'<text class="{style}" x="{number(x)}" y="{number(y)}" font-size="{size}"{place}>{escape(text)}</text>')

    def box(self, x, y, w, h, lines, color="plain", size=NORMAL, mono=False):
        """A rectangle with centered lines; the first is bold. A line (text, 'mono') or (text, 'dim') has that style."""
        self.rect(x, y, w, h, color)
        height = size * 1.3
        top = y + h / 2 - height * (len(lines) - 1) / 2 + size * 0.35
        for index, line in enumerate(lines):
            text, style = line if isinstance(line, tuple) else (line, "")
            self.text(x + w / 2, top + index * height, text, size if index == 0 else size - 1 if size > SMALL else size, "middle",
                      "dim" if style == "dim" else "ink", mono or style == "mono", index == 0, within=w - 6)

    def line(self, points, color="gray", arrow=True, dashed=False, wide=False):
        """A polyline; with `arrow`, a head at its last point."""
        points = list(points)
        if arrow:
            (x0, y0), (x1, y1) = points[-2:]
            angle, length = math.atan2(y1 - y0, x1 - x0), 10 if wide else 8
            back = [(x1 - length * math.cos(angle + turn), y1 - length * math.sin(angle + turn)) for turn in (-0.45, 0.45)]
            self.parts.append(f'<polygon class="h-{color}" points="' +
                              " ".join(f"{number(x)},{number(y)}" for x, y in [(x1, y1), *back]) + '"/>')
            points[-1] = (x1 - 0.8 * length * math.cos(angle), y1 - 0.8 * length * math.sin(angle))
        dash = ' stroke-dasharray="6 5"' if dashed else ""
        self.parts.append(f'<polyline class="l-{color}{" wide" if wide else ""}" points="' +
                          " ".join(f"{number(x)},{number(y)}" for x, y in points) + f'"{dash}/>')

    def arc(self, x0, y0, x1, y1, height, color="gray", dashed=False):
        """A curve from one point to another that rises by `height`, with a head."""
        steps = 24
        points = []
        for step in range(steps + 1):
            t = step / steps
            points.append((x0 + (x1 - x0) * t, y0 + (y1 - y0) * t - 4 * height * t * (1 - t)))
        self.line(points, color, dashed=dashed)

    def finish(self):
        width, height = self.size
        for index, (left, top, right, bottom, text) in enumerate(self.texts):
            if left < 0 or right > width or top < 0 or bottom > height:
                raise ValueError(f"{self.title}: '{text}' leaves the canvas: x {left:.0f} to {right:.0f} of {width}, "
                                 f"y {top:.0f} to {bottom:.0f} of {height}")
            for other in self.texts[:index]:
                if left < other[2] and other[0] < right and top < other[3] and other[1] < bottom:
                    raise ValueError(f"{self.title}: '{text}' overlaps '{other[4]}'")
        light = [f".bg{{fill:{BACKGROUND[0]}}}.ink{{fill:{INK[0]}}}.dim{{fill:{DIM[0]}}}"]
        dark = [f".bg{{fill:{BACKGROUND[1]}}}.ink{{fill:{INK[1]}}}.dim{{fill:{DIM[1]}}}"]
        for name, (fill, stroke, dark_fill, dark_stroke) in COLORS.items():
            light.append(f".{name}{{fill:{fill};stroke:{stroke}}}.l-{name}{{fill:none;stroke:{stroke}}}"
                         f".h-{name},.t-{name}{{fill:{stroke}}}")
            dark.append(f".{name}{{fill:{dark_fill};stroke:{dark_stroke}}}.l-{name}{{stroke:{dark_stroke}}}"
                        f".h-{name},.t-{name}{{fill:{dark_stroke}}}")
        style = "\n".join([f"text{{font-family:{SANS}}}.mono{{font-family:{MONO}}}.bold{{font-weight:600}}"
                           "rect,polyline{stroke-width:1.4}polyline.wide{stroke-width:2.6}.bg{stroke:none}", *light,
                           "@media (prefers-color-scheme: dark) {", *dark, "}"])
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
                f'role="img" aria-labelledby="title description">\n<title id="title">{escape(self.title)}</title>\n'
                f'<desc id="description">{escape(self.description)}</desc>\n<style>\n{style}\n</style>\n'
                f'<rect class="bg" width="{width}" height="{height}" rx="8"/>\n' + "\n".join(self.parts) + "\n</svg>\n")
