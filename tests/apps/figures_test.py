#!/usr/bin/env python3
"""Redraws every picture of docs/figures with the program and compares it with the one that is kept, pixel by pixel.

docs/figures/figures.json lists the pictures: a name, and what `kvscope-viewer --render` is given for it. A picture has
gone stale when its size differs, when one channel of one pixel is more than 6 of 255 levels off, or when more than
0.1 % of the pixels are more than 2 levels off: less is what another version of a font library makes of the same letters.
An animation (.gif) is compared frame by frame in the same way. The redrawn pictures are decoded here, from the PNG and
GIF standards, not by the libraries that wrote them.

Besides: every picture in the folder is in the list, the pages show those in the list and no others, and all of them
together stay below 10 MB.

  figures_test.py --viewer build/release/apps/kvscope-viewer/kvscope-viewer            compare
  figures_test.py --viewer build/release/apps/kvscope-viewer/kvscope-viewer --update   redraw those that have gone stale

The viewer sees no system font while it draws: every glyph must be in a font that it carries, or the pictures would
depend on what is installed. The picture of BOTH_WAYS is drawn with the system's fonts too, and must not change.

Redrawn PNG files are kept in fewer bytes than the viewer writes, pixel for pixel the same.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np

from pictures import read_gif, read_png, repacked_png

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "figures"
MOST_BYTES = 10_000_000  # of all pictures together
MOST_LEVELS = 6          # a channel of a pixel may be off by
FEW_LEVELS, FEW_PIXELS = 2, 0.001
BOTH_WAYS = "gallery_partial_page.png"  # numbers with separated thousands in both families
NO_FONTS = ('<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>{0}/none</dir>'
            '<cachedir>{0}/cache</cachedir></fontconfig>\n')


def film_difference(kept, drawn):
    """As difference(), of two animations."""
    if [frame.delay for frame in kept] != [frame.delay for frame in drawn]:
        return f"has {len(kept)} frames in {sum(f.delay for f in kept)} hundredths of a second, drawn {len(drawn)} in " \
               f"{sum(f.delay for f in drawn)}, or other times of single frames"
    for number, (before, now) in enumerate(zip(kept, drawn)):
        found = difference(before.pixels, now.pixels)
        if found:
            return f"frame {number} {found}"
    return None


def difference(kept, drawn):
    """In words how two pictures differ, or nothing when they are the same but for what fonts may do."""
    if kept.shape != drawn.shape:
        return "is {1}x{0}, drawn {3}x{2}".format(*kept.shape[:2], *drawn.shape[:2])
    off = np.abs(kept.astype(np.int16) - drawn.astype(np.int16)).max(axis=2)
    few = float((off > FEW_LEVELS).mean())
    if off.max() <= MOST_LEVELS and few <= FEW_PIXELS:
        return None
    rows, columns = np.nonzero(off > FEW_LEVELS)
    return (f"differs in {100 * few:.2f} % of its pixels, by up to {off.max()} levels, within x {columns.min()} to "
            f"{columns.max()}, y {rows.min()} to {rows.max()}")


def stale(kept, drawn):
    """Why the kept file is not what was drawn, or nothing. Equal bytes, the usual case, are not decoded."""
    if not kept.exists():
        return "is missing"
    data = kept.read_bytes()
    if data == drawn:
        return None
    if kept.suffix == ".gif":
        return film_difference(read_gif(data)[1], read_gif(drawn)[1])
    return difference(read_png(data), read_png(drawn))


def command(viewer, name, arguments):
    return [str(viewer), "--render", name, *arguments]


def redraw(viewer, name, arguments, folder, system_fonts=False):
    """The picture's bytes; raises with what the program said. It runs in the repository's root: paths are from there."""
    target = os.path.join(folder, name)
    environment = dict(os.environ, QT_QPA_PLATFORM="offscreen", LC_ALL="C.UTF-8")
    if not system_fonts:
        environment["FONTCONFIG_FILE"] = os.path.join(folder, "fonts.conf")
    done = subprocess.run(command(viewer, target, arguments), cwd=ROOT, capture_output=True, text=True, timeout=300,
                          env=environment, check=False)
    if done.returncode != 0 or not os.path.exists(target):
        raise RuntimeError(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    with open(target, "rb") as file:
        return file.read()


def folder_faults(figures):
    """The list against the folder and the pages."""
    seen = {path.name: path.stat().st_size for path in [*FOLDER.glob("*.png"), *FOLDER.glob("*.gif")]}
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    named = re.compile(r"figures/([\w@.-]+\.(?:png|gif))")
    shown = {name for page in pages for name in named.findall(page.read_text(encoding="utf-8"))}
    listed = [figure["file"] for figure in figures]
    faults = [f"{name}: listed twice" for name in sorted({name for name in listed if listed.count(name) > 1})]
    faults += [f"{name}: in the folder and not in figures.json, so it cannot be redrawn" for name in sorted(seen)
               if name not in listed]
    faults += [f"{name}: shown by no page" for name in sorted(set(listed) - shown)]
    faults += [f"{name}: shown by a page and not in figures.json" for name in sorted(shown - set(listed))]
    total = sum(seen.values())
    if total > MOST_BYTES:
        faults.append(f"all pictures: {total:,} bytes, more than {MOST_BYTES:,}: draw them smaller or drop one")
    return faults


def check_oneself():
    """The decoder on pictures made here, each filter once, and the comparison at its limits: a check that accepts
    everything would hold nothing."""
    rng = np.random.default_rng(1)
    image = rng.integers(0, 256, (7, 5, 4), dtype=np.uint8)
    raw = image.reshape(7, 20).astype(int)
    lines = b""
    for number, kind in enumerate([0, 1, 2, 3, 4, 4, 1]):
        line, up = raw[number], raw[number - 1] if number else np.zeros(20, int)
        left, corner = np.r_[[0] * 4, line[:-4]], np.r_[[0] * 4, up[:-4]]
        distance = [np.abs(left + up - corner - x) for x in (left, up, corner)]
        paeth = np.where((distance[0] <= distance[1]) & (distance[0] <= distance[2]), left,
                         np.where(distance[1] <= distance[2], up, corner))
        guess = [0 * line, left, up, (left + up) // 2, paeth][kind]
        lines += bytes([kind]) + ((line - guess) % 256).astype(np.uint8).tobytes()

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    png = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 5, 7, 8, 6, 0, 0, 0)) +
           chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
    assert (read_png(png) == image).all(), "the decoder reads another picture than the one that was written"
    assert (read_png(repacked_png(png)) == image).all(), "repacking changes pixels"
    cells = np.repeat(np.repeat(image, 40, axis=0), 40, axis=1)
    cells[:, :, 3] = 255
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(cells))
    large = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 200, 280, 8, 6, 0, 0, 0)) +
             chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))
    assert (read_png(repacked_png(large)) == cells).all() and len(repacked_png(large)) < len(large)
    flat = np.full((100, 100, 4), 100, np.uint8)
    for levels, pixels, same in ((6, 10, True), (7, 1, False), (3, 10, True), (3, 11, False), (2, 10_000, True)):
        other = flat.copy().reshape(-1, 4)
        other[:pixels, 1] += levels
        found = difference(flat, other.reshape(flat.shape))
        assert (found is None) == same, f"{pixels} pixels off by {levels}: {found}"
    assert difference(flat, flat[:, 1:]) == "is 100x100, drawn 99x100"
    # Two frames of 2 x 2 pixels: colors 0 1 1 0, then its last pixel in color 1 with the rest transparent (color 2).
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 2, 2, 0x81) + bytes(range(12)) + b"\x02"
    control = b"\x21\xf9\x04\x05" + struct.pack("<HB", 25, 2) + b"\x00"

    def codes(*pixels):  # each preceded by a clear code, so that every code has three bits
        bits = "".join(f"{code:03b}"[::-1] for pixel in pixels for code in (4, pixel)) + f"{5:03b}"[::-1]
        bits += "0" * (-len(bits) % 8)
        body = bytes(int(bits[n:n + 8][::-1], 2) for n in range(0, len(bits), 8))
        return bytes([len(body)]) + body + b"\x00"

    _, film = read_gif(b"GIF89a" + struct.pack("<HHBBB", 2, 2, 0, 0, 0) + control + frame + codes(0, 1, 1, 0) + control +
                       frame + codes(2, 2, 2, 1) + b"\x3b")
    assert [frame.delay for frame in film] == [25, 25]
    assert [frame.pixels[:, :, 0].tolist() for frame in film] == [[[0, 3], [3, 0]], [[0, 3], [3, 3]]]
    assert film_difference(film, film) is None and film_difference(film, film[:1]) is not None
    assert film_difference(film, [film[0], film[0]]).startswith("frame 1 differs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--viewer", type=os.path.abspath, required=True)
    parser.add_argument("--update", action="store_true", help="redraw the pictures that have gone stale")
    parser.add_argument("names", nargs="*", help="pictures, default: all")
    arguments = parser.parse_args()
    check_oneself()
    figures = json.loads((FOLDER / "figures.json").read_text(encoding="utf-8"))
    chosen = [f for f in figures if not arguments.names or f["file"] in arguments.names]
    faults, redrawn = [], []
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "fonts.conf").write_text(NO_FONTS.format(folder), encoding="utf-8")
        for figure in chosen:
            name, kept = figure["file"], FOLDER / figure["file"]
            try:
                data = redraw(arguments.viewer, name, figure["arguments"], folder)
                found = stale(kept, data)
                if name == BOTH_WAYS and redraw(arguments.viewer, name, figure["arguments"], folder, True) != data:
                    faults.append(f"{name}: changes with the fonts that are installed: some glyph is in no embedded font")
            except (RuntimeError, ValueError) as error:
                faults.append(f"{name}: cannot be drawn: {error}")
                continue
            if found is None:
                continue
            if arguments.update:
                if kept.suffix == ".png":
                    data = repacked_png(data)
                kept.write_bytes(data)
                redrawn.append(f"{name}: {found}; redrawn, {len(data):,} bytes")
            else:
                how = shlex.join(command(os.path.relpath(arguments.viewer, ROOT), f"docs/figures/{name}",
                                         figure["arguments"]))
                faults.append(f"{name}: {found}; look at it, and if it is right redraw it with\n  {how}")
    faults += folder_faults(figures)
    for line in redrawn + faults:
        print(line)
    print(f"{len(chosen)} pictures, {len(redrawn)} redrawn, {len(faults)} faults")
    return 1 if faults or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
