"""The states that a power failure could leave, from a log of faults_inject (FAULTS_LOG).

The model is that of POSIX, which promises less than most file systems give:

- bytes of a file are on the disk after fsync of the file. Bytes written since then are there, missing, or there in part
- a name (created, renamed, exchanged, removed) is on the disk after fsync of its folder. Of the changes of names since
  then, the first n are there, for some n; each single change is there or not

    disk = Disk(log_text, folder, contents_before)
    for state in disk.crash_states():     # after each line of the log, each choice of what was not synced
        state                             # {relative path: bytes, or None for a folder}
"""
import os


class File:
    def __init__(self, content=b""):
        self.synced = content
        self.pending = []  # changes since the last fsync: (offset, bytes), or (size, None) for a truncation

    def content(self, share):
        """With none (0), the first half (1) or all (2) of the pending changes; half of the last change is torn too."""
        changes = self.pending
        if share < 2:
            changes = changes[:len(changes) * share // 2]
        content = bytearray(self.synced)
        for number, (at, new) in enumerate(changes):
            if new is None:
                content[at:] = b"\0" * max(0, at - len(content))
                continue
            if share == 1 and number == len(changes) - 1:
                new = new[:len(new) // 2]
            content.extend(b"\0" * (at + len(new) - len(content)))
            content[at:at + len(new)] = new
        return bytes(content)

    def sync(self):
        self.synced, self.pending = self.content(2), []


class Folder:
    pass


class Change:
    """A change of names: `edit` changes {folder: {name: entry}}; it is on the disk once one of its folders is synced."""

    def __init__(self, folders, edit):
        self.folders, self.edit, self.is_synced = folders, edit, False


class Disk:
    def __init__(self, log, folder, before):
        self.root, self.base = Folder(), folder.rstrip("/")
        self.start = {self.root: {}}  # {folder: {name: entry}}, on the disk before the log begins
        self.names = {self.root: {}}  # as the program sees them now
        for path in sorted(before):
            entry = Folder() if before[path] is None else File(before[path])
            parent, name = self.place(os.path.join(self.base, path))
            for names in (self.start, self.names):
                names[parent][name] = entry
                if isinstance(entry, Folder):
                    names[entry] = {}
        self.changes, self.open, self.lines = [], {}, log.splitlines()

    def place(self, path):
        """(folder, name) of an absolute path below the base."""
        at, parts = self.root, os.path.normpath(os.path.relpath(path, self.base)).split("/")
        for part in parts[:-1]:
            at = self.names[at][part]
        return at, parts[-1]

    def entry(self, path):
        if os.path.normpath(path) == self.base:
            return self.root
        try:
            parent, name = self.place(path)
            return self.names[parent].get(name)
        except KeyError:
            return None

    def change(self, folders, edit):
        edit(self.names)
        self.changes.append(Change(folders, edit))

    def put(self, path, entry):
        parent, name = self.place(path)

        def edit(names):
            names.setdefault(entry, {}) if isinstance(entry, Folder) else None
            names.setdefault(parent, {})[name] = entry
        self.change([parent], edit)

    def remove(self, path):
        parent, name = self.place(path)
        self.change([parent], lambda names: names.setdefault(parent, {}).pop(name, None))

    def rename(self, a, b):
        (from_folder, from_name), (to_folder, to_name), entry = self.place(a), self.place(b), self.entry(a)

        def edit(names):
            names.setdefault(from_folder, {}).pop(from_name, None)
            names.setdefault(to_folder, {})[to_name] = entry
        self.change([from_folder, to_folder], edit)

    def exchange(self, a, b):
        (folder_a, name_a), (folder_b, name_b), entry_a, entry_b = self.place(a), self.place(b), self.entry(a), self.entry(b)

        def edit(names):
            names.setdefault(folder_a, {})[name_a], names.setdefault(folder_b, {})[name_b] = entry_b, entry_a
        self.change([folder_a, folder_b], edit)

    def apply(self, line):
        call, rest = line.split(" ", 1)
        if call == "open":
            descriptor, flags, path = rest.split(" ", 2)
            entry, flags = self.entry(path), int(flags, 16)
            if entry is None and flags & os.O_CREAT:
                entry = File()
                self.put(path, entry)
            if flags & os.O_TRUNC and isinstance(entry, File):
                entry.pending.append((0, None))
            self.open[descriptor] = entry
        elif call == "write":
            descriptor, offset, *hexadecimal = rest.split(" ")
            self.open[descriptor].pending.append((int(offset), bytes.fromhex(hexadecimal[0])))
        elif call == "truncate":
            descriptor, size = rest.split(" ")
            self.open[descriptor].pending.append((int(size), None))
        elif call == "fsync":
            entry = self.open[rest]
            if isinstance(entry, File):
                entry.sync()
            for change in self.changes:
                if entry in change.folders:
                    change.is_synced = True
        elif call == "close":
            self.open.pop(rest, None)
        elif call in ("rename", "exchange"):
            (self.rename if call == "rename" else self.exchange)(*rest.split("\t"))
        elif call == "mkdir":
            self.put(rest, Folder())
        elif call in ("unlink", "rmdir"):
            self.remove(rest)
        else:
            raise ValueError(line)

    def state(self, unsynced, share):
        """With the first `unsynced` of the changes of names that are not synced."""
        names = {folder: dict(entries) for folder, entries in self.start.items()}
        for change in self.changes:
            if not change.is_synced:
                if unsynced == 0:
                    continue
                unsynced -= 1
            change.edit(names)
        found = {}

        def walk(folder, path):
            for name, entry in names.get(folder, {}).items():
                below = os.path.join(path, name)
                if isinstance(entry, File):
                    found[below] = entry.content(share)
                elif entry is not None:
                    found[below] = None
                    walk(entry, below)
        walk(self.root, "")
        return found

    def states_now(self):
        count = sum(not change.is_synced for change in self.changes)
        for unsynced in range(count + 1):
            for share in range(3):
                yield self.state(unsynced, share)

    def crash_states(self):
        yield from self.states_now()
        for line in self.lines:
            self.apply(line)
            if not line.startswith("close"):
                yield from self.states_now()
