"""Writes the answers of one student: solve.py KVSCOPE COURSE FOLDER NAME [PATCH]. A patch has lines `# answer: FIELD = EXPRESSION` over
the right answers and the numbers of the task."""
import json
import os
import re
import subprocess
import sys

kvscope, course, folder, name, *patch = sys.argv[1:]
if not os.path.exists(os.path.join(folder, "task.json")):
    subprocess.run([kvscope, "lab", "start", "1", folder, "--student", name, "--course", course], check=True,
                   stdout=subprocess.DEVNULL)
with open(os.path.join(folder, "task.json"), encoding="utf-8") as file:
    task = json.load(file)
asked, size = task["address_of"], task["page_size"]
extents = [task["blocks_without_the_null_page"] + 1, 2, task["layers"], size, task["kv_heads"], task["head_size"]]
strides = [1] * 6
for axis in range(4, -1, -1):
    strides[axis] = strides[axis + 1] * extents[axis + 1]
page, slot = divmod(asked["token"], size)
block = task["table_row"][page]
index = [block, 1, asked["layer"], slot, asked["head"], asked["dim"]]
element = sum(i * stride for i, stride in zip(index, strides))
rows = strides[0] // strides[3]
answers = {"extents": extents, "strides": strides, "page": page, "slot": slot, "block": block, "element": element,
           "byte": element * task["element_bytes"], "rows_per_block": rows, "row": block * rows + slot}
right = dict(answers, **asked, layers=task["layers"], page_size=size, element_bytes=task["element_bytes"])
if patch:
    with open(patch[0], encoding="utf-8") as file:
        for field, expression in re.findall(r"^# answer: (\w+) = (.*)$", file.read(), re.M):
            answers[field] = eval(expression, dict(right))
with open(os.path.join(folder, "answers.json"), "w", encoding="utf-8") as file:
    json.dump(answers, file, indent=2)
