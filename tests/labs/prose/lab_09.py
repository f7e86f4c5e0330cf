"""Lab 09: gather rows. Sectors are counted here from the addresses of a warp."""
import re

from facts import ROOT, constant, gallery, picture, staff, starter

SECTOR, LANES, VECTOR, BF16 = 32, 32, 16, 2  # [bytes], threads of a warp, [bytes], [bytes]


def sectors(addresses, size=VECTOR):
    return len({byte // SECTOR for address in addresses for byte in range(address, address + size)})


def write(lab, readme, notes, hints):
    sparse = picture("gallery_gather_sparse.png")
    scenario = gallery("gather_sparse.json")
    # The tile of that token begins at a multiple of BN; a step has the tokens up to its last one.
    first, last, rows = map(int, re.search(r"tokens (\d+) to (\d+)\]\([^)]*\) is gathered from (\d+) rows", scenario["description"]).groups())
    assert int(sparse["step"]) and scenario["cache"]["page_size"] == 1 and last - first + 1 == rows and first % scenario["tile"]["BN"] == 0
    readme.claim("rows of tokens # to #, one token in each page", first, last)
    readme.claim("# rows of one sequence in # blocks", rows, rows)
    text = starter(lab, "gather.cu")
    threads = int(re.search(r"CTAs of (\d+) threads", text)[1])
    warps = int(re.search(r"copies row (\d+) \* c \+ w", text)[1])
    assert threads == warps * LANES

    readme.claim("one *warp*, # threads or *lanes*", LANES)
    short, long = 64, 1024  # elements of a row
    vectors = {row: row * BF16 // VECTOR for row in (short, long)}
    turns = vectors[long] // LANES
    readme.claim("than the # vectors of # bytes that the lanes copy at once: with # elements it has # vectors, so lanes # to # have none; "
                 "with # elements it has "
                 "#, so each lane copies @.", LANES, VECTOR, short, vectors[short], vectors[short], LANES - 1, long, vectors[long], turns)
    row_bytes = 256
    readme.claim("in *sectors* of # bytes. The instruction of a warp costs as many sectors as its # lanes touch. @ ways to copy rows of # "
                 "bytes with vectors of # "
                 "bytes:", SECTOR, LANES, len(("one", "many")), row_bytes, VECTOR)
    of_row = row_bytes // VECTOR
    one = sectors(VECTOR * lane for lane in range(of_row))
    many = sectors(4096 * lane for lane in range(LANES))
    readme.claim("| # lanes read one row | # adjacent bytes | # | # of # |", of_row, row_bytes, one, row_bytes, SECTOR * one)
    readme.claim("| each lane reads another row | # bytes of # rows | # | # of # |", VECTOR, LANES, many, VECTOR * LANES, SECTOR * many)
    long_sectors = sectors(VECTOR * vector for vector in range(vectors[long]))
    table = token = 1
    readme.claim("A row of # elements needs # sectors of `pool` and # of `out`, and one each of `tokens` and `table`: #.",
                 long, long_sectors, long_sectors,
                 2 * long_sectors + token + table)
    program = staff(lab, "triton/solution/gather.py")
    of_program = int(re.search(r"program_id\(0\) \* (\d+) \+ tl\.arange\(0, (\d+)\)", program)[1])
    assert of_program == warps
    readme.exempt("`tl.program_id(0)`", "code")
    readme.claim("It copies rows # * c to # * c + # as one block of # rows", of_program, of_program, of_program - 1, of_program)
    readme.exempt("`other=0` is the value", "code")
    readme.exempt("BLOCK is a power of two", "name")
    columns = 256
    of_lane = of_program * columns // (warps * LANES)
    readme.claim("over # warps. With # rows and # columns, a warp has one row, and a lane # adjacent elements, # bytes",
                 warps, of_program, columns, of_lane,
                 of_lane * BF16)
    readme.exempt("`range(0, row, BLOCK)`", "code")
    readme.claim("in front of it, as blocks of #", of_program)
    entry_bits = 8 * 4  # of `table` and `tokens`: unsigned and int
    wide_bits = int(re.search(r"tl\.int(\d+)", program)[1])
    readme.claim("bf16 and #-bit numbers are the types of the pointers. `block * block_stride` needs # bits: `.to(tl.int64)`", entry_bits,
                 wide_bits)
    page_size, layers, blocks = 4, 2, [0, 11, 8]
    at = 11
    readme.claim("pages of # tokens, # layers, rows of # elements, pages in blocks #, # and #. At which element of `pool` is token #?",
                 page_size, layers, short,
                 *blocks, at)
    readme.claim("launches counts that are not multiples of #", warps)
    single = BF16
    readme.claim("Copy # bytes per lane instead of #", single, VECTOR)
    block_sizes = (8, 64, 256, 1024)
    readme.claim("take blocks of #, #, # and # columns", *block_sizes)
    readme.claim("when `count` is not a multiple of #", warps)
    limit = constant("lab_09_gather.cpp", "kSectorLimit")
    readme.claim("at most # times the sectors", limit)
    page, slot = divmod(at, page_size)
    stride = 2 * layers * page_size * short
    readme.claim("token # is in page #, slot #, block #. A block has # * # * # * # = # elements: # * # + # * # = #.",
                 at, page, slot, blocks[page], BF16, layers,
                 page_size, short, stride, blocks[page], stride, slot, short, blocks[page] * stride + slot * short)
    readme.exempt("`count % 4`", "code")
    readme.claim("up to @ times as many", VECTOR // BF16)
    narrow, wide = block_sizes[0], block_sizes[-1]
    assert narrow * BF16 == VECTOR
    readme.claim("a block of # columns has # bytes of each row, so the lanes of a warp read different rows; in a block of # columns, @ warps share",
                 narrow,
                 narrow * BF16, wide, warps)

    notes.claim("Why # bytes?", VECTOR)
    notes.claim("Why is # allowed?", limit)
    notes.claim("Why @ rows for each program", of_program)
    notes.claim("Why does a block of # columns lose `sectors`?* It has @ warps for each row, and each reads the token and the table entry: "
                "# sectors instead of #, "
                "which rows of # elements do not hide", wide, warps, warps * (token + table), token + table, smallest_row())
    notes.claim("the launch has #", warps)
    of_hint = 5
    assert of_hint // page_size == 1
    hints[1].claim("Work out token # with pages of # tokens, a row of # elements and # layers: the block stride is # * # * # * # = # elements",
                   of_hint, page_size,
                   short, layers, BF16, layers, page_size, short, stride)
    hints[2].claim("`blockIdx.x * # + threadIdx.x / #` is the output row of a warp, and `threadIdx.x % #` the lane. When `count` is not a "
                   "multiple of #",
                   warps,
                   LANES, LANES, warps)
    hints[2].claim("A row of # elements is # bytes, and # lanes of # bytes copy #", long, long * BF16, LANES, VECTOR, LANES * VECTOR)
    hints[2].claim("A row of # elements has # vectors only: the loop's condition must stop lanes # to #",
                   short, vectors[short], vectors[short], LANES - 1)
    hints[2].exempt("`i = tl.program_id(0) * 4 + tl.arange(0, 4)`", "code")
    hints[2].exempt("other=-1)`", "code")
    hints[2].exempt("`at + tl.arange(0, BLOCK)`", "code")
    hints[3].claim("in sectors of # bytes. A warp's instruction touches few sectors when lane", SECTOR)
    hints[3].exempt("lane l + 1", "code")
    hints[3].claim("reads the # bytes after those of lane l", VECTOR)
    hints[3].claim("copies vectors l, l + #, l + #, ... of the row. A `uint4` has # bytes", LANES, 2 * LANES, VECTOR)
    hints[3].claim("the lanes read # bytes of different rows", VECTOR)
    hints[3].exempt("`token < 0`", "code")
    hints[3].exempt("`token >= 0`", "code")
    hints[3].exempt("`other=0`", "code")
    hints[3].claim("a block of # rows and # columns, a warp has one row", of_program, columns)


def smallest_row():
    """[elements] the shortest row of a grading."""
    text = (ROOT / "apps/labs/lab_09_gather.cpp").read_text(encoding="utf-8")
    return min(int(n) for n in re.search(r"rows\{([\d, ]+)\};", text)[1].split(","))
