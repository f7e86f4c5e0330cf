"""What the diagrams take from the program and from the pages: nothing in them is typed twice."""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "apps" / "scenarios"


def links_of(explained):
    """{link of the chain: [the lines after its name, without the leading '=']} of what `kvscope explain` prints."""
    links, name = {}, None
    for line in explained.split("\n")[1:]:
        if line and not line.startswith(" "):
            name = re.split(r"  +", line)[0]
            links[name] = []
        elif line.strip().startswith("= "):
            links[name].append(line.strip()[2:])
    return links


class Program:
    def __init__(self, kvscope, folder):
        self.kvscope, self.folder = os.path.abspath(kvscope), pathlib.Path(folder)

    def run(self, *arguments, codes=(0,)):
        """What the program prints. It runs in the folder of temporary files."""
        done = subprocess.run([self.kvscope, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, check=False,
                              env=dict(os.environ, LC_ALL="C.UTF-8"))
        if done.returncode not in codes:
            raise RuntimeError(f"kvscope {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def explain(self, scenario, *options):
        return links_of(self.run("explain", scenario, *options))

    def page_file(self, page, name):
        """Saves a file that a page shows (```json NAME), and returns its path."""
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        found = re.search(r"^```\w+ " + re.escape(name) + r"\n(.*?)^```$", text, re.S | re.M)
        if found is None:
            raise RuntimeError(f"docs/{page} shows no file {name}")
        path = self.folder / name
        path.write_text(found[1], encoding="utf-8")
        return path
