"""Lab 08: swizzle. The modes are written here as in CUTLASS, Swizzle(bits, 4, 3) on byte addresses, not as in core."""
import re

from facts import constant, kvscope, starter

BANKS, BANK_BYTES, CHUNK = 32, 4, 16
LINE = BANKS * BANK_BYTES


def swizzled(address, bits):
    return address ^ ((address >> 7 & (1 << bits) - 1) << 4)


def write(lab, readme, notes, hints):
    modes = {128: 3, 64: 2, 32: 1}  # bytes of a row: bits
    lines = 1 << modes[LINE]  # of a period
    period, chunks = LINE * lines, LINE // CHUNK
    assert all(swizzled(a + period, 3) == swizzled(a, 3) + period for a in range(0, period, CHUNK))
    passes = {len({swizzled(row * LINE, bits) % LINE // CHUNK for row in range(lines)}) for bits in (0, 3)}
    assert passes == {1, lines}
    readme.claim("Shared memory has # *banks* of # bytes. A *line* of # bytes uses each bank once", BANKS, BANK_BYTES, LINE)
    readme.claim("reads the same # bytes of # rows. In rows of # bytes these are in the same @ banks, so the read takes # wavefronts.",
                 CHUNK, lines, LINE,
                 CHUNK // BANK_BYTES, lines)
    readme.claim("moves the *chunks* of # bytes inside each line", CHUNK)
    readme.claim("and why in chunks of # bytes", CHUNK)
    widest = max(modes)
    readme.claim("where the #-byte mode stores each chunk of a tile with rows of # bytes", widest, widest)
    first = 0
    readme.claim("Chunk c0 is in a different #-byte place of each row, so # rows use all # banks once. The pattern repeats every # bytes, # lines",
                 CHUNK, lines, BANKS,
                 period, lines)
    rows = 64
    printed = kvscope("swizzle", "solve", "--rows", rows, "--row-bytes", widest).splitlines()[1]
    cycles, without = map(int, re.search(r"(\d+) cycles, (\d+) without", printed).groups())
    readme.claim("a whole tile of # rows as cycles. Without a swizzle it takes # times as many", rows, cycles // without)
    readme.claim("A read of chunk c0 of # rows uses # groups of banks, or one", lines, lines)
    readme.claim("one read of # rows with the swizzle", lines)
    readme.claim("@ modes differ in the length of a row", len(modes))
    readme.claim("so a line has one row, @ or @.", *[LINE // row for row in sorted(modes)[-2::-1]])
    sizes = [int(n) for n in re.findall(r"\d", re.search(r"element_bytes;\s+// (.*)", starter(lab, "swizzle.h"))[1])]
    readme.claim("Your functions count elements of #, # or # bytes", *sizes)
    byte = swizzled(LINE, modes[widest])
    bf16 = sizes[1]
    readme.claim("offset # of a tile of bf16 is byte # of the table", byte // bf16, byte)
    by_hand = (4, 8)
    readme.claim("by hand for rows # and #. Then compare with `--rows #`", *by_hand, by_hand[1] + 1)
    narrow = sorted(modes)[1]
    readme.claim("table 64B --row-bytes # --rows #` prints the #-byte mode of a tile of this lab, whose rows have # bytes. (Without "
                 "`--row-bytes #` it prints rows of "
                 "# bytes.)", narrow, 2 * lines, narrow, narrow, narrow, widest)
    readme.claim("for the #-byte mode and elements of # bytes", widest, bf16)
    readme.claim("for elements of # and # bytes", sizes[0], sizes[2])
    readme.claim("and the # bytes of each stay together", CHUNK)
    readme.claim("the same chunk of # rows is in # places, and is read in one wavefront", constant("lab_08_swizzle.cpp", "kGroupRows"), lines)
    table = {row: [swizzled(row * LINE + chunk * CHUNK, modes[widest]) for chunk in range(chunks)] for row in by_hand}
    readme.claim("row # is " + " ".join("#" * chunks) + ". Row # is #, #, ... in order, because the pattern repeats after # lines.",
                 by_hand[0], *table[by_hand[0]],
                 by_hand[1], *table[by_hand[1]][:2], lines)

    notes.claim("Why # bytes?* A lane of `ldmatrix` reads # bytes", CHUNK, CHUNK)
    notes.claim("Why does the #-byte mode use the line and not the row?* @ rows share a line", narrow, LINE // narrow)
    notes.claim("the banks of column #", first)
    hints[1].claim("A *line* is # bytes, one pass over the # banks. A *chunk* is # bytes.", LINE, BANKS, CHUNK)

    def source_and_target(bits):
        """Bits of the address that are XORed, and those that change."""
        source = [bit for bit in range(4, 16) if swizzled(1 << bit, bits) != 1 << bit]
        return source, [(swizzled(1 << bit, bits) ^ 1 << bit).bit_length() - 1 for bit in source]

    source, target = source_and_target(modes[widest])
    of_chunk = CHUNK.bit_length() - 1
    hints[2].claim("bits # to # are the byte in the chunk, bits # to # the chunk in the line, bits # to # the line in a group of #.",
                   first, of_chunk - 1, of_chunk,
                   LINE.bit_length() - 2, LINE.bit_length() - 1, period.bit_length() - 2, lines)
    hints[2].claim("The #-byte mode XORs bits # to # into bits # to #. Then the same chunk of # lines is in # different places",
                   widest, source[0], source[-1],
                   target[0], target[-1], lines, lines)
    source, target = source_and_target(modes[narrow])
    narrowest = min(modes)
    last, last_target = source_and_target(modes[narrowest])
    hints[3].claim("The #-byte mode XORs @ bits (# and # into # and #), the #-byte mode one (# into #). A line then has @ or @ rows",
                   narrow, len(source), *source,
                   *target, narrowest, *last, *last_target, LINE // narrow, LINE // narrowest)
    hints[3].claim("The XOR leaves bits # and above", source[0])
