"""Triton's kernels on the cpu device: values, findings, counts. Needs PyTorch and Triton."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest
import warnings

import braid
import braid.triton
import kernels
import torch
import triton

HERE = pathlib.Path(__file__).parent


def line_of(text):
    """The line of kernels.py that has this text."""
    lines = (HERE / "kernels.py").read_text().splitlines()
    return 1 + next(n for n, line in enumerate(lines) if text in line)


def random(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=torch.float32).to(dtype)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def close(self, got, want, tolerance):
        """`want` is in float64, and is rounded as the kernel rounds its results."""
        rounded = want.to(got.dtype).double()
        error = (got.double() - rounded).norm() / rounded.norm()
        self.assertLessEqual(error.item(), tolerance)

    def clean(self):
        """No finding so far."""
        report = braid.triton.report()
        self.assertEqual([], report.findings)
        self.assertTrue(report.kernels)


class Values:
    """Run for two architectures, with and without checks."""

    def test_add(self):
        x, y = random(1000), random(1000)
        torch.testing.assert_close(kernels.add(x, y), x + y, rtol=0, atol=0)
        self.clean()

    def test_softmax(self):
        x = random(37, 300)
        self.close(kernels.softmax(x), torch.softmax(x.double(), 1), 1e-5)
        self.clean()

    def test_matmul(self):
        a, b = random(96, 72, dtype=torch.float16), random(72, 80, dtype=torch.float16)
        want = a.double() @ b.double()
        self.close(kernels.matmul(a, b), want, 2e-4)
        self.close(kernels.matmul(a, b, "leaky"), torch.where(want >= 0, want, 0.01 * want), 2e-4)
        self.clean()

    def test_matmul_of_8_bit_floats(self):
        a, b = (random(64, 64, dtype=torch.float16).to(torch.float8_e5m2) for _ in range(2))
        self.close(kernels.matmul(a, b), a.double() @ b.double(), 2e-4)

    def test_dropout(self):
        x = random(4096)
        out = kernels.dropout(x, 0.25, 7)
        kept = out != 0
        self.assertAlmostEqual(kept.double().mean().item(), 0.75, delta=0.03)
        self.close(out[kept], x[kept].double() / 0.75, 1e-6)
        self.assertTrue(torch.equal(out, kernels.dropout(x, 0.25, 7)))
        self.assertFalse(torch.equal(out, kernels.dropout(x, 0.25, 8)))
        self.clean()

    def test_layer_norm_forward_and_backward(self):
        x = (-2.3 + 0.5 * random(40, 200)).requires_grad_()
        weight, bias = torch.rand(200).requires_grad_(), torch.rand(200).requires_grad_()
        dy = 0.1 * random(40, 200)
        y = kernels.LayerNorm.apply(x, weight, bias, 1e-5)
        y.backward(dy)
        wide = [t.detach().double().requires_grad_() for t in (x, weight, bias)]
        want = torch.nn.functional.layer_norm(wide[0], (200,), wide[1], wide[2], 1e-5)
        want.backward(dy.double())
        self.close(y.detach(), want.detach(), 1e-5)
        for got, reference in zip((x, weight, bias), wide):
            self.close(got.grad, reference.grad, 1e-5)
        self.clean()

    def test_attention_forward_and_backward(self):
        q, k, v, dy = (random(2, 128, 64, dtype=torch.float16) for _ in range(4))
        for causal in (False, True):
            wide = [t.double().requires_grad_() for t in (q, k, v)]
            scores = wide[0] @ wide[1].mT / 8
            if causal:
                later = torch.ones(128, 128, dtype=torch.bool).triu(1)
                scores = scores.masked_fill(later, -torch.inf)
            want = torch.softmax(scores, 2) @ wide[2]
            want.backward(dy.double())
            # The weights and their gradients are rounded to f16 before products.
            out, logs = kernels.attention(q, k, v, causal)
            self.close(out, want.detach(), 1e-3)
            in_base_2 = torch.logsumexp(scores.detach(), 2) / torch.tensor(2.0).double().log()
            self.close(logs, in_base_2, 1e-5)
            for got, of in zip(kernels.attention_back(q, k, v, out, logs, dy, causal), wide):
                self.close(got, of.grad, 1e-3)
        self.clean()

    def test_extern_functions(self):
        x = torch.rand(1000)
        self.close(kernels.asin(x), torch.asin(x.double()), 1e-6)
        self.clean()

    def test_products_whose_addresses_are_in_memory(self):
        pairs = [(random(m, k, dtype=torch.float16), random(k, n, dtype=torch.float16))
                 for m, n, k in ((64, 32, 96), (32, 64, 32), (96, 96, 64))]
        for product, (a, b) in zip(kernels.group_matmul(pairs), pairs):
            self.close(product, a.double() @ b.double(), 2e-4)
        self.clean()

    def test_persistent_matmul_with_descriptors(self):
        a, b = random(256, 128, dtype=torch.float16), random(192, 128, dtype=torch.float16)
        self.close(kernels.persistent_matmul(a, b), a.double() @ b.double().T, 2e-4)
        self.clean()

    def test_descriptors_that_kernels_make(self):
        x = random(64, 96)
        self.assertTrue(torch.equal(kernels.transpose(x), x.T))
        self.clean()


    def test_gluon(self):
        x, out = random(1000), torch.empty(1000)
        kernels.gluon_copy_kernel[(2,)](x, out, 1000, BLOCK=512)
        self.assertTrue(torch.equal(x, out))
        self.clean()

    def test_tuples(self):
        x, out = random(64), torch.empty(64)
        kernels.pair_kernel[(1,)]((x, 2.5), out, BLOCK=64)
        self.assertTrue(torch.equal(2.5 * x, out))
        self.clean()

    def test_tensors_that_share_memory(self):
        x = random(64)
        out = kernels.add(x[:32], x[32:])
        self.assertTrue(torch.equal(x[:32] + x[32:], out))
        self.clean()

    def test_what_has_an_address(self):
        class Part:
            def __init__(self, base, start):
                self.tensor, self.dtype = base[start:], base.dtype

            def data_ptr(self):
                return self.tensor.data_ptr()

        x, out = random(300), torch.empty(100)
        kernels.add_kernel[(1,)](Part(x, 0), Part(x, 200), out, 100, BLOCK=128)
        torch.testing.assert_close(out, x[:100] + x[200:], rtol=0, atol=0)
        self.clean()

    def test_launches_of_what_is_compiled(self):
        x, y, out = random(100), random(100), torch.empty(100)
        compiled = kernels.add_kernel[(1,)](x, y, out, 100, BLOCK=128)
        out.zero_()
        compiled[(1, 1, 1)](x, y, out, 100)  # without the constant at the end
        torch.testing.assert_close(out, x + y, rtol=0, atol=0)
        self.clean()

    def test_an_empty_grid_launches_nothing(self):
        self.assertEqual(0, kernels.add(torch.empty(0), torch.empty(0)).numel())


class CheckedOnHopper(Values, Case):
    @classmethod
    def setUpClass(cls):
        braid.triton.use(sanitize=True, count="H100")

    def test_persistent_matmul_with_specialized_warps(self):
        a, b = random(256, 128, dtype=torch.float16), random(192, 128, dtype=torch.float16)
        self.close(kernels.persistent_matmul(a, b, True), a.double() @ b.double().T, 2e-4)
        self.clean()


    def test_gluon_with_bulk_copies_and_warp_groups(self):
        a, b = random(64, 192, dtype=torch.float16), random(192, 64, dtype=torch.float16)
        self.close(kernels.gluon_matmul(a, b), a.double() @ b.double(), 2e-4)
        self.clean()

    def test_clusters(self):
        a, b = (random(64, 64, dtype=torch.float16) for _ in range(2))
        c = torch.empty(64, 64)
        kernels.small_matmul_kernel[(1,)](a, b, c, SIZE=64, num_ctas=2)
        self.close(c, a.double() @ b.double(), 1e-5)
        self.clean()


class OnAmpere(Values, Case):
    @classmethod
    def setUpClass(cls):
        braid.triton.use()


class Refusals(Case):
    @classmethod
    def setUpClass(cls):
        braid.triton.use()

    def test_tensors_of_other_devices(self):
        x = random(8)
        with self.assertRaisesRegex(braid.InvalidArgument, "lies on meta; expected one on the CPU"):
            kernels.add_kernel[(1,)](x, x.to("meta"), x, 8, BLOCK=256)

    def test_instructions_that_the_device_has_not(self):
        with self.assertRaisesRegex(braid.InvalidArgument, r"ptx:\d+: .*vprintf"):
            kernels.printing_kernel[(1,)](random(8), BLOCK=8)


class Findings(Case):
    @classmethod
    def setUpClass(cls):
        braid.triton.use(sanitize=True)

    def test_a_race_is_named_at_its_line(self):
        with self.assertWarnsRegex(braid.triton.SanitizerWarning, "race: .*kernels.py:"):
            kernels.racing_kernel[(2,)](random(512), torch.empty(1), BLOCK=256)
        (found,) = braid.triton.report().findings
        self.assertEqual("race", found.kind)
        self.assertEqual(str(HERE / "kernels.py"), found.file)
        self.assertEqual(line_of("tl.store(out, tl.sum(v, axis=0))"), found.line)
        self.assertEqual("out", found.buffer)
        braid.triton.forget()
        self.assertEqual([], braid.triton.report().findings)

    def test_a_read_beyond_a_tensor_stops_the_kernel(self):
        x = random(1000)
        with self.assertRaisesRegex(braid.triton.KernelError, "bounds: .*kernels.py:"):
            kernels.beyond_kernel[(4,)](x, torch.empty(1000), 1000, BLOCK=256)
        found = braid.triton.report().findings[-1]
        self.assertEqual("x", found.buffer)
        self.assertEqual(4000, found.offset)
        self.assertEqual(line_of("def beyond_kernel") + 2, found.line)
        # The next launch is none the worse.
        self.assertTrue(torch.equal(kernels.add(x, x), 2 * x))

    def test_a_warning_is_about_the_line_that_launches(self):
        with self.assertWarns(braid.triton.SanitizerWarning) as warned:
            kernels.racing_kernel[(2,)](random(512), torch.empty(1), BLOCK=256)
        self.assertEqual(__file__, warned.filename)

    def test_a_failed_assertion_is_named_at_its_line(self):
        x = torch.full((64,), 2)
        kernels.asserting_kernel[(1,)](x, torch.empty_like(x), BLOCK=64, debug=True)
        place = rf"trap \(kernels.py:{line_of('tl.device_assert')}\)"
        with self.assertRaisesRegex(braid.triton.KernelError, place):
            kernels.asserting_kernel[(1,)](x + 9, torch.empty_like(x), BLOCK=64, debug=True)
        x[5] = 9
        with self.assertRaisesRegex(braid.triton.KernelError, place):
            kernels.asserting_kernel[(1,)](x, torch.empty_like(x), BLOCK=64, debug=True)

    def test_scopes_of_checks(self):
        braid.triton.use(sanitize="bounds")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kernels.racing_kernel[(2,)](random(512), torch.empty(1), BLOCK=256)
        self.assertEqual([], braid.triton.report().findings)
        braid.triton.use(sanitize=True)


class Counts(Case):
    def test_reports_counts_and_estimates(self):
        braid.triton.use(count="H100")
        kernels.add(random(4096), random(4096))
        kernels.add(random(4096), random(4096))
        (kernel,) = braid.triton.report().kernels
        self.assertEqual(("add_kernel", 2, (16, 1, 1)),
                         (kernel.source.name, kernel.launches, kernel.grid))
        self.assertEqual(line_of("def add_kernel"), kernel.source.line)
        self.assertEqual(3 * 4 * 4096, kernel.counts["minimum_bytes"])
        self.assertEqual(0, kernel.counts["counts"]["peer_bytes"])
        self.assertFalse(kernel.counts["estimate"]["registers_assumed"])
        self.assertEqual("launch", kernel.limiter)
        text = str(braid.triton.report())
        self.assertIn("us on H100", text)
        self.assertIn("kernels.py:", text)

    def test_autotune_takes_the_least_estimate(self):
        braid.triton.use(count="A100")
        kernels.matmul_kernel.cache.clear()
        a = random(256, 128, dtype=torch.float16)
        kernels.matmul(a, a.T.contiguous())
        tried = {dict(k.source.constants)["M"]: k.estimate_us for k in braid.triton.report().kernels}
        self.assertEqual(2, len(tried))
        self.assertEqual(min(tried, key=tried.get), str(kernels.matmul_kernel.best_config.kwargs["M"]))

    def test_uses_of_one_kind_share_a_world(self):
        threads = set()
        for _ in range(5):
            braid.triton.use(sanitize=True)
            self.assertEqual([], braid.triton.report().kernels)
            kernels.add(random(10), random(10))
            threads.add(len(os.listdir("/proc/self/task")))
        self.assertEqual(1, len(threads))

    def test_other_devices_are_refused(self):
        with self.assertRaisesRegex(braid.InvalidArgument, "expected one of A100"):
            braid.triton.use(count="abacus")
        with self.assertRaisesRegex(braid.InvalidArgument, "expected H100, that of count"):
            braid.triton.use(count="H100", device="A100")


class Device(Case):
    def test_is_what_kernels_are_compiled_for(self):
        braid.triton.use(device="H100")
        driver = triton.runtime.driver.active
        self.assertEqual(torch.device("cpu"), driver.get_active_torch_device())
        self.assertEqual(90, driver.get_current_target().arch)
        if not torch.cuda.is_available():
            self.assertEqual((9, 0), torch.cuda.get_device_capability())
        kernel = kernels.add_kernel[(1,)](random(8), random(8), torch.empty(8), 8, BLOCK=256)
        self.assertIn(".target sm_90a", kernel.asm["ptx"])

    def test_do_bench_measures_the_cpu_device(self):
        braid.triton.use()
        x = random(64)
        self.assertGreater(triton.testing.do_bench(lambda: kernels.add(x, x), warmup=1, rep=5), 0)


class Pytest(unittest.TestCase):
    def run_pytest(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "test_it.py").write_text(textwrap.dedent("""
                import braid.triton, kernels, torch, unittest

                def test_race():
                    kernels.racing_kernel[(2,)](torch.randn(512), torch.empty(1), BLOCK=256)

                class Race(unittest.TestCase):
                    def test_race(self):
                        test_race()

                def test_expected_race():
                    test_race()
                    assert braid.triton.report().findings
                    braid.triton.forget()

                def test_add():
                    x = torch.randn(100)
                    assert torch.equal(kernels.add(x, x), 2 * x)
                """))
            path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
            return subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "braid.pytest_plugin", *options, folder],
                capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path})

    def test_findings_fail_the_test_that_launched_the_kernel(self):
        done = self.run_pytest("--braid-sanitize", "--braid-count", "H100")
        self.assertEqual(1, done.returncode, done.stdout + done.stderr)
        self.assertIn("2 failed, 2 passed", done.stdout)
        self.assertRegex(done.stdout, r"race: .*kernels\.py:\d+")
        self.assertIn("us on H100", done.stdout)

    def test_kernels_without_findings_pass(self):
        done = self.run_pytest("--braid-sanitize=bounds", "-k", "not expected")
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
