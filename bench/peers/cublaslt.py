"""cuBLASLt without a framework between: the eight algorithms that it proposes first for a product, through ctypes."""

import ctypes as c

COMPUTE_32F, R_32F, R_16BF = 68, 0, 14
TRANS_A, TRANS_B, EPILOGUE, BIAS_POINTER, BIAS_TYPE = 3, 4, 7, 8, 26
GELU_BIAS, MAX_WORKSPACE, OP_N, OP_T = 36, 1, 0, 1
WORKSPACE = 64 << 20


class Heuristic(c.Structure):
    _fields_ = [("algo", c.c_uint64 * 8), ("workspace", c.c_size_t), ("state", c.c_int), ("waves", c.c_float), ("reserved", c.c_int * 4)]


class Product:
    """y [m, n] = x [m, k] times w ([k, n], or [n, k] where transposed), with a bias and GELU where there is a bias.

    The library counts columns first: it computes the transpose, y' = w' x'. Tensors are torch's; they must outlive this.
    """

    handle = None

    def __init__(self, torch, x, w, transposed, bias=None):
        self.torch, self.x, self.w = torch, x, w
        if Product.handle is None:
            Product.library = c.CDLL("libcublasLt.so.13")
            Product.handle = c.c_void_p()
            self.call("Create", c.byref(Product.handle))
            Product.workspace = torch.empty(WORKSPACE, dtype=torch.uint8, device=x.device)
        (m, k), n = x.shape, w.shape[0 if transposed else 1]
        kind = R_16BF if x.dtype == torch.bfloat16 else R_32F
        self.describe(kind, transposed, bias)
        self.a = self.layout(kind, *((k, n) if transposed else (n, k)))
        self.b, self.c = self.layout(kind, k, m), self.layout(kind, n, m)
        self.y = torch.empty(m, n, dtype=x.dtype, device=x.device)
        self.algorithms = self.heuristics()

    def call(self, name, *arguments):
        status = getattr(self.library, "cublasLt" + name)(*arguments)
        if status:
            raise RuntimeError(f"cublasLt{name}: status {status}")

    def describe(self, kind, transposed, bias):
        self.bias, self.operation = bias, c.c_void_p()
        self.call("MatmulDescCreate", c.byref(self.operation), c.c_int(COMPUTE_32F), c.c_int(R_32F))
        attributes = {TRANS_A: c.c_int(OP_T if transposed else OP_N), TRANS_B: c.c_int(OP_N)}
        if bias is not None:
            attributes |= {EPILOGUE: c.c_int(GELU_BIAS), BIAS_POINTER: c.c_void_p(bias.data_ptr()), BIAS_TYPE: c.c_int(kind)}
        for which, value in attributes.items():
            self.call("MatmulDescSetAttribute", self.operation, c.c_int(which), c.byref(value), c.c_size_t(c.sizeof(value)))

    def layout(self, kind, rows, columns):
        layout = c.c_void_p()
        self.call("MatrixLayoutCreate", c.byref(layout), c.c_int(kind), c.c_uint64(rows), c.c_uint64(columns), c.c_int64(rows))
        return layout

    def heuristics(self, wanted=8):
        preference, size = c.c_void_p(), c.c_size_t(WORKSPACE)
        found, results = c.c_int(), (Heuristic * wanted)()
        self.call("MatmulPreferenceCreate", c.byref(preference))
        self.call("MatmulPreferenceSetAttribute", preference, c.c_int(MAX_WORKSPACE), c.byref(size), c.c_size_t(c.sizeof(size)))
        self.call(
            "MatmulAlgoGetHeuristic", self.handle, self.operation, self.a, self.b, self.c, self.c, preference,
            c.c_int(wanted), results, c.byref(found),
        )
        self.call("MatmulPreferenceDestroy", preference)
        return [result for result in results[: found.value] if result.state == 0]

    def run(self, algorithm, x=None, w=None):
        one, zero = c.c_float(1), c.c_float(0)
        pointer = lambda tensor: c.c_void_p(tensor.data_ptr())
        self.call(
            "Matmul", self.handle, self.operation, c.byref(one), pointer(self.w if w is None else w), self.a,
            pointer(self.x if x is None else x), self.b, c.byref(zero), pointer(self.y), self.c, pointer(self.y), self.c,
            c.byref(algorithm.algo), pointer(self.workspace), c.c_size_t(WORKSPACE),
            c.c_void_p(self.torch.cuda.current_stream().cuda_stream),
        )
        return self.y
