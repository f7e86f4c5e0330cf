"""Lab 13: paged decode."""
import math
import re

from facts import ROOT, constant, starter
from lab_10 import schedule_count

SECTOR, LANES, BF16, F32 = 32, 32, 2, 4  # [bytes], threads of a warp, [bytes], [bytes]


def write(lab, readme, notes, hints):
    text = starter(lab, "decode.cu")
    source = (ROOT / "apps/labs/lab_13_paged_decode.cpp").read_text(encoding="utf-8")
    threads = int(re.search(r"CTAs of (\d+) threads", text)[1])
    dim = constant("lab_13_paged_decode.cpp", "kDim")
    warps = threads // LANES
    points = {test["name"]: test["points"] for test in lab.manifest["tests"]}
    zero = 0
    readme.exempt("in [04]", "name")
    readme.claim("# threads per CTA, so the other # must return: `if (threadIdx.x != #) return;`", threads, threads - 1, zero)
    upper = BF16 * 8
    readme.claim("[page_size, kv_heads, #] elements of bf16, the upper # bits of a float. `__uint_as_float(bits << #)`", dim, upper, F32 * 8 - upper)
    readme.claim("`tl.arange(#, #)` is a row", zero, dim)
    readme.exempt("`tl.sum(..., 0)`", "code")
    readme.claim("[BLOCK, #]", dim)
    readme.exempt('`float("-inf")`, not 0', "code")
    page_size, kv_heads, stride, key, head, block = 16, 4, 8192, 37, 2, 3
    assert stride % (2 * page_size * kv_heads * dim) == 0
    page, slot = divmod(key, page_size)
    readme.claim("pages of #, # KV heads, block stride # elements. At which element of `k` is key # of KV head #, if its page is in block #?",
                 page_size, kv_heads,
                 stride, key, head, block)
    element = block * stride + slot * kv_heads * dim + head * dim
    query_heads, of_kv, wanted = 6, 3, 1
    readers = [h for h in range(query_heads) if h // (query_heads // of_kv) == wanted]
    readme.claim("Which query heads read KV head #, with # query heads and # KV heads?", wanted, query_heads, of_kv)
    schedules = schedule_count()
    readme.claim("no race under @ schedules", schedules)
    readme.claim("no report under @ schedules", schedules)
    limit = constant("lab_13_paged_decode.cpp", "kTrafficLimit")
    readme.claim("at most # times the sectors that the step needs", limit)
    of_row, of_output = dim * BF16 // SECTOR, dim * F32 // SECTOR
    readme.claim("# sectors of # bytes for each key's row of K and of V, # for the query, # for the output", of_row, SECTOR, of_row, of_output)
    shapes = [[int(n) for n in re.findall(r"\d+", shape)] for shape in re.findall(r"hand\(\{([\d, ]+)", source)]
    keys = [page * pages for _, _, _, page, pages in shapes]
    hand_dims = range(constant("lab_13_paged_decode.cpp", "kHandDims"))
    readme.claim("each of the first @ tests", len(shapes))
    readme.claim("at most # keys, of which dims # and # alone are not #", max(keys), *hand_dims, zero)
    last = ("clean", "traffic")
    assert tuple(points)[-2:] == last
    readme.claim("The last @ are judged", len(last))
    readme.claim("element # = # * # + # * # * # + # * #. Key # is in slot # of its page",
                 element, block, stride, slot, kv_heads, dim, head, dim, key, slot)
    readme.claim("heads # and #: KV head = head / (# / #)", *readers, query_heads, of_kv)
    readme.claim("reads # bytes of each of # rows", BF16, LANES)
    readme.claim("smaller than @ warps", warps)

    notes.claim("page #, slot #: # * # + (# * # + #) * # = #",
                page, slot, block, stride, slot, kv_heads, head, dim, block * stride + (slot * kv_heads + head) * dim)
    notes.claim("heads # and #.", *readers)
    notes.claim("reads # bytes of each of # rows", BF16, LANES)
    notes.claim("Why #?", limit)
    patch = (lab.notes.parent / "triton/right/01_blocks_of_16.patch").read_text(encoding="utf-8")
    notes.claim("blocks of # keys", int(re.search(r"\+ +BLOCK: tl\.constexpr = (\d+)", patch)[1]))
    notes.exempt("with a score of 0", "name")
    # A ragged last page has at least one key fewer: the fewest are those of one page.
    notes.claim("has # to # keys, and only dims # and # of q, K and V are not #", fewest_keys(source), max(keys), *hand_dims, zero)
    values = sum(points[name] for name in points if name not in last)
    notes.claim("Values #, clean #, traffic #", values, points["clean"], points["traffic"])
    hints[1].claim("a slot is `kv_heads * #` elements", dim)
    other, held = 18, 5
    first = other // page_size  # the second page
    assert first == 1
    hints[1].claim("With pages of #, one KV head and block #, key # of a sequence whose second page is in block # is at `# * block_stride + # * #`",
                   page_size, held,
                   other, held, held, other % page_size, dim)
    heads, group = 8, 2
    shared = [h for h in range(heads) if h // (heads // group) == 0]
    hints[2].claim("With # query heads and # KV heads, heads # to # read KV head #", heads, group, shared[0], shared[-1], zero)
    largest = math.log((2 - 2.0 ** -23) * 2.0 ** 127)
    hints[3].claim("infinite from a score of # on", math.ceil(largest))
    hints[3].exempt("-infinity, not with 0", "code")
    of_lane = dim // LANES
    hints[3].claim("Let # lanes read the # elements of one key, @ adjacent elements each by one load of # bits",
                   LANES, dim, of_lane, of_lane * BF16 * 8)
    hints[3].claim("the lower # bits are the first element", upper)
    hints[3].claim("`place[:, None] + tl.arange(#, #)[None, :]`", zero, dim)
    hints[3].exempt("`tl.sum(keys * query[None, :], 1)`", "code")
    hints[3].exempt("tl.max(score, 0)", "code")


def fewest_keys(source):
    """Of a sequence of a case by hand: one page less than the most, without the keys that a ragged last page lacks."""
    fewest = []
    for shape, ragged in re.findall(r"hand\(\{([\d, ]+?)(, true)?\}\)", source):
        _, _, _, page_size, pages = map(int, shape.split(", "))
        fewest.append(page_size * pages - (page_size - 1 if ragged else 0))
    return min(fewest)
