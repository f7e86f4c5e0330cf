"""Mutations of files: each takes bytes and a random.Random and returns other bytes. The same seed gives the same bytes on every machine.

Three levels, because a reader that checks a magic number or a checksum first would otherwise be tested on nothing else:
  bytes      any file: flipped bits, blocks inserted, deleted, doubled, exchanged, zeroed, cut off, spliced with a second file
  text       numbers replaced by boundary values, words and lines doubled, deleted and exchanged, NUL, escape sequences, invalid UTF-8
  structure  a JSON value changed at one path; the tensors of .npz and .safetensors changed and packed again with valid checksums and
             offsets; one cell, row or table of an SQLite file changed through SQLite
"""
import copy
import io
import json
import os
import re
import sqlite3
import struct
import tempfile
import zipfile

NUMBERS = ["0", "-1", "1", "2", "3", "7", "255", "256", "65535", "65536", "2147483646", "2147483647", "2147483648", "4294967295",
           "4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616",
           "-2147483648", "-9223372036854775808", "-9223372036854775809", "1e308", "1e309", "-0", "0.5", "1e-400", "NaN", "Infinity",
           "0x10", "1" * 400, "007", "1e3", "--1", "1,5"]
VALUES = [None, True, False, 0, -1, 1, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -2**63 - 1, 0.5, 1e308,
          -1e308, "", "0", "x" * 5000, "\x00", "\x1b[2J", "\ud7ff", "../../etc/passwd", "/dev/null", [], {}, [[]], [None], {"": {}}]
WORDS = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


def place(rng, data, longest=64):
    """A random range of the data: (begin, end)."""
    begin = rng.randrange(len(data) + 1)
    return begin, min(len(data), begin + rng.randrange(1, longest + 1))


# --- bytes ------------------------------------------------------------------------------------------------------------

def flip_bits(rng, data, _other):
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        if out:
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def replace_bytes(rng, data, _other):
    begin, end = place(rng, data, 8)
    return data[:begin] + bytes(rng.randrange(256) for _ in range(end - begin)) + data[end:]


def delete_block(rng, data, _other):
    begin, end = place(rng, data, rng.choice([1, 4, 64, 4096]))
    return data[:begin] + data[end:]


def insert_block(rng, data, _other):
    begin, _ = place(rng, data)
    return data[:begin] + bytes(rng.randrange(256) for _ in range(rng.choice([1, 4, 64]))) + data[begin:]


def double_block(rng, data, _other):
    begin, end = place(rng, data, rng.choice([1, 16, 512]))
    return data[:end] + data[begin:end] * rng.choice([1, 1, 2, 50]) + data[end:]


def exchange_blocks(rng, data, _other):
    a, b = place(rng, data)
    c, d = place(rng, data)
    if b > c:
        a, b, c, d = c, d, a, b
    return data if b > c else data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def zero_block(rng, data, _other):
    begin, end = place(rng, data, rng.choice([1, 16, 1024]))
    return data[:begin] + bytes([rng.choice([0, 0xFF, 0x20])]) * (end - begin) + data[end:]


def cut_off(rng, data, _other):
    return data[:rng.randrange(len(data) + 1)]


def append(rng, data, other):
    return data + rng.choice([b"\0", b"\n", b"\0" * 512, data, other, bytes(rng.randrange(256) for _ in range(rng.randrange(1, 40)))])


def splice(rng, data, other):
    """The beginning of one file and the end of another."""
    return data[:rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1):]


def boundary_integer(rng, data, _other):
    width = rng.choice([1, 2, 4, 8])
    at = rng.randrange(max(1, len(data) - width + 1))
    value = rng.choice([*WORDS, 2**63 - 1, 2**63, 2**64 - 1, rng.randrange(2**64), len(data)]) % 2 ** (8 * width)
    return data[:at] + value.to_bytes(width, rng.choice(["little", "big"])) + data[at + width:]


BYTES = [flip_bits, flip_bits, replace_bytes, delete_block, insert_block, double_block, exchange_blocks, zero_block, cut_off, append,
         splice, boundary_integer]


# --- text -------------------------------------------------------------------------------------------------------------

def replace_number(rng, data, _other):
    found = list(re.finditer(rb"-?\d+(\.\d+)?", data))
    if not found:
        return flip_bits(rng, data, b"")
    at = rng.choice(found)
    return data[:at.start()] + rng.choice(NUMBERS).encode() + data[at.end():]


def change_words(rng, data, other):
    """One word replaced by another of the file, deleted or doubled."""
    found = list(re.finditer(rb"[\w.%$]+", data))
    if not found:
        return flip_bits(rng, data, b"")
    at = rng.choice(found)
    words = re.findall(rb"[\w.%$]+", other) if rng.random() < 0.3 else [one.group() for one in found]
    word = rng.choice([b"", at.group() * 2, at.group() + b" " + at.group(), rng.choice(words or [b""])])
    return data[:at.start()] + word + data[at.end():]


def change_lines(rng, data, _other):
    lines = data.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind == 0:
        del lines[a]
    elif kind == 1:
        lines.insert(a, lines[b])
    elif kind == 2:
        lines[a], lines[b] = lines[b], lines[a]
    else:
        lines[a:a] = [lines[a]] * 300
    return b"\n".join(lines)


def insert_odd_text(rng, data, _other):
    begin, _ = place(rng, data)
    odd = rng.choice([b"\0", b"\x1b[2J\x1b]0;title\x07", b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\r", b"\t", b"\xef\xbb\xbf",
                      b"[" * 3000, b"{\"a\":" * 3000, b"(" * 3000, b"\"", b"\\", b"/*", b"//", b"%n%s", b"\xf4\x90\x80\x80"])
    return data[:begin] + odd + data[begin:]


TEXT = [replace_number, replace_number, change_words, change_words, change_lines, insert_odd_text]


# --- structure --------------------------------------------------------------------------------------------------------

def paths(value, here=()):
    """The path of every value below `value`, itself included."""
    yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield from paths(below, (*here, key))


def at_path(value, path):
    for key in path:
        value = value[key]
    return value


def change_json(rng, value):
    """Changes one place of a JSON value; the result may be written with a key twice (see json_text)."""
    every = [path for path in paths(value) if path]
    if not every:
        return copy.deepcopy(rng.choice(VALUES))
    path = rng.choice(every)
    above, key = at_path(value, path[:-1]), path[-1]
    kind = rng.randrange(7)
    if kind == 0:
        del above[key]
    elif kind in (1, 2):
        above[key] = copy.deepcopy(rng.choice(VALUES))  # a later change must not reach the constant
    elif kind == 3:
        above[key] = json.loads(json.dumps(at_path(value, rng.choice(every))))
    elif kind == 4 and isinstance(above, dict):
        name = rng.choice([key.upper(), key + "_", key[:-1], "", "\x00", "__metadata__", str(rng.choice(list(above)))])
        above[name] = above.pop(key)
    elif kind == 5 and isinstance(above, list):
        above[key:key] = [copy.deepcopy(above[key]) for _ in range(rng.choice([1, 2, 100]))]
    else:
        above[key] = [above[key]] if rng.random() < 0.5 else {"a": above[key]}
    return value


def json_text(rng, value):
    text = json.dumps(value)
    if rng.random() < 0.1 and '": ' in text:  # one key twice
        at = rng.choice([found.start() for found in re.finditer(r'"\w+": ', text)] or [0])
        key = re.match(r'"\w+": ', text[at:])
        if key:
            text = text[:at] + key.group() + "1, " + text[at:]
    return text.encode("utf-8", "surrogatepass")


def json_value(rng, data, other):
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return replace_number(rng, data, other)
    for _ in range(rng.choice([1, 1, 2, 4])):
        value = change_json(rng, value)
    return json_text(rng, value)


def json_line(rng, data, other):
    """The same for one line of a file of JSON lines."""
    lines = data.splitlines(keepends=True)
    if lines:
        at = rng.randrange(len(lines))
        lines[at] = json_value(rng, lines[at], other) + b"\n"
    return b"".join(lines)


def safetensors_header(rng, data, other):
    """The JSON header changed, with its length corrected."""
    if len(data) < 8:
        return data
    length, = struct.unpack("<Q", data[:8])
    header = rng.choice([json_value, replace_number, change_words, insert_odd_text])(rng, data[8:8 + length], other)
    header += b" " * (-len(header) % 8 if rng.random() < 0.7 else 0)
    return struct.pack("<Q", len(header)) + header + data[8 + length:]


def zip_members(rng, data, other):
    """One member of an .npz changed, doubled, renamed or left out; the archive packed again with valid checksums."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(one.filename, archive.read(one)) for one in archive.infolist()]
    except Exception:  # pylint: disable=broad-except  # whatever zipfile finds wrong with an archive that is damaged already
        return flip_bits(rng, data, other)
    if members:
        at = rng.randrange(len(members))
        name, content = members[at]
        kind = rng.randrange(5)
        if kind in (0, 1):
            members[at] = (name, rng.choice([*BYTES, replace_number, npy_header])(rng, content, members[0][1]))
        elif kind == 2:
            del members[at]
        elif kind == 3:
            members[at] = (rng.choice(["", "/", "../" + name, name + ".npy", name.upper(), "a" * 300, members[0][0]]), content)
        else:
            members[at] = (name, members[rng.randrange(len(members))][1])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name or "x", (2020, 1, 1, 0, 0, 0))
            info.compress_type = archive.compression
            if name in archive.namelist():
                continue  # a member twice is made by double_block of the archive's directory
            archive.writestr(info, content)
    return out.getvalue()


def npy_header(rng, data, other):
    """The header's text changed, with its length corrected."""
    if len(data) < 10 or data[:6] != b"\x93NUMPY":
        return flip_bits(rng, data, other)
    length, = struct.unpack("<H", data[8:10])
    header = rng.choice([replace_number, change_words, insert_odd_text, double_block])(rng, data[10:10 + length], other)[:60000]
    return data[:8] + struct.pack("<H", len(header)) + header + data[10 + length:]


def sqlite_cells(rng, data, other):
    """One cell, row, table or pragma of an SQLite file changed through SQLite: the pages stay valid."""
    handle, path = tempfile.mkstemp(suffix=".db")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        base = sqlite3.connect(path, isolation_level=None)
        try:
            base.text_factory = lambda text: text.decode("utf-8", "replace")
            tables = [row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
            table = rng.choice(tables)
            columns = [row[1] for row in base.execute(f'PRAGMA table_info("{table}")')]
            column, value = rng.choice(columns), rng.choice([None, -1, 0, 2**31, 2**62, -2**63, 0.5, "x", "", b"\0\xff", "9" * 3000])
            kind = rng.randrange(6)
            if kind in (0, 1):
                count, = base.execute(f'SELECT count(*) FROM "{table}"').fetchone()
                row = rng.randrange(max(1, count))
                base.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid IN (SELECT rowid FROM "{table}" LIMIT 1 OFFSET {row})', (value,))
            elif kind == 2:
                base.execute(f'DELETE FROM "{table}" WHERE rowid IN (SELECT rowid FROM "{table}" LIMIT 1 OFFSET {rng.randrange(4)})')
            elif kind == 3:
                base.execute(f'DROP TABLE "{table}"')
            elif kind == 4:
                base.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{rng.choice(["zzz", column + "_", "a b"])}"')
            else:
                base.execute(f"PRAGMA {rng.choice(['user_version', 'application_id'])} = {rng.choice([0, 1, 2, 99, -1])}")
        except (sqlite3.Error, OverflowError, IndexError, ValueError, MemoryError):
            pass  # the file is damaged already; of a row that claims 2 GiB, SQLite says that memory failed
        base.close()
        with open(path, "rb") as file:
            return file.read()
    finally:
        os.remove(path)


STRUCTURE = {"json": [json_value], "jsonl": [json_line], "csv": [], "ptx": [], "text": [], "npz": [zip_members], "npy": [npy_header],
             "safetensors": [safetensors_header], "kvt": [sqlite_cells]}
TEXTUAL = {"json", "jsonl", "csv", "ptx", "text"}


def mutate(rng, kind, data, other):
    """One mutated input of a file of this kind; `other` is a second file to splice with."""
    levels = [BYTES]
    if kind in TEXTUAL:
        levels += [TEXT, TEXT]
    if STRUCTURE[kind]:
        levels += [STRUCTURE[kind]] * 2
    for _ in range(rng.choice([1, 1, 1, 1, 1, 1, 2, 3])):
        data = rng.choice(rng.choice(levels))(rng, data, other)
    return data
