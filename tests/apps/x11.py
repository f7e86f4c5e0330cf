"""A screen without a screen: Xvfb, and the few requests of the X11 protocol that a test needs to find a window, give it
the keyboard, press keys and move the pointer. No package beyond Xvfb itself."""
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time

from pictures import read_xwd
from program import SLOW_BUILD, end_with_parent

KEYSYMS = {"Control": 0xFFE3, "Shift": 0xFFE1, "Alt": 0xFFE9, "Escape": 0xFF1B, "Return": 0xFF0D, "space": 0x20,
           "Home": 0xFF50, "End": 0xFF57}


def missing():
    """Why there can be no screen here, or nothing."""
    return None if shutil.which("Xvfb") else "Xvfb is not installed (Debian package xvfb)"


class Screen:
    """A separate X server, `width` x `height`, and a connection to it."""

    def __init__(self, width=1600, height=1000):
        self.folder = tempfile.TemporaryDirectory()
        ready, tell = os.pipe()
        self.server = subprocess.Popen(["Xvfb", "-displayfd", str(tell), "-screen", "0", f"{width}x{height}x24",
                                        "-nolisten", "tcp", "-fbdir", self.folder.name], pass_fds=[tell],
                                       stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)
        os.close(tell)
        with os.fdopen(ready) as pipe:
            number = pipe.readline().strip()
        if not number:
            raise RuntimeError("Xvfb did not start")
        self.display, self.size = ":" + number, (width, height)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(f"/tmp/.X11-unix/X{number}")
        self._connect()

    def close(self):
        self.socket.close()
        self.server.terminate()
        self.server.wait()
        self.folder.cleanup()

    def pixels(self):
        """[height, width, 3]: the pixels of the screen."""
        return read_xwd(os.path.join(self.folder.name, "Xvfb_screen0"))

    # --- requests ---

    def _receive(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise RuntimeError("the X server has gone")
            data += more
        return data

    def _connect(self):
        self.socket.sendall(struct.pack("<BxHHHHxx", 0x6C, 11, 0, 0, 0))
        status, length = struct.unpack("<B5xH", self._receive(8))
        setup = self._receive(4 * length)
        if status != 1:
            raise RuntimeError(setup.decode("latin-1"))
        vendor, = struct.unpack("<H", setup[16:18])
        formats, (self.low_key, self.high_key) = setup[21], setup[26:28]
        self.root, = struct.unpack("<I", setup[32 + (vendor + 3 & ~3) + 8 * formats:][:4])
        self.xtest = self._ask(struct.pack("<BxHHxx8s", 98, 4, 5, b"XTEST"))[9]

    def _tell(self, request):
        self.socket.sendall(request)

    def _ask(self, request):
        """The answer to a request; events and errors of others on the way are of no interest."""
        self.socket.sendall(request)
        while True:
            head = self._receive(32)
            if head[0] == 1:
                return head + self._receive(4 * struct.unpack("<I", head[4:8])[0])
            if head[0] == 0:
                raise RuntimeError(f"X error {head[1]}")

    def windows(self):
        """{id: (width, height)} of the windows that are on the screen."""
        tree = self._ask(struct.pack("<BxHI", 15, 2, self.root))
        count, = struct.unpack("<H", tree[16:18])
        found = {}
        for window in struct.unpack(f"<{count}I", tree[32:32 + 4 * count]):
            try:
                attributes = self._ask(struct.pack("<BxHI", 3, 2, window))
                geometry = self._ask(struct.pack("<BxHI", 14, 2, window))
            except RuntimeError:  # gone meanwhile
                continue
            width, height = struct.unpack("<HH", geometry[16:20])
            if attributes[26] == 2 and attributes[14:16] and width > 1:
                found[window] = (width, height)
        return found

    def place(self, window):
        """(x, y) of its upper left corner."""
        return struct.unpack("<hh", self._ask(struct.pack("<BxHI", 14, 2, window))[12:16])

    def focus(self, window):
        self._tell(struct.pack("<BBHII", 42, 2, 3, window, 0))

    def point(self, x, y):
        self._fake(6, 0, x, y)

    def press(self, *names):
        """Keys down in this order and up again: press("Control", "r")."""
        codes = [self._keycode(KEYSYMS.get(name) or ord(name)) for name in names]
        for code in codes:
            self._fake(2, code)
        for code in reversed(codes):
            self._fake(3, code)

    def _fake(self, kind, detail, x=0, y=0):
        self._tell(struct.pack("<BBHBBxxII8xhh8x", self.xtest, 2, 9, kind, detail, 0, self.root, x, y))
        self._ask(struct.pack("<BxH", 43, 1))  # GetInputFocus: until it has been done

    def _keycode(self, keysym):
        count = self.high_key - self.low_key + 1
        reply = self._ask(struct.pack("<BxHBBxx", 101, 2, self.low_key, count))
        each = reply[1]
        table = struct.unpack(f"<{each * count}I", reply[32:32 + 4 * each * count])
        return self.low_key + table.index(keysym) // each


def until(what, seconds=600 if SLOW_BUILD else 60):
    """Waits for what() to be true, and returns it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what.__doc__ or what.__name__}")
