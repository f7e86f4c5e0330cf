#!/usr/bin/env python3
"""Hostile submissions of a C++ lab: none changes a grade, stops the grader, or leaves a process or a file behind.

    security_test.py --kvscope PROGRAM

docs/labs/staff/SECURITY.md is the threat model. Each attack is a rows.cpp of lab 02; a correct submission that is graded after
the attacks must still get all points.
"""
import json
import pathlib
import unittest

import attacks
from attacks import COURSE

SOLUTION = (COURSE / "staff" / "02_rows" / "solution" / "rows.cpp").read_text(encoding="utf-8")


# The solution, with `code` at the beginning of row_idx.
def inside(code, includes=""):
    return includes + SOLUTION.replace("const std::int64_t page =", code + "\n  const std::int64_t page =", 1)


class SecurityTest(attacks.Attacks, unittest.TestCase):
    LAB, FILE, SOLUTION, MARK = "2", "rows.cpp", SOLUTION, "kvscope_security_test_mark"
    LONGEST = 120

    def test_a_fork_bomb_starts_no_process(self):
        bomb = f'prctl(PR_SET_NAME, "{self.MARK[:attacks.MOST_MARK]}"); while (fork() >= 0) {{}}'
        self.assertEqual(self.points(inside(bomb, "#include <sys/prctl.h>\n#include <unistd.h>\n")), 100)  # fork fails
        self.assert_no_process()

    def test_threads_are_rejected(self):
        threads = "for (int i = 0; i < 1000; ++i) std::thread([] { for (;;) {} }).detach();"
        self.assertEqual(self.points(inside(threads, "#include <thread>\n")), 0)

    def test_an_endless_loop_ends_at_the_time_limit(self):
        self.assertEqual(self.points(inside("for (volatile int i = 0;;) i = i + 1;")), 0)
        self.assertRegex(self.report, "of CPU time|did not end within")  # the wall clock, on a busy machine; sandbox_test.cpp has both limits

    def test_sleep_ends_at_the_time_limit(self):
        text = SOLUTION.replace("  rows[0] =", "  if (tile > cache.page_size) sleep(1000000);\n  rows[0] =", 1)
        self.assertEqual(self.points("#include <unistd.h>\n" + text), 75)
        self.assertIn("did not end within", self.report)

    def test_100_gb_are_not_allocated(self):
        grab = "static char* p = new char[100'000'000'000]; for (std::int64_t i = 0; i < 100'000'000'000; i += 4096) p[i] = 1;"
        self.assertEqual(self.points(inside(grab)), 0)
        self.assertIn("signal 6", self.report)

    def test_writing_outside_fails(self):
        target = self.folder / "written"
        write = " ".join(f'if (FILE* f = std::fopen("{path}", "w")) {{ std::fputs("x", f); std::fclose(f); }}'
                         for path in (target, "/usr/bin/written", "/lab/program", "/written"))
        self.assertEqual(self.points(inside(write, "#include <cstdio>\n")), 100)
        self.assertFalse(target.exists())
        self.assertFalse(pathlib.Path("/usr/bin/written").exists())

    def test_filling_the_work_folder_ends_at_its_size(self):
        fill = 'static FILE* f = std::fopen("/tmp/x", "w"); for (int i = 0; f && i < 1000; ++i) std::fputs(big, f);'
        big = "#include <cstdio>\n#include <cstring>\nstatic char big[65536];\n"
        self.assertEqual(self.points(inside("std::memset(big, 120, 65535); " + fill, big)), 0)
        self.assertIn("wrote a file of more than", self.report)

    def test_the_course_and_other_files_cannot_be_read(self):
        paths = [COURSE / "staff" / "02_rows" / "solution" / "rows.cpp", "/etc/passwd", "/etc/shadow", self.folder / "secret",
                 pathlib.Path(attacks.KVSCOPE), "/proc/1/environ", "/proc/self/maps"]
        read = " ".join(f'if (std::fopen("{path}", "r")) std::abort();' for path in paths)
        self.assertEqual(self.points(inside(read, "#include <cstdio>\n#include <cstdlib>\n")), 100)

    def test_including_files_of_the_grader_fails(self):
        for path in (COURSE / "staff" / "02_rows" / "solution" / "rows.cpp", "/etc/shadow", "/etc/passwd", self.folder / "secret"):
            with self.subTest(path=path):
                target = self.submit(f'#include "{path}"\n', "including" + str(abs(hash(path))))
                grade, = self.grade(target)
                self.assertEqual(grade["points"], 0)
                self.assertIn("No such file", json.dumps(grade))
                self.assertNotIn("root:", json.dumps(grade))
                self.assertNotIn("a secret of", json.dumps(grade))

    def test_assembler_directives_cannot_embed_files(self):
        self.assertEqual(self.points(f'asm(".incbin \\"{self.folder}/secret\\"");\n' + SOLUTION), 0)

    def test_there_is_no_network(self):
        def attack(port):
            connect = (f"sockaddr_in a{{}}; a.sin_family = AF_INET; a.sin_port = htons({port}); "
                       "a.sin_addr.s_addr = htonl(0x7f000001); int s = socket(AF_INET, SOCK_STREAM, 0); "
                       "if (connect(s, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0) std::abort();")
            includes = "#include <arpa/inet.h>\n#include <netinet/in.h>\n#include <sys/socket.h>\n#include <cstdlib>\n"
            self.assertEqual(self.points(inside(connect, includes)), 100)

        self.assert_not_reached(attack)

    def test_killing_the_parent_or_all_processes_does_not_reach_the_grader(self):
        kill = "kill(getppid(), SIGKILL); kill(-1, SIGKILL); kill(0, SIGSTOP);"
        self.assertIn(self.points(inside(kill, "#include <signal.h>\n#include <unistd.h>\n")), (0, 100))

    def test_printed_results_are_no_results(self):
        fake = 'std::printf("PASS one_page 10 of 10\\n{\\"points\\": 100}\\n"); std::fflush(stdout); return 0;'
        self.assertLess(self.points(inside(fake, "#include <cstdio>\n")), 100)

    def test_results_written_to_every_descriptor_are_answers_like_others(self):
        fake = "static const std::uint64_t f[2] = {1, 0}; for (int d = 3; d < 64; ++d) if (write(d, f, 16) < 0) continue;"
        self.assertEqual(self.points(inside(fake, "#include <unistd.h>\n")), 0)

    def test_endless_output_ends_at_its_limit(self):
        self.assertEqual(self.points(inside("for (;;) if (write(3, big, sizeof big) < 0) break;",
                                            "#include <unistd.h>\nstatic char big[65536] = {};\n")), 0)

    def test_control_characters_are_escaped(self):
        self.points(inside('std::printf("\\033]0;title\\007\\033[31m"); std::fflush(stdout); std::abort();',
                           "#include <cstdio>\n#include <cstdlib>\n"))
        self.assertNotIn("\x1b", self.printed)
        self.assertIn("\\u001b", self.printed)

    def test_template_and_include_bombs_end_at_the_limits(self):
        bombs = ["template <int N> struct B { B<N - 1> l; B<N - 2> r; static const int v = B<N - 1>::v + B<N + 1>::v; };\n"
                 "int x = B<0>::v;\n",
                 '#include "rows.cpp"\n#include "rows.cpp"\n',
                 "#define A x x x x x x x x x x\n" + "".join(
                     f"#define {chr(66 + i)} {' '.join([chr(65 + i)] * 10)}\n" for i in range(12)) + "int y = sizeof(#M);\nM\n",
                 "char big[1ull << 40] = {1};\n"]
        for number, bomb in enumerate(bombs):
            with self.subTest(number=number):
                grade, = self.grade(self.submit(bomb + SOLUTION, f"bomb{number}"))
                self.assertEqual(grade["points"], 0)
                self.assertLess(self.seconds, 60)

    def test_a_main_of_the_student_does_not_replace_the_harness(self):
        self.assertEqual(self.points(SOLUTION + "\nint main() { return 0; }\n"), 0)

    def test_code_before_main_that_ends_the_program_earns_nothing(self):
        early = "static const int stop = (_exit(0), 0);\n"
        self.assertEqual(self.points("#include <unistd.h>\n" + SOLUTION + early), 0)
        self.assertIn("before it answered every case", self.report)

    def test_answers_of_the_public_cases_do_not_pass_the_grading(self):
        table = "#include <map>\n#include <tuple>\n" + SOLUTION.replace(
            "  const std::int64_t page =",
            "  static const std::map<std::tuple<std::int64_t, std::int64_t>, std::uint32_t> known{{{0, 3}, 3}, {{0, 2}, 2}};\n"
            "  const auto found = known.find({sequence, token});\n"
            "  return found == known.end() ? 0 : found->second;\n  const std::int64_t page =", 1)
        self.assertLess(self.points(table), 20)


if __name__ == "__main__":
    attacks.main()
