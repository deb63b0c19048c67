"""The package over the C interface: needs NumPy alone."""

import contextlib
import ctypes
import gc
import io
import pathlib
import tempfile
import unittest

import braid
import numpy as np
from braid import graph, kernel, tensors


def sum_graph(dtype="f32"):
    g = braid.Graph("sum")
    rows, tp = g.symbol("T", max=8), g.group("tp", 2)
    x = g.input("x", dtype, [rows, 8], per_rank=True)
    reduced = g.node("all_reduce", [x], reduce_op="sum", group=tp)
    g.output(g.node("wait_tensor", [reduced], "y"))
    return g


# y[i] = x[i] + x[i]
DOUBLE = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry double_all(.param .u64 x, .param .u64 y)
{
  .reg .b32 %r<1>;
  .reg .b64 %rd<5>;
  .reg .f32 %f<2>;
  ld.param.u64 %rd0, [x];
  ld.param.u64 %rd1, [y];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd2, %r0, 4;
  add.s64 %rd3, %rd0, %rd2;
  add.s64 %rd4, %rd1, %rd2;
  ld.global.f32 %f0, [%rd3];
  add.f32 %f1, %f0, %f0;
  st.global.f32 [%rd4], %f1;
  ret;
}
"""


class Readme(unittest.TestCase):
    def test_its_program_prints_the_sum(self):
        text = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
        program = text.split("```python\n")[1].split("```")[0]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, {})
        self.assertEqual(printed.getvalue(), f"{np.full((3, 8), 3, np.float32)}\n")


class Kernels(unittest.TestCase):
    """PTX of the caller's own."""

    def setUp(self):
        self.world = braid.World(1, "cpu", sanitize="all", count=True)
        self.stream = self.world.stream(0)
        self.x, self.y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)

    def launch(self):
        loaded = kernel.Kernel(self.world, DOUBLE, "double_all", file="double.ptx")
        values = (ctypes.c_uint64 * 2)(self.x.ctypes.data, self.y.ctypes.data)
        first = ctypes.addressof(values)
        loaded.launch(self.stream, (1,), (64,), [first, first + 8])
        self.stream.synchronize()
        return loaded

    def test_findings_and_counts(self):
        with (kernel.Lent(self.world, self.x.ctypes.data, 256, "x"),
              kernel.Lent(self.world, self.y.ctypes.data, 256, "y")):
            loaded = self.launch()
        np.testing.assert_array_equal(2 * self.x, self.y)
        self.assertEqual({"findings": [], "notes": []}, kernel.findings(self.world))
        counts = loaded.counts("H100")
        self.assertEqual((1, 512), (counts["launches"], counts["minimum_bytes"]))
        kernel.forget(self.world)
        self.assertIsNone(loaded.counts("H100"))

    def test_memory_that_was_not_lent(self):
        with self.assertRaises(braid.InternalError):
            self.launch()
        (found,) = kernel.findings(self.world)["findings"]
        self.assertEqual(("bounds", "double.ptx"), (found["kind"], found["ptx_file"]))

    def test_devices_and_tensor_maps(self):
        self.assertEqual(("H100", 90, 132), kernel.device_info("H100")[:3])
        place = self.x.ctypes.data // 16 * 16
        self.assertEqual(128, len(kernel.tensor_map(self.world, place, 7, (8, 8), (32,), (8, 4), 0)))
        with self.assertRaisesRegex(braid.InvalidArgument, "tensor map type: found 11"):
            kernel.tensor_map(self.world, place, 11, (8, 8), (32,), (8, 4), 0)


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.x = [np.arange(24, dtype=np.float32).reshape(3, 8) + 100 * rank for rank in range(2)]
        cls.executable = braid.compile(sum_graph(), device="cpu")

    def test_runs_ranks_and_finds_symbols_in_shapes(self):
        y = self.executable.run({"x": self.x})["y"]
        for rank in range(2):
            np.testing.assert_array_equal(y[rank], self.x[0] + self.x[1])

    def test_all_inputs_are_needed(self):
        with self.assertRaises(braid.InvalidArgument) as raised:
            braid.run(sum_graph(), {}, device="cpu", symbols={"T": 3})
        self.assertEqual(str(raised.exception), "x: found no value; expected one for each input")
        executable = self.executable.another()
        executable.plan(T=3)
        executable.set("x", self.x[0], 0)
        with self.assertRaisesRegex(braid.InvalidArgument, "^x: has no value on rank 1; expected"):
            executable.launch(executable.plan(T=3))

    def test_describes_what_it_takes(self):
        (x,) = self.executable.inputs
        self.assertEqual(x, ("x", "f32", ("T", "8"), "activation", True))
        self.assertEqual([y.name for y in self.executable.outputs], ["y"])
        self.assertEqual(self.executable.symbols, [("T", 1, 8, 1)])

    def test_bound_tensors_are_used_without_copies(self):
        executable = self.executable.another()
        outputs = [np.zeros((3, 8), np.float32) for _ in range(2)]
        for rank in range(2):
            executable.bind("x", self.x[rank], rank)
            executable.bind("y", outputs[rank], rank)
        plan = executable.plan(T=3)
        gc.collect()
        streams = [executable.world.stream(rank) for rank in range(2)]
        executable.launch(plan, streams)
        executable.synchronize()
        np.testing.assert_array_equal(outputs[1], self.x[0] + self.x[1])

    def test_errors_are_exceptions_with_the_place(self):
        self.executable.plan(T=3)
        with self.assertRaises(braid.InvalidArgument) as raised:
            self.executable.set("x", np.zeros((8, 3), np.float32), 0)
        self.assertEqual(str(raised.exception), "x: is f32[8, 3]; expected f32[3, 8]")
        self.assertEqual(raised.exception.place, "x")
        wrong = sum_graph()
        wrong.nodes[0]["attrs"]["group"] = "dp"
        with self.assertRaises(braid.InvalidArgument) as raised:
            braid.compile(wrong, device="cpu")
        self.assertEqual(raised.exception.place, "/nodes/0/attrs/group")
        with self.assertRaisesRegex(
            braid.InvalidArgument, "x: found a list of 3; expected an array"
        ):
            self.executable.run({"x": 3 * [self.x[0]]})
        with self.assertRaisesRegex(braid.InvalidArgument, "tensor: is complex64; expected one of"):
            self.executable.set("x", self.x[0].astype(np.complex64))

    def test_a_closed_handle_is_an_error(self):
        executable = self.executable.another()
        executable.close()
        with self.assertRaises(braid.InvalidArgument):
            executable.plan(T=3)

    def test_progress_cancels_by_its_own_exception(self):
        def stop(done, total, what):
            raise KeyError(what)

        with self.assertRaises(KeyError):
            braid.compile(sum_graph(), device="cpu", progress=stop)

    def test_saves_and_loads(self):
        with tempfile.TemporaryDirectory() as directory:
            self.executable.save(directory)
            loaded = self.executable.world.load(directory)
        y = loaded.run({"x": self.x})["y"]
        np.testing.assert_array_equal(y[0], self.x[0] + self.x[1])

    def test_graphs_are_read_as_they_were_written(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(sum_graph().to_json(indent=1))
            file.flush()
            self.assertEqual(braid.Graph.load(file.name).to_json(), sum_graph().to_json())
            self.assertEqual(graph.world_size(file.name), 2)

    def test_extents_are_affine_expressions(self):
        self.assertEqual(graph.extent("2*T+1", {"T": 5}), 11)
        self.assertEqual(graph.extent("T//2 - U", {"T": 6, "U": 1}), 2)
        self.assertEqual(graph.extent(7, {}), 7)
        with self.assertRaises(ValueError):
            graph.extent("T**2", {"T": 2})

    def test_numbers_have_no_dims(self):
        self.assertEqual(tensors.host_tensor(np.float32(2)).shape, ())

    def test_memory_is_described_by_its_address(self):
        memory = (ctypes.c_uint16 * 24)(*range(24))
        value = tensors.described(ctypes.addressof(memory), "bf16", (3, 8), memory)
        executable = braid.compile(sum_graph("bf16"), device="cpu")
        executable.plan(T=3)
        executable.set("x", value)
        with self.assertRaisesRegex(braid.InvalidArgument, "x: is bf16.*expected f32"):
            self.executable.plan(T=3)
            self.executable.set("x", value)


if __name__ == "__main__":
    unittest.main()
