"""Lab 06: online softmax and merge."""
import math
import re

from facts import ROOT, SCENARIOS, constant, golden, number_in, picture, starter


def four(value):
    """With as many of four decimals as a reader needs: "0.6931", "1.5", "0"."""
    return f"{value:.4f}".rstrip("0").rstrip(".")


def states(keys):
    """[(m, factor or None, l, o)] after each key (score, value)."""
    m, l, o, found = -math.inf, 0.0, 0.0, []
    for score, value in keys:
        larger = max(m, score)
        factor, weight = math.exp(m - larger), math.exp(score - larger)
        m, l, o = larger, l * factor + weight, o * factor + weight * value
        found.append((m, factor, l, o))
    return found


def maxima_of_the_picture():
    """The running maximum after each tile, in the picture of the attention view, for the last query of its sequence."""
    shown = picture("attention_light.png")
    seq, head, width = map(int, re.search(r"seq (\d+) head (\d+) tile (\d+)", shown["flow"]).groups())
    step = golden(SCENARIOS / "first_light.json", "--step", shown["step"])
    q, blocks, table, lengths, offsets = (step[name] for name in ("q", "blocks", "lookup_table", "key_lengths", "query_offsets"))
    _, slots, layers, page_size, kv_heads, dims = blocks.shape
    heads = q.shape[1]
    query = q.row(offsets.values[seq + 1] - 1, head)
    scores = []
    for token in range(lengths.values[seq]):
        block = table.row(seq)[token // page_size]
        key = blocks.row(block, 0, 0, token % page_size, head // (heads // kv_heads))
        scores.append(sum(a * b for a, b in zip(query, key)) / math.sqrt(dims))
    return [max(scores[:end]) for end in range(width, len(scores) + width, width)]


def write(lab, readme, notes, hints):
    scores, values = [0.0, math.log(2)], [0, 3]
    keys = list(zip(scores, values))
    first, second = states(keys)
    tiles = (1, 2)
    readme.claim("@ keys with the scores # and ln # = #, values # and #, and tiles of one key",
                 len(keys), scores[0], round(math.exp(scores[1])), four(scores[1]), *values)
    readme.claim("| # | # | | # | # |", tiles[0], first[0], first[2], first[3])
    factor, weight = second[1], math.exp(scores[1] - second[0])
    readme.claim("| # | # | # | # * # + # = # | # * # + # * # = # |", tiles[1], four(second[0]), factor, factor, first[2], weight, second[2], factor,
                 first[3], weight, values[1], second[3])
    lse = second[0] + math.log(second[2])
    readme.claim("The output is # / # = #, and the lse is # + ln # = ln # = #.",
                 second[3], second[2], second[3] / second[2], four(second[0]), second[2],
                 round(math.exp(lse)), four(lse))
    maxima = maxima_of_the_picture()
    at = max(tile for tile in range(1, len(maxima)) if maxima[tile] > maxima[tile - 1])  # the last tile that raises it
    before, after = maxima[at - 1], maxima[at]
    readme.claim("tile # raises m from # to #, so what was summed before is multiplied by #", at, four(before), four(after),
                 four(math.exp(before - after)))
    readme.claim("the @ keys in the other order", len(keys))
    functions = re.findall(r"(?m)^(?:\w+) (attend|merge)\(", starter(lab, "softmax.h"))
    readme.claim("declares the @ functions", len(functions))
    large = number_in((ROOT / "apps/labs/softmax_case.cpp").read_text(encoding="utf-8"), r"kind == Scores::large +\? (\d+) \+")
    largest = math.log((2 - 2.0 ** -23) * 2.0 ** 127)
    readme.claim("what happens at scores around #? The largest float32 is about e^#.", large, f"{largest:.1f}")
    assert math.exp(large) > math.exp(largest)
    readme.claim("| scores around #", large)
    parts = ("a", "b")
    readme.claim("Why do @ parts suffice", len(parts))
    readme.claim("| @ parts, some of them empty", len(parts))
    source = (ROOT / "apps/labs/softmax_case.cpp").read_text(encoding="utf-8")
    sizes = [number_in(source, rf"\b{name} = (\d+)") for name in ("kLongTile", "kLongTiles", "kLongRepeats", "kLongDim")]
    row_keys = math.prod(sizes[:3])
    row_bytes = row_keys * (sizes[3] + 1) * 4  # f32: a score and the values
    memory = number_in((ROOT / "apps/labs/softmax_case.h").read_text(encoding="utf-8"), r"kOnePassMemory = std::int64_t\{(\d+)\} << 20")
    readme.claim("a row of # MiB in a process with # MiB", row_bytes >> 20, memory)
    assert constant("softmax_case.h", "kSoftmaxCases") == 12

    other = states(keys[::-1])
    notes.claim("m is # from the first tile on, l is #, then #, o is #, then #; the results are the same",
                four(other[0][0]), other[0][2], other[1][2],
                other[0][3], other[1][3])
    assert other[0][0] == other[1][0] and math.isclose(other[1][3] / other[1][2], second[3] / second[2])
    notes.claim("a result of @ parts is a part itself", len(parts))
    notes.claim("exp(#) is inf in float32", math.ceil(largest))
    whole = math.exp(0)  # a single tile: l divided by l
    notes.claim("each tile would have the weight #", whole)
    notes.claim("without which @ parts cannot be merged", len(parts))
    notes.claim("its last row of # keys", f"{row_keys:,}")
    points = {test["name"]: test["points"] for test in lab.manifest["tests"]}
    notes.claim("a submission with @ passes loses these # points only", len(parts), points["one_pass"])
    notes.exempt("powers of two", "name")
    hints[1].claim("every exponential is at most #", whole)
    nothing = 0
    hints[3].claim("If l is # at the end, o is # and the lse -inf", nothing, nothing)
    hints[3].claim("the larger lse of the @ first. Test for @ empty parts", len(parts), len(parts))
