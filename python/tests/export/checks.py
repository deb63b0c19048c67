"""Modules of many functions, exported and compared with eager."""

import tempfile
import unittest

import braid
import torch

torch.set_num_threads(1)

# Of what has another error than a few roundings in f32, the relative one.
LIMITS = {"frac": 0, "ceil": 0, "trunc": 0, "remainder": 0, "fmod": 0}


class Many(torch.nn.Module):
    """Outputs by name, each of its own function of the inputs."""

    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, **inputs):
        return {name: function(**inputs) for name, function in self.functions.items()}


class Checked(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)

    def check(self, functions, limit=2e-6, absolute=0, **inputs):
        self.check_runs(functions, [inputs], None, limit, absolute)

    def check_runs(self, functions, runs, dynamic_shapes, limit=2e-6, absolute=0):
        """The same of several inputs, whose shapes differ where `dynamic_shapes` says so."""
        self.check_module(Many(functions), runs, dynamic_shapes, limit, absolute)

    def check_module(self, module, runs, dynamic_shapes, limit, absolute):
        """Of a module whose outputs are a dict."""
        with tempfile.TemporaryDirectory() as folder:
            braid.export(module, folder, inputs=runs[0], dynamic_shapes=dynamic_shapes)
            executable = braid.load_exported(folder, "cpu")
        for inputs in runs:
            self.compare(module(**inputs), executable.run(inputs), limit, absolute)

    def compare(self, expected, found, limit, absolute):
        self.assertEqual(sorted(found), sorted(expected))
        for name, want in expected.items():
            with self.subTest(name):
                got = torch.from_numpy(found[name][0])
                got = got.bfloat16() if want.dtype == torch.bfloat16 else got  # it is widened
                self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
                rtol = LIMITS.get(name, limit) if want.is_floating_point() else 0
                torch.testing.assert_close(got, want, rtol=rtol, atol=absolute, equal_nan=True)
