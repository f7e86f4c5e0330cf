"""Lab 05: the scheduler. The example and the scores are what the program prints for them."""
import re
import tempfile

from facts import COURSE, block, constant, events, gallery, kvscope, staff

POLICIES = [  # of the staff notes: the row, and the watermark in place of the solution's
    ("the blocks that are needed in the next step", None),
    ("one block for each running request (the solution)", "batch + 1"),
    ("@ blocks for each running request", "2 * (batch + 1)"),
    ("@ blocks for each running request", "3 * (batch + 1)"),
    ("a quarter of the pool", "step.blocks / 4"),
]
# One block for each request whose last page is full after this step.
NEXT_STEP = ("auto batch = static_cast<std::int64_t>(step.running.size());",
             "auto batch = static_cast<std::int64_t>(step.running.size());\n  std::int64_t next = 0;\n"
             "  for (const Running& running : step.running) next += (running.tokens + 1) % step.page_size == 0;")


def policy(lab, watermark):
    text = staff(lab, "solution/policy.cpp")
    if watermark is not None:
        return text.replace("batch == 0 ? 0 : batch + 1", f"batch == 0 ? 0 : {watermark}")
    text = text.replace(*NEXT_STEP).replace("batch == 0 ? 0 : batch + 1", "batch == 0 ? 0 : next + (waiting.tokens % step.page_size == 0)")
    return text.replace("++batch;", "++batch;\n    next += waiting.tokens % step.page_size == 0;")


def scores(lab, watermark):
    """(score, steps, preemptions) of a policy on the public traces."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/policy.cpp", "w", encoding="utf-8") as file:
            file.write(policy(lab, watermark))
        printed = kvscope("lab", "check", "5", folder, "--course", COURSE)
    found = re.search(r"score ([\d.]+): (\d+) steps, (\d+) preemptions", printed)
    return found[1], f"{int(found[2]):,}", f"{int(found[3]):,}"


def write(lab, readme, notes, hints):
    scenario = block(lab, "scheduler.json")
    page_size, blocks = scenario["cache"]["page_size"], scenario["cache"]["blocks"]
    step_us = scenario["scheduler"]["base_us"]
    requests = scenario["requests"]["list"]
    run = events(scenario, "request_admitted", "request_preempted", "block_allocated", "block_released", "step_ended", "step_began")
    ended = [fields for kind, fields, _ in run if kind == "step_ended"]
    began = {fields["step"]: at for at, (kind, fields, _) in enumerate(run) if kind == "step_began"}
    lost, = [fields for kind, fields, _ in run if kind == "request_preempted"]
    at_step, = [fields["step"] for fields in ended if fields["preemptions"]]
    late = len(requests) - 1
    arrives = requests[late]["arrival_us"] // step_us
    again = [step for step in began for kind, fields, _ in run[began[step]:began.get(step + 1, len(run))]
             if kind == "request_admitted" and fields["seq"] == late]
    again_blocks = [fields["block"] for kind, fields, _ in run[began[again[1]]:began[again[1] + 1]]
                    if kind == "block_allocated" and fields["seq"] == late]
    needs = [index for index in range(len(requests)) if stored(requests, index, at_step, arrives) % page_size == 0]

    readme.claim("Pages of # tokens, a pool of # blocks", page_size, blocks)
    readme.claim("A step lasts # us, so request # arrives in step #.", step_us, late, arrives)
    readme.claim("The @ blocks of the example after each of @ steps", blocks, len(ended))
    assert ended[arrives]["free_blocks"] == 1 and again[0] == arrives and lost["seq"] == late
    readme.claim("In step # the engine admits request #, which leaves one free block. In step # requests # and # need a block each",
                 arrives, late, at_step, *needs)
    readme.claim("Request # was admitted last, so it is preempted, and its # tokens are computed again in step #, with the token that it "
                 "had generated: @ blocks.",
                 late, lost["tokens_lost"], again[1], len(again_blocks))
    readme.claim("Its admission in step # gained nothing.", again[0])
    readme.claim("With @ running requests, one was too small.", ended[arrives]["running"])
    readme.exempt("These are the only two ways to take a block", "policy")
    readme.exempt("max(a, f + 1) + g - 1", "code")
    readme.claim("how many blocks must be free after step # for step # to preempt no request?", arrives, at_step)
    full = constant("lab_05_scheduler.cpp", "kFullScore")
    per_step = constant("scheduler_run.h", "kTokensPerStep")
    points = {test["name"]: test["points"] for test in lab.manifest["tests"]}
    readme.claim("every rule, and a score of at least #", full)
    readme.claim("plus one for every # tokens that are computed again", per_step)
    engine = 100  # by its definition
    readme.claim("Your *score* is # times the cost of kvscope's engine divided by the cost of your policy, so more than # is better", engine, engine)
    readme.claim("A score of # earns the # points", full, points["score"])
    others = ("engine", "one at a time")
    readme.claim("beside those of @ other policies", len(others))

    notes.claim("@, because requests # and # need one each", len(needs), *needs)
    notes.exempt("request i - 1 has finished", "code")
    notes.claim("The engine has the score #:", engine)
    for factor, (row, watermark) in enumerate(POLICIES):
        words = [factor] if "@" in row else []
        notes.claim(f"| {row} | # | # | # |", *words, *scores(lab, watermark))
    preemption = gallery("preemption.json")
    shown = 3
    taken = [fields for kind, fields, step in events(preemption, "block_allocated") if step == shown]
    before = [fields for kind, fields, _ in events(preemption, "step_ended")][shown - 1]
    assert before["free_blocks"] == 1
    notes.claim("step #: the running requests need @ blocks and one is free", shown, len(taken))
    notes.claim("# or more earns the points of `score`", full)
    notes.exempt("differs by one or two points between them", "policy")
    halves = ("running", "waiting")
    hints[1].claim("the @ halves of a decision", len(halves))
    hints[3].claim("one for every # tokens that are computed again", per_step)
    hints[3].exempt("try k = 1, 2 and 3;", "policy")
    hints[3].exempt("`(tokens + 1) % page_size == 0`", "code")
    hints[3].exempt("`tokens % page_size == 0`. It is smaller than k = 1", "code")


def stored(requests, index, step, arrives):
    """Tokens of a running request before a step: its prompt in its first step, then one token a step."""
    begin = arrives if requests[index]["arrival_us"] else 0
    return requests[index]["prompt_tokens"] + step - begin - 1
