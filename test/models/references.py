# RUN: %python %s
"""ort_reference.py, compare_logits.py and the set-up scripts from the outside."""

import json
import math
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

from llama_oracle import MODELS, ROOT, forward, run_script

from ort_reference import windows

FIXTURE = ROOT / "test" / "fixtures" / "genai-fp32"


class TestCase(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def assert_error(self, result, message, code=1):
        self.assertEqual((result.returncode, result.stdout), (code, ""))
        self.assertIn(message, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)


class OrtReference(TestCase):
    def run_reference(self, lines, *options, model=FIXTURE):
        tokens = self.directory / "tokens.txt"
        tokens.write_text("".join(" ".join(map(str, line)) + "\n" for line in lines))
        return run_script("ort_reference.py", model, "--tokens", tokens, *options)

    def test_logits_and_greedy(self):
        tokens = [int(t) for t in (FIXTURE / "tokens.txt").read_text().split()]
        greedy = [int(t) for t in (FIXTURE / "greedy.txt").read_text().split()]
        out = self.directory / "logits.npy"
        result = self.run_reference([tokens, tokens[:5]], "--logits", out, "--greedy", 4)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["greedy"][0], greedy[:4])
        stored = np.load(FIXTURE / "logits.npy")
        logits = np.load(out)
        self.assertEqual((logits.dtype, logits.shape), (np.float32, (133, 480)))
        np.testing.assert_allclose(logits, np.concatenate([stored, stored[:5]]), atol=1e-4)

    def test_perplexity_by_hand(self):
        tokens = [int(t) for t in (FIXTURE / "tokens.txt").read_text().split()]
        logits = np.load(FIXTURE / "logits.npy").astype(np.float64)
        # One window of 10 from each line; the third line's second window is one
        # token long and has nothing to score.
        lines = [tokens[:10], tokens[:3], tokens[:10] + [7]]
        terms = -(logits - np.log(np.exp(logits).sum(-1, keepdims=True)))[np.arange(9), tokens[1:10]]
        nll = (2 * terms.sum() + terms[:2].sum()) / 20
        result = self.run_reference(lines, "--perplexity", "--context", 10)
        self.assertEqual(result.returncode, 0, result.stderr)
        values = json.loads(result.stdout)
        self.assertEqual(values["tokens"], 20)
        self.assertAlmostEqual(values["nll"], nll, delta=1e-5)
        self.assertAlmostEqual(values["perplexity"], math.exp(nll), delta=1e-3 * math.exp(nll))
        # The same from a text without its BOS.
        values = json.loads(self.run_reference([tokens[1:10]], "--perplexity", "--context", 10, "--bos", 1).stdout)
        self.assertAlmostEqual(values["nll"], terms.mean(), delta=1e-5)

    def test_windows_count_the_bos(self):
        self.assertEqual(windows([1, 2, 3, 4, 5], 2), [[1, 2], [3, 4], [5]])
        self.assertEqual(windows([1, 2, 3, 4, 5], 3, bos=9), [[9, 1, 2], [9, 3, 4], [9, 5]])

    def test_errors(self):
        self.assert_error(self.run_reference([[1, 2]], model=self.directory / "none"), "none")
        self.assert_error(self.run_reference([[1]], "--perplexity"), "no token to score")
        self.assert_error(self.run_reference([[1, 480]], "--perplexity"), "onnxruntime")
        self.assert_error(self.run_reference([["one"]], "--perplexity"), "'one'")


class CompareLogits(TestCase):
    REFERENCE = np.array([[4, 3.99, -1], [-8, 2, 1], [0, 1, 10]], np.float32)

    def compare(self, ours, *options, reference=REFERENCE):
        for name, array in (("ref", reference), ("ours", ours)):
            np.save(self.directory / f"{name}.npy", array)
        return run_script("compare_logits.py", self.directory / "ref.npy", self.directory / "ours.npy", *options)

    def changed(self, row, column, value):
        ours = self.REFERENCE.copy()
        ours[row, column] = value
        return ours

    def check(self, ours, code, **expected):
        result = self.compare(ours, "--rtol", 1e-2)
        self.assertEqual(result.returncode, code, result.stderr)
        values = json.loads(result.stdout)
        self.assertEqual(values["pass"], code == 0)
        self.assertEqual({key: values[key] for key in expected}, expected)

    def test_bound_is_per_position_and_by_largest_magnitude(self):
        self.check(self.REFERENCE, 0, worst_relative_difference=0.0, greedy_equal=3)
        self.check(self.changed(1, 1, 2.0625), 0, worst_position=1, positions_over_bound=0)
        self.check(self.changed(0, 2, -1.0625), 1, worst_position=0, positions_over_bound=1)
        self.check(self.changed(2, 0, np.nan), 1, worst_position=2, positions_over_bound=1)
        self.check(self.changed(2, 0, -np.inf), 1, worst_position=2, positions_over_bound=1)

    def test_greedy_choice_may_differ_only_within_the_bound(self):
        self.check(self.changed(0, 1, 4.02), 0, greedy_equal=2, greedy_excused=[0], greedy_disagreed=[])
        self.check(self.changed(1, 2, 2.5), 1, greedy_equal=2, greedy_excused=[], greedy_disagreed=[1])

    def test_errors(self):
        self.assert_error(self.compare(self.REFERENCE[:2]), "[3, 3]")
        self.assert_error(self.compare(self.REFERENCE[0], reference=self.REFERENCE[0]), "[3]")
        (self.directory / "ours.npy").write_bytes(b"no array")
        self.assert_error(run_script("compare_logits.py", self.directory / "ref.npy", self.directory / "ours.npy"), "")
        self.assert_error(run_script("compare_logits.py", self.directory / "none.npy", self.directory / "x.npy"), "none")


class Scripts(TestCase):
    def run_shell(self, script, *arguments, **environment):
        return subprocess.run([str(ROOT / script), *map(str, arguments)], capture_output=True, text=True,
                              env={"PATH": "/usr/bin:/bin", **environment})

    def test_make_venv_leaves_other_directories_alone(self):
        other = self.directory / "other"
        other.mkdir()
        (other / "file").write_text("kept")
        result = self.run_shell("scripts/make-venv.sh", other, PYTHON=sys.executable)
        self.assert_error(result, "is not a Python environment")
        self.assertEqual((other / "file").read_text(), "kept")

    def test_make_venv_takes_a_stamped_environment_as_it_is(self):
        python = self.directory / "python"
        python.write_text('#!/bin/sh\n[ "$1" = -c ] || exit 9\necho 3.11\n')
        python.chmod(0o755)
        environment = self.directory / "venv"
        (environment / "bin").mkdir(parents=True)
        (environment / "pyvenv.cfg").touch()
        shutil.copy(python, environment / "bin" / "python")
        digest = subprocess.run(
            f"(cat {ROOT}/models/requirements.txt; echo 3.11) | sha256sum | cut -d' ' -f1",
            shell=True, capture_output=True, text=True).stdout
        (environment / ".stamp").write_text(digest)
        self.assertEqual(self.run_shell("scripts/make-venv.sh", environment, PYTHON=python).returncode, 0)
        # With another stamp it would be made anew, which this interpreter refuses.
        (environment / ".stamp").write_text("old")
        self.assert_error(self.run_shell("scripts/make-venv.sh", environment, PYTHON=python), "-m venv' failed")

    def test_make_venv_names_the_interpreter_it_cannot_use(self):
        python = self.directory / "python"
        python.write_text("#!/bin/sh\necho 3.9\n")
        python.chmod(0o755)
        self.assert_error(self.run_shell("scripts/make-venv.sh", self.directory / "v", PYTHON=python), "Python 3.9")
        result = self.run_shell("scripts/make-venv.sh", self.directory / "v", PYTHON="no-such-python")
        self.assertEqual(result.returncode, 1)
        self.assertIn("'no-such-python' does not run", result.stderr)

    def test_usage(self):
        for script in ("scripts/make-venv.sh", "models/fetch_smollm2.sh"):
            self.assert_error(self.run_shell(script), "usage:", code=2)
        self.assert_error(self.run_shell("models/fetch_smollm2.sh", self.directory), "not a Python environment")

    def test_every_script_describes_itself(self):
        for script in ("export_gguf.py", "export_llama2c.py", "tiny_llama.py", "ort_reference.py", "compare_logits.py"):
            result = run_script(script, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertTrue(result.stdout.startswith(f"usage: {script}"))
            self.assertEqual(run_script(script, "--no-such-option").returncode, 2)


if __name__ == "__main__":
    unittest.main()
