"""Readers of the pictures that the viewer writes, from their formats alone: PNG, GIF with its compression, the
cross-reference table of a PDF, and the window dump that Xvfb keeps of its screen."""
import struct
import zlib
from collections import namedtuple

import numpy as np

Frame = namedtuple("Frame", "delay area colors pixels")  # [1/100 s], (x, y, width, height), [height, width, 3] of all


CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # by PNG color type; 3 is a palette


def unfilter(rows, width, channels):
    """Undoes the PNG filters. rows: [row, 1 + bytes], a row's first byte names its filter. -> [row, column, channel]

    Each byte was written less a guess from the pixel to its left, the one above and the one between them, so a pixel
    waits for three others. All pixels of one diagonal wait for none of each other and are undone together.
    """
    height, kinds = len(rows), rows[:, 0]
    if kinds.max() > 4:
        raise ValueError(f"filter {kinds.max()} does not exist")
    image = np.zeros((height + 1, width + 1, channels), np.int16)  # a row and a column of zeros before the picture
    image[1:, 1:] = rows[:, 1:].reshape(height, width, channels)
    for diagonal in range(height + width - 1):
        row = np.arange(max(0, diagonal - width + 1), min(height, diagonal + 1))
        column = diagonal - row
        left, up, corner = image[row + 1, column], image[row, column + 1], image[row, column]
        kind = kinds[row][:, None]
        far = [np.abs(up - corner), np.abs(left - corner), np.abs(left + up - 2 * corner)]  # of left, up, corner
        paeth = np.where((far[0] <= far[1]) & (far[0] <= far[2]), left, np.where(far[1] <= far[2], up, corner))
        guess = np.select([kind == 1, kind == 2, kind == 3, kind == 4], [left, up, (left + up) // 2, paeth], 0)
        image[row + 1, column + 1] = (image[row + 1, column + 1] + guess) & 255
    return image[1:, 1:].astype(np.uint8)


def read_png(data):
    """[height, width, 4], uint8, from the bytes of a PNG file: 8 bits a channel, not interlaced."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("no PNG file")
    at, packed, palette, alpha, head = 8, b"", None, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if zlib.crc32(kind + body) != struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0]:
            raise ValueError(f"chunk {kind.decode()} has a wrong checksum")
        if kind == b"IHDR":
            head = struct.unpack(">IIBBBBB", body)
        elif kind == b"PLTE":
            palette = np.frombuffer(body, np.uint8).reshape(-1, 3)
        elif kind == b"tRNS":
            alpha = body
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    width, height, bits, color, _, _, interlaced = head
    if bits != 8 or interlaced or (color != 3 and alpha):
        raise ValueError(f"{bits} bits, color type {color}, interlaced {interlaced}: not written by the viewer")
    channels = 1 if color == 3 else CHANNELS[color]
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * channels)
    image = unfilter(rows, width, channels)
    out = np.full((height, width, 4), 255, np.uint8)
    if color == 3:
        out[:, :, :3] = palette[image[:, :, 0]]
        opacity = np.full(256, 255, np.uint8)
        opacity[:len(alpha)] = np.frombuffer(alpha, np.uint8)
        out[:, :, 3] = opacity[image[:, :, 0]]
    elif channels < 3:
        out[:, :, :3] = image[:, :, :1]
        out[:, :, 3] = image[:, :, 1] if channels == 2 else 255
    else:
        out[:, :, :channels] = image
    return out


def repacked_png(data):
    """The same pixels in fewer bytes: without filters, which help photographs and not cells of one color, and without
    an opacity that is 255 everywhere. Chunks other than the pixels stay."""
    image = read_png(data)
    color = 2 if (image[:, :, 3] == 255).all() else 6
    pixels = np.ascontiguousarray(image[:, :, :CHANNELS[color]])
    packed = zlib.compress(b"".join(b"\0" + row.tobytes() for row in pixels), 9)
    head = struct.pack(">IIBBBBB", image.shape[1], image.shape[0], 8, color, 0, 0, 0)
    out, at, written = data[:8], 8, False
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        at += 12 + length
        if kind in (b"PLTE", b"tRNS") or (kind == b"IDAT" and written):
            continue
        body = {b"IHDR": head, b"IDAT": packed}.get(kind, body)
        written |= kind == b"IDAT"
        out += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return min(out, data, key=len)


def lzw(data, smallest):
    """The numbers that a GIF's blocks of codes stand for."""
    clear, end = 1 << smallest, (1 << smallest) + 1
    out, table, width, previous = bytearray(), [], smallest + 1, None
    bits = have = 0
    for byte in data:
        bits |= byte << have
        have += 8
        while have >= width:
            code, bits, have = bits & ((1 << width) - 1), bits >> width, have - width
            if code == clear:
                table = [bytes([i]) for i in range(clear)] + [b"", b""]
                width, previous = smallest + 1, None
            elif code == end:
                return bytes(out)
            else:
                entry = table[code] if code < len(table) else previous + previous[:1]
                out += entry
                if previous is not None and len(table) < 4096:
                    table.append(previous + entry[:1])
                previous = entry
                if len(table) == 1 << width and width < 12:
                    width += 1
    raise ValueError("codes without an end")


def read_gif(data):
    """(rounds, frames): 0 rounds repeat endlessly; each frame is the complete picture on the screen."""
    assert data[:6] == b"GIF89a", data[:6]
    width, height, packed = struct.unpack("<HHB", data[6:11])
    assert packed & 0x80 == 0, "a palette for all frames"
    screen, frames, rounds = np.zeros((height, width, 3), np.uint8), [], None
    delay, transparent, at = 0, None, 13

    def blocks(at):
        content = b""
        while data[at]:
            content += data[at + 1:at + 1 + data[at]]
            at += 1 + data[at]
        return content, at + 1

    while data[at] != 0x3B:
        if data[at] == 0x21:
            content, after = blocks(at + 2)
            if data[at + 1] == 0xF9:
                delay, = struct.unpack("<H", content[1:3])
                transparent = content[3] if content[0] & 1 else None
                assert content[0] >> 2 & 7 == 1, "what was shown stays"
            elif content.startswith(b"NETSCAPE2.0"):
                rounds, = struct.unpack("<H", content[12:14])
            at = after
        elif data[at] == 0x2C:
            left, top, across, down, packed = struct.unpack("<HHHHB", data[at + 1:at + 10])
            assert packed & 0x80, "each frame has a palette"
            colors = 2 << (packed & 7)
            table = np.frombuffer(data[at + 10:at + 10 + 3 * colors], np.uint8).reshape(-1, 3)
            at += 10 + 3 * colors
            codes, after = blocks(at + 1)
            index = np.frombuffer(lzw(codes, data[at]), np.uint8).reshape(down, across)
            part = screen[top:top + down, left:left + across]
            shown = np.ones(index.shape, bool) if transparent is None else index != transparent
            part[shown] = table[index[shown]]
            frames.append(Frame(delay, (left, top, across, down), colors, screen.copy()))
            at = after
        else:
            raise ValueError(f"byte {at} begins no block")
    assert at == len(data) - 1, "bytes after the end"
    return rounds, frames


def pdf_objects(data):
    """{number: bytes} of every object, found through the cross-reference table, whose offsets must be right."""
    start = int(data[data.rindex(b"startxref") + 9:].split()[0])
    lines = data[start:].split(b"\n")
    assert lines[0].strip() == b"xref", lines[0]
    first, count = map(int, lines[1].split())
    objects = {}
    for number, line in enumerate(lines[2:2 + count], first):
        offset, _, kind = line.split()
        if kind == b"n":
            head = b"%d 0 obj" % number
            assert data[int(offset):].startswith(head), (number, offset)
            objects[number] = data[int(offset) + len(head):data.index(b"endobj", int(offset))]
    return objects


def read_xwd(path):
    """[height, width, 3] of a screen of 24 bits as Xvfb -fbdir keeps it: an X window dump, header in big endian."""
    with open(path, "rb") as file:
        data = file.read()
    header = struct.unpack(">25I", data[:100])
    size, width, height, order, line = header[0], header[4], header[5], header[7], header[12]
    colors, bits = header[19], header[11]
    assert header[1] == 7 and bits == 32, header
    at = size + 12 * colors
    pixels = np.frombuffer(data[at:at + line * height], np.uint8).reshape(height, line)[:, :width * 4]
    pixels = pixels.reshape(height, width, 4)
    return pixels[:, :, 2::-1] if order == 0 else pixels[:, :, 1:]
