"""The rows of the benches for any array library: inputs, parameters, and what of a result is compared.

A row is a dictionary with op, dtype, shape and ring; bench/common has the same names, shapes and numbers. A library
brings `numbers`, an object with values(seed, shape) and classes(seed, shape, count).
"""

import math

WORD = 0xFFFFFFFF
MODELS = ("mlp_step", "cnn_step", "gpt_step", "gpt2_step")
LOSSES = 50  # of gpt2_losses


def mix(seed, counter):
    """32 random bits per number of an array of int64, in place."""
    h = counter
    h *= 2654435761
    h += seed * 2246822519 + 1
    h &= WORD
    h ^= h >> 16
    h *= 0x85EBCA6B
    h &= WORD
    h ^= h >> 13
    h *= 0xC2B2AE35
    h &= WORD
    h ^= h >> 16
    return h


def check_calls(op):
    """The outputs of which call are compared."""
    return 5 if op in MODELS else 1


def learning_rate(op):
    return 1e-4 if is_gpt2(op) else 3e-4 if op == "gpt_step" else 1e-3


def is_gpt2(op):
    """gpt2_step, gpt2_forward, gpt2_losses: in bf16."""
    return op.startswith("gpt2")


def base(op):
    return op.removesuffix("_grad")


# ── Inputs ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
def product_shapes(op, shape):
    if op == "matmul_batch":
        batch, m, k, n = shape
        return [(batch, m, k), (batch, k, n)]
    m, k, n = shape
    found = [(k, m) if op.startswith("matmul_tn") else (m, k), (n, k) if op.startswith("matmul_nt") else (k, n)]
    return found + ([(n,)] if op.endswith("_gelu") else [])


def input_shapes(row):
    op, shape = row["op"], tuple(row["shape"])
    if op.startswith("matmul"):
        return product_shapes(op, shape)
    if base(op) == "embedding":
        return [shape[:2]]
    if op == "conv":
        batch, channels, height, width, filters, kernel, _, groups = shape
        return [(batch, channels, height, width), (filters, channels // groups, kernel, kernel)]
    if op == "abc_exp":
        return [shape] * 3
    if op == "add" or op.startswith("small_add"):
        return [shape] * 2
    if base(op) == "rms_norm":
        return [shape, shape[1:]]
    if base(op) in ("layer_norm", "batch_norm"):
        return [shape, shape[1:], shape[1:]]
    return [shape]


def inputs(row, turn, numbers):
    """Input k of a turn has seed 16 k + turn."""
    found = [numbers.values(16 * k + turn, shape) for k, shape in enumerate(input_shapes(row))]
    if base(row["op"]) == "cross_entropy":
        found.append(numbers.classes(64 + turn, row["shape"][:1], row["shape"][1]))
    if base(row["op"]) == "embedding":
        found.append(numbers.classes(64 + turn, row["shape"][2:], row["shape"][0]))
    return found


def arriving(row, turn, numbers):
    """The gradient that arrives at the output; none: the output is a loss."""
    shape = row["shape"]
    if base(row["op"]) == "embedding":
        shape = (shape[2], shape[1])
    return None if base(row["op"]) == "cross_entropy" else numbers.values(16 * 3 + turn, shape)


# ── Parameters: shapes, and what a vector is filled with ────────────────────────────────────────────────────────────────
def linear_shapes(rows, columns):
    return [((rows, columns), 0), ((columns,), 0)]


def conv_shapes(channels, filters, kernel):
    return [((filters, channels, kernel, kernel), 0), ((filters,), 0)]


def norm_shapes(width):
    return [((width,), 1), ((width,), 0)]


def mlp_shapes(shape):
    _, inputs_, hidden, outputs = shape
    return linear_shapes(inputs_, hidden) + linear_shapes(hidden, hidden) + linear_shapes(hidden, outputs)


def cnn_shapes(shape):
    _, size, first, second, hidden, outputs = shape
    found = conv_shapes(1, first, 3) + conv_shapes(first, second, 3)
    return found + linear_shapes(second * (size // 4) ** 2, hidden) + linear_shapes(hidden, outputs)


def gpt_shapes(shape):
    _, context, width, layers, _, vocabulary = shape
    block = norm_shapes(width) + linear_shapes(width, 3 * width) + linear_shapes(width, width) + norm_shapes(width)
    block = block + linear_shapes(width, 4 * width) + linear_shapes(4 * width, width)
    return [((vocabulary, width), 0), ((context, width), 0)] + block * layers + norm_shapes(width) + [((width, vocabulary), 0)]


def gpt2_shapes(shape):
    """The head is the embedding."""
    return gpt_shapes(shape)[:-1]


RESNET_CLASSES = 1000


def resnet_blocks():
    """Channels in and out of each block."""
    widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    return list(zip(widths, widths[1:]))


def resnet_shapes():
    unit = lambda channels, filters, kernel: conv_shapes(channels, filters, kernel)[:1] + norm_shapes(filters)
    found = unit(3, 64, 7)
    for channels, filters in resnet_blocks():
        found += unit(channels, filters, 3) + unit(filters, filters, 3)
        found += unit(channels, filters, 1) if channels != filters else []
    return found + linear_shapes(512, RESNET_CLASSES)


def model_shapes(row):
    if base(row["op"]) == "resnet18":
        return resnet_shapes()
    if is_gpt2(row["op"]):
        return gpt2_shapes(row["shape"])
    return {"mlp_step": mlp_shapes, "cnn_step": cnn_shapes, "gpt_step": gpt_shapes}[row["op"]](row["shape"])


def start(row, numbers):
    """Parameters in the order of bench/common."""
    found = []
    for i, (shape, fill) in enumerate(model_shapes(row)):
        if len(shape) == 4:
            found.append(numbers.values(100 + i, shape) * math.sqrt(6 / math.prod(shape[1:])))
        elif len(shape) == 2:
            found.append(numbers.values(100 + i, shape) / math.sqrt(shape[0]))
        else:
            found.append(numbers.values(0, shape) * 0 + fill)
    return found


def model_inputs(row, numbers):
    shape = row["shape"]
    if row["op"] == "mlp_step":
        return numbers.values(0, shape[:2]), numbers.classes(64, shape[:1], shape[3])
    if row["op"] == "cnn_step":
        return numbers.values(0, (shape[0], 1, shape[1], shape[1])), numbers.classes(64, shape[:1], shape[5])
    if row["op"] == "gpt_step" or is_gpt2(row["op"]):
        return numbers.classes(64, shape[:2], shape[5]), numbers.classes(65, (shape[0] * shape[1],), shape[5])
    return numbers.values(0, (shape[0], 3, shape[1], shape[1])), numbers.classes(64, shape[:1], RESNET_CLASSES)


# ── Results ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
def summary(array):
    """Of a NumPy array, as bench/common/inputs.cpp makes it."""
    import numpy as np

    flat = np.asarray(array).reshape(-1).astype(np.float64)
    at = np.arange(min(1000, flat.size)) * 2654435761 % flat.size
    return {"count": flat.size, "sum": flat.sum(), "squares": flat @ flat, "samples": flat[at].tolist()}
