"""braid from Python, by ctypes alone: by_ctypes.py LIBBRAID.SO. Fails where a result is wrong."""

import ctypes
import sys

RANKS, ROWS, WIDTH = 2, 3, 8
GRAPH = b"""{"braid": 1, "name": "sum", "groups": {"tp": {"size": 2}},
  "symbols": {"T": {"min": 1, "max": 8}},
  "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 8], "per_rank": true}],
  "nodes": [{"name": "c", "op": "all_reduce", "inputs": ["x"],
             "attrs": {"reduce_op": "sum", "group": "tp"}},
            {"name": "y", "op": "wait_tensor", "inputs": ["c"]}],
  "outputs": ["y"]}"""


class Options(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), ("device", ctypes.c_char_p),
                ("world", ctypes.c_int32), ("threads", ctypes.c_int32),
                ("cache_dir", ctypes.c_char_p), ("target", ctypes.c_char_p),
                ("timeout_s", ctypes.c_double), ("warning", ctypes.c_void_p),
                ("progress", ctypes.c_void_p), ("allocate", ctypes.c_void_p),
                ("free", ctypes.c_void_p), ("context", ctypes.c_void_p),
                ("compile_processes", ctypes.c_int32), ("compile_worker", ctypes.c_char_p),
                ("compile_in_background", ctypes.c_int32), ("host", ctypes.c_char_p),
                ("port", ctypes.c_int32), ("rank", ctypes.c_int32), ("job", ctypes.c_char_p),
                ("meet_timeout_s", ctypes.c_double)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_char_p), ("dims", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64))]


braid = ctypes.CDLL(sys.argv[1])
braid.braid_last_error.restype = ctypes.c_char_p


def call(name, *arguments):
    if getattr(braid, name)(*arguments) != 0:
        raise RuntimeError(braid.braid_last_error().decode())


def tensor(values, *shape):
    return Tensor(ctypes.cast(values, ctypes.c_void_p), b"f32", len(shape),
                  (ctypes.c_int64 * len(shape))(*shape), None)


world, executable, plan = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
options = Options(bytes=ctypes.sizeof(Options), device=b"cpu", world=RANKS)
call("braid_world_open", ctypes.byref(options), ctypes.byref(world))
call("braid_compile", world, GRAPH, ctypes.byref(executable))
call("braid_prepare", executable, (ctypes.c_char_p * 1)(b"T"), (ctypes.c_int64 * 1)(ROWS), 1,
     ctypes.byref(plan))
Values = ctypes.c_float * (ROWS * WIDTH)
for rank in range(RANKS):
    x = Values(*(i + 100 * rank for i in range(ROWS * WIDTH)))
    call("braid_set_input", executable, rank, b"x", ctypes.byref(tensor(x, ROWS, WIDTH)))
call("braid_run", executable, plan, None, 0)
for rank in range(RANKS):
    y = Values()
    call("braid_get_output", executable, rank, b"y", y, ctypes.sizeof(y))
    assert list(y) == [2 * i + 100 for i in range(ROWS * WIDTH)], list(y)
try:
    call("braid_set_input", executable, 0, b"x", ctypes.byref(tensor(y, WIDTH, ROWS)))
except RuntimeError as error:
    assert str(error) == "x: is f32[8, 3]; expected f32[3, 8]", error
else:
    raise AssertionError("a tensor of another shape was taken")
