#!/usr/bin/env python3
"""Checks the files that other programs or people copy from: docs/ci, Containerfile, CITATION.cff, CHANGELOG.md, README.md.

    project_files_test.py --kvscope build/release/apps/kvscope/kvscope

- Every command of kvscope in a CI template exists, with every option it is given; both templates run the same commands, and
  the page beside them shows these commands.
- The container file runs the two commands of README.md.
- Version and license are the same everywhere.
- The packages that README.md and the templates name are packages of apps/packages.sh.
"""
import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATES = ["docs/ci/github-actions.yml", "docs/ci/gitlab-ci.yml"]
KVSCOPE = ""


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def commands(template):
    """The kvscope commands of a template, each a list of words, in order. A line goes on after a backslash."""
    lines = re.sub(r"\\\n *", "", text(template)).split("\n")
    found = [re.match(r"\s*(?:- )?(?:run: )?(kvscope (?!.*https).*)$", line) for line in lines]
    return [shlex.split(match[1], comments=True) for match in found if match]


def packages_of(path):
    """What a template installs, up to zlib1g-dev, the last of its packages."""
    found = re.search(r"apt-get install -y --no-install-recommends (.*? zlib1g-dev)\n", text(path), re.S)
    return set(found[1].replace("\\\n", " ").split())


class ProjectFiles(unittest.TestCase):
    def test_every_option_in_a_template_exists(self):
        for template in TEMPLATES:
            self.assertEqual([words[1] for words in commands(template)], ["golden", "ptx", "verify"], template)
            for words in commands(template):
                command = [word for word in words[1:3] if re.fullmatch("[a-z]+", word)]
                help_text = subprocess.run([KVSCOPE, *command, "--help"], capture_output=True, text=True, check=True).stdout
                options = {word for word in words if word.startswith("--")}
                known = set(re.findall(r"--[a-z][\w-]*", help_text))
                self.assertLessEqual(options, known, f"{template}: kvscope {' '.join(command)}")

    def test_both_templates_run_the_same_commands(self):
        self.assertEqual(commands(TEMPLATES[0]), commands(TEMPLATES[1]))

    def test_the_page_shows_the_commands_of_the_templates(self):
        page = re.sub(r"\\\n *", "", text("docs/ci/README.md"))
        for words in commands(TEMPLATES[0]):
            command = shlex.join(words).replace("tests/", "")
            self.assertIn(f"$ {command}", page.replace("'f32[2,4,8]'", shlex.quote("f32[2,4,8]")))

    def test_the_container_runs_the_two_commands_of_the_readme(self):
        readme = re.search(r"## Two commands\n.*?```sh\n(.*?)```", text("README.md"), re.S)[1]
        wanted = [line.split("#")[0].strip() for line in readme.strip().split("\n")]
        self.assertEqual(re.findall(r"^RUN (.*)$", text("Containerfile"), re.M), wanted)

    def test_the_page_of_the_labs_builds_the_image_as_the_container_file_says(self):
        build = re.search(r"^ *(podman build .*)$", text("docs/08_labs.md"), re.M)[1]
        self.assertRegex(text("Containerfile"), f"(?m)^# *{re.escape(build)}( |$)")
        target, image = re.fullmatch(r"podman build --target (\w+) -t (\w+) \.", build).groups()
        self.assertRegex(text("Containerfile"), rf"(?m)^FROM \S+ AS {target}$")
        self.assertIn(f" -w /mine {image} bash\n", text("docs/08_labs.md"))

    def test_one_version_and_one_license(self):
        version = re.search(r"project\(kvscope VERSION ([\d.]+)", text("CMakeLists.txt"))[1]
        printed = subprocess.run([KVSCOPE, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertIn(version, printed)
        self.assertIn(f"\nversion: {version}\n", text("CITATION.cff"))
        self.assertIn("\nlicense: Apache-2.0\n", text("CITATION.cff"))
        self.assertIn("Apache License", text("LICENSE"))
        self.assertIn(f"version {version}", text("CHANGELOG.md").split("## [Unreleased]")[1].split("\n### ")[0] or version)

    def test_named_packages_are_packages_of_the_two_commands(self):
        known = set(re.sub(r'[a-z_]+="|"', " ", "\n".join(re.findall(r'^[a-z]+_packages="[^"]*"', text("apps/packages.sh"), re.M)))
                    .split())
        for template in TEMPLATES:
            named = packages_of(template)
            self.assertIn("libxtensor-dev", named, template)
            self.assertLessEqual(named - {"ca-certificates", "git"}, known, template)
        section = text("README.md").split("## Packages")[1].split("\n## ")[0]
        named = set(re.findall(r"(?:^|[\s`])([a-z][a-z0-9+.-]*(?:-dev|-14-dev)|ccache|mypy|bubblewrap|xvfb|xauth|locales|python3-[a-z]+|fonts-[a-z-]+)\b", section))
        self.assertLessEqual(named, known)
        self.assertLessEqual(known - named, {"g++", "cmake", "ninja-build", "python3", "clang"}, "README.md: Packages")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvscope", required=True)
    arguments, rest = parser.parse_known_args()
    KVSCOPE = arguments.kvscope
    unittest.main(argv=[sys.argv[0], *rest])
