"""Formats of course systems, written down from their documentation: fields, types and values that a grade file may have.

Gradescope  https://gradescope-autograders.readthedocs.io/en/latest/specs/
GitLab      https://docs.gitlab.com/ci/testing/unit_test_reports
"""
NUMBER, TEXT = (int, float), str
TEXT_FORMAT = ("text", "html", "simple_format", "md", "ansi")
VISIBILITY = ("hidden", "after_due_date", "after_published", "visible")

# field: its type, or the values that it may have
GRADESCOPE = {"score": NUMBER, "execution_time": NUMBER, "output": TEXT, "output_format": TEXT_FORMAT, "test_output_format": TEXT_FORMAT,
              "test_name_format": TEXT_FORMAT, "visibility": VISIBILITY, "stdout_visibility": VISIBILITY, "extra_data": dict,
              "tests": list, "leaderboard": list}
GRADESCOPE_TEST = {"score": NUMBER, "max_score": NUMBER, "status": ("passed", "failed"), "name": TEXT, "name_format": TEXT_FORMAT,
                   "number": TEXT, "output": TEXT, "output_format": TEXT_FORMAT, "tags": list, "visibility": VISIBILITY,
                   "extra_data": dict}
GRADESCOPE_PLACE = {"name": TEXT, "value": (int, float, str), "order": ("asc", "desc")}
GITLAB_MOST_BYTES = 30_000_000
GITLAB_OUTCOMES = {"failure", "error", "skipped", "system-out", "system-err"}


def _faults_of_fields(value, fields, where):
    if not isinstance(value, dict):
        return [f"{where} is no object"]
    faults = []
    for name, content in value.items():
        allowed = fields.get(name)
        if allowed is None:
            faults.append(f"{where}.{name} is no field of the format")
        elif isinstance(allowed, tuple) and isinstance(allowed[0], str):
            if content not in allowed:
                faults.append(f"{where}.{name} is {content!r}, not one of {', '.join(allowed)}")
        elif isinstance(content, bool) or not isinstance(content, allowed):
            faults.append(f"{where}.{name} has the type {type(content).__name__}")
    return faults


def gradescope_faults(results):
    """Faults of a results.json."""
    faults = _faults_of_fields(results, GRADESCOPE, "$")
    if faults:
        return faults
    if "score" not in results and not results.get("tests"):
        faults.append("$.score is required without tests")
    for number, test in enumerate(results.get("tests", [])):
        where = f"$.tests[{number}]"
        faults += _faults_of_fields(test, GRADESCOPE_TEST, where)
        if "score" not in results and "score" not in test and "status" not in test:
            faults.append(f"{where}.score is required where the submission has none")
        if isinstance(test.get("score"), NUMBER) and isinstance(test.get("max_score"), NUMBER) and test["score"] > test["max_score"]:
            faults.append(f"{where}.score is above max_score")
    for number, place in enumerate(results.get("leaderboard", [])):
        where = f"$.leaderboard[{number}]"
        faults += _faults_of_fields(place, GRADESCOPE_PLACE, where)
        faults += [f"{where}.{field} is missing" for field in ("name", "value") if field not in place]
    return faults


def junit_faults(root, size):
    """Faults of a JUnit report that GitLab would not show, or would show in part. `root`: the parsed element; `size` in bytes."""
    faults = []
    if root.tag not in ("testsuites", "testsuite"):
        faults.append(f"the root is <{root.tag}>, not <testsuites> or <testsuite>")
    if size >= GITLAB_MOST_BYTES:
        faults.append(f"the file has {size} bytes, {GITLAB_MOST_BYTES} or more")
    cases = list(root.iter("testcase"))
    if not cases:
        faults.append("there is no <testcase>")
    keys = [(case.get("classname"), case.get("name")) for case in cases]
    for case, key in zip(cases, keys):
        if not key[0] or not key[1]:
            faults.append(f"a <testcase> lacks classname or name: {key}")
        if keys.count(key) > 1:
            faults.append(f"{key} occurs twice: GitLab shows the first only")
        if case.get("time") is not None and not case.get("time").replace(".", "", 1).isdigit():
            faults.append(f"{key}: time is {case.get('time')!r}")
        faults += [f"{key}: <{child.tag}> is not read" for child in case if child.tag not in GITLAB_OUTCOMES]
    for suite in root.iter("testsuite"):
        for count, tag in (("tests", "testcase"), ("failures", "failure")):
            if suite.get(count) is not None and int(suite.get(count)) != len(list(suite.iter(tag))):
                faults.append(f"{count} is {suite.get(count)}, but the suite has {len(list(suite.iter(tag)))}")
    return faults
